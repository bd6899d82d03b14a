#!/usr/bin/env bash
# Messages stand in front of an agent's instruction; an instruction that is shell text is a command.
. "$(dirname "$0")/lib_agent.sh"
mkdir -p "$T/config/flowsup/providers"
printf '%s\n' '{"provider":1,"name":"echo","verified":null,"reads_user_settings":false,"prompt":"stdin","start":{"new":["cat"]},"conversation":{"id":"none"},"output":{"format":"text"},"exit_0_reliable":false}' \
	>"$T/config/flowsup/providers/echo.json"
cat >flow.yaml <<END
concurrency: 1
roles: {echo: {provider: echo}, sh: {provider: sh}}
plan:
  - {id: first, run: 'until test -e "$T/go"; do sleep 0.02; done'}
  - {id: agent, assignee: echo, needs: [first], instruction: "Do it."}
  - {id: quiet, assignee: echo, needs: [agent], instruction: "And this."}
  - {id: shell, assignee: sh, needs: [quiet], messages: true, instruction: 'cat "\$FLOWSUP_MESSAGES"; echo done'}
END
RUN=$("$FLOWSUP" start flow.yaml)
"$FLOWSUP" msg "$RUN" 'be brief' --wait 2>/dev/null
equal "an agent takes it" 0 $?
"$FLOWSUP" msg "$RUN" --to shell 'for the shell' --wait 2>/dev/null
equal "shell text takes it by file" 0 $?
touch "$T/go"
check "the flow ends" wait_until ended
equal "it is completed" completed "$(run_status "$RUN")"
BLOCK='[OPERATOR STEER]
A human operator sent these live corrections while this flow is running.
Attend to them before continuing. Most recent last.'
said() { sed -E 's/^- [0-9T:-]+Z: /- TIME: /' "$(run_dir)/ops/$1.1.out"; }
equal "in front, then an empty line, then the instruction" "$BLOCK
- TIME: be brief
[/OPERATOR STEER]

Do it." "$(said agent)"
equal "the next one has only its instruction" "And this." "$(said quiet)"
equal "nothing is put in front of shell text" "$BLOCK
- TIME: for the shell
[/OPERATOR STEER]
done" "$(said shell)"

# ---- What nobody is left to take ----
cat >flow.yaml <<END
roles: {echo: {provider: echo}}
plan:
  - {id: first, run: 'until test -e "$T/go2"; do sleep 0.02; done; exit 1'}
  - {id: agent, assignee: echo, needs: [first], instruction: "Do it."}
END
RUN=$("$FLOWSUP" start flow.yaml)
"$FLOWSUP" msg "$RUN" 'be brief' --wait 2>/dev/null
equal "it is applied" 0 $?
matches "and waits" '"messages_unrendered":1,' "$("$FLOWSUP" show "$RUN" --json)"
"$FLOWSUP" watch "$RUN" >"$T/watched" 2>&1 &
watching=$!
touch "$T/go2"
check "the run ends" wait_until ended
wait $watching
matches "show says that it reached nobody" "messages +1 was applied and reached no operation" "$("$FLOWSUP" show "$RUN")"
matches "for programs, too" '"messages_unrendered":1,' "$("$FLOWSUP" show "$RUN" --json)"
matches "and so does watch" "messages reached no operation: 1" "$(cat "$T/watched")"
plan
