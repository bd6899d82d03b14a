#!/usr/bin/env bash
# Queues with slots, and one job at a time by key.
. "$(dirname "$0")/lib.sh"

fact() { json "$("$FLOWSUP" list --json -n 100000 | grep "^{\"id\":\"$1\"")" "$2"; }
is() { [ "$(fact "$1" status)" = "$2" ]; }
reason_is() { [ "$(fact "$1" reason)" = "$2" ]; }
# start GO OPTION...: a run until $T/go-GO is there.
start() {
	local go=$1
	shift
	"$FLOWSUP" start "$@" -- sh -c "until [ -e '$T/go-$go' ]; do sleep 0.02; done"
}
go() { touch "$T/go-$1"; }

# ---- Slots and order ----
out=$("$FLOWSUP" start --queue builds -- true 2>&1)
matches "a queue without a limit is said" "queue 'builds' has no limit" "$out"
equal "a name that is none is refused" 2 "$("$FLOWSUP" start --queue 'a b' -- true 2>/dev/null; echo $?)"
equal "slots must be given" 2 "$("$FLOWSUP" queue set builds 2>/dev/null; echo $?)"
check "a limit is set" "$FLOWSUP" queue set builds --slots 2
ids=()
for i in 1 2 3 4 5; do ids+=("$(start "$i" --queue builds)"); done
check "two of five run" wait_until is "${ids[1]}" running
wait_until is "${ids[0]}" running
for i in 2 3 4; do wait_until reason_is "${ids[$i]}" run.queued.slot; done
equal "the others wait for a slot" "queued queued queued" \
	"$(for i in 2 3 4; do fact "${ids[$i]}" status; done | paste -sd ' ')"
other=$("$FLOWSUP" start -- true)
check "other runs do not wait" wait_until is "$other" completed
taken="waits for a slot of queue 'builds' \(2 of 2 taken by ${ids[0]}, ${ids[1]}\)"
matches "list names the queue and who has its slots" "^${ids[2]} .*$taken" "$("$FLOWSUP" list | grep "^${ids[2]}")"
shown=$("$FLOWSUP" show "${ids[2]}")
matches "show does so" "^run .*status +queued: $taken " "$shown"
matches "of its operations as well" "pending .*waits for the run to start, which $taken" "$shown"
equal "and programs are told" "{\"queue\":\"builds\",\"slots\":2,\"held_by\":[\"${ids[0]}\",\"${ids[1]}\"]}" \
	"$("$FLOWSUP" show --json "${ids[2]}" | grep -o '"waits_for":{[^}]*}' | cut -d: -f2-)"
matches "of a run that runs there is nothing" '"waits_for":null' "$("$FLOWSUP" list --json | grep "^{\"id\":\"${ids[0]}\"")"
# followed COMMAND...: what it says until it does.
followed() { "$FLOWSUP" "$@" >"$T/followed" 2>&1 & }
said() { grep -qE "$1" "$T/followed"; }
followed logs -f "${ids[2]}"
check "logs -f says once why nothing comes" wait_until said "^flowsup: run ${ids[2]} is queued: $taken\$"
kill "$!"
wait "$!"
followed watch "${ids[2]}"
check "so does watch" wait_until said "^run ${ids[2]} is queued, 0 of 1 done; $taken\$"
kill "$!"
wait "$!"
matches "queue list counts them" '^builds +2 +2 +3$' "$("$FLOWSUP" queue list | grep builds)"
go 2
check "the oldest that waits is the next" wait_until is "${ids[2]}" running
is "${ids[3]}" queued || not_ok "and no other"
pid=$(supervisor_pid)
kill -KILL "$pid"
wait_until gone "$pid"
"$FLOWSUP" supervisor
wait_until worker_is_ready "${ids[2]}"
equal "they wait on after the death of the supervisor" "queued queued" \
	"$(fact "${ids[3]}" status) $(fact "${ids[4]}" status)"
"$FLOWSUP" stop "${ids[3]}" 2>/dev/null
go 1
check "one that was stopped is passed over" wait_until is "${ids[4]}" running
six=$(start 6 --queue builds)
wait_until reason_is "$six" run.queued.slot
"$FLOWSUP" queue set builds --slots 3
check "more slots start more" wait_until is "$six" running
go 3; go 5; go 6

# ---- A slot belongs to the job ----
"$FLOWSUP" queue set one --slots 1
first=$(start slot --queue one --restart 2)
wait_until worker_is_ready "$first"
second=$(start second --queue one)
wait_until reason_is "$second" run.queued.slot
kill -KILL "$(worker_pid "$first")"
resumed() { [[ $(fact "$1" resumed_as) =~ ^[0-9] ]]; }
check "a job that crashed" wait_until resumed "$first"
next=$(fact "$first" resumed_as)
check "goes on in its slot" wait_until is "$next" running
is "$second" queued || not_ok "before those that wait"
go slot
check "its end frees it" wait_until is "$second" running
go second

# ---- Keys ----
first=$(start key --unique nightly)
wait_until is "$first" running
out=$(start key --unique nightly 2>"$T/said")
equal "skip: nothing is started" "0 " "$? $out"
matches "and who goes on is said" "run $first goes on with the key 'nightly'" "$(cat "$T/said")"
equal "queue: which a program is told" "{\"run\":null,\"nothing\":\"unique\",\"holder\":\"$first\"}" \
	"$(start key --unique nightly --json 2>/dev/null)"
out=$(start key --unique nightly --if-running fail 2>/dev/null)
equal "fail: refused" "4 " "$? $out"
equal "nothing of them is left" 0 "$(find "$FLOWSUP_HOME/runs" -name '.new-*' | count)"
other=$("$FLOWSUP" start --unique weekly -- true)
check "another key is no matter" wait_until is "$other" completed
second=$(start key2 --unique nightly --if-running queue 2>/dev/null)
check "queue: it waits" wait_until reason_is "$second" run.queued.unique
held="waits for the key 'nightly', held by run $first"
matches "list names the key and who has it" "^$second .*$held" "$("$FLOWSUP" list | grep "^$second")"
equal "and programs are told" "{\"key\":\"nightly\",\"held_by\":[\"$first\"]}" \
	"$("$FLOWSUP" show --json "$second" | grep -o '"waits_for":{[^}]*}' | cut -d: -f2-)"
third=$(start key3 --unique nightly --if-running queue 2>/dev/null)
wait_until reason_is "$third" run.queued.unique
go key
check "for the end of the one before" wait_until is "$second" running
is "$third" queued || not_ok "one at a time"
matches "another one has it then" "^$third .*held by run $second" "$("$FLOWSUP" list | grep "^$third")"
out=$("$FLOWSUP" start --unique nightly --if-running replace -- true 2>"$T/said")
matches "replace: says what it does" "is stopped, and run $out takes its place" "$(cat "$T/said")"
check "it takes the place of what runs" wait_until is "$out" completed
equal "and of what waits" "cancelled cancelled" "$(fact "$second" status) $(fact "$third" status)"
equal "--if-running needs a key" 2 "$("$FLOWSUP" start --if-running skip -- true 2>/dev/null; echo $?)"

# ---- One that blocks for long ----
first=$(start long --unique hangs --notify "touch")
wait_until is "$first" running
start long --unique hangs >/dev/null 2>&1
sql "UPDATE sessions SET metadata =
	json_set(metadata, '\$.blocks.first', strftime('%s') - 90000) WHERE run_id = '$first'"
out=$(start long --unique hangs 2>&1)
matches "a job that blocks others for long is reported" "has kept 2 starts waiting, for 1d.*does it hang" "$out"
matches "it can be seen by programs" '"event":"blocking"' "$("$FLOWSUP" show --json "$first")"
matches "and waits for a person" "$first.*blocks others" "$("$FLOWSUP" waiting)"
"$FLOWSUP" stop "$first" --now 2>/dev/null
plan
