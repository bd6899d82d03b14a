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
boot() { "$@" doctor --json | grep '"check":"boot"'; }
(umask 077 && mkdir -p "$T/state/flowsup/runs")
by_default() { env -u FLOWSUP_HOME XDG_STATE_HOME="$T/state" "$FLOWSUP" "$@"; }
# A crontab(1) of an account without a table, whatever this machine has.
mkdir "$T/cron"
printf '#!/bin/sh\nexit 1\n' >"$T/cron/crontab" && chmod +x "$T/cron/crontab"
plain_path=$PATH
PATH=$T/cron:$PATH
matches "doctor says that nothing comes back, and what the unit needs" \
	'wait for the next flowsup command","hint":"systemctl --user enable' "$(boot by_default)"
matches "or a line of the crontab, with the path that cron needs" \
	"crontab -e: @reboot $(realpath "$FLOWSUP") supervisor\"" "$(boot by_default)"
matches "for another state directory, which no unit has, what cron needs" \
	"\"hint\":\"\{ crontab -l; echo '@reboot $(realpath "$FLOWSUP") supervisor --home $FLOWSUP_HOME'; \} \| crontab -" "$(boot "$FLOWSUP")"
# Everything that these need, and no cron.
mkdir "$T/cronless"
ln -s $(command -v grep env sh) "$T/cronless"
PATH=$T/cronless
equal "where there is no cron nothing is said of it" "" "$(boot by_default | grep cron)"
matches "for another state directory the command alone" \
	"\"hint\":\"$(env PATH="$plain_path" realpath "$FLOWSUP") supervisor --home $FLOWSUP_HOME   # by what starts programs at a boot\"" \
	"$(boot "$FLOWSUP")"
PATH=$T/cron:$plain_path
mkdir -p "$T/config/systemd/user/default.target.wants"
touch "$T/config/systemd/user/default.target.wants/flowsup-supervisor.service"
matches "or that the unit brings them" '"text":"flowsup-supervisor.service' "$(boot by_default)"
matches "those of its own state directory" '"state":"note".*crontab' "$(boot "$FLOWSUP")"
printf '#!/bin/sh\necho "@reboot flowsup supervisor --home %s"\n' "$FLOWSUP_HOME" >"$T/bin/crontab"
chmod +x "$T/bin/crontab"
matches "unless a line of the crontab names it" '"state":"ok","text":"@reboot' "$(PATH=$T/bin:$PATH boot "$FLOWSUP")"

# ---- The state directory ----
chmod 755 "$FLOWSUP_HOME"
matches "doctor says when others can look into it" '"check":"mode","state":"warning".*"hint":"chmod 700 ' "$("$FLOWSUP" doctor --json)"
chmod 700 "$FLOWSUP_HOME"
equal "and nothing when not" 0 "$("$FLOWSUP" doctor --json | grep -c '"check":"mode"')"
none=$("$FLOWSUP" doctor --json --home "$T/none/yet")
matches "of one that is not there yet, where it will be" "\"check\":\"state\",\"state\":\"note\",\"text\":\"$T/none/yet is not there yet" "$none"
mkdir "$T/empty"
matches "of one that is empty, that it is" "\"state\":\"note\",\"text\":\"$T/empty has no runs yet" \
	"$("$FLOWSUP" --home "$T/empty" doctor --json 2>/dev/null)"
equal "of one that would be below the root, what the root is" "$([ -w / ] && echo note || echo broken) 0" \
	"$("$FLOWSUP" --home /flowsup-none doctor --json 2>/dev/null | sed -nE 's/.*"check":"state","state":"([a-z]*)".*/\1/p') $(
		"$FLOWSUP" --home /flowsup-none doctor 2>&1 | grep -c 'No such file')"
matches "on what" '"check":"file system","state":"[a-z]*"' "$none"
matches "and with how much room" '"check":"space","state":"[a-z]*","text":"[0-9.]+[A-Z]? free"' "$none"
equal "it is not made" no "$([ -e "$T/none" ] && echo yes || echo no)"
plan
