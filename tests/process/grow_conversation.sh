#!/usr/bin/env bash
# Conversations of operations that were added: forks of the conversation of who asked.
. "$(dirname "$0")/lib_grow.sh"

cat >"$T/config/flowsup/providers/talker.json" <<'J'
{"provider": 1, "name": "talker", "title": "says how it was started", "verified": "1",
 "reads_user_settings": false, "prompt": "stdin",
 "start": {"new": ["/bin/sh", "-s", "new", "{sid}"], "resume": ["/bin/sh", "-s", "resume", "{old}"],
  "fork": ["/bin/sh", "-s", "fork", "{sid}", "{old}"]},
 "conversation": {"id": "minted"}, "output": {"format": "text", "keep_escapes": true},
 "exit_0_reliable": true}
J
roles='roles:
  talker: {provider: talker, escalate_to: other}
  other: {provider: talker, model: strong}
  robot: {provider: robot}'
id_of() { spawned "(o.get('$1') or by['$1'])['conversation']['id']"; }

run_flow <<Y
reactive: all
$roles
plan:
  - {id: a, assignee: talker, instruction: 'flowsup emit spawn --instruction "echo \\\$*"; flowsup emit spawn --independent --instruction "echo apart \\\$1"; flowsup emit spawn --assignee robot --instruction "echo other \\\$#"; echo \$*'}
  - {id: b, assignee: talker, needs: [a], inherit_context: a, instruction: 'echo \$*'}
Y
equal "the flow completes" completed "$(run_status "$RUN")"
a=$(id_of a)
equal "one that was added forks the conversation of who asked" "fork $(id_of a.s1) $a" "$(output a.s1)"
equal "an independent one does not" "apart new" "$(output a.s2)"
equal "nor one of another provider" "other 0" "$(output a.s3)"
equal "the planned successor has its own" "fork $(id_of b) $a" "$(output b)"

# ---- Another try stands for the first, also in conversation ----
run_flow <<Y
$roles
plan:
  - {id: a, assignee: talker, instruction: 'test -e "\$T/gates/tried" || { : > "\$T/gates/tried"; exit 1; }; echo \$*'}
  - {id: b, assignee: other, needs: [a], inherit_context: a, instruction: 'echo \$*'}
Y
equal "a further try begins a new conversation" "completed new $(id_of a.s1)" "$(run_status "$RUN") $(output a.s1)"
equal "which is the one that is continued" "resume $(id_of a.s1)" "$(output b)"
plan
