"""What a run has come to, in lines that are the same whatever happened on the way."""
import json


def text(value):
    if isinstance(value, dict) and "file" in value:
        value = dict(value, file="")
    return json.dumps(value, sort_keys=True)


def outcome(name, e):
    error = e.get("error") or {}
    return "outcome %s: %s %s %s" % (name, e["status"], text(e["response"]), text([error.get("class"), error.get("code")]))


def settled(checkpoint):
    """The outcomes. CHECKPOINT: what `checkpoint export --json` prints."""
    return ([outcome(name, e) for name, e in checkpoint["ops"].items()] +
            [outcome(e["spawn_id"], e) for e in checkpoint["spawned"] if e["status"] != "pending"])


def lines(shown, checkpoint):
    """Status, operations with their edges, outcomes, entries, context. SHOWN: what `show --json` prints."""
    nodes = {e["node_id"]: e["agent_id"] for e in checkpoint["plan"]}
    nodes.update((e["node_id"], e["spawn_id"]) for e in checkpoint["spawned"])
    all = ["status %s" % shown["status"]]
    for op in shown["ops"]:
        all.append("operation %s: %s needs %s replaced by %s, added as %s, parent %s, for %s" % (
            op["id"], op["state"], " ".join(sorted(op["needs"])), op.get("replaced_by"), op.get("added"),
            op.get("parent"), op.get("escalated_from")))
    all += settled(checkpoint)
    for e in checkpoint["spawned"]:
        facts = [e.get(m) for m in ("status", "operation", "assignee", "instruction", "context", "emitter_workload",
                                    "emitter_contains_user_settings", "request_key", "independent")]
        all.append("entry %s: parent %s, for %s, %s" % (
            e["spawn_id"], nodes.get(e["parent_id"]), nodes.get(e.get("escalated_from")), text(facts)))
    for name, value in checkpoint["flow_context"].items():
        if name != "operator_messages":
            all.append("context %s: %s" % (name, text(sorted(value) if name == "list" else value)))
    return sorted(all)
