#!/usr/bin/env bash
# A grandchild in a session of its own keeps standard output open: the end of the process decides.
. "$(dirname "$0")/lib_agent.sh"
flow '  - {id: a, assignee: agent, instruction: holder}'
check "the flow ends" run_flow
equal "it is completed" completed "$(run_status "$RUN")"
matches "with its answer" '"response":"turns: holder\|"' "$(entry a)"
check "who held the output is gone" gone "$(cat "$AGENT/holder")"
matches "and was counted" '"leftovers":[1-9]' "$(event NodeCompleted a)"
plan
