# What an operation of crash_flow.py does, for any shell. It appends its name to $RUNLOG when it
# starts, and says there when it ends.
exec 3>&2
echo "$FLOWSUP_OP_ID" >>"$RUNLOG"
echo "$FLOWSUP_OP_ID $FLOWSUP_IDEMPOTENCY_KEY" >>"$RUNLOG.keys"
trap 'echo "end $FLOWSUP_OP_ID" >>"$RUNLOG"' EXIT
nap() { sleep "$1"; }
seen() { # what the operations before it have answered
	env | sed -n 's/^FLOWSUP_DEP_\([^=]*\)=/\1 /p' | sort | while read -r name file; do
		echo "$name $(sed 's/"file":"[^"]*"//' "$file" | cksum)"
	done
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
