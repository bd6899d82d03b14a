#!/usr/bin/env bash
# A planner: its answer becomes the plan, a wrong one is fed back, and a resume never plans again.
. "$(dirname "$0")/lib_agent.sh"

planner() { # further lines of the document...
	printf '%s\n' 'name: planned' 'prompt: tidy up' 'roles:' '  agent: {provider: claude}' \
		'  other: {provider: claude}' \
		'planner: {assignee: agent, instruction: "plan {{prompt}}"}' "$@" >"$T/flow.yaml"
}
answers() { # what the planner says, one text after the other
	local n=0 text
	rm -f "$AGENT"/plan-[0-9]* "$AGENT"/planned-*
	for text; do n=$((n + 1)); printf '%s' "$text" >"$AGENT/plan-$n"; done
}
asked() { find "$AGENT" -name "planned-*" | wc -l; }
exported() { "$FLOWSUP" checkpoint export "$RUN" --json; }
ids() { grep -oE '"agent_id":"[^"]*","node_id"' <<<"$1" | cut -d'"' -f4 | tr '\n' ' '; }
TWO='[{"id":"a","assignee":"agent","instruction":"ok A"},{"id":"b","assignee":"other","needs":["a"],"instruction":"ok B {{ops.a.response}}"}]'

# ---- Before it has answered ----
cat >"$T/unplanned.yaml" <<'Y'
roles: {r: {provider: sh}}
planner: {assignee: r, instruction: 'echo "[]"'}
synthesis: {assignee: r, instruction: 'echo all'}
Y
for command in check graph "start -n"; do
	# shellcheck disable=SC2086 # words are meant
	equal "$command says that the rest is planned, and what comes last" \
		"What the planner answers is done behind it; the synthesis comes last, and not at all when the planner fails." \
		"$("$FLOWSUP" $command "$T/unplanned.yaml" | grep planner\ answers)"
done
equal "of a flow with a plan nothing is said" "" "$(echo 'plan: [{id: a, run: x}]' | "$FLOWSUP" graph - | grep answers)"

# ---- A wrong answer is fed back ----
planner
answers 'I would do this first' '[{"id":"a","assignee":"nobody","instruction":"x"},{"id":"b","run":"x"}]' "$TWO"
check "it ends" run_flow
equal "the third answer is taken" completed "$(run_status "$RUN")"
equal "it was asked three times" 3 "$(asked)"
matches "it is told what a plan is" 'one JSON array.*"assignee": who does it, one of: agent, other' \
	"$(tr '\n' ' ' <"$AGENT/planned-1")"
matches "the prompt stands in its instruction" '^plan tidy up' "$(cat "$AGENT/planned-1")"
matches "the first refusal names the reason" 'I would do this first.*What is wrong with it: response: the answer is no JSON: line 1, column 1: syntax error: expected a value' \
	"$(tr '\n' ' ' <"$AGENT/planned-2")"
matches "the second all reasons" 'there is no role "nobody".*"run" is not allowed here \(use "instruction"' \
	"$(tr '\n' ' ' <"$AGENT/planned-3")"
matches "what it made ran in order" '"response":"turns: ok B turns: ok A\|\|"' "$(entry b)"
check "it is told which ids are taken" grep -q "'-'; not \"planner\"$" "$AGENT/planned-1"
equal "the checkpoint holds the plan" "planner a b " "$(ids "$(exported)")"
equal "two refusals are events" 2 "$(grep -c '"event":"PlanRejected"' "$(run_dir)/events.jsonl")"
matches "and the acceptance" '"operations":2}' "$(grep '"event":"PlanAccepted"' "$(run_dir)/events.jsonl")"
matches "nothing is started before the plan is saved" '^PlanAccepted NodeStarted ' \
	"$(grep -oE '"event":"(PlanAccepted|NodeStarted)"' "$(run_dir)/events.jsonl" | cut -d'"' -f4 | tail -3 | tr '\n' ' ')"
matches "show lists all of them" 'planner +completed.*a +completed.*b +completed' "$("$FLOWSUP" show "$RUN" | tr '\n' ' ')"
equal "the database knows how many" "3/3" "$("$FLOWSUP" list -n 1 | tail -1 | awk '{print $4}')"

answers no no no "$TWO"
run_flow
equal "after two refusals it has failed" failed "$(run_status "$RUN")"
equal "it was not asked again" 3 "$(asked)"
equal "nothing else has started" 3 "$(grep -c '"event":"NodeStarted"' "$(run_dir)/events.jsonl")"
RUN=$("$FLOWSUP" resume "$RUN" --retry-failed 2>/dev/null)
wait_until ended
equal "it can be tried again" completed "$(run_status "$RUN")"

# ---- What a model may not ask for, and how much ----
cat >"$T/notified.sh" <<'S'
cat >"$T/payload.new" && mv "$T/payload.new" "$T/payload"
S
export T
planner 'model_commands: true' 'max_ops: 2' "notify: {command: [sh, '$T/notified.sh'], on: all}"
answers '[{"id":"a","run":"echo A"},{"id":"b","exec":["echo","B"]},{"id":"c","run":"echo C"}]'
run_flow
equal "with model_commands it may give commands" completed "$(run_status "$RUN")"
equal "the plan is cut to max_ops" "planner a b " "$(ids "$(exported)")"
matches "and that is said" '"operations":2,"left_out":1,"message":"its last 1 operation is left out: there may be at most 2' "$(grep '"event":"PlanAccepted"' "$(run_dir)/events.jsonl")"

matches "by show, too" 'plan +its last 1 operation is left out: there may be at most 2' "$("$FLOWSUP" show "$RUN")"
matches "and by its JSON" '"plan_cut":\{"left_out":1,"allowed":2\}' "$("$FLOWSUP" show "$RUN" --json)"
wait_until [ -e "$T/payload" ]
matches "and by the notification" '"plan_cut":\{"left_out":1,"allowed":2\}' "$(cat "$T/payload")"
NEW=$("$FLOWSUP" fork "$RUN" --from b 2>/dev/null)
matches "a run that goes on with that plan says it, too" '"plan_cut":\{"left_out":1,"allowed":2\}' "$("$FLOWSUP" show "$NEW" --json)"

answers '[{"id":"a","exec":["echo","{{item}}"],"foreach":[1,2,3,4,5]},{"id":"c","run":"echo C"}]'
run_flow
equal "the items of a list are cut to max_ops, too" 'completed planner a.0 a.1  "operations":2,"left_out":4' \
	"$(run_status "$RUN") $(ids "$(exported)") $(grep '"event":"PlanAccepted"' "$(run_dir)/events.jsonl" | grep -o '"operations":2,"left_out":[0-9]*')"

# An empty list of an answer is nothing to do, which is said.
answers '[{"id":"none","exec":["echo","{{item}}"],"foreach":[]},{"id":"c","run":"echo C"},{"id":"nor","run":"x","foreach":[]},{"id":"d","run":"echo D"}]'
rm -f "$T/payload"
run_flow
empty='"plan_empty":\{"count":2,"ops":\["none","nor"\]\}'
text='the lists of "foreach" of none and nor are empty: nothing is done for them'
equal "an empty list in an answer is none" "completed planner c d " "$(run_status "$RUN") $(ids "$(exported)")"
matches "which the event says" '"operations":2,"empty":2,"message":"the lists of .*"' "$(grep '"event":"PlanAccepted"' "$(run_dir)/events.jsonl")"
matches "and show" "plan +$text" "$("$FLOWSUP" show "$RUN")"
matches "its JSON" "$empty" "$("$FLOWSUP" show "$RUN" --json)"
check "the log" grep -qF "the plan: $text" "$(run_dir)/worker.log"
wait_until [ -e "$T/payload" ]
matches "the notification" "$empty" "$(cat "$T/payload")"
NEW=$("$FLOWSUP" fork "$RUN" --from d 2>/dev/null)
matches "and a run that goes on with that plan" "$empty" "$("$FLOWSUP" show "$NEW" --json)"
answers '[{"id":"none","run":"x","foreach":[]}]'
run_flow
matches "also where that is all there is" '^completed .*the list of "foreach" of none is empty: nothing is done for it' \
	"$(run_status "$RUN") $("$FLOWSUP" show "$RUN")"

# What is left out is told to who may have needed it; and a block of code is taken for what it holds.
answers '[{"id":"a","run":"echo A","needs":["c"]},{"id":"b","run":"echo B"},{"id":"c","run":"echo C"}]' \
	$'```json\n[{"id":"a","run":"echo A"}]\n```\n'
run_flow
equal "an answer in a code fence is a plan" "completed planner a " "$(run_status "$RUN") $(ids "$(exported)")"
matches "and one that needs what was cut is told so" 'of its 3 operations only the first 2 are taken, as there may be at most 2: nothing may need or name one of the others \("c"\)' \
	"$(tr '\n' ' ' <"$AGENT/planned-2")"
answers 'see: ```json [] ```' '[{"id":"a","run":"echo {{args.x}}"}]' '[{"id":"a","exec":["echo","{{args.x}}"]}]'
run_flow
equal "one with words around it is not" "failed 0" "$(run_status "$RUN") $(grep -c 'declare it' "$(run_dir)/events.jsonl")"

# ---- A worker that dies ----
planner 'synthesis: {assignee: agent, instruction: ok sum}'
answers '[{"id":"a","assignee":"agent","instruction":"ok A"},{"id":"b","assignee":"agent","needs":["a"],"instruction":"slow B"}]'
RUN=$("$FLOWSUP" start "$T/flow.yaml")
runs_b() { compgen -G "$AGENT/slow-*"; }
wait_until runs_b
before=$(grep -oE '"agent_id":"[^"]*","node_id":"[^"]*"' <<<"$(exported)")
kill -KILL "$(run_fact "$RUN" worker_pid)"
wait_until status_is "$RUN" crashed
: >"$AGENT/go"
OLD=$RUN
"$FLOWSUP" resume "$OLD" --rerun-changed 2>"$T/err"
equal "no document defines what was planned" "4 1" "$? $(grep -c "planner's answer" "$T/err")"
RUN=$("$FLOWSUP" resume "$OLD" 2>/dev/null)
wait_until ended
equal "a resume goes on" completed "$(run_status "$RUN")"
equal "it has not planned again" 1 "$(asked)"
equal "every operation is the same" "$before" "$(grep -oE '"agent_id":"[^"]*","node_id":"[^"]*"' <<<"$(exported)")"
equal "which is none of those that were planned" '"operations":2}' \
	"$(grep '"event":"PlanAccepted"' "$FLOWSUP_HOME/runs/$OLD/events.jsonl" | grep -o '"operations":.*')"
matches "the synthesis comes last" '"agent_id":"synthesis"' "$(tail -1 "$(run_dir)/checkpoint.json.journal")"

# The same when it died between the planner's outcome and the plan: made from what was recorded.
cut_plan() { # the checkpoint of $1 with nothing but the planner and its outcome, as a version 2 file
	"$FLOWSUP" checkpoint export "$1" --json | python3 -c '
import json, sys
state = json.load(sys.stdin)
state = {"version": 2, **{k: v for k, v in state.items() if k not in ("version", "generation", "journal_seq")}}
state["plan"] = state["plan"][:1]
state["ops"] = {"planner": state["ops"]["planner"]}
print(json.dumps(state))' >"$T/cut.json"
}
answers "$TWO"
planner
run_flow
cut_plan "$RUN"
answers "$TWO" "$TWO"
touch "$AGENT/plan-waits"
RUN=$("$FLOWSUP" start "$T/flow.yaml")
planning() { [ -e "$AGENT/planned-1" ]; }
wait_until planning
kill -KILL "$(run_fact "$RUN" worker_pid)"
wait_until status_is "$RUN" crashed
rm "$AGENT/plan-waits"
OLD=$RUN
RUN=$("$FLOWSUP" resume "$OLD" 2>/dev/null)
wait_until ended
equal "an answer that came without a worker is the plan" "completed 1" "$(run_status "$RUN") $(asked)"

rm "$(run_dir)/checkpoint.json.journal"
cp "$T/cut.json" "$(run_dir)/checkpoint.json"
mkdir "$(run_dir)/artifacts" # that of the run it is from; this one has that of the run it resumes
sql "update sessions set status = 'crashed', reason_code = 'run.crashed.unknown' where run_id = '$RUN'"
OLD=$RUN
RUN=$("$FLOWSUP" resume "$OLD" 2>"$T/err") || note "$(cat "$T/err")"
wait_until ended
equal "who died with the answer makes the plan of it" "completed 1" "$(run_status "$RUN") $(asked)"
equal "and saves it" "planner a b " "$(ids "$(exported)")"

# And what was cut off its answer is told by the run that makes the plan.
planner 'model_commands: true' 'max_ops: 2'
answers '[{"id":"none","run":"x","foreach":[]},{"id":"a","run":"echo A"},{"id":"b","exec":["echo","B"]},{"id":"c","run":"echo C"}]'
run_flow
cut_plan "$RUN"
rm "$(run_dir)/checkpoint.json.journal"
cp "$T/cut.json" "$(run_dir)/checkpoint.json"
sql "update sessions set status = 'crashed', reason_code = 'run.crashed.unknown', metadata = json_remove(metadata, '\$.plan_cut', '\$.plan_empty') where run_id = '$RUN'"
RUN=$("$FLOWSUP" resume "$RUN" 2>"$T/err") || note "$(cat "$T/err")"
wait_until ended
matches "who died with an answer that was cut" '^completed "plan_cut":\{"left_out":1,"allowed":2\}$' \
	"$(run_status "$RUN") $("$FLOWSUP" show "$RUN" --json | grep -oE '"plan_cut":\{[^}]*\}' | sort -u)"
matches "or has an empty list" '"plan_empty":\{"count":1,"ops":\["none"\]\}' "$("$FLOWSUP" show "$RUN" --json)"

# The same of one that has begun with the plan, and dies before the database knows of it.
: >"$T/noted"
planner 'model_commands: true' 'max_ops: 2' "notify: {command: [sh, -c, 'cat >>\"$T/noted\"'], on: all}"
answers '[{"id":"none","run":"x","foreach":[]},{"id":"a","run":"touch begun; until [ -e goes-on ]; do sleep 0.02; done"},{"id":"b","run":"echo B"},{"id":"c","run":"echo C"}]'
touch "$AGENT/plan-waits"
RUN=$("$FLOWSUP" start "$T/flow.yaml")
wait_until planning
WORKER_PID=$(run_fact "$RUN" worker_pid)
hold_database
rm "$AGENT/plan-waits"
wait_until [ -e "$T/begun" ]
kill -KILL "$WORKER_PID"
wait_until gone "$WORKER_PID"
release_database
wait_until status_is "$RUN" crashed
touch "$T/goes-on"
told='"plan_cut":\{"left_out":1,"allowed":2\},"plan_empty":\{"count":1,"ops":\["none"\]\}'
matches_soon "what the plan of a dead worker lost is shown" "$told" "$FLOWSUP" show "$RUN" --json
matches_soon "and told with its death" "\"event\":\"crashed\".*$told" cat "$T/noted"
RUN=$("$FLOWSUP" resume "$RUN" 2>"$T/err") || note "$(cat "$T/err")"
matches "a resume knows it from the beginning" "$told" "$("$FLOWSUP" show "$RUN" --json)"
wait_until ended
matches "and at its end" "^completed .*$told" "$(run_status "$RUN") $("$FLOWSUP" show "$RUN" --json)"
matches_soon "which is told with it" "\"event\":\"completed\".*$told" cat "$T/noted"

# ---- Controls while planning ----
touch "$AGENT/plan-waits"
answers "$TWO"
RUN=$("$FLOWSUP" start "$T/flow.yaml")
wait_until planning
"$FLOWSUP" pause "$RUN" >/dev/null 2>&1
wait_until status_is "$RUN" paused
rm "$AGENT/plan-waits"
accepted() { grep -q '"event":"PlanAccepted"' "$(run_dir)/events.jsonl"; }
wait_until accepted
waits() { grep -q '"event":"NodePaused".*"op":"a"' "$(run_dir)/events.jsonl"; }
check "what was planned waits at the gate" wait_until waits
"$FLOWSUP" ctl resume "$RUN" >/dev/null 2>&1
wait_until ended
equal "and goes on" completed "$(run_status "$RUN")"

"$FLOWSUP" supervisor stop
movable "$FLOWSUP" supervisor
touch "$AGENT/plan-waits"
answers no "$TWO"
RUN=$("$FLOWSUP" start "$T/flow.yaml" --timeout 1h)
wait_until planning
deadline_passes
closed() { grep -q '"event":"DeadlineClosed"' "$(run_dir)/events.jsonl"; }
wait_until closed
rm "$AGENT/plan-waits"
"$FLOWSUP" wait "$RUN" >/dev/null 2>&1
equal "after the deadline a planner is not asked again" "124 1" "$? $(asked)"
deadline_is_ahead
"$FLOWSUP" supervisor stop
movable "$FLOWSUP" supervisor

# What it was to be told it is told by the resume, whatever ended the run before: and no more often for that.
answers 'still no' 'not at all'
touch "$AGENT/plan-waits"
told() { tr '\n' ' ' <"$AGENT/planned-$1"; }
feedback() { exported | grep -o '"planner_feedback":{"refusals":[0-9]*'; }
RUN=$("$FLOWSUP" resume "$RUN" 2>/dev/null)
wait_until planning
matches "a resume gives the first answer back, with what was wrong" \
	'This was answered before and is not a valid plan: no What is wrong with it: response: the answer is no JSON: line 1, column' "$(told 1)"
"$FLOWSUP" pause "$RUN" >/dev/null 2>&1
wait_until status_is "$RUN" paused
rm "$AGENT/plan-waits"
waits() { grep -q '"event":"NodePaused".*"op":"planner"' "$(run_dir)/events.jsonl"; }
wait_until waits
equal "how many there were stands in the checkpoint" '"planner_feedback":{"refusals":2' "$(feedback)"
kill -KILL "$(run_fact "$RUN" worker_pid)"
wait_until status_is "$RUN" crashed
RUN=$("$FLOWSUP" resume "$RUN" 2>/dev/null)
wait_until ended
matches "the same after the death of a worker" 'not a valid plan: still no What is wrong' "$(told 2)"
equal "which is the last time" "failed 2" "$(run_status "$RUN") $(asked)"
equal "with the outcome nothing is left of them" "" "$(feedback)"
answers "$TWO"
RUN=$("$FLOWSUP" resume "$RUN" --retry-failed 2>/dev/null)
wait_until ended
equal "what begins anew is not told of them" "completed 0" "$(run_status "$RUN") $(grep -c 'answered before' "$AGENT/planned-1")"
plan
