#!/usr/bin/env bash
# flowsup checkpoint: show, verify, export, migrate and compact, on a run and on copies of it.
. "$(dirname "$0")/lib.sh"

exits() { # NAME WANTED COMMAND...
	local name=$1 wanted=$2
	shift 2
	"$@" >"$T/out" 2>"$T/err" </dev/null
	equal "$name" "$wanted" $?
}
digest() { cat "$1"/checkpoint.json "$1"/checkpoint.json.journal 2>/dev/null | cksum; }

cat >"$T/flow.yaml" <<'DOC'
name: saved
plan:
  - id: one
    run: echo SECRET-response; echo made > "$FLOWSUP_ARTIFACTS/made.txt"
    artifacts: [made.txt]
  - id: two
    needs: [one]
    run: cat "$FLOWSUP_DEP_one"
DOC
run=$("$FLOWSUP" start "$T/flow.yaml")
check "the run completes" wait_until status_is "$run" completed
dir=$FLOWSUP_HOME/runs/$run

exits "a clean checkpoint verifies" 0 "$FLOWSUP" checkpoint verify "$run"
matches "verify counts result digests" 'result digests +2 right' "$(cat "$T/out")"
matches "verify counts artifacts" 'artifacts +1 right' "$(cat "$T/out")"
matches "verify says what it cannot tell" 'not covered' "$(cat "$T/out")"
exits "show works" 0 "$FLOWSUP" checkpoint show "$run"
one=$("$FLOWSUP" start --wait -- true 2>/dev/null)
matches "it counts one as one" "1 of 1 planned operation has an outcome, 0 spawned entries, 0 members" "$("$FLOWSUP" checkpoint show "$one")"
equal "and shows no response" 0 "$(grep -c SECRET "$T/out")"
exits "verify works on a path" 0 "$FLOWSUP" checkpoint verify "$dir"
exits "and on the file itself, with --json" 0 "$FLOWSUP" checkpoint verify --json "$dir/checkpoint.json"
equal "the report says clean" clean "$(json "$(cat "$T/out")" status)"

exits "export copies" 0 "$FLOWSUP" checkpoint export "$run" "$T/copy"
equal "into files that only we can read" 600 "$(stat -c %a "$T/copy/checkpoint.json")"
exits "a copy verifies without what was not copied" 0 "$FLOWSUP" checkpoint verify "$T/copy"
matches "which is said" 'artifacts +0 right, 1 not in this copy, so not verified' "$(cat "$T/out")"
exits "also in JSON" 0 "$FLOWSUP" checkpoint verify --json "$T/copy"
matches "with its name" '"artifacts":\{"right":0,"not_recorded":0,"absent":\["one: made.txt"\],"wrong":\[\]\}' "$(cat "$T/out")"
mkdir -p "$T/copy/artifacts/one" && echo other >"$T/copy/artifacts/one/made.txt"
exits "what is there and wrong is no copy that is incomplete" 4 "$FLOWSUP" checkpoint verify "$T/copy"
matches "and named" 'artifacts +WRONG +one: made.txt' "$(cat "$T/out")"
rm -r "$T/copy/artifacts"
mv "$dir/artifacts/one/made.txt" "$T/made.txt"
exits "in the run's own directory a file that is missing is lost" 4 "$FLOWSUP" checkpoint verify "$run"
matches "and named so" 'artifacts +MISSING +one: made.txt' "$(cat "$T/out")"
exits "whatever names the run" 4 "$FLOWSUP" checkpoint verify "$dir/checkpoint.json"
judged_alike() { # WHAT: something recorded does not fit
	local before
	before=$(digest "$dir")
	exits "export writes what is there: $1" 4 "$FLOWSUP" checkpoint export "$run" "$T/judged"
	matches "says so" "^flowsup: written as it is: $1" "$(cat "$T/err")"
	equal "with what names it" "hint: flowsup checkpoint verify $run   # names each" "$(grep '^hint' "$T/err")"
	check "and it is there" test -s "$T/judged/checkpoint.json"
	rm -r "$T/judged"
	exits "also on standard output" 4 "$FLOWSUP" checkpoint export --json "$run"
	matches "whole" '^\{"version":3' "$(cat "$T/out")"
	exits "compact does not" 4 "$FLOWSUP" checkpoint compact "$run"
	matches "and says that too" "^flowsup: left as it was: $1" "$(cat "$T/err")"
	equal "nothing is changed" "$before" "$(digest "$dir")"
}
judged_alike '1 file is missing'
mv "$T/made.txt" "$dir/artifacts/one/made.txt"
cp "$dir/checkpoint.json.journal" "$T/journal"
sed 's/SECRET-response/secret-response/' "$T/journal" >"$dir/checkpoint.json.journal"
exits "a response that does not fit its digest is refused" 4 "$FLOWSUP" checkpoint verify "$run"
judged_alike '2 digests do not fit what is stored'
cp "$T/journal" "$dir/checkpoint.json.journal"
for who in "$run" "$dir" "$dir/checkpoint.json"; do
	chmod 777 "$dir"
	exits "others may write there: ${who##*/}" 78 "$FLOWSUP" checkpoint verify "$who"
	hint=$(sed -n 's/^hint: //p' "$T/err")
	matches "the hint can be pasted from anywhere" '^chmod go-w /' "$hint"
	sh -c "cd / && $hint"
	exits "and mends it" 0 "$FLOWSUP" checkpoint verify "$who"
done
chmod 777 "$dir"
exits "a resume says so too" 78 "$FLOWSUP" resume --dry-run "$run"
chmod 700 "$dir"
mkdir -m 777 "$T/open" && chmod 777 "$T/open"
exits "export into a directory that others may write to is refused" 78 "$FLOWSUP" checkpoint export "$run" "$T/open"
equal "with what mends it" "hint: chmod go-w $T/open" "$(grep '^hint' "$T/err")"
equal "and nothing was written" "" "$(ls -A "$T/open")"
sh -c "$(sed -n 's/^hint: //p' "$T/err")"
exits "which lets it be" 0 "$FLOWSUP" checkpoint export "$run" "$T/open"
exits "export does not replace" 73 "$FLOWSUP" checkpoint export "$run" "$T/copy"
mkdir "$T/copy-2"
matches "and says what can be had" "hint: flowsup checkpoint export $run $T/copy-3\$" \
	"$("$FLOWSUP" checkpoint export "$run" "$T/copy" 2>&1)"
exits "export to nowhere" 2 "$FLOWSUP" checkpoint export "$run"
matches "has a hint" "hint: flowsup checkpoint export $run ./copy\$" "$("$FLOWSUP" checkpoint export "$run" 2>&1)"
"$FLOWSUP" checkpoint export --json "$run" >"$T/a"
"$FLOWSUP" checkpoint export --json "$T/copy" >"$T/b"
equal "copy and run hold the same state" "$(sed 's/"generation":"[0-9a-f]*",//' "$T/a")" \
	"$(sed 's/"generation":"[0-9a-f]*",//' "$T/b")"

mkdir "$T/torn" && cp "$dir"/checkpoint.json* "$T/torn" && chmod 600 "$T"/torn/*
printf '{"version":3,' >>"$T/torn/checkpoint.json.journal"
cp -r "$dir/artifacts" "$T/torn/"
exits "a torn tail is recovered" 6 "$FLOWSUP" checkpoint verify "$T/torn"
matches "and reported on standard error" 'torn_tail' "$(cat "$T/err")"
printf '\n' >>"$T/torn/checkpoint.json.journal"
before=$(digest "$T/torn")
exits "a malformed line is refused" 4 "$FLOWSUP" checkpoint verify "$T/torn"
exits "also in JSON" 4 "$FLOWSUP" checkpoint verify --json "$T/torn"
matches "with all members" '"verdict":"refused","problems":\[\],"result_digests":null,"response_files":null,"outputs":null,"artifacts":null\}' \
	"$(cat "$T/out")"
exits "show refuses it too" 4 "$FLOWSUP" checkpoint show "$T/torn"
exits "and export" 4 "$FLOWSUP" checkpoint export "$T/torn" "$T/never"
exits "and compact" 4 "$FLOWSUP" checkpoint compact "$T/torn"
equal "and the files stay as they are" "$before" "$(digest "$T/torn")"
check "and nothing half-made is left" [ ! -e "$T/never" ]

mkdir "$T/edited" && cp "$dir"/checkpoint.json* "$T/edited" && chmod 600 "$T"/edited/*
cp -r "$dir/artifacts" "$T/edited/"
sed -i 's/"response":"SECRET/"response":"SECReT/' "$T/edited/checkpoint.json.journal"
exits "an edited response is found by its digest" 4 "$FLOWSUP" checkpoint verify "$T/edited"
matches "and named" 'result digests +WRONG +one' "$(cat "$T/out")"

# What writers that were killed left in staging, and what is none of theirs.
staging=$dir/staging
left=0123456789abcdef0123456789abcde
mkdir -p -m 700 "$staging"
(umask 077 && : >"$staging/${left}0" && : >"$staging/${left}1" && : >"$staging/other" && : >"$staging/${left}2" && : >"$T/two")
ln "$staging/${left}2" "$T/linked"
(umask 022 && : >"$staging/${left}3")
ln -s "$T/two" "$staging/${left}4"
mkdir "$staging/${left}5"
stays="${left}2 ${left}3 ${left}4 ${left}5 other"
mkdir -m 700 "$T/unlocked" && cp -rp "$dir"/checkpoint.json* "$T/unlocked" && cp -rp "$staging" "$T/unlocked/staging"
exits "compact folds the journal" 0 "$FLOWSUP" checkpoint compact "$run"
equal "what was left in staging is gone, and nothing else" "$stays" "$(ls "$staging" | paste -sd' ')"
exits "where no lock tells that nobody writes" 0 "$FLOWSUP" checkpoint compact "$T/unlocked"
check "it stays" [ -e "$T/unlocked/staging/${left}0" ]
equal "which is empty then" 0 "$(stat -c %s "$dir/checkpoint.json.journal")"
exits "and it still verifies" 0 "$FLOWSUP" checkpoint verify "$run"
"$FLOWSUP" checkpoint export --json "$run" >"$T/b"
equal "with the same state" "$(sed 's/"generation":"[0-9a-f]*",//' "$T/a")" \
	"$(sed 's/"generation":"[0-9a-f]*",//' "$T/b")"

# Base and journal of two runs: what only the journal holds is nowhere else.
other=$("$FLOWSUP" start "$T/flow.yaml")
check "another run completes" wait_until status_is "$other" completed
mkdir -m 700 "$T/mixed" && cp -p "$dir/checkpoint.json" "$FLOWSUP_HOME/runs/$other/checkpoint.json.journal" "$T/mixed"
before=$(digest "$T/mixed")
exits "compact of a base with another run's journal is refused" 4 "$FLOWSUP" checkpoint compact "$T/mixed"
matches "and says why" 'outcomes that are not in .checkpoint.json.' "$(cat "$T/err")"
matches "with what was skipped" '2 records of another generation skipped' "$(cat "$T/err")"
matches "and what can be had" "hint: flowsup checkpoint export $T/mixed " "$(cat "$T/err")"
equal "and nothing was changed" "$before" "$(digest "$T/mixed")"
exits "a journal whose outcomes the base holds may go" 6 sh -c "
	cp -p '$FLOWSUP_HOME/runs/$other/checkpoint.json.journal' '$T/journal' &&
	'$FLOWSUP' checkpoint compact '$other' && cp -p '$T/journal' '$FLOWSUP_HOME/runs/$other/checkpoint.json.journal' &&
	'$FLOWSUP' checkpoint compact '$other'"
exits "and what is left is clean" 0 "$FLOWSUP" checkpoint verify "$other"

# A worker that has ended its run holds the lock for a moment more.
if command -v python3 >/dev/null; then
	cat >"$T/hold.py" <<'P'
import fcntl, os, struct, subprocess, sys, time
lock = os.open(sys.argv[1], os.O_RDWR)
def move(kind):
    fcntl.fcntl(lock, 37, struct.pack("hhqqi4x", kind, 0, 0, 0, 0)) # F_OFD_SETLK
def looks(pid):
    try:
        return any(os.path.samefile("/proc/%d/fd/%s" % (pid, fd), sys.argv[1]) for fd in os.listdir("/proc/%d/fd" % pid))
    except OSError:
        return False
for _ in range(20): # it may be looked away from for longer than it waits
    move(fcntl.F_WRLCK)
    p = subprocess.Popen(sys.argv[2:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while p.poll() is None and not looks(p.pid): time.sleep(0.005)
    move(fcntl.F_UNLCK)
    if p.wait() == 0: sys.exit(0)
sys.exit(1)
P
	exits "compact waits for a worker that is about to leave" 0 \
		python3 "$T/hold.py" "$dir/worker.lock" "$FLOWSUP" checkpoint compact "$run"
else
	skip "python3 is not installed"
fi

exits "export writes version 2" 0 "$FLOWSUP" checkpoint export "$run" "$T/v2" --checkpoint-format 2
matches "which says so" '^\{"version":2,' "$(head -c 20 "$T/v2/checkpoint.json")"
check "and has no journal" [ ! -e "$T/v2/checkpoint.json.journal" ]
before=$(digest "$T/v2")
exits "migrate writes version 3" 0 "$FLOWSUP" checkpoint migrate "$T/v2" "$T/v3"
equal "and leaves its source" "$before" "$(digest "$T/v2")"
exits "migrate of version 3 is refused" 4 "$FLOWSUP" checkpoint migrate "$T/v3" "$T/v4"
mkdir -m 777 "$T/v5" && chmod 777 "$T/v5"
exits "so is migrate to where others may write" 78 "$FLOWSUP" checkpoint migrate "$T/v2" "$T/v5"
for version in v2 v3; do
	mkdir -m 700 "$T/printed.$version"
	(umask 077; "$FLOWSUP" checkpoint export --json "$T/$version" >"$T/printed.$version/checkpoint.json"
		: >"$T/printed.$version/checkpoint.json.journal")
	exits "what export --json prints of $version is a base" 0 "$FLOWSUP" checkpoint verify "$T/printed.$version"
done
exits "compact of version 2 is refused" 4 "$FLOWSUP" checkpoint compact "$T/v2"
exits "what is not there is said" 2 "$FLOWSUP" checkpoint verify "$T/nowhere"
exits "a directory without a checkpoint too" 2 "$FLOWSUP" checkpoint verify "$T"

slow=$("$FLOWSUP" start -- sh -c "while [ ! -e '$T/go' ]; do sleep 0.05; done")
has_base() { [ -e "$FLOWSUP_HOME/runs/$slow/checkpoint.json" ]; }
check "a run is going on" wait_until has_base
exits "a live run can be verified" 0 "$FLOWSUP" checkpoint verify "$slow"
exits "but not compacted" 3 "$FLOWSUP" checkpoint compact "$slow"
: >"$T/go"
check "and it completes" wait_until status_is "$slow" completed

plain=$("$FLOWSUP" start --checkpoint-format 2 -- true)
check "a run with version 2 completes" wait_until status_is "$plain" completed
matches "and has written version 2" '^\{"version":2,' \
	"$(head -c 20 "$FLOWSUP_HOME/runs/$plain/checkpoint.json")"
exits "which verifies" 0 "$FLOWSUP" checkpoint verify "$plain"
cat >"$T/adds.yaml" <<DOC
reactive: all
plan:
  - {id: a, run: "'$FLOWSUP' emit spawn --run 'echo c'; exec sleep 100"}
DOC
adds=$("$FLOWSUP" start "$T/adds.yaml")
is_added() { grep -q '"pending"' "$FLOWSUP_HOME/runs/$adds/checkpoint.json.journal"; }
check "something is added" wait_until is_added
kill -KILL "$(worker_pid "$adds")"
check "and the worker dies" wait_until status_is "$adds" crashed
exits "a checkpoint with a pending entry verifies" 0 "$FLOWSUP" checkpoint verify "$adds"
equal "which has no outcome to verify" 0 "$(grep -c 'result digests' "$T/out")"
exits "also in JSON" 0 "$FLOWSUP" checkpoint verify --json "$adds"
matches "it is not counted" '"result_digests":\{"right":0,"not_recorded":0,' "$(cat "$T/out")"
exits "show shows it" 0 "$FLOWSUP" checkpoint show "$adds"
matches "without a response" 'spawned +pending +-$' "$(sed 's/ *$//' "$T/out")"
exits "also in JSON" 0 "$FLOWSUP" checkpoint show --json "$adds"
matches "as null" '"status":"pending",.*"response_bytes":null' "$(cat "$T/out")"
cp -r "$FLOWSUP_HOME/runs/$adds" "$T/lacks"
sed -i 's/"operation":"run",//' "$T/lacks/checkpoint.json.journal"
"$FLOWSUP" checkpoint verify --json "$T/lacks" >"$T/out" 2>"$T/err"
equal "an entry without an operation is one problem" 1 "$(grep -o '"check":' "$T/out" | wc -l)"
matches "and said so" '1 thing recorded does not fit' "$(cat "$T/err")"

cat >"$T/ends.yaml" <<'DOC'
name: ends
plan:
  - {id: fails, run: exit 3}
  - {id: killed, run: "kill -9 $$"}
  - {id: silent, run: "echo no", response: none}
  - {id: late, run: "exec sleep 30", timeout: 200ms}
DOC
ends=$("$FLOWSUP" start "$T/ends.yaml")
check "a run whose operations end in other ways ends" wait_until status_is "$ends" failed
exits "its checkpoint verifies" 0 "$FLOWSUP" checkpoint verify "$ends"
matches "and every outcome has a digest" 'result digests +4 right' "$(cat "$T/out")"

mkdir -m 700 "$T/headless" && echo '{}' >"$T/headless/checkpoint.json.journal"
exits "a journal with records and no base is refused" 4 "$FLOWSUP" checkpoint verify --json "$T/headless"
equal "by its name" missing_base "$(json "$(cat "$T/out")" reason)"
: >"$T/headless/checkpoint.json.journal"
exits "an empty one is what a writer makes first" 2 "$FLOWSUP" checkpoint verify "$T/headless"

printf 'plan:\n  - {id: waits, run: "until test -e %s; do sleep 0.1; done"}\n' "$T/live.go" >"$T/live.yaml"
live=$("$FLOWSUP" start "$T/live.yaml")
check "a run goes on" wait_until status_is "$live" running
check "and has a checkpoint" wait_until test -e "$FLOWSUP_HOME/runs/$live/checkpoint.json"
mv "$FLOWSUP_HOME/runs/$live" "$T/moved"
for what in verify show; do
	exits "its directory is moved: $what" 74 "$FLOWSUP" checkpoint $what "$live"
	equal "no hint ends it" 0 "$(grep -c '^hint' "$T/err")"
	matches "but one that helps" 'note: .*move its directory back, or give the path where it is now' "$(cat "$T/err")"
done
exits "by that path it is found" 0 "$FLOWSUP" checkpoint verify "$T/moved"
mv "$T/moved" "$FLOWSUP_HOME/runs/$live"
touch "$T/live.go"
check "it ends" wait_until status_is "$live" completed failed
plan
