#!/usr/bin/env bash
# An agent that behaves: instruction, answer, conversation, usage, version, environment.
. "$(dirname "$0")/lib_agent.sh"
export CLAUDECODE=1 CLAUDE_CODE_ENTRYPOINT=cli

flow '  - {id: a, assignee: agent, instruction: "ok first"}' \
	'  - {id: b, assignee: agent, needs: [a], instruction: "ok got {{ops.a.response}}"}' \
	'  - {id: e, assignee: agent, instruction: "env"}' \
	'  - {id: r, needs: [a], run: "cat \"$FLOWSUP_DEP_a\""}'
check "the flow ends" run_flow
equal "it is completed" completed "$(run_status "$RUN")"
matches "the answer is the response" '"response":"turns: ok first\|"' "$(entry a)"
matches "it can stand in an instruction" '"response":"turns: ok got turns: ok first\|\|"' "$(entry b)"
matches "a successor gets it as a file" '"response":"turns: ok first\|"' "$(entry r)"
equal "the instruction is kept" "ok first" "$(cat "$(run_dir)/ops/a.1/instruction")"
matches "usage is recorded" '"usage":\{"input_tokens":7,"output_tokens":3,"cost_usd":0.25,"turns":1\}' "$(entry a)"
matches "the conversation is recorded" \
	'"conversation":\{"provider":"claude","version":"9.9.9 \(fake\)","id":"[0-9a-f-]{36}","home":"[^"]*/agent","cwd":"[^"]*"\}' \
	"$(entry a)"
matches "what was started is durable before it" '"provider":"claude","version":"9.9.9 \(fake\)","start":"new","id":"[0-9a-f-]{36}"' \
	"$(cat "$(run_dir)/ops/a.1/agent.json")"
equal "the version is asked for once a program" 1 "$(wc -l <"$AGENT/asked-for-version")"
matches "the event names provider and version" '"provider":"claude","version":"9.9.9 \(fake\)"' "$(event NodeStarted a)"
matches "the environment is cleaned" 'CLAUDECODE=unset CI=1 TERM=dumb' "$(entry e)"
matches "PWD is the directory" "PWD=$T " "$(entry e)"
matches "arguments of the role are given" 'extra= --permission-mode dontAsk' "$(entry e)"

# ---- One program that gives several versions, by its words; what says none has none ----
said() { # NAME VERSION-COMMAND
	own_provider -e "s|\"version\": \[\"claude\", \"--version\"\]|\"version\": [\"sh\", \"-c\", \"$2\"]|" \
		-e "s|\"name\": \"claude\"|\"name\": \"$1\"|"
	mv "$T/config/flowsup/providers/claude.json" "$T/config/flowsup/providers/$1.json"
}
said one 'echo one 1.0'
said two 'echo two 2.0'
said none 'exit 3'
printf '%s\n' 'concurrency: 1' 'roles:' '  one: {provider: one}' '  two: {provider: two}' '  none: {provider: none}' 'plan:' \
	'  - {id: x, assignee: one, instruction: ok X}' '  - {id: y, needs: [x], assignee: two, instruction: ok Y}' \
	'  - {id: z, needs: [y], assignee: none, instruction: ok Z}' >"$T/flow.yaml"
run_flow
matches "the version is that of its own command" '"provider":"one","version":"one 1.0"' "$(entry x)"
matches "not what another has said by the same program" '"provider":"two","version":"two 2.0"' "$(entry y)"
matches "nor where its own fails" '"conversation":\{"provider":"none","id"' "$(entry z)"

# ---- The command that prints the version fills no memory ----
own_provider -e 's|"version": \["claude", "--version"\]|"version": ["sh", "-c", "ulimit -f"]|'
flow '  - {id: limited, assignee: agent, instruction: ok L}'
run_flow
size=$(entry limited | sed -nE 's/.*"version":"([0-9]+)".*/\1/p')
check "what it writes has a limit" eval '[ "$size" = 65536 ] || [ "$size" = 131072 ]'
plan
