# shellcheck shell=bash
# What an operation costs in system calls, supervisor, worker and operation together, does not grow
# with the number of operations of the run: the next 120 cost what those before did.
. "$(dirname "$0")/lib.sh"

if ! strace -o /dev/null true 2>/dev/null; then
	skip "system calls are counted: strace does not work here"
	plan
fi

flow() { # OPERATIONS
	printf 'name: cost\nconcurrency: 2\nmax_ops: %d\nplan:\n' "$1"
	seq -f '  - {id: o%.0f, exec: [/bin/true]}' "$1"
}

count() { # OPERATIONS: runs them below a supervisor of their own; prints the calls
	local n=$1 out=$T/calls.$1.$try tracer
	export FLOWSUP_HOME=$T/home.$1.$try
	flow "$n" >"$T/flow.yaml"
	strace -f -c -o "$out" "$FLOWSUP" supervisor >/dev/null 2>"$T/err.$n" &
	tracer=$!
	wait_until supervisor_answers
	"$FLOWSUP" start --wait "$T/flow.yaml" >/dev/null 2>&1 || echo "failed" >>"$out"
	"$FLOWSUP" supervisor stop >/dev/null 2>&1
	wait "$tracer"
	awk '$NF == "total" { print $4; exit }' "$out"
}

# A machine that stands still for moments makes further calls (ticks, looks at the clock), never fewer: one
# measurement of some that is as it should be is enough.
for try in 1 2 3 4 5; do
	few=$(count 20)
	some=$(count 140)
	many=$(count 260)
	first=$(((some - few) / 120))
	second=$(((many - some) / 120))
	note "calls for each operation: $first among the first 140, $second among the next 120"
	[ "$second" -gt $((first + first / 10 + 1)) ] || [ "$second" -gt 110 ] || break
done
check "they were counted" test "$few" -gt 500 -a "$first" -gt 20
check "an operation costs no more among many" test "$second" -le $((first + first / 10 + 1))
check "and no more than it may" test "$second" -le 110
plan
