#!/usr/bin/env bash
# What a resume costs in system calls, command, supervisor and worker together, does not grow with the number
# of operations whose outcome is replayed: none of them is looked at one by one.
. "$(dirname "$0")/lib.sh"

if ! strace -o /dev/null true 2>/dev/null; then
	skip "system calls are counted: strace does not work here"
	plan
fi

crashed_run() { # OPERATIONS: all but the last one have their outcome; $run
	rm -f "$T/go"
	{
		printf 'name: cost\nconcurrency: 4\nmax_ops: %d\nplan:\n' "$1"
		seq -f '  - {id: o%.0f, exec: [/bin/true]}' $(($1 - 1))
		printf "  - {id: last, run: 'until [ -e %s/go ]; do sleep 0.02; done'}\n" "$T"
	} >"$T/flow.yaml"
	run=$("$FLOWSUP" start --durability=relaxed "$T/flow.yaml")
	wait_until only_last_runs "$1"
	kill -KILL "$(worker_pid "$run")"
	wait_until status_is "$run" crashed
	touch "$T/go"
	wait_until [ -e "$FLOWSUP_HOME/runs/$run/ops/last.1/exit.json" ]
	"$FLOWSUP" supervisor stop >/dev/null
}
only_last_runs() { "$FLOWSUP" show "$run" | grep -q "^progress *$(($1 - 1)) of $1 done, $(($1 - 1)) saved"; }
count() { # OPERATIONS: goes on with them below a supervisor that is counted; prints the calls
	local n=$1 out=$T/calls.$1.$try tracer
	export FLOWSUP_HOME=$T/home.$1.$try
	crashed_run "$n"
	strace -f -c -o "$out" "$FLOWSUP" supervisor >/dev/null 2>"$T/err.$n" &
	tracer=$!
	wait_until supervisor_answers
	strace -f -c -o "$out.command" "$FLOWSUP" resume "$run" --wait >/dev/null 2>&1 || echo "failed" >>"$out"
	"$FLOWSUP" supervisor stop >/dev/null 2>&1
	wait "$tracer"
	awk '$NF == "total" { sum += $4; n++ } $1 == "failed" { n = 0 } END { if (n == 2) print sum }' "$out" "$out.command"
}

# As in cost.sh: a machine that stands still for moments makes further calls, never fewer.
for try in 1 2 3 4 5; do
	few=$(count 100)
	many=$(count 700)
	note "calls: $few for 100 operations, $many for 700"
	[ "${many:-0}" -gt $((${few:-0} + 120)) ] || break
done
check "they were counted" test "${few:-0}" -gt 300
check "600 more that are replayed cost next to nothing" test "$many" -le $((few + 120))
plan
