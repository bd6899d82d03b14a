#!/usr/bin/env bash
# Thousands of packets of random and of nearly right bytes, with and without descriptors, floods, and
# subscribers that never read: the supervisor lives, its memory and descriptors are bounded, and others
# are served meanwhile.
. "$(dirname "$0")/lib.sh"

command -v python3 >/dev/null || { skip "python3 is not installed"; plan; }
seed=${GARBAGE_SEED:-$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')}
echo "# GARBAGE_SEED=$seed"
"$FLOWSUP" supervisor
pid=$(supervisor_pid)
memory() { awk '/^VmRSS/ { print $2 }' "/proc/$pid/status"; }
descriptors() { ls "/proc/$pid/fd" | wc -l; }
id=$("$FLOWSUP" start -- sh -c "until [ -e '$T/go' ]; do sleep 0.02; done")
wait_until worker_is_ready "$id"
before_memory=$(memory)
before_descriptors=$(descriptors)

cat >"$T/garbage.py" <<'PY'
import array, json, os, random, socket, sys
home, seed, worker = sys.argv[1], int(sys.argv[2]), sys.argv[3]
random.seed(seed)
os.chdir(home)
words = ["hello", "poke", "status", "stopp", "restarts", "subscribe", "ready", "progress", "ended", "ok",
    "error", "request", "accepted", "drain", "changed", ""]
keys = ["type", "run", "role", "major", "minor", "all", "now", "after", "scan", "pid", "x" * 300, ""]
def value(depth=0):
    kinds = [lambda: random.choice(words), lambda: random.randint(-2**70, 2**70), lambda: None,
        lambda: random.random() < 0.5, lambda: random.uniform(-1e308, 1e308),
        lambda: "".join(chr(random.choice([0, 9, 27, 127, 0xe4, 0x1f600, 65])) for _ in range(20)),
        lambda: [value(depth + 1) for _ in range(3)] if depth < 4 else [],
        lambda: {random.choice(keys): value(depth + 1) for _ in range(3)} if depth < 4 else {}]
    return random.choice(kinds)()
def packet():
    kind = random.randint(0, 4)
    if kind == 0:
        return random.randbytes(random.choice([1, 2, 17, 511, 512, 513, 4096, 60000]))
    o = {random.choice(keys): value() for _ in range(random.randint(0, 5))}
    o["type"] = random.choice(words)
    text = json.dumps(o).encode()
    if kind == 1 and len(text) > 2:  # cut, or with bytes changed
        text = text[:random.randint(1, len(text))]
    elif kind == 2:
        text = bytearray(text)
        for _ in range(3):
            text[random.randrange(len(text))] = random.randrange(256)
        text = bytes(text)
    return text[:65000]
hello = json.dumps({"type": "hello", "role": "client", "major": 1, "minor": 0}).encode()
def connect(name="supervisor.sock"):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(20)
    s.connect(name)
    return s
zero = os.open("/dev/zero", os.O_RDONLY)
for name, rounds in (("supervisor.sock", 1500), ("runs/" + worker + "/worker.sock", 150)):
    for i in range(rounds):
        s = connect(name)
        try:
            if random.random() < 0.7:
                s.send(hello)
            for _ in range(random.randint(1, 6)):
                fds = [zero] * random.choice([0, 0, 0, 1, 2])
                anc = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
                s.sendmsg([packet()], anc)
        except OSError:
            pass
        s.close()
# Subscribers that never read, and one that floods without reading.
deaf = []
for i in range(200):
    s = connect()
    s.send(hello)
    s.send(json.dumps({"type": "subscribe"}).encode())
    deaf.append(s)
flood = connect()
flood.send(hello)
try:
    for i in range(100000):
        flood.send(b'{"type":"status"}')
except OSError:
    print("flood ended")
open(os.environ["T_READY"], "w").close()
sys.stdin.read()
PY
mkfifo "$T/hold"
T_READY=$T/ready python3 "$T/garbage.py" "$FLOWSUP_HOME" "$seed" "$id" <"$T/hold" >"$T/out" 2>"$T/err" &
client=$!
exec 9>"$T/hold"
served=0
while ! [ -e "$T/ready" ] && kill -0 "$client" 2>/dev/null; do
	timeout 20 "$FLOWSUP" supervisor status 2>/dev/null | grep -q "^supervisor" && served=$((served + 1))
done
check "others are served meanwhile" [ "$served" -gt 0 ]
equal "the client came to its end" "" "$(cat "$T/err")"
equal "who floods and does not read is disconnected" "flood ended" "$(cat "$T/out")"
# What nobody of 200 reads is told all the same.
for _ in 1 2 3 4 5; do "$FLOWSUP" wait "$("$FLOWSUP" start -- true)" 2>/dev/null; done
equal "runs run beside deaf subscribers" 0 $?
equal_soon "it is the same supervisor" "$pid" supervisor_pid
grown=$(($(memory) - before_memory))
check_memory "its memory is bounded (grown by $grown KiB)" [ "$grown" -lt 16384 ]
exec 9>&-
wait "$client"
back() { [ "$(descriptors)" -le $((before_descriptors + 2)) ]; }
check "and so are its descriptors" wait_until back
check "the worker lives" alive "$(worker_pid "$id")"
log=$(stat -c %s "$FLOWSUP_HOME/supervisor.log")
check "its log too ($log bytes)" [ "$log" -lt $((8 << 20)) ]
equal "nothing of it reaches a terminal" "" "$(LC_ALL=C grep -c -P '[\x00-\x08\x0b-\x1f\x7f]' "$FLOWSUP_HOME/supervisor.log" | grep -v '^0$')"
touch "$T/go"
equal "the run ends well" 0 "$("$FLOWSUP" wait "$id" 2>/dev/null; echo $?)"
plan
