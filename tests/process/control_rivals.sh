#!/usr/bin/env bash
# Somebody else at the same controls: a second consumer that claims, a person who resolves while the
# claimant wakes. What is recorded first stands, and the loser says in the event log that it lost.
. "$(dirname "$0")/lib.sh"
[ -x /usr/bin/python3 ] || { skip "python3 is not installed"; plan; }
if nm -D "$WORKER" 2>/dev/null | grep -q __asan_init; then skip "no library before the sanitizer's"; plan; fi
PATH=$BUILD/bin:$PATH
export T DIE_AT=$T/stop-at

sql() { /usr/bin/python3 -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
c = db.execute(sys.argv[2])
for row in c: print("|".join(str(v) for v in row))
if c.rowcount >= 0: print(c.rowcount)' "$FLOWSUP_HOME/state.db" "$1"; }
queue() { json "$("$FLOWSUP" "$@" --json 2>/dev/null)" id; }
field() { "$FLOWSUP" ctl status "$id" --json | grep "^{\"id\":\"$1" | sed -nE "s/.*\"$2\":(null|\"([^\"]*)\").*/\2/p"; }
finished() { "$FLOWSUP" ctl status "$id" --json | grep "^{\"id\":\"$1" | grep -q '"applied_at":[0-9]'; }
told() { grep -q "\"event\":\"$1\".*\"control\":\"$2\"" "$FLOWSUP_HOME/runs/$id/events.jsonl"; }
is_stopped() { [ "$(stat_field "$worker" 1)" = T ]; }
stop_at() { echo "$1 1 stop" >"$DIE_AT.new" && mv "$DIE_AT.new" "$DIE_AT"; }
goes_on() { kill -CONT "$worker"; }

cat >"$T/flow.yaml" <<Y
concurrency: 1
plan:
  - {id: a, run: 'until test -e "$T/go"; do sleep 0.02; done'}
  - {id: b, needs: [a], messages: true, run: 'cat "\$FLOWSUP_MESSAGES"'}
Y
id=$(LD_PRELOAD=$BUILD/tests/preload/die_at.so "$FLOWSUP" start "$T/flow.yaml")
check "it runs" wait_until worker_is_ready "$id"
worker=$(worker_pid "$id")

# ---- A second consumer comes between the worker's look and its claim ----
stop_at claim-before
c=$(queue msg "$id" "text for the rival")
check "the worker is about to claim" wait_until is_stopped
rival=applying:20200101T000000-aaaaaa
equal "the other one claims first" 1 "$(sql "UPDATE session_controls SET claimed_at = 2, result = '$rival' WHERE id = '$c' AND claimed_at IS NULL")"
goes_on
check "the worker tells that it lost" wait_until told ControlNotClaimed "$c"
d=$(queue msg "$id" "text for the worker")
check "and goes on with the next" wait_until finished "$d"
equal "which it applies" applied "$(field "$d" state)"
equal "the claim stands as it was" "$rival" "$(field "$c" result)"
equal "visible as a claim" claimed "$(field "$c" state)"

# ---- The other way round: the rival's claim finds nothing ----
equal "of what the worker has claimed nothing can be claimed" 0 "$(sql "UPDATE session_controls SET claimed_at = 3, result = '$rival' WHERE id = '$d' AND claimed_at IS NULL")"

# ---- A person resolves while the claimant is about to report ----
for as in abandoned applied; do
	stop_at stamp-before
	c=$(queue msg "$id" "resolved as $as")
	check "the worker is about to report" wait_until is_stopped
	equal "it has claimed" "applying:$id" "$(field "$c" result)"
	"$FLOWSUP" ctl resolve "$c" --as $as --by kim 2>"$T/err"
	equal "a person resolves" 0 $?
	matches "and is warned of the worker that lives" "run $id is running: its worker may still carry it out" "$(cat "$T/err")"
	record="$as: resolved by kim after the claim 'applying:$id' was taken and never reported back"
	equal "which is recorded" "$record" "$(field "$c" result)"
	goes_on
	check "the worker tells that its result is not recorded" wait_until told ControlNotRecorded "$c"
	equal "the record was not replaced" "$record" "$(field "$c" result)"
	equal "state" resolved "$(field "$c" state)"
done

# ---- And the person who is late ----
c=$(queue msg "$id" "reported in time")
wait_until finished "$c"
"$FLOWSUP" ctl resolve "$c" --as abandoned 2>"$T/err"
equal "a person who is late writes nothing" 4 $?
matches "which is said" "nothing was written" "$(cat "$T/err")"
equal "the worker's result stands" applied "$(field "$c" result)"

# ---- Many at once ----
cat >"$T/rival.py" <<'P'
import sqlite3, sys, os, time
db = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
won = 0
while not os.path.exists(sys.argv[2]):
    for (control,) in db.execute("SELECT id FROM session_controls WHERE claimed_at IS NULL AND "
                                 "applied_at IS NULL AND verb = 'message' ORDER BY created_at").fetchall():
        won += db.execute("UPDATE session_controls SET claimed_at = 4, result = 'applying:20200101T000000-bbbbbb' "
                          "WHERE id = ? AND claimed_at IS NULL AND applied_at IS NULL", (control,)).rowcount
    time.sleep(0.002)
print(won)
P
/usr/bin/python3 "$T/rival.py" "$FLOWSUP_HOME/state.db" "$T/enough" >"$T/won" &
rival_pid=$!
# Of what the rival has claimed no command learns more.
pids=()
for n in $(seq 60); do queue msg "$id" "race $n." >/dev/null & pids+=($!); done
for pid in "${pids[@]}"; do wait "$pid"; done
all_taken() { ! "$FLOWSUP" ctl status "$id" --json | grep -q '"state":"queued"'; }
check "each has one consumer" wait_until all_taken
: >"$T/enough"
wait "$rival_pid"
none_claimed() { [ "$("$FLOWSUP" ctl status "$id" --json | grep -c "\"result\":\"applying:$id\"")" = 0 ]; }
check "the worker reports all of its own" wait_until none_claimed
"$FLOWSUP" ctl status "$id" --json | grep '"text":"race ' >"$T/rows"
equal "the rival's claims are left alone, to the last" "$(cat "$T/won")" "$(grep -c 'applying:20200101T000000-bbbbbb' "$T/rows")"
equal "all others are applied" $((60 - $(cat "$T/won"))) "$(grep -c '"result":"applied"' "$T/rows")"
note "the rival won $(cat "$T/won") of 60"

touch "$T/go"
"$FLOWSUP" wait "$id" >/dev/null 2>&1
out=$FLOWSUP_HOME/runs/$id/ops/b.1.out
equal "no text of the rival's is in the operation's input" 0 "$(grep -c 'for the rival' "$out")"
equal "the texts that the worker applied are, each once" "$(grep '"result":"applied"' "$T/rows" | sed -nE 's/.*"text":"(race [0-9]+\.)".*/\1/p' | xargs)" "$(grep -oE 'race [0-9]+\.' "$out" | xargs)"
plan
