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
matches "why tells it" 'did not leave after its result, and was ended' "$("$FLOWSUP" show "$RUN")"
RUN=$("$FLOWSUP" fork "$RUN" --from b)
wait_until ended
matches "what ended it is told of what is replayed" '"exit":null,"signal":"SIGTERM"' "$(told a)"
matches "so is why" 'did not leave after its result, and was ended; replayed' "$("$FLOWSUP" show "$RUN")"

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

# ---- A limit that passes before the end of the drain ----
"$FLOWSUP" supervisor stop 2>/dev/null
clocked() { CLOCK_OF=$1 LD_PRELOAD=$BUILD/tests/preload/clock.so${LD_PRELOAD:+:$LD_PRELOAD} "$FLOWSUP" supervisor; }
clocked flowsup-worker
cat >"$BIN/speaks-late" <<'END'
#!/bin/sh
trap 'printf "{\"t\":\"end\",\"v\":\"late\"}\n"; exit 0' TERM
echo '{"v":"no"}'
while :; do sleep 0.1; done
END
chmod +x "$BIN/speaks-late"
stays lines jsonl '{"v":"one"}\n{"t":"end","v":"in time"}\n'
sed -i 's/"drain":"[^"]*"/"drain":"10h"/' "$T/config/flowsup/providers/lines.json"
sed 's/"name":"[^"]*"/"name":"late"/; s/"new":.*]},"conv/"new":["speaks-late"]},"conv/' "$T/config/flowsup/providers/lines.json" \
	>"$T/config/flowsup/providers/late.json"
limited() { # MORE...: of both operations
	printf '%s\n' 'concurrency: 4' 'defaults: {grace: 20s}' 'roles: {lines: {provider: lines}, late: {provider: late}}' 'plan:' \
		"  - {id: lines, assignee: lines, instruction: x, $1}" "  - {id: late, assignee: late, instruction: x, $1}" >"$T/flow.yaml"
	rm -f "$MONO_JUMP"
	RUN=$("$FLOWSUP" start "$T/flow.yaml")
	for op in lines late; do
		wait_until eval 'event NodeStarted $op'
		wait_until [ -s "$(run_dir)/ops/$op.1.out" ]
	done
}
# Silence counts from what was written last.
for limit in 'timeout: 1h' 'silence: {after: 2s, strict: true}'; do
	limited "$limit"
	wait_until grep -q end "$(run_dir)/ops/lines.1.out"
	[[ $limit != timeout* ]] || jump "$MONO_JUMP" 7200
	check "$limit: both end" wait_until ended
	matches "$limit: a final record that was there by then counts" '"status":"completed","response":"in time"' "$(entry lines)"
	matches "$limit: the event says that it hung" '"hung_after_result":true' "$(event NodeCompleted lines)"
	matches "$limit: one that came after it does not" '"class":"'"${limit%%:*}" "$(entry late)"
done
"$FLOWSUP" supervisor stop 2>/dev/null
rm -f "$MONO_JUMP"
movable "$FLOWSUP" supervisor
limited 'timeout: 1h'
wait_until worker_is_ready "$RUN"
wait_until grep -q end "$(run_dir)/ops/lines.1.out"
kill -KILL "$(worker_pid "$RUN")"
wait_until status_is "$RUN" crashed
for op in lines late; do wait_until they_pass_until [ -e "$(run_dir)/ops/$op.1/exit.json" ]; done
RUN=$("$FLOWSUP" resume "$RUN" 2>/dev/null)
check "without a worker: a resume takes both ends over" wait_until ended
matches "without a worker: a final record that was there by then counts" '"status":"completed","response":"in time"' "$(entry lines)"
matches "without a worker: one that came after it does not" '"class":"timeout"' "$(entry late)"
plan
