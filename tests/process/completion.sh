#!/usr/bin/env bash
# Completions: what the program offers for a line, from its tables and the state directory, quick and
# silent without one; and that bash, zsh and fish, with a real line editor each, show it.
# shellcheck source=tests/process/lib.sh
. "$(dirname "$0")/lib.sh"
PATH=$BUILD/bin:$PATH
mkdir -p "$T/work/.flowsup/playbooks" && cd "$T/work" || exit 1
for shell in bash zsh fish; do flowsup completion $shell >$shell || exit 1; done

# offers WORD...: what the last one may become, on one line.
offers() { flowsup completion words -- "$@" 2>&1 | cut -f1 | paste -sd' '; }

# ---- Options are those of the help ----
offers '' | tr ' ' '\n' >commands
while read -r command; do
	[ -z "$(offers "$command" -)" ] || echo "$command"
	offers "$command" '' | tr ' ' '\n' | sed -n "s/^[a-z][a-z]*\$/$command &/p"
done <commands | while read -r command; do
	# shellcheck disable=SC2086 # a command may be two words
	flowsup help --all $command >help 2>/dev/null && grep -q "^usage: flowsup $command" help || continue
	# shellcheck disable=SC2086
	offers $command - | tr ' ' '\n' | grep -v '^-h$' | sed "s/^/$command\t/" >>options
	grep -oE '(^  -[a-zA-Z0-9], |^ +|  )--[a-z-]+' help | tr -d ' ' | tr , '\n' | sed "s/^/$command\t/" >>options.help
done
check "many options are offered" test "$(wc -l <options)" -gt 150
# -h stands for --help, which is said once for all.
equal "those of the help" "" "$(diff <(sort options) <(sort options.help) | head -3)"

# ---- Without a database ----
equal "no database: no ids" "@last @last-failed" "$(offers show '')"
equal "nor operations" "" "$(offers logs @last '')"
equal "nor is one made" "" "$(ls "$FLOWSUP_HOME" 2>&1 | grep -v 'No such')"

# ---- With one ----
cat >flow.yaml <<'FLOW'
name: named
plan: [{id: first, run: 'true'}, {id: second.part, run: 'true'}]
FLOW
cp flow.yaml .flowsup/playbooks/review.yaml
cat >.flowsup/playbooks/argued.yaml <<'FLOW'
args:
  name: {type: string, help: what it is called}
  fast: {type: boolean, default: false}
  count: {type: integer, default: 1}
plan: [{id: first, run: 'true'}]
FLOW
mkfifo never
mkdir "$T/bin" && printf '#!/bin/sh\n' | tee "$T/bin/named-program" >own-program && chmod +x "$T/bin/named-program" own-program
PATH=$T/bin:$PATH
old=$(flowsup start --name other -- true) || exit 1
id=$(flowsup start flow.yaml) || exit 1
flowsup wait "$old" "$id"
flowsup queue set nightly --slots 2
flowsup supervisor stop --all
printf 'plan: [{id: first, gate: approve, run: "true"}, {id: fine, needs: [first], run: "true"}]\n' >gated.yaml
gated=$(flowsup start --home "$T/gated" gated.yaml) || exit 1
wait_until eval 'flowsup waiting --home "$T/gated" | grep -q first'
flowsup start --home "$T/broken" --wait -- true >/dev/null 2>&1
resumed=$(flowsup start --home "$T/broken" --wait -- false 2>/dev/null)
failed=$(flowsup resume --home "$T/broken" --retry-failed --wait "$resumed" 2>/dev/null)
# Words of the line, "|", what is offered for the last one.
while IFS='|' read -r line wanted; do
	read -ra words <<<"$line."
	words[${#words[@]} - 1]=${words[${#words[@]} - 1]%.}
	read -r wanted <<<"$wanted"
	equal "flowsup $line" "$wanted" "$(offers "${words[@]}")"
done <<LINES
resu|resume
--home $T/none sho|show
list --st|--status
list --status |queued starting running paused completed failed timed_out cancelled crashed
list --status=f|--status=failed
list -s c|completed cancelled crashed
graph --format |text dot mermaid svg
start --if-running=s|--if-running=skip
start --queue |default nightly
start --events |
queue |list set
queue set n|nightly
show 2|$id $old
show @l|@last @last-failed
show $id |
show --home $T/none 2|
--home $T/none show 2|
wait $id 2|$id $old
logs $id |first second.part
logs @last |first second.part
logs @last s|second.part
logs --attempt 1 $id s|second.part
logs nonsense |
approve --home $T/gated $gated f|first
ctl approve --home $T/gated @last f|first
approve $id |
approve |
deny |
approve --home $T/gated |@last $gated
kill --home $T/gated 2|$gated
kill 2|
stop 2|
watch 2|
resume --home $T/broken 2|$failed
resume 2|
fork $id --from |first second.part
fork $id --from=s|--from=second.part
msg @last --to |first second.part
checkpoint ver|verify
checkpoint export @l|@last @last-failed
checkpoint export @last |
ctl |pause stop resume msg approve deny status resolve
ctl pause @l|@last @last-failed
play r|review
play s|show
play show r|review
emit |context progress artifact spawn escalate
emit context |get set append remove
completion |bash zsh fish
help resu|resume
help ctl r|resume resolve
play argued --arg |name= fast= count=
play argued -a n|name=
play argued --arg=n|--arg=name=
play argued --arg fast=|fast=true fast=false
play argued --arg=fast=t|--arg=fast=true
play argued --arg count=|
play argued --arg name=|
start .flowsup/playbooks/argued.yaml --arg f|fast=
start --arg n|
start never --arg n|
LINES
check "of a run that is not there, also where one has almost its name, nothing is offered" \
	flowsup completion words -- logs @lst '' 2>/dev/null
equal "no name of a command is offered twice" "" "$(tr ' ' '\n' <<<"$(offers '')" | sort | uniq -d)"
for line in 'start ' 'check -- fl' 'checkpoint export @last ' 'watch --events ' '--home ' 'play argued --arg name=' \
	'start --arg name='; do
	read -ra words <<<"$line."
	words[${#words[@]} - 1]=${words[${#words[@]} - 1]%.}
	equal "flowsup $line: names of files" $'\tfiles' "$(flowsup completion words -- "${words[@]}")"
done
# What is a command of its own is told by how many of the words it has.
while IFS='|' read -r line wanted; do
	read -ra words <<<"$line."
	words[${#words[@]} - 1]=${words[${#words[@]} - 1]%.}
	equal "flowsup $line: a command of its own" $'\tcommand '"$wanted" "$(flowsup completion words -- "${words[@]}")"
done <<'LINES'
start -- |1
start -- ma|1
start --name a --wait -- sh fl|2
start -- sh -c -- |4
LINES
equal "completing starts no supervisor" "" "$(supervisors)"

# ---- fish ----
complete_fish() { fish --no-config -c "source ./fish; complete -C \"$1\"" 2>&1 | cut -f1 | head -5 | paste -sd' '; }
if command -v fish >/dev/null; then
	equal "fish: a command" "resume" "$(complete_fish 'flowsup resu')"
	equal "fish: second words" "verify" "$(complete_fish 'flowsup checkpoint ver')"
	equal "fish: run ids" "$id $old" "$(complete_fish 'flowsup show 2')"
	equal "fish: operations of that run" "first second.part" "$(complete_fish "flowsup logs $id ")"
	equal "fish: options" "--attempt" "$(complete_fish 'flowsup logs --att')"
	equal "fish: words of an option" "--status=failed" "$(complete_fish 'flowsup list --status=f')"
	equal "fish: a run and no more" "" "$(complete_fish "flowsup show $id 2")"
	equal "fish: files" "flow.yaml" "$(complete_fish 'flowsup start fl')"
	equal "fish: arguments" "name= fast= count=" "$(complete_fish 'flowsup play argued --arg ')"
	equal "fish: files of an argument" "name=flow.yaml" "$(complete_fish 'flowsup play argued --arg name=fl')"
	equal "fish: files of an option" "--events=flow.yaml" "$(complete_fish 'flowsup watch --events=fl')"
	equal "fish: a program" "named-program" "$(complete_fish 'flowsup start --name x -- named-p')"
	equal "fish: its files" "flow.yaml" "$(complete_fish 'flowsup start -- named-program a fl')"
	equal "fish: its own words" "resume" "$(complete_fish 'flowsup start -- flowsup resu')"
else
	skip "fish is not installed"
fi

# ---- bash and zsh: in a terminal, for their completion needs a line editor ----
tm() { tmux -f /dev/null -S "$T/tmux" "$@"; }
screen() { tm capture-pane -p -t z; }
shows() { screen | grep -qE -- "$1"; }
# The line editor waits: above the line stands the number that the shell was given last.
prompt() { [ "$(screen | grep -v '^ *$' | tail -n 2 | sed 's/ *$//' | paste -sd' ')" = "$number >" ]; }
# try TEXT REGEX: TEXT and a tab, until the screen shows it.
try() {
	number=$((number + 1))
	tm send-keys -t z C-u
	tm send-keys -t z -l "clear; n=$number"
	tm send-keys -t z Enter
	wait_until prompt && tm send-keys -t z -l "$1" && tm send-keys -t z Tab && wait_until shows "$2"
}
# all_in SHELL COMMAND RCFILE: the shell, begun by a command, reads that file first.
all_in() {
	tm new-session -d -s z -x 150 -y 40 "exec $2"
	number=0
	tm send-keys -t z -l "source ./$3; clear; n=0"
	tm send-keys -t z Enter
	wait_until prompt
	check "$1: a command" try 'flowsup resu' '^> flowsup resume *$'
	check "$1: second words" try 'flowsup checkpoint ver' '^> flowsup checkpoint verify *$'
	check "$1: options" try 'flowsup logs --att' '^> flowsup logs --attempt'
	check "$1: words of an option" try 'flowsup list --status f' '^> flowsup list --status failed *$'
	check "$1: also behind =" try 'flowsup list --status=f' '^> flowsup list --status=failed *$'
	check "$1: =, and nothing more yet" try 'flowsup start --durability=' 'full .*relaxed'
	# As much of it as tells it from the other one.
	n=17
	while [ "${old:0:n}" = "${id:0:n}" ]; do n=$((n + 1)); done
	check "$1: run ids" try "flowsup show ${old:0:n}" "^> flowsup show $old"
	check "$1: of the state directory that is named" try "flowsup --home $T/home show ${old:0:n}" "^> flowsup .* $old"
	check "$1: the latest run" try 'flowsup show @l' '^> flowsup show @last'
	check "$1: where a file would do" try 'flowsup checkpoint export @l' '^> flowsup checkpoint export @last'
	check "$1: operations of that run" try "flowsup logs $id sec" "^> flowsup logs $id second.part"
	check "$1: and of the latest" try "flowsup logs @last sec" "^> flowsup logs @last second.part"
	check "$1: and for approve" try "flowsup approve --home $T/gated $gated fir" "^> flowsup approve --home $T/gated $gated first"
	check "$1: behind a quoted word" try "flowsup start --name 'a b=c' --queue n" "--queue nightly"
	check "$1: a file" try "flowsup start fl" '^> flowsup start flow.yaml'
	check "$1: a program" try "flowsup start --name x -- named-p" '^> flowsup start --name x -- named-program *$'
	check "$1: a program by its path" try "flowsup start -- ./own-p" '^> flowsup start -- ./own-program *$'
	check "$1: its files" try "flowsup start -- named-program a fl" '^> flowsup start -- named-program a flow.yaml *$'
	check "$1: a file behind =" try "flowsup watch --events=fl" '^> flowsup watch --events=flow.yaml'
	check "$1: arguments of a playbook" try "flowsup play argued --arg na" '^> flowsup play argued --arg name=$'
	check "$1: and their values" try "flowsup play argued --arg fast=t" '^> flowsup play argued --arg fast=true *$'
	check "$1: which may be files" try "flowsup play argued --arg name=fl" '^> flowsup play argued --arg name=flow.yaml'
	tm kill-session -t z
}
command -v tmux >/dev/null || skip "tmux is not installed"
if command -v tmux >/dev/null; then
	# Else the server leaves with the first shell, while the second one is asked of it.
	tm new-session -d -s stays 'exec sleep 100000'
	# One tab shows what there is to choose from.
	printf '%s\n' "PS1='\$n"$'\n'"> '" 'bind "set show-all-if-ambiguous on"' "source $T/work/bash" >bashrc
	all_in bash 'bash --noprofile --norc -i' bashrc
fi
if command -v zsh >/dev/null && command -v tmux >/dev/null; then
	printf '%s\n' "setopt promptsubst; PS1='\$n"$'\n'"> '" "autoload -U compinit; compinit -D -u; source $T/work/zsh" >zrc
	all_in zsh 'zsh -f -i' zrc
else
	skip "zsh or tmux is not installed"
fi
! command -v tmux >/dev/null || tm kill-server
flowsup supervisor stop --all --home "$T/gated" 2>/dev/null
plan
