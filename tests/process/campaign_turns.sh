#!/usr/bin/env bash
# Kills the worker of an agent's run while messages make further turns, at each step of what it does
# with a message and at random instants, and resumes until the end. No text that was reported applied
# is missing in the conversation; every row is in one visible state; a text stands in one turn only,
# however often that turn is done again.
. "$(dirname "$0")/lib_agent.sh"
ROUNDS=${CAMPAIGN_ROUNDS:-8}
SEED=${CAMPAIGN_SEED:-$RANDOM}
RANDOM=$SEED
note "seed $SEED, $ROUNDS rounds"
POINTS=(claim-before claim-after publish-before publish-after stamp-before stamp-after read-after)
export DIE_AT=$T/die-at
PRELOADED=$BUILD/tests/preload/die_at.so
if nm -D "$WORKER" 2>/dev/null | grep -q __asan_init; then PRELOADED=; fi

# The conversation keeps the whole text of each turn here, and a turn takes a moment.
sed -i -e 's/^printf .%s\\n. "${prompt%%$/printf "%s\\n=\\n" "$prompt" >>"$home\/told"; sleep 0.1\n&/' "$BIN/claude"
printf '%s\n' 'name: one' 'roles: {agent: {provider: claude}}' \
	'plan: [{id: a, assignee: agent, instruction: "slow begin"}]' >flow.yaml

over() { case $(run_status "$1") in completed | failed | crashed | cancelled) true ;; *) false ;; esac; }
in_turn() { ls "$AGENT"/slow-* >/dev/null 2>&1; }
bad() { not_ok "$1"; note "round $round, seed $SEED: $2"; }
state_of() { json "$(grep -F "<text $round.$1>" "$T/rows")" state; }

applied=0
for round in $(seq "$ROUNDS"); do
	rm -rf "$AGENT" "$DIE_AT" && mkdir "$AGENT"
	run=$(LD_PRELOAD=$PRELOADED "$FLOWSUP" start flow.yaml)
	chain=("$run")
	wait_until in_turn || break
	for n in 1 2 3; do "$FLOWSUP" msg "$run" "<text $round.$n>" 2>/dev/null; done
	(for n in 4 5 6; do "$FLOWSUP" msg "$run" "<text $round.$n>" 2>/dev/null; done) &
	sender=$!
	: >"$AGENT/go"
	for kills in 1 2 3; do
		if [ $((round % 2)) = 0 ] && [ -n "$PRELOADED" ]; then
			echo "${POINTS[$(((round / 2 + kills) % 7))]} $((1 + RANDOM % 3))" >"$DIE_AT.new" && mv "$DIE_AT.new" "$DIE_AT"
		else
			read -rt "0.$(printf '%03d' $((RANDOM % 400)))" <> <(:) || true
			pid=$(worker_pid "$run")
			[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null
		fi
		wait_until over "$run" || break
		rm -f "$DIE_AT"
		[ "$(run_status "$run")" = crashed ] || break
		run=$("$FLOWSUP" resume "$run" 2>"$T/err") || { bad "it can be resumed" "$(cat "$T/err")"; break; }
		chain+=("$run")
	done
	wait "$sender"
	wait_until over "$run"
	[ "$(run_status "$run")" = completed ] || { bad "the job completes" "$run is $(run_status "$run")"; continue; }
	: >"$T/rows"
	for id in "${chain[@]}"; do "$FLOWSUP" ctl status "$id" --this-run --json 2>/dev/null >>"$T/rows"; done
	for n in 1 2 3 4 5 6; do
		state=$(state_of $n)
		[ "$(grep -cF "<text $round.$n>" "$T/rows")" -le 1 ] || bad "each row is in one run" "text $n"
		case $state in
		applied) applied=$((applied + 1)); grep -qF "<text $round.$n>" "$AGENT/told" || bad "none that was applied is lost" "text $n" ;;
		claimed | rejected | "never landed" | "") ;;
		*) bad "a row is at its end" "text $n is $state" ;;
		esac
		case $state in applied | claimed) ;; *) ! grep -qF "<text $round.$n>" "$AGENT/told" || bad "what was told was not rejected" "text $n is $state" ;; esac
		# Done again, a turn has the same texts: those beside this one never change.
		beside=$(awk -v RS='=\n' -v t="<text $round.$n>" 'index($0, t)' "$AGENT/told" | grep -oE '<text [0-9.]+>' | sort | uniq -c | awk '{print $1}' | sort -u | wc -l)
		[ "$beside" -le 1 ] || bad "a text is in one turn" "text $n"
	done
done
check "messages were taken" [ "$applied" -gt "$ROUNDS" ]
[ "$FAILED" -ne 0 ] || ok "$ROUNDS rounds, each with up to three kills"
plan
