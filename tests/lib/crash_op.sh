# What an operation of crash_flow.py does, for any shell. It appends its name to $RUNLOG when it
# starts, and says there when it ends.
exec 3>&2
echo "$FLOWSUP_OP_ID" >>"$RUNLOG"
echo "$FLOWSUP_OP_ID $FLOWSUP_IDEMPOTENCY_KEY" >>"$RUNLOG.keys"
trap 'echo "end $FLOWSUP_OP_ID" >>"$RUNLOG"' EXIT
nap() { sleep "$1"; }
seen() { # what the operations before it have answered: a line each with its name and a sum of the text
	LC_ALL=C awk 'BEGIN {
		for (i = 1; i < 256; i++)
			code[sprintf("%c", i)] = i
		for (name in ENVIRON)
			if (name ~ /^FLOWSUP_DEP_/) {
				for (i = n++; i > 0 && sorted[i - 1] > name; i--)
					sorted[i] = sorted[i - 1]
				sorted[i] = name
			}
		for (i = 0; i < n; i++) {
			sum = lines = 0
			while ((getline line <ENVIRON[sorted[i]]) > 0) {
				lines++
				gsub(/"file":"[^"]*"/, "", line)
				for (k = 1; k <= length(line); k++)
					sum = (sum * 31 + code[substr(line, k, 1)]) % 4294967296
				sum = (sum * 31 + 10) % 4294967296
			}
			close(ENVIRON[sorted[i]])
			print substr(sorted[i], 13), sum, lines
		}
	}'
}
answer() { echo "$FLOWSUP_OP_ID ${WHO-}"; seen; }
answer_json() { printf '{"seen": "%s", %s}\n' "$(seen | cksum)" "$1"; }
change() { flowsup emit context "$@" 2>&3 || exit 9; }
ask() { # OPTION... SCRIPT
	case $# in
	1) flowsup emit spawn --run ". \"\$OPS\"; $1" 2>&3 || exit 9 ;;
	2) flowsup emit spawn "$1" --run ". \"\$OPS\"; $2" 2>&3 || exit 9 ;;
	*) flowsup emit spawn "$1" "$2" --run ". \"\$OPS\"; $3" 2>&3 || exit 9 ;;
	esac
}
child() { # NAP DEPTH STATUS
	nap "$1"
	[ "$2" = 0 ] || ask "child $1 $(($2 - 1)) 0"
	change append /list "\"$FLOWSUP_OP_ID\""
	answer
	exit "$3"
}
take_messages() { cp "$FLOWSUP_MESSAGES" "$RUNLOG.in/$FLOWSUP_OP_ID.$FLOWSUP_RUN_ID.$FLOWSUP_ATTEMPT"; }
