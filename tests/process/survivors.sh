#!/usr/bin/env bash
# resume takes over what outlived the worker: it ran once, with one process and its whole output; its
# end makes its outcome, whoever saw it; what is unknown follows the operation's own rule; and never
# does a survivor run beside a second attempt.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

mkdir "$T/w"
cd "$T/w" || exit 1
export COUNT=$T/w/count PATH="$BUILD/bin:$PATH"
head='name: survivors
concurrency: 8
defaults: {grace: 300ms}
plan:
'
times() { grep -cx "$1" "$COUNT" 2>/dev/null; }
ran() { [ "$(times "$1")" -ge "${2:-1}" ]; }
line_of() { grep "\"kind\":\"start\",\"op\":\"$2\"" "$FLOWSUP_HOME/runs/$1/attempts.log"; }
pid_of() { json "$(line_of "$1" "$2" | tail -1)" pid; }
has_exit() { [ -e "$FLOWSUP_HOME/runs/$run/ops/$1.1/exit.json" ]; }
begin() { # YAML OP...: starts it, and waits until the operations run
	local op
	printf '%s%s' "$head" "$1" >flow.yaml
	shift
	rm -f "$COUNT" go*
	run=$(flowsup start flow.yaml)
	for op; do wait_until ran "$op"; done
	wait_until worker_is_ready "$run"
}
kill_worker() {
	kill -KILL "$(worker_pid "$1")"
	wait_until status_is "$1" crashed
}
list_says() { flowsup list | tr -s ' ' | grep -qE "$1"; }
reaped() { [ ! -d "/proc/$1" ]; }
no_supervisor() { [ -z "$(supervisors)" ]; }
kill_both() { # RUN: a supervisor that has gone marks no crash
	local worker
	worker=$(worker_pid "$1")
	# shellcheck disable=SC2046
	kill -KILL $(supervisors) "$worker"
	wait_until no_supervisor && wait_until gone "$worker"
}
op() { # ID REST: an operation that waits for the file go.ID between two lines of output
	echo "  - {id: $1, ${2:+$2, }run: 'echo $1 >>\$COUNT; echo first; until [ -e go.$1 ]; do sleep 0.02; done; echo second \$\$'}"
}
answer() { flowsup logs "$1" "$2" 2>/dev/null; }
state() { flowsup show "$1" --json | grep -oE "\"id\":\"$2\",\"state\":\"[a-z]+\"" | cut -d'"' -f8; }
is_in_state() { [ "$(state "$1" "$2")" = "$3" ]; }
# What still runs is shown as running also before its new worker has begun.
takes_over() { worker_is_ready "$1" && is_in_state "$1" "$2" running; }

# ---- It still runs ----

begin "$(op a)
$(op b 'timeout: 2h, keeper: true')
$(op c 'needs: [a]')
" a b
kill_worker "$run"
pid=$(pid_of "$run" a)
matches "a dry run says what is taken over" 'a +taken over +still runs' "$(flowsup resume "$run" --dry-run)"
flowsup resume "$run" --wait >id 2>lines &
follower=$!
check "who waits is told" wait_until eval 'grep -q "  a taken over$" lines && grep -q "  b taken over" lines'
new=$(cat id)
wait_until takes_over "$new" a
equal "it is the same process" "$pid $pid" "$(pid_of "$new" a) $(pgrep -f -x "sh -c .*echo a >>.*" -s "$pid" -P "$(stat_field "$pid" 2)")"
check "that nobody ended" alive "$pid"
matches_soon "the event log says so" '"event":"NodeTakenOver".*"op":"a"' cat "$FLOWSUP_HOME/runs/$new/events.jsonl"
touch go.a go.b
wait_until ran c
touch go.c
wait $follower
equal "the run completes" 0 $?
equal "each ran once" "1 1 1" "$(times a) $(times b) $(times c)"
matches "show says which were taken over" "a +completed .* taken over from run $run b +completed .* taken over from run $run c +completed .* after a" \
	"$(flowsup show "$new" | grep -E '^[abc] ' | paste -sd' ')"
equal "its output is whole" "first second $pid" "$(answer "$new" a | paste -sd' ')"
equal "and kept when the run that started it goes" "first second $pid" \
	"$(rm -rf "$FLOWSUP_HOME/runs/$run"; answer "$new" a | paste -sd' ')"

# ---- Its end is one thing, whose it was another ----

begin '  - {id: a, run: "echo a >>$COUNT; until [ -e go.a ]; do sleep 0.02; done; exit 3"}
' a
kill_worker "$run"
new=$(flowsup resume "$run" 2>/dev/null)
wait_until takes_over "$new" a
touch go.a
wait_until status_is "$new" failed
matches "show parts them" "a +failed .*exit status 3; taken over from run $run" "$(flowsup show "$new" | grep '^a ')"

# ---- A second attempt, started before the end of the first was written down ----

begin "  - {id: r, retry: {attempts: 2, backoff: 1ms}, run: 'echo r >>\$COUNT; [ \$FLOWSUP_ATTEMPT -ge 2 ] || exit 1; until [ -e go.r ]; do sleep 0.02; done; echo second'}
" r
wait_until ran r 2
log=$FLOWSUP_HOME/runs/$run/attempts.log
wait_until grep -q '"kind":"end","op":"r","attempt":1' "$log"
kill_worker "$run"
end=$(grep '"kind":"end","op":"r"' "$log")
sed -i '/"kind":"end","op":"r"/d' "$log"
printf '%s\n' "$end" >>"$log"
equal "show knows it by its number" running "$(state "$run" r)"
new=$(flowsup resume "$run")
wait_until is_in_state "$new" r running
touch go.r
check "it is taken over all the same" wait_until status_is "$new" completed
equal "and was not started once more" 2 "$(times r)"

# ---- It has ended meanwhile ----

begin "$(op a)
  - {id: fails, retry: {attempts: 2}, run: 'echo fails >>\$COUNT; until [ -e go.fails ]; do sleep 0.02; done; [ \$FLOWSUP_ATTEMPT = 2 ]'}
$(op last 'needs: [a]')
" a fails
kill_worker "$run"
touch go.a go.fails go.last
wait_until has_exit a && wait_until has_exit fails
matches "show tells that it has" 'a +interrupted .*has ended without its worker' "$(flowsup show "$run")"
matches "a dry run tells that" 'a +taken over +has ended without its worker' "$(flowsup resume "$run" --dry-run)"
new=$(flowsup resume "$run" --wait 2>"$T/err")
equal "its end makes its outcome" 0 $?
equal "it ran once, and a failure is tried again" "1 2 1" "$(times a) $(times fails) $(times last)"
equal "with its output" first "$(answer "$new" a | head -1)"

# ---- Twice ----

begin "$(op a)
" a
kill_worker "$run"
pid=$(pid_of "$run" a)
second=$(flowsup resume "$run")
wait_until is_in_state "$second" a running
wait_until worker_is_ready "$second"
kill_worker "$second"
check "after another death it still runs" alive "$pid"
matches "as the list says" 'crashed \(1 running\)' "$(flowsup list | tr -s ' ')"
third=$(flowsup resume "$second")
wait_until is_in_state "$third" a running
touch go.a
flowsup wait "$third" 2>/dev/null
equal "a third run ends it" "0 1 second $pid" "$? $(times a) $(answer "$third" a | tail -1)"

# ---- A directory that is no run here ----

begin "$(op kept 'keeper: true')
$(op once 'idempotent: false')
$(op limited 'timeout: 1h')
  - {id: emits, run: 'flowsup emit spawn --run true; echo emits >>\$COUNT; until [ -e go.emits ]; do sleep 0.02; done; flowsup emit spawn --run :'}
$(op last 'needs: [kept, once, limited]')
reactive: all
" kept once limited emits
kill_worker "$run"
touch go.kept go.once go.limited go.last go.emits
for id in kept once limited emits; do wait_until has_exit "$id"; done
cp -a "$FLOWSUP_HOME/runs/$run" copy
before=$(cd copy && find . -type f -exec cksum {} + | sort)
out=$(flowsup resume ./copy --dry-run 2>&1)
equal "a copy whose operations have ended is taken" 0 $?
equal "with their ends" 4 "$(grep -cE ' +taken over +has ended without its worker' <<<"$out")"
new=$(flowsup resume ./copy --wait 2>"$T/err")
equal "which make their outcomes" 0 $?
equal "each ran once" "1 1 1 1 1" "$(times kept) $(times once) $(times limited) $(times emits) $(times last)"
equal "its output is whole" first "$(answer "$new" once | head -1)"
equal "what it asked for is done, before and after its worker died" "completed completed" \
	"$(state "$new" emits.s1) $(state "$new" emits.s2)"
equal "the copy stays as it is" "$before" "$(cd copy && find . -type f -exec cksum {} + | sort)"
rm -rf copy

# ---- A directory that is moved while they run ----

is_away() { grep -q "no report on its checkpoint (" "$FLOWSUP_HOME/supervisor.log"; }
begin "$(op a 'keeper: false')
$(op last 'needs: [a]')
" a
kill_worker "$run"
new=$(flowsup resume "$run")
wait_until takes_over "$new" a
mv "$FLOWSUP_HOME/runs/$run" moved
touch go.a go.last
check "one that was taken over before ends where it was" wait_until status_is "$new" completed
equal "once, and its output is there" "1 1 second" "$(times a) $(times last) $(answer "$new" a | tail -1 | cut -d" " -f1)"
check "its end stands in the directory" [ -e moved/ops/a.1/exit.json ]
rm -r moved

begin "$(op a)
$(op last 'needs: [a]')
" a
kill_worker "$run"
wait_until list_says 'crashed \(1 running\)'
mv "$FLOWSUP_HOME/runs/$run" moved
touch go.a go.last
check "the end of one that nobody had resumed, too" wait_until [ -e moved/ops/a.1/exit.json ]
flowsup resume ./moved --wait >/dev/null 2>"$T/err"
equal "so a resume by the directory's place takes it over" "0 1 1" "$? $(times a) $(times last)"
rm -r moved

begin "$(op a)
$(op last 'needs: [a]')
" a
pid=$(pid_of "$run" a)
worker=$(worker_pid "$run")
mv "$FLOWSUP_HOME/runs/$run" moved
kill -KILL "$worker"
check "one that was moved before its worker died has no report" wait_until is_away
out=$(flowsup resume ./moved 2>&1)
equal "what still runs of it is not run beside it" 4 $?
touch go.a go.last
wait_until reaped "$pid"
before=$(cd moved && find . -type f -exec cksum {} + | sort)
flowsup resume ./moved --dry-run >out 2>&1
matches "a dry run says that the supervisor may know its end" 'a +taken over +its end is not known yet' "$(cat out)"
equal "and writes nothing" "$before" "$(cd moved && find . -type f -exec cksum {} + | sort)"
flowsup resume ./moved --wait >/dev/null 2>"$T/err"
equal "a resume has the end from it" "0 1 1" "$? $(times a) $(times last)"
rm -r moved

# ---- Both dead ----

begin "$(op kept 'keeper: true')
$(op plain)
" kept plain
kill_both "$run"
touch go.kept go.plain
wait_until reaped "$(pid_of "$run" plain)"
wait_until has_exit kept
new=$(flowsup resume "$run" --wait 2>/dev/null)
equal "ended with nobody there: with a keeper it ran once, without it is unknown and runs again" \
	"1 2" "$(times kept) $(times plain)"

begin "$(op once 'idempotent: false')
" once
kill_both "$run"
kill -KILL "$(json "$(line_of "$run" once)" reaper)"
touch go.once
wait_until reaped "$(pid_of "$run" once)"
flowsup resume "$run" 2>"$T/err"
equal "what must not be repeated is refused when its keeper died too" 4 $?
matches "with the word for it" 'once.*--rerun-in-flight' "$(cat "$T/err")"

begin "$(op once 'idempotent: false')
" once
kill_both "$run"
new=$(flowsup resume "$run")
wait_until is_in_state "$new" once running
touch go.once
flowsup wait "$new" 2>/dev/null
equal "one that still runs goes on, with everybody else dead" "0 1" "$? $(times once)"

if [ "$(uname -r | awk -F. '{print $1 * 100 + $2}')" -ge 615 ]; then
	begin "$(op a)
" a
	kill_both "$run"
	new=$(flowsup resume "$run")
	wait_until takes_over "$new" a
	touch go.a
	flowsup wait "$new" 2>/dev/null
	equal "the kernel tells how one without a reaper ended" "0 1" "$? $(times a)"
else
	skip "the kernel tells how one without a reaper ended"
fi

# ---- The machine was started anew ----

begin "$(op a)
$(op once 'idempotent: false')
" a once
kill_worker "$run"
power_loss "$run"
flowsup resume "$run" 2>"$T/err"
equal "after a boot all is unknown: refused where it must not be repeated" 4 $?
touch go.a go.once
new=$(flowsup resume "$run" --rerun-in-flight --wait 2>/dev/null)
equal "and run again else" "2 2" "$(times a) $(times once)"

# ---- Limits go on; TERM and KILL reach it ----

begin "  - {id: long, timeout: 1h, run: 'trap \"\" TERM; echo long >>\$COUNT; while :; do sleep 0.05; done'}
" long
kill_worker "$run"
# Its time limit stands in the log as a moment: let that have passed.
sed -i 's/"limit_ms":[1-9][0-9]*/"limit_ms":1/' "$FLOWSUP_HOME/runs/$run/attempts.log"
new=$(flowsup resume "$run" --wait 2>/dev/null)
equal "its time limit is the one it had" 1 $?
matches "with the class" '"class":"timeout"' "$(cat "$FLOWSUP_HOME/runs/$new/attempts.log")"
equal "it ran once" 1 "$(times long)"

begin "  - {id: a, run: 'trap \"echo ended; exit 0\" TERM; setsid sleep 1000 & echo a >>\$COUNT; while :; do sleep 0.05; done'}
" a
kill_worker "$run"
pid=$(pid_of "$run" a)
new=$(flowsup resume "$run")
wait_until takes_over "$new" a
wait_until worker_is_ready "$new" # in the queue a stop cancels it, and it has no output of its own
flowsup stop "$new" --now >/dev/null 2>&1
flowsup wait "$new" 2>/dev/null
equal "a stop ends it" "143 ended" "$? $(answer "$new" a)"
left() { ! grep -lzqsx "FLOWSUP_OP_ID=a" $(grep -lzs "^FLOWSUP_HOME=$T/" /proc/[0-9]*/environ); }
check "with what it had put into another session" wait_until left

begin "$(op a)
" a
kill_worker "$run"
pid=$(pid_of "$run" a)
flowsup stop "$run" 2>"$T/err"
check "stop of a crashed run ends it" gone "$pid"
touch go.a
new=$(flowsup resume "$run" --wait 2>/dev/null)
equal "then it has no outcome, and runs again" 2 "$(times a)"

begin "$(op a)
" a
kill_worker "$run"
pid=$(pid_of "$run" a)
new=$(flowsup resume "$run")
wait_until takes_over "$new" a
flowsup kill "$new" 2>"$T/err"
check "kill of the run that took it over ends it" gone "$pid"
matches "and counts it" 'processes of operations ended: [1-9]' "$(cat "$T/err")"

# ---- Two resumes at once ----

begin "$(op a)
" a
kill_worker "$run"
for n in 1 2 3 4; do
	flowsup resume "$run" >"$T/id.$n" 2>"$T/err.$n" &
done
wait
new=$(cat "$T"/id.?)
equal "of four resumes one wins" 1 "$(wc -w <<<"$new")"
equal "and the others name its run" 3 "$(cat "$T"/err.? | grep -c "already resumed, as run $new")"
touch go.a
flowsup wait "$new" 2>/dev/null
equal "it ran once" "0 1" "$? $(times a)"

# ---- A stranger with its number ----

begin "$(op a)
" a
kill_worker "$run"
pid=$(pid_of "$run" a)
flowsup stop "$run" 2>/dev/null
sleep 1000 &
stranger=$!
sed -i "s/\"pid\":$pid,/\"pid\":$stranger,/" "$FLOWSUP_HOME/runs/$run/attempts.log"
touch go.a
flowsup resume "$run" --wait >/dev/null 2>&1
equal "a stranger is not taken over" "0 2" "$? $(times a)"
check "and left alone" alive "$stranger"
kill "$stranger"

# ---- It talks back ----

begin "  - id: a
    run: |
      echo a >>\$COUNT
      flowsup emit context set /before 1
      touch said
      until [ -e go.lonely ]; do sleep 0.02; done
      flowsup emit context set /lonely 2 2>spooled
      touch lonely
      until [ -e go.a ]; do sleep 0.02; done
      flowsup emit context set /after 3
  - {id: b, needs: [a], run: 'flowsup emit context get'}
" a
wait_until [ -e said ]
kill_worker "$run"
touch go.lonely
wait_until [ -e lonely ]
matches "without a worker a request is kept in a file, and emit says so" 'the worker is gone.*ops/a.1/spool' "$(cat spooled)"
new=$(flowsup resume "$run")
wait_until takes_over "$new" a
touch go.a
flowsup wait "$new" 2>/dev/null
equal "the run completes" 0 $?
equal "with what it asked for before, between and after" '{"after":3,"before":1,"lonely":2}' \
	"$(answer "$new" b | perl -MJSON::PP -e 'local $/; print JSON::PP->new->canonical->encode(decode_json(<STDIN>))')"
equal "nothing is left in the spool" 0 "$(find "$FLOWSUP_HOME/runs/$run/ops/a.1/spool" -type f | wc -l)"

# What is refused when it is taken: the operation was told that it is kept, so it fails by it, also when
# that worker dies too. What its outcome does not depend on is dropped.
begin "  - id: a
    run: |
      echo a >>\$COUNT
      until [ -e go.lonely ]; do sleep 0.02; done
      flowsup emit context set /well 1 2>/dev/null
      flowsup emit context set /no/parent 2 2>spooled
      echo \$? >lonely
      until [ -e go.a ]; do sleep 0.02; done
  - id: big
    run: |
      echo big >>\$COUNT
      until [ -e go.lonely ]; do sleep 0.02; done
      { printf '\"'; head -c 1048480 /dev/zero | tr '\\0' x; printf '\"'; } | flowsup emit context set /big - 2>/dev/null
      echo \$? >lonely.big
      until [ -e go.big ]; do sleep 0.02; done
  - id: file
    run: |
      echo file >>\$COUNT
      until [ -e go.lonely ]; do sleep 0.02; done
      flowsup emit artifact later 2>/dev/null
      flowsup emit artifact missing 2>/dev/null
      echo \$? >lonely.file
      until [ -e go.file ]; do sleep 0.02; done
      echo >\"\$FLOWSUP_ARTIFACTS/later\"
  - id: torn
    run: |
      echo torn >>\$COUNT
      until [ -e go.lonely ]; do sleep 0.02; done
      flowsup emit progress 2 2>/dev/null
      flowsup emit context set /torn 1 2>/dev/null
      for f in \"\$FLOWSUP_HOME/runs/\$FLOWSUP_RUN_ID/ops/torn.1/spool\"/*; do
          grep -q /torn \"\$f\" && echo '{' >\"\$f\"
      done
      touch lonely.torn
      until [ -e go.torn ]; do sleep 0.02; done
  - id: vain
    run: |
      echo vain >>\$COUNT
      until [ -e go.lonely ]; do sleep 0.02; done
      flowsup emit progress 2 2>/dev/null
      flowsup emit spawn --run true 2>/dev/null
      touch lonely.vain
      until [ -e go.vain ]; do sleep 0.02; done
" a big file torn vain
kill_worker "$run"
touch go.lonely
wait_until eval '[ -e lonely ] && [ -e lonely.big ] && [ -e lonely.file ] && [ -e lonely.torn ] && [ -e lonely.vain ]'
equal "without a worker nobody can say that it is refused" "0 0 0" "$(cat lonely lonely.big lonely.file | tr '\n' ' ' | sed 's/ $//')"
run=$(flowsup resume "$run")
is_refused() { grep -q '"op":"refused"' "$FLOWSUP_HOME/runs/$run/ops/$1.1/emitted.jsonl" 2>/dev/null; }
check "one that is refused is recorded" wait_until is_refused a
check "one that cannot be read too" wait_until is_refused torn
check "a large one is taken" wait_until grep -q /big "$FLOWSUP_HOME/runs/$run/ops/big.1/emitted.jsonl"
wait_until worker_is_ready "$run"
kill_worker "$run"
run=$(flowsup resume "$run" 2>/dev/null)
wait_until worker_is_ready "$run"
touch go.a go.big go.file go.torn go.vain
flowsup wait "$run" 2>/dev/null
failure() { flowsup show "$run" --json | python3 -c 'import json, sys; o = {o["id"]: o for o in json.load(sys.stdin)["ops"]}[sys.argv[1]]; print(o["class"], o["why"])' "$1"; }
matches "the operation fails by it" "^response response: what it asked for while its worker was gone is refused: /no/parent" "$(failure a)"
matches "a large one counts" "^None" "$(failure big)"
matches "an artifact is looked for at the end" '^artifact artifact: declared artifact "missing" is not there' "$(failure file)"
matches "what cannot be read was perhaps dear" "^response .*refused: ops/torn.1/spool/" "$(failure torn)"
matches "what the outcome does not depend on does not fail it, and is told" "^None .*asked in vain: .*builder_error" "$(failure vain)"
equal "nothing of one that fails enters the context" '["big"]' \
	"$(flowsup checkpoint export "$run" --json | python3 -c 'import json, sys; print(json.dumps(list(json.load(sys.stdin)["flow_context"])))')"
equal "each ran once" "1 1 1 1 1" "$(times a) $(times big) $(times file) $(times torn) $(times vain)"

# An attempt of that number was there before, in a run whose failure was then run again.
begin "  - id: a
    run: |
      echo a >>\$COUNT
      [ -e well ] || { flowsup emit context append /list '\"failed\"'; exit 1; }
      until [ -e go.lonely ]; do sleep 0.02; done
      flowsup emit context append /list '\"well\"' 2>/dev/null
  - {id: b, needs: [a], run: 'flowsup emit context get'}
" a
flowsup wait "$run" 2>/dev/null
touch well
again=$(flowsup resume "$run" --retry-failed 2>/dev/null)
wait_until ran a 2
wait_until worker_is_ready "$again"
kill_worker "$again"
touch go.lonely
run=$again
wait_until has_exit a
new=$(flowsup resume "$again" --wait 2>/dev/null)
equal "what that one asked for does not count" '{"list":["well"]}' "$(answer "$new" b)"

# ---- Its leftovers ----

begin "  - {id: a, run: 'echo a >>\$COUNT; sleep 1000 & setsid sleep 1001 & until [ -e go.a ]; do sleep 0.02; done'}
" a
kill_worker "$run"
new=$(flowsup resume "$run")
wait_until takes_over "$new" a
touch go.a
flowsup wait "$new" 2>/dev/null
equal "what it leaves behind is ended" 0 $?
check "in its group and elsewhere" wait_until left

# ---- Its end is seen and not yet written down ----

# Sanitizers want to be the first library.
if is_sanitized; then
	skip "no library before the sanitizer's"
	plan
fi
flowsup supervisor stop
export FAIL_SYNC=$T/sync FAIL_SYNC_OF=/ops/
LD_PRELOAD=$BUILD/tests/preload/fail_sync.so${LD_PRELOAD:+:$LD_PRELOAD} flowsup supervisor
begin "  - {id: a, run: 'echo a >>\$COUNT; until [ -e go.a ]; do sleep 0.02; done; echo done'}
" a
kill_worker "$run"
lists_it() { flowsup show "$run" --json | grep -q '"running_operations":1'; }
check "the supervisor watches it" wait_until lists_it
echo wait >"$FAIL_SYNC"
touch go.a
check "it ends, and its record is held up" wait_until [ -e "$FAIL_SYNC.waits" ]
flowsup resume "$run" >/dev/null 2>resume.err
equal "held up for long: the resume is refused as busy" 5 $?
matches "with operation, processes and what to do" \
	"operation a \(process $(pid_of "$run" a)\) has ended, and process [0-9]+ has not yet.*hint: flowsup resume $run" \
	"$(cat resume.err)"
flowsup resume "$run" >resumed 2>resume.err &
resume=$!
is_locked() { grep -q ":$(stat -c %i "$FLOWSUP_HOME/runs/$run/worker.lock") " /proc/locks; }
wait_until is_locked
for _ in $(seq 20); do is_locked; done
rm "$FAIL_SYNC"
wait $resume
check "the resume waited for it" [ -s resumed ]
flowsup wait "$(cat resumed)" 2>/dev/null
equal "the run completes" 0 $?
equal "it ran once" 1 "$(times a)"
equal "its output counts" done "$(answer "$(cat resumed)" a)"

# It ends, and its end is not written down, at any moment of the resume: between two looks of it.
is_zombie() { [ "$(stat_field "$1" 1)" = Z ]; }
for look in 1 2 3 4; do
	begin "  - {id: a, run: 'echo a >>\$COUNT; until [ -e go.a ]; do sleep 0.02; done; echo done'}
" a
	kill_worker "$run"
	wait_until lists_it
	rm -f "$FAIL_SYNC.waits" hold.waits
	echo wait >"$FAIL_SYNC"
	: >hold
	HOLD_OPEN=hold HOLD_OPEN_OF=a.1 HOLD_OPEN_AT=$look LD_PRELOAD=$BUILD/tests/preload/hold_open.so \
		flowsup resume "$run" >resumed 2>resume.err &
	resume=$!
	held() { [ -e hold.waits ] || gone $resume; }
	wait_until held
	touch go.a
	[ ! -e hold.waits ] || wait_until is_zombie "$(pid_of "$run" a)"
	rm hold
	for _ in $(seq 20); do is_locked; done # it looks again
	rm "$FAIL_SYNC"
	wait $resume
	equal "it ends at the resume's look $look: the resume goes on" "0 " "$? $(cat resume.err)"
	flowsup wait "$(cat resumed)" 2>/dev/null
	equal "and it ran once" "0 1" "$? $(times a)"
done
plan
