#!/usr/bin/env bash
# stop --all at random instants of many runs, of which some have crashed, are about to be resumed or wait: nothing of
# them is alive afterwards, every row has its end, and no socket is left. ROUNDS, SEED: more of it, or the same again.
. "$(dirname "$0")/lib.sh"

RANDOM=${SEED:=$$}
note "SEED=$SEED"
RUNS=${RUNS:-24}
cat >"$T/deaf.yaml" <<'END'
restart: {on: crash, attempts: 5}
plan: [{id: deaf, grace: 100ms, run: 'trap "" TERM; while [ ! -e "$GO" ]; do sleep 0.05; done'}]
END
cat >"$T/steps.yaml" <<'END'
restart: {on: crash, attempts: 5}
plan:
  - {id: a, run: 'sleep 0.1'}
  - {id: b, needs: [a], run: 'while [ ! -e "$GO" ]; do sleep 0.05; done'}
END
cat >"$T/deadly.yaml" <<'END'
restart: {on: crash, attempts: 5}
plan: [{id: deadly, retry: {attempts: 9, on: [signal], backoff: 1ms}, run: 'sleep 0.1; kill -KILL $PPID $$'}]
END
"$FLOWSUP" queue set q --slots 3
export GO=$T/go
start_one() {
	case $((RANDOM % 5)) in
	0) "$FLOWSUP" start "$T/deaf.yaml" ;;
	1) "$FLOWSUP" start "$T/steps.yaml" ;;
	2) "$FLOWSUP" start "$T/deadly.yaml" ;;
	3) "$FLOWSUP" start --queue q "$T/steps.yaml" ;;
	4) "$FLOWSUP" start -- sh -c 'while [ ! -e "$GO" ]; do sleep 0.05; done' ;;
	esac
}
workers() { "$FLOWSUP" supervisor status --json 2>/dev/null | grep -oE '"pid":[1-9][0-9]*,"state"' | grep -oE '[0-9]+'; }
kill_some() {
	local pid
	for pid in $(workers); do
		[ $((RANDOM % 3)) -ne 0 ] || kill -KILL "$pid" 2>/dev/null
	done
}
nothing_is_ours() { [ -z "$(ours)" ]; }
unended() { "$FLOWSUP" list --json -n 100000 | grep -cE '"status":"(queued|starting|running|paused)"|"restarting":true|"running_operations":[1-9]'; }
round() { # NUMBER now|drain
	local i rc
	rm -f "$GO"
	for i in $(seq "$RUNS"); do start_one >/dev/null 2>&1; done
	for i in 1 2; do
		kill_some
		sleep "0.$((RANDOM % 10))$((RANDOM % 10))"
	done
	[ $((RANDOM % 3)) -ne 0 ] || "$FLOWSUP" supervisor restart
	[ $((RANDOM % 4)) -ne 0 ] || "$FLOWSUP" resume --all-crashed >/dev/null 2>&1
	if [ "$2" = now ]; then
		timeout 300 "$FLOWSUP" supervisor stop --all --now 2>"$T/said"
		rc=$?
	else
		timeout 300 "$FLOWSUP" supervisor stop --all 2>"$T/said" &
		sleep "0.$((RANDOM % 10))"
		kill_some
		touch "$GO"
		wait $!
		rc=$?
	fi
	[ "$rc" = 0 ] || sed 's/^/# /' "$T/said"
	equal "round $1 ($2): the exit status is 0, and no socket is left" "0 " "$rc $(ls "$FLOWSUP_HOME" | grep sock)"
	# (a command of notify, or a shell that was about to be reaped)
	check "round $1 ($2): nothing is alive" wait_until nothing_is_ours
	nothing_is_ours || ps -o pid,ppid,stat,args -p "$(ours | paste -sd,)" | sed 's/^/# /'
	equal "round $1 ($2): every row has its end" 0 "$(unended)"
	"$FLOWSUP" supervisor stop 2>/dev/null
}
for n in $(seq "${ROUNDS:-3}"); do
	round "$n" $([ $((n % 3)) = 0 ] && echo drain || echo now)
done
plan
