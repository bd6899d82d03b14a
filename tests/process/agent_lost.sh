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
	'"class":"session_lost","message":"the conversation of c cannot be continued: no turn' "$(entry d)"
matches "what was never started has no exit status" '"id":"d","state":"failed","saved":true,"attempt":1,"exit":null,"signal":null' \
	"$("$FLOWSUP" show "$RUN" --json)"

# ---- It is not tried again in vain ----
first=$RUN
all="resume $first --retry-failed --allow-degraded-context"
matches "show suggests what it needs" "next +flowsup $all\$" "$("$FLOWSUP" show "$first" | grep '^next')"
"$FLOWSUP" resume "$first" 2>"$T/said"
equal "and so does the refusal" "4 hint: flowsup $all" "$? $(grep ^hint "$T/said")"
matches "of each operation" "operation b: it failed: .*lifted by: flowsup $all; or lifted by: [^;]* --keep-failed\$" "$(grep 'operation b: it failed' "$T/said")"
out=$("$FLOWSUP" resume "$first" --retry-failed 2>&1)
equal "a resume that would try the same again is refused" 4 $?
matches "with operation, reason, and the option that lifts it" "operation b: the conversation of a cannot be continued: the last attempt to go on in it found it lost; lifted by: flowsup resume $first --retry-failed --allow-degraded-context" "$out"
out=$("$FLOWSUP" resume "$first" --keep-failed --dry-run 2>&1)
equal "a failure that is kept needs none" 0 $?
RUN=$("$FLOWSUP" resume "$first" --retry-failed --allow-degraded-context 2>"$T/said")
check "with it the resumed run ends" wait_until ended
matches "the operation well" '"status":"completed"' "$(entry b)"
matches "what is lost is said" "operation b: runs in a new conversation: .*found it lost" "$(cat "$T/said")"
matches "the result context is kept" 'was: turns: lost\|' "$(tr '\n' ' ' <"$(run_dir)/ops/b.1/instruction")"

matches "so does one whose predecessor was tried again and made none" '"status":"completed"' "$(entry d)"

# ---- A predecessor that was skipped made none ----
flow '  - {id: a, run: "true"}' \
	'  - {id: s, assignee: agent, needs: [{op: a, on: failure}], instruction: ok}' \
	'  - {id: b, assignee: agent, needs: [{op: s, on: always}], inherit_context: s, instruction: ok}'
run_flow
matches "there is nothing to go on in" '"class":"session_lost"' "$(entry b)"
all="resume $RUN --retry-failed --allow-degraded-context"
out=$("$FLOWSUP" resume "$RUN" --retry-failed 2>&1)
equal "it is not tried again in vain" 4 $?
matches "with the reason" "operation b: the conversation of s cannot be continued: it is skipped; lifted by: flowsup $all" "$out"
matches "show suggests the option" "next +flowsup $all\$" "$("$FLOWSUP" show "$RUN" | grep '^next')"
RUN=$("$FLOWSUP" resume "$RUN" --retry-failed --allow-degraded-context 2>"$T/said")
wait_until ended
equal "with it the run ends well" completed "$(run_status "$RUN")"
matches "which is said before" "operation b: runs in a new conversation: .*it is skipped" "$(cat "$T/said")"

# ---- A turn for messages ----
printf '%s\n' 'roles: {agent: {provider: claude}}' \
	'plan: [{id: a, assignee: agent, instruction: "slow one"}]' >"$T/flow.yaml"
in_turn() { ls "$AGENT"/slow-*; }
# The conversation goes while the turn runs.
sed -i 's/^slow)$/slow) rm -f "$file"/' "$BIN/claude"
RUN=$("$FLOWSUP" start "$T/flow.yaml")
wait_until in_turn
"$FLOWSUP" msg "$RUN" 'do more' 2>/dev/null
: >"$AGENT/go"
wait_until ended
matches "a further turn finds it lost" '"status":"failed","response":"turns: slow one.*"session_lost"' "$(entry a)"
second=$RUN
out=$("$FLOWSUP" resume "$second" --retry-failed 2>&1)
equal "the turn is not tried again in vain" 4 $?
matches "which is said" "operation a: its conversation cannot be continued: .*found it lost; lifted by: flowsup resume $second --retry-failed --allow-degraded-context" "$out"
RUN=$("$FLOWSUP" resume "$second" --retry-failed --allow-degraded-context 2>"$T/said")
check "with the option the run ends" wait_until ended
equal "well" completed "$(run_status "$RUN")"
matches "which is said before" "operation a: completed; turn 2, for messages, runs in a new conversation: .*found it lost" "$(cat "$T/said")"
matches "with the last answer and the message" 'was: turns: slow one\| .*: do more' "$(cat "$(run_dir)"/ops/a.*/instruction | tr '\n' ' ')"
matches "the new conversation takes the place of the old one" '"conversation":\{"provider":"claude",[^}]*"id":"[^"]*"' "$(entry a)"
equal "which is not lost" 0 "$(entry a | grep -c '"lost"')"

# ---- The provider's file is damaged ----
flow '  - {id: a, assignee: agent, instruction: lost}' \
	'  - {id: b, assignee: agent, needs: [a], inherit_context: a, instruction: ok more}'
run_flow
own_provider 's/^{/{ [/'
"$FLOWSUP" resume "$RUN" --retry-failed --allow-degraded-context 2>"$T/said"
equal "what nothing but its mending helps is refused" 4 $?
matches "with what says how" "^hint: flowsup doctor " "$(grep ^hint "$T/said")"
plan
