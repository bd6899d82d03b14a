#!/usr/bin/env bash
# Runs that were added to, resumed: nothing is lost, nothing is added twice, witnesses stay.
. "$(dirname "$0")/lib_grow.sh"

crash() { # of $RUN's worker; what it ran lives on
	local pid
	pid=$(worker_pid "$RUN")
	kill -KILL "$pid"
	wait_until status_is "$RUN" crashed
}
go_on() { # options: $RUN becomes the new run; waits for its end
	local new
	new=$("$FLOWSUP" resume "$RUN" "$@" 2>"$T/resume.err") || { cat "$T/resume.err" >&2; return 1; }
	RUN=$new
}
nodes() { spawned '" ".join(e["node_id"] for e in s)'; }

# ---- In flight at a crash: it goes on; or it runs again, asks again and gets the same ----
begin <<'Y'
reactive: all
plan:
  - id: a
    run: |
      flowsup emit spawn --run 'echo one' 2>> "$T/said"
      flowsup emit spawn --run 'echo two' --key k --independent 2>> "$T/said"
      : > "$T/gates/asked"
      until [ -e "$T/gates/go" ]; do sleep 0.05; done
Y
wait_until [ -e "$T/gates/asked" ]
before=$(nodes)
crash
# Of copies from elsewhere nobody knows what became of the operation.
cp -r "$(run_dir)" "$T/again"
cp -r "$(run_dir)" "$T/older"
as_of_elsewhere "$T/again"
as_of_elsewhere "$T/older" 1
"$FLOWSUP" resume "$RUN" --dry-run >"$T/dry"
check "a dry run has a row for what was added" grep -qE '^a.s1 +will run' "$T/dry"
go_on
open_gate go
wait_until ended
equal "it completes" completed "$(run_status "$RUN")"
equal "nothing was added twice" "$before" "$(nodes)"
equal "what ran ran" "one" "$(output a.s1)"
: >"$T/said"
RUN=$("$FLOWSUP" resume "$T/again" 2>"$T/resume.err")
wait_until ended
equal "run again it asks again and is told the same" "completed 1 1" "$(run_status "$RUN") $(grep -c 'accepted: a.s1$' "$T/said") $(grep -c 'accepted: a.s2$' "$T/said")"
equal "also then nothing is added twice" "$before" "$(nodes)"

# A checkpoint of a program that recorded no keys: what it says in the same words is the same.
python3 - "$T/older" <<'P'
import json, sys
for name in ("checkpoint.json", "checkpoint.json.journal"):
    path = sys.argv[1] + "/" + name
    lines = [json.loads(line) for line in open(path)]
    for line in lines:
        for entry in line.get("spawned", [line.get("entry", {})]):
            entry.pop("request_key", None)
    open(path, "w").write("".join(json.dumps(line) + "\n" for line in lines))
P
: >"$T/said"
RUN=$("$FLOWSUP" resume "$T/older" 2>"$T/resume.err")
wait_until ended
equal "also without recorded keys" "completed 2 1" "$(run_status "$RUN") $(spawned 'len([e for e in s if "two" not in e["instruction"]]) * 2') $(grep -c 'accepted: a.s1$' "$T/said")"

# ---- pending, failed, retried: across three resumes ----
rm -f "$T"/gates/*
begin <<'Y'
reactive: all
roles:
  low: {provider: robot, env: {WHO: low}, escalate_to: high}
  high: {provider: robot, env: {WHO: high}, escalate_to: top}
  top: {provider: robot, env: {WHO: top}}
plan:
  - {id: a, assignee: low, instruction: ': > "$T/gates/runs"; until [ -e "$T/gates/go" ]; do sleep 0.05; done; flowsup emit escalate 2> "$T/said"; flowsup emit spawn --instruction "echo child" 2>> "$T/said"; test "$WHO" = low || test -e "$T/gates/well"'}
  - {id: b, needs: [a], run: 'echo "$FLOWSUP_DEP_a" | sed "s/.*ops.//"'}
Y
wait_until [ -e "$T/gates/runs" ]
"$FLOWSUP" stop "$RUN" >/dev/null 2>&1
closed() { "$FLOWSUP" ctl status "$RUN" --json 2>/dev/null | grep -q '"state":"applied"'; }
wait_until closed
open_gate go
wait_until ended
equal "a stop drains" cancelled "$(run_status "$RUN")"
equal "what was asked for after it was deferred" 2 "$(grep -c deferred "$T/said")"
equal "and is pending" "pending pending" "$(spawned '" ".join(e["status"] for e in s)')"
facts='[(e["node_id"], e["parent_id"], e["spawn_id"], e.get("escalated_from"), e["emitter_workload"], e["emitter_contains_user_settings"], e["request_key"], e["assignee"], e["instruction"]) for e in s]'
first=$(spawned "$facts")
planned=$(spawned 'node')
go_on
wait_until ended
equal "first resume: another try runs, fails, and goes on to the next" "failed failed" \
	"$(run_status "$RUN") $(spawned 'by["a.s1"]["status"]')"
equal "its witness and provenance stayed" "$first" "$(spawned "${facts%]} if e[\"spawn_id\"] in (\"a.s1\", \"a.s2\")]")"
equal "planned nodes too" "$planned" "$(spawned 'node')"
tries=$(spawned '" ".join(e["spawn_id"] for e in s if e.get("escalated_from"))')
equal "the next try follows the last one" "a.s1 a.s1.s1" "$tries"
check "a failure is refused without a word" bash -c "! '$FLOWSUP' resume '$RUN' >/dev/null 2>&1"
for n in second third; do
	[ $n = second ] || open_gate well
	last=$(spawned 'by["a.s1.s1"]["node_id"], by["a.s1.s1"]["parent_id"], by["a.s1.s1"]["escalated_from"]')
	go_on --retry-failed
	wait_until ended
	equal "$n retry: the last try alone runs, as the same node" "$last" \
		"$(spawned 'by["a.s1.s1"]["node_id"], by["a.s1.s1"]["parent_id"], by["a.s1.s1"]["escalated_from"]')"
	equal "$n retry: the others are replayed" "True True" "$(shown 'str(op["a"]["replayed"]) + " " + str(op["a.s1"]["replayed"])')"
done
equal "then it completes" completed "$(run_status "$RUN")"
equal "what needs it is given the last try" "a.s1.s1.1.out" "$(output b)"
edges='sorted((i, n) for i in op for n in op[i]["needs"])'
resumed=$(shown "$edges")

# The same without interruption: the same graph.
rm -f "$T/gates/runs"
begin <<'Y'
reactive: all
roles:
  low: {provider: robot, env: {WHO: low}, escalate_to: high}
  high: {provider: robot, env: {WHO: high}, escalate_to: top}
  top: {provider: robot, env: {WHO: top}}
plan:
  - {id: a, assignee: low, instruction: 'flowsup emit escalate; flowsup emit spawn --instruction "echo child"; test "$WHO" = low || test "$WHO" = top'}
  - {id: b, needs: [a], run: 'true'}
Y
wait_until ended
# What the last try has asked for itself differs: only it was tried three times.
same() { python3 -c 'print([e for e in eval(input()) if not e[0].startswith("a.s1.s1.")])'; }
equal "an uninterrupted run has the same graph" "$(echo "$resumed" | same)" "$(shown "$edges" | same)"

# ---- A parent that runs again on purpose begins afresh ----
begin <<'Y'
reactive: all
plan:
  - id: a
    run: |
      flowsup emit spawn --run 'echo x; : > "$T/gates/child"' --independent
      until [ -e "$T/gates/saved" ]; do sleep 0.05; done
      test -e "$T/gates/ok"
Y
child_is_saved() { [ "$(spawned 's[0]["status"]')" = completed ]; }
wait_until child_is_saved
open_gate saved
wait_until ended
equal "a parent fails after what it added has completed" "failed completed" "$(run_status "$RUN") $(spawned 's[0]["status"]')"
check "running it again would lose an outcome: refused" bash -c "! '$FLOWSUP' resume '$RUN' --retry-failed >/dev/null 2>'$T/err'"
check "the refusal names what, and the option" grep -q 'a.s1.*--drop-respawned' "$T/err"
equal "a resume without options suggests both at once" "hint: flowsup resume $RUN --retry-failed --drop-respawned" \
	"$("$FLOWSUP" resume "$RUN" 2>&1 | grep ^hint)"
matches "as what lifts the failure does" "lifted by: flowsup resume $RUN --retry-failed --drop-respawned"$'\n' "$("$FLOWSUP" resume "$RUN" 2>&1)"
equal "the command that is suggested has it" "flowsup resume $RUN --retry-failed --drop-respawned" "$("$FLOWSUP" show "$RUN" | sed -n 's/^next *//p')"
"$FLOWSUP" resume "$RUN" --retry-failed --dry-run >"$T/dry" 2>"$T/err"
matches "a dry run refuses what it would not leave out" "4 a.s1 +refused +a runs again, so what it had added is not carried over" \
	"$? $(grep '^a.s1' "$T/dry")"
matches "and suggests the same" "hint: flowsup resume $RUN --retry-failed --drop-respawned" "$(cat "$T/err")"
open_gate ok
go_on --retry-failed --drop-respawned
wait_until ended
check "what is left out is said" grep -q 'a.s1: left out (completed)' "$T/resume.err"
equal "numbers go on after the highest there ever was" "completed a.s2" "$(run_status "$RUN") $(spawned '" ".join(by)')"

# Where the document says that failures run again the command need not.
begin <<'Y'
reactive: all
restart: {failed: retry}
plan:
  - {id: a, run: 'flowsup emit spawn --independent --run "echo x"; until [ -e "$T/gates/seen" ]; do sleep 0.05; done; false'}
Y
wait_until child_is_saved
open_gate seen
wait_until ended
equal "what is suggested is what a refused resume suggests" "flowsup resume $RUN --drop-respawned hint: flowsup resume $RUN --drop-respawned" \
	"$("$FLOWSUP" show "$RUN" | sed -n 's/^next *//p') $("$FLOWSUP" resume "$RUN" 2>&1 | grep ^hint)"

# Independent work has no edge to who asked for it, however deep in the graph that is: it leaves all the same.
rm -f "$T"/gates/*
run_flow <<'Y'
reactive: all
plan:
  - id: a
    run: flowsup emit spawn --run 'flowsup emit spawn --independent --run "echo apart"; flowsup emit spawn --run "echo behind"; test -e "$T/gates/ok"'
Y
equal "one that was added fails, having asked for more" "failed a.s1 a.s1.s1 a.s1.s2" "$(run_status "$RUN") $(spawned '" ".join(sorted(by))')"
"$FLOWSUP" resume "$RUN" --retry-failed --drop-respawned --dry-run >"$T/dry" 2>&1
equal "all that it asked for is left out, also what has no edge to it" "a.s1.s1 a.s1.s2" \
	"$(awk '/ left out / {print $1}' "$T/dry" | sort | paste -sd ' ')"
check "and asked about" bash -c "! '$FLOWSUP' resume '$RUN' --retry-failed >/dev/null 2>'$T/err' && grep -q 'a.s1.s1.*--drop-respawned' '$T/err'"
open_gate ok
go_on --retry-failed --drop-respawned
wait_until ended
equal "what runs again gets what it asks for anew" "completed a.s1 a.s1.s3 a.s1.s4" "$(run_status "$RUN") $(spawned '" ".join(sorted(by))')"
# So it is where an operation was in flight and runs again for the sake of what it needs.
rm -f "$T"/gates/*
begin <<'Y'
reactive: all
plan:
  - {id: a, run: 'echo x > "$FLOWSUP_ARTIFACTS/f"', artifacts: [f]}
  - id: b
    needs: [a]
    run: |
      flowsup emit spawn --run 'echo x' --independent
      until [ -e "$T/gates/go" ]; do sleep 0.05; done
Y
wait_until child_is_saved
crash
rm -f "$(run_dir)"/artifacts/*/f
"$FLOWSUP" resume "$RUN" --accept-missing-artifacts --drop-respawned --dry-run >"$T/dry" 2>&1
check "work of one that runs again because another one does is left out too" grep -qE '^b.s1 +left out' "$T/dry"
open_gate go

# What is suggested can be pasted: behind a failure, of a further try, and where nothing would be lost.
suggested() { "$FLOWSUP" show "$RUN" | sed -n 's/^next *flowsup resume [^ ]* *//p'; }
# shellcheck disable=SC2046 # words are meant
takes_it() { "$FLOWSUP" resume "$RUN" --dry-run $(suggested) >"$T/dry" 2>&1; }
run_flow <<'Y'
reactive: all
plan:
  - {id: a, run: 'false'}
  - {id: b, needs: [{op: a, on: failure}], run: 'flowsup emit spawn --run "echo x"'}
Y
equal "what handled a failure runs again" "--retry-failed --drop-respawned" "$(suggested)"
check "that is taken" takes_it
run_flow <<'Y'
reactive: all
roles: {low: {escalate_to: high}, high: {}}
plan:
  - {id: a, assignee: low, run: 'flowsup emit spawn --run "echo x" --independent; false'}
  - {id: c, run: 'flowsup emit spawn --run "false"'}
Y
check "of a further try as well" takes_it
run_flow <<'Y'
reactive: all
plan:
  - {id: a, run: 'flowsup emit spawn --run "echo x"'}
  - {id: b, run: 'false'}
Y
equal "elsewhere the option is not asked for" "--retry-failed" "$(suggested)"
check "and not needed" takes_it
plan
