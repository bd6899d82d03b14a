#!/usr/bin/env bash
# A response is asked by its schema; what does not fit fails with class `response` and its pointer.
. "$(dirname "$0")/lib.sh"

cat >"$T/flow.yaml" <<'Y'
plan:
  - id: good
    run: echo '{"verdict":"ship","points":[1,2]}'
    response: json
    schema: &verdict
      type: object
      required: [verdict]
      properties:
        verdict: {enum: [ship, hold]}
        points: {type: array, items: {type: integer}}
      additionalProperties: false
  - {id: bad, response: json, schema: *verdict, run: "echo '{\"verdict\":\"ship\",\"points\":[1,\"x\"]}'"}
  - {id: lines, response: jsonl, schema: *verdict, run: "echo '{\"verdict\":\"ship\"}'; echo '{\"verdict\":\"no\"}'"}
  - id: again
    response: json
    schema: *verdict
    retry: {attempts: 2, backoff: 10ms, on: [response]}
    run: 'if [ "$FLOWSUP_ATTEMPT" = 1 ]; then echo 5; else echo "{\"verdict\":\"hold\"}"; fi'
  - {id: context, response: json, schema: {required: [x]}, run: "echo '{\"context\":[{\"op\":\"set\",\"pointer\":\"/leak\",\"value\":1}]}'"}
Y
run=$("$FLOWSUP" start "$T/flow.yaml")
"$FLOWSUP" wait "$run" >/dev/null 2>&1
equal "a violation fails the run" 1 $?
show=$("$FLOWSUP" show "$run" --json)
op() { grep -oE "\"id\":\"$1\",\"state\":[^}]*" <<<"$show"; }
matches "what fits completes" '"state":"completed"' "$(op good)"
matches "what does not fails with class response" '"state":"failed".*"class":"response"' "$(op bad)"
matches "and the pointer is named" 'at \\"/points/1\\": is a text, and the type must be integer' "$(op bad)"
matches "each line is asked" 'at \\"/1/verdict\\": is none of the 2 values' "$(op lines)"
matches "it is tried again" '"state":"completed".*"attempt":2' "$(op again)"
matches "what a refused response asks for does not happen" '"state":"failed"' "$(op context)"
check "and its context is not changed" \
	sh -c "! '$FLOWSUP' checkpoint export '$run' --json | grep -q '\"leak\":1'"

sed -i 's/required: \[verdict\]/requierd: [verdict]/' "$T/flow.yaml"
said=$("$FLOWSUP" check "$T/flow.yaml" 2>&1)
equal "an unknown keyword is refused" 2 $?
matches "with its place" 'flow.yaml:7:7: operation "good": schema: "requierd" is no keyword' "$said"
matches "and the nearest one" 'note: did you mean "required"' "$said"
plan
