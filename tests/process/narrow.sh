#!/usr/bin/env bash
# Tables on narrow terminals: rows that fit, and below them whole what there is no room for beside.
. "$(dirname "$0")/lib.sh"
mkdir "$T/work" && cd "$T/work" || exit 1

screen_of() { # columns command...: without styles, each character one byte
	on_terminal "$@" 2>/dev/null | sed 's/\x1b\[[0-9;]*[mK]//g; s/…/./g'
}
fits() { # name, columns; the file screen
	equal "$1 fits $2 columns" "" "$(awk -v w="$2" 'length > w' screen)"
}
words() { xargs -d '\n' <screen | tr -s ' '; }

# ---- ctl status ----
long=an-operation-of-a-long-name-cut-in-the-middle
cat >flow.yaml <<Y
plan:
  - {id: a, run: 'until [ -e go ]; do sleep 0.02; done'}
  - {id: $long, needs: [a], run: '[ -e good ]'}
Y
id=$("$FLOWSUP" start flow.yaml)
begun() { grep -q '"kind":"start","op":"a"' "$FLOWSUP_HOME/runs/$id/attempts.log"; }
check "it runs" wait_until begun
"$FLOWSUP" approve "$id" a >/dev/null 2>&1
for w in 40 80; do
	screen_of $w "$FLOWSUP" ctl status "$id" >screen
	fits "ctl status" $w
	matches "ctl status on $w columns has the words of the result below its row" \
		"rejected *result: rejected:not-waiting: a has no gate" "$(words | sed 's/rejected [0-9a-z]* *[0-9TZa-f-]* *result/rejected result/')"
done
screen_of 200 "$FLOWSUP" ctl status "$id" >screen
matches "with room they stand beside it" "RESULT" "$(cat screen)"

# ---- resume --dry-run ----
operation=$(sed -nE 's/.*"kind":"start","op":"a","attempt":1,"pid":([0-9]+),.*/\1/p' "$FLOWSUP_HOME/runs/$id/attempts.log")
kill -KILL "$(worker_pid "$id")"
check "its worker is dead" wait_until status_is "$id" crashed
"$FLOWSUP" stop "$id" >/dev/null 2>&1
check "its operation is ended" wait_until gone "$operation"
for w in 40 80; do
	screen_of $w "$FLOWSUP" resume --dry-run "$id" >screen
	fits "resume --dry-run" $w
	matches "resume --dry-run on $w columns shows both ends of an id" "an-op[^ ]*in-the-middle +" "$(cat screen)"
	matches "resume --dry-run on $w columns has whole reasons" "was ended when its worker was dead" "$(words)"
done
touch go

# ---- play list ----
mkdir -p .flowsup/playbooks
echo 'plan: 5' >.flowsup/playbooks/bad.yaml
echo 'plan: [{id: a, run: "true"}]' >.flowsup/playbooks/good.yaml
for w in 40 80; do
	screen_of $w "$FLOWSUP" play list >screen
	matches "play list on $w columns says below what is broken, and why" \
		'^bad[^:]* problem: broken: .flowsup/playbooks/bad.yaml:1:7: "plan" must be' "$(sed -n '/^bad/,/^good/p' screen | xargs -d '\n' | tr -s ' ')"
	equal "play list on $w columns: nothing of it stands under ARGUMENTS" "" "$(grep '^bad.*broken' screen)"
done
plan
