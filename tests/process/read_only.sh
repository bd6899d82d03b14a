#!/usr/bin/env bash
# A state directory that cannot be written to: what reads works, what writes says why, nothing hangs.
. "$(dirname "$0")/lib.sh"
mkdir "$T/work" && cd "$T/work" || exit 1

# read_only COMMAND...: with the state directory read-only. Permissions do not bind root, mounts do.
if [ "$(id -u)" != 0 ]; then
	read_only() {
		chmod -R a-w "$FLOWSUP_HOME"
		"$@"
		local status=$?
		chmod -R u+w "$FLOWSUP_HOME"
		return $status
	}
elif unshare -m true 2>/dev/null; then
	read_only() {
		# shellcheck disable=SC2016 # for the inner shell
		unshare -m sh -c 'mount --bind "$FLOWSUP_HOME" "$FLOWSUP_HOME" &&
			mount -o remount,bind,ro "$FLOWSUP_HOME" && exec "$@"' sh "$@"
	}
else
	skip "root without mount namespaces: nothing is read-only"
	plan
fi
run_command() { # words...: $status, $out, $err
	read_only timeout "$LIMIT" "$FLOWSUP" "$@" >"$T/out" 2>"$T/err" </dev/null
	status=$?
	out=$(cat "$T/out") err=$(cat "$T/err")
}
tree() { find "$FLOWSUP_HOME" ! -name '*.log' -printf '%P %s\n' | sort; }
log_is() { # with|without: whether the database has a write-ahead log
	if [ "$1" = with ]; then [ -s "$FLOWSUP_HOME/state.db-wal" ]; else [ ! -e "$FLOWSUP_HOME/state.db-wal" ]; fi
}
reading_works() { # with|without run
	# A worker that is about to leave has it open, too.
	check "the database is $1 a log" wait_until log_is "$1"
	run_command list --check
	equal "$1 a log: list --check" "0 yes" "$status $(case $out in *"$2"*completed*clean*) echo yes ;; esac)"
	for words in "show $2" "show --graph text $2" "logs $2" "wait $2" "watch $2" "waiting" "ctl status $2" \
		"checkpoint verify $2" "resume $2"; do
		# shellcheck disable=SC2086 # words are meant
		run_command $words
		equal "$1 a log: $words" 0 $status
	done
	matches "$1 a log: output is there" hello "$(read_only "$FLOWSUP" logs "$2")"
	run_command doctor
	equal "$1 a log: doctor says so" "78 yes" "$status $(case $out in *"cannot be written to"*) echo yes ;; esac)"
}
writing_fails() { # status pattern words...
	local wanted=$1 pattern=$2 before
	shift 2
	before=$(tree)
	run_command "$@"
	equal "$*: exit $wanted" "$wanted" $status
	matches "$*: says why" "$pattern" "$err"
	equal "$*: leaves nothing" "$before" "$(tree)"
}

# ---- A home that was never used ----
mkdir "$FLOWSUP_HOME"
for name in "$FLOWSUP_HOME" "$FLOWSUP_HOME/below/it"; do
	run_command doctor --home "$name"
	equal "doctor, nothing there yet: exit 78" 78 $status
	matches "doctor, nothing there yet: says that nothing can be" \
		"broken +state +.*'$FLOWSUP_HOME' cannot be written to: .*hint: " "$out"
	matches "start finds the same" "^7[38]$" "$(read_only "$FLOWSUP" start --home "$name" -- true >/dev/null 2>&1; echo $?)"
done
rmdir "$FLOWSUP_HOME"

done_id=$("$FLOWSUP" start --wait -- echo hello 2>/dev/null)
"$FLOWSUP" supervisor stop
reading_works without "$done_id"

live=$("$FLOWSUP" start -- sh -c 'echo alive; exec sleep 600')
wait_until worker_is_ready "$live"
wait_until status_is "$live" running
reading_works with "$done_id"
matches "a live run is seen" "running" "$(read_only "$FLOWSUP" list)"
run_command wait --timeout 100ms "$live"
equal "and waited for" 3 $status
no='(Read-only file system|Permission denied)'
writing_fails 78 "$no" start -- true
writing_fails 78 "$no" start --wait -- true
why="can only be read here: '${FLOWSUP_HOME}[^ ]*': $no.*hint: "
writing_fails 78 "$why" pause "$live"
writing_fails 78 "$why" stop "$live"
writing_fails 78 "$why" queue set q --slots 1
matches "start: names the directory and says what to do" "$FLOWSUP_HOME.*$no.*hint: (chmod|export)" \
	"$(read_only "$FLOWSUP" start -- true 2>&1)"

# Without a supervisor, and without any that could be started, an end that nobody will write is not waited for.
worker=$(worker_pid "$live")
supervisor=$(supervisors)
kill -KILL "$supervisor" "$worker"
wait_until gone "$supervisor"
wait_until gone "$worker"
run_command wait "$live"
matches "wait for a run that nobody looks after: exit 73, or 78" "^7[38] yes$" \
	"$status $(case $err in *"run $live has no worker, and no supervisor could be started"*) echo yes ;; esac)"
writing_fails 73 "open '$FLOWSUP_HOME/supervisor.log': $no.*hint: (chmod|export)" supervisor
session=$(json "$("$FLOWSUP" list --json --home "$FLOWSUP_HOME" | grep "$live")" session_id)
wait_until status_is "$live" crashed
run_command kill "$live"
matches "kill ends what runs all the same" "processes of operations ended|nothing of it runs|its processes were ended" "$err"

# ---- Homes that cannot be used at all: which one, why, and what to do, whoever asks ----
reading="list waiting queue_list gc supervisor_status supervisor_stop show_@last resume_@last"
all_say() { # NAME STATUS PATTERN commands...
	local name=$1 wanted=$2 pattern=$3 words said status bad=
	shift 3
	for words in $reading "$@"; do
		# shellcheck disable=SC2086 # words are meant
		said=$(FLOWSUP_HOME=$unusable as_nobody timeout "$LIMIT" "$FLOWSUP" ${words//_/ } 2>&1)
		status=$?
		[[ $status == "$wanted" && $said =~ $pattern ]] || bad+="$words: $status $said; "
	done
	equal "$name" "" "$bad"
}
writing="supervisor queue_set_q_--slots_1 start_--_true start_--foreground_--_true"
as_nobody() { "$@"; }
unusable=$T/file
: >"$unusable"
# shellcheck disable=SC2086 # words are meant
all_say "a file" 78 "state directory.*'?$unusable'?: Not a directory.*hint: export FLOWSUP_HOME" $writing
matches "and by --home, with what goes before the variable" "hint: flowsup --home /var/tmp/" \
	"$("$FLOWSUP" list --home "$unusable" 2>&1)"
# Permissions do not bind root: who is somebody else looks at a home of his own.
if [ "$(id -u)" = 0 ]; then
	as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
	chmod 711 "$T"
fi
unusable=$T/other/home
mkdir -m 700 "$T/other" && [ "$(id -u)" != 0 ] || chown 65534:65534 "$T/other"
if as_nobody "$FLOWSUP" queue set q --slots 1 --home "$unusable" 2>"$T/err"; then
	chmod 000 "$unusable/state.db"
	# A supervisor is asked by its socket alone, without the database.
	reading="list waiting queue_list gc show_@last resume_@last"
	# shellcheck disable=SC2086 # words are meant
	all_say "a database that cannot be opened" 78 \
		"'$unusable/state.db' cannot be opened: '$unusable/state.db': Permission denied.*hint: chmod" $writing
	chmod 600 "$unusable/state.db"
	chmod 000 "$unusable/runs"
	# shellcheck disable=SC2086 # words are meant
	all_say "closed run directories" 78 \
		"state directory '$unusable': cannot open directory runs: Permission denied.*hint: chmod" $writing
	chmod 700 "$unusable/runs"
	chmod 000 "$unusable"
	# shellcheck disable=SC2086 # words are meant
	all_say "a closed directory" 78 "state directory.* $unusable: Permission denied.*hint: chmod" $writing
	chmod 700 "$unusable"
	# ---- One cause, one status, whoever is asked and by whatever name ----
	run=$(as_nobody "$FLOWSUP" start --foreground --home "$unusable" -- true 2>"$T/err" | tail -1)
	dir=$unusable/runs/$run
	whoever() { # name, status by the run's id, status by its path, words...
		local name=$1 by_id=$2 by_path=$3 words target wanted
		shift 3
		for words; do
			for target in "$run" "$dir"; do
				[ "$target" = "$run" ] && wanted=$by_id || wanted=$by_path
				# shellcheck disable=SC2086 # words are meant
				as_nobody "$FLOWSUP" $words "$target" --home "$unusable" >"$T/out" 2>&1
				equal "$name: $words by ${target:0:1}" "$wanted" $?
			done
		done
	}
	all=("checkpoint verify" "checkpoint show" "checkpoint export --json" "checkpoint compact")
	whoever "as it is" 0 0 "${all[@]}"
	chmod 000 "$dir"
	whoever "a closed run directory" 78 78 "${all[@]}"
	chmod 500 "$dir"
	whoever "one that may be read only" 0 0 "${all[@]:0:3}"
	whoever "one that may be read only" 78 78 "checkpoint compact"
	chmod 700 "$dir"
	mv "$dir" "$T/other/away"
	whoever "one that is gone" 74 2 "${all[@]}"
else
	skip "the build cannot be reached by another user"
fi
check "nothing of it is left" [ -z "$(grep -lzsx "FLOWSUP_SESSION_ID=$session" /proc/[0-9]*/environ)" ]
plan
