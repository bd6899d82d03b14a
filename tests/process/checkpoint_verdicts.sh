#!/usr/bin/env bash
# What 'checkpoint verify' says of a checkpoint is what a resume says of it: one judgement. Members of the
# base and files beside it are damaged one by one, and both are asked.
. "$(dirname "$0")/lib.sh"

if ! command -v python3 >/dev/null; then
	skip "python3 is not installed"
	plan
	exit 0
fi
cat >"$T/flow.yaml" <<'DOC'
name: judged
plan:
  - id: one
    run: echo hi; echo made > "$FLOWSUP_ARTIFACTS/made.txt"
    artifacts: [made.txt]
  - id: two
    needs: [one]
    response: json
    run: "echo '[1,  2]'"
  - {id: three, needs: [two], run: exit 3}
DOC
run=$("$FLOWSUP" start "$T/flow.yaml")
check "a run fails" wait_until status_is "$run" failed
compacted() { "$FLOWSUP" checkpoint compact "$run" 2>/dev/null; }
check "its checkpoint is one base" wait_until compacted

cat >"$T/judge.py" <<'P'
import copy, json, os, shutil, subprocess, sys
flowsup, run, work = sys.argv[1:4]
home = os.path.join(os.environ["FLOWSUP_HOME"], "runs", run)
whole = os.path.join(work, "whole")
shutil.copytree(home, whole)
base = json.load(open(home + "/checkpoint.json"))
REFUSED, FINE = 4, 0
cases = []

def case(name, wanted):
    return lambda f: cases.append((name, wanted, f))

def member(name, wanted, *path_value):
    *path, last, value = path_value
    def damage(b):
        for step in path:
            b = b[step]
        b[last] = copy.deepcopy(value)
    cases.append((name, wanted, damage))

def entry(name, wanted, key, value):
    member("%s of an outcome" % name, wanted, "ops", "one", key, value)

@case("as it was", FINE)
def _(b): pass
# ---- The plan ----
member("no plan", REFUSED, "plan", [])
for name, deps in (("out of range", [7]), ("below 0", [-1]), ("huge", [2 ** 70]), ("of itself", [1]),
                   ("in a cycle", [2])):
    member("an index " + name, REFUSED, "plan", 1, "dep_indices", deps)
member("two operations of one name", REFUSED, "plan", 1, "agent_id", "one")
member("an operation that is no id", REFUSED, "plan", 2, "agent_id", "a b")
member("a command that is a number", REFUSED, "plan", 2, "run", 7)
member("a time that is none", REFUSED, "plan", 2, "timeout", "soon")
member("an artifact out of its directory", REFUSED, "plan", 0, "artifacts", ["../made.txt"])
member("artifacts that are numbers", REFUSED, "plan", 0, "artifacts", [1])
member("needs of nobody", REFUSED, "plan", 1, "needs", [{"op": "nobody", "on": "always"}])
@case("an operation without a name", REFUSED)
def _(b): del b["plan"][2]["agent_id"]
@case("an outcome of what is not planned", REFUSED)
def _(b): b["plan"].pop()
@case("an outcome under another name", REFUSED)
def _(b): b["ops"]["other"] = b["ops"].pop("one")
@case("an outcome of a stranger", REFUSED)
def _(b): b["ops"]["stranger"] = {"agent_id": "stranger", "status": "completed", "response": 1}
# ---- config ----
member("a deadline that is none", REFUSED, "config", "timeout", "never")
member("roles that are a list", REFUSED, "config", "roles", [])
member("a restart that is a number", REFUSED, "config", "restart", 7)
member("what nobody knows", FINE, "config", "unknown", {"a": [1]})
member("max_spawn that is text", REFUSED, "max_spawn", "x")
member("a context that is a list", REFUSED, "flow_context", [])
# ---- Outcomes ----
entry("turns that is text", REFUSED, "turns", "2")
entry("turns below 0", REFUSED, "turns", -1)
entry("attempt_path that is a number", REFUSED, "attempt_path", 1)
entry("attempt_path that leads out", REFUSED, "attempt_path", "../x")
entry("response_lossy that is text", REFUSED, "response_lossy", "yes")
entry("response_literal that is text", REFUSED, "response_literal", "yes")
entry("attempts below 0", REFUSED, "attempts", -1)
entry("attempts that is text", REFUSED, "attempts", "1")
entry("started_at that is text", REFUSED, "started_at", "now")
entry("usage that is a list", REFUSED, "usage", [])
entry("error that is text", REFUSED, "error", "bad")
entry("conversation that is a number", REFUSED, "conversation", 1)
entry("artifacts that are an object", REFUSED, "artifacts", {})
entry("artifacts that are texts", REFUSED, "artifacts", ["made.txt"])
entry("an artifact without a path", REFUSED, "artifacts", [{"size": 5}])
entry("an artifact out of its directory", REFUSED, "artifacts", [{"path": "../two/x"}])
entry("an artifact of another size", REFUSED, "artifacts", [{"path": "made.txt", "size": 6}])
entry("an artifact without a digest", FINE, "artifacts", [{"path": "made.txt", "size": 5}])
entry("an artifact that is not there", REFUSED, "artifacts", [{"path": "none", "size": 5}])
entry("artifacts that are null", FINE, "artifacts", None)
entry("a digest that is a number", REFUSED, "result_digest", 1)
entry("a digest that is none", REFUSED, "result_digest", "x")
entry("a digest with a NUL", REFUSED, "result_digest", "x\0")
entry("a digest that is null", FINE, "result_digest", None)
entry("another response", REFUSED, "response", "ho\n")
entry("an unknown status", REFUSED, "status", "done")
entry("an unknown member", FINE, "unknown", [1])
for name, value in (("is a word", "x"), ("is empty", {}), ("is a list", []), ("is a number", 1),
                    ("has no digest", {"file": "ops/one.1.out", "size": 3}),
                    ("is of a negative size", {"file": "ops/one.1.out", "size": -1, "digest": "d"}),
                    ("has another digest", {"file": "ops/one.1.out", "size": 3, "digest": "d"}),
                    ("is not there", {"file": "ops/none", "size": 3, "digest": "d"}),
                    ("is a directory", {"file": "ops", "size": 3, "digest": "d"})):
    entry("an output that " + name, REFUSED, "output_as", value)
entry("an output that is null", FINE, "output_as", None)
@case("an output out of the run's directory", REFUSED)
def _(b):
    shutil.move(home + "/ops/two.1.out", home + "/../out")
    b["ops"]["two"]["output_as"]["file"] = "../out"
@case("an output out of it by a link", REFUSED)
def _(b):
    os.mkdir(work + "/elsewhere")
    shutil.copy(home + "/ops/two.1.out", work + "/elsewhere/out")
    os.symlink(work + "/elsewhere", home + "/link")
    b["ops"]["two"]["output_as"]["file"] = "link/out"
@case("an output with an absolute path", FINE)
def _(b): b["ops"]["two"]["output_as"]["file"] = home + "/ops/two.1.out"
@case("an output that is lost", REFUSED)
def _(b): os.unlink(home + "/ops/two.1.out")
@case("an output that was changed", REFUSED)
def _(b): open(home + "/ops/two.1.out", "a").write(" ")
def respond(b, response):
    b["ops"]["one"].update(response=response, result_digest=None)
@case("a response in a file that is lost", REFUSED)
def _(b): respond(b, {"file": "ops/none", "size": 3, "digest": "blake2b:00"})
@case("a response in a file out of the directory", REFUSED)
def _(b): respond(b, {"file": "../out", "size": 3, "digest": "blake2b:00"})
@case("a response that only looks like a file", FINE)
def _(b): respond(b, {"file": "ops/none", "digest": "md5:00"})
# ---- Artifacts ----
artifact = home + "/artifacts/one/made.txt"
@case("an artifact that is lost", REFUSED)
def _(b): os.unlink(artifact)
@case("an artifact that was changed", REFUSED)
def _(b): open(artifact, "w").write("MADE\n")
@case("an artifact that is empty", REFUSED)
def _(b): open(artifact, "w")
@case("an artifact of the contract that no outcome names", REFUSED)
def _(b):
    del b["ops"]["one"]["artifacts"]
    os.unlink(artifact)
@case("an artifact of the contract that no outcome names and is there", FINE)
def _(b): del b["ops"]["one"]["artifacts"]
# ---- What was added ----
added = {"node_id": "0" * 32, "status": "pending", "response": None, "operation": "run", "instruction": "true",
         "assignee": None, "parent_id": base["plan"][0]["node_id"], "spawn_id": "one.s1", "context": None,
         "emitter_workload": "", "emitter_contains_user_settings": True}
def spawned(name, wanted, *more, **changes):
    made = {k: v for k, v in dict(added, **changes).items() if v != "absent"}
    member("an added operation " + name, wanted, "spawned", [made, *more])
spawned("as it should be", FINE)
spawned("without an operation", REFUSED, operation="absent")
spawned("with an unknown operation", REFUSED, operation="dance")
spawned("that does nothing", REFUSED, instruction=7)
spawned("of an unknown parent", REFUSED, parent_id="1" * 32)
spawned("of a parent that is a number", REFUSED, parent_id=1)
spawned("with the name of another", REFUSED, spawn_id="two")
spawned("with a name that is none", REFUSED, spawn_id="a b")
spawned("with a role and no name", REFUSED, assignee="x", spawn_id="absent")
spawned("with the node of another", REFUSED, node_id=base["plan"][1]["node_id"])
spawned("twice", REFUSED, added)
spawned("that replaces nobody", REFUSED, escalated_from="1" * 32)
spawned("that is pending with a response", REFUSED, response=1)
spawned("that expects numbers", REFUSED, artifacts_expected=[1])
spawned("that expects what is elsewhere", REFUSED, artifacts_expected=["../x"])
spawned("that lost its artifact", REFUSED, status="completed", response="", artifacts_expected=["x"])

def ask(*words):
    p = subprocess.run([flowsup, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return p.returncode, p.stdout + p.stderr

bad = 0
for name, wanted, damage in cases:
    shutil.rmtree(home)
    shutil.copytree(whole, home)
    b = copy.deepcopy(base)
    damage(b)
    json.dump(b, open(home + "/checkpoint.json", "w"))
    verify, said = ask("checkpoint", "verify", "--json", run)
    resume, told = ask("resume", "--dry-run", "--retry-failed", "--json", run)
    # Without a look at files and digests, but else the same.
    listed, shown = ask("list", "--check", "--json", "-n", "1")
    if listed == 4 and verify == 0 or listed == 0 and '"problems":[{' in said:
        bad += 1
        print("# %s: list --check %d\n# %s" % (name, listed, shown.strip()))
    told_json = verify == 0 or '"exit_status":%d' % verify in said
    if verify != resume or verify != wanted or not told_json:
        bad += 1
        print("# %s: verify %d, resume %d, wanted %d\n# %s\n# %s" % (name, verify, resume, wanted,
              said.strip().replace("\n", "\n# "), told.strip().replace("\n", "\n# ")))
    shutil.rmtree(work + "/elsewhere", ignore_errors=True)
    if os.path.exists(home + "/../out"): os.unlink(home + "/../out")
print("# %d damaged checkpoints" % len(cases))
sys.exit(bad != 0)
P
check "verify and resume give one verdict of each" python3 "$T/judge.py" "$FLOWSUP" "$run" "$T"

# Whoever has the lock may write: what looks torn may be what is being written, and no resume begins there.
cat >"$T/hold.py" <<'P'
import fcntl, os, struct, subprocess, sys
lock = os.open(sys.argv[1] + "/worker.lock", os.O_RDWR)
fcntl.fcntl(lock, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0)) # F_OFD_SETLK
sys.exit(subprocess.run(sys.argv[2:], stdin=subprocess.DEVNULL).returncode)
P
locked() { # NAME WANTED DIRECTORY COMMAND...
	python3 "$T/hold.py" "$3" "$FLOWSUP" "${@:4}" >"$T/out" 2>"$T/err"
	equal "$1" "$2" $?
}
rm -rf "${FLOWSUP_HOME:?}/runs/${run:?}" && cp -r "$T/whole" "$FLOWSUP_HOME/runs/$run"
copy=$T/copy
mv "$T/whole" "$copy"
sed -i -E 's/"session_id": ?"[0-9a-f]*"/"session_id":"00000000000000000000000000000000"/' "$copy"/*.json
stale='{"version":3,"generation":"00000000000000000000000000000000","seq":1,"kind":"op","entry":{"agent_id":"one","status":"failed","response":1},"flow_context":null}'
runs() { "$FLOWSUP" list --json -n 1000 | wc -l; }
before=$(runs)
for end in 'a torn line' 'stale lines'; do
	[ "$end" = 'a torn line' ] && printf '{"version":3' >"$copy/checkpoint.json.journal" ||
		printf '%s\n' "$stale" >"$copy/checkpoint.json.journal"
	locked "$end below a lock: verify finds it clean" 0 "$copy" checkpoint verify --json "$copy"
	matches "$end: for it is being written" '"status":"clean"' "$(cat "$T/out")"
	locked "$end: show too" 0 "$copy" checkpoint show "$copy"
	for how in '--dry-run --keep-failed' --retry-failed; do
		# shellcheck disable=SC2086
		locked "$end: resume $how does not begin" 4 "$copy" resume $how "$copy"
		matches "$end: and says who writes" "is being written: process [0-9]+ .*hold.py" "$(cat "$T/err")"
		equal "$end: and not that it is recovered" "" "$(cat "$T/out"; grep -E 'torn|stale' "$T/err")"
	done
	"$FLOWSUP" checkpoint verify "$copy" >"$T/out" 2>"$T/err"
	equal "$end without the lock: verify recovers" 6 $?
	"$FLOWSUP" resume --dry-run --retry-failed --json "$copy" >"$T/out" 2>"$T/err"
	matches "$end: and so does resume" '"status":"recovered_prefix"' "$(cat "$T/out")"
done
equal "no run was made" "$before" "$(runs)"
home=$FLOWSUP_HOME/runs/$run
locked "a run whose lock is held is not resumed" 5 "$home" resume --dry-run --retry-failed "$run"
matches "and who has it is said" 'process [0-9]+ .*hold.py.* has its lock' "$(cat "$T/err")"
locked "nor forked" 5 "$home" fork --dry-run --from three "$run"
plan
