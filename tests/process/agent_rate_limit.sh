#!/usr/bin/env bash
# A rate limit once, then success: tried again by its class, in a conversation of its own.
. "$(dirname "$0")/lib_agent.sh"
flow '  - {id: a, assignee: agent, instruction: rate-limit-once,' \
	'     retry: {attempts: 3, backoff: 10ms, on: [rate_limited]}}'
check "the flow ends" run_flow
equal "it is completed" completed "$(run_status "$RUN")"
matches "by the second attempt" '"attempts":2' "$(entry a)"
matches "the first was of class rate_limited" '"class":"rate_limited"' "$(event NodeRetrying a)"
matches "and its turn is not in the conversation" '"response":"turns: rate-limit-once\|"' "$(entry a)"
first=$(json "$(cat "$(run_dir)/ops/a.1/agent.json")" id)
second=$(json "$(cat "$(run_dir)/ops/a.2/agent.json")" id)
check "each attempt has an id of its own" [ -n "$first" -a -n "$second" -a "$first" != "$second" ]
plan
