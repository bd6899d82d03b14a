#!/usr/bin/env bash
# The supervisor is killed at random instants under a load of 50 runs: none is lost, none is started
# twice, every end is recorded, no zombie is left, and nothing needs a hand.
#
# 10 rounds in check, CAMPAIGN_ROUNDS kills otherwise; CAMPAIGN_SEED repeats the instants.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

rounds=${CAMPAIGN_ROUNDS:-10}
seed=${CAMPAIGN_SEED:-$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')}
echo "# CAMPAIGN_SEED=$seed CAMPAIGN_ROUNDS=$rounds"
RANDOM=$seed
load=50
mkdir "$T/ran" "$T/ids"
cd "$T" || exit 1

# Each run leaves a mark, and another one when it is started again.
launch() { # NUMBER
	"$FLOWSUP" start --name "$1" -- sh -c \
		"mkdir ran/$1 || touch ran/$1.twice; sleep 0.$((RANDOM % 900 + 100))" >"ids/$1" 2>"ids/$1.err" &
}
# Where that cannot be told, none has ended.
live() { sqlite3 -cmd '.timeout 60000' "file:$FLOWSUP_HOME/state.db?mode=ro" \
	"SELECT COUNT(*) FROM sessions WHERE status IN ('queued','starting','running')" 2>/dev/null || echo $n; }
kill_supervisor() {
	local pid
	pid=$(supervisors | head -1)
	[ -z "$pid" ] || { kill -KILL "$pid" 2>/dev/null && wait_until gone "$pid"; }
}

"$FLOWSUP" supervisor
n=0
for _ in $(seq "$rounds"); do
	now=$(live)
	for _ in $(seq $((load > now ? (load - now > 20 ? 20 : load - now) : 1))); do
		n=$((n + 1))
		launch "$n"
	done
	read -rt "0.$(printf '%03d' $((RANDOM % 250)))" <> <(:)
	kill_supervisor
done
wait
"$FLOWSUP" supervisor 2>/dev/null # where the last kill came after the last start
over() { [ "$(live)" -eq 0 ]; }
check "every run comes to an end" wait_until over
equal "each start printed an id" "$n" "$(cat ids/* | grep -cE '^[0-9]{8}T')"
equal "no start failed" "" "$(cat ids/*.err | sort | uniq -c)"
equal "none is lost, each ended well" "$n" "$("$FLOWSUP" list --json -n 0 --status completed | wc -l)"
equal "each was started" "$n" "$(ls ran | grep -vc twice)"
equal "none twice" 0 "$(ls ran | grep -c twice)"
equal "each had one worker" "$n" "$(cat "$FLOWSUP_HOME"/runs/*/attempts.log | grep -c '"kind":"worker"')"
equal "every end was recorded once" "$n" "$(sql \
	"SELECT COUNT(*) FROM status_transitions WHERE status IN ('completed','failed','crashed','cancelled','timed_out')")"
pid=$(supervisor_pid)
no_zombies() {
	local p
	for p in $(cat "/proc/$pid/task/$pid/children"); do [ "$(stat_field "$p" 1)" != Z ] || return 1; done
}
check "no zombie is left" wait_until no_zombies
check "there is one supervisor" wait_until one_supervisor
equal "nothing unfinished lies about" "" "$(cd "$FLOWSUP_HOME/runs" && ls -A | grep '^\.')"
check "stop leaves" "$FLOWSUP" supervisor stop
equal "and takes its socket along" "" "$(ls "$FLOWSUP_HOME" | grep sock)"
check "and the next one needs no hand" "$FLOWSUP" supervisor

# The instant that is met least often: the row says "starting", and there was no fork.
pid=$(supervisor_pid)
stop_still "$pid"
id=$(timeout "$LIMIT" "$FLOWSUP" start -- true 2>/dev/null)
kill -KILL "$pid"
wait_until gone "$pid"
sql "UPDATE sessions SET status = 'starting', reason_code = 'run.starting.forked' WHERE run_id = '$id'"
"$FLOWSUP" supervisor
check "a run whose worker was never forked is started all the same" wait_until status_is "$id" completed
plan
