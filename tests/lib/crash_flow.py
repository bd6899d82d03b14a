"""A random flow whose outcome depends on nothing but its seed: what an operation answers tells of
the answers it was given, and nothing of times, attempts or processes.

KIND: `once` has operations that must not be repeated, `mend` has failures that a person mends
later (by a file), `late` neither. The scripts use the functions of crash_op.sh.
"""
import json
import random


def flow(seed, kind, most):
    r = random.Random(seed)
    n = 5 + int((most - 4) * r.random() ** 2)
    wide = 1 + r.randrange(6)
    # All naps together last a second or two.
    longest = max(20, min(300, 2500 * wide // n))
    plan = []
    answers = {}  # of operations with a JSON response: the member v

    def nap():
        return "%d.%03d" % divmod(r.randrange(longest), 1000)

    def edge(of):
        on = r.choices(["success", "always", "failure"], [16, 2, 2])[0]
        if of in answers and on == "success" and r.random() < 0.4:
            # One in four does not hold.
            return {"op": of, "when": {"pointer": "/v", "equals": answers[of] + (r.random() < 0.25)}}
        return of if on == "success" else {"op": of, "on": on}

    def grow():
        """Lines that ask for more."""
        lines = []
        for i in range(1 + r.randrange(3)):
            how = r.choice(["", "--independent", "--key k%d" % i])
            child = (nap(), r.choice([0, 0, 1, 2]), r.choice([0, 0, 0, 0, 3]))
            lines.append("ask %s 'child %s %d %d'" % ((how,) + child))
        return lines

    def context(i):
        lines = ["change set /op%d %d" % (i, r.randrange(100))]
        if r.random() < 0.5:
            lines.append("change append /list '\"op%d\"'" % i)
        if r.random() < 0.3:
            lines += ["change set /gone%d 1" % i, "change remove /gone%d" % i]
        return lines

    def operation(i):
        op = {"id": "op%d" % i}
        needs = sorted(set(r.randrange(i) for _ in range(r.randrange(min(i, 3) + 1)))) if i else []
        if needs:
            op["needs"] = [edge("op%d" % k) for k in needs]
        script = ["nap %s" % nap()]
        what = r.choices(
            ["plain", "fails", "tries", "gives up", "once", "grows", "json", "json grows", "weak", "asks",
             "says", "list", "fixed", "told", "changes"],
            [16, 6, 8, 3, 12, 10, 10, 6, 8, 5, 4, 8, 3, 8, 12])[0]
        end = ["answer"]
        if what == "fails":
            end.append('[ -e "$RUNLOG.mended" ]' if kind == "mend" and r.random() < 0.6 else "exit 3")
        elif what == "tries":
            op["retry"] = {"attempts": 3, "backoff": "20ms"}
            script += context(i)
            script.append('[ "$FLOWSUP_ATTEMPT" -ge 2 ] || { change append /list \'"never"\'; exit 7; }')
        elif what == "gives up":
            op["retry"] = {"attempts": 2, "backoff": "10ms"}
            script += context(i)
            end.append("exit 4")
        elif what == "once" and kind == "once":
            op["idempotent"] = False
            if r.random() < 0.5:
                script += context(i)
        elif what == "grows":
            script += grow()
        elif what in ("json", "json grows"):
            op["response"] = "json"
            answers[op["id"]] = r.randrange(10)
            more = ""
            if what == "json grows":
                more = (', "spawn": [{"run": "child %s 0 0"}, {"run": "child %s 1 0", "key": "x", "independent": true}]'
                        % (nap(), nap()))
            if r.random() < 0.3:
                more += ', "context": [{"op": "set", "pointer": "/op%d", "value": {"by": "response"}}]' % i
            more = more.replace("child", '. \\"$OPS\\"; child')
            end = ["answer_json '\"v\": %d%s'" % (answers[op["id"]], more)]
        elif what == "weak":
            op["assignee"] = "low"
            script += context(i) if r.random() < 0.5 else []
            end.append('[ "$WHO" = %s ]' % r.choice(["mid", "mid", "high", "nobody"]))
        elif what == "asks":
            op["assignee"] = "low"
            script += grow() if r.random() < 0.5 else []
            script.append('[ "$WHO" != low ] || flowsup emit escalate 2>&3 || exit 9')
        elif what == "says":
            op["assignee"] = "low"
            op["response"] = "json"
            end = ["answer_json '\"v\": 1'\"$([ \"$WHO\" != low ] || echo ', \"escalate\": true')\""]
        elif what == "list":
            op["response"] = "json"
            end = ["echo '%s'" % json.dumps([r.randrange(9) for _ in range(r.randrange(5))])]
        elif what == "fixed":
            op["foreach"] = ["a", "b"][: 1 + r.randrange(2)]
            end.append('echo "$1"')
        elif what == "told":
            op["messages"] = True
            script.insert(0, "take_messages")
        elif what == "changes":
            script += context(i)
        op["run"] = "\n".join(['. "$OPS"'] + script + end)
        plan.append(op)
        if what == "list":
            each = {"id": "op%d-each" % i, "needs": [op["id"]], "foreach": "", "messages": r.random() < 0.5}
            script = ["take_messages"] * each["messages"] + ["nap %s" % nap()]
            script += ["change append /list '\"each\"'"] * (r.random() < 0.5) + ["answer", 'echo "$1"']
            if r.random() < 0.3:
                each["retry"] = {"attempts": 2, "backoff": "10ms"}
                script.append('[ "$FLOWSUP_ATTEMPT" -ge 2 ] || exit 5')
            each["run"] = "\n".join(['. "$OPS"'] + script)
            plan.append(each)

    for i in range(n):
        operation(i)
    needed = {e if isinstance(e, str) else e["op"] for op in plan for e in op.get("needs", [])}
    plan.append({"id": "end", "messages": True, "run": '. "$OPS"\ntake_messages\nanswer',
                 "needs": [{"op": op["id"], "on": "always"} for op in plan if op["id"] not in needed]})
    return {
        "name": "crash", "concurrency": wide, "max_ops": 5000, "reactive": "all", "defaults": {"grace": "1s"},
        "roles": {"low": {"env": {"WHO": "low"}, "escalate_to": "mid"},
                  "mid": {"env": {"WHO": "mid"}, "escalate_to": "high"},
                  "high": {"env": {"WHO": "high"}}},
        "plan": plan}
