#!/usr/bin/env bash
# A run whose operation sleeps: what its worker and the supervisor do meanwhile, counted in the worker's
# own ticks. And a control that nobody announces is found.
# shellcheck source=tests/process/lib.sh
. "$(dirname "$0")/lib.sh"

id=$("$FLOWSUP" start -- sleep 600) || exit 1
wait_until worker_is_ready "$id"
worker=$(worker_pid "$id")
supervisor=$(supervisor_pid)

beats() { od -An -tu8 -N8 "/proc/$worker/fd/5" | tr -d ' '; }
beaten() { [ "$(beats)" -ge "$1" ]; }
# How often the threads of a process went to sleep: the first one, the others together.
sleeps() { # PID
	awk -v first="/proc/$1/task/$1/status" '/^voluntary_ctxt_switches/ { FILENAME == first ? own += $2 : rest += $2 }
		END { print own + 0, rest + 0 }' /proc/"$1"/task/*/status
}
counts() { echo "$(beats) $(sleeps "$worker") $(sleeps "$supervisor")"; }
threads() { set -- "/proc/$1/task/"*; echo $#; }
# For two ticks no thread but the worker's first one woke, and that one and the supervisor no more often
# than that: the supervisor has a tick of its own.
all_rest() {
	local from to
	read -ra from <<<"$(counts)"
	wait_until beaten $((from[0] + 2)) || return 1
	read -ra to <<<"$(counts)"
	note "$((to[0] - from[0])) ticks: the worker woke $((to[1] - from[1])) times, its helpers \
$((to[2] - from[2])), the supervisor $((to[3] - from[3]))" >&3
	[ $((to[1] - from[1])) -le $((to[0] - from[0])) ] && [ "${to[2]}" = "${from[2]}" ] &&
		[ $((to[3] - from[3])) -le $((to[0] - from[0])) ]
}
exec 3>&1

check "worker and supervisor come to rest, but for their ticks" wait_until all_rest
equal "the worker's threads" 3 "$(threads "$worker")"
equal "the supervisor's" 1 "$(threads "$supervisor")"
check "what reads YAML is not part of a worker" [ "$(grep -c fyaml "/proc/$worker/maps")" = 0 ]
own() { awk '/^Anonymous:/ { print $2 }' "/proc/$worker/smaps_rollup"; }
if [ "$(getconf PAGESIZE)" = 4096 ]; then
	note "memory of the worker's own: $(own) KiB"
	check_memory "it holds little" [ "$(own)" -le 560 ]
fi

# Written into the database behind everybody's back. Without looking at the files it would be found at
# the thirtieth tick since the last change.
if command -v sqlite3 >/dev/null; then
	database() { sqlite3 -cmd '.timeout 10000' "$FLOWSUP_HOME/state.db" "$1"; }
	applied() { [ "$(database "SELECT result FROM session_controls WHERE id = 'unannounced'")" = applied ]; }
	before=$(beats)
	database "INSERT INTO session_controls(id, session_id, verb, created_at)
		SELECT 'unannounced', id, 'pause', 1 FROM sessions WHERE run_id = '$id'"
	check "a control that nobody announced is applied" wait_until applied
	check "by one of the next ticks" [ $(($(beats) - before)) -le 20 ]
	check "and counts" wait_until status_is "$id" paused
else
	skip "sqlite3 is not installed"
fi
"$FLOWSUP" kill "$id" >/dev/null 2>&1
check "the run can be ended" wait_until status_is "$id" cancelled
plan
