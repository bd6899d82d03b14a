#!/usr/bin/env bash
# wait, watch, start --wait and logs -f: they end when the run does, whoever died, and never before.
. "$(dirname "$0")/lib.sh"
mkdir "$T/work" && cd "$T/work" || exit 1
mkfifo gate

# What a command in the background is about to write: it empties the files itself, when it comes to it.
fresh() { rm -f "$@"; }

# A run that ends when something is written to the fifo.
held() { "$FLOWSUP" start "$@" -- sh -c "echo begun; read x <'$T/work/gate'; echo got \$x"; }
is_running() { [ "$(run_status "$1")" = running ] && [ -s "$FLOWSUP_HOME/runs/$1/ops/sh.1.out" ]; }

# ---- wait ----
id=$(held)
wait_until is_running "$id"
"$FLOWSUP" wait --timeout 50ms "$id"
equal "wait --timeout before the end: exit 3" 3 $?
"$FLOWSUP" wait --timeout 0 "$id"
equal "wait --timeout 0 looks once" 3 $?
"$FLOWSUP" show --exit-status "$id" >/dev/null
equal "show --exit-status before the end: exit 3" 3 $?
"$FLOWSUP" wait "$id" &
waiter=$!
echo now >gate
wait $waiter
equal "wait ends with the run" 0 $?
equal "the run has completed" completed "$(run_status "$id")"
good=$("$FLOWSUP" start -- true)
bad=$("$FLOWSUP" start -- sh -c 'exit 7')
"$FLOWSUP" wait "$good" "$bad"
equal "of several the first that is not 0 decides" 1 $?
matches "wait --json prints the outcomes" '"status":"completed".*"status":"failed"' \
	"$("$FLOWSUP" wait --json "$good" "$bad" | paste -s)"
"$FLOWSUP" wait "$good" nonsense 2>/dev/null
equal "an unknown run among them: exit 2" 2 $?
"$FLOWSUP" wait 2>/dev/null
equal "wait for nothing: exit 2" 2 $?

# ---- Interrupts ----
id=$(held)
wait_until is_running "$id"
for command in wait watch "logs -f"; do
	# A shell starts background commands with SIGINT ignored, nohup with SIGHUP; perl gives them back.
	for signal in INT TERM HUP; do
		fresh out
		perl -e '$SIG{$_} = "DEFAULT" for qw(INT TERM HUP); exec @ARGV' "$FLOWSUP" $command "$id" >out 2>err &
		follower=$!
		again=watch
		[ "$command" != "logs -f" ] || again=$command
		wait_until grep -qx flowsup "/proc/$follower/comm"
		wait_until grep -q "SigBlk:.*[2367abef]$" "/proc/$follower/status"
		kill -$signal $follower
		wait $follower
		equal "$command: SIG$signal exits 130" 130 $?
		matches "$command: and says that the run goes on" "run $id goes on.*hint: flowsup $again $id .*hint: flowsup stop $id" "$(paste -sd' ' err)"
		equal "$command: which it does" running "$(run_status "$id")"
	done
done

perl -e '$SIG{INT} = "DEFAULT"; exec @ARGV' "$FLOWSUP" logs -f --stderr "$id" sh >out 2>err &
follower=$!
wait_until grep -qx flowsup "/proc/$follower/comm"
wait_until grep -q "SigBlk:.*[2367abef]$" "/proc/$follower/status"
kill -INT $follower
wait $follower
matches "logs -f of one operation: the way back is to the same" "hint: flowsup logs -f --stderr $id sh +# " "$(cat err)"

# ---- A reader that leaves ----
"$FLOWSUP" watch --json "$id" | head -n 1 >first
equal "watch --json | head ends" "0 0" "${PIPESTATUS[*]}"
matches "with an event" '"event":"RunStarted"' "$(cat first)"
fresh first
"$FLOWSUP" logs -f "$id" | head -n 1 >first &
reader=$!
wait_until grep -q begun first
equal "logs -f gives what is there" begun "$(cat first)"
echo end >gate
wait $reader
"$FLOWSUP" wait "$id"
equal "the held run has ended" 0 $?

# ---- Output as it comes ----
id=$(held)
fresh followed
"$FLOWSUP" logs -f "$id" >followed &
reader=$!
wait_until grep -q begun followed
equal "logs -f shows output before the end" begun "$(cat followed)"
echo bye >gate
wait $reader
equal "logs -f ends with the run" 0 $?
equal "and has everything" "begun got bye" "$(paste -sd' ' followed)"
id=$(printf '1\n2\n3\n' | "$FLOWSUP" start --each 'echo item $1; echo more' -j 2)
"$FLOWSUP" logs -f "$id" >followed
equal "of several, each line with its name" 6 "$(grep -cE '^each\.[012] +\| (item|more)' followed)"
equal "also when it had ended before the first look" 6 \
	"$("$FLOWSUP" logs -f "$id" | grep -cE '^each\.[012] +\| (item|more)')"
"$FLOWSUP" logs -f "$bad" 2>err
equal "of a failed run it exits by that" 1 $?
matches "and says it" "run $bad failed: .*hint: flowsup show $bad .*hint: flowsup resume $bad --retry-failed " "$(paste -sd' ' err)"

# ---- Events ----
printf 'a\nb\n' | "$FLOWSUP" start --wait --each 'true' --events 7 7>events >id 2>/dev/null
cmp -s events "$FLOWSUP_HOME/runs/$(cat id)/events.jsonl"
equal "--events to a descriptor copies them all" 0 $?
equal "saved outcomes come after executed ones" "0" "$(awk '
	/"NodeCompleted"/ { done++ } /"CheckpointSaved"/ { saved++; if (saved > done) bad++ }
	END { print bad + (saved != 2) + 0 }' events)"
"$FLOWSUP" watch --json "$(cat id)" >watched
cmp -s events watched
equal "watch --json prints the same" 0 $?
"$FLOWSUP" watch "$(cat id)" --events more.jsonl >/dev/null
cmp -s events more.jsonl
equal "--events to a file too" 0 $?
"$FLOWSUP" watch "$(cat id)" --events /dev/full >/dev/null 2>err
equal "events that cannot be written: exit 74" 74 $?
equal "lines of a run tell each end once" 2 \
	"$(printf 'a\nb\n' | "$FLOWSUP" start --wait --each true 2>&1 >/dev/null | grep -c 'each.* completed')"

# ---- Nobody left ----
id=$(held)
wait_until is_running "$id"
supervisor=$(supervisor_pid)
worker=$(worker_pid "$id")
"$FLOWSUP" wait "$id" &
waiter=$!
fresh followed
"$FLOWSUP" logs -f "$id" >followed 2>err &
reader=$!
wait_until grep -q begun followed
wait_until grep -q "SigBlk:.*[2367abef]$" "/proc/$waiter/status"
kill -KILL "$supervisor"
wait_until gone "$supervisor"
kill -KILL "$worker"
wait $waiter
equal "wait ends when supervisor and worker were killed" 137 $?
wait $reader
equal "logs -f ends then too" 137 $?
matches "and says so, and how to resume" "run $id crashed: .*hint: flowsup resume $id" "$(paste -sd' ' err)"
equal "the run has crashed" crashed "$(run_status "$id")"
matches "list says how to go on, and what still runs" "crashed \(1 running\).*flowsup resume $id" \
	"$("$FLOWSUP" list -n 1)"
matches "show says so of the operation" "sh +running .*without a worker" "$("$FLOWSUP" show "$id")"
echo >gate
still_running() { "$FLOWSUP" list -n 1 | grep -q '1 running'; }
survivor_left() { ! still_running; }
check "and no longer when it has ended" wait_until survivor_left
matches "then it was interrupted" "sh +interrupted" "$("$FLOWSUP" show "$id")"

# ---- A supervisor that dies alone ----
id=$(held)
wait_until is_running "$id"
supervisor=$(supervisor_pid)
fresh out
"$FLOWSUP" watch "$id" >out 2>err &
watcher=$!
wait_until grep -q running out
kill -KILL "$supervisor"
echo on >gate
wait $watcher
equal "watch outlives the supervisor and ends with the run" 0 $?

# ---- Pause ----
id=$("$FLOWSUP" start --chain "read x <'$T/work/gate'" 'echo second')
wait_until status_is "$id" running
"$FLOWSUP" pause "$id" --wait=30s 2>/dev/null
equal "pause --wait: applied" 0 $?
wait_until status_is "$id" paused
equal "the run is paused" paused "$(run_status "$id")"
matches "ctl status knows of it" "pause +applied" "$("$FLOWSUP" ctl status "$id")"
matches "list says how it goes on" " flowsup ctl resume $id" "$("$FLOWSUP" list -n 1)"
matches "show too" "next +flowsup ctl resume $id" "$("$FLOWSUP" show "$id")"
equal "and JSON" "flowsup ctl resume $id" "$(json "$("$FLOWSUP" show --json "$id")" resume_command)"
fresh watched
"$FLOWSUP" watch "$id" >watched 2>/dev/null &
watcher=$!
wait_until grep -q "is paused.*: flowsup ctl resume $id\$" watched
matches "so do the lines of watch" "is paused, 0 of 2 done; to go on: flowsup ctl resume $id" "$(cat watched)"
echo >gate
"$FLOWSUP" wait --timeout 300ms "$id"
equal "nothing more is started" 3 $?
"$FLOWSUP" ctl resume "$id" --wait 2>/dev/null
equal "ctl resume --wait: applied" 0 $?
"$FLOWSUP" wait "$id"
equal "then it goes on to its end" 0 $?
wait $watcher

# ---- What starts nothing more ----
cat >ends.yaml <<'FLOW'
plan:
  - {id: works, run: 'read x <never'}
  - {id: later, needs: [works], run: 'true'}
FLOW
rm -f never && mkfifo never
for how in stop deadline; do
	if [ $how = stop ]; then
		limit= said='is stopping'
	else
		limit='--timeout 500ms' said='is past its deadline'
	fi
	fresh id lines
	# shellcheck disable=SC2086 # no word at all is meant
	"$FLOWSUP" start --wait $limit ends.yaml >id 2>lines &
	watcher=$!
	wait_until [ -s id ] || exit 1
	id=$(cat id)
	wait_until status_is "$id" running
	[ $how = deadline ] || "$FLOWSUP" stop "$id" 2>/dev/null
	check "$how: who waits is told, with the command that ends what runs" \
		wait_until grep -q "^run $id $said, 0 of 2 done; to end what runs: flowsup stop --now $id\$" lines
	fresh watched
	"$FLOWSUP" watch "$id" >watched 2>/dev/null &
	later=$!
	check "$how: also who comes later" \
		wait_until grep -q "^run $id $said, 0 of 2 done; to end what runs: flowsup stop --now $id\$" watched
	"$FLOWSUP" stop --now "$id" 2>/dev/null
	wait $watcher $later
	equal "$how: once" 1 "$(grep -c 'to end what runs' lines)"
done
printf 'plan: [{id: last, run: "read x <never"}]\n' >last.yaml
id=$("$FLOWSUP" start last.yaml)
wait_until worker_is_ready "$id"
"$FLOWSUP" stop --wait=30s "$id" 2>/dev/null
echo >never
"$FLOWSUP" wait "$id"
equal "a stop that left nothing undone is a stop all the same" 143 $?
matches "and says so" "status +cancelled: stopped, but nothing was left undone " "$("$FLOWSUP" show "$id")"

# ---- A gate that was there before ----
printf 'plan:\n  - {id: deploy, gate: approve, run: "true"}\n  - {id: late, needs: [deploy], gate: approve, run: "true"}\n' >approve.yaml
id=$("$FLOWSUP" start approve.yaml)
waits() { "$FLOWSUP" waiting --json | grep -q "\"op\":\"$1\""; }
wait_until waits deploy
fresh watched
"$FLOWSUP" watch "$id" >watched 2>/dev/null &
watcher=$!
wait_until grep -q "deploy waits for approval: flowsup approve $id deploy\$" watched
ok "lines of watch begin with what waits, and the command that answers"
"$FLOWSUP" approve "$id" deploy 2>/dev/null
wait_until grep -q "late waits for approval: flowsup approve $id late\$" watched
"$FLOWSUP" approve "$id" late 2>/dev/null
wait $watcher
equal "each is said once" 2 "$(grep -c 'waits for approval' watched)"
equal "also by start --wait" 2 "$("$FLOWSUP" start --wait approve.yaml 2>&1 | while read -r line; do
	case $line in *": flowsup approve "*) echo "$line"; PATH=$BUILD/bin:$PATH ${line##*: } >/dev/null 2>&1 ;; esac
done | grep -c 'waits for approval')"


# ---- A deadline ----
# Under way when admission closes, and over when it has.
late="until grep -q DeadlineClosed \"\$FLOWSUP_HOME/runs/\$FLOWSUP_RUN_ID/events.jsonl\"; do sleep 0.02; done"
"$FLOWSUP" start --wait --timeout 3s --chain "$late" 'echo never' >id 2>lines
equal "a deadline: exit 124" 124 $?
matches "what was left out has not begun" "chain.1 was not started" "$(cat lines)"
matches "as show says" "chain.1 +pending +not started" "$("$FLOWSUP" show "$(cat id)")"
matches "the last line says what is missing" "timed_out: .* 1 of 2 operations has no outcome, 1 of 2 done hint: flowsup resume $(cat id)\$" \
	"$(tail -n 2 lines | paste -sd' ')"
equal "and how to go on once" 1 "$(grep -c 'flowsup resume' lines)"

# ---- What is done, before the database knows ----
if command -v sqlite3 >/dev/null; then
	id=$("$FLOWSUP" start --chain "read x <'$T/work/gate'" "read x <'$T/work/gate'")
	wait_until worker_is_ready "$id"
	hold_database
	echo >gate
	check "list and show count what the supervisor was told" \
		wait_until eval '"$FLOWSUP" list -n 1 | grep -q " 1/2 " && "$FLOWSUP" show --json | grep -q "\"done\":1,"'
	release_database
	echo >gate
	"$FLOWSUP" wait "$id"
fi

# ---- How far an operation is ----
PATH=$BUILD/bin:$PATH "$FLOWSUP" start --wait -- sh -c "for p in 0.25 0.25 0.259; do flowsup emit progress \$p 'a quarter'; done
	flowsup emit progress 0.7; read x <'$T/work/gate'" >id 2>lines &
follower=$!
wait_until grep -q 'sh is at 70%$' lines
equal "lines say how far an operation is, each step once" "is at 25%: a quarter,is at 70%" \
	"$(grep -o 'is at.*' lines | paste -sd,)"
matches "show does too" "sh +running .* 70%" "$("$FLOWSUP" show "$(cat id)")"
matches "and since when it runs" '"state":"running".*"started_at":[0-9]+.*"ended_at":null.*"progress":0.7,' \
	"$("$FLOWSUP" show --json "$(cat id)")"
echo >gate
wait $follower
matches "at its end it is at nothing" '"state":"completed".*"progress":null' "$("$FLOWSUP" show --json "$(cat id)")"

# ---- A crash that the restart policy answers ----
successor() { json "$("$FLOWSUP" list --json -n 100000 | grep "^{\"id\":\"$1\"")" resumed_as | grep -v null; }
for orphans in keep end; do
	printf 'orphans: %s\nplan:\n  - {id: a, run: "echo begun; read x <gate; echo got $x"}\n  - {id: b, needs: [a], run: "echo b"}\n' \
		"$orphans" >again.yaml
	id=$("$FLOWSUP" start --restart 2 again.yaml)
	fresh followed
	"$FLOWSUP" logs -f "$id" >followed 2>err &
	reader=$!
	fresh this
	"$FLOWSUP" logs -f --this-run "$id" >this 2>/dev/null &
	this=$!
	wait_until grep -q begun followed
	wait_until grep -q begun this
	wait_until worker_is_ready "$id"
	kill -KILL "$(worker_pid "$id")"
	wait $this
	equal "orphans: $orphans: logs -f --this-run ends with the crash" 137 $?
	wait_until successor "$id"
	next=$(successor "$id")
	[ "$orphans" = keep ] || wait_until eval '[ "$(grep -c begun followed)" = 2 ]'
	wait_until status_is "$next" running
	echo x >gate
	wait $reader
	equal "orphans: $orphans: logs -f ends by the outcome of the job" 0 $?
	equal "orphans: $orphans: and has all output of it, once" \
		"$([ "$orphans" = keep ] || echo "a | begun,")a | begun,a | got x,b | b" "$(paste -sd, followed)"
	matches "orphans: $orphans: and says where it goes on" "its restart policy resumes it.*as run $next" "$(paste -sd' ' err)"
done

# ---- A resumed run ----
cat >taken.yaml <<'YAML'
plan:
  - {id: a, run: "echo once"}
  - {id: b, needs: [a], run: "echo begun; read x <gate; echo got $x"}
  - {id: c, needs: [b], run: "echo c"}
YAML
id=$("$FLOWSUP" start taken.yaml)
saved_a() { [ "$(run_fact "$id" done)" = 1 ] && grep -q begun "$FLOWSUP_HOME/runs/$id/ops/b.1.out"; }
wait_until saved_a
kill -KILL "$(worker_pid "$id")"
wait_until status_is "$id" crashed
next=$("$FLOWSUP" resume "$id" 2>/dev/null)
fresh followed
"$FLOWSUP" logs -f "$next" >followed 2>err &
reader=$!
wait_until grep -q begun followed
equal "logs -f of a resumed run begins with what it did not run again" "a | once,b | begun" "$(paste -sd, followed)"
echo x >gate
wait $reader
equal "and has all output once, with what was taken over" "a | once,b | begun,b | got x,c | c" "$(paste -sd, followed)"
equal "as logs has" "$("$FLOWSUP" logs "$next")" "$(cat followed)"
equal "of one operation too" once "$("$FLOWSUP" logs -f "$next" a)"

# ---- Processes that are left behind ----
cat >left.sh <<'SH'
for i in 1 2 3; do setsid sh -c "touch $i; sleep 600; true" & done
until [ -e 1 ] && [ -e 2 ] && [ -e 3 ]; do sleep 0.02; done
SH
id=$("$FLOWSUP" start --wait -- sh left.sh 2>"$T/err")
equal "six processes in sessions of their own are one line" 1 "$(grep -c 'left processes behind' "$T/err")"
check "and an event each" [ "$(grep -c '"event":"NodeLeftover"' "$FLOWSUP_HOME/runs/$id/events.jsonl")" -ge 3 ]
plan
