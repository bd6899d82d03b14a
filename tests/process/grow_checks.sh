#!/usr/bin/env bash
# What a resume refuses of entries that cannot be rebuilt as they were, or could do more: each with
# its check, its operation and its reason, and no option lifts it; in checkpoints of both versions.
. "$(dirname "$0")/lib_grow.sh"

cat >flow.yaml <<'Y'
reactive: all
roles:
  low: {provider: robot, env: {WHO: low}, escalate_to: mid}
  mid: {provider: robot, env: {WHO: mid}, escalate_to: top}
  top: {provider: robot, env: {WHO: top}}
  more: {provider: robot, args: [-x], env: {WHO: x}}
  reads: {provider: spy, env: {WHO: x}}
plan:
  - {id: other, run: 'true'}
  - {id: a, assignee: low, instruction: 'flowsup emit spawn --instruction "echo child"; flowsup emit spawn --instruction "exit 1"'}
  - {id: b, assignee: low, instruction: 'test $WHO = top'}
Y
cat >"$T/edit.py" <<'P'
import json, os, shutil, sys
shutil.rmtree(sys.argv[2], ignore_errors=True)
shutil.copytree(sys.argv[1], sys.argv[2])
os.makedirs(sys.argv[2] + "/artifacts", 0o700, exist_ok=True)
path = sys.argv[2] + "/checkpoint.json"
d = json.load(open(path))
s, o = d["spawned"], d["ops"]
by = {e["spawn_id"]: e for e in s}
node = {e["agent_id"]: e["node_id"] for e in d["plan"]}
def pending(e):
    for m in ("result_digest", "usage", "error", "artifacts", "started_at", "ended_at", "attempts"):
        e.pop(m, None)
    e.update(status="pending", response=None)
    return e
exec(sys.argv[3])
json.dump(d, open(path, "w"))
P
answer() { # edit, options: the resume's verdict as JSON
	python3 "$T/edit.py" "$T/good" "$T/bad" "$1" || return 1
	shift
	"$FLOWSUP" resume "$T/bad" --dry-run --json "$@" 2>/dev/null
}
accepted() { local name="version $format: $1"; shift; check "$name" grep -q '"accepted":true' <(answer "$@"); }
refused() { # name, check, operation, reason, edit, options
	local name="version $format: $1" found
	found=$(answer "$5" --keep-failed "${@:6}" | python3 -c '
import json, sys
d = json.load(sys.stdin)
hit = [f for f in d["failures"] if f["check"] == int(sys.argv[1]) and f["op"] == sys.argv[2] and sys.argv[3] in f["message"]
       and f["flag"] is None]
print("hit" if hit and not d["accepted"] else json.dumps(d["failures"]))' "$2" "$3" "$4")
	equal "$name" hit "$found"
	[ "$format" = 3 ] || return
	"$FLOWSUP" resume "$T/bad" --keep-failed "${@:6}" >"$T/out" 2>"$T/said"
	equal "$name: people are told the same" "4 no lifting" "$? $(cat "$T/out")$(grep -E "operations? (.*, )?$3(,.*)?: " "$T/said" |
		grep -F "$4" | sed -E 's/.*lifted by.*/lifted/; t; s/.*/no lifting/' | head -1)"
}

for format in 2 3; do
run_flow --checkpoint-format "$format" <flow.yaml
equal "version $format: a run with all kinds of entries" "failed a.s1 a.s2 b.s1 b.s1.s1 a.s2.s1 a.s2.s1.s1" \
	"$(run_status "$RUN") $(spawned '" ".join(sorted((e["spawn_id"] for e in s), key=lambda i: (i.startswith("a.s2."), i)))')"
rm -rf "$T/good"
if [ "$format" = 2 ]; then # an export is of version 3
	mkdir -m 700 "$T/good" && cp -p "$(run_dir)/checkpoint.json" "$T/good"
else
	"$FLOWSUP" checkpoint export "$RUN" "$T/good" >/dev/null
fi
as_of_elsewhere "$T/good" # whose log of attempts would tell more than what is changed
equal "version $format: is that of the file" "$format" "$(json "$(head -c 40 "$T/good/checkpoint.json")" version)"

accepted "as it is" 'pass' --keep-failed
accepted "in another order" 's.reverse()' --keep-failed
accepted "with work that is pending" 'pending(by["a.s1"])' --keep-failed
accepted "with members that nobody knows" 'by["a.s1"]["zeal"] = [1]' --keep-failed

# ---- Check 8 ----
refused "no operation" 8 a.s1 'no "operation"' 'del by["a.s1"]["operation"]'
refused "one that is not known" 8 a.s1 'not known' 'by["a.s1"]["operation"] = "dance"'
refused "an assignee without a spawn_id" 8 "$(spawned 'by["a.s1"]["node_id"]')" 'no "spawn_id"' 'del by["a.s1"]["spawn_id"]'
refused "a parent that is not there" 8 a.s1 '"parent_id" names no operation' 'by["a.s1"]["parent_id"] = "0" * 32'
refused "parents in a circle" 8 a.s1 '"parent_id" names no operation' \
	'by["a.s1"]["parent_id"], by["a.s2"]["parent_id"] = by["a.s2"]["node_id"], by["a.s1"]["node_id"]'
refused "a name that is taken" 8 a 'that of another operation' 'by["a.s1"]["spawn_id"] = "a"'
refused "nothing to do" 8 a.s1 'what is to be done' 'by["a.s1"]["instruction"] = None'
refused "pending without a provenance" 8 a.s1 'emitter_workload' 'del pending(by["a.s1"])["emitter_workload"]'
refused "or without its second half" 8 a.s1 'settings of the user' 'del pending(by["a.s1"])["emitter_contains_user_settings"]'
refused "a role that is not recorded" 8 a.s1 "\"nobody\" is not in the checkpoint, nor in '$T/config/flowsup/roles'" 'pending(by["a.s1"])["assignee"] = "nobody"'
refused "nor that of who asked" 8 a.s1 'not in the checkpoint' \
	'e = pending(by["a.s1"]); e["assignee"] = None; e["emitter_workload"] = "nobody"'
refused "a provider that is not there any more" 8 a.s1 'role low has no provider that could be used' \
	'pending(by["a.s1"]); d["config"]["roles"]["low"]["provider"] = "gone"'
[ "$format" = 2 ] || check "with the command that tells more" grep -q '^hint: flowsup doctor ' "$T/said"
refused "one that could do more" 8 a.s1 'may allow more' 'pending(by["a.s1"])["assignee"] = "more"'
refused "one that reads settings" 8 a.s1 'reads settings' 'pending(by["a.s1"])["assignee"] = "reads"'
accepted "where who asked read them too" \
	'e = pending(by["a.s1"]); e["assignee"] = "reads"; e["emitter_contains_user_settings"] = True' --keep-failed
accepted "without an assignee the recorded role runs it" 'pending(by["a.s1"])["assignee"] = None' --keep-failed
last='by["a.s2.s1.s1"]'
accepted "a failure that stays needs no provenance" "del ${last}[\"emitter_workload\"]" --keep-failed
equal "version $format: one that runs again does" '"accepted":false' \
	"$(answer "del ${last}[\"emitter_workload\"]" --retry-failed | grep -o '"accepted":[a-z]*')"

# ---- Check 9 ----
refused "a witness that leads nowhere" 9 b.s1 '"escalated_from" names no operation' 'by["b.s1"]["escalated_from"] = "0" * 32'
refused "a witness on what is no further try" 9 a.s1 'does not stand for it' 'by["a.s1"]["escalated_from"] = node["other"]'
refused "two further tries in one place" 9 b.s1.s1 'replaces already' 'by["b.s1.s1"]["parent_id"] = by["b.s1.s1"]["escalated_from"] = node["b"]'
refused "a chain with a gap" 9 b.s1.s1 'names no operation' 's.remove(by["b.s1"])'
refused "an emitter that never ran" 9 b.s1 'never started' 'del o["b"]; pending(by["b.s1.s1"]); pending(by["b.s1"])'

# ---- What the last try decides ----
equal "version $format: a failure that another try stands for is none" "" \
	"$(answer 'pass' | python3 -c 'import json,sys; print(" ".join(f["op"] for f in json.load(sys.stdin)["failures"] if f["op"] in ("b", "b.s1", "a.s2", "a.s2.s1")))')"
equal "version $format: the last one is one" "3 a.s2.s1.s1" \
	"$(answer 'pass' | python3 -c 'import json,sys; print(" ".join("%d %s" % (f["check"], f["op"]) for f in json.load(sys.stdin)["failures"]))')"
equal "version $format: and runs again alone" "a.s2.s1.s1" \
	"$(answer 'pass' --retry-failed | python3 -c 'import json,sys; print(" ".join(r["id"] for r in json.load(sys.stdin)["operations"] if r["action"] == "will run"))')"
done
plan
