#!/usr/bin/env bash
# The synthesis of runs that are added to: it is the last work also in a resume, and has seen what there is.
. "$(dirname "$0")/lib_grow.sh"

go_on() { # options: $RUN becomes the new run; waits for its end
	local new
	new=$("$FLOWSUP" resume "$RUN" "$@" 2>"$T/resume.err") || { cat "$T/resume.err" >&2; return 1; }
	RUN=$new
	wait_until ended
}
# The operations that started, in this order; and what became of which, in the order of their ends.
started() { grep '"event":"NodeStarted"' "$(run_dir)/events.jsonl" | sed 's/.*"op":"\([^"]*\)".*/\1/' | paste -sd ' '; }
# Whether an operation was to start before another one ended.
beside() {
	awk -v a="\"op\":\"$1\"" -v b="\"op\":\"$2\"" '/"event":"NodeReady"/ && index($0, a) {print "ready"}
		/"event":"Node(Completed|Failed)"/ && index($0, b) {print "ended"}' "$(run_dir)/events.jsonl" | paste -sd ' '
}
drawn() { "$FLOWSUP" show "$RUN" --graph "$1"; }
suggested() { "$FLOWSUP" show "$RUN" | sed -n 's/^next *flowsup resume [^ ]* *//p'; }
# shellcheck disable=SC2046 # words are meant
takes_it() { "$FLOWSUP" resume "$RUN" --dry-run $(suggested) >"$T/dry" 2>&1; }
row() { sed -n "s/^$1  *//p" "$T/dry"; }

document() { # what the synthesis does
	cat <<Y
concurrency: 2
reactive: all
roles:
  low: {provider: robot, env: {WHO: low}, escalate_to: high}
  high: {provider: robot, env: {WHO: high}}
plan:
  - {id: a, run: 'flowsup emit spawn --independent --run "test -e \$T/gates/ok"'}
synthesis: {assignee: low, instruction: '$1; exit'}
Y
}

# ---- Its further tries ----
run_flow < <(document 'test -e $T/gates/well')
equal "a synthesis that fails is tried again" "failed a a.s1 synthesis synthesis.s1" "$(run_status "$RUN") $(started)"
matches "the lines of its last try lead there from what it waits for, too" \
	' synthesis\.s1 +[a-z]+ +needs a always, synthesis always, a\.s1 always' "$(drawn text)"
equal "so in all pictures" "1 1" "$(drawn dot | grep -c 'n2 -> n3 .*always') $(drawn svg | grep -c '<title>a\.s1 → synthesis\.s1, always')"
cp -r "$(run_dir)" "$T/beside"
as_of_elsewhere "$T/beside"

equal "what failed runs again, so the synthesis does from its first try on" "--retry-failed --drop-respawned" "$(suggested)"
check "that is taken" takes_it
equal "and it is said because of what" "will run  failed (exit status 1), runs again, as does a.s1" "$(row synthesis)"
open_gate ok
open_gate well
go_on --retry-failed --drop-respawned
equal "it runs when what failed has run" "completed a.s1 synthesis" "$(run_status "$RUN") $(started)"

# Where what it stands behind was in flight beside its last try, which only other programs have let happen.
python3 - "$T/beside" <<'P'
import json, sys
for name in ("checkpoint.json", "checkpoint.json.journal"):
    path = sys.argv[1] + "/" + name
    lines = [json.loads(line) for line in open(path)]
    for line in lines:
        for entry in line.get("spawned", [line.get("entry", {})]):
            if entry.get("spawn_id") in ("a.s1", "synthesis.s1"):
                entry["status"] = "pending"
                entry["response"] = None
                for name in ("result_digest", "error", "attempts", "started_at", "ended_at"):
                    entry.pop(name, None)
    open(path, "w").write("".join(json.dumps(line) + "\n" for line in lines))
P
RUN=$("$FLOWSUP" resume "$T/beside" 2>"$T/resume.err") || note "$(cat "$T/resume.err")"
wait_until ended
equal "its last try does not begin before all others have ended" "completed ended ready" "$(run_status "$RUN") $(beside synthesis.s1 a.s1)"

# ---- It has completed, and something that it has seen runs again ----
rm -f "$T"/gates/*
run_flow < <(document 'echo sum >> $T/sums')
equal "it completes over a failure" "failed a a.s1 synthesis" "$(run_status "$RUN") $(started)"
equal "nothing is lost that it has added" "--retry-failed" "$(suggested)"
check "what is suggested is taken" takes_it
equal "it is said because of which operation it runs again" "will run  runs again, because a.s1 does" "$(row synthesis)"
go_on --keep-failed
equal "where the failure is kept, it stays" "failed " "$(run_status "$RUN") $(started)"
open_gate ok
go_on --retry-failed
equal "else it does, as the last" "completed a.s1 synthesis" "$(run_status "$RUN") $(started)"
equal "once" 2 "$(grep -c sum "$T/sums")"

# ---- What it has asked for itself ----
rm -f "$T"/gates/*
document 'test $WHO = high || { flowsup emit spawn --independent --instruction "exit 0"; flowsup emit spawn --instruction "exit 0"; exit 1; }; exit 0' >"$T/asks"
open_gate ok
run_flow <"$T/asks"
equal "its last try waits for nothing that came of it" "completed 6" "$(run_status "$RUN") $(started | wc -w)"
rm -f "$T"/gates/*
run_flow <"$T/asks"
equal "that would be lost where it runs again" "--retry-failed --drop-respawned" "$(suggested)"
check "what is suggested then is taken" takes_it
equal "and all of it is left out" "synthesis.s1 synthesis.s2 synthesis.s3" "$(awk '/ left out / {print $1}' "$T/dry" | sort | paste -sd ' ')"
open_gate ok
go_on --retry-failed --drop-respawned
equal "it asks for it anew" "completed a.s1 synthesis synthesis.s4 synthesis.s5 synthesis.s6" "$(run_status "$RUN") $(started | tr ' ' '\n' | sort | paste -sd ' ')"
rm -f "$T"/gates/*
run_flow <"$T/asks"
go_on --keep-failed
equal "nothing runs again where the failure is kept" "failed " "$(run_status "$RUN") $(started)"

# ---- Tries that a deadline or a stop withholds, one after the other ----
"$FLOWSUP" supervisor stop
movable "$FLOWSUP" supervisor
closed() { has_event DeadlineClosed ""; }
in_flight() { [ -e "$T/gates/runs" ]; }
withhold() { # until a deadline has passed while it runs
	wait_until in_flight
	deadline_passes
	wait_until closed
	open_gate go
	wait_until ended
	deadline_is_ahead
	rm -f "$T"/gates/runs "$T"/gates/go
}
three_tries() {
	document ": > \$T/gates/runs; until [ -e \$T/gates/go ]; do sleep 0.05; done; test \$WHO = top" |
		sed 's/^  high: .*/  high: {provider: robot, env: {WHO: high}, escalate_to: top}\n  top: {provider: robot, env: {WHO: top}}/'
}
edges='sorted((e["id"], sorted(e["needs"])) for e in op.values())'
open_gate ok
open_gate go
run_flow < <(three_tries)
equal "uninterrupted it is tried three times" "completed a a.s1 synthesis synthesis.s1 synthesis.s1.s1" "$(run_status "$RUN") $(started)"
whole=$(shown "$edges")
rm -f "$T"/gates/runs "$T"/gates/go
begin --timeout 1h < <(three_tries)
withhold
equal "a try that the deadline withholds is pending" "timed_out pending" "$(run_status "$RUN") $(spawned 'by["synthesis.s1"]["status"]')"
matches "and is to come" 'synthesis +failed .*; synthesis\.s1 is to be tried in its place' "$("$FLOWSUP" show "$RUN")"
witness='[(e["node_id"], e["parent_id"], e["escalated_from"], e["request_key"], e["emitter_workload"]) for e in s if e["spawn_id"] == "synthesis.s1"]'
first=$(spawned "$witness")
RUN=$("$FLOWSUP" resume "$RUN" 2>"$T/resume.err")
withhold
equal "so is the one after it" "timed_out synthesis.s1 failed pending" \
	"$(run_status "$RUN") $(started) $(spawned 'by["synthesis.s1"]["status"], by["synthesis.s1.s1"]["status"]' | tr -d "(),'")"
open_gate go
go_on
equal "which the next resume runs" "completed synthesis.s1.s1" "$(run_status "$RUN") $(started)"
equal "the witness stayed" "$first" "$(spawned "$witness")"
equal "and the graph is that of the uninterrupted run" "$whole" "$(shown "$edges")"

rm -f "$T"/gates/*
begin < <(document 'exit 0' | sed 's/--run "[^"]*"/--run ": > \$T\/gates\/runs; until [ -e \$T\/gates\/go ]; do sleep 0.05; done"/')
wait_until in_flight
awaits() { "$FLOWSUP" show "$RUN" | grep -qE "^synthesis +pending +needs a\.s1$"; }
wait_until awaits
check "show says what it waits for" awaits
"$FLOWSUP" stop --drain "$RUN" >/dev/null 2>&1 &
stopping() { "$FLOWSUP" show "$RUN" | grep -q '^control .*stop'; }
wait_until stopping
open_gate go
wait $!
wait_until ended
equal "a stop withholds it" "cancelled a a.s1" "$(run_status "$RUN") $(started)"
go_on
equal "a resume does that and no more" "completed synthesis" "$(run_status "$RUN") $(started)"
plan
