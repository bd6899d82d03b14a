#!/usr/bin/env bash
# Peers that say nonsense, nothing, too much, or do not read: the supervisor serves the others.
. "$(dirname "$0")/lib.sh"

command -v python3 >/dev/null || { skip "python3 is not installed"; plan; }
"$FLOWSUP" supervisor || { not_ok "a supervisor starts"; plan; }
pid=$(supervisor_pid)

# peer PROGRAM: a piece of Python with s, a connected socket, and send().
peer() {
	timeout "$LIMIT" python3 - "$FLOWSUP_HOME" "$1" <<'PY'
import json, os, socket, sys
os.chdir(sys.argv[1])
def connect():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect("supervisor.sock")
    return s
s = connect()
def send(o, to=None):
    (to or s).send(o if isinstance(o, bytes) else json.dumps(o).encode())
hello = {"type": "hello", "role": "client", "major": 1, "minor": 0}
def ended(of=None):
    of = of or s
    try:
        while True:
            if of.recv(65536) == b"":
                return True
    except ConnectionError:
        return True
exec(sys.argv[2])
PY
}

refused() { # NAME PROGRAM
	check "$1: disconnected" peer "$2
assert ended()"
	check "$1: others are served" [ "$(supervisor_pid)" = "$pid" ]
}

refused "no JSON" 'send(b"\x00\xff garbage")'
refused "no object" 'send(b"[1,2,3]")'
refused "an unknown type" 'send(hello); send({"type": "fly"})'
refused "no hello" 'send({"type": "status"})'
refused "two hellos" 'send(hello); send(hello)'
refused "another version" 'send(dict(hello, major=99))'
refused "a worker's message" 'send(hello); send({"type": "ready", "run": "x", "pid": 1})'
refused "a wrong member" 'send(hello); send({"type": "poke", "run": 7})'
refused "a run id that is none" 'send(hello); send({"type": "poke", "run": "../../etc"})'
refused "a packet over the bound" 'send(hello); send(b" " * 60000)'
refused "a packet over every bound" 's.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20); send(b" " * 90000)'
refused "deep nesting" 'send(b"[" * 3000)'
check "nonsense is logged" wait_until logged 'client [0-9]+ disconnected'

told() { # NAME PROGRAM
	check "$1: it is told why" peer "$2
answer = json.loads(s.recv(65536))
assert answer['type'] == 'error' and answer['error'] and answer['message'], answer
assert ended()"
}
told "a poke of what is no run id" 'send(hello); send({"type": "poke", "run": "nosuch"})'
told "a poke without one" 'send(hello); send({"type": "poke"})'
told "a subscription to what is none" 'send(hello); send({"type": "subscribe", "run": "nosuch"})'
told "no hello" 'send({"type": "status"})'
check "a subscription to a run that is not there is accepted" peer '
send(hello); send({"type": "subscribe", "run": "20260101T000000-abcdef"})
assert json.loads(s.recv(65536))["type"] == "ok"'

# A command that helps stands where it helps: the program on the disk may be the newer one.
hint_is() { # HINT PROGRAM NAME
	check "$3" peer "$2
assert json.loads(s.recv(65536)).get('hint') == $1"
}
hint_is None 'send(b"garbage")' "nonsense has no hint"
hint_is None 'send(hello); send({"type": "fly"})' "nor has an unknown type"
hint_is None 'send(dict(hello, major=0))' "nor an older version"
hint_is "'flowsup supervisor restart'" 'send(dict(hello, major=99))' "a newer version has one"
hint_is "'flowsup supervisor restart'" 'send(dict(hello, minor=77)); send({"type": "fly"})' \
	"and what a newer minor version says"

check "a newer minor version and unknown members are tolerated" peer '
send(dict(hello, minor=77, news=[1])); send({"type": "status", "more": {}})
assert json.loads(s.recv(65536))["type"] == "status_is"'
check "a poke of a run that is not there is accepted, and nothing comes of it" peer '
send(hello); send({"type": "poke", "run": "20260101T000000-abcdef"})
assert json.loads(s.recv(65536)) == {"type": "accepted", "run": "20260101T000000-abcdef"}'
check "who does not read its answers is disconnected" peer '
send(hello)
try:
    s.settimeout(30)
    for i in range(200000):
        send({"type": "status"})
    raise SystemExit(1)
except ConnectionError:
    pass'
check "others are served then too" [ "$(supervisor_pid)" = "$pid" ]
check "a flood of pokes is answered one by one" peer '
send(hello)
for i in range(3000):
    send({"type": "poke", "run": "20260101T%06d-abcdef" % (i % 2500)})
    assert b"accepted" in s.recv(65536)'
check "a descriptor beside a packet is not kept" peer '
import array
r, w = os.pipe()
send(hello)
s.sendmsg([json.dumps({"type": "status"}).encode()],
    [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [w]))])
s.recv(65536)
os.close(w)
assert os.read(r, 1) == b""'
check "connections that say nothing do not keep others out" peer '
import subprocess
crowd = [connect() for i in range(300)]
out = subprocess.run(["'"$FLOWSUP"'", "supervisor", "status", "--json"], capture_output=True)
assert out.returncode == 0 and b"\"pid\":'"$pid"'" in out.stdout, out
assert all(ended(c) for c in crowd)'
check "it lives" alive "$pid"
equal "it holds no connection any more" 0 \
	"$(wait_until eval "[ \$(find /proc/$pid/fd -lname 'socket:*' | wc -l) -eq 1 ]" >/dev/null; echo $?)"
lines=$(grep -c 'client.* disconnected' "$FLOWSUP_HOME/supervisor.log")
check "the log has no line for each of them" [ "$lines" -lt 100 ]
"$FLOWSUP" supervisor stop
check "but how many they were" wait_until logged '[0-9]+ more clients disconnected'

# ---- Messages of a supervisor that does not answer ----
"$FLOWSUP" supervisor
pid=$(supervisor_pid)
stop_still "$pid"
out=$(timeout 60 "$FLOWSUP" supervisor status 2>&1)
equal "a stopped supervisor is not waited for without end" 5 $?
matches "and the command says so" "process $pid, is stopped.*hint: kill -CONT $pid" "$out"
kill -CONT "$pid"
check "going on, it answers" [ "$(supervisor_pid)" = "$pid" ]
check "and is the only one" wait_until one_supervisor
plan
