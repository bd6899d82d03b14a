#!/usr/bin/env bash
# The room of a foreach that has begun, when its worker has died in the middle of its items.
. "$(dirname "$0")/lib_grow.sh"

rm -f "$T/asks"
run_flow <<'Y'
max_ops: 11
reactive: all
plan:
  - {id: list, response: json, run: 'echo "[1,2,3,4,5,6]"'}
  - {id: asks, needs: [list], run: 'test -e "$T/asks" || exit 0; for i in 1 2 3 4 5 6; do flowsup emit spawn --run true --independent; done; true'}
  - {id: each, needs: [list, asks], foreach: {op: list, pointer: ""}, run: 'true'}
Y
equal "six of eight that may be added" "completed 6" "$(run_status "$RUN") $(spawned 'len(s)')"
"$FLOWSUP" checkpoint export "$RUN" --json | python3 -c '
import json, sys
state = json.load(sys.stdin)
state = {"version": 2, **{k: v for k, v in state.items() if k not in ("version", "generation", "journal_seq")}}
state["ops"] = {"list": state["ops"]["list"]}
state["spawned"] = state["spawned"][:2]
print(json.dumps(state))' >"$T/cut.json"
cp "$T/cut.json" "$(run_dir)/checkpoint.json"
rm "$(run_dir)/checkpoint.json.journal"
sql "update sessions set status = 'crashed', reason_code = 'run.crashed.unknown' where run_id = '$RUN'"
touch "$T/asks"
RUN=$("$FLOWSUP" resume "$RUN" 2>"$T/err") || note "$(cat "$T/err")"
wait_until ended
equal "others that ask before it goes on get what is left besides" "completed 6 2" \
	"$(run_status "$RUN") $(spawned 'len([e for e in s if e["spawn_id"].startswith("each.")])') $(spawned 'len([e for e in s if e["spawn_id"].startswith("asks.")])')"

plan
