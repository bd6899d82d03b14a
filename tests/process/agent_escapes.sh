#!/usr/bin/env bash
# Escape codes before and behind the records.
. "$(dirname "$0")/lib_agent.sh"
flow '  - {id: a, assignee: agent, instruction: ansi}'
check "the flow ends" run_flow
equal "it is completed" completed "$(run_status "$RUN")"
check "the codes are in the output" grep -q "$(printf '\033\\[2K')" "$(run_dir)/ops/a.1.out"
matches "and not in the way" '"response":"turns: ansi\|"' "$(entry a)"
plan
