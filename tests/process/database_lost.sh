#!/usr/bin/env bash
# A database, a lock or a whole state directory that is removed or replaced below a live supervisor: it
# leaves, nothing waits for ever, and what was lost is named and can be gone on with.
. "$(dirname "$0")/lib.sh"
mkdir "$T/work" && cd "$T/work" || exit 1

says_hi() { "$FLOWSUP" logs "$1" 2>/dev/null | grep -q hi; }
remove_database() { rm "$FLOWSUP_HOME"/state.db*; }
look() { "$FLOWSUP" doctor --json >"$T/doctor" 2>/dev/null; }
doctor() { grep "\"check\":\"$1\"" "$T/doctor"; }

id=$("$FLOWSUP" start -- sh -c 'echo hi; exec sleep 600')
wait_until says_hi "$id" && wait_until worker_is_ready "$id"
worker=$(worker_pid "$id")
first=$(supervisor_pid)
remove_database

"$FLOWSUP" list >"$T/out" 2>"$T/err"
equal "list does not say that there are no runs" 74 $?
matches "but what is gone" "the database '$FLOWSUP_HOME/state.db' is gone.*hint: flowsup doctor" \
	"$(tr '\n' ' ' <"$T/err")"
"$FLOWSUP" doctor --json >"$T/doctor" 2>/dev/null
equal "doctor finds it broken" 78 $?
matches "doctor: the supervisor, if it has not left yet" \
	"pid $first leaves: its database was removed or replaced|holds the lock but does not answer|none runs" "$(doctor supervisor)"
matches "doctor: the database" '"state":"broken".*is gone' "$(doctor database)"
matches "doctor: the run, and how to go on" \
	"$id is not in the database, but its worker $worker lives.*kill $worker && flowsup resume" "$(doctor runs)"
new=$("$FLOWSUP" start --wait -- true 2>"$T/err")
equal "a start with --wait ends" 0 $?
matches "and says what is lost" "state.db' is gone" "$(cat "$T/err")"
equal "by a supervisor of the new database" completed "$(run_status "$new")"
check "the old one has left" wait_until gone "$first"
check "and has said why" logged "its database was removed or replaced; 1 worker goes on"
check "the worker goes on" alive "$worker"

kill -TERM "$worker"
wait_until gone "$worker"
look
matches "doctor goes on to name the run" "$id is not in the database\"" "$(doctor runs)"
mkdir -m 700 "$FLOWSUP_HOME/runs/20200101T000000-abcdef"
look
matches "of one without a checkpoint no command is named that would fail" \
	'20200101T000000-abcdef is not in the database, and has no checkpoint","hint":null' "$(doctor runs)"
rmdir "$FLOWSUP_HOME/runs/20200101T000000-abcdef"
check "and never advises to remove it" [ -z "$(doctor leftovers | grep -F "$id")" ]
operation=$("$FLOWSUP" resume "$FLOWSUP_HOME/runs/$id" 2>&1 | sed -nE 's/.*hint: kill ([0-9]+).*/\1/p')
check "resume of the directory names what still runs" alive "${operation:-0}"
kill -KILL "$operation" && wait_until gone "$operation"
again=$("$FLOWSUP" resume "$FLOWSUP_HOME/runs/$id" 2>/dev/null)
equal "then it takes the directory" 0 $?
# It may be over as soon as it runs: its operation was killed.
has_begun() { [[ $(run_status "$1") =~ ^(running|failed|completed)$ ]]; }
check "and begins" wait_until has_begun "$again"
"$FLOWSUP" kill "$again" 2>/dev/null

# The file alone, while a worker goes on with its log and its index.
rm -f count over
id=$("$FLOWSUP" start -- sh -c 'until [ -e over ]; do sleep 0.02; done')
wait_until worker_is_ready "$id"
worker=$(worker_pid "$id")
rm "$FLOWSUP_HOME/state.db"
new=$("$FLOWSUP" start --wait -- true 2>/dev/null)
equal "with the database alone removed a run can be started" "0 completed" "$? $(run_status "$new")"
check "while the worker goes on" alive "$worker"
touch over
check "until its end" wait_until gone "$worker"
equal "which harms nothing" "completed ok" "$(run_status "$new") $(sql 'PRAGMA integrity_check')"
rm over

cat >kept.json <<-'END'
	{"plan": [{"id": "kept", "keeper": true, "run": "echo kept >>count; until [ -e over ]; do sleep 0.05; done"}]}
END
has_run() { [ -s count ]; }
id=$("$FLOWSUP" start kept.json)
wait_until has_run && wait_until worker_is_ready "$id"
kill -KILL "$(worker_pid "$id")"
wait_until status_is "$id" crashed
touch over
wait_until [ -e "$FLOWSUP_HOME/runs/$id/ops/kept.1/exit.json" ]
"$FLOWSUP" supervisor stop
remove_database
out=$("$FLOWSUP" resume "$FLOWSUP_HOME/runs/$id" -n 2>&1)
equal "a dry run of the directory needs no database" 0 $?
matches "and tells what would be" "kept +taken over" "$out"
check "nor makes one" [ ! -e "$FLOWSUP_HOME/state.db" ]
out=$("$FLOWSUP" resume "$FLOWSUP_HOME/runs/$new" 2>&1)
equal "the directory of a completed run is nothing to resume" 0 $?
matches "which is said" "'$FLOWSUP_HOME/runs/$new' has completed: there is nothing to resume" "$out"
"$FLOWSUP" resume "$FLOWSUP_HOME/runs/$id" --wait >/dev/null 2>&1
equal "what has ended is taken over from the directory" "0 kept" "$? $(cat count)"
new=$("$FLOWSUP" start --wait -- true 2>/dev/null)

# Another file in its place is as bad as none.
second=$(supervisor_pid)
"$FLOWSUP" list --json | grep -F "\"$new\"" >"$T/row"
sqlite3 "$FLOWSUP_HOME/state.db" 'VACUUM INTO "'"$T/copy.db"'"'
chmod 600 "$T/copy.db" && remove_database && mv "$T/copy.db" "$FLOWSUP_HOME/state.db"
equal "a copy that was put back is worked with" 0 \
	"$("$FLOWSUP" start --wait -- true >/dev/null 2>&1; echo $?)"
check "by another supervisor" wait_until gone "$second"
equal "and the old runs are in it" completed "$(run_status "$new")"

# ---- The lock and the socket ----
"$FLOWSUP" supervisor
third=$(supervisor_pid)
rm "$FLOWSUP_HOME/supervisor.sock"
check "a socket that was removed is made anew" wait_until [ -S "$FLOWSUP_HOME/supervisor.sock" ]
equal_soon "by the same supervisor" "$third" supervisor_pid
rm "$FLOWSUP_HOME/supervisor.lock"
check "without its lock's file it leaves, and no command has to ask" wait_until gone "$third"
check "and says why" logged "its lock's file was removed or replaced"

# Whose name the socket is now, the old one leaves it alone.
"$FLOWSUP" supervisor
third=$(supervisor_pid)
stop_still "$third" && rm "$FLOWSUP_HOME"/supervisor.lock "$FLOWSUP_HOME"/supervisor.sock
"$FLOWSUP" supervisor
fourth=$(supervisor_pid)
kill -CONT "$third"
check "the one that was there before leaves" wait_until gone "$third"
equal "and not with the socket of the one that came" "$fourth" "$(supervisor_pid)"

# ---- The whole directory ----
id=$("$FLOWSUP" start -- sh -c 'echo hi; while [ ! -e '"$T/work/go"' ]; do sleep 0.05; done')
wait_until says_hi "$id" && wait_until worker_is_ready "$id"
worker=$(worker_pid "$id")
exec 7<"$FLOWSUP_HOME/supervisor.log"
rm -rf "$FLOWSUP_HOME"
check "a supervisor whose directory was removed leaves" wait_until gone "$fourth"
# It may see it while it is being removed.
matches "and says why" "its (state directory|database|lock's file) was removed or replaced; 1 worker goes on" "$(cat <&7)"
exec 7<&-
check "the worker goes on" alive "$worker"
touch go
check "and ends with the first outcome that it cannot save" wait_until gone "$worker"

"$FLOWSUP" supervisor
fifth=$(supervisor_pid)
mv "$FLOWSUP_HOME" "$T/moved"
check "one whose directory was moved leaves too" wait_until gone "$fifth"
check "its socket goes with it" [ ! -e "$T/moved/supervisor.sock" ]

# ---- Stopping every run, where the database knows none ----
export FLOWSUP_HOME=$T/unknown
id=$("$FLOWSUP" start -- sh -c 'echo hi; exec sleep 600')
wait_until says_hi "$id" && wait_until worker_is_ready "$id"
worker=$(worker_pid "$id")
remove_database
timeout "$LIMIT" "$FLOWSUP" supervisor stop --all 2>"$T/err"
equal "stop --all says that something goes on" 3 $?
matches "and what" "run $id is not in the database, and its worker lives.*hint: flowsup doctor" "$(tr '\n' ' ' <"$T/err")"
kill -KILL "$worker"
wait_until gone "$worker"
timeout "$LIMIT" "$FLOWSUP" supervisor stop --all 2>"$T/err"
equal "also of what its worker leaves" 3 $?
matches "by its marks" "run $id is not in the database, and operations of it still run" "$(cat "$T/err")"

# ---- One that is there, and not whole ----
export FLOWSUP_HOME=$T/partly
"$FLOWSUP" start --wait -- true >/dev/null 2>&1
if [ -x /usr/bin/python3 ]; then
	sql() { /usr/bin/python3 -c 'import sqlite3, sys
sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None).execute(sys.argv[2])' "$FLOWSUP_HOME/state.db" "$1"; }
	sql "INSERT INTO schema_steps VALUES(99, 0)"
	look
	matches "doctor: steps of a newer program are told of" '"state":"note".*1 step of a newer flowsup' "$(doctor database)"
	sql "DROP TABLE session_controls"
	look
	matches "doctor: a table that is not there" '"state":"broken".*no such table: session_controls' "$(doctor database)"
else
	skip "python3 is not installed"
fi

plan
