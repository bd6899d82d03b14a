#!/usr/bin/env bash
# What an operation is given of its predecessors is the same, byte for byte, when their outcomes were
# carried over by a resume, or by two of them; and the recorded value in its form where the output is gone.
. "$(dirname "$0")/lib.sh"

mkdir "$T/w"
cd "$T/w" || exit 1
cat >f.yaml <<-'END'
	name: f
	roles: {low: {env: {WHO: low}, escalate_to: high}, high: {env: {WHO: high}}}
	plan:
	- {id: value, response: json, run: 'echo "[1,   {\"a\" : 1.50}]"'}
	- {id: word, response: json, run: 'echo "  \"some word\" "'}
	- {id: nothing, response: json, run: 'echo null'}
	- {id: lines, response: jsonl, run: 'echo "{\"a\" : 1}"; echo "[2, 3]"; echo "\"x\""'}
	- {id: none, response: none, run: 'echo something'}
	- {id: bytes, run: 'printf "a\377\000b"'}
	- {id: text, run: 'printf "text  without end"'}
	- {id: spoilt, response: json, run: 'echo "{\"a\" : "'}
	- {id: fails, response: json, run: 'echo "\"it failed\""; exit 3'}
	- {id: tried, assignee: low, response: json, run: 'echo "[ \"$WHO\" ]"; [ $WHO = high ]'}
	- {id: list, needs: [value], foreach: {op: value, pointer: ""}, response: json, run: 'echo " $1 "'}
	- id: sees
	  needs: [value, word, nothing, lines, none, bytes, text, {op: spoilt, on: always}, {op: fails, on: always}, tried, list]
	  run: |
	    env | sed -n 's/^FLOWSUP_DEP_\([^=]*\)=/\1 /p' | sort | while read -r name file; do
	      printf '%s %s\n' "$name" "$(od -An -c "$file" | tr -d ' \n')"
	    done
	- {id: bad, needs: [sees], run: '[ -e good ]'}
END
seen() { "$FLOWSUP" logs "$1" sees 2>/dev/null; }
run=$("$FLOWSUP" start f.yaml --wait 2>"$T/err")
wanted=$(seen "$run")
equal "a run gives all that has an output" \
	"bytes fails lines list_0 list_1 none nothing spoilt text tried value word" "$(cut -d' ' -f1 <<<"$wanted" | xargs)"
first=$("$FLOWSUP" fork "$run" --from sees --keep-failed --wait 2>"$T/err")
equal "what is carried over is given as it was" "$wanted" "$(seen "$first")"
second=$("$FLOWSUP" fork "$first" --from sees --keep-failed --wait 2>"$T/err")
equal "also when it is carried over once more" "$wanted" "$(seen "$second")"
"$FLOWSUP" checkpoint verify "$second" >/dev/null
equal "by a checkpoint that verifies" 0 $?

# ---- Where the outputs are gone ----
find "$FLOWSUP_HOME/runs/$run/ops" -name '*.out' -delete
third=$("$FLOWSUP" fork "$second" --from sees --keep-failed --wait 2>"$T/err")
equal "without the outputs the values are given in their forms" \
	'bytesa357277275\0b fails"itfailed"\n lines{"a":1}\n[2,3]\n"x"\n list_01\n list_1{"a":1.5}\n none nothingnull\n spoilt{"a":\n texttextwithoutend tried["high"]\n value[1,{"a":1.5}]\n word"someword"\n' \
	"$(seen "$third" | sed 's/ //' | paste -sd' ')"
plan
