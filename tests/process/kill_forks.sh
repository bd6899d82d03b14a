#!/usr/bin/env bash
# kill of operations that answer TERM by starting more: in their session, in a new one, without their environment,
# generation after generation. Nothing is left; and what an interrupted kill leaves is no worker that stands still.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
mkdir "$T/w"
cd "$T/w" || exit 1

# Each writes down its number, and lives until the one that it starts as its answer has done so too.
cat >stubborn <<'END_OF_PROGRAM'
where=$1 kind=$2 left=$3
answer() {
	local lines
	lines=$(wc -l <"$where/pids.$kind")
	case $kind in
	here) bash "$0" "$where" here $((left - 1)) & ;;
	session) setsid bash "$0" "$where" session $((left - 1)) & ;;
	bare) env -i PATH="$PATH" setsid bash "$0" "$where" bare $((left - 1)) & ;;
	esac
	until [ "$(wc -l <"$where/pids.$kind")" -gt "$lines" ]; do sleep 0.02; done
}
trap '[ "$left" -le 0 ] || answer; exit 0' TERM
echo $$ >>"$where/pids.$kind"
while :; do sleep 0.02; done
END_OF_PROGRAM
cat >flow.yaml <<-'END'
	concurrency: 3
	defaults: {grace: 1m}
	plan:
	  - {id: a, run: 'bash "$W/stubborn" "$W" here 2'}
	  - {id: b, run: 'bash "$W/stubborn" "$W" session 2'}
	  - {id: c, run: 'bash "$W/stubborn" "$W" bare 1000'}
END
export W=$T/w
all_run() { [ -s pids.here ] && [ -s pids.session ] && [ -s pids.bare ]; }
none_lives() {
	local pid
	for pid in $(cat pids.*); do gone "$pid" || return 1; done
}
# A process that is just being started has not written down its number yet: it shows by its words.
no_other() { ! grep -lzs "$W/[s]tubborn" /proc/[0-9]*/cmdline | grep -q .; }
run=$("$FLOWSUP" start flow.yaml)
wait_until all_run
worker=$(worker_pid "$run")
said=$("$FLOWSUP" kill "$run" 2>&1)
equal "kill succeeds" 0 $?
check "its worker is gone" gone "$worker"
check "nothing of all that was started lives" none_lives
check "nor of what had only begun" no_other
matches "what answers again and again is not asked for ever" '\([1-9][0-9]* by SIGKILL\)' "$said"
check "it did answer" [ "$(wc -l <pids.bare)" -ge 2 ]

# ---- A kill that is interrupted ----
rm -f pids.*
cat >deaf.yaml <<-'END'
	defaults: {grace: 1h}
	plan: [{id: a, run: 'trap "echo asked >asked" TERM; echo $$ >pid; while :; do sleep 0.02; done'}]
END
run=$("$FLOWSUP" start deaf.yaml)
wait_until [ -s pid ]
worker=$(worker_pid "$run")
"$FLOWSUP" kill "$run" 2>/dev/null &
killer=$!
check "an operation is asked to end" wait_until [ -e asked ]
kill -TERM $killer
wait $killer
equal "who waits for it is interrupted" 130 $?
check "the worker does not stand on" wait_until gone "$worker"
equal "the run is one that was killed" run.cancelled.killed "$(run_fact "$run" reason_code)$(run_fact "$run" reason)"
check "the operation lives" alive "$(cat pid)"
kill -KILL "$(cat pid)"
"$FLOWSUP" kill "$run" 2>/dev/null
equal "a second kill proves that nothing is left" 0 $?
plan
