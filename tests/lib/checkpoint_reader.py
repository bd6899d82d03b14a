#!/usr/bin/env python3
"""A reader of checkpoints written from flowsup-checkpoint(5) alone, to prove that the page says enough.

    checkpoint_reader.py verdict DIRECTORY   one line of JSON: status, records, digests
    checkpoint_reader.py state DIRECTORY     the state in the canonical encoding, without its generation
    checkpoint_reader.py plan DIRECTORY      whether its plan is one that verify and resume take: yes or no
    checkpoint_reader.py canonical           JSON values on standard input, a line each, in that encoding
    checkpoint_reader.py compare PROGRAM FROM SCRATCH FIRST LAST
                                             copies of a pair with something wrong in them, one for each number:
                                             what PROGRAM says differently of them

It knows nothing of the program, and uses the standard library only.
"""
import hashlib
import json
import os
import random
import re
import shutil
import stat
import subprocess
import sys

sys.setrecursionlimit(10000)
if hasattr(sys, "set_int_max_str_digits"):
    sys.set_int_max_str_digits(0)
BASE, JOURNAL = "checkpoint.json", "checkpoint.json.journal"
FILE_MOST, LINE_MOST, DEPTH_MOST = 1 << 30, 256 << 20, 512
SEQ_MOST = 2**63 - 1


class Refused(Exception):
    pass


def refuse(reason):
    raise Refused(reason)


# ---- JSON ----

def real(text):
    value = float(text)
    if value in (float("inf"), float("-inf")):
        refuse("not_finite")
    return value


def unique(pairs):
    if len({name for name, _ in pairs}) < len(pairs):
        refuse("duplicate_member")
    return dict(pairs)


def depth_of(value):
    most, todo = 0, [(value, 1)]
    while todo:
        v, depth = todo.pop()
        if isinstance(v, (dict, list)):
            most = max(most, depth)
            todo += [(x, depth + 1) for x in (v.values() if isinstance(v, dict) else v)]
    return most


def parse(data, hook=unique):
    try:
        text = data.decode("utf-8")
        value = json.loads(text, object_pairs_hook=hook, parse_float=real,
                           parse_constant=lambda word: refuse("syntax"))
    except RecursionError:
        refuse("too_deep")
    except ValueError:
        refuse("syntax")
    if depth_of(value) > DEPTH_MOST:
        refuse("too_deep")
    return value


def parse_base(data):
    try:
        return parse(data)
    except Refused as e:
        if str(e) != "duplicate_member":
            raise
    # Only files of version 1 and 2 may repeat a name, and `version` itself not even there.
    seen = []

    def top(pairs):
        seen.append([name for name, _ in pairs].count("version"))
        return dict(pairs)

    value = parse(data, top)
    if not isinstance(value, dict) or seen[-1] > 1 or version_of(value) == 3:
        refuse("duplicate_member")
    return value


# ---- Canonical encoding ----

def canonical_real(d):
    if d == 0:
        return "-0.0" if str(d)[0] == "-" else "0.0"
    text = repr(abs(d))  # the fewest digits, laid out in another way
    digits, _, exponent = text.partition("e")
    whole, _, fraction = digits.partition(".")
    x = int(exponent or 0) + len(whole) - 1
    digits = whole + fraction
    x -= len(digits) - len(digits.lstrip("0"))
    digits = digits.strip("0")
    sign = "-" if d < 0 else ""
    if -4 <= x < 16:
        if x < 0:
            return sign + "0." + "0" * (-x - 1) + digits
        digits = digits.ljust(x + 1, "0")
        return sign + digits[:x + 1] + "." + (digits[x + 1:] or "0")
    return sign + digits[0] + ("." + digits[1:] if len(digits) > 1 else "") + "e%d" % x


SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def canonical_string(text):
    out = []
    for c in text:
        n = ord(c)
        if c in SHORT:
            out.append(SHORT[c])
        elif 0x20 <= n <= 0x7e:
            out.append(c)
        elif n < 0x10000:
            out.append("\\u%04x" % n)
        else:
            n -= 0x10000
            out.append("\\u%04x\\u%04x" % (0xd800 + (n >> 10), 0xdc00 + (n & 0x3ff)))
    return '"' + "".join(out) + '"'


def canonical(v):
    if v is None or v is True or v is False:
        return {None: "null", True: "true", False: "false"}[v]
    if isinstance(v, int):
        return str(v)
    if isinstance(v, float):
        return canonical_real(v)
    if isinstance(v, str):
        return canonical_string(v)
    if isinstance(v, list):
        return "[" + ",".join(map(canonical, v)) + "]"
    return "{" + ",".join(canonical_string(k) + ":" + canonical(x) for k, x in v.items()) + "}"


def digest(data):
    return "blake2b:" + hashlib.blake2b(data).hexdigest()


# ---- Checking ----

def is_integer(v):
    return isinstance(v, int) and not isinstance(v, bool)


KINDS = {
    "string": lambda v: isinstance(v, str), "null": lambda v: v is None, "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list), "integer": is_integer, "bool": lambda v: isinstance(v, bool),
    "number": lambda v: is_integer(v) or isinstance(v, float), "any": lambda v: True,
}


def has_type(value, types):
    return any(KINDS[t](value) for t in types.split())


def check(value, must, may, closed, unknown="unknown_member"):
    if not isinstance(value, dict):
        refuse("wrong_type")
    for name, v in value.items():
        types = must.get(name) or may.get(name)
        if types is None and closed:
            refuse(unknown)
        if types is not None and not has_type(v, types):
            refuse("wrong_type")
    if not set(must) <= set(value):
        refuse("missing_member")


PLAN_MUST = {"agent_id": "string", "dep_indices": "array"}
PLAN_MAY = {"assignee": "string null", "node_id": "string", "artifacts": "array null", "id": "string"}
PLAN_MAY.update({name: "any" for name in """run exec instruction needs inherit_context response schema timeout grace
    silence retry gate idempotent keeper context output tty messages leave env cwd umask nice limits foreach item never
    task inputs exit_criteria depends_on modes""".split()})

BOTH = {"result_digest": "string null", "artifacts": "array null", "attempts": "integer null", "turns": "integer null",
        "started_at": "number null", "ended_at": "number null", "response_lossy": "bool null",
        "response_literal": "bool null",
        "output_as": "string object null", "attempt_path": "string null", "usage": "object null",
        "error": "object null", "end": "object null", "conversation": "object string null"}
SPAWNED = {"assignee": "string null", "parent_id": "string null", "escalated_from": "string null",
           "request_key": "string null", "spawn_id": "string integer null",
           "emitter_contains_user_settings": "bool null", "independent": "bool null",
           "artifacts_expected": "array null"}
SPAWNED.update(BOTH)


def check_count(v):
    if v is not None and not (is_integer(v) and 0 <= v <= SEQ_MOST):
        refuse("out_of_range")


def check_path(path, absolute=False):
    if re.search("[\0\ud800-\udfff]", path):
        refuse("bad_path")
    if absolute and path[:1] == "/":
        return
    if path == "" or path[0] == "/" or ".." in path.split("/"):
        refuse("bad_path")


def check_entry(kind, entry):
    identity, other = ("agent_id", "node_id") if kind == "op" else ("node_id", "agent_id")
    if not isinstance(entry, dict):
        refuse("wrong_type")
    if other in entry:
        refuse("foreign_identity")
    if identity not in entry:
        refuse("missing_identity")
    check(entry, {identity: "string", "status": "string", "response": "any"}, BOTH if kind == "op" else SPAWNED, False)
    if entry[identity] == "":
        refuse("missing_identity")
    if entry["status"] not in ("completed", "failed") and not (kind == "spawned" and entry["status"] == "pending"):
        refuse("unknown_status")
    if entry["status"] == "pending" and entry["response"] is not None:
        refuse("pending_response")
    check_count(entry.get("attempts"))
    check_count(entry.get("turns"))
    for artifact in entry.get("artifacts") or []:
        check(artifact, {"path": "string"}, {"size": "integer null", "digest": "string null"}, False)
        check_count(artifact.get("size"))
        check_path(artifact["path"])
    for path in (entry.get("artifacts_expected") or []) if kind == "spawned" else []:
        if not isinstance(path, str):
            refuse("wrong_type")
        check_path(path)
    output = entry.get("output_as")
    if isinstance(output, str) and output != "response":
        refuse("unknown_output")
    if isinstance(output, dict):
        check(output, {"file": "string", "digest": "string"}, {"size": "integer null"}, False)
        check_count(output.get("size"))
        check_path(output["file"], True)
    if isinstance(entry.get("attempt_path"), str):
        check_path(entry["attempt_path"], True)


def version_of(root):
    if not isinstance(root, dict):
        refuse("wrong_type")
    version = root.get("version", 1)
    if not is_integer(version) or version not in (1, 2, 3):
        refuse("unknown_version")
    if version < 3 and "generation" in root and "journal_seq" in root:
        refuse("disguised_base")
    return version


def check_generation(text):
    if not re.fullmatch("[0-9a-f]{32}", text):
        refuse("bad_generation")


def check_base(root, version):
    always = {"plan": "array", "flow_context": "object", "ops": "object"}
    sometimes = {"session_id": "string null", "prompt": "string null", "config": "object", "spawned": "array"}
    if version == 3:
        check(root, dict(always, version="integer", generation="string", journal_seq="integer", **sometimes),
              {"max_spawn": "integer null"}, True)
        check_generation(root["generation"])
        if root["journal_seq"] != 0:
            refuse("bad_journal_seq")
    else:
        check(root, always, dict(sometimes, max_spawn="integer null"), False)
        known = set(always) | set(sometimes) | {"max_spawn", "version"}
        if depth_of(root.get("config", {}).get("v2_members")) > 508:
            refuse("too_deep")
        if any(depth_of(v) > 509 for name, v in root.items() if name not in known):
            refuse("too_deep")
    for entry in root["plan"]:
        check(entry, PLAN_MUST, PLAN_MAY, True, "unknown_plan_member")
        if not all(is_integer(i) for i in entry["dep_indices"]):
            refuse("wrong_type")
    nodes = [e["node_id"] for e in root["plan"] if "node_id" in e]
    if len(set(nodes)) < len(nodes):
        refuse("repeated_identity")
    for name, entry in root["ops"].items():
        check_entry("op", entry)
        if name != entry["agent_id"]:
            refuse("misplaced_entry")
    seen = set()
    for entry in root.get("spawned", []):
        check_entry("spawned", entry)
        if entry["node_id"] in seen:
            refuse("repeated_identity")
        seen.add(entry["node_id"])
    if version < 3 and any(e.get("escalated_from") is not None for e in root.get("spawned", [])) \
            and not any(e["status"] == "pending" for e in root["spawned"]) \
            and not any("node_id" in e for e in root["plan"]):
        refuse("unguarded_splice")


# ---- What verify and resume ask beyond the file ----

def is_file(entry):
    """Whether the response of an entry stands for the file that holds it."""
    response = entry["response"]
    return entry.get("response_literal") is not True and isinstance(response, dict) and isinstance(response.get("file"), str) and "size" in response \
        and isinstance(response.get("digest"), str) and response["digest"].startswith("blake2b:")


def plan_fits(state, version):
    plan = state["plan"]
    names = [e["agent_id"] for e in plan]
    waits = [e["dep_indices"] for e in plan]
    if not plan or "" in names or len(set(names)) < len(names):
        return False
    for i, deps in enumerate(waits):
        if i in deps or len(set(deps)) < len(deps) or not all(0 <= d < len(plan) for d in deps):
            return False
    left = set(range(len(plan)))
    while left:
        free = {i for i in left if not left & set(waits[i])}
        if not free:
            return False
        left -= free
    added = state.get("spawned", []) if version > 1 else []  # of version 1 verify passes over them
    return set(state["ops"]) <= set(names) | {e["spawn_id"] for e in added if isinstance(e.get("spawn_id"), str)}


# ---- Patches ----

def pointer(text):
    if text == "":
        return []
    if text[0] != "/" or re.search("~(?![01])", text):
        refuse("bad_patch")
    return [t.replace("~1", "/").replace("~0", "~") for t in text[1:].split("/")]


def index_of(token):
    return int(token) if re.fullmatch("0|[1-9][0-9]*", token) else None


def child(container, token):
    if isinstance(container, list):
        i = index_of(token)
        if i is not None and i < len(container):
            return i
    elif isinstance(container, dict) and token in container:
        return token
    refuse("inapplicable_patch")


def check_operation(op):
    if not isinstance(op, dict) or op.get("op") not in ("add", "remove", "replace") \
            or not isinstance(op.get("path"), str) \
            or set(op) != ({"op", "path"} if op["op"] == "remove" else {"op", "path", "value"}):
        refuse("bad_patch")
    steps = pointer(op["path"])
    depth = depth_of(op.get("value"))
    if depth > 0 and depth + len(steps) > 511:
        refuse("too_deep")
    return op["op"], steps, op.get("value")


def apply_patch(context, patch):
    operations = [check_operation(op) for op in patch]
    context = json_copy(context)
    for verb, steps, value in operations:
        if not steps:
            if verb != "replace" or not isinstance(value, dict):
                refuse("inapplicable_patch")
            context = json_copy(value)
            continue
        at = context
        for token in steps[:-1]:
            at = at[child(at, token)]
        last = steps[-1]
        if verb == "add":
            if isinstance(at, list):
                i = len(at) if last == "-" else index_of(last)
                if i is None or i > len(at):
                    refuse("inapplicable_patch")
                at.insert(i, json_copy(value))
            elif isinstance(at, dict) and last not in at:
                at[last] = json_copy(value)
            else:
                refuse("inapplicable_patch")
        elif verb == "remove":
            del at[child(at, last)]
        else:
            at[child(at, last)] = json_copy(value)
    return context


def json_copy(v):
    if isinstance(v, dict):
        return {k: json_copy(x) for k, x in v.items()}
    return [json_copy(x) for x in v] if isinstance(v, list) else v


# ---- The pair ----

def read_file(directory, name):
    try:
        fd = os.open(os.path.join(directory, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        refuse("missing_base" if name == BASE else "missing_journal")
    except OSError:
        refuse("not_regular")
    with open(fd, "rb", closefd=True) as f:
        st = os.fstat(fd)
        if not stat.S_ISREG(st.st_mode):
            refuse("not_regular")
        if st.st_uid != os.geteuid():
            refuse("wrong_owner")
        if st.st_mode & 0o022:
            refuse("wrong_mode")
        if st.st_nlink != 1:
            refuse("many_links")
        if st.st_size > FILE_MOST:
            refuse("too_large")
        return f.read()


class Checkpoint:
    def __init__(self):
        self.records, self.stale, self.tail, self.state, self.version = None, None, None, None, None


def apply_line(c, line):
    if len(line) > LINE_MOST:
        refuse("too_large")
    record = parse(line)
    if not isinstance(record, dict):
        refuse("wrong_type")
    if "version" in record and not (is_integer(record["version"]) and record["version"] == 3):
        refuse("unknown_version")
    check(record, {"version": "integer", "generation": "string", "seq": "integer", "kind": "string", "entry": "object",
                   "flow_context": "null object"}, {}, True)
    check_generation(record["generation"])
    if not 1 <= record["seq"] <= SEQ_MOST:
        refuse("bad_sequence")
    kind, entry, context = record["kind"], record["entry"], record["flow_context"]
    if kind not in ("op", "spawned"):
        refuse("unknown_kind")
    if context is not None:
        check(context, {"patch": "array"}, {}, True)
    if depth_of(entry) > 510:
        refuse("too_deep")
    check_entry(kind, entry)
    if record["generation"] != c.state["generation"]:
        c.stale += 1
        return
    if record["seq"] != c.records + 1:
        refuse("sequence_gap" if record["seq"] > c.records + 1 else "sequence_repeat")
    if context is not None:
        c.state["flow_context"] = apply_patch(c.state["flow_context"], context["patch"])
    if kind == "op":
        c.state["ops"][entry["agent_id"]] = entry
    else:
        same = [i for i, e in enumerate(c.state["spawned"]) if e["node_id"] == entry["node_id"]]
        if same:
            c.state["spawned"][same[0]] = entry
        else:
            c.state["spawned"].append(entry)
    c.records += 1


def load(directory, c):
    root = parse_base(read_file(directory, BASE))
    version = version_of(root)
    check_base(root, version)
    c.version = version
    if version < 3:
        c.state = root
        return
    data = read_file(directory, JOURNAL)
    c.state, c.records, c.stale, c.tail = root, 0, 0, None
    *lines, tail = data.split(b"\n")
    for line in lines:
        apply_line(c, line)
    c.tail = len(tail)


def verdict(directory):
    c = Checkpoint()
    result = {"status": "clean", "reason": None}
    try:
        load(directory, c)
        if c.stale:
            result = {"status": "recovered_prefix", "reason": "stale_records"}
        if c.tail:
            result = {"status": "recovered_prefix", "reason": "torn_tail"}
    except Refused as e:
        result = {"status": "refused", "reason": str(e)}
    result.update(records_applied=c.records, stale_records=c.stale, discarded_tail_bytes=c.tail)
    right = wrong = absent = files = 0
    if result["status"] != "refused":
        for entry in list(c.state["ops"].values()) + c.state.get("spawned", []):
            if entry["status"] == "pending":
                continue
            files += is_file(entry)
            wanted = entry.get("result_digest")
            if wanted is None:
                absent += 1
            elif wanted == digest(canonical(entry["response"]).encode("ascii")):
                right += 1
            else:
                wrong += 1
        result.update(files=files, right=right, not_recorded=absent, wrong=wrong)
    return result, c


# ---- Damage ----

VALUES = [None, True, 0, -1, 1.0, 3, 2**63, "", "x", "op", "/a", "../b", "completed", "failed", "pending", [], {},
          [1], {"patch": []}, {"path": "p"}, {"file": "f", "digest": "d"},
          {"file": "f", "size": 1, "digest": "blake2b:"}, "a\0"]


def members(value, path=()):
    if isinstance(value, (dict, list)):
        for k, v in (value.items() if isinstance(value, dict) else enumerate(value)):
            yield path + (k,)
            yield from members(v, path + (k,))


def mutate_value(r, value):
    places = list(members(value))
    path = r.choice(places)
    at = value
    for step in path[:-1]:
        at = at[step]
    what = r.randrange(4)
    if what == 0:
        del at[path[-1]]
    elif what == 1:
        at[path[-1]] = r.choice(VALUES)
    elif what == 2 and isinstance(at, dict):
        at[r.choice(["agent_id", "node_id", "attempts", "artifacts", "output_as", "escalated_from", "generation",
                     "unknown", "turns", "response_literal", "parent_id", "spawn_id"])] = r.choice(VALUES)
    else:
        source = value
        for step in r.choice(places):
            source = source[step]
        at[path[-1]] = json_copy(source)
    return value


def mutate_bytes(r, data):
    data = bytearray(data)
    for _ in range(r.randrange(1, 3)):
        at = r.randrange(len(data) + 1)
        what = r.randrange(4)
        if what == 0:
            data[at:at + r.randrange(1, 4)] = b""
        elif what == 1:
            data[at:at] = bytes([r.choice(b'{}[],:"\\ \n\t0123456789.eE-u/~tfn\x00\x7f\x80\xc3\xed')])
        elif what == 2:
            other = r.randrange(len(data) + 1)
            data[at:at] = data[other:other + r.randrange(1, 40)]
        else:
            del data[at:]
    return bytes(data)


def mutate(seed, source, target):
    r = random.Random(seed)
    base = read_file(source, BASE)
    try:
        journal = read_file(source, JOURNAL)
    except Refused:
        journal = None
    what = r.randrange(6)
    lines = journal.split(b"\n")[:-1] if journal else []
    if what == 0:
        base = mutate_bytes(r, base)
    elif what == 1 or not lines:
        base = canonical(mutate_value(r, parse(base))).encode() + b"\n"
    elif what == 2:
        journal = mutate_bytes(r, journal)
    elif what == 3:
        i, j = r.randrange(len(lines)), r.randrange(len(lines))
        if r.randrange(2):
            lines[i], lines[j] = lines[j], lines[i]
        else:
            del lines[i]
        journal = b"".join(line + b"\n" for line in lines)
    else:
        i = r.randrange(len(lines))
        lines[i] = canonical(mutate_value(r, parse(lines[i]))).encode()
        journal = b"".join(line + b"\n" for line in lines)
    os.makedirs(target, mode=0o700)
    for name, data in ((BASE, base), (JOURNAL, journal)):
        if data is not None:
            with open(os.open(os.path.join(target, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as f:
                f.write(data)


def told(program, directory):
    done = subprocess.run([program, "checkpoint", "verify", "--json", directory], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False)
    said = json.loads(done.stdout.splitlines()[0])
    report = said["checkpoint_recovery"]
    result = {name: report[name] for name in ("status", "reason", "records_applied", "stale_records",
                                              "discarded_tail_bytes")}
    if said["result_digests"] is not None:
        digests = said["result_digests"]
        files = said["response_files"]
        result["files"] = files["right"] + files["not_recorded"] + len(files["absent"]) + len(files["wrong"])
        result["problems"] = len(said["problems"])
        result.update(right=digests["right"], not_recorded=digests["not_recorded"], wrong=len(digests["wrong"]))
    return result


def compare(program, source, scratch, first, last):
    counts, differ = {}, 0
    for seed in range(first, last + 1):
        target = os.path.join(scratch, "m%d" % seed)
        mutate(seed, source, target)
        mine, c = verdict(target)
        theirs = told(program, target)
        # A flow can be wrong in other ways than its plan's; where the plan is, it is.
        problems = theirs.pop("problems", 0)
        missed = mine["status"] != "refused" and problems == 0 and not plan_fits(c.state, c.version)
        counts[theirs["status"]] = counts.get(theirs["status"], 0) + 1
        # In which order the checks come is nobody's business, so reasons may differ.
        if dict(mine, reason=None) == dict(theirs, reason=None) and not missed:
            shutil.rmtree(target)
        else:
            differ += 1
            print("# %d: the page: %s%s; the program: %s" % (seed, mine, ", no plan" if missed else "", theirs))
    print(" ".join("%s %d" % item for item in sorted(counts.items())))
    return differ == 0


def main(words):
    if words[0] == "verdict":
        print(json.dumps(verdict(words[1])[0]))
    elif words[0] == "state":
        state = verdict(words[1])[1].state
        for name in ("version", "generation", "journal_seq"):
            state.pop(name, None)
        print(canonical(dict(sorted(state.items()))))
    elif words[0] == "plan":
        c = verdict(words[1])[1]
        print("yes" if plan_fits(c.state, c.version) else "no")
    elif words[0] == "canonical":
        for line in sys.stdin.buffer:
            print(canonical(parse(line)))
    elif words[0] == "compare":
        return 0 if compare(words[1], words[2], words[3], int(words[4]), int(words[5])) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
