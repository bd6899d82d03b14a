#!/usr/bin/env bash
# Random flows that do all that an operation can do (fail, try again, ask for others, escalate, change
# the context, answer as JSON, expand a list, take messages), whose worker, supervisor or both are
# killed at random instants, up to five times a run, and which are resumed each time. What comes
# out is what the same flow gives without any kill: status, operations with their edges and
# replacements, outcomes, context. Nothing that was saved ran again, nothing ran beside itself; what must not
# be repeated ran once, or its resume was refused by name; a message is in one operation, and none
# that was applied is lost.
#
# In turn a round has operations that must not be repeated, failures that are mended and run again
# (--retry-failed), or deadlines. CAMPAIGN_ROUNDS rounds (6 in check, fewer on a slow machine), of up
# to CAMPAIGN_SIZE operations (40 in check); CAMPAIGN_SEED repeats one campaign.
# shellcheck source=lib_crash.sh
. "$(dirname "$0")/lib_crash.sh"

rounds=${CAMPAIGN_ROUNDS:-6}
size=${CAMPAIGN_SIZE:-${CAMPAIGN_ROUNDS:+200}}
size=${size:-40}
enough=${CAMPAIGN_ROUNDS:+999999} # seconds, after one round of each kind
enough=${enough:-35}
seed=${CAMPAIGN_SEED:-$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')}
kinds=(once mend late)
note "CAMPAIGN_SEED=$seed CAMPAIGN_ROUNDS=$rounds CAMPAIGN_SIZE=$size"

# mend OPTION...: with the failures' reason gone. What that run leaves out is what it always leaves out.
mend() {
	: >"$RUNLOG.mended"
	"$@" --retry-failed --drop-respawned
}

# The same flow without a kill: $T/wanted, and $T/wanted.mended.
run_plainly() {
	log_to plain
	local begin=${EPOCHREALTIME/./}
	run=$("$FLOWSUP" start "$T/flow.json" --wait 2>/dev/null)
	duration=$(((${EPOCHREALTIME/./} - begin) / 1000))
	state_of "$run" >"$T/wanted"
	[ "$kind" = mend ] && grep -q '^status failed' "$T/wanted" || return 0
	run=$(mend "$FLOWSUP" resume "$run" --wait 2>/dev/null)
	state_of "$run" >"$T/wanted.mended"
}

compare() { # FILE
	[ ! -s "$T/wrong" ] || return
	state_of "$run" | diff "$1" - >>"$T/wrong"
	"$FLOWSUP" checkpoint verify "$run" >/dev/null || wrong "its checkpoint does not verify"
}

run_with_deaths() {
	log_to log
	truncate -s 0 "$T/sent" "$T/saved" "$T/wrong"
	# shellcheck disable=SC2034 # of lib_crash.sh
	refused_ops=" "
	local late=()
	[ "$kind" != late ] || late=(--timeout "$(($(random_below "$duration") + 50))ms")
	run=$("$FLOWSUP" start "$T/flow.json" "${late[@]}")
	chain=("$run")
	go_on $((1 + RANDOM % 5)) $((duration / 2))
	compare "$T/wanted"
	if [ -e "$T/wanted.mended" ] && [ ! -s "$T/wrong" ]; then
		mend resume
		: >"$T/saved"
		go_on $((RANDOM % 3)) $((duration / 3))
		compare "$T/wanted.mended"
	fi
	check_messages
}

kills=0 refusals=0 resumes=0
for round in $(seq "$rounds"); do
	[ "$round" -le ${#kinds[@]} ] || [ $SECONDS -lt "$enough" ] || break
	now=$((seed + round))
	kind=${kinds[$((now % 3))]}
	rm -f "$T"/wanted*
	random_flow "$now" "$kind" "$size"
	RANDOM=$((now % 32768))
	run_plainly
	run_with_deaths
	if [ -s "$T/wrong" ]; then
		sed 's/^/# /' "$T/wrong"
		not_ok "round $round (CAMPAIGN_SEED=$((now - 1)) CAMPAIGN_ROUNDS=1 CAMPAIGN_SIZE=$size), $kind: run ${chain[*]}"
		[ -z "${CAMPAIGN_KEEP:-}" ] || cp -a "$T" "$CAMPAIGN_KEEP/$now"
	else
		ok "round $round, $kind: ${#chain[@]} runs, $(wc -l <"$T/wanted") lines of what came out are the same"
	fi
done
note "$kills kills of workers, $resumes resumes, $refusals refused by name at first"
plan
