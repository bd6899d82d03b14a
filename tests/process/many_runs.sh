#!/usr/bin/env bash
# Ten thousand runs: list whole, into head, on a terminal; completions stay short.
# shellcheck source=tests/process/lib.sh
. "$(dirname "$0")/lib.sh"
if ! command -v sqlite3 >/dev/null; then
	skip "sqlite3 is not installed"
	plan
fi
cd "$T" || exit 1
RUNS=10000
id=$("$FLOWSUP" start --name newest -- true) || exit 1
"$FLOWSUP" wait "$id"
"$FLOWSUP" supervisor stop --all
# The last to open the database must be gone before somebody else writes into it.
no_supervisor() { [ -z "$(supervisors)" ]; }
wait_until no_supervisor
sql "
	CREATE TEMP TABLE many AS
		WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < $RUNS)
		SELECT s.* FROM sessions s, c;
	UPDATE many SET id = lower(hex(randomblob(16))), run_id = printf('20250101T000000-%06x', rowid),
		name = 'older', created_at = created_at - 1 - rowid;
	INSERT INTO sessions SELECT * FROM many;"

"$FLOWSUP" list >all
equal "list prints every one" $((RUNS + 2)) "$(wc -l <all)"
equal "with the same width" 1 "$(awk '{ print index($0, "completed") }' all | sort -u | grep -vc '^0$')"
equal "and those that have no directory" $RUNS "$(grep -c 'completed (no directory)' all)"
(cd "$FLOWSUP_HOME/runs" && sql "SELECT run_id FROM sessions WHERE name = 'older' AND run_id NOT LIKE '%-000_07'" | xargs mkdir)
equal "which are few among many" "20250101T000000-000007" "$("$FLOWSUP" list | awk '/no directory/ { print $1; exit }')"
equal "each of them" 16 "$("$FLOWSUP" list | grep -c 'completed (no directory)')"
"$FLOWSUP" list 2>err | head -n 3 >first
equal "into head: no error" "0 0" "${PIPESTATUS[*]}"
equal "and nothing said" "" "$(cat err)"
matches "the newest first" "RUN.*$id +newest" "$(paste -sd' ' first)"
"$FLOWSUP" list --json | head -n 1 >first
equal "the same with --json" "0 0" "${PIPESTATUS[*]}"
equal "at most a number" 4 "$("$FLOWSUP" list -n 3 | wc -l)"
equal "a run in the middle is found" 20250101T000000-001000 \
	"$(json "$("$FLOWSUP" show --json 20250101T000000-001000 2>/dev/null)" id)"
equal "completions offer the newest fifty" 50 "$("$FLOWSUP" completion words -- show 2 | wc -l)"
env -u NO_COLOR TERM=xterm script -qec "stty cols 80 rows 24; $FLOWSUP list" /dev/null </dev/null | tr -d '\r' >screen
check "on a terminal as many as fit" [ "$(wc -l <screen)" -le 24 ]
check "the newest among them" grep -q "$id" screen
matches "and that there are more" "older runs.*hint: flowsup list -n 0" "$(tail -n 4 screen | paste -sd" ")"
plan
