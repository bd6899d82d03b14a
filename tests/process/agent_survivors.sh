#!/usr/bin/env bash
# Agents that outlive their worker: taken over with their conversation; known by their final record
# where nobody saw them end; else the conversation goes on, and the agent is told that it was
# interrupted.
# shellcheck source=lib_agent.sh
. "$(dirname "$0")/lib_agent.sh"

line() { grep '"kind":"start","op":"a"' "$(run_dir)/attempts.log" | tail -1; }
reaped() { [ ! -d "/proc/$1" ]; }
# begin MODE FILE [KEYS]: an agent that works; FILE of its home says that it does.
begin() {
	rm -rf "${AGENT:?}"/*
	flow "  - {id: a, assignee: agent, instruction: $1${3-}}"
	RUN=$("$FLOWSUP" start "$T/flow.yaml")
	wait_until eval "ls $AGENT/$2"
	wait_until worker_is_ready "$RUN"
}
# Nobody is left who could say how it ended, and it has.
kill_all() {
	local pid
	pid=$(json "$(line)" pid)
	# shellcheck disable=SC2046
	kill -KILL $(supervisors) "$(worker_pid "$RUN")" "$(json "$(line)" reaper)"
	kill -KILL "-$pid"
	wait_until reaped "$pid"
}
conversation() { cat "$AGENT"/conversations/* | paste -sd'|'; }

begin slow 'slow-*'
kill -KILL "$(worker_pid "$RUN")"
wait_until status_is "$RUN" crashed
RUN=$("$FLOWSUP" resume "$RUN")
wait_until eval 'event NodeTakenOver a'
: >"$AGENT/go"
check "one that still works is taken over" wait_until ended
equal "the run completes" completed "$(run_status "$RUN")"
matches "with its answer, read from its output" '"response":"turns: slow\|"' "$(entry a)"
matches "and its conversation" "\"id\":\"$(ls "$AGENT/conversations" | grep -v busy)\"" "$(entry a)"
equal "it was told once" slow "$(conversation)"

begin hang hanging
kill_all
RUN=$("$FLOWSUP" resume "$RUN")
check "one that gave its final record before all died has an outcome" wait_until ended
matches "that of the record" '"status":"completed","response":"turns: hang\|"' "$(entry a)"
equal "it was told once" hang "$(conversation)"

begin hang hanging ', idempotent: false'
wait_until grep -q '"type":"result"' "$(run_dir)/ops/a.1.out"
kill_all
command() { "$FLOWSUP" show "$RUN" --json | grep -o '"resume_command":"[^"]*"'; }
known() { command | grep -q resume; }
check "the run is known to have crashed" wait_until known
equal "where the record is there, nobody is asked for leave to repeat it" "\"resume_command\":\"flowsup resume $RUN\"" "$(command)"
RUN=$("$FLOWSUP" resume "$RUN")
check "and its resume ends" wait_until ended
equal "having told it nothing more" hang "$(conversation)"

begin slow 'slow-*'
kill_all
: >"$AGENT/go"
RUN=$("$FLOWSUP" resume "$RUN")
check "one whose end is unknown works again" wait_until ended
matches "in its conversation, with a note" '"response":"turns: slow\|\[INTERRUPTED\]\|"' "$(entry a)"
matches "and the task" 'was interrupted.*slow' "$(tr '\n' ' ' <"$(run_dir)/ops/a.2/instruction")"

begin slow 'slow-*'
kill -KILL "$(worker_pid "$RUN")"
wait_until status_is "$RUN" crashed
rm "$(run_dir)/ops/a.1/agent.json"
matches "one without the record of its start is not taken over" \
	'a +will run +still runs, but the record of its start .ops/a\.1/agent\.json. is not there' \
	"$("$FLOWSUP" resume "$RUN" --dry-run)"
: >"$AGENT/go"
RUN=$("$FLOWSUP" resume "$RUN")
check "it is ended and works again" wait_until ended

begin slow 'slow-*'
kill_all
: >"$AGENT/go"
rm -rf "$AGENT/conversations"
RUN=$("$FLOWSUP" resume "$RUN")
check "where the conversation is lost" wait_until ended
matches "it begins anew" '"status":"completed","response":"turns: slow\|"' "$(entry a)"
plan
