#!/usr/bin/env bash
# Many runs: how long `list` takes over finished ones, and what sleeping ones cost.
#
#	tests/bench/scale_runs.sh BUILD [FINISHED [SLEEPING]]	(200 and 100)
set -u
build=$(realpath "${1:-build}")
finished=${2:-200}
sleeping=${3:-100}
flowsup=$build/bin/flowsup
work=$(mktemp -d "${TMPDIR:-/tmp}/flowsup-scale.XXXXXX") || exit 1
export FLOWSUP_HOME=$work/home XDG_CONFIG_HOME=$work/config
mkdir -p "$work/config/flowsup" # the daily gc would take most of the runs away
echo 'keep: {days: 36500, runs: 1000000, failed_days: 36500}' >"$work/config/flowsup/config.yaml"
trap '"$flowsup" supervisor stop --all --now >/dev/null 2>&1; rm -rf "$work"' EXIT

figure() { printf '%-28s %14s %-12s %-28s %s\n' "$1" "$2" "$3" "${4:--}" "${5:--}"; }
now_us() { echo $(($(date +%s%N) / 1000)); }
median() { sort -n | sed -n "$((($1 + 1) / 2))p"; }
# median_ms COUNT COMMAND...
median_ms() {
	local n=$1 i begun
	shift
	for i in $(seq "$n"); do
		begun=$(now_us)
		"$@" >/dev/null 2>&1
		echo $(($(now_us) - begun))
	done | median "$n" | awk '{ printf "%.1f", $1 / 1000 }'
}
pss() { awk '/^Pss:/ { print $2 }' "/proc/$1/smaps_rollup"; }
own() { awk '/^Anonymous:/ { print $2 }' "/proc/$1/smaps_rollup"; }
mean() { awk '{ s += $1 } END { printf "%.0f", s / NR }'; }
ticks() { sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'; }
switches() { cat "/proc/$1"/task/*/status | awk '/^voluntary_ctxt_switches/ { n += $2 } END { print n }'; }

# ---- Finished runs: rows as they are after a run of three operations ----
"$flowsup" start --wait -- true >/dev/null 2>&1 || exit 1
sqlite3 "$FLOWSUP_HOME/state.db" >/dev/null <<END
PRAGMA busy_timeout = 10000;
BEGIN;
CREATE TEMP TABLE n AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $finished) SELECT i FROM n;
INSERT INTO invocations(id, created_at) SELECT printf('%012x', i), i FROM n;
INSERT INTO sessions(id, run_id, invocation_id, origin, kind, name, status, reason_code, reason, created_at,
	started_at, ended_at, done, total, metadata, labels)
SELECT printf('%032x', i), printf('20260101T%06d-%06x', i % 240000, i), printf('%012x', i), printf('%032x', i), 'flow',
	'nightly-' || i, CASE i % 10 WHEN 0 THEN 'failed' ELSE 'completed' END,
	CASE i % 10 WHEN 0 THEN 'run.failed.operation' ELSE 'run.completed.all' END, 'every operation completed',
	1767225600 + i, 1767225601 + i, 1767225661 + i, 3, 3, '{}', '{}' FROM n;
COMMIT;
END
sqlite3 "$FLOWSUP_HOME/state.db" "SELECT run_id FROM sessions WHERE origin = id" | (cd "$FLOWSUP_HOME/runs" && xargs mkdir -p)
[ "$(sqlite3 "$FLOWSUP_HOME/state.db" 'SELECT COUNT(*) FROM sessions')" -gt "$finished" ] || exit 1
peer=$(median_ms 11 sqlite3 "$FLOWSUP_HOME/state.db" "SELECT * FROM sessions ORDER BY created_at DESC")
figure "runs.list.$finished" "$(median_ms 11 "$flowsup" list)" ms "<50" "sqlite3 $peer ms"
figure "runs.list.page.$finished" "$(median_ms 11 "$flowsup" list -n 20)" ms

# ---- Sleeping runs ----
seq "$sleeping" | xargs -P 4 -I{} "$flowsup" start --name sleeper-{} -- sleep 100000 >"$work/ids" || exit 1
ready() { "$flowsup" supervisor status | grep -c ready; }
end=$((SECONDS + 300))
while [ "$(ready)" -lt "$sleeping" ]; do
	[ $SECONDS -lt $end ] || { echo "# not all runs became ready"; exit 1; }
	sleep 0.2
done
supervisor=$("$flowsup" supervisor status --json | sed -nE 's/.*"pid":([0-9]+),"version".*/\1/p')
[ -n "$supervisor" ] || supervisor=$("$flowsup" supervisor status | sed -nE 's/^supervisor ([0-9]+),.*/\1/p')
workers=$("$flowsup" supervisor status | awk '/ready/ { print $2 }')
# Workers come to rest 10 s after the last of all has written its status; a smoke test need not see it.
sleep $((sleeping >= 100 ? 20 : 2))
before=$(ticks "$supervisor")
one=$(echo "$workers" | head -1)
woken=$(switches "$one")
begun=$(now_us)
sleep $((sleeping >= 100 ? 10 : 2))
took=$(($(now_us) - begun))
used=$(($(ticks "$supervisor") - before))
woken=$(($(switches "$one") - woken))
figure "runs.supervisor.pss.$sleeping" "$(pss "$supervisor")" KiB "<8192" "descriptors $(find "/proc/$supervisor/fd" -type l | wc -l)"
figure "runs.supervisor.cpu.$sleeping" "$(awk -v t="$used" -v us="$took" -v hz="$(getconf CLK_TCK)" \
	'BEGIN { printf "%.2f", t / hz / (us / 1e6) * 100 }')" % "<1"
figure "runs.worker.pss.$sleeping" "$(for w in $workers; do pss "$w"; done | mean)" KiB "<=450" \
	"not shared $(for w in $workers; do own "$w"; done | mean) KiB"
figure "runs.worker.wakeups.$sleeping" "$(awk -v n="$woken" -v us="$took" \
	'BEGIN { printf "%.2f", n / (us / 1e6) }')" /s "tick: 0.5" "all threads"
