#!/usr/bin/env bash
# What operations say by `flowsup emit`: each verb, each refusal, and what becomes of it.
. "$(dirname "$0")/lib.sh"
PATH=$BUILD/bin:$PATH
export T

run_flow() { # document on standard input; prints the run id, waits for the end
	local id
	id=$("$FLOWSUP" start - 2>"$T/start.err") || { note "$(cat "$T/start.err")"; return 1; }
	"$FLOWSUP" wait "$id" >/dev/null 2>&1
	echo "$id"
}
output() { cat "$FLOWSUP_HOME/runs/$1/ops/$2.${3:-1}.out" 2>/dev/null; }
context_of() { "$FLOWSUP" checkpoint export "$1" --json | sed -nE 's/.*"flow_context":(.*),"ops":.*/\1/p'; }
events() { grep -c "\"event\":\"$2\"" "$FLOWSUP_HOME/runs/$1/events.jsonl"; }
class_of() { "$FLOWSUP" show "$1" --json | grep -oE "\"id\":\"$2\",.*" | grep -oE '"class":("[a-z_]*"|null)' | head -1; }

# ---- Verbs ----
id=$(run_flow <<'Y'
plan:
  - id: a
    run: |
      flowsup emit context set /n 1
      flowsup emit context set /deep '{"x": [1, 2]}'
      flowsup emit context set /deep/x/- -3
      printf '{"from": "stdin"}' | flowsup emit context set /in -
      flowsup emit context append /list '"one"'
      flowsup emit context append /list '"two"'
      flowsup emit context set /gone true
      flowsup emit context remove /gone
      flowsup emit context get /deep/x/2
      flowsup emit context get
      flowsup emit progress 0.25 'a quarter'
      flowsup emit progress 1
      mkdir "$FLOWSUP_ARTIFACTS/sub"; echo data > "$FLOWSUP_ARTIFACTS/sub/f"
      flowsup emit artifact sub/f
      flowsup emit artifact "$FLOWSUP_ARTIFACTS/sub/f"
  - id: b
    needs: [a]
    context: true
    run: flowsup emit context get; cat "$FLOWSUP_CONTEXT"; test ! -w "$FLOWSUP_CONTEXT" || test "$(id -u)" = 0
Y
)
equal "the run completes" completed "$(run_status "$id")"
wanted='{"n":1,"deep":{"x":[1,2,-3]},"in":{"from":"stdin"},"list":["one","two"]}'
equal "an operation sees its own changes" "-3
$wanted" "$(output "$id" a)"
equal "others see them with its outcome, by command and file" "$wanted
{\"prompt\":\"\",\"context\":$wanted}" "$(output "$id" b)"
equal "the checkpoint holds them" "$wanted" "$(context_of "$id")"
equal "progress is an event" 2 "$(events "$id" NodeProgress)"
check "with its text" grep -q '"fraction":0.250000,"text":"a quarter"' "$FLOWSUP_HOME/runs/$id/events.jsonl"
equal "an artifact is recorded once, with a digest" 1 \
	"$("$FLOWSUP" checkpoint export "$id" --json | grep -o '{"path":"sub/f","size":5,"digest":"blake2b:' | wc -l)"
equal "only get writes to standard output" "" \
	"$(cat "$FLOWSUP_HOME"/runs/"$id"/ops/a.1.err)"
check "changes are kept with the attempt" \
	grep -q '"pointer":"/n","value":1' "$FLOWSUP_HOME/runs/$id/ops/a.1/emitted.jsonl"

# ---- Refusals: command, exit status, what standard error holds ----
cat >"$T/refusals" <<'R'
4	flowsup emit context set /no/parent 1	flowsup: /no/parent: a step
4	flowsup emit context remove /nothing	/nothing
4	flowsup emit context append /n 1	no array
4	flowsup emit context set /operator_messages '[]'	kept by flowsup
4	flowsup emit context remove /approvals	kept by flowsup
4	flowsup emit context set /planner_feedback '{}'	kept by flowsup
4	flowsup emit context set "" '{}'	whole context
2	flowsup emit context get /nothing	nothing stands
2	flowsup emit context get nothing	pointer
2	flowsup emit context set /x {bad	the value
2	flowsup emit context set /x bare	quotes
2	flowsup emit context set /x	emit context:
2	flowsup emit context move /x 1	emit context:
2	flowsup emit progress 2	from 0 to 1
2	flowsup emit progress half	from 0 to 1
2	flowsup emit progress 0.5 "$(head -c 2000 /dev/zero | tr '\0' x)"	1000 bytes
4	flowsup emit artifact missing	is not there
4	flowsup emit artifact ../a/f	FLOWSUP_ARTIFACTS
4	flowsup emit artifact /etc/passwd	FLOWSUP_ARTIFACTS
4	flowsup emit artifact empty	empty
4	flowsup emit artifact dir	not a regular file
4	flowsup emit spawn --run true	reactive is off
4	flowsup emit escalate --to senior	reactive is off
4	FLOWSUP_TOKEN=0123456789abcdef0123456789abcdef-0 flowsup emit progress 1	has ended
4	FLOWSUP_TOKEN=x flowsup emit progress 1	has ended
4	FLOWSUP_TOKEN=x-ffffffffff flowsup emit progress 1	has ended
2	FLOWSUP_TOKEN= flowsup emit progress 1	inside an operation
2	FLOWSUP_SOCK= flowsup emit progress 1	inside an operation
R
cat >"$T/refuse.sh" <<'S'
mkdir "$FLOWSUP_ARTIFACTS/dir"; : > "$FLOWSUP_ARTIFACTS/empty"
flowsup emit context set /n 1
while IFS="$(printf '\t')" read -r status command text; do
	sh -c "$command" >"$T/out" 2>"$T/err" </dev/null
	got=$?
	[ $got = "$status" ] || echo "$command: exit $got"
	[ ! -s "$T/out" ] || echo "$command: wrote to standard output"
	grep -qF -- "$text" "$T/err" || { echo "$command: $(cat "$T/err")"; }
done <"$T/refusals"
flowsup emit context get
S
id=$(run_flow <<Y
plan: [{id: a, run: 'sh "$T/refuse.sh"'}]
Y
)
equal "each refusal has its status and its reason, and changes nothing" '{"n":1}' "$(output "$id" a)"

# ---- What is dropped ----
id=$(run_flow <<'Y'
concurrency: 1
plan:
  - {id: fails, run: 'flowsup emit context set /lost 1; false'}
  - {id: tries, retry: {attempts: 2, backoff: 10ms}, run: 'flowsup emit context append /tries $FLOWSUP_ATTEMPT; test $FLOWSUP_ATTEMPT = 2'}
Y
)
equal "a failed attempt leaves nothing" '{"tries":[2]}' "$(context_of "$id")"

# ---- What does not apply any more ----
id=$(run_flow <<Y
concurrency: 2
plan:
  - {id: a, run: 'flowsup emit context set /box "{}"; touch "$T/a"; until test -e "$T/b"; do sleep 0.02; done'}
  - {id: b, run: 'until test -e "$T/a"; do sleep 0.02; done; flowsup emit context set /box 1; touch "$T/b"'}
  - {id: c, needs: [a, b], run: 'flowsup emit context get /box'}
Y
)
matches "the later outcome wins" '^(1|\{\})$' "$(output "$id" c)"
id=$(run_flow <<Y
concurrency: 2
plan:
  - {id: base, run: 'flowsup emit context set /box "{}"'}
  - {id: slow, needs: [base], run: 'flowsup emit context set /box/in 1; touch "$T/s"; until test -e "$T/gone"; do sleep 0.02; done'}
  - {id: quick, needs: [base], run: 'until test -e "$T/s"; do sleep 0.02; done; flowsup emit context remove /box'}
  - {id: after, needs: [quick], run: 'touch "$T/gone"'}
Y
)
equal "a change that does not apply at the outcome fails the operation" '"class":"response"' "$(class_of "$id" slow)"

# ---- In a JSON response ----
id=$(run_flow <<'Y'
plan:
  - {id: a, response: json, run: "echo '{\"context\": [{\"op\": \"set\", \"pointer\": \"/r\", \"value\": 5}, {\"op\": \"append\", \"pointer\": \"/l\", \"value\": 6}]}'"}
  - {id: data, response: json, run: "echo '{\"context\": \"only a word\"}'"}
  - {id: text, run: "echo '{\"context\": [{\"op\": \"set\", \"pointer\": \"/t\", \"value\": 5}]}'"}
  - {id: bad, response: json, run: "echo '{\"context\": [{\"op\": \"remove\", \"pointer\": \"/none\"}]}'"}
Y
)
equal "a JSON response asks for the same" '{"r":5,"l":[6]}' "$(context_of "$id")"
equal "what it asks for wrongly fails it" '"class":"response"' "$(class_of "$id" bad)"
equal "other data is data" null "$(class_of "$id" data | cut -d: -f2)"

# ---- Size ----
id=$(run_flow <<Y
plan:
  - id: a
    run: |
      (printf '"'; head -c 1000000 /dev/zero | tr '\0' x; printf '"') > "$T/big"
      flowsup emit context set /big - < "$T/big" || exit 1
      flowsup emit context get /big > "$T/back"
      (printf '"'; head -c 2000000 /dev/zero | tr '\0' x; printf '"') | flowsup emit context set /bigger -
      echo \$?
Y
)
check "a megabyte goes there and back" eval '[ "$(cat "$T/back")" = "$(cat "$T/big")" ]'
equal "more is refused" 2 "$(output "$id" a)"

# ---- Many at once ----
id=$(run_flow <<'Y'
concurrency: 8
plan:
  - {id: p, foreach: [1,2,3,4,5,6,7,8], run: 'for i in 1 2 3 4 5; do flowsup emit context append /l 1 & done; wait'}
Y
)
equal "forty requests at once are all taken" 40 "$(context_of "$id" | grep -o 1 | wc -l)"

# ---- After the end ----
cat >"$T/late.sh" <<'S'
until test -e "$T/late"; do sleep 0.02; done
flowsup emit context set /late 1 2>"$T/late.err"
echo $? >"$T/late.rc"
S
id=$(run_flow <<Y
plan:
  - {id: a, leave: true, run: 'setsid sh "$T/late.sh" >/dev/null 2>&1 &'}
  - {id: b, needs: [a], run: 'touch "$T/late"; until test -s "$T/late.rc"; do sleep 0.02; done'}
Y
)
equal "the token is dead after the end of the operation" 4 "$(cat "$T/late.rc")"
matches "and the reason says so" "has ended" "$(cat "$T/late.err")"
equal "nothing of it is in the context" '{}' "$(context_of "$id")"

# ---- Without a worker ----
id=$("$FLOWSUP" start - <<Y
plan: [{id: a, run: 'until test -e "$T/dead"; do sleep 0.02; done; flowsup emit context set /x 1 2> "$T/spool.err"; echo \$? > "$T/spool.rc"; flowsup emit context get > "$T/get.out" 2>&1; echo \$? > "$T/get.rc"; sleep 1000'}]
Y
)
check "the worker is there" wait_until worker_is_ready "$id"
check "the operation runs" wait_until grep -q '"kind":"start"' "$FLOWSUP_HOME/runs/$id/attempts.log"
kill -KILL "$(worker_pid "$id")"
check "it has died" wait_until status_is "$id" crashed
touch "$T/dead"
check "the operation lives on and asks" wait_until test -s "$T/get.rc"
equal "its request is kept" 0 "$(cat "$T/spool.rc")"
matches "which it says" "the worker is gone: the request is kept in ops/a.1/spool" "$(cat "$T/spool.err")"
check "in a file of the attempt" grep -q '"verb":"context.set","value":{"pointer":"/x","value":1' "$FLOWSUP_HOME/runs/$id/ops/a.1/spool/"*.json
check "what cannot wait is refused" test "$(cat "$T/get.rc")" -ne 0
"$FLOWSUP" kill "$id" >/dev/null 2>&1

# ---- Values that are nested deep ----
id=$(run_flow <<'Y'
plan:
  - id: a
    run: |
      nest() { printf "%${1}s" | tr ' ' '['; printf "%${1}s" | tr ' ' ']'; }
      for n in 63 500 511; do
          flowsup emit context set "/d$n" "$(nest "$n")" 2>"$T/deep.$n"
          echo "$n $? $(flowsup emit context get "/d$n" 2>/dev/null | wc -c)"
      done
Y
)
equal "a value nested deep is taken, and given back, and one that is too deep is refused" \
	"63 0 127|500 0 1001|511 2 0|" "$("$FLOWSUP" logs "$id" a | tr '\n' '|')"
matches "with the reason" "may be nested 510 deep" "$(cat "$T/deep.511")"

plan
