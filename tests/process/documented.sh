#!/usr/bin/env bash
# Every command line of README.md, of EXAMPLES in flowsup(1) and of flowsup(7) is executed, and every
# example. What is shown of a file is what the file holds.
# shellcheck source=tests/process/lib.sh
. "$(dirname "$0")/lib.sh"
mkdir "$T/work" "$T/bin" "$T/agent" "$T/config" && cd "$T/work" || exit 1
export PATH=$T/bin:$BUILD/bin:$PATH HOME=$T XDG_CONFIG_HOME=$T/config CLAUDE_CONFIG_DIR=$T/agent
export id=@last # what a script above has set
KILLED=

# ---- What the texts take for granted ----
cp "$ROOT"/examples/nightly.yaml .
cp -R "$ROOT/examples" .
cp "$ROOT/README.md" .
mkdir -p "$T/src/app"
cp nightly.yaml "$T/nightly.yaml"
cp nightly.yaml flow.yaml
cp nightly.yaml "$T/src/app"
printf 'plan:\n  - {id: a, run: "echo built"}\n' >build.yaml
printf 'all test install:\n\t@echo $@\n' >Makefile
touch one.wav two.wav one.log
printf '#!/bin/sh\ncat build.yaml\n' >"$T/bin/generate-plan"
printf '#!/bin/sh\ntest -e "$1"\n' >"$T/bin/flac"
printf '#!/bin/sh\necho error\n' >"$T/bin/journalctl"
printf '#!/bin/sh\ncat >/dev/null\n' | tee "$T/bin/mail" >"$T/bin/tell"
cp "$ROOT/tests/fakes/claude.sh" "$T/bin/claude"
chmod +x "$T"/bin/*

# Lines that are not executed, and why.
exceptions=(
	'^\./scripts/(quickstart|test)'	'installs packages; continuous integration runs both'
	'^systemctl '			'changes the user manager of this machine'
	'^@reboot'			'a line of crontab(5) that cron itself acts on'
)
excepted() {
	local i
	for ((i = 0; i < ${#exceptions[@]}; i += 2)); do
		[[ $1 =~ ${exceptions[i]} ]] && return 0
	done
	return 1
}

# ---- Blocks of commands, with what they print left out ----
# readme: a block a record, ended by a line "--"; man: the same from mdoc's literal displays.
readme() { awk '/^    / { print substr($0, 5); inside = 1; next } inside { print "--"; inside = 0 }' "$ROOT/README.md"; }
roff() { sed 's/\\(dq/"/g; s/\\&//g; s/\\-/-/g; s/\\e/\\/g'; }
manual() { # page section-pattern
	awk -v section="$2" '/^\.Sh / { within = $0 ~ section }
		!within { next }
		/^\.Dl / { print substr($0, 5); print "--" }
		/^\.Ed/ { inside = 0; print "--" }
		inside
		/^\.Bd -literal/ { inside = 1 }' "$ROOT/man/$1" | roff
}

run_line() { # where command
	local status
	if excepted "$2"; then return; fi
	# A schedule of crontab(5) stands before the command, which there has an absolute path.
	set -- "$1" "$(sed -E 's,^[0-9*]+ [0-9*]+ \* \* \* +,,; s,/usr/local/bin/flowsup,flowsup,' <<<"$2")"
	NUMBER=$((NUMBER + 1))
	timeout 60 bash -c "$2" >"$T/out" 2>"$T/err" </dev/null
	status=$?
	# Whether the run had ended before, and there is nothing left to stop, is a matter of chance.
	if [[ $2 == *'flowsup stop'* ]] && grep -q 'has already ended' "$T/err"; then status=0; fi
	equal "$1: $(head -n 1 <<<"$2")" 0 $status
	[ $status = 0 ] || sed 's/^/# /' "$T/out" "$T/err" | head -n 8
}
# A block with prompts holds commands and what they print; one that begins like a document is one,
# and is kept below its name; every other is a script, or one command a line.
run_block() { # where
	local first line
	read -r first <"$T/block"
	if [[ $first == '$ '* ]]; then
		while IFS= read -r line; do
			case $line in
			'$ cat >'*) here_document "$1" "${line#\$ }" ;;
			'$ cat '*.yaml*) show_file "$1" "${line#\$ cat }" ;;
			'$ '*) wait_for_shown "$line"; run_line "$1" "${line#\$ }" ;;
			esac
		done < <(sed -e ':a' -e '/\\$/{N;s/\\\n//;ba' -e '}' "$T/block")
	elif [[ $first =~ ^(name|args): ]]; then
		cp "$T/block" "$(sed -n 's/^name: //p;q' "$T/block").yaml"
	elif [ "$1" = README ]; then
		while IFS= read -r line; do run_line "$1" "$line"; done <"$T/block"
	elif grep -qE '^(@|[0-9*]+ [0-9*]+ )' "$T/block"; then
		while IFS= read -r line; do run_line "$1" "$line"; done <"$T/block"
	else
		run_line "$1" "$(cat "$T/block")"
	fi
}
# `cat > FILE <<'END'` with its lines; what it makes is the example of that name.
here_document() { # where first-line
	local text=$2 next name
	while IFS= read -r next; do
		text+=$'\n'$next
		[ "$next" != END ] || break
	done
	name=$(sed -E 's/^cat > ([^ ]+) .*/\1/;q' <<<"$text")
	rm -f "$name"
	run_line "$1" "$text"
	check "$1: $name is the example" cmp "$name" "$ROOT/examples/$name"
}
# The reader looks when there is something to see.
wait_for_shown() {
	case $1 in
	*kill\ -9*) KILLED=1; wait_until sh -c 'flowsup show @last --json | grep -q "\"worker_pid\":[1-9]"' ;;
	*approve*) wait_until sh -c 'flowsup waiting | grep -q approve' ;;
	*resume*) [ -z "$KILLED" ] || wait_until sh -c 'flowsup list -n 1 | grep -q resume'; KILLED= ;;
	esac
}
# `cat FILE` and what follows up to the next command: the file holds that; where there is none, it is made.
show_file() { # where name
	local name=${2/#\~/$T}
	name=${name/#"$T/.config"/"$T/config"}
	awk -v line="\$ cat $2" '$0 == line { inside = 1; next } /^\$ / { inside = 0 } inside' "$T/block" >"$T/shown"
	if [ -e "$name" ]; then
		equal "$1: what is shown of ${name##*/} is what it holds" "$(cat "$name")" "$(cat "$T/shown")"
	else
		mkdir -p "$(dirname "$name")" && cp "$T/shown" "$name"
	fi
}
run_blocks() { # where; blocks on standard input
	NUMBER=0
	: >"$T/block"
	while IFS= read -r line <&3; do
		if [ "$line" != -- ]; then
			printf '%s\n' "$line" >>"$T/block"
			continue
		fi
		run_block "$1"
		: >"$T/block"
	done 3<&0
}
readme >"$T/blocks"
run_blocks README <"$T/blocks"
check "README: its commands were found" [ $NUMBER -gt 20 ]
manual flowsup.1 EXAMPLES >"$T/blocks"
run_blocks 'flowsup(1)' <"$T/blocks"
check "flowsup(1): its commands were found" [ $NUMBER -ge 5 ]
manual flowsup.7 'DESCRIPTION|RECIPES' >"$T/blocks"
run_blocks 'flowsup(7)' <"$T/blocks"
check "flowsup(7): its commands were found" [ $NUMBER -ge 10 ]

# ---- Examples ----
for example in data approval agents nightly; do
	id=$(flowsup start "examples/$example.yaml") || not_ok "example $example"
	[ $example != approval ] || { wait_for_shown approve; flowsup approve "$id" publish 2>/dev/null; }
	timeout 120 "$FLOWSUP" wait "$id"
	equal "example $example: completes" 0 $?
done
flowsup supervisor stop --all
plan
