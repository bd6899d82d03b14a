#!/usr/bin/env bash
# tty: true runs below a pseudo-terminal whose other side is the output file.
. "$(dirname "$0")/lib.sh"
export T

start() { "$FLOWSUP" start - 2>"$T/err" || note "$(cat "$T/err")"; }
output() { cat "$FLOWSUP_HOME/runs/$1/ops/$2.1.out"; }
state_of() { "$FLOWSUP" show "$1" --json | grep -oE "\"id\":\"$2\",\"state\":\"[a-z]*\"" | cut -d'"' -f8; }

cat >"$T/bytes.py" <<'P'
import sys
for i in range(60000):
    sys.stdout.buffer.write(b"%d\r\n\t\x04\x03\x1b[1m\xff\n" % i)
P
python3 "$T/bytes.py" >"$T/wanted"
run=$(start <<'Y'
concurrency: 4
plan:
  - id: which
    tty: true
    run: |
      for fd in 0 1 2; do if [ -t $fd ]; then echo "$fd yes"; else echo "$fd no"; fi; done
      echo error >&2
      stty size <&1
      : </dev/tty && echo "has a controlling terminal"
      exit 0
  - {id: bytes, tty: true, run: 'python3 "$T/bytes.py"'}
  - {id: json, tty: true, response: json, run: 'echo "{\"a\": 1}"'}
  - {id: fails, tty: true, run: 'printf last; exit 3'}
  - {id: plain, run: '[ -t 1 ] || echo plain'}
Y
)
"$FLOWSUP" wait "$run" >/dev/null 2>&1
equal "the exit status is the program's" 1 $?
matches "output and error are a terminal, input is not" '^0 no
1 yes
2 yes
error
24 80' "$(output "$run" which)"
check "it controls nobody" sh -c "! grep -q 'has a controlling' '$FLOWSUP_HOME/runs/$run/ops/which.1.out'"
check "a megabyte comes as it is, to the last byte" cmp -s "$T/wanted" "$FLOWSUP_HOME/runs/$run/ops/bytes.1.out"
equal "it can be a JSON response" completed "$(state_of "$run" json)"
equal "what was printed last is there" "failed last" "$(state_of "$run" fails) $(output "$run" fails)"
equal "without it there is none" plain "$(output "$run" plain)"
check "error has no file of its own" [ ! -e "$FLOWSUP_HOME/runs/$run/ops/which.1.err" ]
said=$(echo 'plan: [{id: a, tty: true, output: separate, run: x}]' | "$FLOWSUP" check - 2>&1)
matches "separate output is refused" 'on a terminal output and error are one' "$said"

# ---- Printed line by line, also when the worker dies ----
cat >"$T/lines.py" <<'P'
import os, sys, time
print("first")
while not os.path.exists(os.environ["T"] + "/go"): time.sleep(0.05)
print("second")
P
run=$(start <<'Y'
plan: [{id: a, tty: true, run: 'python3 "$T/lines.py"'}]
Y
)
first() { [ "$(output "$run" a)" = first ]; }
check "a line is there before the program ends" wait_until first
kill -KILL "$(worker_pid "$run")"
wait_until status_is "$run" crashed
touch "$T/go"
both() { [ "$(output "$run" a | tr '\n' ' ')" = "first second " ]; }
check "nothing is lost with the worker" wait_until both
ended() { grep -q '"code":0\|"exit":0' "$FLOWSUP_HOME/runs/$run/ops/a.1/exit.json"; }
check "and its end is known" wait_until ended

# ---- Ended like any other ----
run=$(start <<'Y'
defaults: {grace: 300ms, tty: true}
plan:
  - {id: slow, timeout: 300ms, run: 'echo begun; trap "" TERM; sh -c "echo \$\$ >$T/child; trap \"\" TERM; while :; do sleep 0.1; done"'}
  - {id: left, run: 'sh -c "while :; do sleep 0.1; done" & echo $! >$T/left; echo done'}
Y
)
"$FLOWSUP" wait "$run" >/dev/null 2>&1
matches "a time limit ends it" '"class":"timeout"' "$("$FLOWSUP" show "$run" --json)"
check "with what it had started" gone "$(cat "$T/child")"
equal "what it left behind is ended" "completed" "$(state_of "$run" left)"
check "and gone" gone "$(cat "$T/left")"
plan
