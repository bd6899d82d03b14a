#!/usr/bin/env bash
# Kills the worker while messages arrive, and resumes until the end: in every second round at each
# step of what it does with a message, by name, else at random instants. No text is ever in the input of
# two operations, and once it is in one attempt it is in all later ones of that operation; none that was
# reported applied is lost; every row is in one visible state; what was claimed and not reported is
# shown as such.
. "$(dirname "$0")/lib.sh"
PATH=$BUILD/bin:$PATH
export T
# CAMPAIGN_ROUNDS rounds (20 in check, fewer where the machine is so slow that they would take more
# than four minutes); CAMPAIGN_SEED repeats one campaign.
ROUNDS=${CAMPAIGN_ROUNDS:-20}
ENOUGH=${CAMPAIGN_ROUNDS:+999999}
ENOUGH=${ENOUGH:-240}
SEED=${CAMPAIGN_SEED:-$RANDOM}
RANDOM=$SEED
note "seed $SEED, $ROUNDS rounds"

POINTS=(read-after claim-before claim-after publish-before publish-after stamp-before stamp-after)
declare -A deaths
export DIE_AT=$T/die-at
# Operations inherit it too, where it does nothing.
PRELOADED=$BUILD/tests/preload/die_at.so
if nm -D "$WORKER" 2>/dev/null | grep -q __asan_init; then PRELOADED=; fi
flowsup_killable() { LD_PRELOAD=$PRELOADED "$FLOWSUP" "$@"; }
# Whoever starts the first run starts the supervisor, whose workers have what it has.

# Each attempt copies its messages under its operation's name before it does anything else.
cat >"$T/op.sh" <<'S'
cp "$FLOWSUP_MESSAGES" "$T/in/$FLOWSUP_OP_ID.$FLOWSUP_RUN_ID.$FLOWSUP_ATTEMPT"
# Where the steps are tried, all messages come while there is somebody to take them.
until [ ! -e "$T/by-steps" ] || [ -e "$T/all-sent" ]; do sleep 0.02; done
sleep 0.05
S
document() {
	echo 'concurrency: 2'
	echo 'plan:'
	for i in 1 2 3 4 5 6 7 8; do
		[ "$i" -le 2 ] && needs= || needs="needs: [o$((i - 2))], "
		echo "  - {id: o$i, ${needs}messages: true, run: 'sh \"$T/op.sh\"'}"
	done
	echo "  - {id: end, needs: [o7, o8], messages: true, run: 'sh \"$T/op.sh\"'}"
}

over() { case $(run_status "$1") in completed | failed | crashed | cancelled) true ;; *) false ;; esac; }
bad() { not_ok "$1"; note "round $round, seed $SEED: $2"; }

done=0
for round in $(seq "$ROUNDS"); do
	[ $SECONDS -lt "$ENOUGH" ] || break
	done=$round
	rm -rf "$T/in" && mkdir "$T/in"
	rm -f "$DIE_AT" "$T/by-steps" "$T/all-sent"
	[ $((round % 2)) = 1 ] || : >"$T/by-steps"
	first=$(document | flowsup_killable start -)
	run=$first
	chain=("$first")
	: >"$T/sent"
	(for n in 1 2 3 4 5 6; do "$FLOWSUP" msg "$first" "<text $round.$n>" 2>/dev/null && echo "$n" >>"$T/sent"; done
		: >"$T/all-sent") &
	sender=$!
	kills=0
	while :; do
		if [ "$kills" -lt 3 ]; then
			kills=$((kills + 1))
			if [ $((round % 2)) = 0 ] && [ -n "$PRELOADED" ]; then
				point=${POINTS[$(((round / 2 + kills) % ${#POINTS[@]}))]}
				echo "$point $((1 + RANDOM % 3))" >"$DIE_AT.new" && mv "$DIE_AT.new" "$DIE_AT"
				wait_until over "$run" || break
				[ -e "$DIE_AT" ] || deaths[$point]=$((${deaths[$point]:-0} + 1))
			else
				wait_until eval 'worker_is_ready "$run" || over "$run"' || break
				read -rt "0.$(printf '%03d' $((RANDOM % 600)))" <> <(:) || true
				pid=$(worker_pid "$run")
				[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null
			fi
		fi
		wait_until over "$run" || break
		rm -f "$DIE_AT"
		[ "$(run_status "$run")" = crashed ] || break
		run=$("$FLOWSUP" resume "$run" 2>"$T/resume.err") || { bad "it can be resumed" "$(cat "$T/resume.err")"; break; }
		chain+=("$run")
	done
	wait "$sender"
	[ "$(run_status "$run")" = completed ] || { bad "the job completes" "$run is $(run_status "$run")"; continue; }

	# Rows of every run of the chain, as people see them.
	: >"$T/rows"
	for id in "${chain[@]}"; do
		"$FLOWSUP" ctl status "$id" --this-run --json 2>/dev/null >>"$T/rows"
	done
	for n in 1 2 3 4 5 6; do
		ops=$(grep -lF "<text $round.$n>" "$T"/in/* 2>/dev/null | sed -E 's|.*/([a-z0-9]+)\..*|\1|' | sort -u | xargs)
		[ "$(echo "$ops" | wc -w)" -le 1 ] || bad "each text is in one operation" "text $n in: $ops"
		row=$(grep -F "<text $round.$n>" "$T/rows")
		[ "$(echo "$row" | grep -c .)" -le 1 ] || bad "each row is in one run" "$row"
		if grep -qx "$n" "$T/sent" && [ -z "$row" ]; then bad "what was queued has a row" "text $n"; fi
		# From its first attempt with the text on, every attempt of that operation has it.
		missing=
		seen=
		for id in "${chain[@]}"; do
			for file in "$T/in/${ops:-none}.$id".*; do
				[ -e "$file" ] || continue
				if grep -qF "<text $round.$n>" "$file"; then seen=1; elif [ -n "$seen" ]; then missing=$file; fi
			done
		done
		[ -z "$missing" ] || bad "the next attempt has it again" "text $n is not in $missing"
		state=$(json "$row" state)
		case $state in
		applied)
			# Applied after the last operation had started cannot be: then it is rejected.
			[ -n "$ops" ] || bad "none that was applied is lost" "text $n: $row" ;;
		queued) bad "no row waits at the end" "$row" ;;
		claimed | rejected | "never landed" | "") ;;
		*) bad "a state is one of the known" "$row" ;;
		esac
		[ -z "$ops" ] || case $state in applied | claimed) ;; *) bad "what was rendered was not rejected" "$row" ;; esac
	done
done
[ "$FAILED" -ne 0 ] || ok "$done rounds, each with three kills"
for point in "${POINTS[@]}"; do note "died at $point: ${deaths[$point]:-0} times"; done
if [ -n "$PRELOADED" ] && [ "$done" -ge 14 ]; then
	equal "a worker died at each step" ${#POINTS[@]} ${#deaths[@]}
fi
plan
