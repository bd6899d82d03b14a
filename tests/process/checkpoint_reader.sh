#!/usr/bin/env bash
# A reader that was written from flowsup-checkpoint(5) alone (tests/lib/checkpoint_reader.py) and the
# program say the same of checkpoints: of values that are hard to write, of runs, of damaged copies.
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || { skip "python3 is not installed"; plan; }

reader() { python3 "$ROOT/tests/lib/checkpoint_reader.py" "$@"; }
# What the program makes of JSON values, a line each.
rewritten() {
	rm -rf "$T/v" && mkdir -m 700 "$T/v"
	{
		printf '{"version":2,"plan":[],"ops":{},"flow_context":{"all":['
		paste -sd, -
		printf ']}}'
	} >"$T/v/checkpoint.json"
	chmod 600 "$T/v/checkpoint.json"
	"$FLOWSUP" checkpoint export --json "$T/v" | sed -E 's/.*"all":\[(.*)\]\},"ops".*/[\1]/'
}
whole() { printf '[%s]\n' "$(paste -sd, "$1")"; }
state_of() { # RUN: as the reader prints it
	rm -rf "$T/export"
	"$FLOWSUP" checkpoint export "$1" "$T/export" >"$T/out" && reader state "$T/export"
}

# ---- Values ----

sed -n '/^\.It Sy read Ta Sy written/,/^\.El/{s/^\.It Li \(.*\) Ta Li \(.*\)/\1\t\2/p;}' "$ROOT/man/flowsup-checkpoint.5" |
	sed 's/\\-/-/g; s/\\(dq/"/g; s/\\(rs/\\/g' >"$T/table"
cut -f1 "$T/table" >"$T/values"
cut -f2 "$T/table" >"$T/written"
equal "the table of the page has its rows" 15 "$(wc -l <"$T/table")"
equal "the reader writes what the page says" "$(cat "$T/written")" "$(reader canonical <"$T/values")"
equal "and so does the program" "$(whole "$T/written")" "$(rewritten <"$T/values")"

python3 - >"$T/values" <<'P'
import json, random, struct
r = random.Random(1)
for e in range(-1074, 1024):
    for f in (1, 1 + 2**-52, 1 - 2**-53):
        print("%.17e" % (2.0**e * f))
for _ in range(20000):
    d = struct.unpack("<d", struct.pack("<Q", r.getrandbits(64)))[0]
    if d == d and abs(d) != float("inf"):
        print("%.17e" % d)
    print("%de%d" % (r.randrange(10**r.randrange(1, 18)), r.randrange(-320, 290)))
    print(r.randrange(-10**r.randrange(1, 60), 10**r.randrange(1, 60)))
for c in list(range(0x300)) + list(range(0xd700, 0xe100, 7)) + [0xfffd, 0xffff, 0x10000, 0x1f600, 0x10ffff]:
    print(json.dumps(chr(c)))
    if c > 0x7e and not 0xd800 <= c < 0xe000:
        print(json.dumps(chr(c), ensure_ascii=False))
P
rewritten <"$T/values" >"$T/theirs"
reader canonical <"$T/values" | paste -sd, - | sed 's/.*/[&]/' >"$T/mine"
check "many thousand numbers and characters are written the same" cmp "$T/mine" "$T/theirs"

# ---- Runs ----

cat >"$T/flow.yaml" <<'DOC'
name: hard
concurrency: 2
plan:
  - {id: numbers, response: json, run: "echo '[0.1,-0,-0.0,1E2,1e21,1e-7,5e-324,9007199254740993,-18446744073709551617,5.6843418860808015e-14]'"}
  - {id: texts, response: json, run: "printf '{\"b\":\"/\\\\\\\\/\\\\u007f\\\\ud800\\\\u00e9é😀\",\"a\":{\"\":[],\"x\":{}}}'"}
  - {id: lines, response: jsonl, run: "printf '1\\n1.0\\ntrue\\n'"}
  - {id: bytes, run: "printf 'a\\377\\000b\\tc\\r\\n'"}
  - {id: nothing, response: none, run: echo no}
  - {id: large, run: "head -c 1100000 /dev/zero | tr '\\\\0' y"}
  - {id: made, artifacts: [x], run: 'echo x >"$FLOWSUP_ARTIFACTS/x"'}
  - {id: fails, run: exit 3}
  - {id: each, needs: [lines], foreach: {op: lines, pointer: ""}, run: 'echo "$1"'}
DOC
same_verdict() { # NAME RUN
	reader verdict "$(dir_of "$2")" >"$T/mine"
	"$FLOWSUP" checkpoint verify --json "$2" >"$T/theirs"
	equal "$1: the same status" "$(json "$(cat "$T/theirs")" status)" "$(sed -E 's/.*"status": "([a-z_]*)".*/\1/' "$T/mine")"
	equal "$1: the same digests" "$(sed -E 's/.*"result_digests":\{"right":([0-9]+),"not_recorded":([0-9]+),"absent":\[\],"wrong":\[\]\}.*/\1 \2/' "$T/theirs")" \
		"$(sed -E 's/.*"right": ([0-9]+), "not_recorded": ([0-9]+), "wrong": 0\}/\1 \2/' "$T/mine")"
	equal "$1: the same state" "$(state_of "$2")" "$(reader state "$(dir_of "$2")")"
}
dir_of() { printf '%s' "$FLOWSUP_HOME/runs/$1"; }
for format in 3 2; do
	run=$("$FLOWSUP" start --checkpoint-format $format "$T/flow.yaml")
	check "a run of version $format ends" wait_until status_is "$run" failed
	same_verdict "version $format" "$run"
	matches "version $format: one response is in a file" '"files": 1,' "$(cat "$T/mine")"
	matches "version $format: with digests that are right" '"right": 1[0-9], "not_recorded": 0' "$(cat "$T/mine")"
	pair[format]=$(dir_of "$run")
done
run=$("$FLOWSUP" start --compact-records 3 "$T/flow.yaml")
check "a run that compacts ends" wait_until status_is "$run" failed
same_verdict "compacted" "$run"

# ---- Plans, and what stands beside a file ----

one='{"agent_id":"a","dep_indices":[],"run":"x"}'
n=0
while IFS='|' read -r fits plan_of rest; do
	n=$((n + 1))
	mkdir -m 700 "$T/plan$n"
	(umask 077 && printf '{%s,"flow_context":{},"plan":[%s],%s}' '"config":{}' "$plan_of" "$rest" >"$T/plan$n/checkpoint.json")
	(umask 077 && echo garbage >"$T/plan$n/checkpoint.json.journal") # means nothing beside an older file
	"$FLOWSUP" checkpoint verify --json "$T/plan$n" >"$T/theirs" 2>"$T/err"
	case $(cat "$T/theirs") in
	*'"verdict":"clean","problems":[]'*) said=yes ;;
	*'"status":"clean"'*'"verdict":"refused","problems":[{'*) said=no ;;
	*) said=$(cat "$T/theirs") ;;
	esac
	equal "plan $n: what the page says" "$fits" "$(reader plan "$T/plan$n")"
	equal "plan $n: what the program says" "$fits" "$said"
done <<-END
	yes|$one|"version":2,"ops":{}
	no||"version":2,"ops":{}
	no|{"agent_id":"","dep_indices":[],"run":"x"}|"version":2,"ops":{}
	no|$one,$one|"version":2,"ops":{}
	no|{"agent_id":"a","dep_indices":[0],"run":"x"}|"version":2,"ops":{}
	no|{"agent_id":"a","dep_indices":[-1],"run":"x"}|"version":2,"ops":{}
	no|$one,{"agent_id":"b","dep_indices":[2],"run":"x"}|"version":2,"ops":{}
	no|$one,{"agent_id":"b","dep_indices":[0,0],"run":"x"}|"version":2,"ops":{}
	no|{"agent_id":"b","dep_indices":[1],"run":"x"},{"agent_id":"a","dep_indices":[0],"run":"x"}|"version":2,"ops":{}
	no|$one|"version":2,"ops":{"z":{"agent_id":"z","status":"failed","response":1}}
	yes|$one|"version":1,"ops":{},"spawned":[{"node_id":"n","status":"completed","response":1}]
END

# ---- Damaged copies ----

# What runs of commands do not write: patches, requests, further tries, members that nobody knows.
generation=0123456789abcdef0123456789abcdef
mkdir -m 700 "$T/made"
cat >"$T/made/checkpoint.json" <<-END
	{"version":3,"generation":"$generation","journal_seq":0,"session_id":null,"prompt":"p","plan":[
	{"agent_id":"a","dep_indices":[],"run":"x","node_id":"na","artifacts":["x"]},{"agent_id":"b","dep_indices":[0]}],
	"config":{"strange":[1.0]},"max_spawn":3,"flow_context":{"list":[1,2],"a/b":{"~":null},"":{}},"ops":{},
	"spawned":[{"node_id":"n0","status":"pending","response":null,"parent_id":"na","instruction":"i","spawn_id":"a.s1"}]}
END
record() { printf '{"version":3,"generation":"%s","seq":%d,"kind":"%s","entry":%s,"flow_context":%s}\n' "$@"; }
{
	record $generation 1 op '{"agent_id":"a","status":"completed","response":{"k":[]},"artifacts":[{"path":"x","size":2}],"odd":{}}' \
		'{"patch":[{"op":"add","path":"/list/-","value":3},{"op":"add","path":"/list/0","value":{"x":0}},{"op":"remove","path":"/list/1"}]}'
	record $generation 2 spawned '{"node_id":"n0","status":"failed","response":"r","artifacts_expected":["y/z"],"attempts":2}' \
		'{"patch":[{"op":"replace","path":"/a~1b/~0","value":[true]},{"op":"add","path":"/a~1b/-","value":"-"},{"op":"replace","path":"/","value":0}]}'
	record $generation 3 spawned '{"node_id":"n1","status":"completed","response":7,"escalated_from":"n0","parent_id":"n0"}' null
	record $generation 4 op '{"agent_id":"b","status":"failed","response":null,"error":{"class":"exit","code":3}}' \
		'{"patch":[{"op":"replace","path":"","value":{"whole":{}}},{"op":"add","path":"/whole/new","value":1e2}]}'
	record ${generation//0/f} 1 op '{"agent_id":"b","status":"failed","response":null}' null
} >"$T/made/checkpoint.json.journal"
equal "patches: the same state" '{"whole":{"new":100.0}}' "$(reader state "$T/made" | sed -E 's/.*"flow_context":(.*),"max_spawn".*/\1/')"
"$FLOWSUP" checkpoint verify "$T/made" >"$T/out" 2>"$T/err"
equal "what was added without an operation is refused" 4 $?
for target in "$FLOWSUP checkpoint export $T/made $T/exported" "$FLOWSUP checkpoint export $T/made $T/exported2 --checkpoint-format 2"; do
	$target >"$T/out" 2>"$T/err"
	equal "its export: with the verdict on it" 4 $?
done
equal "and it holds the same" "$(reader state "$T/made")" "$(reader state "$T/exported")"
check "so does version 2, whose readers know no node ids" eval \
	'reader state "$T/exported2" | grep -q "\"flow_context\":{\"whole\":{\"new\":100.0}}"'

pair[4]=$T/made
mkdir "$T/copies"
for which in 3 2 4; do
	reader compare "$FLOWSUP" "${pair[which]}" "$T/copies" 1 "${CHECKPOINT_READER_COPIES:-120}" >"$T/compared"
	equal "copies of pair $which: of each they say the same" 0 $?
	grep '^#' "$T/compared"
	note "pair $which: $(tail -n 1 "$T/compared")"
done
plan
