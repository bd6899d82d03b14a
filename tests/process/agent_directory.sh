#!/usr/bin/env bash
# Agents of a run that is resumed from a copy of its directory, with the run gone from its state
# directory: conversations are continued from where they were, refused where they are lost, unless told.
# shellcheck source=lib_agent.sh
. "$(dirname "$0")/lib_agent.sh"

slow() { ls "$AGENT"/slow-*; }
reaped() { [ ! -d "/proc/$1" ]; }
# copied NAME: the run crashes with nothing of it left; its directory is ./NAME then, and nowhere else.
copied() {
	kill -KILL "$(worker_pid "$RUN")"
	wait_until status_is "$RUN" crashed
	power_loss "$RUN"
	cp -a "$(run_dir)" "$T/$1"
	mv "$(run_dir)" "$T/$1.gone"
}
same() { find "$T/$1" -type f -exec sha256sum {} + | sort; }

flow '  - {id: a, assignee: agent, instruction: ok one}' \
	'  - {id: b, assignee: agent, needs: [a], inherit_context: a, instruction: slow}' \
	'  - {id: c, assignee: agent, needs: [b], inherit_context: b, instruction: ok three}'
RUN=$("$FLOWSUP" start "$T/flow.yaml")
wait_until slow
copied first
before=$(same first)
mv "$AGENT" "$AGENT.away"
out=$("$FLOWSUP" resume ./first --allow-degraded-context --dry-run 2>&1)
equal "told to go on without a conversation whose home is gone: accepted" 0 $?
matches "with what is lost" "b +will run +runs in a new conversation: the conversation of a cannot be continued: it is bound to '$AGENT'" "$out"
out=$("$FLOWSUP" resume ./first 2>&1)
equal "not told: refused" 4 $?
matches "with its reason, and the command" "operation b: the conversation of a cannot be continued: it is bound to '$AGENT', which is not there; lifted by: flowsup resume ./first --allow-degraded-context" "$out"
mv "$AGENT.away" "$AGENT"
: >"$AGENT/go"
RUN=$("$FLOWSUP" resume ./first)
check "the resumed run ends" wait_until ended
equal "it is completed" completed "$(run_status "$RUN")"
equal "what was done is not done again" "" "$(event NodeStarted a)"
matches "in the conversation that was recorded, with a note" '"response":"turns: ok one\|slow\|\[INTERRUPTED\]\|"' "$(entry b)"
matches "and on in it" '"response":"turns: ok one\|slow\|\[INTERRUPTED\]\|ok three\|"' "$(entry c)"
equal "the directory is as it was" "$before" "$(same first)"

# ---- Told to go on without ----
rm -f "$AGENT/go" "$AGENT"/slow-*
RUN=$("$FLOWSUP" start "$T/flow.yaml")
wait_until slow
copied second
mv "$AGENT" "$AGENT.away"
: >"$AGENT.away/go"
export CLAUDE_CONFIG_DIR=$AGENT.away
# The agent is found by the recorded environment.
sed -i -z "s|^CLAUDE_CONFIG_DIR=.*|CLAUDE_CONFIG_DIR=$AGENT.away|" second/environ
RUN=$("$FLOWSUP" resume ./second --allow-degraded-context 2>"$T/said")
check "the run that was told ends" wait_until ended
equal "it is completed" completed "$(run_status "$RUN")"
matches "what is lost is said before" "operation b: runs in a new conversation: the conversation of a cannot be continued.*by --allow-degraded-context" "$(cat "$T/said")"
matches "its instruction holds the last answer" 'was: turns: ok one\| ' \
	"$(cat "$(run_dir)"/ops/b.*/instruction | tr '\n' ' ')"
AGENT=$AGENT.away

# ---- One that gives its final record when nobody is left who could say how it ended ----
rm -f "$AGENT/go" "$AGENT"/slow-*
flow '  - {id: a, assignee: agent, instruction: slow}' \
	'  - {id: b, assignee: agent, needs: [a], inherit_context: a, instruction: ok two}'
RUN=$("$FLOWSUP" start "$T/flow.yaml")
wait_until slow
wait_until worker_is_ready "$RUN"
line=$(grep '"kind":"start","op":"a"' "$(run_dir)/attempts.log")
# shellcheck disable=SC2046
kill -KILL $(supervisors) "$(worker_pid "$RUN")" "$(json "$line" reaper)"
: >"$AGENT/go"
wait_until reaped "$(json "$line" pid)"
cp -a "$(run_dir)" third
mv "$(run_dir)" third.gone
RUN=$("$FLOWSUP" resume ./third)
check "it is taken over" wait_until ended
equal "and the run completes" completed "$(run_status "$RUN")"
matches "with its answer" '"status":"completed","response":"turns: slow\|"' "$(entry a)"
matches "and its conversation" '"response":"turns: slow\|ok two\|"' "$(entry b)"

# ---- Conversations in files of the run's own ----
stored_provider
export T
cat >stored.yaml <<'END'
name: stored
roles: {stored: {provider: stored}}
plan:
  - {id: a, assignee: stored, instruction: "one "}
  - {id: w, needs: [a], run: 'until [ -e "$T/on" ]; do sleep 0.05; done'}
  - {id: b, assignee: stored, needs: [a, w], inherit_context: a, instruction: "two "}
END
RUN=$("$FLOWSUP" start "$T/stored.yaml")
waits() { [ -n "$(event NodeStarted w)" ]; }
wait_until waits
was=$(run_dir)
copied fourth
note_of() { echo "$1"/ops/a*/notes.txt; }
: >"$T/on"
cp -a fourth fifth
as_of_elsewhere fifth
RUN=$("$FLOWSUP" resume ./fourth)
check "a directory that was moved is resumed" wait_until ended
matches "its files are where it is now" '"response":"one two "' "$(entry b)"
mv fourth.gone "$was"
printf 'another ' >"$(note_of "$was")"
RUN=$("$FLOWSUP" resume ./fifth)
check "and a copy from elsewhere" wait_until ended
matches "goes on in its own" '"response":"one two "' "$(entry b)"

# ---- Of an attempt that was interrupted, too ----
on='["sh","-c","cat >>\"$1\"; until [ -e \"$T/through\" ]; do sleep 0.05; done; cat \"$1\"","sh","{store}"]'
printf '{"provider":1,"name":"waits","verified":null,"reads_user_settings":false,"prompt":"stdin","start":{"new":%s,"resume":%s},"conversation":{"id":"none","store":"notes.txt"},"output":{"format":"text"},"exit_0_reliable":false}\n' \
	"$on" "$on" >"$T/config/flowsup/providers/waits.json"
cat >waits.yaml <<'END'
name: waits
roles: {waits: {provider: waits}}
plan:
  - {id: a, assignee: waits, instruction: "one "}
END
RUN=$("$FLOWSUP" start "$T/waits.yaml")
was=$(run_dir)
has_noted() { grep -qs one "$(note_of "$was")"; }
wait_until has_noted
copied sixth
mv sixth.gone "$was"
printf 'another ' >"$(note_of "$was")"
: >"$T/through"
RUN=$("$FLOWSUP" resume ./sixth)
check "a copy with an attempt that was interrupted is resumed" wait_until ended
matches "and goes on in its own" '"response":"one \[INTERRUPTED\]' "$(entry a)"
equal "the run beside it keeps what it has" "another " "$(cat "$(note_of "$was")")"

# ---- Two resumes of one copy are as two of one run ----
rm "$T/through"
cp -a sixth seventh
as_of_elsewhere seventh 7
for n in 1 2 3 4 5; do
	"$FLOWSUP" resume ./seventh --wait >"$T/out.$n" 2>"$T/err.$n" &
done
refused() { [ "$(grep -l 'was already resumed, as run' "$T"/err.? | wc -l)" -eq 4 ]; }
check "one goes on, and the others do not wait for its end" wait_until refused
RUN=$(cat "$T"/out.?)
equal "they name the run that it became" 4 "$(grep -l "already resumed, as run $RUN" "$T"/err.? | wc -l)"
: >"$T/through"
check "it ends" wait_until ended
wait
"$FLOWSUP" resume ./seventh >"$T/out" 2>"$T/err"
equal "and later nothing else is to be had" "4 hint: flowsup show $RUN" "$? $(grep '^hint' "$T/err")"
plan
