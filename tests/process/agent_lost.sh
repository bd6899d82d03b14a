#!/usr/bin/env bash
# An id was printed, and the conversation cannot be gone on with.
. "$(dirname "$0")/lib_agent.sh"
flow '  - {id: a, assignee: agent, instruction: lost}' \
	'  - {id: b, assignee: agent, needs: [a], inherit_context: a, instruction: ok more,' \
	'     retry: {attempts: 3, backoff: 10ms, on: [rate_limited]}}' \
	'  - {id: c, assignee: agent, instruction: half}' \
	'  - {id: d, assignee: agent, needs: [{op: c, on: always}], inherit_context: c, instruction: ok}'
check "the flow ends" run_flow
equal "it has failed" failed "$(run_status "$RUN")"
matches "the failure says so" \
	'"error":\{"class":"session_lost","message":"No conversation found' "$(entry b)"
matches "what is not for this class is not tried again" '"attempts":1' "$(entry b)"
matches "a conversation of which no turn was acknowledged is not even tried" \
	'"class":"session_lost","message":"ops/d: the conversation of c cannot be continued: no turn' "$(entry d)"
plan
