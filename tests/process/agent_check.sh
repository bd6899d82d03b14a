#!/usr/bin/env bash
# What cannot run is refused before anything is made; a file of one's own repairs a provider.
. "$(dirname "$0")/lib_agent.sh"
refused() { # NAME STATUS PATTERN
	local out
	out=$("$FLOWSUP" start "$T/flow.yaml" 2>&1)
	equal "$1: refused" 2 $?
	matches "$1: why" "$2" "$out"
}
flow '  - {id: a, instruction: hello}'
refused "no role" 'an instruction needs an "assignee"'
printf '%s\n' 'roles: {r: {provider: cluade}}' 'plan: [{id: a, assignee: r, instruction: hello}]' >"$T/flow.yaml"
refused "no such provider" 'there is no provider "cluade"'
matches "the nearest is named" 'did you mean "claude"' "$("$FLOWSUP" check "$T/flow.yaml" 2>&1)"
printf '%s\n' 'roles: {r: {model: m}}' 'plan: [{id: a, assignee: r, instruction: hello}]' >"$T/flow.yaml"
refused "a role without provider" 'role "r" has no provider'
printf '%s\n' 'roles: {r: {provider: sh}}' 'prompt: x' 'plan: [{id: a, assignee: r, instruction: "echo {{prompt}}"}]' >"$T/flow.yaml"
refused "templates in shell text" 'which is shell text'
printf '%s\n' 'roles: {r: {provider: sh}}' 'plan:' '  - {id: a, assignee: r, instruction: echo}' \
	'  - {id: b, assignee: r, needs: [a], inherit_context: a, instruction: echo}' >"$T/flow.yaml"
refused "a conversation of a shell" 'provider sh cannot continue a conversation'
printf '%s\n' 'roles: {r: {provider: gemini}}' 'plan: [{id: a, assignee: r, instruction: "/help me"}]' >"$T/flow.yaml"
refused "what its program takes for a command" 'the instruction begins with "/", which gemini takes for a command of its own'
equal "nothing was made" 0 "$(find "$FLOWSUP_HOME/runs" -mindepth 1 2>/dev/null | wc -l)"

printf '%s\n' 'roles: {r: {provider: sh}}' 'plan:' \
	'  - {id: a, assignee: r, instruction: "printf \"%s\\n\" \"$0\"; readlink /proc/self/fd/0"}' >"$T/flow.yaml"
check "the shell as a provider" run_flow
matches "gets the text, and nothing to read" '"response":"/bin/sh\\n/dev/null\\n"' "$(entry a)"
printf '%s\n' 'roles: {r: {provider: sh}}' 'prompt: x' 'plan:' \
	'  - {id: a, assignee: r, instruction: "printf %s '"'"'\\{{prompt}} {{.Names}} \\n'"'"'"}' >"$T/flow.yaml"
check "those that stand for themselves there are none" run_flow
matches "and lose their backslash alone" '"response":"\{\{prompt\}\} \{\{.Names\}\} \\\\n"' "$(entry a)"

flow '  - {id: a, assignee: agent, instruction: env}'
own_provider -e 's/"CI": "1"/"CI": "mine"/'
check "a provider of one's own" run_flow
matches "takes the place of the shipped one" 'CI=mine' "$(entry a)"
own_provider -e 's/"prompt": "stdin",/&"instruction": {"most": 20, "commands": ["!"]},/'
flow '  - {id: say, run: "printf %s !do"}' '  - {id: a, assignee: agent, needs: [say], instruction: "{{ops.say.response}}"}' \
	'  - {id: b, assignee: agent, needs: [say], instruction: "{{ops.say.response}} it in twenty bytes"}'
check "what the program does not take as an instruction" run_flow
matches "is not given to it: a command" '"class":"spawn","message":"the instruction begins with .*"!.*" ?, which claude takes' "$(entry a | tr -d '\\')"
matches "nor what it would cut" '"class":"spawn","message":"the instruction has [0-9]+ bytes, and claude reads 20"' "$(entry b)"
flow '  - {id: a, assignee: agent, instruction: env}'
own_provider -e 's/"prompt": "stdin"/"promt": "stdin"/'
refused "a broken one is no reason to take another" 'claude.json:[0-9]+:[0-9]+: a provider has no key "promt"'

rm -r "$T/config/flowsup"
rm "$BIN/claude"
said=$("$FLOWSUP" start "$T/flow.yaml" 2>&1)
equal "a program that is not there is said before anything is made" 78 $?
matches "by its operation" 'operation "a": cannot execute "claude"' "$said"
flow '  - {id: first, run: "true"}' '  - {id: a, assignee: agent, needs: [first], instruction: "env"}'
check "where another may make it" run_flow
matches "it is said exactly" '"class":"spawn","message":"cannot execute' "$(entry a)"
plan
