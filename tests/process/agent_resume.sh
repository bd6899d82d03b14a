#!/usr/bin/env bash
# Resume with conversations: continued from where they were; refused where they are lost, unless told.
. "$(dirname "$0")/lib_agent.sh"
flow '  - {id: a, assignee: agent, instruction: ok one}' \
	'  - {id: b, assignee: agent, needs: [a], inherit_context: a, instruction: slow}'
RUN=$("$FLOWSUP" start "$T/flow.yaml")
slow() { ls "$AGENT"/slow-*; }
wait_until slow
kill -KILL "$(worker_pid "$RUN")"
check "the run has crashed" wait_until status_is "$RUN" crashed
power_loss "$RUN"
: >"$AGENT/go"
mv "$AGENT" "$AGENT.away"
out=$("$FLOWSUP" resume "$RUN" --dry-run 2>&1)
equal "a conversation whose home is gone: refused" 4 $?
matches "with its reason" "the conversation of a cannot be continued: it is bound to '$AGENT', which is not there" "$out"
matches "and the flag" 'allow-degraded-context' "$out"
mv "$AGENT.away" "$AGENT"
first=$RUN
RUN=$("$FLOWSUP" resume "$RUN")
check "the resumed run ends" wait_until ended
equal "it is completed" completed "$(run_status "$RUN")"
matches "in the conversation that was recorded" '"response":"turns: ok one\|slow\|\[INTERRUPTED\]\|"' "$(entry b)"

# ---- Told to go on without ----
rm -f "$AGENT/go" "$AGENT"/slow-*
RUN=$("$FLOWSUP" start "$T/flow.yaml")
wait_until slow
kill -KILL "$(worker_pid "$RUN")"
wait_until status_is "$RUN" crashed
power_loss "$RUN"
: >"$AGENT/go"
old=$RUN
mv "$AGENT" "$AGENT.away"
export CLAUDE_CONFIG_DIR=$AGENT.away
RUN=$("$FLOWSUP" resume "$RUN" --allow-degraded-context)
check "the run that was told ends" wait_until ended
equal "it is completed" completed "$(run_status "$RUN")"
matches "its instruction holds the last answer" 'was: turns: ok one\| ' \
	"$(tr '\n' ' ' <"$(run_dir)/ops/b.$(ls "$(run_dir)/ops" | sed -nE 's/^b\.([0-9]+)$/\1/p' | tail -1)/instruction")"
check "and the first run is another" [ "$first" != "$old" ]
plan
