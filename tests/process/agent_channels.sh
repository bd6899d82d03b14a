#!/usr/bin/env bash
# Ways to hand over an instruction, a file of its own for a conversation, steps before SIGTERM.
. "$(dirname "$0")/lib_agent.sh"
P=$T/config/flowsup/providers
mkdir -p "$P"
provider() { # NAME PROMPT START CONVERSATION OUTPUT MORE
	printf '{"provider":1,"name":"%s","verified":null,"reads_user_settings":false,"prompt":"%s","start":%s,"conversation":%s,"output":%s,"exit_0_reliable":false%s}\n' \
		"$@" >"$P/$1.json"
}
TEXT='{"format":"text"}'
provider byarg argument '{"new":["sh","-c","printf %s: \"$1\"; readlink /proc/self/fd/0","sh","{prompt}"]}' '{"id":"none"}' "$TEXT" ''
provider byfile file '{"new":["sh","-c","cat \"$1\"; readlink /proc/self/fd/0","sh","{prompt}"]}' '{"id":"none"}' "$TEXT" ''
provider colours stdin '{"new":["sh","-c","cat; readlink /proc/self/fd/0 | sed s,.*/,,; printf \"\\033[1mbold\\033[0m\""]}' '{"id":"none"}' "$TEXT" ''
provider stored stdin '{"new":["sh","-c","cat >>\"$1\"; cat \"$1\"","sh","{store}"],"resume":["sh","-c","cat >>\"$1\"; cat \"$1\"","sh","{store}"],"fork":["sh","-c","cat >>\"$1\"; cat \"$1\"","sh","{store}"]}' \
	'{"id":"none","store":"notes.txt"}' "$TEXT" ''
provider steps stdin '{"new":["sh","-c","trap \"echo INT >>$T_OUT\" INT; trap \"echo USR1 >>$T_OUT\" USR1; trap \"echo TERM >>$T_OUT; exit 0\" TERM; : >$T_OUT.up; while :; do sleep 0.05; done"]}' \
	'{"id":"none"}' "$TEXT" ',"stop":[{"signal":"INT","wait":"300ms"},{"signal":"USR1","wait":"300ms"}]'
export T_OUT=$T/signals
cat >flow.yaml <<'END'
name: channels
concurrency: 4
defaults: {grace: 20s}
roles:
  byarg: {provider: byarg}
  byfile: {provider: byfile}
  colours: {provider: colours}
  stored: {provider: stored}
plan:
  - {id: arg, assignee: byarg, instruction: "tell it"}
  - {id: file, assignee: byfile, instruction: "tell it:"}
  - {id: text, assignee: colours, instruction: "tell it:"}
  - {id: a, assignee: stored, instruction: "one "}
  - {id: b, assignee: stored, needs: [a], inherit_context: a, instruction: "two "}
  - {id: c, assignee: stored, needs: [a], inherit_context: a, instruction: "three "}
  - {id: d, needs: [text], run: 'cat "$FLOWSUP_DEP_text"'}
END
check "the flow ends" run_flow
equal "it is completed" completed "$(run_status "$RUN")"
matches "as an argument, and nothing to read" '"response":"tell it:/dev/null\\n"' "$(entry arg)"
matches "as the name of a file, and nothing to read" '"response":"tell it:/dev/null\\n"' "$(entry file)"
matches "as standard input, escape sequences taken out" '"response":"tell it:instruction\\nbold"' "$(entry text)"
matches "its successor gets the text without them too" '"response":"tell it:instruction\\nbold"' "$(entry d)"
matches "a conversation in a file of its own goes on" '"response":"one two "' "$(entry b)"
matches "also for another, in a copy" '"response":"one three "' "$(entry c)"
equal "what is continued stays as it was" "one " "$(cat "$(run_dir)/ops/a.1/notes.txt")"

# ---- Steps of a stop ----
printf '%s\n' 'defaults: {grace: 20s}' 'roles: {s: {provider: steps}}' 'plan: [{id: a, assignee: s, instruction: wait}]' >flow.yaml
RUN=$("$FLOWSUP" start flow.yaml)
wait_until [ -e "$T_OUT.up" ]
"$FLOWSUP" stop "$RUN" --now >/dev/null 2>&1
check "it ends" wait_until ended
equal "the steps came in order, TERM last" "INT USR1 TERM " "$(tr '\n' ' ' <"$T_OUT")"
plan
