#!/usr/bin/env bash
# The final record has come and the process never leaves: the result is kept, the process ended.
. "$(dirname "$0")/lib_agent.sh"
own_provider -e 's/"exit_0_reliable"/"drain": "300ms", &/'
flow '  - {id: a, assignee: agent, instruction: hang, timeout: 1h}' \
	'  - {id: b, assignee: agent, needs: [a], inherit_context: a, instruction: ok more}'
check "the flow ends" run_flow
equal "it is completed" completed "$(run_status "$RUN")"
matches "the result counts" '"status":"completed","response":"turns: hang\|"' "$(entry a)"
matches "the event says that it hung" '"hung_after_result":true' "$(event NodeCompleted a)"
check "the process is gone" gone "$(cat "$AGENT/hanging")"
matches "its conversation goes on" '"response":"turns: hang\|ok more\|"' "$(entry b)"
plan
