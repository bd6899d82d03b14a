#!/usr/bin/env bash
# The final record has come and the process never leaves: the result is kept, the process ended.
. "$(dirname "$0")/lib_agent.sh"
own_provider -e 's/"exit_0_reliable"/"drain": "300ms", &/'
flow '  - {id: a, assignee: agent, instruction: hang, timeout: 1h}' \
	'  - {id: b, assignee: agent, needs: [a], inherit_context: a, instruction: ok more}'
check "the flow ends" run_flow
equal "it is completed" completed "$(run_status "$RUN")"
matches "the result counts" '"status":"completed","response":"turns: hang\|"' "$(entry a)"
matches "the event says that it hung" '"hung_after_result":true' "$(event NodeCompleted a)"
check "the process is gone" gone "$(cat "$AGENT/hanging")"
matches "its conversation goes on" '"response":"turns: hang\|ok more\|"' "$(entry b)"
told() { "$FLOWSUP" show "$RUN" --json | grep -oE '"id":"'"$1"'","state":"[^"]*","saved":[a-z]*,"attempt":[0-9]*,"exit":[^,]*,"signal":[^,]*'; }
matches "what ended it is no exit status" '"exit":null,"signal":"SIGTERM"' "$(told a)"
matches "another has one" '"exit":0,"signal":null' "$(told b)"

# ---- The same whatever the form of the output is ----
cat >"$BIN/stays" <<'END'
#!/bin/sh
cat "$1"
echo $$ >>"$PIDS"
exec sleep 1000
END
chmod +x "$BIN/stays"
export PIDS=$T/pids
# stays NAME FORMAT OUTPUT: a provider whose program writes that (for printf), and stays.
stays() {
	printf "$3" >"$T/$1.says"
	printf '{"provider":1,"name":"%s","verified":null,"reads_user_settings":false,"prompt":"stdin",
		"start":{"new":["stays","%s"]},"conversation":{"id":"none"},"exit_0_reliable":false,"drain":"300ms",
		"output":{"format":"%s","terminal":{"/t":"end"},"answer":{"path":"/v"}}}' "$1" "$T/$1.says" "$2" \
		>"$T/config/flowsup/providers/$1.json"
}
stays object json 'hi\n{"t":"end",\n"v":"one"}\n'
stays array json-array '[{"t":"end","v":"two"}]'
stays lines jsonl '{"v":"no"}\n{"t":"end","v":"three \377"}'
printf '%s\n' 'name: forms' 'concurrency: 3' 'defaults: {grace: 500ms, timeout: 1h}' \
	'roles: {object: {provider: object}, array: {provider: array}, lines: {provider: lines}}' 'plan:' \
	'  - {id: object, assignee: object, instruction: x}' '  - {id: array, assignee: array, instruction: x}' \
	'  - {id: lines, assignee: lines, instruction: x}' >"$T/flow.yaml"
check "the flow with other forms ends" run_flow
equal "it is completed too" completed "$(run_status "$RUN")"
for op in object array lines; do
	matches "$op: the event says that it hung" '"hung_after_result":true' "$(event NodeCompleted $op)"
done
matches "an object is read" '"response":"one"' "$(entry object)"
matches "an array is read" '"response":"two"' "$(entry array)"
matches "a last line without its end is read, and a byte that is no UTF-8 replaced" '"response":"three \\ufffd"' "$(entry lines)"
matches "which is said" '"response_lossy":true' "$(entry lines)"
for pid in $(cat "$PIDS"); do check "a process is gone" gone "$pid"; done
plan
