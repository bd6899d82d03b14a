# shellcheck shell=bash
# What tests of agents share: a fake in the PATH, its home, a flow of instructions, the checkpoint.
. "$(dirname "$0")/lib.sh"

BIN=$T/bin
AGENT=$T/agent
mkdir "$BIN" "$AGENT" "$T/config"
cp "$ROOT/tests/fakes/claude.sh" "$BIN/claude"
chmod +x "$BIN/claude"
export PATH=$BIN:$PATH CLAUDE_CONFIG_DIR=$AGENT XDG_CONFIG_HOME=$T/config
cd "$T" || exit 1

# flow PLAN-LINES...: a document with a role `agent` whose provider is the fake.
flow() {
	printf '%s\n' 'name: agents' 'concurrency: 4' 'defaults: {grace: 500ms}' 'roles:' \
		'  agent: {provider: claude, args: [--permission-mode, dontAsk]}' 'plan:' "$@" >"$T/flow.yaml"
}
# A copy of the shipped provider with `sed` applied, in the configuration directory.
own_provider() {
	mkdir -p "$T/config/flowsup/providers"
	sed "$@" "$BUILD/share/flowsup/providers/claude.json" >"$T/config/flowsup/providers/claude.json"
}
# The provider `stored`: its conversation is a file of the run, to which each instruction is added.
stored_provider() {
	local on='["sh","-c","cat >>\"$1\"; cat \"$1\"","sh","{store}"]'
	mkdir -p "$T/config/flowsup/providers"
	printf '{"provider":1,"name":"stored","verified":null,"reads_user_settings":false,"prompt":"stdin","start":{"new":%s,"resume":%s},"conversation":{"id":"none","store":"notes.txt"},"output":{"format":"text"},"exit_0_reliable":false}\n' \
		"$on" "$on" >"$T/config/flowsup/providers/stored.json"
}
# Runs the flow to its end; $RUN is its id.
run_flow() {
	RUN=$("$FLOWSUP" start "$T/flow.yaml") || return 1
	wait_until ended
}
ended() { [[ $(run_status "$RUN") =~ ^(completed|failed|crashed|cancelled|timed_out)$ ]]; }
run_dir() { printf '%s\n' "$FLOWSUP_HOME/runs/$RUN"; }
# entry OP: its last record in the journal or base.
entry() {
	{ cat "$(run_dir)/checkpoint.json.journal"; } | grep -F "\"agent_id\":\"$1\"" | tail -1
}
event() { grep -F "\"event\":\"$1\"" "$(run_dir)/events.jsonl" | grep -F "\"op\":\"$2\""; }
