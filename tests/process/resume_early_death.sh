#!/usr/bin/env bash
# A resumed run dies before its first checkpoint: the next resume starts from what that run was given.
. "$(dirname "$0")/lib.sh"
if nm -D "$WORKER" 2>/dev/null | grep -q __asan_init; then skip "no library before the sanitizer's"; plan; fi
export T DIE_AT=$T/die-at
first=$(LD_PRELOAD=$BUILD/tests/preload/die_at.so "$FLOWSUP" start - <<Y
plan:
  - {id: a, run: 'echo a >>"$T/count"; echo answer'}
  - {id: b, needs: [a], run: 'until test -e "$T/go"; do sleep 0.02; done; cat "\$FLOWSUP_DEP_a"'}
Y
)
started() { grep -q '"kind":"start","op":"b"' "$FLOWSUP_HOME/runs/$first/attempts.log"; }
check "b runs" wait_until started
kill -KILL "$(worker_pid "$first")"
check "the first run crashes" wait_until status_is "$first" crashed
echo publish-before 1 >"$DIE_AT"
second=$("$FLOWSUP" resume "$first" 2>/dev/null)
check "the second one, too" wait_until status_is "$second" crashed
check "before it had a checkpoint" [ ! -e "$FLOWSUP_HOME/runs/$second/checkpoint.json" ]
matches "a dry run replays what the first one saved" "a +replayed" "$("$FLOWSUP" resume "$second" --dry-run 2>&1)"
third=$("$FLOWSUP" resume "$second" 2>"$T/err")
matches "the resume says from what it starts" "starts from what it was given" "$(cat "$T/err")"
touch "$T/go"
check "the third one ends" wait_until status_is "$third" completed
equal "a was run once" 1 "$(wc -l <"$T/count")"
equal "b, which outlived both, got its response in its first attempt" answer "$(cat "$FLOWSUP_HOME/runs/$third/ops/b.1.out")"
plan
