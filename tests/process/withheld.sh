#!/usr/bin/env bash
# Values of *_TOKEN *_SECRET *_PASSWORD *_KEY reach operations and no file.
. "$(dirname "$0")/lib.sh"

fact() { json "$("$FLOWSUP" list --json -n 100000 | grep "^{\"id\":\"$1\"")" "$2"; }
is() { [ "$(fact "$1" status)" = "$2" ]; }
reason_is() { [ "$(fact "$1" reason)" = "$2" ]; }
resumed() { [[ $(fact "$1" resumed_as) =~ ^[0-9] ]]; }
unset "${!ANTHROPIC@}" 2>/dev/null
export OWN_TOKEN=value-t-4711 MY_KEY=value-k-4712 PLAIN=value-p-4713
clean() { env -u OWN_TOKEN -u MY_KEY "$@"; }
clean2() { env -u MY_KEY "$@"; }
in_files() { grep -rlE 'value-[tk]-471' "$FLOWSUP_HOME" 2>/dev/null; }
# What an operation sees, outside of the home.
show='echo "$OWN_TOKEN $MY_KEY $PLAIN" >>"'$T/seen'"; until [ -e "'$T/go'" ]; do sleep 0.02; done'

"$FLOWSUP" supervisor # of an environment with values: it must not give them to others
id=$("$FLOWSUP" start -- sh -c "$show")
wait_until [ -s "$T/seen" ]
equal "operations see them" "value-t-4711 value-k-4712 value-p-4713" "$(cat "$T/seen")"
equal "no file holds them" "" "$(in_files)"
check "what is not withheld is in environ" grep -q value-p-4713 "$FLOWSUP_HOME/runs/$id/environ"
matches "launch.json names them" '"withheld":\[[^]]*"OWN_TOKEN"' "$(cat "$FLOWSUP_HOME/runs/$id/launch.json")"
equal "the worker is not started with them" "" \
	"$(tr '\0' '\n' <"/proc/$(worker_pid "$id")/cmdline" | grep value-)"
environment_of() { tr '\0' '\n' <"/proc/$1/environ"; }
equal "a supervisor that was started with them does not have them in its environment, nor has the worker" "" \
	"$(environment_of "$(supervisor_pid)" | grep value-[tk])$(environment_of "$(worker_pid "$id")" | grep value-[tk])"
matches "but what is not withheld" value-p-4713 "$(environment_of "$(supervisor_pid)")"

# ---- A restart by policy has them ----
rm "$T/seen"
printf 'plan:\n  - {id: a, env: {OWN_TOKEN: {required: true}}, retry: {attempts: 9, on: [signal], backoff: 1ms}, run: %s}\n' \
	"$(printf %s "$show" | sed "s/'/''/g; s/^/'/; s/\$/'/")" >"$T/again.yaml"
# crash RUN: its worker is killed, and what it had started too, which is tried again then.
crash() {
	local pid
	pid=$(json "$(grep '"kind":"start"' "$FLOWSUP_HOME/runs/$1/attempts.log" | tail -1)" pid)
	kill -KILL "$(worker_pid "$1")" "$pid"
}
id=$("$FLOWSUP" start --restart 2 "$T/again.yaml")
wait_until [ -s "$T/seen" ]
"$FLOWSUP" supervisor restart
rm "$T/seen"
crash "$id"
check "a crash is answered" wait_until resumed "$id"
two=$(fact "$id" resumed_as)
check "and the values are at hand" wait_until [ -s "$T/seen" ]
equal "all of them" "value-t-4711 value-k-4712 value-p-4713" "$(cat "$T/seen")"

# ---- They die with the supervisor ----
rm "$T/seen"
pid=$(supervisor_pid)
kill -KILL "$pid"
wait_until gone "$pid"
clean "$FLOWSUP" supervisor
wait_until worker_is_ready "$two"
crash "$two"
wait_until resumed "$two"
three=$(fact "$two" resumed_as)
check "then a restart waits for a person" wait_until reason_is "$three" run.queued.environment
equal "and runs nothing" "" "$(cat "$T/seen" 2>/dev/null)"
matches "waiting shows the command that supplies them" "environment.*flowsup resume $three" "$(clean "$FLOWSUP" waiting)"
out=$(clean "$FLOWSUP" resume "$three" 2>&1)
equal "which needs them" 4 $?
matches "and names what is missing" "MY_KEY" "$out"
out=$(clean "$FLOWSUP" resume "$three" --without-env OWN_TOKEN --without-env MY_KEY 2>&1)
equal "what an operation requires is not left out" "4 waits for values that are not set here: OWN_TOKEN (required)" \
	"$? $(grep -o 'waits for.*' <<<"$out")"
matches "but asked for" "hint: read -r OWN_TOKEN; export OWN_TOKEN; flowsup resume $three --without-env MY_KEY" "$out"
out=$("$FLOWSUP" resume "$three" --without-env NOPE 2>&1)
equal "a name that it does not wait for is refused" 2 $?
matches "with its words" "run $three has no withheld variable \"NOPE\"" "$out"
check "with them it sends them" "$FLOWSUP" resume "$three" 2>/dev/null
check "and the run starts" wait_until [ -s "$T/seen" ]
equal "with all of them" "value-t-4711 value-k-4712 value-p-4713" "$(cat "$T/seen")"
touch "$T/go"
check "to its end" wait_until is "$three" completed
equal "still no file holds them" "" "$(in_files)"
values() { ls -l "/proc/$(supervisor_pid)/fd" | grep -c withheld; }
none() { [ "$(values)" -eq 0 ]; }
check "after its end the supervisor has none" wait_until none

# ---- Resume by hand ----
printf 'plan:\n  - {id: a, env: {OWN_TOKEN: {required: true}}, run: "echo \\"[$OWN_TOKEN]\\" >>%s; test -e %s"}\n' \
	"$T/tokens" "$T/well" >"$T/needs.yaml"
id=$("$FLOWSUP" start "$T/needs.yaml")
"$FLOWSUP" wait "$id" 2>/dev/null
touch "$T/well"
out=$(clean "$FLOWSUP" resume "$id" --retry-failed 2>&1)
equal "a resume without them is refused" 4 $?
matches "it names each" "MY_KEY is not set" "$out"
matches "and the command that lifts it, with what was given" \
	"MY_KEY is not set.*lifted by: flowsup resume $id --retry-failed --without-env MY_KEY" "$out"
ask="read -r OWN_TOKEN; export OWN_TOKEN; flowsup resume $id --retry-failed"
matches "what is required is asked for" "\"a\" requires the variable OWN_TOKEN, which is not set; .*lifted by: $ask" "$out"
matches "all of them at once" "hint: $ask.* --without-env MY_KEY" "$out"
if grep -q -- "--without-env OWN_TOKEN" <<<"$out"; then left=offered; else left=no; fi
equal "and not left out" no "$left"
out=$(clean "$FLOWSUP" resume "$id" --retry-failed --without-env OWN_TOKEN 2>&1)
equal "to leave it out is refused" 4 $?
matches "with the same command" "requires the variable OWN_TOKEN, .*it cannot be left out.*hint: $ask --without-env MY_KEY" \
	"$(tr '\n' ' ' <<<"$out")"
out=$(clean "$FLOWSUP" resume "$id" --retry-failed --dry-run 2>/dev/null)
equal "a dry run too" 4 $?
matches "its table has each" "- +refused +the variable MY_KEY is not set, and its value was kept out of files" "$out"
matches "and what is required" "a +refused +it requires the variable OWN_TOKEN, which is not set" "$out"
for command in resume "fork --from a"; do
	# shellcheck disable=SC2086
	out=$("$FLOWSUP" $command "$id" --retry-failed --without-env OWN_TOKEM 2>&1 >"$T/out")
	equal "$command: a name that is not withheld is refused" "2 " "$? $(cat "$T/out")"
	matches "$command: with the one that is near" 'run '"$id"' has no withheld variable "OWN_TOKEM".*hint: flowsup '"$command $id"' .*--without-env OWN_TOKEN' "$(tr '\n' ' ' <<<"$out")"
	# shellcheck disable=SC2086
	out=$("$FLOWSUP" $command "$id" --retry-failed --dry-run --without-env PLAIN 2>&1)
	equal "$command: one that is not kept out of files too" 2 $?
	matches "$command: also where none is near" 'has no withheld variable "PLAIN"$' "$out"
done
next=$("$FLOWSUP" resume "$id" --retry-failed 2>/dev/null)
"$FLOWSUP" wait "$next" 2>/dev/null
equal "with them it goes on" "0 [value-t-4711]" "$? $(tail -1 "$T/tokens")"
rm "$T/well"
id=$("$FLOWSUP" start -- sh -c "echo \"[\$OWN_TOKEN]\" >>'$T/tokens'; test -e '$T/well'")
"$FLOWSUP" wait "$id" 2>/dev/null
touch "$T/well"
names=$(grep -oE '"withheld":\[[^]]*\]' "$FLOWSUP_HOME/runs/$id/launch.json" | grep -oE '"[A-Z_a-z0-9]+"' | tr -d '"' | grep -v withheld)
flags=()
for name in $names; do flags+=(--without-env "$name"); done
next=$(clean "$FLOWSUP" resume "$id" --retry-failed "${flags[@]}" 2>"$T/said")
"$FLOWSUP" wait "$next" 2>/dev/null
equal "without a name it goes on without the value" "0 []" "$? $(tail -1 "$T/tokens")"
matches "which is said" "the value of OWN_TOKEN is left out; by --without-env" "$(cat "$T/said")"
id=$("$FLOWSUP" start -- sleep 1000)
wait_until worker_is_ready "$id"
kill -KILL "$(worker_pid "$id")"
wait_until is "$id" crashed
# ---- Of a run that crashed the supervisor has them still ----
"$FLOWSUP" kill "$id" >/dev/null 2>&1
check "of a run that was killed it has none" wait_until none
rm -f "$T/go" "$T/seen"
id=$("$FLOWSUP" start "$T/again.yaml")
wait_until worker_is_ready "$id"
wait_until [ -s "$T/seen" ]
crash "$id"
wait_until is "$id" crashed
"$FLOWSUP" supervisor restart
clean "$FLOWSUP" resume "$id" --dry-run >"$T/out" 2>&1
equal "a resume needs none of its own" 0 $?
stopped=$(supervisor_pid)
stop_still "$stopped"
out=$(clean "$FLOWSUP" resume "$id" --dry-run 2>&1)
equal "where none answers they are wanted from here" 4 $?
matches "with the word that it may have them, and what to do" \
	"process $stopped, is stopped; it may have kept the value of [^;]*MY_KEY.*hint: kill -CONT $stopped" "$(tr '\n' ' ' <<<"$out")"
matches "also in JSON" "\"unheard\":\\[\"[^]]*MY_KEY" "$(clean "$FLOWSUP" resume "$id" --dry-run --json 2>/dev/null)"
kill -CONT "$stopped"
rm "$T/seen"
next=$(OWN_TOKEN=another clean2 "$FLOWSUP" resume "$id" 2>"$T/said")
check "what goes on has them" wait_until [ -s "$T/seen" ]
equal "as they were, but what the resume has itself" "another value-k-4712 value-p-4713" "$(tail -1 "$T/seen")"
matches "which is said" "the value of MY_KEY is taken from the supervisor" "$(cat "$T/said")"
wait_until worker_is_ready "$next"
rm "$T/seen"
crash "$next"
wait_until is "$next" crashed
last=$(clean "$FLOWSUP" resume "$next" 2>/dev/null)
check "a second one too" wait_until [ -s "$T/seen" ]
equal "with the same" "another value-k-4712 value-p-4713" "$(tail -1 "$T/seen")"
touch "$T/go"
check "to its end" wait_until is "$last" completed
equal "no file holds them" "" "$(in_files)"
check "after which the supervisor has none" wait_until none
id=$("$FLOWSUP" start -- sleep 1000)
wait_until worker_is_ready "$id"
kill -KILL "$(worker_pid "$id")"
wait_until is "$id" crashed
equal "of all that crashed the name may be another's" 0 \
	"$("$FLOWSUP" resume --all-crashed --dry-run --without-env OWN_TOKEN --without-env PLAIN >"$T/out" 2>&1; echo $?)"

"$FLOWSUP" kill "$id" >/dev/null 2>&1

# ---- They go with a run that is removed ----
check "nothing is kept" wait_until none
rm "$T/seen" "$T/go"
id=$("$FLOWSUP" start "$T/again.yaml")
wait_until [ -s "$T/seen" ]
crash "$id"
wait_until is "$id" crashed
one() { [ "$(values)" -eq 1 ]; }
check "of a crashed run they are" wait_until one
check "gc takes it away" wait_until eval '"$FLOWSUP" gc --keep-n 0 2>/dev/null | grep -qx "$id"'
check "and them" wait_until none

# ---- What is no sealed memfd ----
if command -v python3 >/dev/null; then
	python3 - "$FLOWSUP_HOME" >"$T/py" <<'PY'
import array, json, os, socket, sys
os.chdir(sys.argv[1])
def poke(fd):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect("supervisor.sock")
    s.send(json.dumps({"type": "hello", "role": "client", "major": 1, "minor": 0}).encode())
    s.sendmsg([json.dumps({"type": "poke", "run": "20260101T000000-abcdef"}).encode()],
        [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
    return json.loads(s.recv(65536))["type"]
print(poke(os.open("/dev/zero", os.O_RDONLY)), poke(os.memfd_create("open")))
PY
	equal "a descriptor that is no sealed memfd is refused" "error error" "$(cat "$T/py")"
	check "and not kept" wait_until none
fi
plan
