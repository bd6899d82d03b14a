#!/usr/bin/env bash
# A state directory that was moved: what a run has from the runs that it goes on from (artifacts, large responses,
# outputs, conversations) is found where these are now, by a resume, a fork and who verifies; also after the
# next move.
# shellcheck source=lib_agent.sh
. "$(dirname "$0")/lib_agent.sh"

stored_provider
export T
cat >moved.yaml <<'END'
name: moved
roles: {stored: {provider: stored}}
plan:
  - {id: large, artifacts: [made], run: 'echo large >>"$T/count"; echo data >"$FLOWSUP_ARTIFACTS/made"; head -c 1200000 /dev/zero | tr "\0" a'}
  - {id: spaced, response: json, run: 'echo spaced >>"$T/count"; echo "[1,  2]"'}
  - {id: a, assignee: stored, instruction: "one "}
  - {id: two, needs: [large, spaced], run: '[ -e "$T/two" ] && echo two >>"$T/count" && mkdir -p "$FLOWSUP_ARTIFACTS/d" && echo 2 >"$FLOWSUP_ARTIFACTS/d/two"', artifacts: [d/two]}
  - {id: three, needs: [two, large, spaced], run: '[ -e "$T/three" ] && wc -c <"$FLOWSUP_DEP_large" >"$T/sizes" && cat "$FLOWSUP_DEP_spaced" >>"$T/sizes"'}
  - {id: b, assignee: stored, needs: [a, three], inherit_context: a, instruction: "two "}
END
times() { grep -cx "$1" "$T/count"; }
at() { echo "$T/home$1"; }
# move FROM TO: everything, to another name
move() {
	"$FLOWSUP" supervisor stop >/dev/null 2>&1
	mv "$FLOWSUP_HOME" "$(at "$1")"
	FLOWSUP_HOME=$(at "$1")
}
resumes() { # NAME OPTION...
	local out
	out=$("$FLOWSUP" resume "$RUN" --retry-failed --dry-run 2>&1)
	equal "$1: the dry run accepts it" 0 $?
	matches "$1: and what was done" "large +replayed.*spaced +replayed" "$(tr '\n' ' ' <<<"$out")"
	RUN=$("$FLOWSUP" resume "$RUN" --retry-failed 2>"$T/err")
	equal "$1: it goes on" 0 $?
	wait_until ended
}
verifies() {
	out=$("$FLOWSUP" checkpoint verify "$RUN" 2>&1)
	equal "$1: verify finds everything" 0 $?
	matches "$1: files" "files +1 right" "$out"
	matches "$1: artifacts" "artifacts +[12] right" "$out"
	matches "$1: outputs" "outputs +1 right" "$out"
	out=$("$FLOWSUP" checkpoint verify "$(run_dir)" 2>&1)
	equal "$1: by its path, too" 0 $?
	matches "$1: logs have what earlier runs wrote" "aaaa" "$("$FLOWSUP" logs "$RUN" large 2>/dev/null | head -c 100)"
	matches "$1: list has the run" "$RUN" "$("$FLOWSUP" list)"
}

RUN=$("$FLOWSUP" start --queue one moved.yaml)
first=$RUN
wait_until ended
resumes "before any move"
move 2
verifies "moved"
touch "$T/two"
resumes "moved"
verifies "moved and resumed"
check "what it has made lies in the artifact root of the first" [ -e "$FLOWSUP_HOME/runs/$first/artifacts/two/d/two" ]
move 3
verifies "moved again"
fork=$("$FLOWSUP" fork "$RUN" --from three 2>"$T/err")
equal "a fork finds it, too" 0 $?
RUN2=$RUN RUN=$fork
wait_until ended
verifies "the fork"
RUN=$RUN2
cp -a "$FLOWSUP_HOME" "$T/left"
touch "$T/three"
resumes "moved again"
equal "it completes" completed "$(run_status "$RUN")"
equal "those that needed it were given its bytes" "1200000 [1,  2]" "$(tr '\n' ' ' <"$T/sizes" | sed 's/ $//')"
matches "the conversation goes on" '"response":"one two "' "$(entry b)"
equal "nothing was done twice" "1 1 1" "$(times large) $(times spaced) $(times two)"
out=$("$FLOWSUP" rerun "$RUN" --wait 2>&1)
equal "it can be begun anew" 0 $?
move 4
verifies "what has completed"

# ---- One that waits while everything is moved ----
"$FLOWSUP" queue set one --slots 1 >/dev/null 2>&1
holder=$("$FLOWSUP" start --queue one -- sleep 600)
wait_until status_is "$holder" running
RUN=$("$FLOWSUP" fork "$RUN" --from three)
equal "it waits" queued "$(run_status "$RUN")"
# shellcheck disable=SC2046
kill -KILL $(supervisors) "$(worker_pid "$holder")"
move 5
"$FLOWSUP" list >/dev/null
check "it is started where it is now" wait_until ended
equal "and has what it needs, also once more by the rerun" "completed 2" "$(run_status "$RUN") $(times large)"

# ---- What was lost is missed where its run is now ----
"$FLOWSUP" supervisor stop >/dev/null 2>&1
FLOWSUP_HOME=$T/left RUN=$RUN2
mv "$T/left/runs/$first/artifacts/large" "$T/away"
out=$("$FLOWSUP" resume "$RUN" --retry-failed 2>&1)
equal "a lost artifact is missed: refused" 4 $?
matches "by its operation" "operation large: its artifact \"made\" is not there" "$out"
mv "$T/away" "$T/left/runs/$first/artifacts/large"
mv "$T/left/runs/$first/ops" "$T/away"
out=$("$FLOWSUP" resume "$RUN" --retry-failed 2>&1)
equal "a lost response: refused" 4 $?
matches "where it should be" "the file of its response \\($T/left/runs/" "$out"
plan
