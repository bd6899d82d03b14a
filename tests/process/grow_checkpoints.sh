#!/usr/bin/env bash
# Every state that the checkpoint of a growing run goes through: fresh, timed, resumed, retried; and
# version 2 files, whose witnesses need guards.
. "$(dirname "$0")/lib_grow.sh"

inspect() { python3 "$ROOT/tests/lib/inspect_growth.py" "$(run_dir)" "$@"; }
inspected() { # name: every state of $RUN is right, and there were some
	local seen
	seen=$(inspect) && [[ $seen =~ ^[0-9]+\ states$ ]] && [ "${seen% *}" -gt 1 ]
	if [ $? = 0 ]; then ok "$1 ($seen)"; else not_ok "$1"; note "$seen"; fi
}
flow() { # further keys
	cat <<Y
$1
reactive: all
concurrency: 3
roles:
  low: {provider: robot, env: {WHO: low}, escalate_to: mid}
  mid: {provider: robot, env: {WHO: mid}, escalate_to: top}
  top: {provider: robot, env: {WHO: top}}
plan:
  - {id: list, response: json, run: 'echo "[1, 2, 3]"'}
  - {id: each, needs: [list], foreach: "", run: 'flowsup emit spawn --run "echo of \$1"; echo "\$1"'}
  - {id: a, assignee: low, instruction: 'flowsup emit spawn --instruction "flowsup emit escalate; echo child"; flowsup emit spawn --instruction "echo alone" --independent; test \$WHO = top -o -e "\$T/gates/never"'}
  - {id: b, assignee: low, needs: [a], instruction: 'flowsup emit escalate; test -e "\$T/gates/well"'}
  - {id: end, needs: [b, each], run: 'true'}
Y
}

rm -f "$T/gates/well"
run_flow < <(flow '')
equal "a run without a deadline fails at the end" failed "$(run_status "$RUN")"
inspected "fresh"
fresh=$RUN
open_gate well
RUN=$("$FLOWSUP" resume "$RUN" --retry-failed 2>/dev/null)
wait_until ended
equal "retried it completes" completed "$(run_status "$RUN")"
inspected "retried"
equal "the same nodes go on" True "$(before=$("$FLOWSUP" checkpoint export "$fresh" --json | python3 -c 'import json,sys; print({e["node_id"] for e in json.load(sys.stdin)["spawned"]})')
	spawned "$before <= {e['node_id'] for e in s}")"

# ---- With a deadline, as often as it takes ----
begin < <(flow 'timeout: 250ms')
for n in $(seq 20); do
	wait_until ended
	inspect >"$T/seen" || break
	[ "$(run_status "$RUN")" = timed_out ] || break
	RUN=$("$FLOWSUP" resume "$RUN" --timeout $((250 + n * n * 10))ms 2>"$T/resume.err") || break
done
equal "a run with a deadline completes in the end, and each state was right" "completed" "$(run_status "$RUN")"
note "after $n runs; $(cat "$T/seen")"

# ---- Version 2 ----
for keys in '' 'timeout: 10m'; do
	begin --checkpoint-format 2 < <(flow "$keys")
	python3 "$ROOT/tests/lib/inspect_growth.py" "$(run_dir)" --watch >"$T/seen" 2>&1 &
	watcher=$!
	wait_until ended
	: >"$(run_dir)/inspected"
	wait "$watcher"
	equal "version 2${keys:+ with a deadline}: each state seen is right" 0 $?
	matches "and some were seen" '^[0-9]+ states$' "$(cat "$T/seen")"
	equal "planned nodes guard them" True "$(python3 -c 'import json,sys; print(all("node_id" in e for e in json.load(open(sys.argv[1]))["plan"]))' "$(run_dir)/checkpoint.json")"
done
begin --checkpoint-format 2 <<'Y'
reactive: all
plan: [{id: a, run: 'true'}]
Y
wait_until ended
equal "without anything to guard older readers can read it" False \
	"$(python3 -c 'import json,sys; print(any("node_id" in e for e in json.load(open(sys.argv[1]))["plan"]))' "$(run_dir)/checkpoint.json")"

# ---- A version 2 run with entries resumes as version 3 ----
begin --checkpoint-format 2 <<'Y'
reactive: all
plan: [{id: a, run: 'flowsup emit spawn --run "test -e \"\$T/gates/yes\""'}]
Y
wait_until ended
node=$(spawned 's[0]["node_id"]')
open_gate yes
RUN=$("$FLOWSUP" resume "$RUN" --retry-failed 2>/dev/null)
wait_until ended
equal "what version 2 recorded goes on" "completed $node" "$(run_status "$RUN") $(spawned 's[0]["node_id"]')"
plan
