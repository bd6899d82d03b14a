#!/usr/bin/env bash
# Copies and exports of runs: what the run has done since counts where its row is known; elsewhere nobody can
# tell, so nothing that must not be repeated is started. No operation runs beside its repetition.
. "$(dirname "$0")/lib.sh"

cd "$T" || exit 1
export T
dir_of() { echo "$FLOWSUP_HOME/runs/$1"; }
times() { grep -cs "^$1 " "$T/log"; }
crash() { # RUN: its worker is dead, its operations go on
	kill -KILL "$(worker_pid "$1")"
	wait_until status_is "$1" crashed
}
has_exit() { [ -e "$(dir_of "$1")/ops/$2.1/exit.json" ]; }
in_other() { FLOWSUP_HOME=$T/other "$FLOWSUP" "$@"; }
resume() { "$FLOWSUP" resume "$@"; }
refused() { # WHAT WORDS COMMAND...: with its dry run
	local what=$1 words=$2 out
	shift 2
	out=$("$@" 2>&1)
	equal "$what: is refused" 4 $?
	matches "$what: with the reason" "$words" "$(tr '\n' ' ' <<<"$out")"
	equal "$what: so says a dry run" 4 "$("$@" -n >/dev/null 2>&1; echo $?)"
}
key_of() { sed -n "s/^$1 //p" "$T/log" | tail -1; }
cat >once.yaml <<'END'
plan:
  - {id: a, run: 'echo "a $$" >>"$T/log"; until [ -e "$T/go.a" ]; do sleep 0.02; done'}
  - {id: n, needs: [a], idempotent: false, run: 'echo "n $FLOWSUP_IDEMPOTENCY_KEY" >>"$T/log"; [ -e "$T/go.n" ]'}
  - {id: k, needs: [a], run: 'echo "k $FLOWSUP_IDEMPOTENCY_KEY" >>"$T/log"'}
END
begin() { # a run whose worker is dead and whose first operation still runs, or with go.a has ended
	rm -rf go.* log x copy early other
	run=$("$FLOWSUP" start once.yaml)
	wait_until [ -s log ]
	wait_until worker_is_ready "$run"
	session=$(json "$("$FLOWSUP" show "$run" --json)" session_id)
	cp -a "$(dir_of "$run")" early
	"$FLOWSUP" checkpoint export "$run" x >/dev/null
}

# ---- What survives runs once ----
begin
refused "an export of a run that is alive" "'x' is that of run $run, which goes on itself.*hint: flowsup wait $run" resume x
refused "a copy of it" "which goes on itself" resume ./early
refused "an export in another state directory" "operation a, which its worker started, still runs .process [0-9]+.*hint: kill" \
	in_other resume x
crash "$run"
for accept in "" --accept-missing-artifacts; do
	# shellcheck disable=SC2086 # none is none
	refused "with a survivor, an export ${accept:-as it is}" "'x': operation a, which its worker started, still runs .process [0-9]+.*hint: flowsup resume $run" resume x $accept
	# shellcheck disable=SC2086
	refused "with a survivor, an export elsewhere ${accept:-as it is}" "operation a, which its worker started, still runs" \
		in_other resume x $accept
done
refused "a copy" "operation a, which its worker started, still runs.*hint: flowsup resume $run" resume ./early
equal "it ran once" 1 "$(times a)"

# ---- A copy in the place of the run ----
touch go.a go.n
wait_until has_exit "$run" a
cp -a "$(dir_of "$run")" copy
out=$(in_other resume "$T/copy" 2>&1)
equal "elsewhere what must not be repeated is not begun" 4 $?
matches "with the reason and what lifts it" "operation n: it may have been started by the run that this is a copy of.*--rerun-in-flight" "$out"
refused "of an export neither" "operation n: .*may have been started.*--rerun-in-flight" in_other resume x
new=$(resume ./copy --wait 2>err)
equal "here a copy goes on as the run itself" "0 1 1 1" "$? $(times a) $(times n) $(times k)"
equal "which it is the resume of" "$new" "$(json "$("$FLOWSUP" show "$run" --json)" resumed_as)"
equal "with its key" "$session-n" "$(key_of n)"
refused "then the run" "already resumed, as run $new" resume "$run"
refused "another copy" "'./early' is that of run $run, which was already resumed, as run $new" resume ./early
refused "and an export" "already resumed, as run $new" resume x
check "a copy can be looked at" eval "\"$FLOWSUP\" checkpoint show ./early >out"
equal "nothing ran again" "1 1 1" "$(times a) $(times n) $(times k)"
new=$(in_other resume "$T/copy" --rerun-in-flight --wait 2>err)
equal "who takes the risk elsewhere goes on" "0 2 2" "$? $(times n) $(times k)"
equal "with the same key" "$session-n $session-k" "$(key_of n) $(key_of k)"
matches "and is told what that may repeat" "operation n: it may have been started by the run that this is a copy of" "$(cat err)"
FLOWSUP_HOME=$T/other "$FLOWSUP" supervisor stop >/dev/null 2>&1

# ---- The run itself went on ----
begin
crash "$run"
touch go.a
wait_until has_exit "$run" a
cp -a "$(dir_of "$run")" third
new=$(resume "$run" --wait 2>err) # n fails
equal "the run goes on by itself" "1 1" "$(times a) $(times n)"
refused "its copy does not" "'./third' is that of run $run, which was already resumed, as run $new" resume ./third
cp -a "$(dir_of "$new")" second
"$FLOWSUP" checkpoint export "$new" y >/dev/null
touch go.n
last=$(resume ./second --retry-failed --wait 2>err)
equal "a copy of what resumed it goes on in its place" "0 2 $session-n" "$? $(times n) $(key_of n)"
rm -rf log
in_other resume y --retry-failed --wait >/dev/null 2>&1
equal "elsewhere with the key of the first of them all" "$session-n" "$(key_of n)"
FLOWSUP_HOME=$T/other "$FLOWSUP" supervisor stop >/dev/null 2>&1
"$FLOWSUP" fork "$last" --from n --wait --rerun-in-flight >/dev/null 2>&1
check "a fork has keys of its own" test "$(key_of n)" != "$session-n"

# ---- The log of the run, where the copy was made before ----
begin
touch go.a
wait_until status_is "$run" failed
older="is an older copy of run $run, which holds 3 more outcomes.*hint: flowsup resume $run"
refused "what the run has done since is not repeated" "'./early' $older" resume ./early --rerun-in-flight --retry-failed
refused "nor from an export" "'x' $older" resume x
equal "it ran once" 1 "$(times n)"
# An end that nobody has made an outcome of, and a start.
begin
crash "$run"
cp -a "$(dir_of "$run")" early.1
touch go.a go.n
wait_until has_exit "$run" a
refused "an end that the copy lacks" "'./early.1' is an older copy of run $run, which holds 1 more outcome.*hint: flowsup resume $run" \
	resume ./early.1
refused "and an export" "'x' is an older copy of run $run, which holds 1 more outcome" resume x
new=$(resume "$run" --wait 2>err)
equal "the hint goes on from there" "0 1 1 1" "$? $(times a) $(times n) $(times k)"
rm -rf early.1
begin
touch go.a go.n
wait_until status_is "$run" completed
refused "of what has completed nothing goes on" "'./early' is that of run $run, which has completed" resume ./early
refused "nor from an export" "'x' is that of run $run, which has completed" resume x
cp -a "$(dir_of "$run")" fourth
equal "where the copy says so too there is nothing to do" 0 "$(resume ./fourth 2>/dev/null >&2; echo $?)"

# ---- A copy that is refused as it stands ----
rm -rf log go.* early
run=$("$FLOWSUP" start --checkpoint-format 2 once.yaml)
touch go.a
wait_until status_is "$run" failed
edited() { # EXPRESSION: a copy, changed in Perl with the state in $s
	rm -rf edited
	cp -a "$(dir_of "$run")" edited
	perl -MJSON::PP -0777 -i -pe 'BEGIN { $how = shift } my $s = decode_json($_); eval $how; die $@ if $@; $_ = encode_json($s)' \
		"$1" edited/checkpoint.json
}
edited '$s->{ops}{a}{status} = "running"'
refused "an entry of a status that none can have" "'./edited': checkpoint refused: unknown_status in checkpoint.json" \
	resume ./edited --retry-failed
edited '$s->{ops}{k} = {%{$s->{ops}{a}}, agent_id => "k", status => "pending"}'
refused "one with a response and no end" "'./edited': checkpoint refused: .* in checkpoint.json" resume ./edited --retry-failed
edited '$s->{ops}{a}{response} = "another"'
refused "an edited response" "operation a: its recorded response does not match its digest" resume ./edited --retry-failed
edited 'delete $s->{ops}{a}'
refused "while one that lacks an outcome" "'./edited' is an older copy of run $run, which holds 1 more outcome" \
	resume ./edited --retry-failed

# ---- What an export leaves behind lies in the run ----
cat >made.yaml <<'END'
plan:
  - {id: made, artifacts: [o], run: 'echo "made $$" >>"$T/log"; echo o >"$FLOWSUP_ARTIFACTS/o"; head -c 1200000 /dev/zero | tr "\0" k'}
  - {id: last, needs: [made], run: '[ -e "$T/go" ] && wc -c <"$FLOWSUP_DEP_made"'}
END
rm -rf log go x
run=$("$FLOWSUP" start made.yaml)
wait_until status_is "$run" failed
"$FLOWSUP" checkpoint export "$run" x >/dev/null
refused "elsewhere its artifacts are missed" "--accept-missing-artifacts" in_other resume x --retry-failed
touch go
new=$(resume x --retry-failed --wait 2>err)
equal "here they are found, and its large response" "0 1 1200000" "$? $(times made) $("$FLOWSUP" logs "$new" last 2>/dev/null | tail -1)"

# ---- A directory is known by its run, whatever its path ----
ended() { # a run whose last operation failed
	rm -rf log go
	run=$("$FLOWSUP" start made.yaml)
	wait_until status_is "$run" failed
	touch go
}
rm -rf spot spot.1
ended
mv "$(dir_of "$run")" spot
new=$(resume ./spot --retry-failed --wait 2>err)
equal "one that was moved away is resumed" "0 1" "$? $(times made)"
mv spot spot.1
refused "under another name it is the same" "already resumed, as run $new" resume ./spot.1 --retry-failed
ended
mv "$(dir_of "$run")" spot
new=$(resume ./spot --retry-failed --wait 2>err)
equal "another in its place is another" "0 1" "$? $(times made)"
mv spot spot.2
new=$(in_other resume ./spot.1 --retry-failed --wait 2>err)
equal "elsewhere it is resumed, too" 0 $?
mv spot.1 spot
refused "once, whatever its name is there" "already resumed, as run $new" in_other resume ./spot --retry-failed
mv spot spot.1
mv spot.2 spot
in_other resume ./spot --retry-failed --wait >out 2>err
equal "and another that has its first name" 0 $?
mv spot spot.2
mv spot.1 elsewhere
mv spot.2 spot.1
refused "none twice" "already resumed" in_other resume ./spot.1 --retry-failed
FLOWSUP_HOME=$T/other "$FLOWSUP" supervisor stop >/dev/null 2>&1

# ---- One that was resumed elsewhere and is back ----
cat >further.yaml <<'END'
plan:
  - {id: made, artifacts: [o], run: 'echo "made $$" >>"$T/log"; echo o >"$FLOWSUP_ARTIFACTS/o"; head -c 1200000 /dev/zero | tr "\0" k'}
  - {id: also, needs: [made], artifacts: [p], run: '[ -e "$T/go" ] && echo "also $$" >>"$T/log" && echo p >"$FLOWSUP_ARTIFACTS/p"'}
  - {id: last, needs: [made, also], run: '[ -e "$T/go.2" ] && wc -c <"$FLOWSUP_DEP_made"'}
END
went_away() { # run and its successor $new, which has failed, too; the directory of run is ./away
	rm -rf log go go.2 away
	run=$("$FLOWSUP" start further.yaml)
	wait_until status_is "$run" failed
	touch go
	mv "$(dir_of "$run")" away
	new=$(resume ./away --retry-failed 2>err)
	wait_until status_is "$new" failed
	touch go.2
}
verified() { tr -s ' \n' ' ' <<<"$("$FLOWSUP" checkpoint verify "$1" 2>&1)"; }
finds() { # WHAT RUN: of a run that goes on
	"$FLOWSUP" resume "$2" --retry-failed -n >out 2>&1
	equal "$1: a dry run finds what was made" 0 $?
	last=$(resume "$2" --retry-failed --wait 2>err)
	equal "$1: so does the resume" "0 1 1 1200000" "$? $(times made) $(times also) $("$FLOWSUP" logs "$last" last 2>/dev/null | tail -1)"
}
went_away
mv away "$(dir_of "$run")"
matches "its artifacts are found where it is now" "files 1 right.*artifacts 2 right" "$(verified "$new")"
finds "moved back" "$new"
check "new artifacts lie beside the old ones" test -e "$(dir_of "$run")/artifacts/also/p"
went_away
finds "still away" "$new"
mv away "$(dir_of "$run")"
matches "what went on twice finds it, too" "files 1 right.*artifacts 2 right" "$(verified "$last")"
went_away
mv away "$(dir_of "$run")"
first=$run
run=$("$FLOWSUP" start -- true)
wait_until status_is "$run" completed
mv "$(dir_of "$run")" away
matches "another in its old place is not it" "files 1 right.*artifacts 2 right" "$(verified "$new")"
mv "$(dir_of "$first")" gone
refused "nor where it is nowhere" "the artifact root '[^']*$first/artifacts' cannot be opened.*its artifact \"o\" is not there" \
	resume "$new" --retry-failed
mv gone "$(dir_of "$first")"
finds "with a stranger in its old place" "$new"
plan
