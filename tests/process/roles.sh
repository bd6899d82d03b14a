#!/usr/bin/env bash
# Roles of the configuration directory: for --planner, and for checkpoints of older programs.
. "$(dirname "$0")/lib_agent.sh"
mkdir -p "$T/config/flowsup/roles"
answers() { printf '%s' "$1" >"$AGENT/plan-1"; rm -f "$AGENT"/planned-*; }

# ---- start --planner ----
answers '[{"id":"a","assignee":"claude","instruction":"ok A"}]'
RUN=$("$FLOWSUP" start --planner claude 'plan a party')
wait_until ended
equal "a provider's name is a role" completed "$(run_status "$RUN")"
matches "the prompt is what is planned" 'Make a plan for this task:  plan a party' "$(tr '\n' ' ' <"$AGENT/planned-1")"
matches "it is a flow" '"kind":"flow","name":"plan a party"' "$("$FLOWSUP" show "$RUN" --json)"

echo '{provider: claude, args: [--from, yaml]}' >"$T/config/flowsup/roles/boss.yaml"
echo '{"provider": "claude", "args": ["--from", "json"]}' >"$T/config/flowsup/roles/clerk.json"
answers '[{"id":"a","assignee":"clerk","instruction":"env"}]'
RUN=$("$FLOWSUP" start --planner boss 'plan it' --label x=y)
wait_until ended
matches "roles are found in their files" 'extra= --from json' "$(entry a)"
matches "and are all offered" 'one of: (boss, clerk|clerk, boss)' "$(cat "$AGENT/planned-1")"
matches "the checkpoint holds them" '"roles":\{[^}]*"--from","(json|yaml)"' "$("$FLOWSUP" checkpoint export "$RUN" --json)"

RUN=$("$FLOWSUP" start --planner boss $'\nsay what docs/README lacks\nand more')
equal "its name is the prompt's first line" "say what docs/README lacks" "$(run_fact "$RUN" name)"
said=$("$FLOWSUP" start --planner boss '  ' 2>&1)
equal "an empty prompt is told" "2 flowsup: start: --planner: the prompt is empty" "$? $(head -n 1 <<<"$said")"
said=$("$FLOWSUP" start --planner sh 'plan it' 2>&1)
equal "a shell is no planner for a prompt" "2 flowsup: --planner: provider sh runs what it is told as shell text, and cannot plan from a prompt" \
	"$? $(head -n 1 <<<"$said")"
said=$("$FLOWSUP" start --planner nobody 'plan it' 2>&1)
matches "an unknown one is refused" '^2: .*there is no role "nobody", nor a provider' "$?: $said"
said=$(XDG_CONFIG_HOME="$T/c d" "$FLOWSUP" start --planner nobody 'plan it' 2>&1)
matches "with where roles of one's own go" "^hint: mkdir -p '$T/c d/flowsup/roles'  " "$(tail -n 1 <<<"$said")"
said=$("$FLOWSUP" start --planner boss 2>&1)
matches "the prompt must be there" '--planner takes one operand, the prompt' "$said"
echo 'provider: 5' >"$T/config/flowsup/roles/clerk.json"
said=$("$FLOWSUP" start --planner boss 'plan it' 2>&1)
matches "a file that is wrong is named" 'clerk.json:1:1' "$said"
rm "$T/config/flowsup/roles/clerk.json"

# ---- A checkpoint whose role is not in it ----
mkdir "$T/old"
echo '{"version": 2, "session_id": "1bad1bad1bad1bad1bad1bad1bad1bad", "prompt": "p", "config": {},
 "plan": [{"agent_id": "one", "dep_indices": [], "assignee": "boss", "task": "env"}],
 "flow_context": {}, "ops": {}, "spawned": []}' >"$T/old/checkpoint.json"
chmod 700 "$T/old"; chmod 600 "$T/old/checkpoint.json"
cp -r "$T/old" "$T/older"
as_of_elsewhere "$T/older"
RUN=$("$FLOWSUP" resume "$T/old" 2>"$T/err") || note "$(cat "$T/err")"
wait_until ended
equal "its task runs as the role" completed "$(run_status "$RUN")"
matches "with what the role says" 'extra= --from yaml' "$(entry one)"
rm "$T/config/flowsup/roles/boss.yaml"
said=$("$FLOWSUP" resume "$T/older" --dry-run 2>&1)
equal "without the file it is refused" 4 $?
matches "by its name" 'the role "boss" is not known here' "$said"
plan
