#!/usr/bin/env bash
# A state directory without room, and one whose disk does not take what it was given: nothing is
# called saved that is not, nothing is started meanwhile, and everything goes on afterwards.
# shellcheck source=lib_disk.sh
. "$(dirname "$0")/lib_disk.sh"
mkdir "$T/w"
cd "$T/w" || exit 1
reason() { run_fact "$1" reason; }
reason_is() { [ "$(reason "$1")" = "$2" ]; }
events() { grep -c "\"event\":\"$2\".*\"op\":\"$3\"" "$FLOWSUP_HOME/runs/$1/events.jsonl"; }
started() { [ "$(grep -cx "$1" count)" -ge "$2" ]; }
ran() { grep -cx "$1" count; }

# The response of `large` needs more room than the reserve gives back.
cat >flow.json <<-'END'
	{"name": "storage", "plan": [
	 {"id": "first", "run": "echo first >>count"},
	 {"id": "large", "needs": ["first"], "run": "head -c 900000 /dev/zero | tr '\\0' x; echo large >>count; until test -e go; do sleep 0.05; done"},
	 {"id": "last", "needs": ["large"], "run": "echo last >>count"}]}
END
begin() {
	rm -f go count
	run=$("$FLOWSUP" start "$@" flow.json)
	wait_until started large 1
}
not_saved() {
	check "$1: the run says so" wait_until reason_is "$run" run.running.storage
	equal "$1: it is still running" running "$(run_status "$run")"
	equal "$1: the outcome is not called saved" 0 "$(events "$run" CheckpointSaved large)"
	matches "$1: show knows it too" '"large"[^}]*"saved":false' "$("$FLOWSUP" show --json "$run" | tr -d '\n ')"
	matches "$1: and why the next one is not started" '"last",[^}]*"why":"waits for the checkpoint to hold large"' \
		"$("$FLOWSUP" show --json "$run" | tr -d '\n')"
	equal "$1: nothing was started" 0 "$(ran last)"
}
went_on() {
	"$FLOWSUP" wait "$run" 2>/dev/null
	equal "$1: the run completes" 0 $?
	equal "$1: each ran once" "1 1 1" "$(ran first) $(ran large) $(ran last)"
	equal "$1: saved once" 1 "$(events "$run" CheckpointSaved large)"
}

# ---- No room ----
if ! mount_disk 300; then
	skip "no room (this user may not mount)"
else
	export FLOWSUP_HOME=$T/disk/home
	begin
	fill
	touch go
	not_saved "no room"
	room
	went_on "room again"

	begin
	fill
	touch go
	wait_until reason_is "$run" run.running.storage
	"$FLOWSUP" stop "$run" >/dev/null 2>&1
	equal "stop is taken" 0 $?
	"$FLOWSUP" wait "$run" 2>/dev/null
	equal "stop without room ends with 74" 74 $?
	equal "as failed" "failed run.failed.checkpoint" "$(run_status "$run") $(reason "$run")"
	matches "and names what was not saved" "not saved: large" "$("$FLOWSUP" show "$run")"
	equal "nothing was started" 0 "$(ran last)"
	room
	"$FLOWSUP" resume "$run" --wait >/dev/null 2>&1
	equal "a resume completes" 0 $?
	equal "from what was saved" "1 2 1" "$(ran first) $(ran large) $(ran last)"

	# A stop when there is room again saves what waits, and ends as any other.
	# The next one waits for a person: else the run could be over before the stop is there.
	sed -i 's/"id": "last",/& "gate": "approve",/' flow.json
	begin
	sed -i 's/ "gate": "approve",//' flow.json
	fill
	touch go
	wait_until reason_is "$run" run.running.storage
	matches "the reason says how much is wanted" "9[0-9]* bytes" "$("$FLOWSUP" show "$run")"
	room
	"$FLOWSUP" stop "$run" >/dev/null 2>&1
	"$FLOWSUP" wait "$run" 2>/dev/null
	equal "stop with room again ends as cancelled" cancelled "$(run_status "$run")"
	equal "with what was executed saved" 1 "$(events "$run" CheckpointSaved large)"
	equal "and nothing more started" 0 "$(ran last)"

	begin --storage-timeout 1s
	fill
	touch go
	"$FLOWSUP" wait "$run" 2>/dev/null
	equal "--storage-timeout ends it with 74" 74 $?
	equal "for this reason" run.failed.checkpoint "$(reason "$run")"
	room

	# An operation that cannot get its files waits, and has made no attempt.
	cat >pair.json <<-'PAIR'
		{"name": "pair", "concurrency": 1, "plan": [
		 {"id": "one", "run": "echo one >>count; until test -e go; do sleep 0.05; done"},
		 {"id": "two", "run": "echo two >>count; echo $FLOWSUP_ATTEMPT"}]}
	PAIR
	rm -f go count
	run=$("$FLOWSUP" start pair.json)
	wait_until started one 1
	mkdir "$T/disk/inodes"
	n=0
	while touch "$T/disk/inodes/$n" 2>/dev/null; do n=$((n + 1)); done
	touch go
	check "no files: the run says so" wait_until reason_is "$run" run.running.storage
	equal "no files: nothing was started" 0 "$(ran two)"
	rm -r "$T/disk/inodes"
	"$FLOWSUP" wait "$run" 2>/dev/null
	equal "files again: the run completes" 0 $?
	equal "files again: each ran once" "1 1" "$(ran one) $(ran two)"
	equal "files again: by its first attempt" 1 "$("$FLOWSUP" logs "$run" two | tail -1)"
	"$FLOWSUP" supervisor stop >/dev/null 2>&1
	export FLOWSUP_HOME=$T/home
fi

# ---- Files that may not grow ----
FLOWSUP_HOME=$T/limited
if ! command -v prlimit >/dev/null; then
	skip "a limit of file sizes (prlimit is missing)"
else
	# The workers' limit; operations have that of the start.
	(ulimit -S -f 800; "$FLOWSUP" supervisor)
	begin
	worker=$(worker_pid "$run")
	# Its log is above it as well.
	head -c 900000 /dev/zero | tr '\0' '\n' >>"$FLOWSUP_HOME/runs/$run/worker.log"
	touch go
	not_saved "files that may not grow"
	matches "files that may not grow: show says why" "[Ff]ile too large" "$("$FLOWSUP" show "$run")"
	equal "files that may not grow: the worker lives" "$worker" "$(worker_pid "$run")"
	prlimit --pid "$worker" --fsize=unlimited:
	went_on "files may grow"
	ignores() { # whether an operation ignores SIGXFSZ (25)
		"$FLOWSUP" start --wait "$@" 2>/dev/null | xargs "$FLOWSUP" logs | sed -n 's/^SigIgn:[[:space:]]*//p'
	}
	equal "operations have the default action" 0 $((0x$(ignores -- cat /proc/self/status) >> 24 & 1))
	printf '{"plan": [{"id": "a", "keeper": true, "exec": ["cat", "/proc/self/status"]}]}' >kept.json
	equal "below a keeper too" 0 $((0x$(ignores kept.json) >> 24 & 1))
	"$FLOWSUP" supervisor stop
fi

# ---- An fsync that fails ----
if grep -q __asan_init "$WORKER"; then
	skip "a failing fsync (a sanitizer must come first)"
else
	LD_PRELOAD=$BUILD/tests/preload/fail_sync.so${LD_PRELOAD:+:$LD_PRELOAD}
	export LD_PRELOAD FAIL_SYNC=$T/fail
	begin
	touch "$T/fail" go
	not_saved "fsync fails"
	rm "$T/fail"
	went_on "fsync works again"

	# The database is on the same disk: its row does not say what is wrong.
	"$FLOWSUP" supervisor stop
	export FAIL_SYNC_OF=/
	begin
	touch "$T/fail" go
	reported() { grep -q '"event":"CheckpointError"' "$FLOWSUP_HOME/runs/$run/events.jsonl"; }
	check "every fsync fails: its events say so" wait_until reported
	shown=$("$FLOWSUP" show --json "$run" | tr -d '\n')
	matches "what could not be saved is not called so" '"large"[^}]*"saved": ?false' "$shown"
	matches "and what waits for it" '"last",[^}]*"why": ?"waits for the checkpoint to hold large"' "$shown"
	matches "the reason is no other than it is" \
		'"reason_text": ?"checkpoints cannot be written \(.*; this could not be recorded yet"' "$shown"
	rm "$T/fail"
	went_on "every fsync works again"
fi
plan
