#!/usr/bin/env bash
# Each benchmark runs, in small; and what it counts (bytes, not time) is within its bound.
cd "$(dirname "$0")/../.." || exit 1
build=${FLOWSUP_BUILD:-build}
n=0
failed=0

smoke() { # name, arguments: runs and prints something
	local name=$1
	shift
	n=$((n + 1))
	case $name in
	*.sh) set -- "tests/bench/$name" "$build" "$@" ;;
	*) set -- "$build/tests/bench/$name" "$@" ;;
	esac
	if lines=$("$@" 2>&1) && [ -n "$lines" ]; then
		echo "ok $n - $name runs"
	else
		printf '%s\n' "$lines" | sed 's/^/# /'
		echo "not ok $n - $name runs"
		failed=1
	fi
}

below() { # figure, bound: compares the figure's value in $lines
	n=$((n + 1))
	if printf '%s\n' "$lines" | awk -v name="$1" -v bound="$2" \
		'$1 == name { seen = 1; good = $2 <= bound } END { exit !(seen && good) }'; then
		echo "ok $n - $1 <= $2"
	else
		printf '%s\n' "$lines" | sed 's/^/# /'
		echo "not ok $n - $1 <= $2"
		failed=1
	fi
}

smoke bench_bytes
below bytes.nocompact 3456810
below bytes.default 6000000
below bytes.linear 3
smoke bench_lag 1
smoke bench_ack 50
smoke bench_load 1
smoke bench_json 1
smoke bench_busy 2
smoke bench_control 3 1
smoke bench_start 3 1
smoke start_peers 2
smoke bench_death 2
smoke spawn_rate 20 1
smoke dags 40 1
smoke scale_runs.sh 200 3
smoke scale_ops 2000 0 2000
below scale.ops.2000.memory 8
echo "1..$n"
exit $failed
