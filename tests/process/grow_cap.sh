#!/usr/bin/env bash
# Ten thousand requests against a cap of fifty: fifty are accepted, the worker lives and stays small.
. "$(dirname "$0")/lib_grow.sh"

cat >"$T/ask.py" <<'P'
"""Asks the worker for operations as `emit spawn` does, without a process for each request."""
import json, os, socket, sys, uuid

fd = os.open(os.path.dirname(os.environ["FLOWSUP_SOCK"]), os.O_RDONLY)
path = "/proc/self/fd/%d/%s" % (fd, os.path.basename(os.environ["FLOWSUP_SOCK"]))
counts = {}
for i in range(int(sys.argv[1])):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(path)
    s.send(json.dumps({"type": "hello", "role": "operation", "major": MAJOR, "minor": MINOR}).encode())
    s.send(json.dumps({"type": "request", "token": os.environ["FLOWSUP_TOKEN"], "verb": "spawn",
        "value": {"id": str(uuid.uuid4()), "run": "true", "context": {"n": i}}}).encode())
    m = json.loads(s.recv(1 << 16))
    s.close()
    word = "accepted" if m["type"] == "ok" else m["message"].split(": ")[1]
    counts[word] = counts.get(word, 0) + 1
print(json.dumps(counts, sort_keys=True))
P
sed -i "s/MAJOR/$(sed -nE 's/.*PROTOCOL_MAJOR = ([0-9]+).*/\1/p' "$ROOT/include/flowsup/protocol.h")/; s/MINOR/$(sed -nE 's/.*PROTOCOL_MINOR = ([0-9]+).*/\1/p' "$ROOT/include/flowsup/protocol.h")/" "$T/ask.py"
peak() { sed -nE 's/^VmHWM:[^0-9]*([0-9]+) kB/\1/p' "/proc/$1/status"; }

# Where every call is late they take minutes, and show nothing more.
export MORE=9000
[ -z "${JITTER:-}" ] || MORE=900

begin --max-ops 51 -j 2 <<'Y'
reactive: all
plan:
  - id: a
    run: |
      python3 "$T/ask.py" 1000 > "$T/first"; : > "$T/gates/first"
      until [ -e "$T/gates/go" ]; do sleep 0.05; done
      python3 "$T/ask.py" $MORE > "$T/second"; : > "$T/gates/second"
      until [ -e "$T/gates/end" ]; do sleep 0.05; done
Y
wait_until [ -e "$T/gates/first" ]
pid=$(worker_pid "$RUN")
before=$(peak "$pid")
open_gate go
LIMIT=$((LIMIT * 3))
check "ten thousand requests are answered" wait_until [ -e "$T/gates/second" ]
after=$(peak "$pid")
equal "by the same worker" "$pid" "$(worker_pid "$RUN")"
open_gate end
wait_until ended
equal "fifty are accepted, the rest rejected with the reason" \
	"{\"accepted\": 50, \"max_spawn_exceeded\": 950} {\"max_spawn_exceeded\": $MORE}" "$(cat "$T/first") $(cat "$T/second")"
equal "the worker lives and the run completes" "completed 51" "$(run_status "$RUN") $(run_fact "$RUN" done)"
equal "each rejection is an event and is counted" "$((MORE + 950)) $((MORE + 950))" "$(events SpawnRejected) $("$FLOWSUP" show "$RUN" --json | grep -o '"max_spawn_exceeded":[0-9]*' | head -1 | cut -d: -f2)"
note "worker's peak: $before kB after 1,000 requests, $after kB after 10,000"
check_memory "nine thousand more cost no memory" [ "$((after - before))" -lt 2048 ]

# ---- The same in one response ----
python3 -c 'import json; print(json.dumps({"spawn": [{"run": "true", "context": i} for i in range(10000)]}))' >"$T/answer"
run_flow --max-ops 51 <<'Y'
reactive: all
plan: [{id: a, response: json, run: 'cat "$T/answer"'}]
Y
equal "in one response too" "completed 50 9950" "$(run_status "$RUN") $(spawned 'len(s)') $(events SpawnRejected)"
plan
