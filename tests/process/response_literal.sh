#!/usr/bin/env bash
# What an operation says is what it says, also when it looks like what stands in a checkpoint for a response
# that was left in its file: nobody is given the file that it names.
. "$(dirname "$0")/lib.sh"

mkdir "$T/w"
cd "$T/w" || exit 1
echo "a stranger's secret" >"$T/stranger"
digest=blake2b:$(printf '%0128d' 0)
names() { printf '{"file":"%s","size":1,"digest":"%s"}' "$1" "$digest"; }
{
	cat <<-'END'
	name: f
	plan:
	- {id: secret, run: echo "another one's secret"}
	- {id: large, run: "head -c 1100000 /dev/zero | tr '\\0' y"}
	- {id: list, response: json, run: 'echo "{\"file\":\"x\",\"size\":[],\"digest\":\"blake2b:\",\"items\":[1]}"'}
	- {id: each, needs: [list], foreach: {op: list, pointer: /items}, run: 'echo "item $1"'}
	- {id: told, needs: [away], env: {VALUE: '{{ops.away.response}}'}, run: 'echo "$VALUE"'}
	- {id: none, needs: [{op: large, when: {pointer: /file, exists: true}}], run: echo asked}
	- {id: bad, needs: [sees, asks, told], run: '[ -e good ]'}
	END
	cat <<-END
	- {id: asks, needs: [{op: away, when: {pointer: /file, equals: '$T/stranger'}}], run: echo asked}
	- id: away
	  response: json
	  run: echo '$(names "$T/stranger")'
	- id: other
	  response: json
	  needs: [secret]
	  run: echo '$(names ops/secret.1.out)'
	- id: spaced
	  response: json
	  run: echo '$(names "$T/stranger" | sed 's/,/ , /g')'
	- id: failed
	  response: json
	  run: echo '$(names "$T/stranger")'; exit 3
	- id: text
	  run: echo '$(names "$T/stranger")'
	END
	cat <<-'END'
	- id: sees
	  needs: [secret, away, other, spaced, text, list, {op: failed, on: always}]
	  run: |
	    for id in away other spaced text list failed; do
	      eval "file=\$FLOWSUP_DEP_$id"
	      echo "$id $(cat "$file")"
	    done
	END
} >f.yaml
wanted="away $(names "$T/stranger")
other $(names ops/secret.1.out)
spaced $(names "$T/stranger" | sed 's/,/ , /g')
text $(names "$T/stranger")
list {\"file\":\"x\",\"size\":[],\"digest\":\"blake2b:\",\"items\":[1]}
failed $(names "$T/stranger")"
said() { "$FLOWSUP" logs "$1" "$2" 2>/dev/null; }
entry() { # RUN OP: of its checkpoint
	"$FLOWSUP" checkpoint export --json "$1" 2>/dev/null | python3 -c '
import json, sys
state = json.load(sys.stdin)
print(json.dumps(state["ops"].get(sys.argv[1]), separators=(",", ":")))' "$2"
}
right() { # NAME RUN
	equal "$1: those that need it are given what it said" "$wanted" "$(said "$2" sees)"
	equal "$1: a condition looks into it" asked "$(said "$2" asks)"
	equal "$1: a template has it" "$(names "$T/stranger")" "$(said "$2" told)"
	equal "$1: its items are found" "item 1" "$(said "$2" each.0)"
	equal "$1: no secret is given" 0 "$(cat "$FLOWSUP_HOME/runs/$2/ops/"{sees,asks,told}.*.out 2>/dev/null | grep -c "s secret")"
	matches "$1: it is marked" '"response_literal":true' "$(entry "$2" away)"
	equal "$1: of another one's file, too" 1 "$(entry "$2" other | grep -c '"response_literal":true')"
	equal "$1: and only it is" 0 "$(for op in secret large text sees; do entry "$2" $op; done | grep -c response_literal)"
	"$FLOWSUP" checkpoint verify --json "$2" >"$T/out" 2>&1
	equal "$1: verify looks for no such file" "0 1" "$? $(grep -c '"response_files":{"right":1,"not_recorded":0,"absent":\[\]' "$T/out")"
}
marked_of() { # DIRECTORY: of an export
	cat "$1"/checkpoint.json* | grep -o '"response_literal":true' | wc -l
}

for format in 3 2; do
	run=$("$FLOWSUP" start --checkpoint-format $format f.yaml)
	check "version $format: it ends" wait_until status_is "$run" failed
	right "version $format" "$run"
	first[format]=$run
done
run=${first[3]}
matches "a response that is in a file is what was said, and not what stands for it" \
	'"id":"none","state":"skipped".*its response has no /file' "$("$FLOWSUP" show --json "$run" | tr '\n' ' ' | grep -o '"id":"none".*')"

# ---- Other forms of the same checkpoint ----

"$FLOWSUP" checkpoint compact "$run" >"$T/out" 2>&1
equal "it is compacted" 0 $?
marks=$(marked_of "$FLOWSUP_HOME/runs/$run")
"$FLOWSUP" checkpoint export --checkpoint-format 2 "$run" "$T/two" >"$T/out" 2>&1
equal "as version 2 it keeps its marks" "$marks" "$(marked_of "$T/two")"
"$FLOWSUP" checkpoint migrate "$T/two" "$T/three" >"$T/out" 2>&1
equal "and back as version 3" "$marks" "$(marked_of "$T/three")"

# ---- Carried over ----

for format in 3 2; do
	fork=${first[format]}
	for op in sees asks told; do
		fork=$("$FLOWSUP" fork "$fork" --from $op --keep-failed --wait 2>"$T/err")
		right "version $format, done again from $op" "$fork"
	done
done
"$FLOWSUP" resume "$run" --retry-failed --dry-run >"$T/out" 2>&1
equal "a resume asks for no such file" "0 1" "$? $(grep -cE '^ *away +replayed' "$T/out")"
touch good
"$FLOWSUP" resume "$run" --keep-failed --wait >"$T/out" 2>&1
next=$(json "$("$FLOWSUP" show "$run" --json)" resumed_as)
right "resumed" "$next"

# ---- Of an older program, which had no mark ----

python3 - "$T/two/checkpoint.json" <<'P'
import json, sys
state = json.load(open(sys.argv[1]))
for entry in state["ops"].values():
    entry.pop("response_literal", None)
json.dump(state, open(sys.argv[1], "w"))
P
"$FLOWSUP" checkpoint verify --json "$T/two" >"$T/out" 2>&1
equal "what looks like a file is one" 4 $?
plan
