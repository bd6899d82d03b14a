#!/usr/bin/env bash
# A resumed run dies before its first checkpoint: the next resume starts from what that run was given, and
# what a survivor had asked for by then counts.
. "$(dirname "$0")/lib.sh"
if nm -D "$WORKER" 2>/dev/null | grep -q __asan_init; then skip "no library before the sanitizer's"; plan; fi
export T DIE_AT=$T/die-at PATH=$BUILD/bin:$PATH
first=$(LD_PRELOAD=$BUILD/tests/preload/die_at.so "$FLOWSUP" start - <<Y
plan:
  - {id: a, run: 'echo a >>"$T/count"; echo answer'}
  - id: b
    needs: [a]
    run: |
      flowsup emit context set /one 1 && touch "$T/said.one"
      until test -e "$T/more"; do sleep 0.02; done
      flowsup emit context set /two 2 && touch "$T/said.two"
      until test -e "$T/go"; do sleep 0.02; done
      cat "\$FLOWSUP_DEP_a"
Y
)
check "b runs" wait_until [ -e "$T/said.one" ]
kill -KILL "$(worker_pid "$first")"
check "the first run crashes" wait_until status_is "$first" crashed
echo publish-before 1 >"$DIE_AT"
second=$("$FLOWSUP" resume "$first" 2>/dev/null)
check "the second one, too" wait_until status_is "$second" crashed
check "before it had a checkpoint" [ ! -e "$FLOWSUP_HOME/runs/$second/checkpoint.json" ]
matches "a dry run replays what the first one saved" "a +replayed" "$("$FLOWSUP" resume "$second" --dry-run 2>&1)"
third=$("$FLOWSUP" resume "$second" 2>"$T/err")
matches "the resume says from what it starts" "starts from what it was given" "$(cat "$T/err")"
touch "$T/more"
check "b says more to the third one" wait_until [ -e "$T/said.two" ]
wait_until worker_is_ready "$third" && kill -KILL "$(worker_pid "$third")"
check "which crashes" wait_until status_is "$third" crashed
echo publish-before 1 >"$DIE_AT"
fourth=$("$FLOWSUP" resume "$third" 2>/dev/null)
check "the fourth one, too" wait_until status_is "$fourth" crashed
fifth=$("$FLOWSUP" resume "$fourth" 2>/dev/null)
touch "$T/go"
check "the fifth one ends" wait_until status_is "$fifth" completed
equal "a was run once" 1 "$(wc -l <"$T/count")"
equal "b, which outlived them, got its response in its first attempt" answer "$(cat "$FLOWSUP_HOME/runs/$fifth/ops/b.1.out")"
context=$("$FLOWSUP" checkpoint export --json "$fifth" | grep -oE '"flow_context":\{[^}]*\}')
equal "and what it asked for through all of them is done" '"flow_context":{"one":1,"two":2}' "$context"

# ---- The same name and number in an earlier run is another attempt ----

first=$("$FLOWSUP" start - <<Y
reactive: all
plan:
  - {id: x, run: 'test -e "$T/mended"'}
  - {id: list, needs: [{op: x, on: always}], response: json, run: 'echo "[1]"'}
  - id: each
    needs: [list]
    foreach: ""
    run: |
      [ ! -e "$T/mended" ] || { touch "$T/each.again"; until test -e "$T/say"; do sleep 0.02; done; }
      flowsup emit context append /list 1
Y
)
"$FLOWSUP" wait "$first" >/dev/null 2>&1
touch "$T/mended"
second=$("$FLOWSUP" resume "$first" --retry-failed --drop-respawned 2>/dev/null)
wait_until [ -e "$T/each.again" ]
wait_until worker_is_ready "$second" && kill -KILL "$(worker_pid "$second")"
wait_until status_is "$second" crashed
touch "$T/say"
third=$("$FLOWSUP" resume "$second" 2>/dev/null)
"$FLOWSUP" wait "$third" 2>/dev/null
equal "a resume takes over what asks after its worker's death" 0 $?
equal "what it asked for counts, and what another attempt did counts not again" '"flow_context":{"list":[1,1]}' \
	"$("$FLOWSUP" checkpoint export --json "$third" | grep -oE '"flow_context":\{[^}]*\}')"

# ---- Who asked for an escalation was in flight, and the next run dies before it starts it ----

first=$(LD_PRELOAD=$BUILD/tests/preload/die_at.so "$FLOWSUP" start - <<Y
reactive: all
roles: {low: {env: {WHO: low}, escalate_to: high}, high: {env: {WHO: high}}}
plan:
  - id: a
    assignee: low
    run: |
      [ "\$WHO" = low ] || { echo high; exit; }
      flowsup emit escalate && touch "$T/escalated"
      until test -e "$T/end"; do sleep 0.02; done
Y
)
check "it asks" wait_until [ -e "$T/escalated" ]
wait_until worker_is_ready "$first" && kill -KILL "$(worker_pid "$first")"
wait_until status_is "$first" crashed
power_loss "$first"
echo publish-before 1 >"$DIE_AT"
second=$("$FLOWSUP" resume "$first" 2>/dev/null)
check "the second run dies" wait_until status_is "$second" crashed
touch "$T/end"
third=$("$FLOWSUP" resume "$second" 2>"$T/err")
"$FLOWSUP" wait "$third" 2>/dev/null
equal "the third one goes on all the same" 0 "$?"
equal "with what was asked for" high "$("$FLOWSUP" logs "$third" a.s1)"

# ---- The lock of a worker that was just killed is free a moment later ----
run=$("$FLOWSUP" start -- sh -c 'echo x >>"$T/again"; until test -e "$T/over"; do sleep 0.02; done')
wait_until worker_is_ready "$run"
wait_until [ -s "$T/again" ]
supervisor=$(supervisors)
worker=$(worker_pid "$run")
kill -STOP "$supervisor"
kill -KILL "$worker"
python3 - "$FLOWSUP_HOME/runs/$run/worker.lock" "$T" <<'P' &
import fcntl, os, struct, sys, time
lock = open(sys.argv[1], "r+")
while True:
    try:
        fcntl.fcntl(lock, 37, struct.pack("hhqqi4x", 1, 0, 0, 0, 0))  # F_OFD_SETLK
        break
    except OSError:
        time.sleep(0.01)
open(sys.argv[2] + "/held", "w")
while not os.path.exists(sys.argv[2] + "/free"):
    time.sleep(0.01)
P
wait_until [ -e "$T/held" ]
"$FLOWSUP" resume "$run" >"$T/out" 2>"$T/err" &
waits() { grep -q nanosleep "/proc/$!/wchan"; }
check "with its worker dead a resume waits for the lock" wait_until waits
touch "$T/free" "$T/over"
kill -CONT "$supervisor"
wait $!
equal "and resumes the run" 0 $?
matches "as another one" '^[0-9T-]+[0-9a-f]+$' "$(cat "$T/out")"
# ---- What it started from is what it is shown with ----
counts() { # as list, show --json (its counts, and its operations) and the notification have them
	"$FLOWSUP" list --json -n 0 >"$T/rows"
	"$FLOWSUP" show --json "$1" >"$T/one"
	python3 - "$1" "$T/rows" "$T/one" "$T/told" <<'PY'
import json, sys
run, rows, one, told = sys.argv[1:]
row = [r for r in map(json.loads, open(rows)) if r["id"] == run][0]
d = json.load(open(one))
d = d.get("run", d)
told = [n for n in map(json.loads, open(told)) if n["run"] == run][0]
def of(x):
    g = x["growth"] or {}
    return "%d/%d +%s %s" % (x["done"], x["total"], g.get("spawned"), g.get("rejected"))
print(" | ".join(map(of, (row, d, told))))
print(sum(o["state"] in ("completed", "failed", "skipped") for o in d["ops"]), len(d["ops"]),
    " ".join(o["id"] for o in d["ops"] if o["state"] == "completed"), [o["rejected"] for o in d["ops"] if o.get("rejected")])
PY
}
: >"$T/told"
printf '#!/bin/sh\ncat >>"%s/told"\n' "$T" >"$T/tell" && chmod +x "$T/tell"
first=$("$FLOWSUP" start - <<Y
reactive: all
max_ops: 6
notify: {command: ["$T/tell"], on: all}
plan:
  - {id: a, run: 'for i in 1 2 3 4 5; do flowsup emit spawn --independent --run "echo \$i"; done; true'}
  - {id: b, needs: [a], run: 'test -e "$T/mended.b"'}
  - {id: c, needs: [b], run: 'echo c'}
Y
)
check "b fails" wait_until status_is "$first" failed
touch "$T/mended.b"
before=$first
for n in first second; do
	echo publish-before 1 >"$DIE_AT"
	again=$("$FLOWSUP" resume --retry-failed "$before" 2>/dev/null)
	check "the $n resume dies before it has a checkpoint" wait_until status_is "$again" crashed
	check "before it had one ($n)" [ ! -e "$FLOWSUP_HOME/runs/$again/checkpoint.json" ]
	check "and is told of ($n)" wait_until grep -q "\"run\":\"$again\".*crashed" "$T/told"
	equal "what it started from is its count, everywhere ($n)" \
		"4/6 +3 {'max_spawn_exceeded': 2} | 4/6 +3 {'max_spawn_exceeded': 2} | 4/6 +3 {'max_spawn_exceeded': 2}
4 6 a a.s1 a.s2 a.s3 [{'max_spawn_exceeded': 2}]" "$(counts "$again")"
	matches "show says it ($n)" "progress +4 of 6 done.*added +3 spawned, .*rejected: 2 max_spawn_exceeded" \
		"$("$FLOWSUP" show "$again" | tr '\n' ' ')"
	before=$again
done
last=$("$FLOWSUP" resume "$before" 2>/dev/null)
check "the third one ends" wait_until status_is "$last" completed
plan
