#!/usr/bin/env bash
# The supervisor starts by itself, once, holds nothing of who started it, and leaves when idle.
. "$(dirname "$0")/lib.sh"

# ---- Many at once ----
mkdir "$T/out"
pids=()
for i in $(seq 20); do
	"$FLOWSUP" supervisor >"$T/out/$i" 2>&1 &
	pids+=($!)
done
bad=0
for pid in "${pids[@]}"; do wait "$pid" || bad=$((bad + 1)); done
equal "twenty starters at once all succeed" 0 "$bad"
check "there is one supervisor" wait_until one_supervisor
pid=$(supervisor_pid)
check "it answers with its pid" [ "$pid" = "$(supervisors)" ]

# ---- In a directory that others make at the same time ----
bad=0
for i in $(seq 20); do
	export FLOWSUP_HOME=$T/fresh$i
	"$FLOWSUP" supervisor --foreground >"$T/out/fresh" 2>&1 &
	service=$!
	"$FLOWSUP" start --wait -- true >"$T/out/start" 2>&1 || bad=$((bad + 1))
	"$FLOWSUP" supervisor stop >/dev/null 2>&1
	# The run may have got itself a supervisor first.
	wait "$service" || grep -q "has a supervisor already" "$T/out/fresh" || bad=$((bad + 1))
	grep -h busy "$T/out/fresh" "$T/out/start" | sed 's/^/# /'
done
export FLOWSUP_HOME=$T/home
equal "a supervisor and a start that make one directory at once both succeed" 0 "$bad"

# ---- What it holds ----
equal "its directory is /" / "$(readlink "/proc/$pid/cwd")"
equal "its standard input is /dev/null" /dev/null "$(readlink "/proc/$pid/fd/0")"
equal "its standard output is its log" "$FLOWSUP_HOME/supervisor.log" "$(readlink "/proc/$pid/fd/1")"
equal "its standard error is its log" "$FLOWSUP_HOME/supervisor.log" "$(readlink "/proc/$pid/fd/2")"
equal "it has no pipe of anybody" 0 "$(find "/proc/$pid/fd" -lname 'pipe:*' 2>/dev/null | count)"
equal "FLOWSUP_HOME is the only name of ours in its environment" "FLOWSUP_HOME=$FLOWSUP_HOME" \
	"$(tr '\0' '\n' <"/proc/$pid/environ" | grep '^FLOWSUP_')"
equal "it is not in our session" 0 "$([ "$(stat_field "$pid" 4)" = "$(stat_field $$ 4)" ] && echo 1 || echo 0)"
equal "it has no terminal" 0 "$(stat_field "$pid" 5)"
equal "its files are private" 0 "$(find "$FLOWSUP_HOME" -perm /077 | count)"

# ---- A second one ----
out=$("$FLOWSUP" supervisor --foreground 2>&1)
equal "a second one in the foreground is refused" 5 $?
matches "and the refusal says why" "has a supervisor already" "$out"
check "the first one still answers" [ "$(supervisor_pid)" = "$pid" ]

# ---- Stop ----
check "stop succeeds" "$FLOWSUP" supervisor stop
check "it has left when stop returns" gone "$pid"
check "its socket is gone" [ ! -e "$FLOWSUP_HOME/supervisor.sock" ]
out=$("$FLOWSUP" supervisor status 2>&1)
equal "status without a supervisor is an answer" 0 $?
equal "and starts none" 0 "$(supervisors | count)"
matches "and says so" "no supervisor runs" "$out"
status_json() { "$FLOWSUP" supervisor status --json 2>/dev/null | perl -MJSON::PP -0777 -ne "\$o = decode_json(\$_); print $1"; }
all='join " ", sort keys %$o'
none=$(status_json "$all")
equal "with JSON as an object without a process" null "$(status_json '$o->{pid} // "null"')"
check "stop without a supervisor succeeds" "$FLOWSUP" supervisor stop

# ---- Pipes and closed descriptors of the caller ----
out=$(timeout "$LIMIT" "$FLOWSUP" supervisor)
equal "a substitution does not wait for it" 0 $?
"$FLOWSUP" supervisor stop
check "a pipe does not wait for it" bash -c "timeout $LIMIT '$FLOWSUP' supervisor 2>&1 | cat"
timeout "$LIMIT" "$FLOWSUP" supervisor status 2>/dev/null | head -c1 >/dev/null
equal "a reader that goes away is no error" "0 0" "${PIPESTATUS[*]}"
"$FLOWSUP" supervisor stop
check "closed standard descriptors do not matter" \
	bash -c "timeout $LIMIT '$FLOWSUP' supervisor <&- >&- 2>&-"
equal "one that runs says the same members" "$none" "$(status_json "$all")"
pid=$(supervisor_pid)
equal "its standard input is /dev/null then too" /dev/null "$(readlink "/proc/$pid/fd/0")"
"$FLOWSUP" supervisor stop
exec 7>"$T/held"
"$FLOWSUP" supervisor 7>&7
pid=$(supervisor_pid)
equal "other open descriptors are not kept" 0 "$(find "/proc/$pid/fd" -lname "$T/held" | count)"
exec 7>&-
"$FLOWSUP" supervisor stop
(trap '' HUP INT TERM; "$FLOWSUP" supervisor)
pid=$(supervisor_pid)
kill -TERM "$pid"
check "a signal ignored by the caller is not ignored by it" wait_until gone "$pid"

# ---- A death leaves nothing that needs a hand ----
"$FLOWSUP" supervisor
pid=$(supervisor_pid)
kill -KILL "$pid"
wait_until gone "$pid"
check "socket and lock of a dead one are in nobody's way" "$FLOWSUP" supervisor
check "a new one answers" [ "$(supervisor_pid)" != "$pid" ]
"$FLOWSUP" supervisor stop

kill -KILL "$(supervisor_pid)"
"$FLOWSUP" supervisor
check "one that is only just dying is not taken for one that runs" supervisor_answers

# ---- One that does not answer ----
pid=$(supervisor_pid)
stop_still "$pid"
for command in "supervisor" "supervisor status" "supervisor stop"; do
	# shellcheck disable=SC2086
	out=$("$FLOWSUP" $command 2>&1)
	equal "$command: a stopped one is told of" 5 $?
	matches "$command: with its process, and how it goes on" "process $pid, is stopped.hint: kill -CONT $pid" "$(tr '\n' . <<<"$out")"
done
matches "doctor too" "process $pid, is stopped.*kill -CONT $pid" "$("$FLOWSUP" doctor 2>&1 | tr '\n' ' ')"
kill -CONT "$pid"
check "continued it answers" wait_until supervisor_answers
"$FLOWSUP" supervisor stop

# ---- Few open files ----
few() { (ulimit -n "$1" && shift && "$@"); }
few 64 "$FLOWSUP" supervisor
run=$("$FLOWSUP" start -- true)
check "with few files runs are tried one at a time" wait_until status_is "$run" completed
matches "doctor tells of few" "the supervisor may open 64 files" "$("$FLOWSUP" doctor 2>&1)"
"$FLOWSUP" supervisor stop
out=$(few 39 "$FLOWSUP" supervisor 2>&1)
equal "with too few there is none" 78 $?
matches "which is said" "needs 40 open files, and its limit is 39.*ulimit -Hn" "$(tr '\n' ' ' <<<"$out")"
few 40 "$FLOWSUP" supervisor
run=$("$FLOWSUP" start -- true)
check "the least is enough for one" wait_until status_is "$run" completed
"$FLOWSUP" supervisor stop

# ---- Idle exit ----
"$FLOWSUP" supervisor --idle-exit 100ms
check "an idle supervisor leaves" wait_until logged 'leaves: idle'
check "and unlinks its socket" wait_until [ ! -e "$FLOWSUP_HOME/supervisor.sock" ]
wait_until eval '[ -z "$(supervisors)" ]'

"$FLOWSUP" supervisor --idle-exit 0
matches "one that is never to leave is told so" "--idle-exit=0" "$(tr '\0' ' ' <"/proc/$(supervisor_pid)/cmdline")"
"$FLOWSUP" supervisor stop

for name in supervisor.lock supervisor.sock; do
	rm -f "${FLOWSUP_HOME:?}/$name"
	mkdir "$FLOWSUP_HOME/$name"
	equal "$name is a directory: none starts" 74 "$("$FLOWSUP" supervisor 2>/dev/null; echo $?)"
	matches "and doctor says so" "broken supervisor none runs, and none can: '$FLOWSUP_HOME/$name' is a directory hint: mv $FLOWSUP_HOME/$name " \
		"$("$FLOWSUP" doctor 2>&1 | paste -sd' ' | tr -s ' ')"
	rmdir "$FLOWSUP_HOME/$name"
done

# ---- A long path ----
FLOWSUP_HOME=$T/$(printf 'long%.0s' $(seq 40))/$(printf 'path%.0s' $(seq 40))
check "a path longer than a socket address works" "$FLOWSUP" supervisor
pid=$(supervisor_pid)
check "there too it answers" alive "$pid"
check "there too it stops" "$FLOWSUP" supervisor stop

# ---- Homes that cannot be used ----
FLOWSUP_HOME=$T/open
mkdir -m 777 "$FLOWSUP_HOME"
chmod 777 "$FLOWSUP_HOME"
out=$("$FLOWSUP" supervisor 2>&1)
equal "a home writable by others is refused" 78 $?
FLOWSUP_HOME=/proc/none
out=$(timeout "$LIMIT" "$FLOWSUP" supervisor 2>&1)
equal "a home that cannot be made is an error" 73 $?
plan
