#!/usr/bin/env bash
# What watch says of a run, line by line: what repeats itself is said once, and nothing that does not happen.
. "$(dirname "$0")/lib_grow.sh"

newest() { RUN=$("$FLOWSUP" list -n 1 --json | grep -oE '"id":"[^"]*"' | head -1 | cut -d'"' -f4); [ -n "$RUN" ]; }

"$FLOWSUP" start -w --max-ops 3 - >"$T/lines" 2>&1 <<'Y'
reactive: all
plan:
  - {id: a, run: 'for n in 1 2 3 4 5 6; do flowsup emit spawn --run true; done 2>/dev/null; for n in 1 2; do flowsup emit spawn; done 2>/dev/null; true'}
Y
equal "of equal rejections there is one line for each reason" 2 "$(grep -c 'a asked in vain' "$T/lines")"
matches "and their number at the end" 'run ended.*; 4 more requests were asked for in vain, for reasons told above' "$(cat "$T/lines")"
newest
equal "each is an event" 6 "$(events SpawnRejected)"

"$FLOWSUP" supervisor stop
movable "$FLOWSUP" supervisor
begin --timeout 1h <<'Y'
plan:
  - id: again
    retry: {attempts: 2, backoff: 10ms}
    run: 'until grep -q DeadlineClosed "$FLOWSUP_HOME/runs/$FLOWSUP_RUN_ID/events.jsonl"; do sleep 0.02; done; exit 3'
Y
wait_until has_event NodeStarted '"op":"again"'
"$FLOWSUP" watch "$RUN" >"$T/lines" 2>&1 &
FOLLOWER=$!
wait_until [ -s "$T/lines" ]
deadline_passes
wait "$FOLLOWER"
deadline_is_ahead
matches "a failure behind the deadline is not said to be tried again" 'again failed; its next attempt is left to a resume: exit status 3' "$(cat "$T/lines")"
matches "the event says so, too" '"event":"NodeRetrying".*"deferred":true' "$(grep NodeRetrying "$(run_dir)/events.jsonl")"
plan
