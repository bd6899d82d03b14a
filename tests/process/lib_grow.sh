# shellcheck shell=bash
# What tests of growing runs share: an agent that does what its instruction says, and looks.
. "$(dirname "$0")/lib.sh"

# `robot` reads its instruction as a script, and is no shell for flowsup; `spy` reads settings too.
mkdir -p "$T/config/flowsup/providers" "$T/gates"
robot() { # name, whether it reads settings
	cat >"$T/config/flowsup/providers/$1.json" <<J
{"provider": 1, "name": "$1", "title": "does what it is told", "verified": "1",
 "reads_user_settings": $2, "prompt": "stdin", "start": {"new": ["/bin/sh"]},
 "conversation": {"id": "none"}, "output": {"format": "text", "keep_escapes": true},
 "exit_0_reliable": true}
J
}
robot robot false
robot spy true
export PATH=$BUILD/bin:$PATH XDG_CONFIG_HOME=$T/config T
cd "$T" || exit 1

# A document on standard input; $RUN is its id.
begin() {
	RUN=$("$FLOWSUP" start "$@" - 2>"$T/start.err") || { note "$(cat "$T/start.err")"; return 1; }
}
ended() { [[ $(run_status "$RUN") =~ ^(completed|failed|crashed|cancelled|timed_out)$ ]]; }
run_flow() { begin "$@" && wait_until ended; }
run_dir() { printf '%s\n' "$FLOWSUP_HOME/runs/$RUN"; }
output() { cat "$(run_dir)/ops/$1.${2:-1}.out" 2>/dev/null; }
errors() { cat "$(run_dir)/ops/$1.${2:-1}.err" 2>/dev/null; }
events() { grep -c "\"event\":\"$1\"" "$(run_dir)/events.jsonl"; }
has_event() { grep -F "\"event\":\"$1\"" "$(run_dir)/events.jsonl" | grep -qF -- "$2"; }
# spawned EXPRESSION: a Python expression over the list of entries `s`, the plan `p` and ops `o`.
spawned() {
	"$FLOWSUP" checkpoint export "${2:-$RUN}" --json | python3 -c '
import json, sys
d = json.load(sys.stdin)
s, p, o = d["spawned"], d["plan"], d["ops"]
by = {e["spawn_id"]: e for e in s}
node = {e["agent_id"]: e["node_id"] for e in p if "node_id" in e}
print(eval(sys.argv[1]))' "$1"
}
shown() { "$FLOWSUP" show "${2:-$RUN}" --json | python3 -c '
import json, sys
d = json.load(sys.stdin)
d = d.get("run", d)
op = {e["id"]: e for e in d["ops"]}
print(eval(sys.argv[1]))' "$1"; }
# Operations wait for gates: files that a test makes.
open_gate() { : >"$T/gates/$1"; }
