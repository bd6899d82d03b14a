#!/usr/bin/env bash
# What an operation is given of its predecessors is the same, byte for byte, when their outcomes were
# carried over by a resume, or by two of them; and nothing at all where that cannot be had.
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

# ---- Where an output is not what it was ----
"$FLOWSUP" checkpoint verify "$run" >"$T/out"
equal "outputs are verified" "0 1" "$? $(grep -cE '^ +outputs +[1-9][0-9]* right$' "$T/out")"
ops=$FLOWSUP_HOME/runs/$run/ops
cp -a "$ops" "$T/ops"
spoils=(
	'echo "[6]" >"$file"'
	': >"$file"'
	'rm "$file"'
	'mv "$file" "$T/elsewhere"; ln -s "$T/elsewhere" "$file"'
)
for id in value none bytes list.1; do
	file=$ops/$id.1.out
	for spoil in "${spoils[@]}"; do
		eval "$spoil"
		"$FLOWSUP" checkpoint verify "$run" >"$T/out" 2>"$T/err"
		equal "$id ($spoil): verify says it" "4 1" "$? $(grep -cE "^ +outputs +(WRONG|MISSING) .*: ops/$id\\.1\\.out" "$T/out")"
		out=$("$FLOWSUP" resume "$run" --retry-failed --dry-run 2>/dev/null)
		equal "$id ($spoil): a resume would be refused" 4 $?
		matches "$id ($spoil): because of it" "$id +refused .*output" "$out"
		rm -f "$file" && cp -a "$T/ops/$id.1.out" "$file"
	done
done
echo 6 >"$ops/value.1.out"
"$FLOWSUP" checkpoint verify "$second" >"$T/out" 2>/dev/null
equal "also where it was carried over" "4 1" "$? $(grep -cE '^ +outputs +(WRONG|MISSING) .*/ops/value\.1\.out' "$T/out")"
out=$("$FLOWSUP" resume "$second" --retry-failed 2>&1)
equal "and nothing is given that it was not" 4 $?
matches "with what lifts that" "its output .* has .*--accept-missing-artifacts" "$out"
out=$("$FLOWSUP" resume "$second" --retry-failed --accept-missing-artifacts --drop-respawned --dry-run 2>&1)
equal "by which it runs again" "0 2" "$? $(grep -cE '^ *(value|sees) +will run' <<<"$out")"
rm "$ops"/{spoilt,fails,text,nothing}.1.out
cp -a "$T/ops/value.1.out" "$ops/value.1.out"
third=$("$FLOWSUP" fork "$second" --from sees --keep-failed --wait 2>"$T/err")
equal "what the response says byte for byte needs no output" "$wanted" "$(seen "$third")"

# ---- Of an older program, which recorded no digest of it ----
rm "$ops"/*.out
without_digests() { sed -i 's/,"output_as":\({[^}]*}\|"[^"]*"\)//g' "$FLOWSUP_HOME/runs/$run"/checkpoint.json*; }
without_digests
"$FLOWSUP" checkpoint verify "$run" >"$T/out"
equal "nothing is verified then" "0 1" "$? $(grep -cE '^ +outputs +0 right, [1-9][0-9]* not recorded' "$T/out")"
matches "a resume says so" "value +replayed +completed; output not verified" \
	"$("$FLOWSUP" resume "$run" --retry-failed --dry-run)"
fourth=$("$FLOWSUP" fork "$run" --from sees --keep-failed --wait 2>"$T/err")
equal "and the values are given in their forms" \
	'bytesa357277275\0b fails"itfailed"\n lines{"a":1}\n[2,3]\n"x"\n list_01\n list_1{"a":1.5}\n none nothingnull\n spoilt{"a":\n texttextwithoutend tried["high"]\n value[1,{"a":1.5}]\n word"someword"\n' \
	"$(seen "$fourth" | sed 's/ //' | paste -sd' ')"
plan
