"""What a run has come to, in lines that are the same whatever happened on the way.

	crash_state.py RUN          status, operations with their edges, outcomes, entries, context
	crash_state.py RUN WANTED   of an unfinished run: what is settled and not so in the file WANTED
"""
import json
import os
import subprocess
import sys


def ask(*words):
    done = subprocess.run([os.environ["FLOWSUP"], *words], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def text(value):
    if isinstance(value, dict) and "file" in value:
        value = dict(value, file="")
    return json.dumps(value, sort_keys=True)


run = sys.argv[1]
shown = ask("show", run, "--json")
state = ask("checkpoint", "export", "--json", run)
nodes = {e["node_id"]: e["agent_id"] for e in state["plan"]}
nodes.update((e["node_id"], e["spawn_id"]) for e in state["spawned"])


def outcome(name, e):
    error = e.get("error") or {}
    return "outcome %s: %s %s %s" % (name, e["status"], text(e["response"]), text([error.get("class"), error.get("code")]))


settled = [outcome(name, e) for name, e in state["ops"].items()]
settled += [outcome(e["spawn_id"], e) for e in state["spawned"] if e["status"] != "pending"]
if len(sys.argv) > 2:
    wanted = set(open(sys.argv[2]).read().split("\n"))
    print("".join("%s\n" % line for line in sorted(settled) if line not in wanted), end="")
    sys.exit()

lines = ["status %s" % shown["status"]]
for op in shown["ops"]:
    lines.append("operation %s: %s needs %s replaced by %s, added as %s, parent %s, for %s" % (
        op["id"], op["state"], " ".join(sorted(op["needs"])), op.get("replaced_by"), op.get("added"),
        op.get("parent"), op.get("escalated_from")))
lines += settled
for e in state["spawned"]:
    facts = [e.get(m) for m in ("status", "operation", "assignee", "instruction", "context", "emitter_workload",
                                "emitter_contains_user_settings", "request_key", "independent")]
    lines.append("entry %s: parent %s, for %s, %s" % (
        e["spawn_id"], nodes.get(e["parent_id"]), nodes.get(e.get("escalated_from")), text(facts)))
context = {k: sorted(v) if k == "list" else v for k, v in state["flow_context"].items() if k != "operator_messages"}
lines += ["context %s: %s" % (k, text(v)) for k, v in context.items()]
print("\n".join(sorted(lines)))
