#!/usr/bin/env bash
# What outlived its worker and is given up by a flag is told, whether it still runs or has ended.
# shellcheck source=lib_resume.sh
. "$(dirname "$0")/lib_resume.sh"

export COUNT=$T/w/count
begin() {
	rm -f "$COUNT" go go2
	cat >flow.yaml <<'Y'
name: given-up
orphans: keep
plan:
  - {id: a, artifacts: [o], run: 'echo a >>"$COUNT"; echo 1 >"$FLOWSUP_ARTIFACTS/o"'}
  - {id: n, needs: [a], run: 'echo n >>"$COUNT"; until [ -e go ]; do sleep 0.02; done'}
  - {id: m, needs: [a], run: 'echo m >>"$COUNT"; until [ -e go2 ]; do sleep 0.02; done'}
Y
	run=$("$FLOWSUP" start flow.yaml)
	wait_until has_line n
	wait_until has_line m
	lose_worker "$run"
	: >go
	wait_until [ -e "$(dir_of "$run")/ops/n.1/exit.json" ]
}

begin
matches "show says what a resume does" 'n +interrupted .*has ended without its worker; a resume takes its end over' "$("$FLOWSUP" show "$run")"
rm "$(dir_of "$run")/artifacts/a/o"
out=$("$FLOWSUP" resume "$run" --accept-missing-artifacts --dry-run)
matches "one that has ended is not to be ended" 'n +will run +has ended without its worker, and runs again, because a does' "$out"
matches "one that runs is" 'm +will run +is ended and runs again, because a does' "$out"
new=$("$FLOWSUP" resume "$run" --accept-missing-artifacts 2>err)
matches "its end is given up, and that is told" \
	"operation n: has ended without its worker, and runs again, because a does; how it ended is not carried over" "$(cat err)"
matches "and what is ended" "operation m: is ended and runs again, because a does" "$(cat err)"
matches "with what lost its artifacts" "operation a: runs again: .*its recorded outcome is not carried over; by --accept-missing-artifacts" \
	"$(cat err)"
: >go2
"$FLOWSUP" wait "$new" >/dev/null 2>&1
equal "all of it ran again" "2 2 2" "$(times a) $(times n) $(times m)"
out=$("$FLOWSUP" show "$run")
matches "then show says whose it was" "n +interrupted .*has ended without its worker; its end was left to run $new" "$out"

# ---- A link in the place of a directory of artifacts ----
begin
: >go2
wait_until [ -e "$(dir_of "$run")/ops/m.1/exit.json" ]
mkdir -p "$T/elsewhere"
echo kept >"$T/elsewhere/o"
for op in a n; do
	rm -rf "$(dir_of "$run")/artifacts/$op"
	ln -s "$T/elsewhere" "$(dir_of "$run")/artifacts/$op"
done
new=$("$FLOWSUP" resume "$run" --accept-missing-artifacts --wait 2>err)
equal "it is replaced, and the run completes" "0 " "$? $(grep "operation . failed\|failed:" err)"
check "by a directory" test -d "$(dir_of "$run")/artifacts/a" -a ! -L "$(dir_of "$run")/artifacts/a"
check "also where nothing is declared" test ! -L "$(dir_of "$run")/artifacts/n"
equal "what it led to is untouched" "kept o" "$(cat "$T/elsewhere/o") $(ls "$T/elsewhere")"
plan
