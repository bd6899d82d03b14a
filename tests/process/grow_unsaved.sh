#!/usr/bin/env bash
# What was added leaves with a parent that runs again: also where it has ended without a worker, or still runs,
# that is nothing to lose unasked.
# shellcheck source=lib_grow.sh
. "$(dirname "$0")/lib_grow.sh"

has_line() { grep -qx "$1" "$T/count" 2>/dev/null; }
has_end() { [ -e "$(run_dir)/ops/$1.1/exit.json" ]; }
lose_worker() { # what it ran lives on
	local pid
	pid=$(worker_pid "$RUN")
	kill -KILL "$pid"
	wait_until status_is "$RUN" crashed
}
# p fails once what it has added runs; fl handles that.
flow() { # a line of the document
	rm -f "$T"/gates/* "$T/count"
	begin <<Y
name: unsaved
reactive: all
orphans: keep
${1:-}
plan:
  - id: p
    run: |
      flowsup emit spawn --independent --run 'echo \$FLOWSUP_OP_ID >>"\$T/count"; until [ -e "\$T/gates/go" ]; do sleep 0.02; done; echo precious'
      until [ -e "\$T/count" ]; do sleep 0.02; done
      test -e "\$T/gates/ok"
  - {id: fl, needs: [{op: p, on: failure}], run: 'echo fl >>"\$T/count"; until [ -e "\$T/gates/go" ]; do sleep 0.02; done'}
Y
	wait_until has_line p.s1
	wait_until has_line fl
}
refused() { # CODE, and nothing was started
	equal "$1: refused" 4 "$2"
	equal "$1: nothing was made of it" 1 "$(grep -cx p.s1 "$T/count")"
}

flow
lose_worker
# ---- It still runs ----
next_of() { "$FLOWSUP" show "$RUN" | sed -n 's/^next *//p'; }
suggested="flowsup resume $RUN --retry-failed --drop-respawned"
equal "what is suggested is not refused for it" "$suggested" "$(next_of)"
matches "in a list, too" "$suggested" "$("$FLOWSUP" list | tr -s ' \n\\' ' ')"
out=$("$FLOWSUP" resume "$RUN" --retry-failed --dry-run 2>"$T/err")
refused "a dry run, while it runs" $?
matches "with a row that says so" 'p\.s1 +refused +p runs again, so what it had added is not carried over, and this is running' "$out"
"$FLOWSUP" resume "$RUN" --retry-failed >/dev/null 2>"$T/err"
refused "a resume, while it runs" $?
matches "which says so, and what lifts it" "operation p\.s1: p runs again, .*this is running; lifted by: flowsup resume $RUN --retry-failed --drop-respawned" \
	"$(cat "$T/err")"

# ---- It has ended ----
open_gate go
wait_until has_end p.s1
wait_until has_end fl
equal "nor once it has ended" "$suggested" "$(next_of)"
matches "kept failures take it over" 'p\.s1 +taken over +has ended without its worker' \
	"$("$FLOWSUP" resume "$RUN" --keep-failed --dry-run 2>&1)"
out=$("$FLOWSUP" resume "$RUN" --retry-failed --dry-run --json 2>/dev/null)
refused "a dry run, once it has ended" $?
matches "as JSON" '"id":"p\.s1","parent":"p","parent_fate":"runs again","status":"pending","unsaved":"has ended without its worker"' "$out"
"$FLOWSUP" resume "$RUN" --retry-failed >/dev/null 2>"$T/err"
refused "a resume, once it has ended" $?
matches "which says that" "operation p\.s1: p runs again, .*this has ended without its worker; lifted by: .* --drop-respawned" "$(cat "$T/err")"
open_gate ok
matches "with leave its row says what it is" 'p\.s1 +left out +p, which had added it, runs again; has ended without its worker' \
	"$("$FLOWSUP" resume "$RUN" --retry-failed --drop-respawned --dry-run 2>&1)"
RUN=$("$FLOWSUP" resume "$RUN" --retry-failed --drop-respawned 2>"$T/err")
check "and it goes on" wait_until ended
matches "which is told" 'operation p\.s1: left out \(has ended without its worker\), because p, which had added it, runs again' "$(cat "$T/err")"
equal "with what it asks for now" "completed p.s2" "$(run_status "$RUN") $(spawned '" ".join(sorted(by))')"

# ---- What was added by what was added ----
rm -f "$T"/gates/*
begin <<'Y'
reactive: all
plan:
  - id: p
    run: |
      flowsup emit spawn --independent --run 'flowsup emit spawn --independent --run "true"'
      until [ -e "$T/gates/go" ]; do sleep 0.02; done
      false
Y
both_are_saved() { [ "$(spawned '" ".join(e["status"] for e in s)')" = "completed completed" ]; }
wait_until both_are_saved
open_gate go
wait_until ended
out=$("$FLOWSUP" resume "$RUN" --retry-failed --drop-respawned --dry-run 2>&1)
matches "it leaves with what runs again" 'p\.s1 +left out +p, which had added it, runs again' "$out"
matches "or with what is left out" 'p\.s1\.s1 +left out +p\.s1, which had added it, is left out' "$out"

# ---- By itself ----
flow 'restart: {on: crash, attempts: 2, failed: retry}'
pid=$(json "$(grep '"op":"p.s1"' "$(run_dir)/attempts.log" | head -1)" pid)
kill -KILL "$(worker_pid "$RUN")"
given_up() { "$FLOWSUP" show "$RUN" | grep -q 'p\.s1.*not carried over, and this is running'; }
check "a resume by itself is given up, and says why" wait_until given_up
check "what runs goes on" kill -0 "$pid"
equal "and was begun once" 1 "$(grep -c '^p\.s' "$T/count")"
open_gate go
wait_until gone "$pid"
plan
