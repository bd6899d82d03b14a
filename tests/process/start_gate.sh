# shellcheck shell=bash
# A worker is loaded while the supervisor writes that its run starts, and touches nothing of the run
# before that is written: when it is not, the run still waits, as if there had been no worker.
. "$(dirname "$0")/lib.sh"

mkfifo "$T/out"
exec 8<>"$T/out"

# starts NAME: a run that has its row, in a database that nobody can write to, and a worker. Until then the
# supervisor is stopped: it might find the row by itself.
starts() {
	supervisor=$(supervisor_pid)
	stop_still "$supervisor"
	dd if=/dev/zero of="$T/out" oflag=nonblock bs=4096 2>/dev/null # until it holds no more
	"$FLOWSUP" start --name "$1" -- true >"$T/out" 2>"$T/said" &
	client=$!
	wait_until has_row "$1"
	run=$(sql "SELECT run_id FROM sessions WHERE name = '$1'")
	dir=$FLOWSUP_HOME/runs/$run
	"${2:-hold_database}"
	kill -CONT "$supervisor"
	# Only now it can print the id, and asks the supervisor to look.
	{ until read -r -n 1 -u 8 byte && [ "$byte" = 2 ]; do :; done; } 2>/dev/null
	read -r -u 8 _
	wait_until has_worker
	worker=$(worker_pid "$run")
}
has_row() { [ -n "$(sql "SELECT 1 FROM sessions WHERE name = '$1'")" ]; }
has_worker() { [ -n "$(worker_pid "$run")" ]; }
touched() { find "$dir" -mindepth 1 -printf '%f\n' | grep -vxE 'flow.json|launch.json|environ|worker.lock|worker.log' | paste -sd' '; }

"$FLOWSUP" start --wait -- true 2>/dev/null >&2

starts late
equal "while the row cannot be written the run waits" "queued" "$(run_status "$run")"
equal "and nothing of it is touched" "" "$(touched)"
wait "$client"
release_database
equal_soon "when it can be written the run completes" completed run_status "$run"
equal "by the worker that waited" "1 $worker" \
	"$(sed -nE 's/.*"kind":"worker".*"pid":([0-9]+).*/1 \1/p' "$dir/attempts.log" | paste -sd' ')"

starts orphaned
kill -KILL "$supervisor"
check "without its supervisor the worker leaves" wait_until gone "$worker"
wait "$client" 2>/dev/null
equal "the run still waits" queued "$(sql "SELECT status FROM sessions WHERE run_id = '$run'")"
equal "and nothing of it was touched" "" "$(touched)"
release_database
"$FLOWSUP" supervisor
equal_soon "the next supervisor starts it" completed run_status "$run"

# Somebody ends the run in the moment before its row is written.
cancel_later() {
	rm -f "$T/held" "$T/let-go"
	printf 'BEGIN IMMEDIATE;\nUPDATE sessions SET status = '\''cancelled'\'', reason_code = '\''run.cancelled.queued'\'' WHERE run_id = '\''%s'\'';\n.shell touch "%s/held"\n.shell until test -e "%s/let-go"; do sleep 0.02; done\nCOMMIT;\n' "$run" "$T" "$T" |
		sqlite3 -bail -cmd '.timeout 60000' "$FLOWSUP_HOME/state.db" >/dev/null 2>"$T/cancel" &
	HOLDER=$!
	wait_until test -e "$T/held"
}
starts cancelled cancel_later
release_database
check "the worker of a run that was ended leaves" wait_until gone "$worker"
wait "$client"
equal "the run stays as it was ended" cancelled "$(run_status "$run")"
equal "and nothing of it was touched" "" "$(touched)"
check "nobody calls it crashed" eval '! logged "run $run: (its worker|crashed)"'
"$FLOWSUP" supervisor stop >/dev/null 2>&1
plan
