#!/usr/bin/env bash
# Exit status 0 proves nothing: an error record, a record that is missing, and what is said besides.
. "$(dirname "$0")/lib_agent.sh"
flow '  - {id: zero, assignee: agent, instruction: error-exit-0}' \
	'  - {id: half, assignee: agent, instruction: half}' \
	'  - {id: fail, assignee: agent, instruction: fail}' \
	'  - {id: spin, assignee: agent, instruction: spin, limits: {cpu: 1s}}' \
	'  - {id: after, needs: [zero], run: "true"}' \
	'  - {id: mend, needs: [{op: zero, on: failure}], run: "echo mended"}'
check "the flow ends" run_flow
equal "it has failed" failed "$(run_status "$RUN")"
matches "an error record behind exit status 0 is a failure" \
	'"status":"failed".*"error":\{"class":"agent_error","message":"API Error: 500 it broke","code":0\}' "$(entry zero)"
matches "and so is a final record that never came" \
	'"error":\{"class":"agent_error","message":"it ended without its final record","code":0\}' "$(entry half)"
matches "an exit status keeps its class, with what standard error said last" \
	'"error":\{"class":"exit","message":"exit status 3: something broke","code":3\}' "$(entry fail)"
matches "a limit of processor time is the cause, and told" \
	'"class":"signal","message":"used 1 s of processor time, as much as its limit allows \(limits.cpu\); ended by SIGXCPU' "$(entry spin)"
matches "what needs it is skipped" '"cause":"zero"' "$(event NodeSkipped after)"
matches "what is for its failure runs" '"response":"mended' "$(entry mend)"
matches "a conversation without an acknowledged turn is tentative" '"tentative":true' "$(entry half)"
plan
