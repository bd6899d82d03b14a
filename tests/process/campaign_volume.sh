# shellcheck shell=bash
# Large numbers: no zombie is left while a run goes on, and the worker's memory stays what it was
# while an operation prints more than fits anywhere. In full: 10,000 operations and 10 GB.
. "$(dirname "$0")/lib.sh"

if [ -n "${CAMPAIGN_ROUNDS:-}" ]; then
	operations=10000 megabytes=10240
	# shellcheck disable=SC2034 # of lib.sh
	LIMIT=1800
else
	operations=1000 megabytes=64
fi

worker_of() { "$FLOWSUP" show --json "$1" | grep -o '"worker_pid":[0-9]*' | head -n 1 | cut -d: -f2; }
children() { # of a process and of its supervisor, in state $2
	local line
	for line in /proc/[0-9]*/stat; do
		line=$(cat "$line" 2>/dev/null) || continue
		line=${line##*) }
		# shellcheck disable=SC2086 # the fields are words
		set -- "$1" "$2" $line
		[ "$3" = "$2" ] && [ "$4" = "$1" ] && echo "$4"
	done | wc -l
}
resident() { sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$1/status"; }

# ---- Zombies ----

cd "$T" || exit 1
{
	printf 'name: zombies\nconcurrency: 4\nmax_ops: %d\nplan:\n' $((operations + 1))
	seq -f '  - {id: o%.0f, exec: [/bin/true]}' "$operations"
	echo "  - {id: last, run: ': >$T/begun; until [ -e $T/go ]; do sleep 0.05; done'}"
} >zombies.yaml
run=$("$FLOWSUP" start zombies.yaml 2>"$T/err")
all_but_last() { [ -e "$T/begun" ] && [ "$(grep -c NodeCompleted "$FLOWSUP_HOME/runs/$run/events.jsonl")" -eq "$operations" ]; }
wait_until all_but_last
check "$operations operations have ended" all_but_last
worker=$(worker_of "$run")
supervisor=$(stat_field "$worker" 2)
no_zombie() { [ "$(children "$1" Z)" = 0 ]; }
sleeps() { [ "$(children "$1" S)" -ge 1 ]; }
check "none of them is left as a zombie of the worker" wait_until no_zombie "$worker"
check "nor of the supervisor" wait_until no_zombie "$supervisor"
check "the count sees what there is" wait_until sleeps "$worker"
: >go
"$FLOWSUP" wait "$run" >/dev/null 2>&1
equal "the run completed" 0 $?

# ---- Output ----

free=$(df -Pm "$T" | awk 'NR == 2 { print $4 }')
if [ "$free" -lt $((megabytes + 2048)) ]; then
	skip "$megabytes MB of output: $free MB are free"
	plan
fi
rm -f go begun
cat >volume.yaml <<EOF
plan:
  - {id: first, run: ': >$T/begun; until [ -e $T/go ]; do sleep 0.05; done'}
  - {id: prints, needs: [first], run: 'dd if=/dev/zero bs=1M count=$megabytes 2>/dev/null'}
  - {id: last, needs: [prints], run: ': >$T/printed; until [ -e $T/gone ]; do sleep 0.05; done'}
EOF
run=$("$FLOWSUP" start volume.yaml 2>"$T/err")
wait_until test -e begun
worker=$(worker_of "$run")
before=$(resident "$worker")
: >go
wait_until test -e printed
after=$(resident "$worker")
: >gone
"$FLOWSUP" wait "$run" >/dev/null 2>&1
equal "the run completed" 0 $?
equal "all of it is there" $((megabytes * 1048576)) \
	"$(stat -c %s "$FLOWSUP_HOME/runs/$run/ops/prints.1.out")"
note "the worker's highest memory: $before KiB before, $after KiB after $megabytes MB"
check "the worker's memory stayed" test "$after" -le $((before + 2048))
plan
