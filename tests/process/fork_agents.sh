#!/usr/bin/env bash
# fork of runs with agents: what goes on in a conversation of the earlier run has a copy of it, so that
# the earlier one can still go on in its own; the two are never at work in one at once.
. "$(dirname "$0")/lib_agent.sh"

id_in() { # RUN OP: of its conversation
	"$FLOWSUP" checkpoint export "$1" --json | python3 -c '
import json, sys
print(json.load(sys.stdin)["ops"][sys.argv[1]]["conversation"]["id"])' "$2"
}
said() { paste -sd'|' "$AGENT/conversations/$(id_in "$1" "$2")"; }
slow() { ls "$AGENT"/slow-*; }
# crash RUN: with its agents, which leave their conversations as if they were in use.
crash() {
	kill -KILL "$(worker_pid "$1")"
	wait_until status_is "$1" crashed
	power_loss "$1"
	rm -f "$AGENT"/conversations/*.busy "$AGENT"/slow-*
}
is_at_end() { [[ $(run_status "$1") =~ ^(completed|failed|crashed|cancelled)$ ]]; }

# ---- The last operation anew ----
flow '  - {id: a, assignee: agent, instruction: ok one}' \
	'  - {id: b, assignee: agent, needs: [a], inherit_context: a, instruction: ok two}' \
	'  - {id: c, assignee: agent, needs: [b], inherit_context: b, instruction: ok three}'
run_flow
first=$RUN
before=$(said "$first" c)
out=$("$FLOWSUP" fork "$first" --from c --dry-run)
matches "a dry run tells that the copy has more than there was before" \
	"c +will run +runs again: .*the conversation of b has gone on since, and the copy has that too" "$out"
new=$("$FLOWSUP" fork "$first" --from c --wait 2>"$T/err")
equal "a fork from one that goes on in a conversation completes" 0 $?
matches "the same is said" "operation c: .*the conversation of b has gone on since" "$(cat "$T/err")"
equal "its turn is behind those that there were" "one|two|three|three" "$(said "$new" c | sed 's/ok //g')"
check "in a conversation of its own" [ "$(id_in "$new" c)" != "$(id_in "$first" c)" ]
equal "the earlier run's has no further turn" "$before" "$(said "$first" c)"
again=$("$FLOWSUP" fork "$new" --from c --wait 2>"$T/err")
check "a fork of the fork has its own, too" [ "$(printf '%s\n' "$(id_in "$first" c)" "$(id_in "$new" c)" "$(id_in "$again" c)" | sort -u | wc -l)" = 3 ]
equal "and goes on in the first run's, whose outcome it reuses" "one|two|three|three" "$(said "$again" c | sed 's/ok //g')"
equal "no two were ever in one" "" "$(cat "$AGENT/collisions" 2>/dev/null)"
whole=$("$FLOWSUP" fork "$first" --from a --wait 2>"$T/err")
equal "from the beginning nothing is copied" "one|two|three" "$(said "$whole" c | sed 's/ok //g')"

# ---- The fork resumed ----
flow '  - {id: a, assignee: agent, instruction: ok one}' \
	'  - {id: b, assignee: agent, needs: [a], inherit_context: a, instruction: slow two}'
: >"$AGENT/go"
run_flow
first=$RUN
before=$(said "$first" b)
rm "$AGENT/go" "$AGENT"/slow-*
new=$("$FLOWSUP" fork "$first" --from b 2>"$T/err")
wait_until slow
crash "$new"
: >"$AGENT/go"
RUN=$("$FLOWSUP" resume "$new" --wait 2>"$T/err")
equal "a fork that crashed can be resumed" "0 completed" "$? $(run_status "$RUN")"
matches "in its own copy" '^ok one\|slow two\|slow two\|\[INTERRUPTED\]' "$(said "$RUN" b)"
equal "and the earlier run's is as it was" "$before" "$(said "$first" b)"

# ---- A crashed run forked, and resumed itself ----
flow '  - {id: a, assignee: agent, instruction: ok one}' \
	'  - {id: b, assignee: agent, needs: [a], inherit_context: a, instruction: slow two}' \
	'  - {id: d, assignee: agent, instruction: slow side}' \
	'  - {id: e, assignee: agent, needs: [a], instruction: ok other}'
rm -f "$AGENT/go" "$AGENT"/slow-*
first=$("$FLOWSUP" start "$T/flow.yaml")
both_slow() { [ "$(slow | wc -l)" = 2 ] && grep -qE '"agent_id":"e"' "$FLOWSUP_HOME/runs/$first"/checkpoint.json*; }
wait_until both_slow
crash "$first"
: >"$AGENT/go"
new=$("$FLOWSUP" fork "$first" --from e --wait 2>"$T/err")
equal "a fork of a crashed run completes" "0 completed" "$? $(run_status "$new")"
matches "what was interrupted goes on in a copy" '^slow side\|\[INTERRUPTED\]' "$(said "$new" d)"
new2=$("$FLOWSUP" fork "$first" --from a --wait 2>"$T/err")
equal "what was interrupted behind one that runs again begins anew, with that one's new turns" \
	"ok one|slow two" "$(said "$new2" b)"
RUN=$("$FLOWSUP" resume "$first" --wait 2>"$T/err")
equal "and the run itself can be resumed after that" "0 completed" "$? $(run_status "$RUN")"
matches "in its own conversation, without the fork's turns" '^slow side\|\[INTERRUPTED\]\|$' "$(said "$RUN" d | sed 's/$/|/')"
check "which is another" [ "$(id_in "$RUN" d)" != "$(id_in "$new" d)" ]
check "also for what goes on in that of a" [ "$(id_in "$RUN" b)" != "$(id_in "$new" b)" ]
equal "no two were ever in one" "" "$(cat "$AGENT/collisions" 2>/dev/null)"

# ---- Both at once ----
flow '  - {id: a, assignee: agent, instruction: ok one}' \
	'  - {id: held, needs: [a], run: "until [ -e open ]; do sleep 0.05; done"}' \
	'  - {id: b, assignee: agent, needs: [a, held], inherit_context: a, instruction: slow two}'
rm -f "$AGENT/go" "$AGENT"/slow-*
first=$("$FLOWSUP" start "$T/flow.yaml")
is_held() { grep -q '"kind":"start","op":"held"' "$FLOWSUP_HOME/runs/$first/attempts.log"; }
wait_until is_held
crash "$first"
: >"$T/open"
resumed=$("$FLOWSUP" resume "$first" 2>"$T/err")
wait_until slow
RUN=$("$FLOWSUP" fork "$first" --from b 2>"$T/err")
waits() { event NodeWaiting b; }
check "a copy waits while the earlier run is at work in the conversation" wait_until waits
: >"$AGENT/go"
wait_until ended && wait_until is_at_end "$resumed"
equal "both complete" "completed completed" "$(run_status "$RUN") $(run_status "$resumed")"
equal "never at once" "" "$(cat "$AGENT/collisions" 2>/dev/null)"
check "in two conversations" [ "$(id_in "$RUN" b)" != "$(id_in "$resumed" b)" ]

# ---- A program that cannot copy ----
own_provider -e ""
python3 - "$T/config/flowsup/providers/claude.json" <<-'END'
	import json, sys
	p = json.load(open(sys.argv[1]))
	del p["start"]["fork"]
	json.dump(p, open(sys.argv[1], "w"))
END
flow '  - {id: a, assignee: agent, instruction: ok one}' \
	'  - {id: b, assignee: agent, needs: [a], inherit_context: a, instruction: ok two}'
run_flow
first=$RUN
before=$(said "$first" b)
out=$("$FLOWSUP" fork "$first" --from b 2>&1)
equal "without a way to copy it is refused" 4 $?
matches "with operation, reason and command" "operation b: the conversation of a cannot be continued: it is that of the earlier run, and its program cannot copy one; lifted by: flowsup fork $first --from b --allow-degraded-context" "$out"
new=$("$FLOWSUP" fork "$first" --from b --allow-degraded-context --wait 2>"$T/err")
equal "with leave it begins a new one" "0 completed" "$? $(run_status "$new")"
equal "and the earlier run's is as it was" "$before" "$(said "$first" b)"
equal "a resume needs no copy" 0 "$("$FLOWSUP" resume "$first" >/dev/null 2>&1; echo $?)"
plan
