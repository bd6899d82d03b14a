#!/usr/bin/env bash
# notify: a command is told of an event, once, with JSON on its standard input and bounded in time.
. "$(dirname "$0")/lib.sh"

cat >"$T/tell" <<'END'
#!/bin/sh
# Keeps each payload in a file of its own, and what it was started with.
n=$(mktemp "$1/note.XXXXXX")
cat >"$n"
printf '%s\n' "$@" >"$n.argv"
pwd >"$n.cwd"
echo "$COLOUR" >"$n.env"
ps -o pgid=,sid= -p $$ >"$n.group"
mv "$n" "$n.json"
END
chmod +x "$T/tell"
told() { cat "$T/$1"/*.json 2>/dev/null; }
told_of() { told "$1" | grep -q "\"event\":\"$2\""; }
outcome_of() { "$FLOWSUP" show --json "$1" | grep -oE '"notices":\[[^]]*\]'; }
outcome_is() { [[ $(outcome_of "$1") =~ $2 ]]; }
mkdir "$T/a" "$T/b" "$T/c" "$T/d" "$T/e"

cat >"$T/fails.yaml" <<END
notify: ["$T/tell", "$T/a", "two words", "\$HOME; rm -rf *"]
plan: [{id: op, exec: ["false"]}]
END
id=$(cd "$T/b" && COLOUR=blue "$FLOWSUP" start "$T/fails.yaml")
check "an end that is not completed is told" wait_until told_of a failed
check "its outcome is recorded" wait_until outcome_is "$id" '"outcome":"exit 0"'
payload=$(told a)
equal "the payload names the run" "$id" "$(json "$payload" run)"
equal "and its status" failed "$(json "$payload" status)"
equal "and the exit status" 1 "$(json "$payload" exit_status)"
equal "and how to go on" "flowsup resume --home $FLOWSUP_HOME $id --retry-failed" "$(json "$payload" resume_command)"
equal "with nothing else undone nothing is left to keep it for" null "$(json "$payload" keep_command)"
equal "it is one line" 1 "$(told a | wc -l)"
equal "words arrive as they are: there is no shell" "two words|\$HOME; rm -rf *" \
	"$(sed -n 2,3p "$T"/a/*.argv | paste -sd '|')"
equal "it runs in the directory of the run" "$T/b" "$(cat "$T"/a/*.cwd)"
equal "with its environment" blue "$(cat "$T"/a/*.env)"
read -r group session <"$(echo "$T"/a/*.group)"
equal "in a session of its own" "$group" "$session"
check "that is not its supervisor's" [ "$group" != "$(ps -o pgid= -p "$(supervisor_pid)" | tr -d ' ')" ]

# ---- Which ends ----
id=$("$FLOWSUP" start --notify "[\"$T/tell\", \"$T/b\"]" -- true)
"$FLOWSUP" wait "$id" 2>/dev/null
id=$("$FLOWSUP" start --notify "{\"command\": [\"$T/tell\", \"$T/b\"], \"on\": \"all\"}" -- true)
check "on: all tells every end" wait_until told_of b completed
equal "without it a completed run is not told" 1 "$(told b | wc -l)"
equal "an argv that is none is refused" 2 "$("$FLOWSUP" start --notify '["a", 1]' -- true 2>/dev/null; echo $?)"
equal "and one that is empty" 2 "$("$FLOWSUP" start --notify '' -- true 2>/dev/null; echo $?)"

# ---- Crash, and a gate that waits ----
cat >"$T/gate.yaml" <<END
notify: ["$T/tell", "$T/c"]
plan:
  - {id: ask, gate: approve, run: 'true'}
END
id=$("$FLOWSUP" start "$T/gate.yaml")
check "a gate that waits is told" wait_until told_of c waiting
equal "with its operation" ask "$(json "$(told c)" op)"
wait_until worker_is_ready "$id"
kill -KILL "$(worker_pid "$id")"
check "a crash is told" wait_until told_of c crashed
wait_until outcome_is "$id" '"crashed".*"outcome":"exit 0"'
"$FLOWSUP" supervisor restart
"$FLOWSUP" supervisor stop
"$FLOWSUP" supervisor
"$FLOWSUP" supervisor status >/dev/null
equal "each once" "crashed waiting" "$(told c | grep -oE '"event":"[a-z]*"' | cut -d'"' -f4 | sort | paste -sd ' ')"

# ---- Counts ----
# The row's count is written once a second at most, and the worker dies before.
cat >"$T/counts.yaml" <<END
notify: {command: ["$T/tell", "$T/f"], on: all}
restart: {on: crash, attempts: 2}
plan:
  - {id: one, run: "until [ -e '$T/first' ]; do sleep 0.02; done"}
  - {id: two, needs: [one], run: "until [ -e '$T/second' ]; do sleep 0.02; done"}
  - {id: ask, needs: [two], gate: approve, run: "true"}
END
mkdir "$T/f"
id=$("$FLOWSUP" start "$T/counts.yaml")
wait_until worker_is_ready "$id"
worker=$(worker_pid "$id")
log=$FLOWSUP_HOME/runs/$id/attempts.log
touch "$T/first"
wait_until grep -q '"kind":"start","op":"two"' "$log"
kill -KILL "$worker"
check "a crash of a run that goes on by itself is told" wait_until told_of f crashed
equal "with the count that its checkpoint holds" 1 "$(json "$(told f | grep '"crashed"')" "done")"
touch "$T/second"
check "a gate, too" wait_until told_of f waiting
equal "with what the worker has just said" 2 "$(json "$(told f | grep '"waiting"')" "done")"
"$FLOWSUP" kill "$id" 2>/dev/null

# ---- While no supervisor lives ----
id=$("$FLOWSUP" start --notify "[\"$T/tell\", \"$T/d\"]" -- sh -c "until [ -e '$T/go' ]; do sleep 0.02; done; false")
wait_until worker_is_ready "$id"
worker=$(worker_pid "$id")
pid=$(supervisor_pid)
kill -KILL "$pid"
wait_until gone "$pid"
touch "$T/go"
wait_until gone "$worker"
equal "nobody is there to tell it" "" "$(told d)"
"$FLOWSUP" list >/dev/null
check "the next supervisor does" wait_until told_of d failed

# ---- Commands that fail ----
cp /bin/true "$T/goes"
id=$("$FLOWSUP" start --notify "$T/goes" -- sh -c "until [ -e '$T/gone' ]; do sleep 0.02; done; false")
rm "$T/goes"
: >"$T/gone"
check "a program that has gone is recorded" wait_until outcome_is "$id" 'exit 127: .*goes'
# One that is not there at the start would be missed when it is needed.
echo text >"$T/no-program"
failed=$id
before=$("$FLOWSUP" list --json -n 0 | wc -l)
for program in /no/such/program no-such-program "$T/no-program" '["no-such-program", "x"]' ./none; do
	equal "start --notify $program: refused with 78" "78 " "$("$FLOWSUP" start --notify "$program" -- true 2>"$T/err"; echo "$? ")"
	matches "start --notify $program: and named" "notify: .*(such.program|no-program|none)" "$(cat "$T/err")"
	equal "resume --notify $program: the same" 78 \
		"$("$FLOWSUP" resume "$failed" --retry-failed --notify "$program" >/dev/null 2>&1; echo $?)"
done
printf 'notify: [no-such-program]\nplan: [{id: a, run: "true"}]\n' >"$T/notify.yaml"
for words in "start $T/notify.yaml" "start --dry-run $T/notify.yaml" "check $T/notify.yaml"; do
	# shellcheck disable=SC2086 # words are meant
	equal "$words: of a document, too" 78 "$("$FLOWSUP" $words >/dev/null 2>&1; echo $?)"
done
equal "a document's is not asked for where this call has another" 0 \
	"$("$FLOWSUP" start --notify true "$T/notify.yaml" >/dev/null 2>&1; echo $?)"
equal "nothing else was made" $((before + 1)) "$("$FLOWSUP" list --json -n 0 | wc -l)"
id=$("$FLOWSUP" start --notify '["sh", "-c", "echo some text; exit 3"]' -- false)
check "so is an exit status" wait_until outcome_is "$id" '"outcome":"exit 3"'
equal "what it prints is kept with the run" "some text" "$(cat "$FLOWSUP_HOME/runs/$id/notify.log")"
check "and in the log" logged "run $id: notify of 'failed': exit 3"
id=$("$FLOWSUP" start --notify '["sh", "-c", "kill -9 $$"]' -- false)
check "and a signal" wait_until outcome_is "$id" '"outcome":"SIGKILL"'

# ---- Restart of the supervisor while one runs ----
cat >"$T/slow" <<END
#!/bin/sh
touch "$T/e/begun"
until [ -e "$T/e/go" ]; do sleep 0.02; done
exit 7
END
chmod +x "$T/slow"
id=$("$FLOWSUP" start --notify "$T/slow" -- false)
wait_until [ -e "$T/e/begun" ]
"$FLOWSUP" supervisor restart
touch "$T/e/go"
check "its outcome is known all the same" wait_until outcome_is "$id" '"outcome":"exit 7"'

rm "$T/e/go" "$T/e/begun"
id=$("$FLOWSUP" start --notify "$T/slow" -- false)
wait_until [ -e "$T/e/begun" ]
pid=$(supervisor_pid)
kill -KILL "$pid"
wait_until gone "$pid"
"$FLOWSUP" supervisor
check "that of a supervisor that died is called unknown" wait_until outcome_is "$id" '"outcome":"unknown'
touch "$T/e/go"

# ---- What it prints ----
log_of() { echo "$FLOWSUP_HOME/runs/$1/notify.log"; }
log_size_is_at_most() { [ "$(stat -c %s "$(log_of "$1")")" -le "$2" ]; }
cut='more was printed; flowsup keeps no more of it'
cat >"$T/loud" <<END
#!/bin/sh
touch "$T/\$1.begun"
until [ -e "$T/\$1.go" ]; do sleep 0.02; done
echo first
head -c 3000000 /dev/zero | tr '\\0' x
{ echo wrong; head -c 3000000 /dev/zero | tr '\\0' y; } >&2
touch "$T/\$1.printed"
exit 4
END
chmod +x "$T/loud"
touch "$T/one.go"
id=$("$FLOWSUP" start --notify "[\"$T/loud\", \"one\"]" -- false)
check "one that prints much ends as it wants" wait_until outcome_is "$id" '"outcome":"exit 4: wrong"'
matches "the beginning is kept" "^first" "$(head -c 100 "$(log_of "$id")")"
equal "that the rest is cut is said for each of the two" 2 "$(grep -c "$cut" "$(log_of "$id")")"
check "64 KiB of each are kept" log_size_is_at_most "$id" $((2 * 65536 + 200))
id=$("$FLOWSUP" start --notify "[\"$T/loud\", \"two\"]" -- false)
wait_until [ -e "$T/two.begun" ]
pid=$(supervisor_pid)
kill -KILL "$pid"
wait_until gone "$pid"
touch "$T/two.go"
check "one whose supervisor has died prints all that it has to" wait_until [ -e "$T/two.printed" ]
check "and no more is kept" log_size_is_at_most "$id" $((2 * 65536 + 200))
"$FLOWSUP" supervisor
id=$("$FLOWSUP" start --notify "[\"$T/loud\", \"one\"]" -- sh -c "until [ -e '$T/filled' ]; do sleep 0.02; done; false")
head -c 1048576 /dev/zero >"$(log_of "$id")"
touch "$T/filled"
wait_until outcome_is "$id" '"outcome":"exit 4: wrong"'
check "a run's log ends at 1 MiB" log_size_is_at_most "$id" 1048576
cat >"$T/leaves" <<END
#!/bin/sh
(until [ -e "$T/late" ]; do sleep 0.02; done; echo late; touch "$T/was-late") &
END
chmod +x "$T/leaves"
id=$("$FLOWSUP" start --notify "$T/leaves" -- false)
check "one that leaves something running has ended" wait_until outcome_is "$id" '"outcome":"exit 0"'
touch "$T/late"
check "what it left can print" wait_until [ -e "$T/was-late" ]
equal_soon "which is kept" late cat "$(log_of "$id")"

# ---- One that does not end ----
preload=$BUILD/tests/preload/clock.so
"$FLOWSUP" supervisor stop
CLOCK_RATE=20 LD_PRELOAD=$preload "$FLOWSUP" supervisor
id=$("$FLOWSUP" start --notify "[\"sh\", \"-c\", \"trap '' TERM; sleep 1000 & echo \$! >$T/child; wait; wait\"]" -- false)
check "after its time it is killed with its group" wait_until outcome_is "$id" '"outcome":"killed: it took too long"'
check "nothing of it is left" wait_until gone "$(cat "$T/child")"
rm "$T/child"
id=$("$FLOWSUP" start --notify "[\"sh\", \"-c\", \"sleep 1000 & echo \$! >$T/child; wait\"]" -- false)
wait_until [ -s "$T/child" ]
pid=$(supervisor_pid)
kill -KILL "$pid"
check "nor where its supervisor has died" wait_until gone "$(cat "$T/child")"
wait_until gone "$pid"
CLOCK_RATE=20 LD_PRELOAD=$preload "$FLOWSUP" supervisor
# ---- Values that are none ----
while IFS='|' read -r value wanted; do
	matches "--notify '$value' says what it can be" "$wanted" "$("$FLOWSUP" start --notify "$value" -n -- true 2>&1 | xargs -d '\n')"
done <<'END'
|is empty note: a program, or as JSON an argv
[|text ends before.* note: a program, or as JSON an argv
[]|names no program note: .*notify: \[PROGRAM, ARGUMENT\]
{"command":3}|must be a list.* note: .*command: \[PROGRAM, ARGUMENT\]
no-such-program|cannot execute "no-such-program".* note: the first word is a program, found in PATH
END

plan
