#!/usr/bin/env bash
# A further try that is pending, fails, fails again and asks for others, in four runs: each record keeps
# where it came from, and what comes of it is what one run without interruption makes.
. "$(dirname "$0")/lib_grow.sh"

flow() { # b sees the last try under a condition, c its failure, d whatever comes
	cat <<'Y'
reactive: [r1, r2, r3, r4]
concurrency: 1
escalate_max: 5
roles:
  r1: {provider: spy, env: {WHO: r1}}
  r2: {provider: spy, env: {WHO: r2}}
  r3: {provider: spy, env: {WHO: r3}}
  r4: {provider: spy, env: {WHO: r4}}
plan:
  - id: a
    assignee: r1
    response: text
    instruction: |
      case $WHO in
      r1) : > "$T/gates/runs"; until [ -e "$T/gates/go" ]; do sleep 0.02; done
        flowsup emit escalate --to r2; flowsup emit spawn --instruction 'echo child of r1' ;;
      r2) test -e "$T/gates/well" || exit 3
        flowsup emit escalate --to r3; flowsup emit spawn --instruction 'echo child of r2'; flowsup emit escalate --to r4 ;;
      esac
      echo $WHO
  - {id: b, needs: [{op: a, when: {pointer: "", matches: r4}}], run: 'echo "$FLOWSUP_DEP_a" | sed "s/.*ops.//"'}
  - {id: c, needs: [{op: a, on: failure}], run: 'true'}
  - {id: d, needs: [{op: a, on: always}, b], run: 'true'}
Y
}
# Everything that an entry says, with names for nodes.
facts='(lambda n: sorted(tuple(n.get(e.get(m), e.get(m)) for m in ("spawn_id", "parent_id", "escalated_from", "emitter_workload", "emitter_contains_user_settings", "assignee", "request_key", "instruction", "independent", "status", "response")) for e in s))({**{v: k for k, v in node.items()}, **{e["node_id"]: e["spawn_id"] for e in s}})'
keeps() { # name
	local seen
	seen=$(python3 "$ROOT/tests/lib/inspect_growth.py" "$(run_dir)" ${EARLIER:+"$EARLIER"})
	matches "$1: every state is right, and the first is where the run before ended" '^[0-9]+ states$' "$seen"
}
goes_on() {
	EARLIER=$(run_dir)
	RUN=$("$FLOWSUP" resume "$RUN" "$@" 2>"$T/resume.err") || { note "$(cat "$T/resume.err")"; return 1; }
	wait_until ended
}

# ---- Interrupted ----
begin < <(flow)
wait_until [ -e "$T/gates/runs" ]
"$FLOWSUP" stop "$RUN" >/dev/null 2>&1
applied() { "$FLOWSUP" ctl status "$RUN" --json 2>/dev/null | grep -q '"state":"applied"'; }
wait_until applied
open_gate go
wait_until ended
EARLIER=''
keeps "stopped"
equal "the try is pending" "pending pending" "$(spawned '" ".join(e["status"] for e in s)')"
first=$(spawned '[(e["node_id"], e["parent_id"], e["escalated_from"], e["emitter_workload"], e["emitter_contains_user_settings"]) for e in s if "escalated_from" in e]')
goes_on
keeps "first resume"
equal "the try has failed" "failed failed" "$(run_status "$RUN") $(spawned 'by["a.s1"]["status"]')"
goes_on --retry-failed
keeps "second resume"
equal "it has failed again" "failed failed" "$(run_status "$RUN") $(spawned 'by["a.s1"]["status"]')"
open_gate well
goes_on --retry-failed
keeps "third resume"
equal "it has asked for others, and the last is the one" "completed a.s1.s1.s1.1.out" "$(run_status "$RUN") $(output b)"
equal "its witness is the one it began with" True "$(spawned "[t for t in $first] == [(e['node_id'], e['parent_id'], e['escalated_from'], e['emitter_workload'], e['emitter_contains_user_settings']) for e in s if e['spawn_id'] == 'a.s1']")"
interrupted=$(spawned "$facts")
picture=$("$FLOWSUP" show "$RUN" --graph dot)

# ---- And not ----
RUN=''
begin < <(flow)
wait_until ended
EARLIER=''
keeps "uninterrupted"
equal "an uninterrupted run records the same" "$(spawned "$facts")" "$interrupted"
equal "and has the same graph, conditions and states" "$("$FLOWSUP" show "$RUN" --graph dot)" "$picture"
equal "the second one stands behind the first, and names who asked" "a.s1.s1 a.s1" \
	"$(spawned '" ".join({v["node_id"]: k for k, v in by.items()}[by["a.s1.s1.s1"][m]] for m in ("parent_id", "escalated_from"))')"
plan
