#!/usr/bin/env bash
# What only says what would be done leaves no trace: every file of the state directory keeps its name,
# size, times and content, whoever else has the database open, and none appears. What it says is true of a
# live database, too.
# shellcheck disable=SC2317 # functions that are waited for
. "$(dirname "$0")/lib.sh"
mkdir "$T/w" && cd "$T/w" || exit 1

cat >flow.yaml <<'Y'
name: dry
plan:
  - {id: a, run: 'true'}
  - {id: b, needs: [a], run: 'test -e ok'}
Y
# The tree with directories: whatever was made and removed has changed the time of one. A supervisor that
# lives reads, and marks that in the index.
tree() {
	(cd "$FLOWSUP_HOME" && find . -printf '%P %y %m %i %s %T@ %C@\n' | sort && find . -type f -exec cksum {} + | sort) |
		if [ -n "$(supervisors)" ]; then sed -E '/state.db-shm/s/.*/the index/'; else cat; fi
}
ways() { # RUN DIRECTORY -> what is tried: words with _ for a space
	echo "resume_-n_--retry-failed_$1 resume_-n_--retry-failed_$2 resume_--all-crashed_-n"
	echo "fork_-n_$1_--from_b rerun_-n_$1 gc_-n gc_-n_--keep-n_0 start_-n_flow.yaml"
}
# A supervisor may have something of its own to write: then it is tried again.
trace_of() { # WORDS...: what it left
	local before left
	for _ in 1 2 3; do
		before=$(tree)
		"$FLOWSUP" "$@" >"$T/out" 2>&1 </dev/null || echo "exit $?: $(cat "$T/out")"
		left=$(diff <(echo "$before") <(tree)) && return
	done
	echo "$left"
}
leaves_no_trace() { # NAME RUN DIRECTORY
	local words left bad=
	for words in $(ways "$2" "$3"); do
		# shellcheck disable=SC2086 # words are meant
		left=$(trace_of ${words//_/ })
		bad+=${left:+"$words: $left; "}
	done
	equal "$1: no trace" "" "$bad"
}

run=$("$FLOWSUP" start --wait flow.yaml 2>/dev/null)
cp -a "$FLOWSUP_HOME/runs/$run" copy
"$FLOWSUP" supervisor stop
check "nobody has the database open" [ ! -e "$FLOWSUP_HOME/state.db-wal" ]
leaves_no_trace "alone" "$run" ./copy
matches "alone: it tells" "b +will run" "$("$FLOWSUP" resume -n "$run" --retry-failed)"
check "and made no log" [ ! -e "$FLOWSUP_HOME/state.db-wal" ]

"$FLOWSUP" supervisor
second=$("$FLOWSUP" start --wait flow.yaml 2>/dev/null)
has_no_worker() { ! "$FLOWSUP" supervisor status --json | grep -q '"state":"ready"'; }
wait_until has_no_worker
check "a supervisor has it open, with a log" [ -s "$FLOWSUP_HOME/state.db-wal" ]
leaves_no_trace "beside a supervisor" "$second" ./copy
matches "beside a supervisor: what is only in the log counts" "b +will run" "$("$FLOWSUP" resume -n "$second" --retry-failed)"

# One step of the schema is not noted as done: a program of now notes it when it writes.
if command -v sqlite3 >/dev/null; then
	older() { [ "$(sqlite3 "$FLOWSUP_HOME/state.db" 'SELECT COUNT(*) FROM schema_steps WHERE step = 2')" = 0 ]; }
	sqlite3 "$FLOWSUP_HOME/state.db" 'DELETE FROM schema_steps WHERE step = 2'
	leaves_no_trace "an older schema" "$second" ./copy
	check "which stays as it is" older
fi

pid=$(supervisors)
kill -KILL "$pid"
wait_until gone "$pid"
check "a dead supervisor left its log and index" [ -s "$FLOWSUP_HOME/state.db-wal" -a -e "$FLOWSUP_HOME/state.db-shm" ]
leaves_no_trace "after its death" "$second" ./copy
matches "after its death: what is only in the log counts" "b +will run" "$("$FLOWSUP" resume -n "$second" --retry-failed)"

# ---- What is written while it is read ----
rm -rf "$FLOWSUP_HOME"
run=$("$FLOWSUP" start --wait flow.yaml 2>/dev/null)
bad=
for i in 1 2 3 4 5 6; do
	"$FLOWSUP" start --wait -- true >/dev/null 2>&1 &
	for _ in 1 2 3; do
		out=$("$FLOWSUP" resume -n "$run" --retry-failed 2>&1) && [[ $out =~ b\ +will\ run ]] || bad+="$out; "
	done
	wait
	[ $((i % 2)) = 0 ] || "$FLOWSUP" supervisor stop
done
equal "beside those who write, and come and go, it is read rightly" "" "$bad"

# ---- A state directory that is not there ----
out=$(FLOWSUP_HOME=$T/none "$FLOWSUP" resume -n ./copy --retry-failed 2>&1)
matches "without a state directory it tells all the same" "b +will run" "$out"
check "and makes none" [ ! -e "$T/none" ]
plan
