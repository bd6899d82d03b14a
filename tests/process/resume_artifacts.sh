#!/usr/bin/env bash
# resume: what may have become of an artifact, a response, a run's directory; each is named with its
# operation, its reason and the command that lifts it.
# shellcheck source=lib_resume.sh
. "$(dirname "$0")/lib_resume.sh"

cat >f.json <<-'END'
	{"name": "f", "plan": [
	 {"id": "one", "artifacts": ["d/x"], "run": "echo one >>count; mkdir -p \"$FLOWSUP_ARTIFACTS/d\"; echo some data >\"$FLOWSUP_ARTIFACTS/d/x\"; head -c 1200000 /dev/zero | tr '\\0' a"},
	 {"id": "two", "needs": ["one"], "run": "echo two >>count"},
	 {"id": "side", "run": "echo side >>count"},
	 {"id": "bad", "needs": ["side"], "run": "[ -e good ]"}]}
END
run=$("$FLOWSUP" start f.json --wait 2>"$T/err")
dir=$FLOWSUP_HOME/runs/$run
x=$dir/artifacts/one/d/x
cp "$x" "$T/x"
resume() { "$FLOWSUP" resume "$run" --retry-failed "$@"; }

resume --dry-run >"$T/out" 2>"$T/err"
equal "as it was left it is accepted" 0 $?

# ---- Artifacts: how it is spoilt, what is said ----
while IFS='|' read -r name spoil says; do
	eval "$spoil"
	out=$(resume 2>&1)
	equal "$name: refused" 4 $?
	matches "$name: operation, reason, command" \
		"operation one: its artifact \"d/x\" $says; lifted by: flowsup resume $run --retry-failed --accept-missing-artifacts" "$out"
	matches "$name: all flags in the hint" "hint: flowsup resume $run --retry-failed --accept-missing-artifacts" "$out"
	out=$(resume --dry-run --accept-missing-artifacts 2>/dev/null)
	equal "$name: lifted by its flag" 0 $?
	matches "$name: and run again" "one +will run +runs again" "$out"
	matches "$name: with what needs it" "two +will run +runs again, because one does" "$out"
	matches "$name: and nothing else" "side +replayed" "$out"
	rm -rf "$dir/artifacts/one/d" && mkdir "$dir/artifacts/one/d" && cp "$T/x" "$x"
done <<-'END'
	edited|echo same bytes >"$x"; truncate -s 10 "$x"|has changed since \(its digest differs\)
	truncated|truncate -s 4 "$x"|has 4 bytes, recorded were 10
	emptied|: >"$x"|is empty
	deleted|rm "$x"|is not there
	a directory|rm "$x"; mkdir "$x"|is not a regular file
	a pipe|rm "$x"; mkfifo "$x"|is not a regular file
	a link out of the root|rm "$x"; ln -s "$T/x" "$x"|leads out of the artifact root by a symbolic link
	a directory that is one|rm -r "$dir/artifacts/one/d"; mkdir "$T/d"; cp "$T/x" "$T/d/x"; ln -s "$T/d" "$dir/artifacts/one/d"|leads out of the artifact root by a symbolic link
	a dangling link|rm "$x"; ln -s nowhere "$x"|is not there
END
mv "$x" "$x.real" && ln -s x.real "$x"
resume --dry-run >"$T/out" 2>"$T/err"
equal "a link inside of the root is fine" 0 $?
ln -sf "$x.real" "$x"
resume --dry-run >"$T/out" 2>"$T/err"
equal "also an absolute one" 0 $?
mv "$x.real" "$x"
mv "$dir/artifacts" "$dir/away"
out=$(resume 2>&1)
equal "a root that is gone: refused" 4 $?
matches "is said" "the artifact root 'artifacts' cannot be opened: No such file.*--accept-missing-artifacts" "$out"
mv "$dir/away" "$dir/artifacts"

# ---- What an operation told of itself is looked at like what is declared ----
cat >told.json <<-'END'
	{"name": "told", "reactive": "all", "plan": [
	 {"id": "one", "run": "echo told >>count; echo 1 >\"$FLOWSUP_ARTIFACTS/x\"; \"$FLOWSUP\" emit artifact x"},
	 {"id": "two", "needs": ["one"], "run": "echo behind >>count"},
	 {"id": "bad", "run": "[ -e better ]"}]}
END
export FLOWSUP
told=$("$FLOWSUP" start told.json --wait 2>/dev/null)
x=$FLOWSUP_HOME/runs/$told/artifacts/one/x
again() { "$FLOWSUP" resume "$told" --retry-failed "$@" 2>&1; }
out=$(again --dry-run)
equal "one that was told of, as it was left, is accepted" 0 $?
rm "$x"
for how in "" --dry-run; do
	out=$(again $how)
	equal "one that was told of and is lost: refused ${how:-without it}" 4 $?
	matches "with operation, reason and command" \
		"operation one: its artifact \"x\" is not there; lifted by: flowsup resume $told --retry-failed --accept-missing-artifacts" "$out"
done
matches "in the table, too" "one +refused +its artifact \"x\" is not there" "$out"
echo 2 >"$x"
out=$(again)
matches "one that has changed: refused" "operation one: its artifact \"x\" has changed since" "$out"
touch better
out=$(again --accept-missing-artifacts --wait)
equal "lifted by its flag" 0 $?
equal "it has run again, and what needs it" "2 2" "$(times told) $(times behind)"
equal "and is there again" 1 "$(cat "$x")"

# ---- A response in a file is lost like an artifact; one in the checkpoint that was changed is not ----
file=$(find "$dir/ops" -type f -size +1000k | head -1)
cp "$file" "$T/response"
for spoil in 'truncate -s 10 "$file"' 'echo b | dd of="$file" conv=notrunc status=none' 'rm "$file"' \
	'rm "$file"; ln -s "$T/response" "$file"' ': >"$file"'; do
	eval "$spoil"
	out=$(resume --rerun-in-flight --allow-degraded-context --drop-respawned 2>&1)
	equal "a response ($spoil): refused" 4 $?
	matches "with its operation, and the command" "operation one: the file of its response \(.*\) (has|is).*; lifted by: flowsup resume $run --retry-failed.* --accept-missing-artifacts" "$out"
	out=$(resume --dry-run --accept-missing-artifacts 2>/dev/null)
	equal "a response ($spoil): lifted by its flag" 0 $?
	matches "and run again" "one +will run +runs again: the file of its response" "$out"
	matches "with what needs it" "two +will run +runs again, because one does" "$out"
	matches "and nothing else" "side +replayed" "$out"
	out=$("$FLOWSUP" fork "$run" --from bad 2>&1)
	equal "a fork is refused, too" 4 $?
	rm -f "$file"
	cp "$T/response" "$file"
done
cat >large.json <<-'END'
	{"name": "large", "plan": [
	 {"id": "fails", "run": "head -c 1200000 /dev/zero | tr '\\0' a; exit 1"},
	 {"id": "once", "idempotent": false, "run": "head -c 1200000 /dev/zero | tr '\\0' a"},
	 {"id": "after", "needs": [{"op": "fails", "on": "always"}], "run": "[ -e after ]"}]}
END
large=$("$FLOWSUP" start large.json --wait 2>/dev/null)
rm "$FLOWSUP_HOME/runs/$large/ops/fails.1.out"
out=$("$FLOWSUP" resume "$large" --keep-failed 2>&1)
equal "a failure is not kept without its response" 4 $?
matches "and runs again with leave" "operation fails: the file of its response .*; lifted by: flowsup resume $large --keep-failed --accept-missing-artifacts" "$out"
out=$("$FLOWSUP" resume "$large" --keep-failed --accept-missing-artifacts --dry-run 2>&1)
matches "so it does" "fails +will run +runs again: the file.*after +will run +runs again, because fails does" "$(tr '\n' ' ' <<<"$out")"
out=$("$FLOWSUP" resume "$large" --retry-failed --dry-run 2>&1)
equal "to run it again needs no leave" 0 $?
: >"$FLOWSUP_HOME/runs/$large/ops/once.1.out"
out=$("$FLOWSUP" resume "$large" --retry-failed --accept-missing-artifacts 2>&1)
equal "what must not be repeated needs leave for that, too" 4 $?
matches "as is said" "operation once: it lost its response, .*; lifted by: flowsup resume $large .*--rerun-in-flight" "$out"
matches "in the hint as well" "hint: flowsup resume $large --retry-failed --accept-missing-artifacts --rerun-in-flight" "$out"

# ---- A directory that was copied to another home, or moved ----
other=$T/other
mkdir -m 700 "$other"
cp -a "$dir" "$other/$run"
out=$("$FLOWSUP" resume --home "$T/home2" "$other/$run" --retry-failed --dry-run 2>&1)
equal "a copy goes on in another home" 0 $?
matches "with what was saved" "one +replayed" "$out"
touch good
new=$("$FLOWSUP" resume --home "$T/home2" "$other/$run" --retry-failed 2>"$T/err")
equal "which gives it a new id" 0 $?
"$FLOWSUP" wait --home "$T/home2" "$new" 2>"$T/err"
equal "and completes" 0 $?
equal "with nothing done twice" "1 1 1" "$(times one) $(times two) $(times side)"
equal "the run here was not resumed by that" null "$(json "$("$FLOWSUP" show "$run" --json)" resumed_as)"
long=$T/$(printf 'l%.0s' {1..150})/$(printf 'm%.0s' {1..150})
mkdir -p "$long"
cp -a "$dir" "$long/copy"
rm -r "$long/copy/artifacts/one/d"
for json in "" --json; do
	out=$("$FLOWSUP" resume --home "$T/home3" "$long/copy" --retry-failed --dry-run $json 2>&1)
	equal "a command longer than any message: refused ${json:-without it}" 4 $?
	matches "is whole in the hint ${json:-without it}" \
		"hint(: |\":\")flowsup resume $long/copy --home $T/home3 --retry-failed --accept-missing-artifacts(\"|$)" "$out"
done
matches "and in JSON: of all" "\"command\":\"flowsup resume $long/copy --home $T/home3 --retry-failed --accept-missing-artifacts\",\"operations\"" "$out"
matches "and of each row" "\"lifted_by\":\"accept-missing-artifacts\",\"command\":\"flowsup resume $long/copy --home $T/home3 --retry-failed --accept-missing-artifacts\"}" "$out"
matches "but not of what is not refused" '"id":"side"[^}]*"command":null' "$out"
"$FLOWSUP" supervisor stop --home "$T/home3" >/dev/null 2>&1
mv "$dir" "$T/moved"
out=$("$FLOWSUP" resume "$run" --retry-failed 2>&1)
equal "a directory that was moved away is missed" 74 $?
matches "and named" "run $run" "$out"
mv "$T/moved" "$dir"
new=$(resume --wait 2>"$T/err")
equal "back in its place it goes on" 0 $?
equal "with nothing done twice, either" "1 1 1" "$(times one) $(times two) $(times side)"

# ---- The same rule while it is live ----
echo elsewhere >"$T/out-of-it"
cat >live.yaml <<-END
	name: live
	plan:
	  - {id: out, artifacts: [x], run: 'ln -s "$T/out-of-it" "\$FLOWSUP_ARTIFACTS/x"'}
	  - {id: over, artifacts: [d/out-of-it], run: 'ln -s "$T" "\$FLOWSUP_ARTIFACTS/d"'}
	  - {id: within, artifacts: [x], run: 'echo 1 >"\$FLOWSUP_ARTIFACTS/y"; ln -s y "\$FLOWSUP_ARTIFACTS/x"'}
	  - {id: told, run: 'ln -s "$T/out-of-it" "\$FLOWSUP_ARTIFACTS/x"; "$FLOWSUP" emit artifact x'}
END
live=$("$FLOWSUP" start live.yaml --wait 2>/dev/null)
shown=$("$FLOWSUP" show "$live" --json | tr -d '\n')
for op in out over; do
	matches "live, a link out of the root ($op) fails the operation, by its class" \
		"\"id\":\"$op\"[^}]*\"class\":\"artifact\"[^}]*leads out of the artifact root by a symbolic link" "$shown"
done
matches "live, a link inside of it is fine" '"id":"within"[^}]*"state":"completed"' "$shown"
matches "and emit refuses one that leads out" "artifact .x. leads out of the artifact root" \
	"$("$FLOWSUP" logs "$live" told --stderr)"
plan
