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
# to CAMPAIGN_SIZE operations (40 in check), CAMPAIGN_JOBS of them at once (3); CAMPAIGN_SEED repeats
# one campaign, CAMPAIGN_KEEP names a directory for what is left of rounds that failed.
. "$(dirname "$0")/lib.sh"

rounds=${CAMPAIGN_ROUNDS:-6}
size=${CAMPAIGN_SIZE:-${CAMPAIGN_ROUNDS:+200}}
size=${size:-40}
enough=${CAMPAIGN_ROUNDS:+9999999} # seconds, after one round of each kind
seed=${CAMPAIGN_SEED:-$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')}
note "CAMPAIGN_SEED=$seed CAMPAIGN_ROUNDS=$rounds CAMPAIGN_SIZE=$size"

export T FLOWSUP OPS=$ROOT/tests/lib/crash_op.sh PATH=$BUILD/bin:$PATH
python3 -B "$ROOT/tests/lib/crash_campaign.py" "$rounds" "$size" "$seed" "${CAMPAIGN_JOBS:-3}" "${enough:-35}"
