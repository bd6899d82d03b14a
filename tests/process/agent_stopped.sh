#!/usr/bin/env bash
# Agents that a command ended, whoever carried it out: the resume goes on in the conversation, with a note;
# one that had given its final record by then has its result.
# shellcheck source=lib_agent.sh
. "$(dirname "$0")/lib_agent.sh"

begin() { # MODE FILE: an agent that works; FILE of its home says that it does.
	rm -rf "${AGENT:?}"/*
	flow "  - {id: a, assignee: agent, instruction: $1}"
	RUN=$("$FLOWSUP" start "$T/flow.yaml")
	wait_until eval "ls $AGENT/$2"
	wait_until worker_is_ready "$RUN"
}
orphan() {
	kill -KILL "$(worker_pid "$RUN")"
	wait_until status_is "$RUN" crashed
}
by_stop() { "$FLOWSUP" stop --now "$RUN" >/dev/null 2>&1; }
by_kill() { "$FLOWSUP" kill "$RUN" >/dev/null 2>&1; }
by_kill_after_crash() {
	orphan
	by_kill
}
conversation() { cat "$AGENT"/conversations/* | paste -sd'|'; }
recorded() { cat "$(run_dir)"/checkpoint.json* | grep -o '"response":"turns[^"]*"' | tail -1; }
final() { grep -q '"type":"result"' "$(run_dir)/ops/a.1.out"; }

for how in by_stop by_kill by_kill_after_crash; do
	begin slow 'slow-*'
	"$how"
	check "$how: the run has ended" wait_until ended
	: >"$AGENT/go"
	RUN=$("$FLOWSUP" resume "$RUN")
	check "$how: its resume ends" wait_until ended
	matches "$how: it goes on in its conversation, with a note" '"response":"turns: slow\|\[INTERRUPTED\]\|"' "$(entry a)"
	equal "$how: by --resume" '"start":"resume"' "$(grep -o '"start":"[a-z]*"' "$(run_dir)/ops/a.2/agent.json")"
	matches "$how: and its task" 'was interrupted.*slow' "$(tr '\n' ' ' <"$(run_dir)/ops/a.2/instruction")"

	begin hang hanging
	check "$how: a final record is there" wait_until final
	"$how"
	check "$how: its run has ended" wait_until ended
	if ! status_is "$RUN" completed; then
		RUN=$("$FLOWSUP" resume "$RUN")
		check "$how: the resume of that ends" wait_until ended
	fi
	equal "$how: it is completed" completed "$(run_status "$RUN")"
	equal "$how: it was told once" hang "$(conversation)"
	equal "$how: with the answer of the record" '"response":"turns: hang|"' "$(recorded)"
done

# ---- In a directory that is no run here ----
begin slow 'slow-*'
by_stop
wait_until ended
cp -r "$(run_dir)" "$T/copy"
: >"$AGENT/go"
RUN=$(FLOWSUP_HOME=$T/other "$FLOWSUP" resume "$T/copy")
export FLOWSUP_HOME=$T/other
check "a copy of its directory is resumed" wait_until ended
matches "in its conversation" '"response":"turns: slow\|\[INTERRUPTED\]\|"' "$(entry a)"
plan
