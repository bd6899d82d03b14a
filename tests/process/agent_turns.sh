#!/usr/bin/env bash
# A run of one agent operation: messages come at the end of its turn, in the same conversation.
. "$(dirname "$0")/lib_agent.sh"

one() { # instruction, more of the operation
	printf '%s\n' 'name: one' 'defaults: {grace: 500ms}' 'roles: {agent: {provider: claude}}' \
		"plan: [{id: a, assignee: agent, ${2:-}instruction: \"$1\"}]" >"$T/flow.yaml"
}
begin() { rm -f "$AGENT"/go "$AGENT"/slow-*; RUN=$("$FLOWSUP" start "$T/flow.yaml"); wait_until in_turn; }
in_turn() { ls "$AGENT"/slow-* >/dev/null 2>&1; }
state() { "$FLOWSUP" ctl status "$RUN" --this-run --json | grep -F "$1" | sed -nE 's/.*"state":"([^"]*)".*/\1/p'; }
row() { "$FLOWSUP" ctl status "$RUN" --this-run --json | grep -F "$1" | sed -nE 's/.*"result":"?([^"}]*)"?\}$/\1/p'; }
id_of() { cat "$(run_dir)"/checkpoint.json* | grep -oE '"conversation":\{[^}]*"id":"[^"]*"' | tail -1 | sed -E 's/.*"id":"([^"]*)"/\1/'; }
events() { grep -c "\"event\":\"$1\"" "$(run_dir)/events.jsonl"; }
prompt() { sed -E 's/^- [0-9T:-]+Z: /- TIME: /' "$(run_dir)/ops/a.$1/instruction"; }

# Of the start line of an attempt: `start` in clock ticks since boot, `limit_ms` on the same clock.
started() { sed -nE "s/.*\"attempt\":$1,.*\"$2\":([0-9]+).*/\1/p" "$(run_dir)/attempts.log"; }
# The first turn has used a second of its time limit.
has_used_a_second() {
	local now
	read -r now _ </proc/uptime
	now=${now%.*}
	[ $((now - $(started 1 start) / $(getconf CLK_TCK))) -ge 2 ]
}

# ---- Joined, in order, in the same conversation ----
one 'slow one' 'timeout: 100s, '
begin
equal "it is of kind agent" agent "$(run_fact "$RUN" kind)"
"$FLOWSUP" pause "$RUN" 2>"$T/err"
equal "it cannot be paused" 4 $?
matches "which is explained" "no boundary to pause at" "$(cat "$T/err")"
"$FLOWSUP" msg "$RUN" 'first of two' 2>/dev/null
"$FLOWSUP" msg "$RUN" 'second, "quoted"' --to a 2>/dev/null
"$FLOWSUP" msg "$RUN" 'to nobody' --to b --wait=30s 2>/dev/null
equal "nobody else is there to take one" 2 $?
equal "while the turn runs they are queued" "queued queued" "$(state 'first of') $(state 'second,')"
wait_until has_used_a_second
: >"$AGENT/go"
check "the run ends" wait_until ended
equal "it is completed" completed "$(run_status "$RUN")"
equal "both are applied" "applied applied" "$(row 'first of') $(row 'second,')"
equal "the second turn has only the messages" '[OPERATOR STEER]
A human operator sent these live corrections while this flow is running.
Attend to them before continuing. Most recent last.
- TIME: first of two
- TIME: second, "quoted"
[/OPERATOR STEER]' "$(prompt 2)"
matches "the conversation went on" '"response":"turns: slow one\|\[OPERATOR STEER\]\|"' "$(entry a)"
matches "two turns are recorded" '"turns":2' "$(entry a)"
matches "what was used is counted together" '"cost_usd":0.5[,}]' "$(entry a)"
equal "one end of the operation, one of a turn less" "1 2" "$(events NodeCompleted) $(events TurnCompleted)"
left() { echo $(($(started "$1" limit_ms) - $(started "$1" start) * 1000 / $(getconf CLK_TCK))); }
check "it had what was left of the time limit" [ "$(left 2)" -lt $(($(left 1) - 500)) ]
equal "no process was two users of it" "" "$(cat "$AGENT/collisions" 2>/dev/null)"

# ---- What comes before the start is put in front ----
one 'ok begun' 'gate: approve, '
RUN=$("$FLOWSUP" start "$T/flow.yaml")
wait_until grep -q NodeWaiting "$(run_dir)/events.jsonl"
"$FLOWSUP" msg "$RUN" 'early' --wait=30s 2>/dev/null
equal "it is applied at once" 0 $?
"$FLOWSUP" approve "$RUN" a 2>/dev/null
wait_until ended
matches "and stands in front" 'TIME: early.*ok begun' "$(prompt 1 | tr '\n' ' ')"
equal "one turn was enough" 1 "$(find "$(run_dir)/ops" -name 'a.*.out' | wc -l)"

# ---- A stop and the time limit ----
one 'slow two'
begin
"$FLOWSUP" stop "$RUN" --wait=30s 2>/dev/null
"$FLOWSUP" msg "$RUN" 'too late' 2>/dev/null
: >"$AGENT/go"
wait_until ended
equal "after a stop nothing follows" cancelled "$(run_status "$RUN")"
matches_soon "what was not claimed is rejected" "^rejected: ?(run reached terminal status|no-pending-ops)" row 'too late' # at its end, or before
matches "the turn's outcome stands" '"status":"completed","response":"turns: slow two' "$(entry a)"
one 'half three' 'timeout: 30s, '
run_flow
equal "a turn that fails is not followed" failed "$(run_status "$RUN")"
# The first turn needs more than the limit leaves for a second.
own_provider -e 's/"jsonl"/"jsonl"/'
one 'slow four' 'timeout: 6s, '
begin
"$FLOWSUP" msg "$RUN" 'slow reply' 2>/dev/null
wait_until ended
equal "a turn that is cut off by the limit has failed" failed "$(run_status "$RUN")"
matches_soon "the message was not claimed" "^rejected: run reached terminal status" row 'slow reply'

# ---- The worker dies in the second turn ----
cat >"$T/second.sed" <<'S'
s/^lost)$/\[OPERATOR) : >"$home\/slow-second"; while [ ! -e "$home\/go2" ]; do sleep 0.05; done ;;\nlost)/
S
sed -i -f "$T/second.sed" "$BIN/claude"
cp "$BIN/claude" "$T/claude.slow"
one 'slow five'
begin
"$FLOWSUP" msg "$RUN" 'survives' 2>/dev/null
: >"$AGENT/go"
check "the second turn runs" wait_until [ -e "$AGENT/slow-second" ]
equal_soon "the message is applied" applied row survives
op_state() { "$FLOWSUP" show "$RUN" --json | grep -oE '"id":"a","state":"[a-z]+"' | cut -d'"' -f8; }
equal_soon "show says that it runs" running op_state
"$FLOWSUP" msg "$RUN" 'goes over' 2>/dev/null
# A base holds it: the message came with it.
matches "the first turn's outcome is durable" '"status":"completed","response":"turns: slow five\|"' "$(cat "$(run_dir)/checkpoint.json")"
old=$RUN
kill -KILL "$(worker_pid "$RUN")"
wait_until status_is "$RUN" crashed
power_loss "$RUN"
"$FLOWSUP" resume "$old" --dry-run >"$T/out" 2>&1
matches "a dry run tells of the turn" 'turn 2, for messages, runs again' "$(cat "$T/out")"
RUN=$("$FLOWSUP" resume "$old" 2>"$T/err")
check "the resumed run does the turn again" wait_until [ -s "$(run_dir)/ops/a.3/instruction" ]
matches "with its message" "TIME: survives" "$(prompt 3)"
equal "and not the other one" 0 "$(prompt 3 | grep -c 'goes over')"
: >"$AGENT/go2"
check "it ends" wait_until ended
equal "it is completed, too" completed "$(run_status "$RUN")"
matches "what nobody had claimed came with the run, in a third turn" "TIME: goes over" "$(prompt 4)"
equal "the first one only once" 0 "$(prompt 4 | grep -c survives)"
matches "three turns" '"turns":3' "$(entry a)"
equal "each row in one state" "applied" "$(row 'goes over')"

# ---- The worker dies when the turn has ended and no message is claimed ----
cp "$T/claude.slow" "$BIN/claude"
rm -f "$AGENT/go2" && : >"$AGENT/go2"
if nm -D "$WORKER" 2>/dev/null | grep -q __asan_init; then
	skip "no library before the sanitizer's"
else
	export DIE_AT=$T/die-at
	"$FLOWSUP" supervisor stop >/dev/null 2>&1
	one 'slow nine'
	rm -f "$AGENT"/go "$AGENT"/slow-*
	RUN=$(LD_PRELOAD=$BUILD/tests/preload/die_at.so "$FLOWSUP" start "$T/flow.yaml")
	wait_until in_turn
	echo claim-before 1 >"$DIE_AT"
	"$FLOWSUP" msg "$RUN" 'not yet claimed' 2>/dev/null
	: >"$AGENT/go"
	check "it dies" wait_until status_is "$RUN" crashed
	equal "before the claim" queued "$(state 'not yet claimed')"
	RUN=$("$FLOWSUP" resume "$RUN" 2>/dev/null)
	check "the resumed run ends" wait_until ended
	equal "well" completed "$(run_status "$RUN")"
	equal "it has taken the message" applied "$(row 'not yet claimed')"
	matches "in a second turn of the same conversation" '"response":"turns: slow nine\|\[OPERATOR STEER\]\|' "$(entry a)"
fi

# ---- A person's own command line ----
rm -f "$AGENT"/go "$AGENT"/slow-* "$AGENT/slow-second"
: >"$AGENT/go2"
RUN=$("$FLOWSUP" start -- claude -p 'slow seven {sid}' --output-format stream-json)
wait_until in_turn
equal "it is of kind agent" agent "$(run_fact "$RUN" kind)"
"$FLOWSUP" msg "$RUN" 'say it {sid} too' 2>/dev/null
head -c 131000 /dev/zero | tr '\0' x | "$FLOWSUP" msg "$RUN" - 2>/dev/null
: >"$AGENT/go"
check "it ends" wait_until ended
equal "well" completed "$(run_status "$RUN")"
equal "its first turn is the command, in a conversation that is known" "slow seven {sid}" "$(sed -n 1p "$AGENT/conversations/$(id_of claude)")"
matches "the second turn goes on in it" "turns: slow seven \{sid\}\|\[OPERATOR STEER\]\|" "$(cat "$(run_dir)/ops/claude.2.out")"
matches "what is too long for a word is rejected, and why" "^rejected:error:.*would be longer" "$(row 'xxxxxxxx')"

# Three that fit two by two: the third is for the turn after, and what is behind it does not overtake it.
rm -f "$AGENT"/go "$AGENT"/slow-*
RUN=$("$FLOWSUP" start -- claude -p 'slow long' --output-format stream-json)
wait_until in_turn
for letter in p q r; do
	{ printf '%s: ' $letter; head -c 60000 /dev/zero | tr '\0' $letter; } | "$FLOWSUP" msg "$RUN" - 2>/dev/null
done
"$FLOWSUP" msg "$RUN" 'short one' 2>/dev/null
: >"$AGENT/go"
check "it ends" wait_until ended
equal "well" completed "$(run_status "$RUN")"
equal "none is rejected" "applied applied applied applied" "$(row 'ppppp') $(row 'qqqqq') $(row 'rrrrr') $(row 'short one')"
matches "in two further turns" '"turns":3' "$(entry claude)"
marks() { grep -oE '"text":"[a-z]+[: ]|"turn":[0-9]+' "$(run_dir)/checkpoint.json" | sed -E 's/"text":"|"turn"//; s/[: ]$//' | tr -d '\n' ; }
equal "two in the first, the third and what came behind it in the second" "p:2q:2r:3short:3" "$(marks)"

# Its worker dies in either turn, and the process goes on: the next worker knows the conversation.
for killed in 1 2; do
	rm -f "$AGENT"/go "$AGENT"/slow-* "$AGENT"/go2
	RUN=$("$FLOWSUP" start -- claude -p "slow kept $killed" --output-format stream-json)
	wait_until in_turn
	if [ $killed = 2 ]; then
		"$FLOWSUP" msg "$RUN" 'for the second' 2>/dev/null
		: >"$AGENT/go"
		check "the second turn runs" wait_until [ -e "$AGENT/slow-second" ]
	fi
	kill -KILL "$(worker_pid "$RUN")"
	wait_until status_is "$RUN" crashed
	RUN=$("$FLOWSUP" resume "$RUN" 2>/dev/null)
	"$FLOWSUP" msg "$RUN" 'after the crash' 2>/dev/null
	: >"$AGENT/go"
	: >"$AGENT/go2"
	check "killed in turn $killed, the resumed run ends" wait_until ended
	equal "well" completed "$(run_status "$RUN")"
	equal "the message was taken" applied "$(row 'after the crash')"
	matches "in the conversation that it began with" "^slow kept $killed( .OPERATOR STEER.){$killed} \$" "$(tr '\n' ' ' <"$AGENT/conversations/$(id_of claude)")"
done
RUN=$("$FLOWSUP" start -- claude -p 'ok eight' --output-format stream-json --session-id mine)
wait_until ended
equal "a conversation that a person has named stays as it is" flow "$(run_fact "$RUN" kind)"
matches "with the words as they were" '"session_id":"mine"' "$(cat "$(run_dir)/ops/claude.1.out")"

# ---- A turn that fails ----
sed -i 's/^\[OPERATOR) :.*/[OPERATOR) if [ ! -e "$home\/mended" ]; then echo broken >\&2; exit 3; fi ;;/' "$BIN/claude"
one 'slow six'
begin
"$FLOWSUP" msg "$RUN" 'breaks it' 2>/dev/null
: >"$AGENT/go"
check "it ends" wait_until ended
equal "as failed" failed "$(run_status "$RUN")"
matches "by the second turn, and the first one's outcome is kept" '"status":"failed","response":"turns: slow six\|.*turn 2: ' "$(entry a)"
: >"$AGENT/mended"
RUN=$("$FLOWSUP" resume "$RUN" --retry-failed 2>"$T/err")
check "a resume ends" wait_until ended
equal "well" completed "$(run_status "$RUN")"
matches "with that turn alone" '"response":"turns: slow six\|\[OPERATOR STEER\]\|' "$(entry a)"
equal "show does not say that it was replayed" 0 "$("$FLOWSUP" show "$RUN" | grep -c replayed)"
equal "of which one was run" 1 "$(find "$(run_dir)/ops" -name 'a.*.out' | wc -l)"
plan
