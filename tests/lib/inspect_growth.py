#!/usr/bin/env python3
"""Looks at every state that a run's checkpoint went through: inspect_growth.py DIRECTORY [--watch]
or inspect_growth.py DIRECTORY EARLIER, which also compares where it began with the end of the run that it resumes.

Without --watch: the base and each record of its journal, one after the other. With --watch: a
version 2 file, read again and again until its run directory holds a file `inspected`. Prints what is
wrong, and at the end how many states were seen. Rules (flowsup-checkpoint(5), flowsup(7)):

 - what an entry of spawned[] names is in the plan or in the list, in the same state;
 - an entry stays, and with it who asked for it, where it stands, and what it replaces;
 - a further try stands behind the end of the chain of what it replaces;
 - an outcome is never there without the entries that its operation had asked for before;
 - a witness in a version 2 file has a guard beside it.
"""
import json
import os
import sys
import time

STAYS = ("node_id", "parent_id", "escalated_from", "spawn_id", "operation", "assignee",
         "instruction", "context", "emitter_workload", "emitter_contains_user_settings",
         "request_key", "independent", "artifacts_expected")
problems = []


def wrong(n, text):
    problems.append("state %d: %s" % (n, text))


def nodes_of(state):
    return {e["node_id"]: e["agent_id"] for e in state["plan"] if e.get("node_id")}


def root_of(by, node):
    while node in by and by[node].get("escalated_from"):
        node = by[node]["escalated_from"]
    return node


def check_state(n, state):
    planned = nodes_of(state)
    entries = state.get("spawned", [])
    by = {e["node_id"]: e for e in entries}
    if len(by) != len(entries):
        wrong(n, "two entries have one node")
    if len({e["spawn_id"] for e in entries}) != len(entries):
        wrong(n, "two entries have one name")
    keys = [(e.get("escalated_from") or e["parent_id"], e["request_key"]) for e in entries]
    if len(set(keys)) != len(keys):
        wrong(n, "two entries have one key")
    replaced = [e["parent_id"] for e in entries if e.get("escalated_from")]
    if len(set(replaced)) != len(replaced):
        wrong(n, "two further tries stand behind one operation")
    for e in entries:
        name = e["spawn_id"]
        for member in ("parent_id", "escalated_from"):
            if e.get(member) and e[member] not in planned and e[member] not in by:
                wrong(n, "%s: %s leads nowhere" % (name, member))
        if e["status"] == "pending" and e["response"] is not None:
            wrong(n, "%s: pending with a response" % name)
        if "emitter_workload" not in e or "emitter_contains_user_settings" not in e:
            wrong(n, "%s: no provenance" % name)
        if e.get("escalated_from") and root_of(by, e["parent_id"]) != root_of(by, e["escalated_from"]):
            wrong(n, "%s: stands behind another chain" % name)
    guarded = len(planned) == len(state["plan"]) or any(e["status"] == "pending" for e in entries)
    if any(e.get("escalated_from") for e in entries) and not guarded:
        wrong(n, "a witness without a guard")


def asked_by(state):
    counts = {}
    for e in state.get("spawned", []):
        who = e.get("escalated_from") or e["parent_id"]
        counts[who] = counts.get(who, 0) + 1
    return counts


def check_step(n, before, now, resumed=False):
    later = {e["node_id"]: e for e in now.get("spawned", [])}
    for e in before.get("spawned", []):
        other = later.get(e["node_id"])
        if other is None:
            wrong(n, "%s is lost" % e["spawn_id"])
            continue
        for member in STAYS:
            if e.get(member) != other.get(member):
                wrong(n, "%s: %s has changed" % (e["spawn_id"], member))
        again = resumed and e["status"] == "failed"
        if e["status"] != "pending" and other["status"] == "pending" and not again:
            wrong(n, "%s: its outcome is lost" % e["spawn_id"])
    # What saw a failure runs again with it; who has asked for something does not.
    names, asked = {v: k for k, v in nodes_of(before).items()}, asked_by(before)
    for name in before["ops"]:
        again = resumed and names.get(name) not in asked
        if name not in now["ops"] and not again:
            wrong(n, "the outcome of %s is lost" % name)
    old, new = nodes_of(before), nodes_of(now)
    if old and old != new:
        wrong(n, "planned nodes have changed")


def check_order(states):
    """Once an operation has an outcome, nothing that it asked for is recorded any more."""
    last = asked_by(states[-1])
    names = {v: k for k, v in nodes_of(states[-1]).items()}
    for n, state in enumerate(states):
        asked = asked_by(state)
        done = [names[a] for a in state["ops"] if a in names]
        done += [e["node_id"] for e in state.get("spawned", []) if e["status"] != "pending"]
        for node in done:
            if asked.get(node, 0) != last.get(node, 0):
                wrong(n, "an outcome is there before what its operation had asked for")


def apply(state, record):
    state = dict(state, ops=dict(state["ops"]), spawned=list(state["spawned"]))
    entry = record["entry"]
    if record["kind"] == "op":
        state["ops"][entry["agent_id"]] = entry
        return state
    for i, e in enumerate(state["spawned"]):
        if e["node_id"] == entry["node_id"]:
            state["spawned"][i] = entry
            return state
    state["spawned"].append(entry)
    return state


def by_journal(directory):
    with open(os.path.join(directory, "checkpoint.json")) as f:
        states = [json.load(f)]
    with open(os.path.join(directory, "checkpoint.json.journal")) as f:
        for line in f:
            if not line.endswith("\n"):
                break  # a record that a crash has cut
            record = json.loads(line)
            if record["generation"] == states[0]["generation"]:
                states.append(apply(states[-1], record))
    return states


def by_watching(directory):
    states, seen = [], None
    while True:
        over = os.path.exists(os.path.join(directory, "inspected"))
        try:
            st = os.stat(os.path.join(directory, "checkpoint.json"))
            if (st.st_ino, st.st_mtime_ns, st.st_size) != seen:
                with open(os.path.join(directory, "checkpoint.json")) as f:
                    st = os.fstat(f.fileno())
                    states.append(json.load(f))
                seen = (st.st_ino, st.st_mtime_ns, st.st_size)
        except FileNotFoundError:
            pass
        if over:
            return states
        time.sleep(0.0005)


states = by_watching(sys.argv[1]) if "--watch" in sys.argv else by_journal(sys.argv[1])
for n, state in enumerate(states):
    check_state(n, state)
    if n > 0:
        check_step(n, states[n - 1], state)
check_order(states)
if len(sys.argv) > 2 and sys.argv[2] != "--watch":
    check_step(0, by_journal(sys.argv[2])[-1], states[0], resumed=True)
print("\n".join(problems[:20]) if problems else "%d states" % len(states))
sys.exit(1 if problems else 0)
