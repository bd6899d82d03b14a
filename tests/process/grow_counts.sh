#!/usr/bin/env bash
# What is done of a run and of how much is the same everywhere, also when its worker had no time to say it.
. "$(dirname "$0")/lib_grow.sh"

counts_of() { json "$1" done; printf /; json "$1" total; }
counted() { # as list, show --json and show say it
	local row
	row=$("$FLOWSUP" list --json -n 100 | grep -F "\"$RUN\"")
	printf '%s ' "$(counts_of "$row" | tr -d '\n')" "$("$FLOWSUP" show "$RUN" --json | python3 -c '
import json, sys
d = json.load(sys.stdin)
d = d.get("run", d)
print("%d/%d" % (d["done"], d["total"]))')"
	"$FLOWSUP" show "$RUN" | sed -nE 's/.* ([0-9]+) of ([0-9]+) done.*/\1\/\2/p; s/^([0-9]+) of ([0-9]+) done.*/\1\/\2/p' | head -n 1
}
# An operation that fails leaves one that is skipped; four were added, one of which goes on.
grown() {
	rm -f "$T"/gates/*
	begin <<'Y'
reactive: all
concurrency: 8
plan:
  - {id: a, run: 'for i in 1 2 3; do flowsup emit spawn --run "echo $i"; done; flowsup emit spawn --run "until [ -e \"$T/gates/go\" ]; do sleep 0.05; done"'}
  - {id: bad, run: 'false'}
  - {id: never, needs: [bad], run: 'true'}
Y
	wait_until quick_are_saved
}
quick_are_saved() { [ "$(spawned 'sorted(o), sum(1 for e in s if e["status"] == "completed"), len(s)')" = "(['a', 'bad'], 3, 4)" ]; }

grown
kill -KILL "$(worker_pid "$RUN")"
wait_until status_is "$RUN" crashed
equal_soon "of a crashed run everything that was added is counted, and what is skipped" "6/7 6/7 6/7" counted
open_gate go

# Less was saved than its worker had told: what was added goes down with the rest.
added() { shown 'd["growth"] and d["growth"]["spawned"], sum(1 for o in d["ops"] if o["why"].startswith("asked for"))'; }
journal_without() { # what to leave out, from its first record on
	local journal
	journal=$(run_dir)/checkpoint.json.journal
	sed "/$1/,\$d" "$journal" >"$T/journal" && cat "$T/journal" >"$journal"
}
told_all() { [ "$(sql "select json_extract(metadata, '$.growth.spawned') from sessions where run_id = '$RUN'")" = 4 ]; }
grown
wait_until told_all
worker=$(worker_pid "$RUN")
kill -KILL "$(supervisors)"
kill -KILL "$worker"
wait_until gone "$worker"
journal_without '"request_key"'
wait_until status_is "$RUN" crashed
equal_soon "what was not saved is not counted as added" "(None, 0)" added
open_gate go

grown
"$FLOWSUP" kill "$RUN" 2>/dev/null
equal "so it is of one that was killed" "cancelled" "$(run_status "$RUN")"
equal "from the first moment" "6/7 6/7 6/7" "$(counted)"
# While a run grows, what is done and what there is are of one moment: neither goes back, and it is not done
# before it is. The row alone says it once a second.
rm -f "$T"/gates/*
begin <<'Y'
reactive: all
plan:
  - {id: a, run: 'printf "[1,2,3,4,5,6,7,8]"', response: json}
  - {id: g, needs: [a], foreach: {op: a, pointer: ''}, run: 'sleep 0.0$1; flowsup emit spawn --run "echo $1"'}
  - {id: last, run: 'until [ -e "$T/gates/go" ]; do sleep 0.05; done'}
Y
counts() { "$FLOWSUP" list --json -n 1 | sed -nE 's/.*"status":"([a-z]+)".*"done":([0-9]+),"total":([0-9]+).*/\2 \3 \1/p'; }
all_but_one() { counts >>"$T/seen" && tail -n 1 "$T/seen" | grep -q '^18 19 running'; }
: >"$T/seen"
check "it is counted to the end" wait_until all_but_one
open_gate go
wait_until ended
counts >>"$T/seen"
note "$(uniq "$T/seen" | cut -d' ' -f1,2 | tr ' \n' '/ ')"
equal "what is done never goes back, nor what there is, nor is it all before the end" "" \
	"$(awk '$1 < done || $2 < total || ($1 == $2 && $3 == "running") { print } { done = $1; total = $2 }' "$T/seen")"
equal "at the end it is all" "19 19 completed" "$(tail -n 1 "$T/seen")"
plan
