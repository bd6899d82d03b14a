#!/usr/bin/env bash
# The process that is known ignores signals; the one that works is its child. The group is ended.
. "$(dirname "$0")/lib_agent.sh"
flow '  - {id: a, assignee: agent, instruction: deaf, timeout: 5s}'
check "the flow ends" run_flow
equal "it has failed" failed "$(run_status "$RUN")"
matches "by its time limit" '"class":"timeout"' "$(entry a)"
check "the child did work" [ -s "$AGENT/deaf-child" ]
check "and is gone" gone "$(cat "$AGENT/deaf-child")"

# A stop reaches it as well.
flow '  - {id: a, assignee: agent, instruction: deaf}'
rm -f "$AGENT/deaf-child"
RUN=$("$FLOWSUP" start "$T/flow.yaml")
wait_until [ -s "$AGENT/deaf-child" ]
"$FLOWSUP" stop "$RUN" --now >/dev/null 2>&1
check "it ends" wait_until ended
equal "it is cancelled" cancelled "$(run_status "$RUN")"
check "the child is gone then too" gone "$(cat "$AGENT/deaf-child")"
plan
