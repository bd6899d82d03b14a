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

# ---- So it is in a resume: what is to be continued is the last try's, also where that has yet to run ----
begin <<Y
$roles
plan:
  - {id: a, assignee: talker, instruction: 'case \$FLOWSUP_OP_ID in a) : > "\$T/gates/runs"; until [ -e "\$T/gates/go" ]; do sleep 0.05; done; exit 1;; esac; test -e "\$T/gates/well" || exit 1; echo \$*'}
  - {id: b, assignee: other, needs: [a], inherit_context: a, instruction: 'echo \$*'}
Y
wait_until [ -e "$T/gates/runs" ]
"$FLOWSUP" stop "$RUN" >/dev/null 2>&1
closed() { "$FLOWSUP" ctl status "$RUN" --json 2>/dev/null | grep -q '"state":"applied"'; }
wait_until closed
open_gate go
wait_until ended
equal "at the end of a stop the further try is pending" "cancelled pending" "$(run_status "$RUN") $(spawned 'by["a.s1"]["status"]')"
ran=$("$FLOWSUP" resume "$RUN" 2>"$T/resume.err") || note "$(cat "$T/resume.err")"
RUN=${ran:-$RUN}
matches_soon "the resume runs it" "failed" run_status "$RUN"
open_gate well
"$FLOWSUP" resume "$RUN" --retry-failed --allow-degraded-context --dry-run >"$T/dry" 2>&1
equal "what the last try will make anew is not given up" 0 "$(grep -c 'new conversation' "$T/dry")"
ran=$("$FLOWSUP" resume "$RUN" --retry-failed 2>"$T/resume.err") || note "$(cat "$T/resume.err")"
RUN=${ran:-$RUN}
matches_soon "also one that failed is run again" "completed" run_status "$RUN"
equal "and continued" "resume $(id_of a.s1)" "$(output b)"

rm -f "$T"/gates/*
begin <<Y
restart: {on: crash, attempts: 1}
$roles
plan:
  - {id: a, assignee: talker, instruction: 'case \$FLOWSUP_OP_ID in a) exit 1;; esac; : > "\$T/gates/runs"; until [ -e "\$T/gates/go" ]; do sleep 0.05; done; echo \$*'}
  - {id: b, assignee: other, needs: [a], inherit_context: a, instruction: 'echo \$*'}
Y
wait_until [ -e "$T/gates/runs" ]
kill -KILL "$(worker_pid "$RUN")"
run_fact() { json "$("$FLOWSUP" list --json -n 1000 | grep "^{\"id\":\"$1\"")" "$2"; }
went_on() { [[ $(run_fact "$RUN" resumed_as) =~ ^[0-9] ]]; }
check "a resume by the restart policy is made while it runs" wait_until went_on
open_gate go
RUN=$(run_fact "$RUN" resumed_as)
matches_soon "and completes" "completed" run_status "$RUN"
equal "in the conversation of the last try" "resume $(id_of a.s1)" "$(output b)"
plan
