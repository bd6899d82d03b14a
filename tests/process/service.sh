#!/usr/bin/env bash
# Below a service manager: readiness, watchdog, a socket that came; and units that end what is left.
. "$(dirname "$0")/lib.sh"

command -v python3 >/dev/null || { skip "python3 is not installed"; plan; }
mkdir -p "$FLOWSUP_HOME"
chmod 700 "$FLOWSUP_HOME"

# A manager: the socket of the home as descriptor 3, a notification socket; prints what is said to it.
cat >"$T/manager.py" <<'PY'
import os, signal, socket, subprocess, sys
home, program, out = sys.argv[1:4]
os.chdir(home)
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind(home + "/supervisor.sock" if len(sys.argv) < 5 else sys.argv[4])
listener.listen(64)
notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
notify.bind(home + "/notify")
# As a manager does: the child names itself by exec, LISTEN_PID is its own.
os.dup2(listener.fileno(), 3, inheritable=True)
def run():
    env = dict(os.environ, LISTEN_FDS="1", NOTIFY_SOCKET=home + "/notify", WATCHDOG_USEC="400000")
    return subprocess.Popen(["sh", "-c", 'LISTEN_PID=$$ WATCHDOG_PID=$$ exec "$@"', "sh", program,
        "supervisor", "--foreground"], env=env, pass_fds=[3], stderr=open(home + "/err", "ab"))
child = run()
signal.signal(signal.SIGTERM, lambda *_: (child.terminate(), None))
notify.settimeout(0.1)
with open(out, "a", buffering=1) as log:
    while True:
        try:
            log.write(notify.recv(4096).decode() + "\n")
        except socket.timeout:
            if child.poll() is not None:
                log.write("left %d\n" % child.returncode)
                break
PY
python3 "$T/manager.py" "$FLOWSUP_HOME" "$FLOWSUP" "$T/said" &
manager=$!
check "it says that it is ready" wait_until grep -q '^READY=1' "$T/said"
beats() { grep -c '^WATCHDOG=1' "$T/said"; }
more_beats() { [ "$(beats)" -ge 3 ]; }
check "and again and again that it lives" wait_until more_beats
id=$(timeout "$LIMIT" "$FLOWSUP" start -- sh -c 'env >"'$T'/env"; tr "\0" "\n" </proc/$PPID/environ >"'$T'/worker"')
"$FLOWSUP" wait "$id" 2>/dev/null
equal "it serves at the socket that came" 0 $?
equal "and is the only one" 1 "$(supervisors | count)"
equal "its workers are not told what the manager tells it" "" "$(grep -E '^(NOTIFY|LISTEN|WATCHDOG)' "$T/worker")"
pid=$(supervisor_pid)
before=$(beats)
"$FLOWSUP" supervisor restart
again() { [ "$(beats)" -ge $((before + 3)) ]; }
check "executed anew it goes on to say so" wait_until again
equal "as the same process" "$pid" "$(supervisor_pid)"
equal "at the same socket" "$pid" "$(supervisor_pid)"
inode=$(stat -c %i "$FLOWSUP_HOME/supervisor.sock")
kill -TERM "$manager"
check "it says that it leaves" wait_until grep -q '^STOPPING=1' "$T/said"
check "and leaves" wait_until grep -q '^left 0' "$T/said"
equal "the socket stays" "$inode" "$(stat -c %i "$FLOWSUP_HOME/supervisor.sock")"
wait "$manager"
rm -f "$FLOWSUP_HOME/supervisor.sock" "$FLOWSUP_HOME/notify" "$T/said"

python3 "$T/manager.py" "$FLOWSUP_HOME" "$FLOWSUP" "$T/said" "$T/other.sock" &
wait_until grep -q '^left' "$T/said"
matches "a socket of elsewhere is refused" "is not '.*supervisor.sock'" "$(cat "$FLOWSUP_HOME/err")"
wait
rm -f "$FLOWSUP_HOME/notify"

# ---- Units that end what they leave ----
mkdir "$T/bin"
cat >"$T/bin/systemd-run" <<END
#!/bin/sh
echo "\$*" >"$T/scope"
while [ "\${1#--}" != "\$1" ]; do shift; done
exec "\$@"
END
chmod +x "$T/bin/systemd-run"
echo '0::/system.slice/nightly.service' >"$T/cgroup"
doomed() { CGROUP=$T/cgroup LD_PRELOAD=$BUILD/tests/preload/cgroup.so "$@"; }
out=$(PATH=$T/bin:$PATH doomed "$FLOWSUP" start -- true 2>&1)
matches "a scope of the user's manager is asked for first" "^--user --scope .*supervisor" "$(cat "$T/scope")"
matches "then nothing has to be said" '^[0-9]{8}T[0-9]{6}-[0-9a-f]{6}$' "$out"
"$FLOWSUP" supervisor stop
printf '#!/bin/sh\nexit 1\n' >"$T/bin/systemd-run"
out=$(PATH=$T/bin:$PATH doomed "$FLOWSUP" start -- true 2>&1)
matches "where there is none, a warning" "will be ended together with this service" "$out"
matches "with a hint" "hint: systemctl --user enable" "$out"
"$FLOWSUP" wait @last 2>/dev/null
equal "and the run runs" 0 $?

# ---- After a boot ----
export XDG_CONFIG_HOME=$T/config
boot() { "$FLOWSUP" doctor | grep '^ *[a-z]* *boot\|boot ' | head -1; }
matches "doctor says that nothing comes back" "wait for the next flowsup command" "$("$FLOWSUP" doctor)"
mkdir -p "$T/config/systemd/user/default.target.wants"
touch "$T/config/systemd/user/default.target.wants/flowsup-supervisor.service"
matches "or that the unit brings them" "flowsup-supervisor.service" "$("$FLOWSUP" doctor)"
plan
