#!/usr/bin/env bash
# Playbooks and arguments: where they are found, what is said of them, what a run keeps of them.
. "$(dirname "$0")/lib.sh"
export XDG_CONFIG_HOME=$T/config
mkdir -p "$T/here/.flowsup/playbooks" "$T/config/flowsup/playbooks"
cd "$T/here" || exit 1

cat >"$T/config/flowsup/playbooks/greet.yaml" <<'Y'
prompt: nobody
args:
  who: {help: whom to greet}
  times: {type: integer, default: 2}
  loud: {type: boolean, default: false}
plan:
  - {id: say, exec: [echo, '{{args.who}}', '{{args.times}}', '{{args.loud}}', '{{prompt}}']}
  - {id: env, needs: [say], env: {WHO: '{{args.who}}'}, run: 'echo "$WHO"; exit 3'}
Y
echo 'plan: [{id: a, run: exit 9}]' >.flowsup/playbooks/here.yaml
echo 'plan: [{id: a, run: true}]' >"$T/config/flowsup/playbooks/here.yaml"
echo 'plan: 5' >.flowsup/playbooks/broken.yaml

# ---- Finding ----
list=$("$FLOWSUP" play list)
matches "list names arguments, optional ones in brackets" 'greet +who \[times\] \[loud\] ' "$list"
matches "the nearest place counts" 'here +.flowsup/playbooks/here.yaml' "$list"
equal "a hidden one is not shown" 1 "$(grep -c '^here ' <<<"$list")"
matches "a broken one says why" 'broken +broken: .*broken.yaml:1:7: "plan" must be' "$list"
matches "installed ones are found" 'backup +from to \[keep\]' "$list"
matches "JSON knows the hidden one" "\"path\":\"$T/config/flowsup/playbooks/here.yaml\",\"hidden\":true" \
	"$("$FLOWSUP" play list --json)"
matches "and the arguments" '"arguments":\[\{"name":"who","type":"string","required":true,' "$("$FLOWSUP" play list --json)"
cp .flowsup/playbooks/here.yaml .flowsup/playbooks/twice.yaml
echo '{"plan": [{"id": "a", "run": "true"}]}' >.flowsup/playbooks/twice.json
matches "two of one name are marked" 'twice +cannot be played: .flowsup/playbooks/twice.yaml has the same name +.flowsup/playbooks/twice.json' "$("$FLOWSUP" play list)"
equal "both" 2 "$("$FLOWSUP" play list | grep -c '^twice .*cannot be played')"
equal "also for programs" 2 "$("$FLOWSUP" play list --json | grep '"name":"twice"' | grep -c '"valid":false,.*"error":"two files could be the playbook')"
for verb in play "play show"; do
	# shellcheck disable=SC2086 # words are meant
	said=$("$FLOWSUP" $verb twice 2>&1)
	matches "as $verb refuses them" 'two files could be.*hint: flowsup start (--dry-run )?.flowsup/playbooks/twice.json$' "$said"
	# shellcheck disable=SC2086
	said=$("$FLOWSUP" $verb ./.flowsup/playbooks/here.yaml 2>&1)
	matches "$verb takes no path: start does" 'hint: flowsup start (--dry-run )?./.flowsup/playbooks/here.yaml$' "$said"
done
hint_of() { "$FLOWSUP" "$@" 2>&1 >/dev/null | sed -n 's/^hint: //p'; }
equal "what was only to be shown is not started by its hint" "flowsup start --dry-run ./.flowsup/playbooks/here.yaml" \
	"$(hint_of play show ./.flowsup/playbooks/here.yaml)"
equal "neither is a dry run" "flowsup start .flowsup/playbooks/twice.json --arg 'a=b c' --dry-run" \
	"$(hint_of play twice --arg 'a=b c' --dry-run)"
rm .flowsup/playbooks/twice.*

# ---- Of the name of a command of play ----
echo '{args: {n: {}}, plan: [{id: a, run: "true"}]}' >.flowsup/playbooks/list.yaml
matches "one that is called list is shown with the way to start it" '^    ?flowsup start .flowsup/playbooks/list.yaml --arg n=|flowsup start .flowsup/playbooks/list.yaml --arg n=' \
	"$("$FLOWSUP" play show list)"
matches "and the list says that its name does not" 'list +n +play list is another command: started by its path' "$("$FLOWSUP" play list)"
rm .flowsup/playbooks/list.yaml

# ---- Of a name that wants quotes, and of one that leads nowhere ----
echo '{plan: [{id: a, run: "true"}]}' >".flowsup/playbooks/sp ace.yaml"
matches "usage can be pasted" "^flowsup play 'sp ace' " "$("$FLOWSUP" play show 'sp ace' | grep -o 'flowsup play .*')"
ln -s gone.yaml .flowsup/playbooks/dang.yaml
for verb in "play show dang" "play dang --help" "play dang"; do
	# shellcheck disable=SC2086
	matches "$verb: the link leads nowhere" 'dang.yaml leads nowhere: it is a link to gone.yaml' "$("$FLOWSUP" $verb 2>&1)"
	# shellcheck disable=SC2086
	equal "$verb: it is not suggested" "ls -l .flowsup/playbooks/dang.yaml" "$(hint_of $verb)"
done
rm ".flowsup/playbooks/sp ace.yaml" .flowsup/playbooks/dang.yaml

# ---- What can be read, and is not started ----
cat >.flowsup/playbooks/shell.yaml <<'Y'
args: {n: {default: x}}
roles: {boss: {provider: sh}}
planner: {assignee: boss, instruction: "echo {{args.n}}"}
Y
{ echo plan: && for i in {1..201}; do echo "- {id: op$i, run: 'true'}"; done; } >.flowsup/playbooks/wide.yaml
for each in "shell:templates are never put into shell text" "wide:the plan has 201 operations; more than 200 must be asked for"; do
	name=${each%%:*} why=${each#*:}
	"$FLOWSUP" check ".flowsup/playbooks/$name.yaml" >/dev/null 2>"$T/err"
	equal "$name: check refuses it" 2 $?
	matches "$name: with the reason" "$why" "$(cat "$T/err")"
	matches "$name: play does" "$why; nothing was started|$why" "$("$FLOWSUP" play "$name" 2>&1)"
	matches "$name: list says so" "$name +broken: .*$why" "$("$FLOWSUP" play list)"
	matches "$name: for programs too" "\"valid\":false,\"error\":\".*$why" \
		"$("$FLOWSUP" play list --json | grep "\"name\":\"$name\"")"
	"$FLOWSUP" play show "$name" >"$T/out" 2>"$T/err"
	equal "$name: show shows it" "0 .flowsup/playbooks/$name.yaml: " "$? $(head -1 "$T/out" | grep -o '^.*: ')"
	matches "$name: and tells the reason" "$why" "$(cat "$T/err")"
	matches "$name: as a member for programs" "\"valid\":false,\"error\":\".*$why" "$("$FLOWSUP" play show "$name" --json)"
	matches "$name: doctor tells it" "warning +playbook +.*$why" "$("$FLOWSUP" doctor 2>&1 | sed -e :a -e '$!N;s/\n  */ /;ta' -e 'P;D')"
done
"$FLOWSUP" play wide --max-ops 201 -n >/dev/null 2>&1
equal "with leave the many are played" 0 $?
rm .flowsup/playbooks/{shell,wide}.yaml
equal "what can be played is valid" true "$(json "$("$FLOWSUP" play show greet --json)" valid)"
said=$("$FLOWSUP" play gret 2>&1)
equal "an unknown name is refused" 2 $?
matches "with the nearest" 'hint: flowsup play greet$' "$said"
equal "of a dry run another one" "flowsup play greet --dry-run --arg 'who=a b'" "$(hint_of play gret --dry-run --arg 'who=a b')"
equal "of a look another look" "flowsup play show greet" "$(hint_of play show gret)"
equal "with all that was given" "flowsup play --name x greet --wait hello" "$(hint_of play --name x gret --wait hello)"
equal "a second word may be meant" "flowsup play list" "$(hint_of play lst)"
help=$("$FLOWSUP" play greet --help)
matches "help is from the document" 'flowsup play greet --arg who=... \[--arg times=...\]' "$help"
matches "with types, defaults and meanings" 'who +string +must be given +whom to greet' "$help"
matches "show draws it" 'say' "$("$FLOWSUP" play show greet)"
matches "show --json lists arguments" '"name":"times","type":"integer","required":false,"default":2' \
	"$("$FLOWSUP" play show greet --json)"

# ---- Arguments ----
said=$("$FLOWSUP" play greet 2>&1)
equal "a missing argument is refused" 2 $?
matches "with its meaning" 'the argument who \(string\) is missing: whom to greet' "$said"
said=$("$FLOWSUP" play greet --arg who=x --arg times=few 2>&1)
matches "a value must fit its type" 'argument times: "few" is no integer' "$said"
said=$("$FLOWSUP" play greet --arg who=x --arg wo=y 2>&1)
matches "an unknown one is refused" 'no argument "wo"' "$said"
said=$("$FLOWSUP" play greet --arg wo=y --arg times=few 2>&1)
equal "all that is wrong with them is told at once" "flowsup: the flow has no argument \"wo\"
flowsup: the argument who (string) is missing: whom to greet
flowsup: argument times: \"few\" is no integer
flowsup: the arguments have 3 problems; nothing was started" "$(grep ^flowsup: <<<"$said")"
matches "and programs get a list" '"problems":\[[^]]*"wo.*who.*times' "$("$FLOWSUP" play greet --arg wo=y --arg times=few --json 2>&1)"
said=$("$FLOWSUP" start --arg a=b -- true 2>&1)
matches "a command has none" 'arg goes with a document' "$said"
check "nothing was made of them" [ ! -e "$FLOWSUP_HOME/runs" ]

run=$("$FLOWSUP" play greet --arg 'who=$(touch x); a b' --arg loud=true world --label k=v)
"$FLOWSUP" wait "$run" >/dev/null 2>&1
equal "its outcome is the run's" 1 $?
equal "values come where templates are" '$(touch x); a b 2 true world' \
	"$(cat "$FLOWSUP_HOME/runs/$run/ops/say.1.out")"
equal "and in the environment, as they are" '$(touch x); a b' "$(cat "$FLOWSUP_HOME/runs/$run/ops/env.1.out")"
equal "kind and name" 'play|greet' "$(sql "select kind, name from sessions where run_id = '$run'")"
play=$(sql "select id from plays where name = 'greet'")
equal "the play has a row" '{"who":"$(touch x); a b","times":2,"loud":true}' "$(sql 'select arguments from plays')"
matches "its id finds the run" "\"id\":\"$run\"" "$("$FLOWSUP" show "$play" --json)"
matches "the checkpoint keeps both" '"arguments":\{"who":"\$\(touch x\); a b","times":2,"loud":true\},"playbook":"greet"' \
	"$("$FLOWSUP" checkpoint export "$run" --json)"

# ---- A resume takes them from the checkpoint ----
rm "$T/config/flowsup/playbooks/greet.yaml"
again=$("$FLOWSUP" resume "$run" --retry-failed 2>/dev/null)
"$FLOWSUP" wait "$again" >/dev/null 2>&1
equal "a resume has the same values" '$(touch x); a b' "$(cat "$FLOWSUP_HOME/runs/$again/ops/env.1.out")"

# ---- An installed one ----
mkdir "$T/from" "$T/to" && echo data >"$T/from/file"
touch "$T/to/20200101T000000.tar.gz" "$T/to/20200102T000000.tar.gz"
"$FLOWSUP" play backup --arg from="$T/from" --arg to="$T/to" --arg keep=2 --wait >"$T/id" 2>/dev/null
equal "backup completes" 0 $?
equal "the newest stay" 2 "$(ls "$T/to" | wc -l)"
check "the oldest is gone" [ ! -e "$T/to/20200101T000000.tar.gz" ]
equal "the archive holds the directory" data \
	"$(tar -xOzf "$(ls "$T"/to/*.tar.gz | tail -1)" ./file)"

plan
