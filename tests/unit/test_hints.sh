#!/usr/bin/env bash
# Each hint that the sources can print is a command that a shell takes as it stands; sentences are given by
# err_advice() and cli_advice(). What a hint is filled in with at run time is tests/process/commands_read.sh's. TAP.
cd "$(dirname "$0")/../.." || exit 1
# One a line, as it would be with a plain word for each %: PLACE TAB TEXT.
hints() {
	perl -0777 -ne '
		while (/\b(err_hint|cli_hint|paste_hint)\((?:&?\w+(?:->\w+)?, *)?((?:\s*(?:"(?:[^"\\]|\\.)*"|[A-Z_]{3,}))+)/g) {
			my ($text, $line) = ($2, 1 + (substr($_, 0, $-[0]) =~ tr/\n//));
			next if $1 eq "paste_hint";
			$text =~ s/\b[A-Z_]{3,}\b(?=(?:[^"]*"[^"]*")*[^"]*$)//g;
			$text = join "", map { s/^"|"$//gr } $text =~ /"(?:[^"\\]|\\.)*"/g;
			$text =~ s/\\(.)/$1/g;
			$text =~ s/%(?:\.\*|\.\d+|-?\d+)?(?:ll|z|j)?s/x/g;
			$text =~ s/%(?:\.\d+)?(?:ll|l|z|j)?[du]/1/g;
			print "$ARGV:$line\t$text\n" if $text ne "x";
		}' supervisor/*.c shared/*/*.c worker/*.c
}
problems() { # of the lines of hints
	local place text
	while IFS=$'\t' read -r place text; do
		bash -n -c "$text" 2>/dev/null || echo "$place: no command: $text"
		[[ $text =~ ^(flowsup|systemctl|loginctl|chmod|mkdir|export|read|ulimit|sqlite3|kill|ls|df|ps|cd|man)(\ |$) ]] ||
			echo "$place: no program: $text"
		grep -qE '\.\.\.|\b[A-Z]{3,}\b' <<<"$(sed -E "s/   #.*//; s/FLOWSUP_HOME|kill -[A-Z]+|'PRAGMA[^']*'//g" <<<"$text")" &&
			echo "$place: something is to be filled in: $text"
		[[ $text != *"'x'"* ]] || echo "$place: quoted by hand, not by shell_word(): $text"
	done
}
wrong=$(printf 'a:1\tdid you mean "x"?\na:2\tflowsup start FILE\na:3\tls '"'x'"'\na:4\tflowsup (x\n' | problems | cut -d: -f2,3 | xargs)
echo 1..3
failed=0
verdict() { # NUMBER NAME WHAT-IS-WRONG
	[ -z "$3" ] && { echo "ok $1 - $2"; return; }
	echo "not ok $1 - $2"
	sed 's/^/# /' <<<"$3"
	failed=1
}
verdict 1 "what is wrong is seen" \
	"$([ "$wrong" = "1: no program 2: something is to be filled in 3: quoted by hand, not by shell_word() 4: no command" ] || echo "$wrong")"
n=$(hints | wc -l)
verdict 2 "the sources have hints" "$([ "$n" -gt 60 ] || echo "only $n are found")"
verdict 3 "each can be pasted" "$(hints | problems)"
exit $failed
