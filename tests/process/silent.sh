#!/usr/bin/env bash
# That an operation is silent is told, and since when, until it gives a sign of life again.
. "$(dirname "$0")/lib_grow.sh"

mkfifo "$T/gate" "$T/end"
begin <<Y
plan:
  - {id: told, silence: {after: 300ms, do: notify}, run: 'read x <"$T/gate"; echo sign; read x <"$T/end"'}
Y
since() { shown 'op["told"]["silent_since"]'; }
is_silent() { [[ $(since) =~ ^[0-9] ]]; }
check "show says that it is silent" wait_until is_silent
now=$(date +%s.%N)
check "since a moment that has been" python3 -c "import sys; sys.exit(not 0.2 < $now - $(since) < 1000)"
matches "also for people" "told +running.* silent for [0-9]" "$("$FLOWSUP" show "$RUN")"
matches "the event has the limit as it is" '"seconds":0.3' "$(grep NodeSilent "$(run_dir)/events.jsonl")"
first=$(since)
echo >"$T/gate"
check "a sign of life is heard" wait_until has_event NodeHeard '"op":"told"'
silent_anew() { is_silent && [ "$(since)" != "$first" ]; }
check "and a new silence is told of" wait_until silent_anew
echo >"$T/end"
wait_until ended
equal "what has ended is not silent" None "$(since)"
plan
