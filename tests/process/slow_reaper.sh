#!/usr/bin/env bash
# Operations that end with worker and supervisor dead, and whose parent (that of a container, say) takes its
# time to reap them: how they ended is known only then, and a resume waits for it; nothing runs twice.
# shellcheck source=lib_disk.sh
. "$(dirname "$0")/lib_disk.sh"

if [ "$(uname -r | awk -F. '{print $1 * 100 + $2}')" -lt 615 ]; then
	skip "the kernel does not tell how somebody else's child ended"
	plan
	exit
fi

# FILE COMMAND...: children that lose their parent are this process's, and reaped from when FILE is there.
cat >"$T/adopts.py" <<'END'
import ctypes, os, sys, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
os.waitpid(os.spawnvp(os.P_NOWAIT, sys.argv[2], sys.argv[2:]), 0)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
while True:
    try:
        os.waitpid(-1, 0)
    except ChildProcessError:
        break
END
state() { sed -nE 's/^State:[[:space:]]+(.).*/\1/p' "/proc/$1/status"; }
is() { [ "$(state "$1")" = "$2" ]; }
has() { [ -n "$(find "/proc/$1/fd" -lname "*$2" 2>/dev/null)" ]; }
by() { sed -nE 's/.*"by":"([a-z]+)".*/\1/p' "$FLOWSUP_HOME/runs/$run/ops/sh.1/exit.json"; }
# Its operation has ended, and nobody has reaped it.
end_unreaped() {
	begin_counted
	# shellcheck disable=SC2046
	kill -KILL $(supervisors) "$worker"
	wait_until is "$worker" Z
	"$@"
	touch "$T/go"
	wait_until is "$op" Z
}
flowsup_below() { # its first command starts the supervisor
	rm -f "$T/reap"
	python3 -B "$T/adopts.py" "$T/reap" "$FLOWSUP" start --name first -- true >/dev/null &
	adopting=$!
	wait_until supervised
}
supervised() { [ -n "$(supervisors)" ]; }
unsupervised() { ! supervised; }

flowsup_below
end_unreaped true
"$FLOWSUP" resume --wait "$run" >/dev/null 2>"$T/err" &
resuming=$!
check "a resume waits for it" wait_until has "$resuming" "$run/worker.lock"
touch "$T/reap"
wait "$resuming"
equal "its end is taken over once it is reaped" "0 1 kernel" "$? $(runs) $(by)"
wait "$adopting"

"$FLOWSUP" supervisor stop >/dev/null
wait_until unsupervised
watched() {
	"$FLOWSUP" start --name other -- true >/dev/null
	wait_until known
}
flowsup_below
end_unreaped watched
touch "$T/reap"
wait "$adopting"
"$FLOWSUP" resume --wait "$run" >/dev/null 2>"$T/err"
equal "also at the very moment, with a supervisor that has it in sight" "0 1 kernel" "$? $(runs) $(by)"
plan
