#!/usr/bin/env bash
# A line of 100 MB before the answer: it is passed over, and the worker's memory stays small.
. "$(dirname "$0")/lib_agent.sh"
MOST_KB=100000
own_provider -e 's/"exit_0_reliable"/"drain": "1h", &/'
flow '  - {id: a, assignee: agent, instruction: long-line}' \
	'  - {id: b, needs: [{op: a, on: always}], run: "true"}'
RUN=$("$FLOWSUP" start "$T/flow.yaml")
said() { tail -c 2000 "$(run_dir)/ops/a.1.out" 2>/dev/null | grep -q '"type":"result"'; }
check "the agent says everything" wait_until said
pid=$(worker_pid "$RUN")
: >"$AGENT/go"
peak=0
while ! ended; do
	now=$(awk '/^VmHWM/ {print $2}' "/proc/$pid/status" 2>/dev/null)
	[ -z "$now" ] || peak=$now
done
equal "the run is completed" completed "$(run_status "$RUN")"
matches "with the answer" '"response":"turns: long-line\|"' "$(entry a)"
check "the line was there" [ "$(stat -c %s "$(run_dir)/ops/a.1.out")" -gt 100000000 ]
if [ "$peak" -eq 0 ]; then
	skip "the worker left before its memory could be looked at"
else
	note "peak of the worker: $peak kB"
	check "the worker's memory stayed below $MOST_KB kB" [ "$peak" -lt "$MOST_KB" ]
fi
plan
