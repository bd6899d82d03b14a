#!/usr/bin/env bash
# Work that an operation asks for while the state cannot be saved: it waits for the record, but not when the run
# is to end, which would wait for the operation in turn.
# shellcheck source=lib_disk.sh
. "$(dirname "$0")/lib_disk.sh"
if grep -q __asan_init "$WORKER"; then
	skip "a failing fsync and a clock that jumps (a sanitizer must come first)"
	plan
	exit
fi
mkdir "$T/w"
cd "$T/w" || exit 1
export PATH=$BUILD/bin:$PATH
cat >emits.json <<-'END'
	{"name": "emits", "reactive": "all", "plan": [
	 {"id": "a", "run": "echo a >>ran; until test -e go; do sleep 0.05; done; flowsup emit spawn --independent --run 'echo x >>ran' 2>said; echo $? >emit"}]}
END
ran() { grep -cx "$1" ran; }
event() { grep -q "\"event\":\"$1\"" "$FLOWSUP_HOME/runs/$run/events.jsonl"; }
reason_is() { [ "$(run_fact "$run" reason)" = "$1" ]; }
begin() {
	rm -f go ran said emit
	run=$("$FLOWSUP" start "$@" emits.json)
	wait_until [ -s ran ]
}
refused() { # WHAT
	check "$1: the request is answered" wait_until [ -s emit ]
	equal "$1: as not recorded" 74 "$(cat emit)"
	matches "$1: and says why" "the run is to end, and its state cannot be saved: .*; whether this will be recorded is not known" "$(cat said)"
}
unsaved() { # WHAT
	"$FLOWSUP" wait "$run" 2>/dev/null
	equal "$1: the run ends" "74 failed run.failed.checkpoint" "$? $(run_status "$run") $(run_fact "$run" reason)"
	matches "$1: what is not saved is named" "executed and not saved: a" "$("$FLOWSUP" show "$run")"
	equal "$1: nothing is called saved" 0 "$(grep -c CheckpointSaved "$FLOWSUP_HOME/runs/$run/events.jsonl")"
}
resumed() { # WHAT
	deadline_is_ahead
	"$FLOWSUP" resume "$run" --wait >/dev/null 2>&1
	equal "$1: a resume completes" 0 $?
	equal "$1: with one of what was asked for" "2 1" "$(ran a) $(ran x)"
}
asks() {
	touch "$T/fail" go
	wait_until reason_is run.running.storage
}

# ---- A disk that does not take what it was given ----
export FAIL_SYNC=$T/fail
LD_PRELOAD=$BUILD/tests/preload/fail_sync.so${LD_PRELOAD:+:$LD_PRELOAD} movable "$FLOWSUP" supervisor

begin --timeout 1h
asks
deadline_passes
refused "deadline"
unsaved "deadline"
rm "$T/fail"
resumed "deadline"

begin
asks
"$FLOWSUP" stop "$run" >/dev/null 2>&1
refused "stop"
unsaved "stop"
rm "$T/fail"
resumed "stop"

begin --storage-timeout 1s
asks
refused "the storage timeout"
unsaved "the storage timeout"
rm "$T/fail"
resumed "the storage timeout"

# What asks only then is refused at once, and nothing of it is recorded.
sed -i 's/flowsup emit/flowsup emit spawn --independent --run true 2>first; &/' emits.json
begin --timeout 1h
sed -i 's/flowsup emit spawn --independent --run true 2>first; //' emits.json
asks
deadline_passes
check "asked afterwards: it is answered" wait_until [ -s emit ]
equal "asked afterwards: as not recorded" 74 "$(cat emit)"
matches "asked afterwards: and says so" "nothing is recorded: the run is to end, and its state cannot be saved: " "$(cat said)"
unsaved "asked afterwards"
equal "asked afterwards: it was not added" 1 "$(grep -c NodeSpawned "$FLOWSUP_HOME/runs/$run/events.jsonl")"
rm "$T/fail"
deadline_is_ahead

# What can be saved at the end is.
begin --timeout 1h
asks
rm "$T/fail"
deadline_passes
"$FLOWSUP" wait "$run" 2>/dev/null
case "$? $(cat emit) $(run_status "$run")" in
"124 0 timed_out" | "0 0 completed") saved=yes ;; # it may have been saved, and run, before the deadline
*) saved="$(cat emit) $(run_status "$run")" ;;
esac
equal "saved at the end: it is accepted" yes "$saved"
deadline_is_ahead
"$FLOWSUP" supervisor stop >/dev/null 2>&1

# ---- A full disk, with the room for the database used up ----
if ! mount_disk 300; then
	skip "no room (this user may not mount)"
	plan
	exit
fi
export FLOWSUP_HOME=$T/disk/home
movable "$FLOWSUP" supervisor
begin --timeout 1h
fill
touch go
# The reserve is given back when the request cannot be recorded.
check "no room: the reserve is given back" wait_until [ ! -s "$FLOWSUP_HOME/reserve" ]
answered_without_it() {
	cat /dev/zero >>"$T/disk/fill2" 2>/dev/null
	[ -s emit ]
}
deadline_passes
check "no room: the request is answered" wait_until answered_without_it
# What was given back may have been enough for it.
matches "no room: as recorded or not" "^(0|74)$" "$(cat emit)"
room
"$FLOWSUP" wait "$run" 2>/dev/null
matches "room again: the run's end is recorded" "^(0 completed|74 failed|124 timed_out)$" "$? $(run_status "$run")"
deadline_is_ahead
[ "$(run_status "$run")" = completed ] || "$FLOWSUP" resume "$run" --wait >/dev/null 2>&1
equal "room again: nothing is left undone" 0 $?
check "room again: nor what was asked for" [ "$(ran x)" -ge 1 ]
"$FLOWSUP" supervisor stop >/dev/null 2>&1
plan
