#!/usr/bin/env bash
# How an operation ended that outlived its worker, known to the supervisor alone because it could not be
# written down: a resume asks for it, or is refused and says why; the operation never runs twice.
# shellcheck source=lib_disk.sh
. "$(dirname "$0")/lib_disk.sh"

have_disk 2000 "no room"
export FLOWSUP_HOME=$T/disk/home

state() { sed -nE 's/^State:[[:space:]]+(.).*/\1/p' "/proc/$1/status"; }
is() { [ "$(state "$1")" = "$2" ]; }
reaped() { [ ! -e "/proc/$1" ]; }
record() { [ -e "$FLOWSUP_HOME/runs/$run/ops/sh.1/exit.json" ]; }
# Nothing can be written into a directory that is a file, however much room there is.
hinder() { : >"$FLOWSUP_HOME/runs/$run/ops/sh.1"; }
unhinder() { rm "$FLOWSUP_HOME/runs/$run/ops/sh.1"; }
resume() { timeout "$LIMIT" "$FLOWSUP" resume "$@" >"$T/out" 2>"$T/err"; }

# Its end comes to the supervisor with the worker's death, before anything tells whose it was.
ends_before_report() {
	kill -STOP "$worker"
	wait_until is "$worker" T
	touch "$T/go"
	wait_until is "$op" Z
	"$@"
	kill -KILL "$worker"
	wait_until reaped "$worker"
	wait_until reaped "$op"
}
# The supervisor knows it before it ends, and has it as its child.
ends_after_report() {
	kill -KILL "$worker"
	wait_until reaped "$worker"
	wait_until known
	"$@"
	touch "$T/go"
	wait_until is "$op" Z
}
refused() {
	equal "a resume is refused while it cannot be written ($1)" 5 "$2"
	matches "and says why ($1)" "operation sh .*has ended, and how is not written down: .*sh.1" "$(cat "$T/err")"
	matches "and what to do ($1)" "hint: flowsup resume $run" "$(cat "$T/err")"
	equal "and has run nothing ($1)" 1 "$(runs)"
}

for when in ends_before_report ends_after_report; do
	begin_counted
	$when hinder
	wait_until status_is "$run" crashed
	resume --wait "$run"
	refused "$when" $?
	resume --wait "$run"
	refused "$when, again" $?
	"$FLOWSUP" supervisor restart >/dev/null 2>"$T/err"
	equal "the supervisor executes itself anew ($when)" 0 $?
	resume --wait "$run"
	refused "$when, after a restart" $?
	unhinder
	resume --wait "$run"
	equal "with the hindrance gone it is resumed ($when)" 0 $?
	equal "and its operation ran once ($when)" 1 "$(runs)"
	check "the record is there ($when)" record
done

# A full disk, and room again right before the resume: the supervisor need not have tried again by itself.
for when in ends_before_report ends_after_report; do
	begin_counted
	$when fill
	fill
	resume --wait "$run"
	check "without room nothing goes on ($when)" [ $? -ne 0 ]
	equal "and nothing runs ($when)" 1 "$(runs)"
	"$FLOWSUP" supervisor restart >/dev/null 2>&1
	equal "it executes itself anew on a full disk ($when)" 0 $?
	room
	resume --wait "$run"
	equal "with room it is resumed ($when)" 0 $?
	equal "and its operation ran once on a full disk ($when)" 1 "$(runs)"
done

# One that does not answer may know it.
for when in ends_before_report ends_after_report; do
	begin_counted
	$when hinder
	wait_until status_is "$run" crashed
	supervisor=$(supervisor_pid)
	kill -STOP "$supervisor"
	unhinder
	resume --dry-run "$run"
	matches "a dry run says that it may know more ($when)" \
		"how operation sh \\(process [0-9]+\\) ended is not written down.*process $supervisor, is stopped.*hint: kill -CONT $supervisor" \
		"$(tr '\n' ' ' <"$T/err")"
	matches "also in JSON ($when)" '"unheard":\["how operation sh' "$("$FLOWSUP" resume --dry-run --json "$run" 2>/dev/null)"
	resume --wait "$run"
	equal "a supervisor that does not answer is waited for, then it is refused ($when)" 5 $?
	matches "and says why ($when)" "operation sh .*has ended.*(does not answer|is stopped|has not yet written down how)" "$(cat "$T/err")"
	matches "and what to do ($when)" "hint: (flowsup resume $run|kill -CONT $supervisor)" "$(cat "$T/err")"
	equal "and has run nothing without an answer ($when)" 1 "$(runs)"
	kill -CONT "$supervisor"
	resume --wait "$run"
	equal "with an answer it is resumed ($when)" 0 $?
	equal "and its operation ran once then ($when)" 1 "$(runs)"
done

# The run's directory is away when it ends, in another file system: its old place has no name any more.
leave() { cp -a "$FLOWSUP_HOME/runs/$run" "$T/disk/away" && rm -r "${FLOWSUP_HOME:?}/runs/$run"; }
back() { mv "$T/disk/away" "$FLOWSUP_HOME/runs/$run"; }
for when in ends_before_report ends_after_report; do
	begin_counted
	$when leave
	wait_until status_is "$run" crashed
	resume --wait "$run"
	equal "nothing goes on without the directory ($when)" "74 1" "$? $(runs)"
	"$FLOWSUP" supervisor restart >/dev/null 2>&1
	back
	resume --wait "$run"
	equal "once it is back the end is there to be taken over ($when)" "0 1" "$? $(runs)"
	check "it was written down ($when)" record
done
begin_counted
ends_after_report leave
check "it is said that it is not written down" wait_until logged "run $run: how ops/sh.1 ended is not written down yet"
back
check "also without a resume it is, once the directory is back" wait_until record
begin_counted
ends_after_report leave
wait_until logged "run $run: how ops/sh.1 ended is not written down yet"
rm -r "$T/disk/away"
check "while its row is there it may come back" is "$op" Z
sql "DELETE FROM sessions WHERE run_id = '$run'"
check "a run that is known to be gone is waited for no more" wait_until reaped "$op"
plan
