#!/usr/bin/env bash
# Another user of the machine can read, reach and signal nothing.
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" = 0 ] || { skip "only root can become another user"; plan; }
command -v setpriv >/dev/null || { skip "setpriv is not installed"; plan; }
chmod 755 "$T"
# A number of nobody in particular: no account has to be made for it.
uid=$((60000 + $$ % 5000))
as_other() { setpriv --reuid=$uid --regid=$uid --clear-groups env -u FLOWSUP_HOME HOME="$T" "$@"; }
umask 000 # what is closed is closed whatever the caller's umask

export HER_TOKEN=value-s-5511
id=$("$FLOWSUP" start -- sh -c "echo out; touch '$T/began'; exec sleep 1000")
wait_until [ -e "$T/began" ]
supervisor=$(supervisor_pid)
worker=$(worker_pid "$id")
operation=$(pgrep -P "$worker" | head -1)

open_to_others=$(find "$FLOWSUP_HOME" ! -type l -perm /077 | grep -v '/artifacts/')
equal "nothing in the home is open to others" "" "$open_to_others"
refused() { ! as_other "$@" >/dev/null 2>&1; }
check "the home cannot be listed" refused ls "$FLOWSUP_HOME"
for file in state.db supervisor.log "runs/$id/flow.json" "runs/$id/environ" "runs/$id/checkpoint.json"; do
	check "$file cannot be read" refused cat "$FLOWSUP_HOME/$file"
done
check "a run's output cannot be read" refused sh -c "cat '$FLOWSUP_HOME/runs/$id/ops/'*.out"
# A home that somebody made before, as mkdir does.
mkdir -m 755 "$T/wide"
"$FLOWSUP" start --home "$T/wide" --wait -- true 2>/dev/null >"$T/in-wide"
equal "one that was there keeps its mode" 755 "$(stat -c %a "$T/wide")"
equal "and nothing in it is open" "" "$(find "$T/wide" -mindepth 1 -perm /077)"
for file in state.db supervisor.sock "runs/$(cat "$T/in-wide")/flow.json"; do
	check "$file of it cannot be read" refused cat "$T/wide/$file"
done
# The commands are there for everybody; the state is not.
if as_other "$FLOWSUP" version >/dev/null 2>&1; then
	for command in "list" "show $id" "logs $id" "kill $id" "stop $id --now" "supervisor stop" "supervisor status"; do
		# shellcheck disable=SC2086
		check "$command does not work" refused "$FLOWSUP" $command --home "$FLOWSUP_HOME"
	done
else
	skip "the build cannot be reached by another user"
fi
for pid in "$supervisor" "$worker" "$operation"; do
	check "process $(cat "/proc/$pid/comm") cannot be signalled" refused kill -TERM "$pid"
	check "nor can its environment be read" refused cat "/proc/$pid/environ"
done

# ---- With the directories opened: the sockets themselves look who comes ----
if command -v python3 >/dev/null; then
	chmod 755 "$FLOWSUP_HOME" "$FLOWSUP_HOME/runs" "$FLOWSUP_HOME/runs/$id"
	chmod 666 "$FLOWSUP_HOME/supervisor.sock" "$FLOWSUP_HOME/runs/$id/worker.sock"
	cat >"$T/knock.py" <<'PY'
import json, os, socket, sys
os.chdir(os.path.dirname(sys.argv[1]))
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.settimeout(20)
s.connect(os.path.basename(sys.argv[1]))
try:
    s.send(json.dumps({"type": "hello", "role": sys.argv[2], "major": 1, "minor": 0}).encode())
    s.send(json.dumps(json.loads(sys.argv[3])).encode())
    sys.exit(1 if s.recv(65536) else 0)
except ConnectionError:
    sys.exit(0)
PY
	chmod 755 "$T/knock.py"
	check "the supervisor disconnects another user" \
		as_other python3 "$T/knock.py" "$FLOWSUP_HOME/supervisor.sock" client '{"type":"status"}'
	check "so does a worker" \
		as_other python3 "$T/knock.py" "$FLOWSUP_HOME/runs/$id/worker.sock" supervisor '{"type":"drain","now":true}'
	check "and it is logged" wait_until logged "a connection was refused"
	chmod 700 "$FLOWSUP_HOME" "$FLOWSUP_HOME/runs" "$FLOWSUP_HOME/runs/$id"
fi
check "the run goes on" alive "$operation"

# ---- State directories of others, or open to them ----
mkdir -m 755 "$T/theirs"
chown "$uid" "$T/theirs"
equal "a state directory of somebody else is refused" 78 "$("$FLOWSUP" list --home "$T/theirs" >/dev/null 2>&1; echo $?)"
equal "also for a start" 78 "$("$FLOWSUP" start --home "$T/theirs" -- true >/dev/null 2>&1; echo $?)"
chmod 777 "$FLOWSUP_HOME"
out=$("$FLOWSUP" list 2>&1)
equal "one that others may write is refused" 78 $?
matches "and named" "$FLOWSUP_HOME" "$out"
chmod 700 "$FLOWSUP_HOME"
chmod 666 "$FLOWSUP_HOME/state.db"
equal "so is a database that others may write" 78 "$("$FLOWSUP" list >/dev/null 2>&1; echo $?)"
chmod 600 "$FLOWSUP_HOME/state.db"
"$FLOWSUP" kill "$id" 2>/dev/null
plan
