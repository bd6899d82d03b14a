# shellcheck shell=bash
# What is printed ends in a newline that nobody means: conditions on the whole of a text do not see it, of
# one that failed neither, now and when its run is resumed. A value of JSON is what it is.
. "$(dirname "$0")/lib.sh"

cat >"$T/flow.yaml" <<'Y'
plan:
  - {id: text, run: echo ship}
  - {id: two, run: 'echo ship; echo'}
  - {id: fails, run: 'echo hold; exit 1'}
  - {id: json, response: json, run: "echo '\"ship\\n\"'"}
  - {id: equals, needs: [{op: text, when: {pointer: "", equals: ship}}], run: "true"}
  - {id: whole, needs: [{op: text, when: {pointer: "", equals: "ship\n"}}], run: "true"}
  - {id: matches, needs: [{op: text, when: {pointer: "", matches: ^ship$}}], run: "true"}
  - {id: other, needs: [{op: text, when: {pointer: "", equals: "ship\n\n"}}], run: "true"}
  - {id: one, needs: [{op: two, when: {pointer: "", equals: "ship"}}], run: "true"}
  - {id: failed, needs: [{op: fails, on: failure, when: {pointer: "", equals: hold}}], run: "true"}
  - {id: value, needs: [{op: json, when: {pointer: "", equals: ship}}], run: "true"}
  - {id: stops, needs: [equals], run: '[ -e "$T/go" ]'}
Y
T=$T "$FLOWSUP" start --wait "$T/flow.yaml" >/dev/null 2>&1
run=$(ls "$FLOWSUP_HOME/runs")
states() { "$FLOWSUP" show "$run" --json | grep -oE "\"id\":\"(equals|whole|matches|other|one|failed|value)\",\"state\":\"[a-z]*" |
	sed -E 's/"id":"(.*)","state":"/\1=/' | paste -sd' '; }
wanted="equals=completed whole=completed matches=completed other=skipped one=skipped failed=completed value=skipped"
equal "conditions do not see the newline" "$wanted" "$(states)"
show=$("$FLOWSUP" show "$run" --json)
matches "why one was skipped names the edge and what it found" \
	'"why":"its condition on two was not met: its response is \\"ship\\\\n\\\\n\\""' "$show"
touch "$T/go"
T=$T "$FLOWSUP" resume "$run" --retry-failed --wait >/dev/null 2>&1
run=$(ls "$FLOWSUP_HOME/runs" | tail -n 1)
equal "a resumed run decides the same" "$wanted" "$(states)"
plan
