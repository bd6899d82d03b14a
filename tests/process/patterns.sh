# shellcheck shell=bash
# A pattern that has no end in many a matcher: what asks it fails and says so, at once and each time, and
# neither the run nor a command waits for it.
. "$(dirname "$0")/lib.sh"

cat >"$T/flow.yaml" <<'Y'
plan:
  - {id: long, run: 'head -c 60000 /dev/zero | tr "\0" a'}
  - {id: asks, needs: [{op: long, when: {pointer: "", matches: "^([a-z]{1,90} ?){1,100}$"}}], run: echo no}
  - {id: fits, response: json, schema: {pattern: "^([a-z]{1,90} ?){1,100}$"},
     run: 'printf "\"%060000d\"" 0 | tr 0 a'}
  - {id: twice, needs: [{op: long, when: {pointer: "", matches: "^(a*)*b|^(a|a)*$"}}], run: echo twice}
  - {id: word, run: "printf '\\303\\251'"}
  - {id: letter, needs: [{op: word, when: {pointer: "", matches: "^.$"}}], run: echo letter}
  - {id: digit, needs: [{op: word, when: {pointer: "", matches: "^\\D+$"}}], run: echo digit}
Y
"$FLOWSUP" check "$T/flow.yaml" >"$T/checked" 2>&1
equal "the document is accepted" 0 $?
run=$("$FLOWSUP" start "$T/flow.yaml" 2>/dev/null)
timeout 120 "$FLOWSUP" wait "$run" >/dev/null 2>&1
equal "the run comes to its end" 1 $?
[ "$(run_status "$run")" = failed ] || { kill -KILL "$(worker_pid "$run")"; plan; }
show=$("$FLOWSUP" show "$run" --json)
op() { grep -oE "\"id\":\"$1\",\"state\":[^}]*" <<<"$show"; }
why="the pattern takes too many steps"
matches "what asks by such a pattern fails" '"state":"failed".*"class":"response"' "$(op asks)"
matches "and says why" "its condition on the response of long: $why" "$(op asks)"
matches "as does what must fit it" "at \\\\\"\\\\\": \\\\\"pattern\\\\\": $why" "$(op fits)"
matches "ways that are the same are gone once" '"state":"completed"' "$(op twice)"
matches "a character is one, however many bytes it has" '"state":"completed"' "$(op letter)"
matches "and no digit" '"state":"completed"' "$(op digit)"

timeout 120 "$FLOWSUP" resume --retry-failed "$run" --wait >/dev/null 2>&1
equal "a resumed run decides the same" 1 $?
show=$("$FLOWSUP" show "$run" --json)
matches "and says the same" "its condition on the response of long: $why" "$(op asks)"

sed -i 's/\^\.\$/(a)\\\\1/' "$T/flow.yaml"
said=$("$FLOWSUP" check "$T/flow.yaml" 2>&1)
equal "what refers back is refused" 2 $?
matches "with what is not known" 'operation "letter": "matches" is no extended regular expression: \\1 is not known' "$said"
plan
