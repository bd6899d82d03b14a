#!/usr/bin/env bash
# What show says of how operations ended: statuses, signals, what could not be started, and what
# came from an earlier run.
. "$(dirname "$0")/lib.sh"
mkdir "$T/work" && cd "$T/work" || exit 1

op() { # run, operation, members of it joined by blanks
	local run=$1 id=$2
	shift 2
	"$FLOWSUP" show --json "$run" | perl -MJSON::PP -e '
		my $o = JSON::PP->new->utf8->decode(join "", <STDIN>);
		my ($op) = grep { $_->{id} eq $ARGV[0] } @{$o->{ops}};
		my @values = map { exists $op->{$_} ? $op->{$_} // "null" : "absent" } @ARGV[1 .. $#ARGV];
		print "@values"' "$id" "$@"
}
row() { "$FLOWSUP" show "$1" | grep "^$2 "; }

mkdir gone
cat >ends.yaml <<'YAML'
name: ends
plan:
  - {id: good, run: "rmdir gone"}
  - {id: status, run: "exit 3"}
  - {id: killed, run: "kill -KILL $$"}
  - {id: late, run: "sleep 60", timeout: 200ms}
  - {id: polite, run: "trap \"exit 0\" TERM; touch trapped; while :; do sleep 0.02; done", silence: {after: 1s, strict: true}}
  - {id: absent, needs: [good], run: "true", cwd: gone}
YAML
run=$("$FLOWSUP" start --wait ends.yaml 2>"$T/lines")
matches "the run has failed" failed "$(cat "$T/lines")"
equal "a status" "exit 0 3 null" "$(op "$run" status class replayed exit signal)"
equal "a signal is no status" "signal 0 null SIGKILL" "$(op "$run" killed class replayed exit signal)"
equal "nor is that of a timeout" "timeout null SIGTERM" "$(op "$run" late class exit signal)"
equal "what leaves with 0 when it is told to has failed, and the reason says so" \
	"silence 0 null silence: no sign of life for 1s; left with status 0 when told to" "$(op "$run" polite class exit signal why)"
equal "an errno is no status" "spawn 0 null null" "$(op "$run" absent class replayed exit signal)"
equal "success is 0" "null 0 0 null" "$(op "$run" good class replayed exit signal)"
matches "the table names the signal" "failed +SIGKILL" "$(row "$run" killed)"
matches "and has a dash for what did not start" "failed +- " "$(row "$run" absent)"
equal "nothing came from another run" "" "$("$FLOWSUP" show "$run" | grep replayed)"
# ---- Who sees no output is told what came of it ----
told() { "$FLOWSUP" logs "$@" 2>&1 >"$T/out" | paste -sd' '; }
matches "logs of what could not be started says why, and where to look" \
	"flowsup: absent failed: .*gone.*No such file or directory.*hint: flowsup show $run" "$(told "$run" absent)"
matches "of one that failed without a word" 'status failed: exit status 3 hint' "$(told "$run" status)"
matches "also by its attempt" 'status failed: exit status 3 hint' "$(told "$run" status --attempt 1)"
matches "and with --stderr" 'status failed: exit status 3 hint' "$(told "$run" status --stderr)"
equal "what completed without a word says nothing" "" "$(told "$run" good)"
matches "of the whole run the first ones" 'flowsup: status failed: exit status 3 .*flowsup: and 2 more hint: flowsup show' "$(told "$run")"
equal "standard output stays empty" "" "$(cat "$T/out")"
rm "$FLOWSUP_HOME/runs/$run/attempts.log"
equal "also without the log of attempts" "" "$("$FLOWSUP" show "$run" | grep replayed)"

cat >again.yaml <<'YAML'
name: again
plan:
  - {id: first, run: "true"}
  - {id: second, needs: [first], run: "test -e go"}
YAML
run=$("$FLOWSUP" start --wait again.yaml 2>"$T/lines")
touch go
next=$("$FLOWSUP" show "$run" | sed -n 's/^next *flowsup //p')
equal "a failed run is offered what its resume needs" "resume $run --retry-failed" "$next"
equal "also by list" "flowsup resume $run --retry-failed" "$(run_fact "$run" resume_command)"
# shellcheck disable=SC2086
new=$("$FLOWSUP" $next --wait 2>"$T/lines")
equal "and that goes on" 0 $?
equal "what was carried over is replayed" "completed 1" "$(op "$new" first state replayed)"
equal "what ran again is not" "completed 0" "$(op "$new" second state replayed)"
matches "and the text says it" "replayed from an earlier run" "$(row "$new" first)"

# ---- Where the document says what becomes of failures, nobody is asked to ----
run=$("$FLOWSUP" start --wait - 2>"$T/lines" <<'YAML'
name: settled
restart: {failed: retry}
plan: [{id: bad, run: "exit 3"}]
YAML
)
for each in "next of $("$FLOWSUP" show "$run" | sed -n 's/^next *//p')" "json of $(run_fact "$run" resume_command)" \
	"table of $("$FLOWSUP" list -n 1 | grep -oE 'flowsup resume .*')" "hint of $(sed -n 's/^hint: \(flowsup resume[^#]*[^# ]\) *#.*/\1/p' "$T/lines")"; do
	equal "a policy for failures: ${each%% *}" "flowsup resume $run" "${each#* of }"
done

# ---- Whatever ended a run, a failure in it has to be spoken of ----
cat >mixed.yaml <<'YAML'
name: mixed
plan:
  - {id: bad, run: "test -e better"}
  - {id: slow, run: "test -e better || sleep 1000"}
YAML
has_failed() { [ "$(op "$1" bad state saved) $(op "$1" slow state)" = "failed 1 running" ]; }
for ending in "stop --now --wait" "kill" crash; do
	# What was not saved has its times from the events.
	timed() { [[ "$(op "$run" slow state started_at ended_at)" =~ ^cancelled\ [0-9.]+\ [0-9.]+$ ]]; }
	rm -f better
	run=$("$FLOWSUP" start mixed.yaml)
	wait_until has_failed "$run"
	# shellcheck disable=SC2086 # words are meant
	if [ "$ending" = crash ]; then
		kill -KILL "$(worker_pid "$run")"
		wait_until status_is "$run" crashed
		"$FLOWSUP" stop "$run" 2>/dev/null
		matches "$ending: the hint of a stop says it" "hint: flowsup resume $run --retry-failed" \
			"$("$FLOWSUP" stop "$run" 2>&1)"
	else
		"$FLOWSUP" ${ending%% *} "$run" $(cut -sd' ' -f2- <<<"$ending") 2>/dev/null
		"$FLOWSUP" wait "$run" 2>/dev/null
	fi
	[ "${ending%% *}" != stop ] || check "$ending: how long what was cancelled ran is known" timed
	next=$("$FLOWSUP" show "$run" | sed -n 's/^next *flowsup //p')
	equal "$ending: the failure is spoken of" "resume $run --retry-failed" "$next"
	equal "$ending: also by list" "flowsup resume $run --retry-failed" "$(run_fact "$run" resume_command)"
	touch better
	# shellcheck disable=SC2086 # words are meant
	"$FLOWSUP" $next --wait >/dev/null 2>"$T/lines"
	equal "$ending: and that goes on" 0 $?
done

# ---- Attempts: what one waits for, and what the next one was for ----
run=$("$FLOWSUP" start - <<'YAML'
concurrency: 1
plan:
  - {id: again, run: "exit 4", retry: {attempts: 2, backoff: 1000s}}
  - {id: busy, run: "sleep 1000"}
  - {id: next, run: "true"}
YAML
)
why_is() { [[ "$(op "$run" "$1" state why)" =~ ^$2$ ]]; }
check "with all slots taken a further attempt waits for one as well; it says which, when, and after what" \
	wait_until why_is again "waiting waits for its next attempt, 2 of 2, in [0-9m]+s?( ?[0-9]+s)?, after exit 4, and for a slot"
equal "and so does what never ran" "pending waits for a slot" "$(op "$run" next state why)"
"$FLOWSUP" kill "$run" 2>/dev/null
first=$("$FLOWSUP" start --unique key -- sleep 1000)
run=$("$FLOWSUP" start --unique key --if-running queue -- true 2>/dev/null)
check "of a run that waits itself nothing waits for a slot, but for what that waits for" \
	wait_until why_is true "pending waits for the run to start, which waits for the key 'key', held by run $first"
for each in "$run" "$first"; do "$FLOWSUP" kill "$each" 2>/dev/null; done
rm -f tried
run=$("$FLOWSUP" start - <<'YAML'
plan: [{id: again, run: "test -e tried || { touch tried; exit 4; }", retry: {attempts: 2, backoff: 1ms}}]
YAML
)
"$FLOWSUP" wait "$run"
equal "the next attempt says what it was for" "completed again after exit 4" "$(op "$run" again state why)"

printf '#!%s/none\n' "$T" >"$T/unstartable"
chmod +x "$T/unstartable"
run=$("$FLOWSUP" start - <<YAML
plan: [{id: again, exec: [$T/unstartable], retry: {attempts: 2, backoff: 1ms, on: [spawn]}}]
YAML
)
"$FLOWSUP" wait "$run" 2>/dev/null
matches "also where none could be started" "failed .*again after spawn" "$(op "$run" again state why)"

# ---- What an operation left behind ----
run=$("$FLOWSUP" start --wait - 2>"$T/lines" <<'YAML'
plan:
  - {id: clean, run: "true"}
  - {id: one, needs: [clean], run: "sleep 1000 & true"}
  - id: three
    needs: [one]
    run: "sleep 1000 & test -e left || { touch left; sleep 1000 & exit 4; }"
    retry: {attempts: 2, backoff: 1ms}
YAML
)
equal "what was left behind is counted" "0 1 3" "$(op "$run" clean leftovers) $(op "$run" one leftovers) $(op "$run" three leftovers)"
matches "show says so" "; 1 leftover process ended\$" "$(row "$run" one)"
matches "of all attempts together" "; 3 leftover processes ended\$" "$(row "$run" three)"
equal "and nothing of what left nothing" "" "$(row "$run" clean | grep leftover)"
matches "a line of --wait says so" "one completed; 1 leftover process ended" "$(cat "$T/lines")"
matches "of an attempt too" "three failed, and is tried again: .*; 2 leftover processes ended" "$(cat "$T/lines")"

# ---- A run that ends while it is looked at ----
run_has() { [ "$(run_status "$1")" = "$2" ]; }
mkfifo door
held=$("$FLOWSUP" start -- sh -c 'read x <door')
wait_until run_has "$held" running
touch hold
HOLD_OPEN=hold HOLD_OPEN_OF=attempts.log HOLD_OPEN_AT=1 \
	LD_PRELOAD=$BUILD/tests/preload/hold_open.so${LD_PRELOAD:+:$LD_PRELOAD} "$FLOWSUP" show --json "$held" >"$T/shown" &
shows=$!
check "show has read the row and waits for a file" wait_until test -e hold.waits
echo >door
wait_until run_has "$held" completed
rm hold
wait "$shows"
equal "what it shows is of one moment" "completed completed completed" "$(perl -MJSON::PP -e '
	my $o = JSON::PP->new->utf8->decode(join "", <STDIN>);
	print join " ", $o->{status}, $o->{ops}[0]{status} // $o->{ops}[0]{state}, $o->{transitions}[-1]{status}' <"$T/shown")"
plan
