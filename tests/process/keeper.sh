#!/usr/bin/env bash
# Operations below a keeper: who gets one, what it writes whoever is dead, and what the worker sees.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

export GO=$T/go KEPT=SECRET_OF_THE_TEST
cat >"$T/flow.yaml" <<'YAML'
name: keeper
plan:
  - id: kept
    keeper: true
    timeout: 1h
    silence: {after: 30m, strict: true}
    run: until [ -e "$GO" ]; do sleep 0.05; done; echo done; exit 3
  - id: once
    idempotent: false
    run: cat "/proc/$PPID/comm"
  - id: plain
    run: cat "/proc/$PPID/comm"
YAML

started() { grep -q "\"kind\":\"start\",\"op\":\"$1\"" "$FLOWSUP_HOME/runs/$run/attempts.log"; }
start_member() { json "$(grep "\"kind\":\"start\",\"op\":\"$1\"" "$FLOWSUP_HOME/runs/$run/attempts.log")" "$2"; }
ended() { grep -q "\"kind\":\"end\",\"op\":\"$1\"" "$FLOWSUP_HOME/runs/$run/attempts.log"; }
no_keeper() { gone "$keeper"; }

# ---- Who gets one, and what its line says ----

run=$("$FLOWSUP" start "$T/flow.yaml")
ops=$FLOWSUP_HOME/runs/$run/ops
wait_until ended plain && wait_until ended once && wait_until started kept
equal "what must not be repeated runs below a keeper" flowsup-keep "$(cat "$ops/once.1.out")"
equal "what says nothing of it does not" flowsup-worker "$(cat "$ops/plain.1.out")"
keeper=$(start_member kept reaper)
pid=$(start_member kept pid)
equal "the start line names the keeper" flowsup-keep "$(cat "/proc/$keeper/comm")"
equal "with its start time" "$(stat_field "$keeper" 20)" "$(start_member kept reaper_start)"
equal "another one's names the supervisor" "$(supervisor_pid)" "$(start_member plain reaper)"
matches "the line has the limits" '"limit_ms":[0-9]+,"silence_ms":1800000,"strict":true' \
	"$(grep '"op":"kept"' "$FLOWSUP_HOME/runs/$run/attempts.log")"
matches "and the token" '"token":"[0-9a-f]{32}-' "$(grep '"op":"kept"' "$FLOWSUP_HOME/runs/$run/attempts.log")"
equal "the keeper is no thread more than one" 1 "$(ls "/proc/$keeper/task" | wc -l)"
# The line is written a moment before the start is over.
open_files() { ls "/proc/$keeper/fd" | wc -l; }
equal_soon "it keeps only its channel, the directory and the process open" 6 open_files
if ! is_sanitized && [ -r "/proc/$keeper/mem" ] && command -v python3 >/dev/null; then
	secrets() {
		python3 - "$keeper" <<-'PY'
			import re, sys
			found = 0
			mem = open("/proc/%s/mem" % sys.argv[1], "rb", 0)
			for line in open("/proc/%s/maps" % sys.argv[1]):
			    m = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw", line)
			    if m:
			        start, end = (int(x, 16) for x in m.groups())
			        mem.seek(start)
			        try:
			            found += mem.read(end - start).count(b"SECRET_" + b"OF_THE_TEST")
			        except OSError:
			            pass
			print(found)
		PY
	}
	equal_soon "nor does it keep what the environment held" 0 secrets
else
	skip "nor does it keep what the environment held"
fi
equal "it bears no mark of an operation" "" "$(tr '\0' '\n' <"/proc/$keeper/environ" | grep FLOWSUP_)"

# ---- It writes the end although everybody else is dead ----

kill -TERM "$keeper"
# shellcheck disable=SC2046
kill -KILL $(supervisors) $(worker_pid "$run")
touch "$GO"
wait_until [ -e "$ops/kept.1/exit.json" ]
equal "exit.json has the status" 3 "$(json "$(cat "$ops/kept.1/exit.json")" code)"
equal "and the process" "$pid" "$(json "$(cat "$ops/kept.1/exit.json")" pid)"
equal "and who saw it end, whom SIGTERM does not end" keeper "$(json "$(cat "$ops/kept.1/exit.json")" by)"
check "the keeper leaves then" wait_until no_keeper

# ---- A keeper that is killed: the worker still learns how it ended ----

rm "$GO"
run=$("$FLOWSUP" start "$T/flow.yaml")
ops=$FLOWSUP_HOME/runs/$run/ops
wait_until started kept
keeper=$(start_member kept reaper)
kill -KILL "$keeper"
wait_until no_keeper
touch "$GO"
wait_until status_is "$run" failed
matches "its own status decides" '"op":"kept","attempt":1,"class":"exit","code":3' "$(cat "$FLOWSUP_HOME/runs/$run/attempts.log")"
keeper=$(grep -o '"op":"once".*"reaper":[0-9]*' "$FLOWSUP_HOME/runs/$run/attempts.log" | grep -o '[0-9]*$')
check "the other keeper has left" wait_until no_keeper

# ---- Killed by its operation's first step: before it has said that it started it ----

# The two race: many tries, of which each may lose.
cat >"$T/first.yaml" <<'YAML'
concurrency: 6
defaults: {retry: {attempts: 2, backoff: 10ms}}
plan:
  - {id: once, foreach: [1, 2, 3, 4, 5, 6], idempotent: false, run: 'echo "$FLOWSUP_ATTEMPT" >>"$T/once.$FLOWSUP_OP_ID"; kill -9 $PPID; until [ -e "$GO" ]; do sleep 0.02; done'}
  - {id: short, foreach: [1, 2, 3, 4, 5, 6], keeper: true, retry: {attempts: 1}, run: 'kill -9 $PPID; exit 3'}
YAML
export T
all_begun() { [ "$(cat "$T"/once.* | wc -l)" -ge 6 ]; }
bad=0
for _ in 1 2 3; do
	rm -f "$GO" "$T"/once.*
	run=$("$FLOWSUP" start "$T/first.yaml")
	wait_until all_begun
	touch "$GO"
	wait_until status_is "$run" failed
	log=$FLOWSUP_HOME/runs/$run/attempts.log
	[ "$(cat "$T"/once.* | sort | uniq -c | tr -s ' ')" = " 6 1" ] || bad=$((bad + 1))
	[ "$(grep -c '"op":"once.*"class":"completed"' "$log")" = 6 ] || bad=$((bad + 10))
	[ "$(grep -c '"op":"short.*"class":"exit","code":3' "$log")" = 6 ] || bad=$((bad + 100))
done
equal "what runs is not started beside itself, and ends as it ends" 0 "$bad"
plan
