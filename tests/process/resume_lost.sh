#!/usr/bin/env bash
# What a resume would stumble over later it finds before: an operation that is to be taken over and whose
# output is not there has no outcome that could be known, and follows its own rule; an artifact root that
# cannot be written to; a directory that was moved; a checkpoint that is gone, or the end of it.
# shellcheck source=lib_resume.sh
. "$(dirname "$0")/lib_resume.sh"

resume() { "$FLOWSUP" resume "$run" "$@"; }
op_pid() { json "$(grep "\"kind\":\"start\",\"op\":\"$1\"" "$(dir_of "$run")/attempts.log" | tail -1)" pid; }
has_exit() { [ -e "$(dir_of "$run")/ops/$1.1/exit.json" ]; }

cat >lost.yaml <<-'END'
	name: lost
	concurrency: 4
	defaults: {grace: 300ms}
	plan:
	- {id: runs, run: 'echo runs >>count; until [ -e go ]; do sleep 0.02; done; echo out'}
	- {id: ended, run: 'echo ended >>count; until [ -e end ]; do sleep 0.02; done; echo out'}
	- {id: once, idempotent: false, run: 'echo once >>count; until [ -e end ]; do sleep 0.02; done; echo out'}
END
spoils=('rm "$file"' 'mv "$file" elsewhere; ln -s "$PWD/elsewhere" "$file"' 'rm "$file"; mkdir "$file"')
for spoil in "${spoils[@]}"; do
	rm -f count go end elsewhere
	run=$("$FLOWSUP" start lost.yaml)
	for op in runs ended once; do wait_until has_line $op; done
	lose_worker "$run"
	touch end
	wait_until has_exit ended
	wait_until has_exit once
	pid=$(op_pid runs)
	for op in runs ended once; do
		file=$(dir_of "$run")/ops/$op.1.out
		eval "$spoil"
	done
	out=$(resume --dry-run 2>"$T/err")
	equal "an output ($spoil): what must not run twice is refused" 4 $?
	matches "an output ($spoil): it is not known what came of it" \
		"once +refused +it has ended without its worker, but its output .ops/once\.1\.out. is .*idempotent: false" "$out"
	out=$(resume --rerun-in-flight --dry-run 2>"$T/err")
	equal "an output ($spoil): its flag lifts that" 0 $?
	matches "an output ($spoil): the others run again, and it is said why" \
		"runs +will run +still runs, but its output.*ended +will run +has ended without its worker, but its output" \
		"$(paste -sd' ' <<<"$out")"
	touch go
	new=$(resume --rerun-in-flight --wait 2>"$T/err")
	equal "an output ($spoil): it completes" 0 $?
	check "an output ($spoil): nothing runs beside its rerun" gone "$pid"
	equal "an output ($spoil): all ran again" "2 2 2" "$(times runs) $(times ended) $(times once)"
	equal "an output ($spoil): and left theirs" "out out out" \
		"$(for op in runs ended once; do "$FLOWSUP" logs "$new" $op 2>/dev/null; done | paste -sd' ')"
done
# ---- The artifact root is not what the new worker would write to ----

cat >root.yaml <<-'END'
	name: root
	plan:
	- {id: made, artifacts: [x], run: 'echo made >>count; echo x >"$FLOWSUP_ARTIFACTS/x"'}
	- {id: bad, needs: [made], run: '[ -e good ]'}
END
rm -f count
run=$("$FLOWSUP" start root.yaml --wait 2>"$T/err")
root=$(dir_of "$run")/artifacts
mv "$root" "$T/elsewhere"
ln -s "$T/elsewhere" "$root"
for root_is in "is a symbolic link" "cannot be used: others may write there .mode 0720.; mended by: chmod go-w [^;]*/artifacts"; do
	out=$(resume --retry-failed --dry-run 2>&1)
	equal "an artifact root that $root_is: a resume would be refused" 4 $?
	matches "an artifact root that $root_is: with the reason" "the artifact root 'artifacts' $root_is" "$out"
	out=$(resume --retry-failed 2>&1)
	equal "an artifact root that $root_is: it is refused" 4 $?
	matches "an artifact root that $root_is: and the flag that lifts it" \
		"the artifact root 'artifacts' $root_is.*--accept-missing-artifacts" "$out"
	matches "an artifact root that $root_is: what is there is not said to be missing" \
		"its artifact \"x\" cannot be reached .the artifact root cannot be used." "$out"
	if [ -L "$root" ]; then
		rm "$root" && mv "$T/elsewhere" "$root" && chmod g+w "$root"
	fi
done
touch good
new=$(resume --retry-failed --accept-missing-artifacts --wait 2>"$T/err")
equal "with it the new run has a root of its own" "0 2 x" "$? $(times made) $(cat "$(dir_of "$new")/artifacts/made/x")"

# ---- A directory that was moved away, and back ----

rm -f count good
run=$("$FLOWSUP" start root.yaml --wait 2>"$T/err")
mv "$(dir_of "$run")" "$T/moved"
touch good
new=$("$FLOWSUP" resume "$T/moved" --retry-failed --wait 2>"$T/err")
equal "a directory that was moved away goes on" 0 $?
mv "$T/moved" "$(dir_of "$run")"
equal "the row of its run knows as what" "$new" "$(json "$("$FLOWSUP" show "$run" --json)" resumed_as)"
out=$(resume --retry-failed 2>&1)
equal "back in its place it is not resumed a second time" 4 $?
matches "and it is said what it became" "run $run was already resumed, as run $new" "$out"
mv "$(dir_of "$run")" "$T/other"
out=$("$FLOWSUP" resume "$T/other" --retry-failed 2>&1)
equal "nor from a third place" 4 $?
matches "by the same words" "run $run, which was already resumed, as run $new" "$out"
equal "what it replayed is found" x "$(cat "$T/other/artifacts/made/x")"
equal "nothing ran twice" 1 "$(times made)"

# ---- A checkpoint that is not there is told in the same way everywhere ----

rm -f count good
run=$("$FLOWSUP" start root.yaml --wait 2>"$T/err")
mv "$(dir_of "$run")/artifacts/made" "$T/outside"
ln -s "$T/outside" "$(dir_of "$run")/artifacts/made"
equal "artifacts that lie elsewhere are not right to verify, either" "4 1" \
	"$("$FLOWSUP" checkpoint verify "$run" 2>/dev/null >"$T/out"; echo $?) $(grep -c "artifacts  *WRONG  *made: x" "$T/out")"
rm "$(dir_of "$run")/checkpoint.json"
words="there is no 'checkpoint.json', but attempts.log shows that operations were started"
for command in "checkpoint verify" "checkpoint show" "checkpoint export --json" "checkpoint compact" "resume -n"; do
	for target in "$run" "$(dir_of "$run")"; do
		# shellcheck disable=SC2086
		out=$("$FLOWSUP" $command "$target" 2>&1)
		equal "$command of ${target:0:1}: refused" 4 $?
		matches "$command of ${target:0:1}: by the same words" "$words" "$out"
	done
done
check "list suggests no resume" eval '! "$FLOWSUP" list | grep -q "resume $run"'
matches "but says what is missing" "$run .*no checkpoint.json" "$("$FLOWSUP" list)"
out=$("$FLOWSUP" show "$run" 2>&1)
equal "show does the same" 74 $?
matches "and suggests what can be had" "hint: flowsup logs $run " "$out"
verdict='"status":"refused",[^}]*"reason":"missing_base","position":\{"file":"checkpoint.json"'
told() { # RUN [words that failures say]: one verdict, whoever is asked
	for command in "checkpoint verify --json $1" "show --json $1" "list --check --json"; do
		# shellcheck disable=SC2086
		out=$("$FLOWSUP" $command 2>"$T/err" | grep -F "${2:-$1}")
		matches "${command% "$1"}: tells that it is lost" "\"checkpoint_recovery\":\{[^}]*$verdict" "$out"
	done
}
told "$run" missing_base
matches "resume: too" "\"checkpoint_recovery\":\{[^}]*$verdict" "$("$FLOWSUP" resume -n --json "$run" 2>"$T/err")"
"$FLOWSUP" list --check -n 1 >"$T/out" 2>"$T/err"
equal "list --check exits as for any that is refused" 4 $?
matches "and says so" "$run .* refused" "$(cat "$T/out")"
matches "with the reason" "run $run: checkpoint refused: missing_base in checkpoint.json" "$(cat "$T/err")"

# ---- Outcomes lie in a base whose journal is not there, or is somebody else's ----

for deed in 'rm "$journal"' 'rm "$journal"; mkdir "$journal"' 'echo stranger >"$journal"'; do
	rm -f count good
	run=$("$FLOWSUP" start root.yaml --wait 2>"$T/err")
	check "its worker has left" wait_until eval '"$FLOWSUP" checkpoint compact "$run" 2>"$T/err"'
	equal "$deed: before it outcomes are shown as saved" 1 "$("$FLOWSUP" show --json "$run" | grep -c '"saved":true')"
	journal=$(dir_of "$run")/checkpoint.json.journal
	eval "$deed"
	"$FLOWSUP" checkpoint verify "$run" >"$T/out" 2>&1
	equal "$deed: verify refuses" 4 $?
	resume --dry-run --retry-failed >"$T/out" 2>&1
	equal "$deed: and resume" 4 $?
	"$FLOWSUP" show --json "$run" >"$T/out" 2>"$T/err"
	equal "$deed: so show calls nothing saved" 0 "$(grep -c '"saved":true' "$T/out")"
	matches "$deed: and suggests no resume" '"resume_command":null' "$(cat "$T/out")"
	matches "$deed: but says what is not known" "whether it was saved is not known" "$(cat "$T/out")"
	matches "$deed: nor does list --check suggest one" '"resume_command":null' "$("$FLOWSUP" list --check --json -n 1 2>"$T/err")"
	[ -f "$journal" ] ||
		matches "$deed: nor list" '"resume_command":null' "$("$FLOWSUP" list --json -n 1 2>"$T/err")"
done

# ---- Nor is a directory that was emptied one of a run that has done nothing ----

for words in true false; do
	run=$("$FLOWSUP" start --wait -- $words 2>"$T/err")
	emptied() { find "$(dir_of "$run")" -mindepth 1 -delete && [ -z "$(ls -A "$(dir_of "$run")")" ]; }
	check "its worker has left" wait_until emptied
	told "$run" missing_base
	out=$("$FLOWSUP" checkpoint show "$run" 2>&1)
	equal "checkpoint show refuses it" 4 $?
	matches "and says that the run was started" "no attempts.log, but the run was started" "$out"
done

# ---- The end of the journal is gone, and with it what was added ----

cat >items.yaml <<-'END'
	name: items
	concurrency: 4
	plan:
	- {id: list, response: json, run: 'echo "[1,2]"'}
	- {id: each, needs: [list], idempotent: false, foreach: {op: list, pointer: ""}, run: 'echo "each $1" >>count'}
	- {id: many, needs: [list], foreach: {op: list, pointer: ""}, run: 'echo "many $1" >>count'}
	- {id: last, needs: [each, many], run: '[ -e good ]'}
END
rm -f count good
run=$("$FLOWSUP" start items.yaml --wait 2>"$T/err")
sed -i '2,$d' "$(dir_of "$run")/checkpoint.json.journal"
"$FLOWSUP" checkpoint verify "$run" >"$T/out" 2>&1
equal "a journal that was cut at the end of a line is clean" 0 $?
out=$(resume --dry-run 2>&1)
equal "but what was started is known: it is refused" 4 $?
equal "each by its name" 2 "$(grep -cE '^each\.[01] +refused +it was started and must not be repeated' <<<"$out")"
check "and what may be repeated is not" eval '! grep -q "many.* refused" <<<"$out"'
out=$(resume 2>&1)
matches "with what lifts it" "operations each.1, each.0, each: it was started.*lifted by: .*--rerun-in-flight" "$out"
touch good
new=$(resume --rerun-in-flight --wait 2>"$T/said")
equal "by which all of it runs again" "0 2 2" "$? $(times "each 1") $(times "many 2")"
matches "which is said" "operation each.1: was started, and is not in the checkpoint; it may run again" "$(cat "$T/said")"

# ---- Files of a directory that is no run here ----

cp -a "$(dir_of "$run")" "$T/copy"
for file in launch.json flow.json environ attempts.log; do
	mv "$T/copy/$file" "$T/kept"
	mkdir "$T/copy/$file"
	out=$("$FLOWSUP" resume "$T/copy" -n 2>&1)
	equal "$file of a directory is none: as with a run here" 4 $?
	matches "$file of a directory: with its name, and what can still be had" \
		"'$T/copy': $file: not a regular file.*hint: flowsup checkpoint show $T/copy " "$(paste -sd' ' <<<"$out")"
	rmdir "$T/copy/$file"
	mv "$T/kept" "$T/copy/$file"
done


# ---- A copy that was made before the end, of a run whose directory is gone ----
rm -f paid open
cat >stale.yaml <<-'END'
	name: stale
	plan:
	- {id: wait, run: "echo >waits; until [ -e open ]; do sleep 0.05; done"}
	- {id: pay, idempotent: false, needs: [wait], run: "echo pay >>paid"}
	- {id: fails, needs: [pay], run: "exit 3"}
END
run=$("$FLOWSUP" start stale.yaml)
wait_until [ -e waits ]
cp -a "$(dir_of "$run")" "$T/stale"
touch open
"$FLOWSUP" wait "$run" >/dev/null 2>&1
cp -a "$(dir_of "$run")" "$T/whole"
rm -r "$(dir_of "$run")"
out=$("$FLOWSUP" resume "$T/stale" 2>&1)
equal "what must not be repeated may have been started since: refused" 4 $?
matches "with its reason, and the command" "operation pay: it may have been started by the run that this is a copy of.*; lifted by: flowsup resume $T/stale --rerun-in-flight" "$out"
"$FLOWSUP" resume "$T/stale" --rerun-in-flight --dry-run >/dev/null 2>&1
equal "with leave the copy goes on" 0 $?
out=$("$FLOWSUP" resume "$T/whole" --retry-failed --dry-run 2>&1)
equal "one that has the end goes on without" 0 $?
matches "with what was done" "pay +replayed" "$out"
equal "nothing was repeated" 1 "$(wc -l <paid)"
# ---- What goes on instead, or mends it ----
cat >fails.yaml <<'END'
plan:
  - {id: a, run: "exit 3"}
END
run=$("$FLOWSUP" start fails.yaml --wait 2>/dev/null | head -1)
[ -n "$run" ] || run=$(json "$("$FLOWSUP" show @last --json)" id)
for words in "msg x" "approve a" pause; do
	set -- $words
	out=$("$FLOWSUP" "$1" "$run" ${2:+"$2"} 2>&1)
	equal "$1 to a run at its end is refused" 4 $?
	matches "$1: with what goes on" "nothing was queued.hint: flowsup resume $run --retry-failed" "$(paste -sd' ' <<<"$out")"
done
chmod 0777 "$(dir_of "$run")"
matches "a directory that others may write to: show has what mends it" "others may write there .*hint: chmod go-w [^ ]*/$run" \
	"$("$FLOWSUP" show "$run" 2>&1 >/dev/null | paste -sd' ')"
chmod 0700 "$(dir_of "$run")"
mv "$(dir_of "$run")" "$T/moved-away"
matches "a directory that was moved: its path is asked for" "is gone.*if it was moved, give its path: flowsup resume PATH" \
	"$("$FLOWSUP" resume "$run" 2>&1 | paste -sd' ')"
new=$("$FLOWSUP" resume "$T/moved-away" --retry-failed -n 2>&1)
equal "by which it can be resumed" 0 $?

plan
