#!/usr/bin/env bash
# After a worker's death the count of a run is what its checkpoint holds, be it more or less than the row's;
# and counts are told in the singular where there is one.
. "$(dirname "$0")/lib.sh"
mkdir "$T/work" && cd "$T/work" || exit 1

cat >flow.yaml <<'YAML'
name: counts
concurrency: 1
plan:
  - {id: one, run: "true"}
  - {id: two, needs: [one], run: "true"}
  - {id: three, needs: [two], run: "true"}
  - {id: long, needs: [three], run: "exec sleep 600"}
YAML
done_is() { [ "$(run_fact "$1" "done")" = "$2" ]; }
crash_with() { # SAVED: a run whose row says 3 and whose checkpoint keeps SAVED outcomes -> $id
	local worker journal
	id=$("$FLOWSUP" start flow.yaml)
	# It is started when the outcomes before it are saved.
	wait_until grep -q '"kind":"start","op":"long"' "$FLOWSUP_HOME/runs/$id/attempts.log"
	wait_until done_is "$id" 3 && wait_until worker_is_ready "$id"
	worker=$(worker_pid "$id")
	# Nobody sees the death before the journal is short.
	kill -KILL "$(supervisors)"
	kill -KILL "$worker"
	wait_until gone "$worker"
	journal=$FLOWSUP_HOME/runs/$id/checkpoint.json.journal
	head -n "$1" "$journal" >"$T/journal" && cat "$T/journal" >"$journal"
	wait_until status_is "$id" crashed
}

crash_with 3
check "all that was saved counts" wait_until done_is "$id" 3
matches "show: three records" "clean, 3 records in the journal" "$("$FLOWSUP" show "$id")"
crash_with 1
check "less was saved than the row says: it goes down" wait_until done_is "$id" 1
matches "list says it" " 1/4 " "$("$FLOWSUP" list -n 1)"
matches "show: one record" "clean, 1 record in the journal" "$("$FLOWSUP" show "$id")"
matches "checkpoint verify: one record" "base and 1 record$" \
	"$("$FLOWSUP" checkpoint verify "$id" | grep structure)"
crash_with 0
check "down to none" wait_until done_is "$id" 0
matches "show: no records" "clean, 0 records in the journal" "$("$FLOWSUP" show "$id")"
matches "resume replays what is there" "will run" "$("$FLOWSUP" resume --dry-run "$id" | grep '^one ')"

# One of something, everywhere.
one=$("$FLOWSUP" start --wait -- true 2>/dev/null)
matches "a dry run of one operation" ": 1 operation$" "$("$FLOWSUP" start --dry-run -- true | head -1)"
matches "of two" ": 2 operations$" "$("$FLOWSUP" start --dry-run --chain true true | head -1)"
matches "verify of one response" "1 right" "$("$FLOWSUP" checkpoint verify "$one")"
for id in $("$FLOWSUP" list --status crashed --json | sed -nE 's/^\{"id":"([^"]*)".*/\1/p'); do
	"$FLOWSUP" kill "$id" 2>/dev/null
done
live=$("$FLOWSUP" start -- sleep 600)
wait_until worker_is_ready "$live"
told() { "$FLOWSUP" supervisor status | "$@"; }
matches_soon "what is done of it, though nothing of it has ended" "^$live.* 0/1$" told tail -1
matches_soon "one run of a supervisor" ", 1 run$" told head -1
plan
