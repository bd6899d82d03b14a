#!/usr/bin/env bash
# A thousand controls of mixed kinds from eight processes: applied in order, none lost, none twice.
# And a database that somebody else holds for seconds: operations go on ending meanwhile.
. "$(dirname "$0")/lib.sh"
PATH=$BUILD/bin:$PATH
export T
MANY=${CONTROLS:-1000}
LIMIT=300 # each message is a base publication of its own

id=$("$FLOWSUP" start - <<Y
concurrency: 1
plan:
  - {id: a, run: 'until test -e "$T/go"; do sleep 0.02; done'}
  - {id: b, needs: [a], messages: true, run: 'cat "\$FLOWSUP_MESSAGES"'}
Y
)
check "it runs" wait_until worker_is_ready "$id"

# The worker stands still while they are queued, so that all of them wait at once.
stop_still "$(worker_pid "$id")"
# --wait=0 does not wait for the others' changes either: busy is status 5, queued and no more known 3.
queue() {
	local status=5
	while [ $status = 5 ]; do
		"$FLOWSUP" "$@" --wait=0
		status=$?
	done
	[ $status = 3 ]
}
writer() {
	local i
	for i in $(seq "$1" 8 "$MANY"); do
		case $((i % 5)) in
		0) queue pause "$id" ;;
		1) queue ctl resume "$id" ;;
		2) queue approve "$id" a ;;
		*) queue msg "$id" "text $i." ;;
		esac 2>/dev/null || echo "$i" >>"$T/failed"
	done
}
pids=()
for w in 1 2 3 4 5 6 7 8; do writer $w & pids+=($!); done
for pid in "${pids[@]}"; do wait "$pid"; done
check "all are queued" test ! -e "$T/failed"
equal "and none is taken" "$MANY" "$("$FLOWSUP" ctl status "$id" --json | grep -c '"state":"queued"')"
kill -CONT "$(worker_pid "$id")"
all_taken() { ! "$FLOWSUP" ctl status "$id" --json | grep -qE '"state":"(queued|claimed)"'; }
check "all are applied" wait_until all_taken
"$FLOWSUP" ctl status "$id" --json >"$T/all"
wanted() { grep -vE '"verb":"approve"' "$T/all" | grep -cv '"state":"applied"'; }
equal "every one has its result" 0 "$(wanted)"
equal "a verdict that nobody waits for is rejected" $((MANY / 5)) "$(grep '"verb":"approve"' "$T/all" | grep -c 'rejected:not-waiting')"
sed -nE 's/^\{"id":"([0-9a-f]+)".*/\1/p' "$T/all" >"$T/queued"
grep -oE '"event":"Control(Applied|Rejected)".*"control":"[0-9a-f]+"' "$FLOWSUP_HOME/runs/$id/events.jsonl" |
	sed -E 's/.*"control":"([0-9a-f]+)"/\1/' >"$T/events"
check "in the order of their rows, each once" cmp "$T/queued" "$T/events"
touch "$T/go"
"$FLOWSUP" ctl resume "$id" 2>/dev/null
"$FLOWSUP" wait "$id" >/dev/null 2>&1
sed -nE 's/.*"verb":"message".*"text":"(text [0-9]+\.)".*/\1/p' "$T/all" >"$T/sent"
grep -oE 'text [0-9]+\.' "$FLOWSUP_HOME/runs/$id/ops/b.1.out" >"$T/got"
check "the operation got every text, in that order, once" cmp "$T/sent" "$T/got"

# ---- A busy database ----
if ! command -v sqlite3 >/dev/null; then
	skip "sqlite3 is not installed"
	plan
fi
id=$("$FLOWSUP" start - <<'Y'
concurrency: 1
plan:
  - {id: p, foreach: [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20], run: 'until test -e "$T/held"; do sleep 0.02; done; head -c 100000 /dev/zero'}
Y
)
check "it runs" wait_until worker_is_ready "$id"
ended() { grep -c '"event":"CheckpointSaved"' "$FLOWSUP_HOME/runs/$id/events.jsonl"; }
hold_database
all_ended() { [ "$(ended)" = 20 ]; }
check "operations go on ending while the database is busy" wait_until all_ended
release_database
check "the end is recorded" wait_until status_is "$id" completed

plan
