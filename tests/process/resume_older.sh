#!/usr/bin/env bash
# resume of checkpoints of versions 2 and 1, of runs here and of directories that came from elsewhere:
# migrated into the new run with every member, the source untouched, or refused.
# shellcheck source=lib_resume.sh
. "$(dirname "$0")/lib_resume.sh"

silent() { "$@" >"$T/out" 2>&1; }
sums() { find "$1" -type f | sort | xargs cksum; }
# state RUN EXPRESSION: of the exported checkpoint, in Perl, with the state in $s.
state() {
	"$FLOWSUP" checkpoint export --json "$1" | perl -MJSON::PP -e '
		local $/; my $s = decode_json(<STDIN>); my $v = eval $ARGV[0]; die $@ if $@;
		print ref $v ? JSON::PP->new->canonical->encode($v) : $v // "null", "\n"' "$2"
}

# ---- A run with version 2 goes on as one with version 3 does ----

cat >flow.json <<-'DOC'
	{"name": "flow", "plan": [
	 {"id": "one", "run": "echo one >>count; echo answer"},
	 {"id": "big", "run": "echo big >>count; head -c 2000000 /dev/zero | tr '\\0' x"},
	 {"id": "slow", "needs": ["one", "big"], "grace": "1s",
	  "run": "echo slow >>count; until [ -e go ]; do sleep 0.05; done; cat \"$FLOWSUP_DEP_one\""},
	 {"id": "last", "needs": ["slow", "big"],
	  "run": "echo last >>count; cat \"$FLOWSUP_DEP_slow\"; wc -c <\"$FLOWSUP_DEP_big\""}]}
DOC
for format in 3 2; do
	rm -f count go
	first=$("$FLOWSUP" start --checkpoint-format "$format" flow.json)
	wait_until has_line slow
	crash "$first"
	before=$(sums "$(dir_of "$first")")
	second=$("$FLOWSUP" resume "$first" 2>"$T/err")
	equal "version $format is resumed" 0 $?
	slow_again() { [ "$(times slow)" -ge 2 ]; }
	wait_until slow_again
	row=$("$FLOWSUP" list --json | grep -F "\"id\":\"$second\"")
	equal "what is replayed is done from the start" 2 "$(json "$row" "done")"
	crash "$second"
	touch go
	third=$("$FLOWSUP" resume "$second" --wait 2>"$T/err")
	equal "and once more, to the end" 0 $?
	equal "the source is untouched" "$before" "$(sums "$(dir_of "$first")")"
	equal "the new run writes version 3" 3 \
		"$(json "$(head -c 40 "$(dir_of "$third")/checkpoint.json")" version)"
	equal "its sessions are known" \
		"[\"$(json "$("$FLOWSUP" show "$first" --json)" session_id)\",\"$(json "$("$FLOWSUP" show "$second" --json)" session_id)\"]" \
		"$(state "$third" '$s->{config}{earlier_sessions}')"
	state "$third" '+{map {$_ => $s->{ops}{$_}{response}} qw(one slow last)}' >"$T/results.$format"
	state "$third" '$s->{ops}{big}{response}{size}' >>"$T/results.$format"
	equal "what was saved ran once" "1 1" "$(times one) $(times big)"
	equal "node ids stay" "$(state "$second" '[map {$_->{node_id}} @{$s->{plan}}]')" \
		"$(state "$third" '[map {$_->{node_id}} @{$s->{plan}}]')"
	check "its checkpoint verifies" silent "$FLOWSUP" checkpoint verify "$third"
done
equal "with the same results" "$(cat "$T/results.3")" "$(cat "$T/results.2")"

# ---- A predecessor's file, by its path ----

legacy() { # DIRECTORY VERSION-MEMBER SPAWNED ROLES PLAN-EXTRA
	mkdir -p "$1" && chmod 700 "$1"
	cat >"$1/checkpoint.json" <<-END
		{$2"session_id":"s-1","prompt":"look into it","plan":[
		{"task":"echo looked >>count; echo found","assignee":"researcher","inputs":[],"exit_criteria":null,"depends_on":[],"modes":[],"agent_id":"researcher","dep_indices":[]},
		{"task":"echo wrote >>count; cat \"\$FLOWSUP_DEP_researcher\"","assignee":"writer","inputs":["x"],"exit_criteria":"done","depends_on":["researcher"],"modes":["m"],"agent_id":"writer","dep_indices":[0]$5}],
		"flow_context":{"k":[1,1.0,{"deep":null}]},
		"ops":{"researcher":{"agent_id":"researcher","status":"completed","response":"found","extra":{"kept":1}}},
		"spawned":$3,
		"config":{"model_spec":"m-1","max_ops":0,"timeout":null,"roles":$4},"max_spawn":20,"odd":{"a":[2]}}
	END
	chmod 600 "$1/checkpoint.json"
}
roles='{"researcher":{"provider":"sh"},"writer":{"provider":"sh"}}'

rm -f count
legacy old '"version":2,' '[]' "$roles" ''
before=$(sums old)
"$FLOWSUP" resume ./old --dry-run >"$T/out" 2>"$T/err"
equal "a dry run of a directory is accepted" 0 $?
matches "with what is replayed" 'researcher +replayed' "$(cat "$T/out")"
new=$("$FLOWSUP" resume ./old --wait 2>"$T/err")
equal "it is resumed" 0 $?
equal "only what was missing ran" "wrote" "$(cat count)"
equal "with the response of before" found "$(state "$new" '$s->{ops}{writer}{response}')"
equal "the source is untouched" "$before" "$(sums old)"
equal "unknown members are kept" '{"odd":{"a":[2]}}' "$(state "$new" '$s->{config}{v2_members}')"
equal "the session it came from too" '["s-1"]' "$(state "$new" '$s->{config}{earlier_sessions}')"
equal "those of an entry too" '{"kept":1}' "$(state "$new" '$s->{ops}{researcher}{extra}')"
equal "and of the plan" '["x"]done["m"]' "$(state "$new" '$s->{plan}[1]{inputs}')$(state "$new" \
	'$s->{plan}[1]{exit_criteria}')$(state "$new" '$s->{plan}[1]{modes}')"
equal "and of the config" "m-1 0 null" "$(state "$new" '$s->{config}{model_spec}') $(state "$new" \
	'$s->{config}{max_ops}') $(state "$new" '$s->{config}{timeout}')"
equal "the context is the same" '{"k":[1,1.0,{"deep":null}]}' "$(state "$new" '$s->{flow_context}' |
	sed 's/\[1,1,/[1,1.0,/')"
equal "the budget too" 20 "$(state "$new" '$s->{max_spawn}')"
matches "show knows its operations" 'writer +completed' "$("$FLOWSUP" show "$new")"
"$FLOWSUP" resume ./old 2>"$T/err"
equal "a directory is resumed once" 4 $?
matches "and the other is told the run it became" "already resumed, as run $new" "$(cat "$T/err")"

# Nothing is in the way of a member, whatever it is called; and the way back gives the file again.
rm -f count
legacy names '"version":2,"generation":"g","v2_members":[1],' '[]' "$roles" ''
sed -i 's/"config":{/"config":{"v2_members":{"mine":true},"earlier_sessions":"none",/' names/checkpoint.json
as_json() { perl -MJSON::PP -e 'local $/; print JSON::PP->new->canonical->encode(decode_json(<STDIN>))' <"$1/checkpoint.json"; }
mkdir -m 700 unassigned
cat >unassigned/checkpoint.json <<'END'
{"version":2,"session_id":"s-2","prompt":"x","plan":[{"agent_id":"a","dep_indices":[],"run":"true","assignee":null}],
"flow_context":{},"ops":{},"spawned":[],"config":{}}
END
chmod 600 unassigned/checkpoint.json
check "a command whose assignee is null is one without" silent "$FLOWSUP" checkpoint verify unassigned
matches "and runs" 'a +will run' "$("$FLOWSUP" resume unassigned --dry-run 2>&1)"
check "a file with members of such names is migrated" silent "$FLOWSUP" checkpoint migrate names migrated
check "and exported, to version 3" silent "$FLOWSUP" checkpoint export names third
check "and to version 2" silent "$FLOWSUP" checkpoint export names again --checkpoint-format 2
equal "which says the same" "$(as_json names)" "$(as_json again)"
check "back from version 3" silent "$FLOWSUP" checkpoint export migrated back --checkpoint-format 2
equal "it says the same" "$(as_json names)" "$(as_json back)"
new=$("$FLOWSUP" resume ./names --wait 2>"$T/err")
equal "and it is resumed" 0 $?
equal "with them" '{"config":{"v2_members":{"mine":true}},"generation":"g","odd":{"a":[2]},"v2_members":[1]}' \
	"$(state "$new" '$s->{config}{v2_members}' | sed 's/"mine":1/"mine":true/')"
equal "and the session behind what stood there" '["none","s-1"]' "$(state "$new" '$s->{config}{earlier_sessions}')"

# ---- Keys of idempotence, of a session that is none of ours ----

keyed() { # DIRECTORY VERSION-MEMBER SESSION
	mkdir -m 700 "$1"
	(umask 077 && printf '{%s"session_id":%s,"plan":[{"agent_id":"a","dep_indices":[],"run":"echo $FLOWSUP_IDEMPOTENCY_KEY"}],"flow_context":{},"ops":{}}' \
		"$2" "$3" >"$1/checkpoint.json")
}
key_of() { # DIRECTORY
	local new
	new=$("$FLOWSUP" resume "$1" --wait 2>"$T/err") && state "$new" '$s->{ops}{a}{response}'
}
key=$(printf '"old-1"' | b2sum | head -c 32)-a
keyed key.2 '"version":2,' '"old-1"'
keyed key.1 '"version":1,' '"old-1"'
"$FLOWSUP" checkpoint migrate ./key.2 key.3 >"$T/out"
cp -a key.3 key.moved
for name in key.2 key.1 key.3; do
	equal "$name: the key is made of the first session" "$key" "$(key_of "./$name")"
done
equal "in another state directory too" "$key" "$(FLOWSUP_HOME=$T/elsewhere key_of ./key.moved)"
keyed key.ours '"version":2,' '"0123456789abcdef0123456789abcdef"'
equal "one that is of our form it holds as it is" 0123456789abcdef0123456789abcdef-a "$(key_of ./key.ours)"

legacy unresolved '"version":2,' '[]' '{"researcher":{"provider":"sh"}}' ''
XDG_CONFIG_HOME=$T/config "$FLOWSUP" resume unresolved 2>"$T/err"
equal "a role that is not known refuses it" 4 $?
matches "by its name, and where one would be looked for" \
	"operation \"writer\".*\"writer\" is not known here: neither the checkpoint has it nor '$T/config/flowsup/roles'" "$(cat "$T/err")"
legacy absent '"version":2,' '[]' '{"researcher":{"provider":"sh"},"writer":{"provider":"gone"}}' ''
"$FLOWSUP" resume absent 2>"$T/err"
equal "a provider that is not there refuses it" 4 $?
matches "with the command that tells more" 'operation "writer".*there is no provider "gone".*hint: flowsup doctor' "$(tr '\n' ' ' <"$T/err")"
legacy near '"version":2,' '[]' '{"researcher":{"provider":"sh"},"writer":{"provider":"shh"}}' ''
"$FLOWSUP" resume near 2>"$T/err"
matches "also where one has a name like it" 'there is no provider "shh".*hint: flowsup doctor' "$(tr '\n' ' ' <"$T/err")"
round=0
for known in '{"writer":{"provider":"sh"}}' '{"researcher":{"provider":"gone"},"writer":{"provider":"sh"}}'; do
	rm -f count
	round=$((round + 1)); legacy settled.$round '"version":2,' '[]' "$known" ''
	"$FLOWSUP" resume ./settled.$round --wait >"$T/id" 2>"$T/err"
	equal "what has completed needs no role any more: $known" "0 wrote" "$? $(cat count)"
	legacy again.$round '"version":2,' '[]' "$known" ''
	sed -i 's/"status":"completed","response":"found"/"status":"failed","response":"found"/' again.$round/checkpoint.json
	"$FLOWSUP" resume ./again.$round --retry-failed >"$T/id" 2>"$T/err"
	equal "unless it is to run again" "4 wrote" "$? $(cat count)"
	matches "which is said" 'operation "researcher".*(is not known here|there is no provider)' "$(cat "$T/err")"
done

round=0
for version in '"version":1,' ''; do
	rm -f count
	name="version ${version:+1}${version:-none}"
	round=$((round + 1)); legacy "one.$round" "$version" '[]' "$roles" ''
	"$FLOWSUP" resume ./one.$round --wait >"$T/id" 2>"$T/err"
	equal "$name is read like version 2" "0 wrote" "$? $(cat count)"
	legacy "two.$round" "$version" \
		'[{"node_id":"n-1","status":"completed","response":"r","operation":"x"}]' "$roles" ''
	"$FLOWSUP" resume ./two.$round 2>"$T/err"
	equal "with spawned entries it is refused" 4 $?
	matches "and why" '1 operation was added .*version 1 does not hold what is needed to rebuild it' "$(cat "$T/err")"
	check "but it verifies" silent "$FLOWSUP" checkpoint verify "./two.$round"
	for format in 2 3; do
		"$FLOWSUP" checkpoint export --checkpoint-format $format "./two.$round" "./two.$round.$format" >"$T/id" 2>"$T/err"
		equal "and is exported as version $format" 0 $?
		"$FLOWSUP" checkpoint verify "./two.$round.$format" >"$T/out" 2>"$T/err"
		equal "which lacks what an entry of it must have" "4 1" "$? $(grep -c 'n-1: .*operation' "$T/out")"
		"$FLOWSUP" resume "./two.$round.$format" --dry-run >"$T/out" 2>"$T/err"
		equal "and is not resumed either" "4 1" "$? $(grep -c '^n-1 *refused' "$T/out")"
	done
done

witness='[{"node_id":"n-1","status":"completed","response":"r","operation":"x","escalated_from":"n-0"}]'
legacy splice '"version":2,' "$witness" "$roles" ''
"$FLOWSUP" resume splice 2>"$T/err"
equal "a splice witness without a guard refuses it" 4 $?
matches "with the report" 'unguarded_splice' "$(cat "$T/err")"
legacy newer '"version":4,' '[]' "$roles" ''
"$FLOWSUP" resume newer 2>"$T/err"
equal "an unknown version is refused" 4 $?
matches "as such" 'unknown_version' "$(cat "$T/err")"
legacy guard '"version":2,' '[]' "$roles" ',"odd_member":1'
"$FLOWSUP" resume guard 2>"$T/err"
equal "an unknown member of the plan is refused" 4 $?
equal "none of these made a run" 0 "$("$FLOWSUP" list --json | grep -c '"status":"queued"')"

# ---- Paths ----

rm -f count go
run=$("$FLOWSUP" start flow.json)
wait_until has_line slow
kill -KILL "$(worker_pid "$run")"
wait_until is_crashed "$run"
cp -a "$(dir_of "$run")" copy
"$FLOWSUP" resume copy 2>"$T/err"
equal "a copy whose operations still run is refused" 4 $?
matches "with the operation and its process" 'operation slow.*process [0-9]+' "$(cat "$T/err")"
FLOWSUP_HOME=$T/other "$FLOWSUP" resume "$(dir_of "$run")" 2>"$T/err"
equal "a run of another state directory is refused" 4 $?
matches "with the command for it" "resume --home $FLOWSUP_HOME $run" "$(cat "$T/err")"
touch go
ln -s "$(dir_of "$run")" link
new=$("$FLOWSUP" resume link --wait 2>"$T/err")
equal "a path of a run here stands for the run" 0 $?
equal "which has a successor then" "$new" "$(json "$("$FLOWSUP" show "$run" --json)" resumed_as)"
mkdir empty
"$FLOWSUP" resume ./empty 2>"$T/err"
equal "a directory without a checkpoint is said" 2 $?
"$FLOWSUP" resume ./nowhere 2>"$T/err"
equal "one that is not there too" 2 $?
"$FLOWSUP" resume ./old/checkpoint.json 2>"$T/err"
equal "and a file" 2 $?

plan
