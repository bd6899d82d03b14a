#!/usr/bin/env bash
# Why an operation was skipped: of every kind of edge, alone, beside another one and behind a skip of a
# skip, what is said is true, and it is the same while the run goes on (--wait), afterwards (show) and in
# the event log.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

# What each edge leads from, whether it has a response with the member "v", and what a skip for it says.
# skip1 and skip2: skipped for bad, and for one skipped for it; cond: for a condition.
base='name: skipped
plan:
  - {id: first, response: json, run: "echo 1 | sed \"s/.*/{\\\"v\\\":1}/\""}
  - {id: good, response: json, run: "echo 1 | sed \"s/.*/{\\\"v\\\":1}/\""}
  - {id: bad, run: "exit 1"}
  - {id: skip1, needs: [bad], run: "true"}
  - {id: skip2, needs: [skip1], run: "true"}
  - {id: cond, needs: [{op: good, when: {pointer: /v, equals: 2}}], run: "true"}
  - {id: last, run: "exit 1"}
'
# unmet PREDECESSOR: it names the edge, and the beginning of what it found.
unmet() {
	case $1 in
	good | first) echo "its condition on $1 was not met: /v is 1" ;;
	*) echo "its condition on $1 was not met: it has no response" ;;
	esac
}
declare -A root=([good]="good did not fail" [bad]="bad failed" [skip1]="bad failed" [skip2]="bad failed"
	[cond]="cond was skipped")
fits() { # PREDECESSOR ON
	case $2 in
	success) [ "$1" = good ] ;;
	failure) [ "$1" = bad ] ;;
	always) : ;;
	esac
}
holds() { # PREDECESSOR WHEN: of a response that is there for good alone
	case $2 in
	none) : ;;
	there) [ "$1" = good ] ;;
	absent) [ "$1" != good ] ;;
	esac
}
# why PREDECESSOR ON WHEN: of one edge; nothing: it lets pass.
why() {
	if ! fits "$1" "$2"; then
		echo "${root[$1]}"
	elif ! holds "$1" "$3"; then
		unmet "$1"
	fi
}
edge() { # PREDECESSOR ON WHEN
	case $3 in
	none) echo "{op: $1, on: $2}" ;;
	there) echo "{op: $1, on: $2, when: {pointer: /v, exists: true}}" ;;
	absent) echo "{op: $1, on: $2, when: {pointer: /v, exists: false}}" ;;
	esac
}
# one ID EDGES WHY: an operation, and two behind it, the second behind the skip of the first.
one() {
	printf '  - {id: %s, needs: [%s], run: "true"}\n' "$1" "$2" >>"$T/flow.yaml"
	[ -n "$3" ] || return 0
	echo "$1: $3" >>"$T/wanted"
	local behind=$3
	case $3 in "its condition"*) behind="$1 was skipped" ;; esac
	printf '  - {id: %s.b, needs: [%s], run: "true"}\n' "$1" "$1" >>"$T/flow.yaml"
	printf '  - {id: %s.c, needs: [{op: %s.b, on: failure}], run: "true"}\n' "$1" "$1" >>"$T/flow.yaml"
	printf '%s.b: %s\n%s.c: %s\n' "$1" "$behind" "$1" "$behind" >>"$T/wanted"
}

printf '%s' "$base" >"$T/flow.yaml"
printf 'skip1: bad failed\nskip2: bad failed\ncond: %s\n' "$(unmet good)" >"$T/wanted"
for p in good bad skip1 skip2 cond; do
	for on in success failure always; do
		for when in none there absent; do
			said=$(why $p $on $when)
			one "$p.$on.$when" "$(edge $p $on $when)" "$said"
			# Beside another one: the first that does not let pass is named, in the order of the plan.
			one "$p.$on.$when.1" "$(edge $p $on $when), $(edge last success none)" "${said:-last failed}"
			one "$p.$on.$when.2" "$(edge first success absent), $(edge $p $on $when)" "$(unmet first)"
		done
	done
done
sed -i '1a max_ops: 1000' "$T/flow.yaml"

"$FLOWSUP" start --wait -j 4 "$T/flow.yaml" >/dev/null 2>"$T/told"
equal "the run has a failed operation" 1 $?
run=$(ls "$FLOWSUP_HOME/runs" | head -1)
sort "$T/wanted" >"$T/sorted"
check "there is something to compare" [ "$(wc -l <"$T/sorted")" -gt 200 ]
sed -nE 's/^.* ([A-Za-z0-9.]+) skipped: (.*)$/\1: \2/p; s/^([A-Za-z0-9.]+) skipped: (.*)$/\1: \2/p' "$T/told" | sort -u >"$T/waited"
equal "--wait" "" "$(diff "$T/sorted" "$T/waited")"
"$FLOWSUP" show "$run" --json | python3 -c '
import json, sys
for o in json.load(sys.stdin)["ops"]:
    if o["state"] == "skipped":
        print(o["id"] + ": " + o["why"])' | sort >"$T/shown"
equal "show" "" "$(diff "$T/sorted" "$T/shown")"
python3 - "$FLOWSUP_HOME/runs/$run/events.jsonl" >"$T/logged" <<'PY'
import json, sys
words = {"failed": "failed", "skipped": "was skipped", "completed": "did not fail"}
for line in open(sys.argv[1]):
    e = json.loads(line)
    if e["event"] == "NodeSkipped":
        own = e["cause"] == e["op"]
        print(e["op"] + ": " + (e["why"] if own
                                else e["cause"] + " " + words[e["cause_state"]]))
PY
equal "the event log" "" "$(diff "$T/sorted" <(sort "$T/logged"))"

printf '%s\n' 'plan:' '  - {id: a, run: "true"}' '  - {id: b, needs: [{op: a, on: failure}], run: "true"}' >"$T/flow.yaml"
run=$("$FLOWSUP" start "$T/flow.yaml")
"$FLOWSUP" wait "$run" >"$T/told" 2>&1
matches "a run that skipped something does not say that everything completed" \
	"status +completed: every operation completed or was skipped \[run.completed.all\]" "$("$FLOWSUP" show "$run")"
plan
