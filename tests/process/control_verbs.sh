#!/usr/bin/env bash
# Each control, each result of the vocabulary, and each refusal, with the statement that makes it so.
. "$(dirname "$0")/lib.sh"
PATH=$BUILD/bin:$PATH
command -v /usr/bin/python3 >/dev/null || { skip "python3 is not installed"; plan; }
export T

sql() { /usr/bin/python3 -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
for row in db.execute(sys.argv[2]): print("|".join(str(v) for v in row))' "$FLOWSUP_HOME/state.db" "$1"; }
result_of() { "$FLOWSUP" ctl status "$id" --this-run --json | sed -nE "s/^\{\"id\":\"$1.*\"result\":(null|\"(.*)\")\}$/\2/p"; }
queue() { json "$("$FLOWSUP" "$@" --json 2>"$T/err")" id; } # prints the control's id
settled() { "$FLOWSUP" ctl status "$id" --this-run --json | grep "^{\"id\":\"$1" | grep -q '"applied_at":[0-9]'; }
started() { grep -q "\"kind\":\"start\",\"op\":\"$2\"" "$FLOWSUP_HOME/runs/$1/attempts.log"; }
has_event() { grep -q "\"event\":\"$2\".*\"op\":\"$3\"" "$FLOWSUP_HOME/runs/$1/events.jsonl"; }
refused() { # name, exit status, text, command...
	local name=$1 status=$2 text=$3 got
	shift 3
	"$@" >"$T/out" 2>"$T/err"
	got=$?
	if [ $got = "$status" ] && grep -qE -- "$text" "$T/err"; then ok "$name"
	else not_ok "$name"; note "exit $got: $(cat "$T/err")"; fi
}

# ---- Without anything ----
refused "no database" 2 "no runs yet" "$FLOWSUP" msg @last hello
refused "no database, ctl resolve" 2 "no runs yet" "$FLOWSUP" ctl resolve abc --as applied

# a waits for a file; gated waits for a person; last takes messages.
id=$("$FLOWSUP" start - <<Y
concurrency: 2
plan:
  - {id: a, messages: true, run: 'until test -e "$T/go"; do sleep 0.02; done'}
  - {id: gated, gate: approve, run: 'true'}
  - {id: refused, gate: approve, run: 'true'}
  - {id: mourns, needs: [{op: refused, on: failure}], run: 'true'}
  - {id: plain, needs: [a], run: 'true'}
  - {id: last, needs: [a], messages: true, run: 'cat "\$FLOWSUP_MESSAGES"'}
  - {id: second, needs: [last], messages: true, run: 'cat "\$FLOWSUP_MESSAGES"'}
Y
)
check "it runs" wait_until started "$id" a
check "one waits for approval" wait_until has_event "$id" NodeWaiting gated
check "which show says" wait_until eval '"$FLOWSUP" show "$id" | grep -qE "gated +waiting .*approval"'
check "and waiting lists, with the command" wait_until eval '"$FLOWSUP" waiting --json | grep -q "\"op\":\"gated\",\"for\":\"approval\".*\"command\":\"flowsup approve $id gated\",\"commands\":\[\"flowsup approve $id gated\",\"flowsup deny $id gated\"\]"'

# ---- Verbs: result and effect ----
# Without a blank, that it stays one word here.
NOTE=$(printf 'never\033]0;title\007"cited"and\303\251')
refused "a note that is no UTF-8" 2 "not valid UTF-8" "$FLOWSUP" deny "$id" refused --note "$(printf 'a\377')"
refused "an operation that is no UTF-8" 2 "not valid UTF-8" "$FLOWSUP" msg "$id" x --to "$(printf 'a\377')"
while IFS='|' read -r wanted words; do
	# shellcheck disable=SC2086  # the words of a command
	c=$(queue $words)
	[ -n "$c" ] || { not_ok "$words"; note "$(cat "$T/err")"; continue; }
	wait_until settled "$c"
	equal "$words" "$wanted" "$(result_of "$c")"
done <<C
applied|pause $id
applied|ctl pause $id
applied|ctl resume $id
applied|ctl resume $id
applied|msg $id first
applied|ctl msg $id only-for-second --to second
rejected:no-pending-ops: a has started|msg $id x --to a
rejected:no-pending-ops: plain takes no messages|msg $id x --to plain
rejected:not-waiting: a has no gate|approve $id a
rejected:not-waiting: last has no gate|deny $id last
applied|approve $id gated --note fine
rejected:not-waiting: gated has its verdict already|deny $id gated
applied|ctl deny $id refused --note $NOTE
rejected:not-waiting: refused has its verdict already|ctl approve $id refused
C
matches "show says what became of one, each word once" "message rejected, [^:]* ago: no-pending-ops" \
	"$("$FLOWSUP" show "$id")"
check "the approved operation runs" wait_until has_event "$id" NodeCompleted gated
matches_soon "show says who approved it" 'gated +completed .*approved by [^ ]+ [^ ]+ ago: fine' "$FLOWSUP" show "$id"
matches "so it does for programs" '"id":"gated".*"why":"approved by [^"]* ago: fine[";]' "$("$FLOWSUP" show "$id" --json)"
matches "a control names its operation, who and why" 'control +approve gated applied, [^ ]+ ago by [^ ]+: fine' \
	"$("$FLOWSUP" show "$id")"
matches "also in the list" 'approve gated by [^ ]+: fine +applied' "$("$FLOWSUP" ctl status "$id")"
check "the denied one fails, with class and note" wait_until \
	grep -q '"event":"NodeFailed".*"op":"refused","class":"denied".*never' "$FLOWSUP_HOME/runs/$id/events.jsonl"
check "an edge on failure reacts" wait_until has_event "$id" NodeCompleted mourns
equal "it never started" 0 "$(grep -c '"op":"refused","attempt"' "$FLOWSUP_HOME/runs/$id/attempts.log")"
check "nothing waits any more" wait_until eval '[ -z "$("$FLOWSUP" waiting --json)" ]'

# ---- Without --wait: the verdict, where it comes soon ----
while IFS='|' read -r status text words; do
	# shellcheck disable=SC2086  # the words of a command
	refused "its exit status is the verdict: ${words/$id/RUN}" "$status" "$text" "$FLOWSUP" $words
done <<C
0|message for run $id: applied|msg $id third --to second
0|pause for run $id: applied|pause $id
0|resume for run $id: applied|ctl resume $id
4|rejected:no-pending-ops: a has started|msg $id x --to a
4|rejected:not-waiting: a has no gate|approve $id a
4|rejected:not-waiting: gated has its verdict already|deny $id gated
C
"$FLOWSUP" approve "$id" a --json >"$T/out" 2>"$T/err"
equal "of which --json has one object" "4 1 1 1" "$? $(wc -l <"$T/out") $(grep -c '"error":"RefusedError"' "$T/err") \
$(grep -cE "^\{\"id\":\"[0-9a-f]{32}\",\"run\":\"$id\",\"state\":\"rejected\",\"result\":\"rejected:not-waiting" "$T/out")"
stop_still "$(worker_pid "$id")"
refused "of a worker that does not answer it is accepted alone" 0 "pause queued for run $id: its worker has not" \
	timeout 30 "$FLOWSUP" pause "$id"
matches "with the command that tells more" "hint: flowsup ctl status $id" "$(cat "$T/err")"
matches "which --json says too" '"state":"queued","result":null\}$' "$("$FLOWSUP" ctl resume "$id" --json)"
kill -CONT "$(worker_pid "$id")"
"$FLOWSUP" ctl resume "$id" --wait=30s 2>/dev/null

# ---- --wait ----
"$FLOWSUP" pause "$id" --wait 2>/dev/null
equal "--wait: applied" 0 $?
equal "the run is paused by then" paused "$(run_status "$id")"
"$FLOWSUP" resume "$id" >/dev/null 2>"$T/err"
equal "resume of a live paused run is a control" 0 $?
matches "which it says" "alive and paused" "$(cat "$T/err")"
check "it goes on" wait_until status_is "$id" running
"$FLOWSUP" msg "$id" x --to a --wait=20s 2>/dev/null
equal "--wait: rejected" 4 $?
worker=$(worker_pid "$id")
"$FLOWSUP" msg "$id" x --to a --wait=20s --json >"$T/out" 2>"$T/err"
equal "the outcome is an object, and the rejection an error of its type" "2 1" \
	"$(wc -l <"$T/out") $(grep -c '"error":"RefusedError"' "$T/err")"
matches "with state and result" '"state":"rejected".*"result":"rejected:no-pending-ops' "$(tail -1 "$T/out")"
"$FLOWSUP" ctl resume "$id" --wait --json >"$T/out" 2>"$T/err"
equal "of what was applied too" "0 1" "$? $(tail -1 "$T/out" | grep -c '"state":"applied".*"result":"applied"')"
stop_still "$worker"
"$FLOWSUP" pause "$id" --wait=1 2>"$T/err"
equal "--wait=1: not in that time" 3 $?
matches "which is said" "control [0-9a-f]{8}: queued; nothing more is known in that time" "$(cat "$T/err")"
kill -CONT "$(worker_pid "$id")"
"$FLOWSUP" ctl resume "$id" --wait=30s 2>/dev/null

# A database that is busy for longer than the wait.
hold_database
timeout 9 "$FLOWSUP" pause "$id" --wait=200ms 2>"$T/err"
equal "a wait that is shorter than a busy database is no longer for it" 5 $?
matches "nothing was queued, which is said" "nothing was queued for run $id: .* is busy" "$(cat "$T/err")"
release_database

# ---- Operations that are none ----
refused "approve: no such operation" 2 "run $id has no operation \"gatde\"" "$FLOWSUP" approve "$id" gatde
matches "the nearest is told" "hint: flowsup approve $id gated$" "$("$FLOWSUP" approve "$id" gatde 2>&1)"
refused "deny: no such operation" 2 "has no operation \"gatde\"" "$FLOWSUP" deny "$id" gatde
refused "msg: no such operation" 2 "has no operation \"secnd\"" "$FLOWSUP" msg "$id" x --to secnd
matches "the nearest is told for messages" "hint: flowsup msg $id x --to second$" \
	"$("$FLOWSUP" msg "$id" x --to secnd 2>&1)"

# ---- A gate that is not reached yet ----
e=$("$FLOWSUP" start - <<'Y'
plan: [{id: before, gate: approve, run: 'true'}, {id: later, gate: approve, needs: [before], run: 'true'}]
Y
)
check "the first gate waits" wait_until has_event "$e" NodeWaiting before
refused "a verdict for the gate behind it is rejected, and says when to try again" 4 \
	'rejected:not-waiting: later does not wait yet; "flowsup waiting" lists it when it does, then try again' \
	"$FLOWSUP" approve "$e" later --wait
matches "with the command that says what waits" "hint: flowsup waiting " "$(cat "$T/err")"
"$FLOWSUP" approve "$e" before --wait 2>/dev/null
check "then it waits" wait_until eval '"$FLOWSUP" waiting --json | grep -q "\"command\":\"flowsup approve $e later\""'
"$FLOWSUP" approve "$e" later --wait 2>/dev/null
equal "and takes the verdict" 0 $?
check "the run completes" wait_until status_is "$e" completed

# ---- The items of a foreach ----
e=$("$FLOWSUP" start - <<'Y'
plan: [{id: f, gate: approve, foreach: [x, y], run: 'true'}]
Y
)
refused "a foreach: its items are the operations" 2 \
	"no operation \"f\": each of its items is one" "$FLOWSUP" msg "$e" x --to f
matches "the first is told" "hint: flowsup msg $e x --to f\.[0-9a-z]+" "$(cat "$T/err" | tr '\n' ' ')"
"$FLOWSUP" kill "$e" >/dev/null 2>&1

# ---- Texts ----
refused "an empty text" 2 "empty" "$FLOWSUP" msg "$id" ""
refused "a text that is no UTF-8" 2 "not valid UTF-8" "$FLOWSUP" msg "$id" "$(printf 'a\377b')"
refused "a text with NUL" 2 "NUL" eval 'printf "a\0b" | "$FLOWSUP" msg "$id" -'
refused "a text above 1 MiB" 2 "more than 1048576" eval 'head -c 1048577 /dev/zero | tr "\0" x | "$FLOWSUP" msg "$id" -'
printf 'tab\there "quoted" \\ back\nnew line \033[2J\033]0;title\007 \303\251\n' >"$T/odd"
head -c 1048576 /dev/zero | tr '\0' y >"$T/large"
"$FLOWSUP" msg "$id" --to last - <"$T/odd" 2>/dev/null
"$FLOWSUP" msg "$id" --to second --wait=60s - <"$T/large" 2>/dev/null
equal "a megabyte is applied" 0 $?

# ---- Rows by others ----
session=$(sql "SELECT id FROM sessions WHERE run_id = '$id'")
insert() { sql "INSERT INTO session_controls(id, session_id, verb, payload, created_at) VALUES('$1', '$session', '$2', $3, (SELECT MAX(created_at) + 0.000001 FROM session_controls))"; }
insert 11111111111111111111111111111111 dance NULL
insert 22222222222222222222222222222222 message "'{\"to\": \"second\"}'"
insert 33333333333333333333333333333333 message "'{\"text\": \"a\\u0000b\"}'"
insert 44444444444444444444444444444444 approve NULL
check "rows by others are taken" wait_until settled 4444444444444444
equal "an unknown verb" rejected:unsupported-verb:dance "$(result_of 1111111111111111)"
equal "a message without a text is an empty one" applied "$(result_of 2222222222222222)"
matches "one that no file of text can hold" '^rejected:error:' "$(result_of 3333333333333333)"
equal "a verdict without an operation" rejected:not-waiting "$(result_of 4444444444444444)"

# ---- Claims are left alone, and resolved by people ----
sql "INSERT INTO session_controls(id, session_id, verb, payload, created_at, claimed_at, result) VALUES('55555555555555555555555555555555', '$session', 'message', '{\"text\": \"claimed by another\"}', 1, 2, 'applying:20200101T000000-aaaaaa')"
"$FLOWSUP" pause "$id" --wait 2>/dev/null; "$FLOWSUP" ctl resume "$id" --wait 2>/dev/null
equal "a claimed row is left alone" applying:20200101T000000-aaaaaa "$(result_of 5555555555555555)"
check "ctl status shows it as claimed" eval '"$FLOWSUP" ctl status "$id" --json | grep -q "\"id\":\"5555.*\"state\":\"claimed\""'
refused "resolve wants to know as what" 2 "say --as" "$FLOWSUP" ctl resolve 5555
refused "resolve of one that is closed" 4 "nothing was written" "$FLOWSUP" ctl resolve 2222 --as applied
refused "resolve of nothing" 2 "no control" "$FLOWSUP" ctl resolve 9999 --as applied
"$FLOWSUP" ctl resolve 5555 --as abandoned --by kim 2>/dev/null
equal "resolved" "abandoned: resolved by kim after the claim 'applying:20200101T000000-aaaaaa' was taken and never reported back" "$(result_of 5555555555555555)"
refused "and not twice" 4 "nothing was written" "$FLOWSUP" ctl resolve 5555 --as applied
check "ctl status says so" eval '"$FLOWSUP" ctl status "$id" --json | grep -q "\"id\":\"5555.*\"state\":\"resolved\""'

# ---- Targets ----
refused "an unknown run" 2 "" "$FLOWSUP" pause 20200101T000000-aaaaaa
refused "no such prefix" 2 "" "$FLOWSUP" msg zzz x

touch "$T/go"
"$FLOWSUP" wait "$id" >/dev/null 2>&1
out() { cat "$FLOWSUP_HOME/runs/$id/ops/$1.1.out"; }
check "the exact bytes came" eval 'out last | grep -qF "$(sed -n 2p "$T/odd")" && out last | grep -qF "$(sed -n 1p "$T/odd")"'
check "in the order of arrival" eval '[ "$(out last | grep -nE "first|tab" | cut -d: -f1 | tr "\n" " ")" = "4 5 " ]'
equal "none of the other's" 0 "$(out last | grep -c only-for-second)"
equal "the other has its own" 1 "$(out second | grep -c only-for-second)"
for line in "$(out last | head -1)" "$(out last | sed -n 2p)" "$(out last | sed -n 3p)" "$(out last | tail -1)"; do
	check "as flowsup-flow(5) shows it: $line" grep -qxF "$line" "$ROOT/man/flowsup-flow.5"
done
matches "with the time of the request" '^- [0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z: first$' "$(out last | sed -n 4p)"
check "a megabyte, byte by byte" eval 'out second | grep yyyy | cut -c25- | cmp -s - <(cat "$T/large"; echo)'
equal "no record of the log is broken" 0 "$(grep -cvE '^\{"event":.*\}$' "$FLOWSUP_HOME/runs/$id/events.jsonl")"
equal "no text is in the events" 0 "$(grep -cE 'quoted|yyyy|only-for' "$FLOWSUP_HOME/runs/$id/events.jsonl")"
equal "nor by what a note says" 0 "$("$FLOWSUP" show "$id" | grep -c $'\033')"
matches "which is shown" 'never.*cited' "$("$FLOWSUP" show "$id")"
equal "the terminal is not taken over" 0 "$("$FLOWSUP" ctl status "$id" | grep -c $'\033')"

# ---- A run at its end ----
for words in pause "ctl resume" "msg x" "approve a" "deny a"; do
	set -- $words
	refused "at its end: $words" 4 "not running: nothing was queued" "$FLOWSUP" ${1/ctl/ctl} $([ "$1" = ctl ] && echo "$2") "$id" $([ "$1" = ctl ] || echo "${2:-}")
done
sql "INSERT INTO session_controls(id, session_id, verb, created_at) VALUES('66666666666666666666666666666666', '$session', 'pause', 9)"
equal "a row that the sweep missed never landed" "never landed" "$("$FLOWSUP" ctl status "$id" --json | sed -nE 's/^\{"id":"6666.*"state":"([^"]*)".*/\1/p')"
sql "DELETE FROM session_controls WHERE id LIKE '6666%'"
equal "a claim has an owner" '20200101T000000-aaaaaa' "$("$FLOWSUP" ctl status "$id" --json | sed -nE 's/^\{"id":"5555.*"owner":"([^"]*)".*/\1/p')"
equal "no pending row is left" 0 "$(sql "SELECT COUNT(*) FROM session_controls WHERE applied_at IS NULL")"

# ---- Kinds ----
sql "UPDATE sessions SET kind = 'agent', status = 'running' WHERE run_id = '$id'"
refused "an agent has no boundary to pause at" 4 "no boundary to pause at" "$FLOWSUP" pause "$id"
refused "and none to resume at" 4 "no boundary" "$FLOWSUP" ctl resume "$id"
sql "UPDATE sessions SET kind = 'flow', status = 'completed' WHERE run_id = '$id'"

# ---- From below an operation ----
cat >"$T/below.sh" <<'S'
for words in "approve $FLOWSUP_RUN_ID gate" "deny $FLOWSUP_RUN_ID gate" "ctl resolve 1111 --as applied"; do
	flowsup $words 2>&1; echo "$?"
	env -i PATH="$PATH" FLOWSUP_HOME="$FLOWSUP_HOME" flowsup $words 2>&1; echo "$?"
done
S
# One that outlives its parents, in a session and with an environment of its own.
cat >"$T/orphan.sh" <<'S'
is_shell() { case $(cat "/proc/$(cut -d' ' -f4 /proc/$$/stat)/comm") in *sh | setsid) true ;; *) false ;; esac; }
while is_shell; do sleep 0.02; done
flowsup approve "$1" gate >"$2.new" 2>&1; echo "$?" >>"$2.new"; mv "$2.new" "$2"
S
cat >>"$T/below.sh" <<'S'
(env -i PATH="$PATH" FLOWSUP_HOME="$FLOWSUP_HOME" setsid sh "$T/orphan.sh" "$FLOWSUP_RUN_ID" "$T/orphan" >/dev/null 2>&1 &)
until test -e "$T/orphan"; do sleep 0.02; done
S
b=$("$FLOWSUP" start - <<Y
plan: [{id: a, run: 'sh "$T/below.sh"'}, {id: gate, needs: [a], gate: approve, run: 'true'}]
Y
)
check "it asks" wait_until has_event "$b" NodeWaiting gate
equal "refused from below an operation, also without its environment" "4 4 4 4 4 4" \
	"$(grep -xE '[0-9]+' "$FLOWSUP_HOME/runs/$b/ops/a.1.out" | xargs)"
matches "and from an orphan of one" "within an operation.* 4$" "$(xargs <"$T/orphan")"
equal "with the reason" 6 "$(grep -c 'from within an operation' "$FLOWSUP_HOME/runs/$b/ops/a.1.out")"
equal "nothing was queued" 0 "$(sql "SELECT COUNT(*) FROM session_controls c JOIN sessions s ON s.id = c.session_id WHERE s.run_id = '$b'")"

# ---- A verdict is state: a resume neither asks again nor forgets ----
"$FLOWSUP" stop "$b" --wait >/dev/null 2>&1
check "what waits ends with a stop" wait_until status_is "$b" cancelled
v=$("$FLOWSUP" start - <<Y
concurrency: 1
plan:
  - {id: yes, gate: approve, run: 'until test -e "$T/go2"; do sleep 0.02; done'}
  - {id: no, gate: approve, needs: [{op: yes, on: always}], run: 'true'}
  - {id: other, gate: approve, run: 'true'}
Y
)
wait_until has_event "$v" NodeWaiting yes
"$FLOWSUP" approve "$v" yes --wait=30s 2>/dev/null
wait_until started "$v" yes
"$FLOWSUP" pause "$v" --wait=30s 2>/dev/null
kill -KILL "$(worker_pid "$v")"
check "it crashes" wait_until status_is "$v" crashed
w=$("$FLOWSUP" resume "$v" 2>"$T/err")
matches "the resume says that the gate is open" "was paused; the new run begins with the gate open" "$(cat "$T/err")"
touch "$T/go2"
check "the approved one is not asked for again" wait_until has_event "$w" NodeCompleted yes
equal "the other one is" 1 "$(grep -c '"event":"NodeWaiting".*"op":"other"' "$FLOWSUP_HOME/runs/$w/events.jsonl")"
equal "no second question" 0 "$(grep -c '"event":"NodeWaiting".*"op":"yes"' "$FLOWSUP_HOME/runs/$w/events.jsonl")"

# ---- A run that waits in the queue ----
"$FLOWSUP" queue set narrow --slots 1 2>/dev/null
before=$("$FLOWSUP" start --queue narrow - <<<"plan: [{id: a, run: 'until test -e \"$T/go4\"; do sleep 0.02; done'}]")
cat >"$T/queued.yaml" <<'Y'
plan:
  - {id: first, messages: true, run: 'cat "$FLOWSUP_MESSAGES"'}
  - {id: yes, gate: approve, needs: [], run: 'true'}
  - {id: no, gate: approve, needs: [], run: 'true'}
Y
q=$("$FLOWSUP" start --queue narrow "$T/queued.yaml")
gone_by=$("$FLOWSUP" start --queue narrow "$T/queued.yaml")
check "it waits for its slot" wait_until eval '"$FLOWSUP" show "$q" --json | grep -q "\"reason\":\"run.queued.slot\""'
while read -r words; do
	# shellcheck disable=SC2086  # the words of a command
	refused "queued for it: $words" 0 "queued for run .*: it takes effect when the run is started" "$FLOWSUP" $words
done <<C
msg $q before-it-began
pause $q
approve $q yes
deny $q no
msg $gone_by never
C
"$FLOWSUP" msg "$q" y --wait=0 2>"$T/err"
equal "who waits is told that it is queued" "3 1" "$? $(grep -c 'queued' "$T/err" | sed 's/[1-9]/1/')"
"$FLOWSUP" stop "$gone_by" 2>/dev/null
equal "one that is cancelled has no pending row" "0 1" \
	"$(sql "SELECT COUNT(*) FILTER (WHERE applied_at IS NULL), COUNT(*) FROM session_controls c JOIN sessions s ON s.id = c.session_id WHERE s.run_id = '$gone_by'" | tr '|' ' ')"
touch "$T/go4"
check "its pause holds it before anything starts" wait_until status_is "$q" paused
check "all is applied" wait_until eval '[ "$("$FLOWSUP" ctl status "$q" --json | grep -c "\"state\":\"applied\"")" = 5 ]'
equal "nothing has started" 0 "$(grep -c '"kind":"start"' "$FLOWSUP_HOME/runs/$q/attempts.log")"
"$FLOWSUP" ctl resume "$q" 2>/dev/null
"$FLOWSUP" wait "$q" >/dev/null 2>&1
equal "the first operation has what was said before" 1 "$(grep -c before-it-began "$FLOWSUP_HOME/runs/$q/ops/first.1.out")"
equal "the verdicts stand" "yes completed no failed" "$("$FLOWSUP" show "$q" --json | grep -oE '"id":"(yes|no)","state":"[a-z]*"' | tr -d '"' | sed 's/id://; s/,state:/ /' | xargs)"

# ---- --wait goes along with what goes over to the run that resumes ----
touch "$T/stays"
f=$("$FLOWSUP" start - <<Y
plan:
  - {id: s, run: 'while test -e "$T/stays"; do sleep 0.02; done'}
  - {id: m, needs: [s], messages: true, run: 'cat "\$FLOWSUP_MESSAGES"'}
Y
)
wait_until started "$f" s
f_worker=$(worker_pid "$f")
stop_still "$f_worker"
"$FLOWSUP" msg "$f" "goes over" --wait 2>"$T/follow" &
follower=$!
check "it is queued" wait_until eval '"$FLOWSUP" ctl status "$f" --json | grep -q "\"state\":\"queued\""'
kill -KILL "$f_worker"
check "the run crashes" wait_until status_is "$f" crashed
g=$("$FLOWSUP" resume "$f" 2>/dev/null)
check "who waits for it gets the outcome" wait_until gone $follower
kill $follower 2>/dev/null
wait $follower
equal "which is that of the row" 0 $?
matches "and is told where it went" "goes on with run $g, which resumed $f.*: applied" "$(xargs <"$T/follow")"

# ---- What a dead worker has claimed ----
stop_still "$(worker_pid "$g")"
"$FLOWSUP" msg "$g" "claimed, then dead" --wait 2>"$T/follow" &
follower=$!
check "it is queued for the second run" wait_until eval '"$FLOWSUP" ctl status "$g" --json | grep -q "then dead"'
sql "UPDATE session_controls SET claimed_at = 3, result = 'applying:$g' WHERE payload LIKE '%then dead%'"
kill -KILL "$(worker_pid "$g")"
check "who waits for it is told when its worker dies" wait_until gone $follower
kill $follower 2>/dev/null
wait $follower
equal "that neither is known" 3 $?
matches "with the command that closes it" "worker of run $g died.*hint: flowsup ctl resolve [0-9a-f]{8} --as" "$(xargs <"$T/follow")"
lost=$(sql "SELECT id FROM session_controls WHERE payload LIKE '%then dead%'")
closes="flowsup ctl resolve ${lost:0:8} --as abandoned"
other="flowsup ctl resolve ${lost:0:8} --as applied"
matches_soon "waiting lists it, with the command that closes it" \
	"\"run\":\"$g\".*\"for\":\"resolve\".*\"command\":\"$closes\",\"commands\":\\[\"$closes\",\"$other\"\\]" "$FLOWSUP" waiting --json
check "it crashes" wait_until status_is "$g" crashed
matches "resume -n tells of it" "control ${lost:0:8} \(message\): run $g had claimed it; .*hint: $closes hint: $other" \
	"$("$FLOWSUP" resume -n "$g" 2>&1 | tr '\n' ' ')"
h=$("$FLOWSUP" resume "$g" 2>"$T/err")
matches "resume too" "control ${lost:0:8} .*hint: $closes" "$(tr '\n' ' ' <"$T/err")"
matches "show of the run that goes on has it" "control  *message claimed, .* $closes  *$other " "$("$FLOWSUP" show "$h" | tr '\n' ' ')"
for run in "$g" "$h"; do
	matches "ctl status too, whichever run is named" "claimed.*hint: $closes hint: $other" "$("$FLOWSUP" ctl status "$run" 2>&1 | tr '\n' ' ')"
done
equal "--this-run stays" 0 "$("$FLOWSUP" ctl status "$h" --this-run --json 2>/dev/null | grep -c "$lost")"
"$FLOWSUP" ctl resolve "${lost:0:8}" --as abandoned 2>/dev/null
equal "once it is closed nothing is said of it" 0 "$({ "$FLOWSUP" waiting --json; "$FLOWSUP" resume -n "$h"; } 2>&1 | grep -c "$lost\|had claimed")"
"$FLOWSUP" kill "$h" >/dev/null 2>&1
rm -f "$T/stays"

# ---- What waits when the job ends otherwise ----
stop_still "$(worker_pid "$w")"
id=$w
c=$(queue pause "$w")
kill -KILL "$(worker_pid "$w")"
check "a run with a waiting control crashes" wait_until status_is "$w" crashed
equal "the control waits for a resume" queued "$("$FLOWSUP" ctl status "$w" --json | grep "$c" | sed -nE 's/.*"state":"([a-z ]*)".*/\1/p')"
"$FLOWSUP" kill "$w" >/dev/null 2>&1
equal "kill ends the job, and rejects it" "rejected: the job ended before the control could land" "$(result_of "$c")"
equal "it never landed" "never landed" "$("$FLOWSUP" ctl status "$w" --json | grep "$c" | sed -nE 's/.*"state":"([a-z ]*)".*/\1/p')"

# ---- Operations that were added ----
rm -f "$T/go3" "$T/asked"
id=$("$FLOWSUP" start - <<Y
reactive: all
plan: [{id: a, run: '"$FLOWSUP" emit spawn --run true && : >"$T/asked"; until test -e "$T/go3"; do sleep 0.02; done'}]
Y
)
check "an operation is added" wait_until test -e "$T/asked"
"$FLOWSUP" msg "$id" x 2>"$T/err"
equal "a message that nothing takes is refused" 4 $?
matches "with words, and where to look" \
	"rejected:no-pending-ops: no operation of the run that takes messages.* hint: flowsup show $id " "$(paste -sd' ' "$T/err")"
refused "it is known, and its worker has the word" 4 "rejected:no-pending-ops: a.s1 " "$FLOWSUP" msg "$id" x --to a.s1
refused "another one is not" 2 "hint: flowsup approve $id a.s1$" "$FLOWSUP" approve "$id" a.s2
equal "logs knows it before it starts" "0 flowsup: operation \"a.s1\" has not started" \
	"$(out=$("$FLOWSUP" logs "$id" a.s1 2>&1); echo "$? $out")"
mv "$FLOWSUP_HOME/runs/$id/flow.json" "$T/flow.json"
refused "without the document it is queued, and its worker has the word" 4 "rejected:no-pending-ops" "$FLOWSUP" msg "$id" x --to nobody
mv "$T/flow.json" "$FLOWSUP_HOME/runs/$id/flow.json"
: >"$T/go3"
check "the run ends" "$FLOWSUP" wait "$id"

plan
