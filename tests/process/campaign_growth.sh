#!/usr/bin/env bash
# Growing flows that end at a random instant, by their deadline or by the death of their worker, and
# are resumed until they complete: after a deadline nothing starts; every state of every checkpoint is
# right; what was asked for is there once.
#
# CAMPAIGN_ROUNDS instants (20 in check; a full campaign has 1000); CAMPAIGN_SEED repeats one campaign.
. "$(dirname "$0")/lib_grow.sh"

rounds=${CAMPAIGN_ROUNDS:-20}
seed=${CAMPAIGN_SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
echo "# CAMPAIGN_SEED=$seed CAMPAIGN_ROUNDS=$rounds"
RANDOM=$((seed % 32768))

starts_after() { awk '/"event":"DeadlineClosed"/ {on=1} on && /"event":"NodeStarted"/ {n++} END {print n+0}' < <(cat "$(run_dir)/events.jsonl" 2>/dev/null); }
# A worker that died before its first checkpoint has left nothing to look at.
inspect() { [ ! -e "$(run_dir)/checkpoint.json" ] || python3 "$ROOT/tests/lib/inspect_growth.py" "$(run_dir)"; }
flow() { # a key and its value
	cat <<Y
$1
reactive: all
concurrency: 3
roles:
  low: {env: {WHO: low}, escalate_to: high}
  high: {env: {WHO: high}}
plan:
  - {id: list, response: json, run: 'sleep 0.03; echo "[1, 2]"'}
  - {id: each, needs: [list], foreach: "", run: 'flowsup emit spawn --run "sleep 0.0$((RANDOM % 10)); echo \$1" || exit 9; sleep 0.0$((RANDOM % 6))'}
  - {id: grows, run: 'flowsup emit spawn --run "flowsup emit spawn --run true --key deep || exit 9" --key child || exit 9; sleep 0.0$((RANDOM % 10))'}
  - {id: fails, assignee: low, run: 'sleep 0.0$((RANDOM % 10)); test \$WHO = high'}
  - {id: asks, assignee: low, response: json, run: 'if [ \$WHO = low ]; then echo "{\"escalate\": true, \"spawn\": [{\"run\": \"true\"}]}"; else echo "{}"; fi'}
  - {id: tries, retry: {attempts: 3, backoff: 20ms}, run: 'test \$FLOWSUP_ATTEMPT -ge 3 -o -e "\$T/gates/tried" || { : > "\$T/gates/tried"; false; }'}
  - {id: end, needs: [each, grows, fails, asks, tries], run: 'true'}
Y
}
WHOLE="asks asks.s1 asks.s2 each each.0 each.0.s1 each.1 each.1.s1 end fails fails.s1 grows grows.s1 grows.s1.s1 list tries"

instant() { echo $((10 + RANDOM % 200)); }
# By its own line in the log of attempts: asking a command would take longer than the run.
worker_of_run() { sed -nE 's/^\{"kind":"worker".*"pid":([0-9]+),.*/\1/p' "$(run_dir)/attempts.log" 2>/dev/null | tail -1; }
has_worker() { [ -n "$(worker_of_run)" ]; }
kill_worker() { # milliseconds; one that has ended is not there to be killed
	local pid
	wait_until has_worker
	sleep "0.$(printf %03d "$1")"
	pid=$(worker_of_run)
	grep -qsF "$RUN" "/proc/$pid/cmdline" && kill -KILL "$pid"
}

crashed=0 closed=0 late=0 bad=0 incomplete=0 repeated=0 runs=0
note_bad() { note "$1: $RUN, after $runs runs"; }
n=0
while [ $n -lt "$rounds" ]; do
	rm -f "$T"/gates/*
	kill=$((RANDOM % 2))
	if [ $kill = 1 ]; then keys='name: killed'; else keys="timeout: $(instant)ms"; fi
	begin < <(flow "$keys")
	tries=0
	while :; do
		[ $kill = 0 ] || kill_worker $((RANDOM % 200))
		wait_until ended || break
		runs=$((runs + 1)) n=$((n + 1)) tries=$((tries + 1))
		has_event DeadlineClosed '"run"' 2>/dev/null && closed=$((closed + 1))
		[ "$(starts_after)" = 0 ] || { late=$((late + 1)); note_bad "started after the deadline"; }
		seen=$(inspect) || { bad=$((bad + 1)); note_bad "$seen"; }
		[ "$(run_status "$RUN")" != crashed ] || crashed=$((crashed + 1))
		[[ $(run_status "$RUN") =~ ^(timed_out|crashed)$ ]] && [ $tries -lt 40 ] || break
		[ $tries -lt 5 ] || kill=0
		again=()
		[ "$(run_status "$RUN")" = crashed ] || again=(--timeout "$(instant)ms")
		[ $tries -lt 20 ] || again=(--timeout 1h)
		RUN=$("$FLOWSUP" resume "$RUN" "${again[@]}" 2>"$T/resume.err") || { note "$(cat "$T/resume.err")"; break; }
	done
	[ "$(run_status "$RUN")" = completed ] || { incomplete=$((incomplete + 1)); note_bad "$(run_status "$RUN")"; }
	[ "$(shown '" ".join(sorted(i for i in op if op[i]["state"] in ("completed", "failed")))')" = "$WHOLE" ] ||
		{ repeated=$((repeated + 1)); note_bad "$(shown 'sorted(op)')"; }
done
note "$runs runs: $closed ended by their deadline, $crashed by the death of their worker"
equal "nothing started after a deadline" 0 "$late"
equal "every state of every checkpoint was right" 0 "$bad"
equal "every flow completed in the end" 0 "$incomplete"
equal "each operation was there once" 0 "$repeated"
plan
