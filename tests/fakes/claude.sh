#!/bin/sh
# Stands in for the agent that shared/providers/claude.json describes: its options, its records, its
# conversations below $CLAUDE_CONFIG_DIR, and what it has been seen to do wrong. The first word of
# the instruction says which; the answer repeats the first line of every turn of the conversation.
#
#	plan (answers with what stands in plan-1, plan-2, ...; keeps what it was told in planned-N)
#	ok  shared  env  error-exit-0  hang  deaf  holder  long-line  ansi  lost  rate-limit-once  half  fail
#	slow  spin
set -eu
home=${CLAUDE_CONFIG_DIR:-$HOME/.claude}
mkdir -p "$home/conversations"
id='' old='' fork='' model='' extra=''
while [ $# -gt 0 ]; do
	case $1 in
	create-chat) echo shared-id; exit 0 ;;
	--version) echo '9.9.9 (fake)'; echo run >>"$home/asked-for-version"; exit 0 ;;
	--session-id) id=$2; shift ;;
	--resume) old=$2; shift ;;
	--fork-session) fork=1 ;;
	--model) model=$2; shift ;;
	-p) case ${2-} in -* | '') ;; *) given=$2; shift ;; esac ;;
	--verbose) ;;
	--output-format) [ "$2" = stream-json ] || exit 2; shift ;;
	*) extra="$extra $1" ;;
	esac
	shift
done

# To its end, as the real one does: whoever leaves it open waits for ever.
prompt=${given-$(cat)}
mode=${prompt%%[ 
]*}
[ "$mode" != Make ] || mode=plan # what start --planner says

say() { printf '%s\n' "$1"; }
result() { # subtype is_error text
	say "{\"type\":\"result\",\"subtype\":\"$1\",\"is_error\":$2,\"num_turns\":1,\"result\":\"$3\",\"session_id\":\"$id\",\"total_cost_usd\":0.25,\"usage\":{\"input_tokens\":7,\"output_tokens\":3}}"
}

if [ -n "$old" ]; then
	if [ ! -e "$home/conversations/$old" ]; then
		id=$old
		say "{\"type\":\"result\",\"subtype\":\"error_during_execution\",\"is_error\":true,\"errors\":[\"No conversation found with session ID: $old\"],\"session_id\":\"$id\"}"
		exit 1
	fi
	if [ -n "$fork" ]; then
		cp "$home/conversations/$old" "$home/conversations/$id"
	else
		[ -z "$id" ] || { echo '--session-id with --resume needs --fork-session' >&2; exit 1; }
		id=$old
	fi
elif [ -e "$home/conversations/$id" ] && [ "$mode" != shared ]; then
	echo "Session ID $id is already in use" >&2
	exit 1
fi
file=$home/conversations/$id
# Two at once in one conversation would mix their turns: it is seen here.
if [ -n "$old" ] && [ -e "$file.busy" ]; then echo "conversation $id has two users" >>"$home/collisions"; fi
: >"$file.busy"
trap 'rm -f "$file.busy"' EXIT

[ "$mode" != ansi ] || printf '\033[?25l\033[2K\033]0;claude\007'
say "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"$id\",\"model\":\"$model\"}"
printf '%s\n' "${prompt%%
*}" >>"$file"
turns=$(tr '\n' '|' <"$file")

case $mode in
plan)
	n=1
	while [ -e "$home/planned-$n" ]; do n=$((n + 1)); done
	printf '%s' "$prompt" >"$home/planned-$n"
	while [ -e "$home/plan-waits" ]; do sleep 0.05; done
	result success false "$(tr '\n' ' ' <"$home/plan-$n" | sed 's/\\/\\\\/g; s/"/\\"/g')"
	exit 0 ;;
env)
	turns="CLAUDECODE=${CLAUDECODE-unset} CI=${CI-unset} TERM=${TERM-unset} PWD=$PWD extra=$extra model=$model" ;;
error-exit-0)
	result success true 'API Error: 500 it broke'
	exit 0 ;;
rate-limit-once)
	if [ ! -e "$home/limited" ]; then
		: >"$home/limited"
		result success true 'API Error: 429 rate_limit_error'
		exit 0
	fi ;;
lost)
	rm -f "$file" ;;
half)
	say '{"type":"assistant","message":{"content":[{"type":"text","text":"half"}]}}'
	exit 0 ;;
fail)
	echo 'something broke' >&2
	exit 3 ;;
long-line)
	printf '{"type":"user","text":"'
	dd if=/dev/zero bs=1048576 count=100 2>/dev/null | tr '\0' x
	printf '"}\n' ;;
spin)
	while :; do :; done ;;
slow)
	: >"$home/slow-$id"
	while [ ! -e "$home/go" ]; do sleep 0.05; done ;;
deaf)
	# The one that is known does not hear; a child in the same group does the work.
	trap '' TERM INT HUP
	sh -c 'echo $$ >"$1/deaf-child"; trap "" HUP; while :; do sleep 0.1; done' sh "$home"
	;;
esac
result success false "turns: $turns"
[ "$mode" != ansi ] || printf '\033[?25h'
case $mode in
long-line)
	while [ ! -e "$home/go" ]; do sleep 0.05; done ;;
hang)
	echo $$ >"$home/hanging"
	while :; do sleep 0.1; done ;;
holder)
	# Keeps standard output and error long after everybody else has gone, in a session of its own.
	setsid sh -c 'echo $$ >"$1/holder"; while :; do sleep 0.1; done' sh "$home" &
	while [ ! -e "$home/holder" ]; do sleep 0.05; done ;;
esac
exit 0
