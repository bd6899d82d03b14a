#!/usr/bin/env bash
# Conversations: continued by one, forked for several, never used by two at once.
. "$(dirname "$0")/lib_agent.sh"

# ---- One goes on ----
flow '  - {id: a, assignee: agent, instruction: ok one}' \
	'  - {id: b, assignee: agent, needs: [a], inherit_context: a, instruction: ok two}' \
	'  - {id: c, assignee: agent, needs: [b], inherit_context: b, instruction: ok three}'
check "the flow ends" run_flow
matches "each goes on where the one before it was" '"response":"turns: ok one\|ok two\|ok three\|"' "$(entry c)"
id() { entry "$1" | sed -nE 's/.*"conversation":\{[^}]*"id":"([^"]*)".*/\1/p'; }
equal "in the same conversation" "$(id a)" "$(id c)"
equal "no lock is left behind" 0 "$(find "$FLOWSUP_HOME/conversations" -type f | wc -l)"

# ---- Several go on ----
flow '  - {id: a, assignee: agent, instruction: ok one}' \
	'  - {id: b, assignee: agent, needs: [a], inherit_context: a, instruction: ok left}' \
	'  - {id: c, assignee: agent, needs: [a], inherit_context: a, instruction: ok right}'
check "the second flow ends" run_flow
matches "one has its own turn" '"response":"turns: ok one\|ok left\|"' "$(entry b)"
matches "the other has its own" '"response":"turns: ok one\|ok right\|"' "$(entry c)"
equal "three conversations" 3 "$(printf '%s\n' "$(id a)" "$(id b)" "$(id c)" | sort -u | wc -l)"

# ---- Two users ----
# Every conversation has the same id here, so that two runs meet in it.
own_provider -e 's/"id": "minted"/"id": "command", "mint": ["claude", "create-chat"]/'
flow '  - {id: a, assignee: agent, instruction: shared}' \
	'  - {id: b, assignee: agent, needs: [a], inherit_context: a, instruction: slow}'
"$FLOWSUP" start "$T/flow.yaml" >"$T/first"
wait_until [ -e "$AGENT/slow-shared-id" ]
RUN=$("$FLOWSUP" start "$T/flow.yaml")
waits() { event NodeWaiting b; }
check "the second user waits" wait_until waits
# The first user outlives its worker: it still has the conversation.
pid=$(worker_pid "$(cat "$T/first")")
kill -KILL "$pid"
wait_until gone "$pid"
check "it still waits when the first one's worker has died" [ ! -e "$(run_dir)/ops/b.1.out" ]
: >"$AGENT/go"
check "it goes on when the first one has ended" wait_until ended
equal "it is completed" completed "$(run_status "$RUN")"
check "never were there two at once" [ ! -e "$AGENT/collisions" ]
plan
