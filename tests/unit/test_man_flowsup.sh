#!/usr/bin/env bash
# Compares commands and options of the program with man/flowsup.1, in both directions, and with its
# own help; also the tables of exit statuses, status words and reasons. TAP.
set -u
cd "$(dirname "$0")/../.." || exit 1
flowsup=$(realpath "${FLOWSUP_BUILD:-build}/bin/flowsup") || exit 1
page=man/flowsup.1
work=$(mktemp -d "${TMPDIR:-/tmp}/flowsup-man-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
n=0

result() { # ok? text
	n=$((n + 1))
	if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi
}

same() { # file file text
	diff "$1" "$2" > "$work/diff"
	local status=$?
	[ $status = 0 ] || sed 's/^/# /' "$work/diff"
	result $status "$3"
}

# "command<TAB>option" of everything: the completions come from the parser's tables.
words() { "$flowsup" completion words -- "$@" | cut -f1; }
words '' | while read -r one; do
	echo "$one"
	words "$one" '' | sed -n "s/^[a-z][a-z]*\$/$one &/p"
done | while read -r command; do
	# A family is no command, nor is a word of it that stands for a command of one word.
	# shellcheck disable=SC2086
	"$flowsup" help $command 2> /dev/null | grep -q "^usage: flowsup $command\( \|\$\)" && echo "$command"
done > "$work/commands"
while read -r command; do
	printf '%s\t\n' "$command"
	# shellcheck disable=SC2086  # a command may be two words
	words $command - | sed "s/^/$command	/"
done < "$work/commands" > "$work/all"
grep -vE '	(--home|--json|--utc|--this-run|--help|-h)$' "$work/all" | sort > "$work/tables"

# The same from the manual: subsections are commands, items that begin with Fl are options.
awk '
	/^\.Sh / { inside = ($0 == ".Sh COMMANDS") }
	inside && /^\.Ss / { command = substr($0, 5); print command "\t" }
	inside && /^\.It Fl / {
		gsub(/\\-/, "-"); gsub(/ Ns /, " ")
		for (i = 2; i <= NF; i++)
			if ($i == "Fl") print command "\t-" $(i + 1) }' "$page" | sort > "$work/manual"

[ "$(wc -l < "$work/tables")" -gt 30 ]
result $? "the tables can be read"
same "$work/tables" "$work/manual" "commands and options are those of flowsup.1"

while IFS=$'\t' read -r command option; do
	[ -n "$option" ] || continue
	# shellcheck disable=SC2086  # a command may be two words
	"$flowsup" help --all $command > "$work/help" || echo "$command: no help"
	case $option in
	--*) grep -qE -e "(^| )$option( |=|\[|\$)" "$work/help" ;;
	*) grep -qE -e "^ *$option," "$work/help" ;;
	esac || echo "$command: $option is not in its help"
done < "$work/tables" > "$work/missing"
sed 's/^/# /' "$work/missing"
[ ! -s "$work/missing" ]
result $? "every option is in the help of its command"

# A screen has 80 columns and, with the line that was typed and the next prompt, 24 lines. What is seldom
# needed is left to --all then, which the last line names.
cut -f1 "$work/tables" | sort -u | sed 's/^/help /; $a\
help' | while read -r command; do
	# shellcheck disable=SC2086
	"$flowsup" $command > "$work/short"
	# shellcheck disable=SC2086
	"$flowsup" ${command/help/help --all} > "$work/long"
	awk -v c="$command" 'length > 80 { print c ": a line of " length " columns" }' "$work/short" "$work/long"
	[ "$(wc -l < "$work/short")" -le 22 ] || echo "$command: $(wc -l < "$work/short") lines"
	cmp -s "$work/short" "$work/long" || tail -n 2 "$work/short" | grep -q "flowsup ${command/help/help --all}" ||
		echo "$command: nothing says that there is more"
	# All of the short form is in the long one, but for the line that names that and, of the list, its shape.
	[ "$command" = help ] || grep -vxFf "$work/long" "$work/short" | grep -v '^more options: '
done > "$work/large"
sed 's/^/# /' "$work/large"
[ ! -s "$work/large" ]
result $? "help fits a screen"

# The list of all names each command, the second word of a family beside its first.
cut -f1 "$work/tables" | sort -u | while read -r one two; do
	"$flowsup" help --all | grep -qE "^.{8}$one .*${two:+\b$two\b}" || echo "$one $two"
	"$flowsup" help | grep -qE "^[A-Z][a-z]+ .*\b$one\b" || echo "$one: not in the short one"
done > "$work/unlisted"
sed 's/^/# not in the list: /' "$work/unlisted"
[ ! -s "$work/unlisted" ]
result $? "every command is in the list of all"

# Examples stand first, and show the command itself.
cut -f1 "$work/tables" | sort -u | while read -r command; do
	# shellcheck disable=SC2086
	"$flowsup" help $command | awk -v c="$command" '
		/^usage: / { exit }
		NR > 1 && index($0, "flowsup " c) { found = 1 }
		END { if (!found) print c }'
done > "$work/bare"
sed 's/^/# no example: /' "$work/bare"
[ ! -s "$work/bare" ]
result $? "examples stand first in every help"

# Tables of the library against the manual.
sed -nE '/define ERR_TABLE/,/^$/ s/.*X\(ERR_[A-Z]+, *"[A-Za-z]+", *([0-9]+)\).*/\1/p' \
    include/flowsup/err.h | sort -un > "$work/statuses"
sed -nE '/^\.Sh EXIT STATUS/,/^\.Sh EXAMPLES/ s/^\.It ([0-9]+)$/\1/p' "$page" | sort -un > "$work/documented"
comm -23 <(sort "$work/statuses") <(sort "$work/documented") > "$work/lack"
sed 's/^/# exit status /' "$work/lack"
[ -s "$work/statuses" ] && [ ! -s "$work/lack" ]
result $? "every exit status of an error is in flowsup.1"

sed -nE '/define ERR_TABLE/,/^$/ s/.*X\(ERR_[A-Z_]+, *"([A-Za-z]+)", *([1-9][0-9]*)\).*/.It \1 Ta \2/p' \
    include/flowsup/err.h | sort > "$work/types"
sed -nE '/^\.Ss Errors/,/^\.El/ s/^(\.It [A-Za-z]+Error Ta [0-9]+) Ta .+/\1/p' "$page" | sort > "$work/types.manual"
[ -s "$work/types" ]
result $? "types of errors can be read"
same "$work/types" "$work/types.manual" "types of errors and their exits are those of flowsup.1"

# What is written: the names of events, and the members that follow each up to event_end. Where one of two
# names is written ("A/B"), one of both has the member.
cat worker/*.c | awk '
	/event_of_op\(w, "/ { match($0, /"[A-Za-z]+"/); print substr($0, RSTART + 1, RLENGTH - 2) "\top" }
	/event_begin\(.*"/ {
		name = ""
		for (s = $0; match(s, /"[A-Z][A-Za-z]+"/); s = substr(s, RSTART + RLENGTH))
			name = name (name == "" ? "" : "/") substr(s, RSTART + 1, RLENGTH - 2)
		print name "\t"
	}
	name && /event_op\(/ { print name "\top" }
	name && match($0, /event_(text|int|real|true)\([^"]*"[a-z_]+"( : "[a-z_]+")?/) {
		for (s = substr($0, RSTART, RLENGTH); match(s, /"[a-z_]+"/); s = substr(s, RSTART + RLENGTH))
			print name "\t" substr(s, RSTART + 1, RLENGTH - 2)
	}
	/event_end\(/ { name = "" }' | sort -u > "$work/events"
awk '/^\.Ss Events/ { inside = 1 } /^\.Sh/ { inside = 0 }
	inside && /^\.It Li / { name = $3; print name "\t" }
	inside && name && /^\.Li / { print name "\t" $2 }' "$page" | sort -u > "$work/events.manual"
cut -f1 "$work/events" | tr / '\n' | sort -u > "$work/names"
cut -f1 "$work/events.manual" | sort -u > "$work/names.manual"
[ "$(wc -l < "$work/names")" -gt 25 ]
result $? "events can be read"
same "$work/names" "$work/names.manual" "events are those of flowsup.1"
awk -F'\t' 'NR == FNR { known[$0] = 1; next }
	{ found = 0; n = split($1, names, "/"); for (i = 1; i <= n; i++) found += (names[i] "\t" $2) in known }
	!found' "$work/events.manual" "$work/events" > "$work/lack"
sed 's/^/# not in the page: /' "$work/lack"
[ ! -s "$work/lack" ]
result $? "members of events are in flowsup.1"

grep -oE '"run\.[a-z_]+\.[a-z_]+", *"[^"]+"' include/flowsup/status.h | tr -d '"' |
    sed -E 's/, */ Ta /; s/^/.It /' | sort > "$work/reasons"
grep -E '^\.It run\.' "$page" | sort > "$work/reasons.manual"
same "$work/reasons" "$work/reasons.manual" "reason codes and texts are those of flowsup.1"

sed -nE '/define STATUS_TABLE/,/^$/ s/.*X\(STATUS_[A-Z_]+, "([a-z_]+)", [a-z]+, ([0-9]+)\).*/\1 \2/p' \
    include/flowsup/status.h | sort > "$work/words"
sed -nE 's/^\.It ([a-z_]+) Ta ([0-9]+) Ta .*/\1 \2/p' "$page" | sort > "$work/words.manual"
same "$work/words" "$work/words.manual" "status words and their exits are those of flowsup.1"

if command -v mandoc > /dev/null; then
	# Whether another page is installed on this machine says nothing about this one.
	mandoc -Tlint man/*.[1578] | grep -vE 'referenced manual not found|outdated mandoc.db' > "$work/lint"
	sed 's/^/# /' "$work/lint"
	[ ! -s "$work/lint" ]
	result $? "mandoc finds nothing"
else
	echo "ok $((n += 1)) - mandoc finds nothing # SKIP mandoc is not installed"
fi
echo "1..$n"
