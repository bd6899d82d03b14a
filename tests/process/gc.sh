#!/usr/bin/env bash
# gc removes old runs, whole, and nothing that others need.
. "$(dirname "$0")/lib.sh"

db() { sqlite3 "$FLOWSUP_HOME/state.db" "PRAGMA busy_timeout=5000; $1" | grep -v '^5000$'; }
older() { # RUN DAYS
	db "UPDATE sessions SET ended_at = ended_at - $2 * 86400, created_at = created_at - $2 * 86400 WHERE run_id = '$1'"
}
finished() { local id; id=$("$FLOWSUP" start "$@"); "$FLOWSUP" wait "$id" >/dev/null 2>&1; echo "$id"; }
there() { [ -d "$FLOWSUP_HOME/runs/$1" ] && [ "$(db "SELECT COUNT(*) FROM sessions WHERE run_id = '$1'")" = 1 ]; }
away() { [ ! -e "$FLOWSUP_HOME/runs/$1" ] && [ "$(db "SELECT COUNT(*) FROM sessions WHERE run_id = '$1'")" = 0 ]; }

"$FLOWSUP" supervisor
old=$(finished -- true)
middle=$(finished -- true)
new=$(finished -- true)
# A chain: the first of it is as old, its successor is not.
first=$(finished -- false)
second=$("$FLOWSUP" resume "$first" --retry-failed 2>/dev/null)
"$FLOWSUP" wait "$second" 2>/dev/null
running=$("$FLOWSUP" start -- sh -c "until [ -e '$T/go' ]; do sleep 0.02; done")
wait_until worker_is_ready "$running"
older "$old" 40; older "$middle" 20; older "$first" 50

before=$(find "$FLOWSUP_HOME/runs" | sort; db 'SELECT COUNT(*) FROM sessions')
equal "a dry run names what would go" "$old" "$("$FLOWSUP" gc --keep-days 30 --dry-run 2>/dev/null)"
equal "and changes nothing" "$before" "$(find "$FLOWSUP_HOME/runs" | sort; db 'SELECT COUNT(*) FROM sessions')"
equal "what the newest N hold stays" "" "$("$FLOWSUP" gc --keep-days 30 --keep-n 10 --dry-run 2>/dev/null)"
out=$("$FLOWSUP" gc --keep-days 30 2>"$T/said")
equal "old runs are removed" "$old" "$out"
matches "it says what stays because it is needed" "1 because later runs need" "$(cat "$T/said")"
check "row and directory" away "$old"
check "younger ones stay" there "$middle"
check "what a later run was resumed from stays" there "$first"
check "what runs stays" there "$running"
equal "nothing of it is left in the database" 0 \
	"$(db "SELECT COUNT(*) FROM status_transitions WHERE session_id NOT IN (SELECT id FROM sessions)")"
equal "its id is unknown now" 2 "$("$FLOWSUP" show "$old" >/dev/null 2>&1; echo $?)"
older "$second" 35
out=$("$FLOWSUP" gc --keep-days 30 2>/dev/null | sort | paste -sd ' ')
equal "a whole chain goes together" "$(printf '%s\n' "$first" "$second" | sort | paste -sd ' ')" "$out"
out=$("$FLOWSUP" gc --keep-n 2 --json 2>/dev/null)
matches "by number: the newest stay" "\"id\":\"$middle\",\"removed\":true" "$out"
check "what runs counts and stays" there "$running"
check "the newest finished one too" there "$new"

# ---- What something holds ----
held=$("$FLOWSUP" start -- sh -c 'exec sleep 1000')
wait_until worker_is_ready "$held"
wait_until eval '"$FLOWSUP" show --json "$held" | grep -q "\"state\":\"running\""'
kill -KILL "$(worker_pid "$held")"
crashed() { "$FLOWSUP" list --json | grep "^{\"id\":\"$held\"" | grep -q '"status":"crashed"'; }
wait_until crashed
older "$held" 90
out=$("$FLOWSUP" gc --keep-days 30 --dry-run 2>"$T/said")
equal "a dry run does not name one of which operations run" "" "$out"
matches "it says that it stays" "run $held is kept: operations of it still run" "$(cat "$T/said")"
"$FLOWSUP" gc --keep-days 30 >/dev/null 2>"$T/said"
matches "one of which operations run stays" "run $held is kept: operations of it still run" "$(cat "$T/said")"
check "whole" there "$held"
"$FLOWSUP" kill "$held" 2>/dev/null

# ---- Interrupted removals, unfinished starts ----
touch "$T/go"
"$FLOWSUP" wait "$running" 2>/dev/null
mv "$FLOWSUP_HOME/runs/$running" "$FLOWSUP_HOME/runs/.gone-$running"
mkdir -p "$FLOWSUP_HOME/runs/.gone-20250101T000000-abcdef/ops" "$FLOWSUP_HOME/runs/.new-20250101T000000-abcdee"
touch -d '3 days ago' "$FLOWSUP_HOME/runs/.new-20250101T000000-abcdee"
mkdir "$FLOWSUP_HOME/runs/.new-20250101T000000-abcded"
cut=20250101T000000-abcdec
cp -a "$FLOWSUP_HOME/runs/$new" "$FLOWSUP_HOME/runs/$cut"
lost=20250101T000000-abcdeb
cp -a "$FLOWSUP_HOME/runs/$new" "$FLOWSUP_HOME/runs/$lost"
: >"$FLOWSUP_HOME/runs/$cut/making"
: >"$FLOWSUP_HOME/runs/$new/making"
mkdir "$FLOWSUP_HOME/runs/.new-$cut" && : >"$FLOWSUP_HOME/runs/.new-$cut/making"
exec 9<"$FLOWSUP_HOME/runs/$cut/making" && flock 9
matches "doctor counts them" 'leftovers .*4 directories of starts or removals that were cut off.*hint: flowsup gc' \
	"$("$FLOWSUP" doctor 2>/dev/null)"
"$FLOWSUP" gc --keep-days 1000 2>/dev/null
check "a start that is under way is left alone" [ -d "$FLOWSUP_HOME/runs/$cut" ]
exec 9<&-
matches "one that was cut off before it had its row is counted" 'leftovers .*1 directory' "$("$FLOWSUP" doctor 2>/dev/null)"
"$FLOWSUP" gc --keep-days 1000 2>/dev/null
check "and taken away" [ ! -e "$FLOWSUP_HOME/runs/$cut" ]
check "what has a row stays" there "$new"
check "and what has lost it" [ -d "$FLOWSUP_HOME/runs/$lost" ]
rm -r "${FLOWSUP_HOME:?}/runs/$lost"
check "a removal that was interrupted is finished" away "$running"
equal "leftovers are gone, but for a start that may be under way" ".new-20250101T000000-abcded" \
	"$(cd "$FLOWSUP_HOME/runs" && ls -A | grep '^\.')"

# ---- What is no directory of ours is set aside ----
runs=$FLOWSUP_HOME/runs
aside() { # WHAT PATTERN HINT: gc removes every other run, leaves $mid and says why
	before=$(finished -- true) after=$(finished -- true)
	older "$before" 2001; older "$mid" 2000; older "$after" 1999
	matches "doctor tells $1" "warning runs run $mid: its directory: .*$2.* hint: $3" \
		"$("$FLOWSUP" doctor | paste -sd' ' | tr -s ' ')"
	equal "$1: a dry run names the others" "$after $before" "$("$FLOWSUP" gc --keep-days 1000 --dry-run 2>"$T/said" | paste -sd' ')"
	equal "$1: gc removes the others" "$after $before 78" \
		"$("$FLOWSUP" gc --keep-days 1000 2>"$T/said" | paste -sd' ') $("$FLOWSUP" gc --keep-days 1000 >/dev/null 2>&1; echo $?)"
	matches "$1: and says what is left" "run $mid: its directory: .*$2.*hint: $3.*2 runs removed.*and 1 left" \
		"$(paste -sd' ' "$T/said")"
	equal "$1: also to programs" '"removed":false' \
		"$("$FLOWSUP" gc --keep-days 1000 --json 2>/dev/null | grep -F "\"$mid\"" | grep -o '"removed":[a-z]*')"
	check "$1: its row stays" [ "$(db "SELECT COUNT(*) FROM sessions WHERE run_id = '$mid'")" = 1 ]
}
mid=$(finished -- true)
chmod 777 "$runs/$mid"
aside "one where others may write" "others may write" "chmod go-w $runs/$mid"
chmod 700 "$runs/$mid"
mv "$runs/$mid" "$T/moved"
: >"$runs/$mid"
aside "a file" "Not a directory" "ls -ld $runs/$mid"
rm "$runs/$mid"
ln -s "$T/moved" "$runs/$mid"
aside "a symbolic link" "Not a directory|symbolic" "ls -ld $runs/$mid"
check "what it leads to is left alone" [ -e "$T/moved/flow.json" ]
rm "$runs/$mid"
"$FLOWSUP" gc --keep-days 1000 >/dev/null 2>&1
equal "with it away gc succeeds" "0 0" "$? $(db "SELECT COUNT(*) FROM sessions WHERE run_id = '$mid'")"

# ---- Several at once ----
for i in 1 2 3 4 5 6 7 8; do older "$(finished -- true)" 2000; done
empty=20250101T000000-abcdea
mkdir "$FLOWSUP_HOME/runs/$empty"
pids=()
for i in 1 2 3 4; do
	"$FLOWSUP" gc --keep-days 1000 2>"$T/gc-$i" &
	pids+=($!)
done
bad=0
for pid in "${pids[@]}"; do wait "$pid" || bad=$((bad + 1)); done
equal "four at once all succeed" 0 "$bad"
equal "each run was removed once" 8 "$(($(sed -nE 's/^flowsup: ([0-9]+) runs? removed.*/\1/p' "$T"/gc-[1-4] | paste -sd+)))"
check "an empty directory without a row is taken away" [ ! -e "$FLOWSUP_HOME/runs/$empty" ]

# ---- Once a day, by the supervisor ----
ancient=$(finished -- true)
older "$ancient" 4000
mkdir -p "$T/config/flowsup"
printf 'keep: {days: 3000, runs: 0, failed_days: 3000}\n' >"$T/config/flowsup/config.yaml"
"$FLOWSUP" supervisor stop
rm -f "$FLOWSUP_HOME/gc.last"
(export XDG_CONFIG_HOME=$T/config CLOCK_OF=flowsup CLOCK_RATE=200 LD_PRELOAD=$BUILD/tests/preload/clock.so
	exec "$FLOWSUP" supervisor --idle-exit 0)
check "the supervisor removes what the configuration does not keep" wait_until away "$ancient"
check "and says so" wait_until logged "gc by the configuration: exit 0: 1 run removed"
"$FLOWSUP" supervisor stop
"$FLOWSUP" start --home "$T/other" --foreground -- true >/dev/null 2>&1
matches "what nothing needs is not counted as needed" "0 runs would be removed, [0-9]+ kept$" \
	"$("$FLOWSUP" gc --dry-run --keep-days 30 --home "$T/other" 2>&1)"
plan
