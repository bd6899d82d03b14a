#!/usr/bin/env bash
# The files of a checkpoint are taken away, linked or swapped while their run goes on: what has gone is made
# anew, and what stands in the place of the journal stays as it is and keeps nothing from being resumed.
. "$(dirname "$0")/lib.sh"
PATH=$BUILD/bin:$PATH

if ! command -v python3 >/dev/null; then
	skip "python3 is not installed"
	plan
	exit 0
fi

cat >"$T/flow.yaml" <<'DOC'
name: swapped
plan:
  - {id: one, run: 'echo 1; flowsup emit context set /from_one 7'}
  - {id: two, needs: [one], run: 'cd "$FLOWSUP_HOME/runs/$FLOWSUP_RUN_ID" && eval "$DEED"; echo 2'}
  - {id: three, needs: [two], run: 'echo 3'}
DOC
run_with() { # deed, option of start ...: $run, $status
	run=$(DEED=$1 "$FLOWSUP" start --wait "$T/flow.yaml" "${@:2}" 2>"$T/err")
	status=$?
	dir=$FLOWSUP_HOME/runs/$run
}

goes_on() { # what, deed, option of start ...
	run_with "${@:2}"
	equal "$1: the run goes on to its end" 0 $status
	"$FLOWSUP" checkpoint verify "$run" >"$T/out" 2>&1
	equal "$1: the checkpoint is clean" 0 $?
	matches "$1: and of version 3" "version 3" "$(cat "$T/out")"
	equal "$1: nothing is lost" "3 7" "$("$FLOWSUP" checkpoint export --json "$run" |
		python3 -c 'import json, sys; s = json.load(sys.stdin); print(len(s["ops"]), s["flow_context"]["from_one"])')"
}
goes_on "journal removed" 'rm checkpoint.json.journal'
goes_on "base removed" 'rm checkpoint.json'
goes_on "both removed" 'rm checkpoint.json checkpoint.json.journal'
goes_on "journal linked" 'ln checkpoint.json.journal other'
goes_on "base linked" 'ln checkpoint.json other'
goes_on "journal written to" 'echo junk >>checkpoint.json.journal'
goes_on "journal of mode 0666" 'chmod 666 checkpoint.json.journal'
equal "it is for us alone again" 600 "$(stat -c %a "$dir/checkpoint.json.journal")"
goes_on "base of mode 0620" 'chmod 620 checkpoint.json'
equal "it is for us alone again" 600 "$(stat -c %a "$dir/checkpoint.json")"
goes_on "staging removed" 'rmdir staging' --compact-records 1
equal "it is there again, for us alone" "directory 700" "$(stat -c '%F %a' "$dir/staging")"
goes_on "staging moved" 'mv staging elsewhere' --compact-records 1
goes_on "all removed" 'rm -r checkpoint.json* staging' --compact-records 1

goes_without() { # what, deed
	run_with "$2"
	equal "$1: the run stops" "74 failed" "$status $(run_status "$run")"
	matches "$1: and says why and what is left" \
		"'checkpoint.json.journal' leads to something that is not ours; 'checkpoint.json' holds all that was saved" \
		"$("$FLOWSUP" show "$run")"
	matches "$1: what was saved is shown so" "^two +completed +[^ ]+ +saved" "$("$FLOWSUP" show "$run" | grep '^two')"
	matches "$1: nothing is begun on it" "^three +pending" "$("$FLOWSUP" show "$run" | grep '^three')"
	"$FLOWSUP" checkpoint verify "$run" >"$T/out" 2>&1
	equal "$1: what was saved is there" 0 $?
	second=$(DEED=true "$FLOWSUP" resume --wait "$run" 2>"$T/err")
	equal "$1: a resume goes on with it" "0 completed" "$? $(run_status "$second")"
	matches "$1: without doing it again" "^two +completed .*replayed" "$("$FLOWSUP" show "$second" | grep '^two')"
	equal "$1: nothing is lost" "3 7" "$("$FLOWSUP" checkpoint export --json "$second" |
		python3 -c 'import json, sys; s = json.load(sys.stdin); print(len(s["ops"]), s["flow_context"]["from_one"])')"
}
goes_without "a stranger" 'mv checkpoint.json.journal away; echo stranger >checkpoint.json.journal'
equal "the stranger is as it was" stranger "$(cat "$dir/checkpoint.json.journal")"
echo sentinel >"$T/sentinel"
goes_without "a link" "rm checkpoint.json.journal; ln -s '$T/sentinel' checkpoint.json.journal"
equal "the link is as it was" "$T/sentinel" "$(readlink "$dir/checkpoint.json.journal")"
equal "and what it leads to" sentinel "$(cat "$T/sentinel")"
goes_without "a directory" 'rm checkpoint.json.journal; mkdir checkpoint.json.journal'
check "the directory is as it was" rmdir "$dir/checkpoint.json.journal"

run_with 'mv checkpoint.json away; echo stranger >checkpoint.json'
equal "a stranger in the place of the base: the run stops" "74 failed" "$status $(run_status "$run")"
equal "the stranger is as it was" stranger "$(cat "$dir/checkpoint.json")"

stops() { # what, deed
	run_with "$2" --compact-records 1
	equal "$1 in the place of staging: the run stops" "74 failed" "$status $(run_status "$run")"
	matches "$1: and says why" "staging.* leads to something that is not ours" "$("$FLOWSUP" show "$run")"
	"$FLOWSUP" checkpoint verify "$run" >"$T/out" 2>&1
	equal "$1: what was saved is there" 0 $?
	matches "$1: and shown so" "^one +completed +[^ ]+ +saved" "$("$FLOWSUP" show "$run" | grep '^one')"
}
stops "a file" 'rmdir staging; echo stranger >staging'
equal "the file is as it was" stranger "$(cat "$dir/staging")"
stops "a link" "rmdir staging; mkdir '$T/other'; ln -s '$T/other' staging"
check "nothing is in what the link leads to" rmdir "$T/other"
stops "a FIFO" 'rmdir staging; mkfifo staging'
stops "another directory" 'mv staging elsewhere; mkdir -m 700 staging'
check "nothing is in it" rmdir "$dir/staging"

run_with "mkdir '$T/once' && chmod 777 ."
equal "a run directory of mode 0777: the run stops" "74 failed" "$status $(run_status "$run")"
matches "and says why" "others may write to the run directory" "$("$FLOWSUP" list --json | grep -F "$run")"
hint=$("$FLOWSUP" resume "$run" 2>&1 | sed -n 's/^hint: //p')
equal "a resume says how to mend it" "chmod go-w $dir" "$hint"
eval "$hint"
matches "what was saved is shown so" "^one +completed +[^ ]+ +saved" "$("$FLOWSUP" show "$run" | grep '^one')"
chmod 666 "$dir/checkpoint.json.journal"
hint=$("$FLOWSUP" resume "$run" 2>&1 | sed -n 's/^hint: //p')
equal "a journal of mode 0666: a resume says how to mend it" "chmod go-w $dir/checkpoint.json.journal" "$hint"
eval "$hint"
second=$(DEED=true "$FLOWSUP" resume --wait "$run" 2>"$T/err")
equal "and a resume goes on with it" "0 completed" "$? $(run_status "$second")"

# Nobody changed what is saved: it is read again once others may not write to it.
for file in checkpoint.json checkpoint.json.journal; do
	chmod 666 "$FLOWSUP_HOME/runs/$second/$file"
	for command in "checkpoint verify" "checkpoint show" "checkpoint compact" show; do
		# shellcheck disable=SC2086 # a command of two words
		hint=$("$FLOWSUP" $command "$second" 2>&1 >"$T/out" | sed -n 's/^hint: //p')
		equal "$command: $file of mode 0666: how to mend it" "chmod go-w $FLOWSUP_HOME/runs/$second/$file" "$hint"
	done
	matches "list --check tells it as well" "hint: chmod go-w $FLOWSUP_HOME/runs/$second/$file" \
		"$("$FLOWSUP" list --check 2>&1)"
	chmod go-w "$FLOWSUP_HOME/runs/$second/$file"
	"$FLOWSUP" checkpoint verify "$second" >"$T/out" 2>&1
	equal "$file: it is clean then" 0 $?
done
plan
