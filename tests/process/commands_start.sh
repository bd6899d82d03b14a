#!/usr/bin/env bash
# flowsup start: its forms, what it refuses, and that a refusal leaves nothing behind.
. "$(dirname "$0")/lib.sh"
mkdir "$T/work" && cd "$T/work" || exit 1

fails() { # name status regex-of-stderr command...
	local name=$1 wanted=$2 regex=$3 out status
	shift 3
	out=$("$@" 2>&1 >/dev/null </dev/null)
	status=$?
	equal "$name: exit $wanted" "$wanted" "$status"
	matches "$name: says so" "$regex" "$out"
}
output_of() { # what a run of these words wrote, and nothing else
	local id
	id=$("$FLOWSUP" start --wait "$@" 2>/dev/null) && "$FLOWSUP" logs "$id"
}

# ---- Nothing is made by what only looks ----
printf 'name: demo\nplan:\n  - id: a\n    run: touch made\n  - {id: b, needs: [a], run: "true"}\n' >demo.yaml
matches "a dry run with --json is an object" '^\{"name":"demo","operations":[0-9]+,"ops":\[\{"id":' \
	"$("$FLOWSUP" start --dry-run --json demo.yaml)"
out=$("$FLOWSUP" start --dry-run demo.yaml)
equal "a dry run succeeds" 0 $?
matches "it shows the plan" "demo: 2 operations.*a.*b" "$out"
equal "list without runs succeeds" 0 "$("$FLOWSUP" list >/dev/null 2>&1; echo $?)"
matches "and says how to start one" "hint: flowsup start" "$("$FLOWSUP" list 2>&1 >/dev/null)"
fails "show without runs" 2 "no runs" "$FLOWSUP" show

# ---- Documents that are no flow ----
: >empty.yaml
printf '\377\376\000\001binary' >binary.yaml
printf 'plan: [{id: a, run: "x\303\050"}]\n' >latin.yaml
printf 'plan:\n  - {id: a, run: x, needs: [b]}\n  - {id: b, run: y, needs: [a]}\n' >cyclic.yaml
printf 'plan: [{id: a, run: x, needs: [a]}]\n' >self.yaml
printf '{"plan":[{"id":"a","run":"x","run":"y"}]}' >duplicate.json
printf 'plan: [{id: a, rnu: x}]\n' >unknown.yaml
# A value that only = joins to its option, and that was written apart.
while IFS='|' read -r given wanted; do
	# shellcheck disable=SC2086 # words are meant
	equal "$given: the line that was meant" "hint: flowsup $wanted" "$("$FLOWSUP" $given 2>&1 | grep ^hint)"
done <<'LINES'
stop --wait 5s @last|stop --wait=5s @last
approve @last op --wait 1m30s|approve @last op --wait=1m30s
start --reactive all never.yaml|start --reactive=all never.yaml
stop --wait @last other|help stop
LINES
fails "such a value and no document" 2 "what to start is missing; --reactive all is written --reactive=all" \
	"$FLOWSUP" start --reactive all
head -c 100000000 /dev/zero | tr '\0' ' ' >large.yaml
fails "an empty document" 2 "empty" "$FLOWSUP" start empty.yaml
fails "a binary one" 2 "binary.yaml:1:1" "$FLOWSUP" start binary.yaml
fails "one that is not UTF-8" 2 "UTF-8" "$FLOWSUP" start latin.yaml
fails "one of 100 MB" 2 "large.yaml" "$FLOWSUP" start large.yaml
fails "a cyclic one" 2 "a -> b -> a" "$FLOWSUP" start cyclic.yaml
fails "one that needs itself" 2 "self.yaml:1" "$FLOWSUP" start self.yaml
fails "one with a key twice" 2 "duplicate.json:1:30:.*twice" "$FLOWSUP" start duplicate.json
fails "one with an unknown key" 2 "did you mean.*run" "$FLOWSUP" start unknown.yaml
fails "one that is not there" 2 "no.such.yaml" "$FLOWSUP" start no.such.yaml
fails "a directory" 2 "directory" "$FLOWSUP" start .
mkfifo later.yaml
(echo 'plan: [{id: a, run: echo late}]' >later.yaml) &
matches "a FIFO whose writer comes later" "1 operation" "$("$FLOWSUP" start --dry-run later.yaml)"
fails "an empty standard input" 2 "empty" "$FLOWSUP" start -
fails "no items" 0 "--each: standard input holds no items: there is nothing to start" "$FLOWSUP" start --each 'echo "$1"'
equal "no run is made of them" "" "$("$FLOWSUP" start --each 'echo "$1"' </dev/null 2>/dev/null)"
equal "which a program is told" '{"run":null,"nothing":"no_items"}' "$(printf '\n\n' | "$FLOWSUP" start --json --each 'echo "$1"' 2>/dev/null)"

# ---- Wrong usage ----
fails "nothing to start" 2 "missing" "$FLOWSUP" start
fails "a command without --" 2 "flowsup start -- true" "$FLOWSUP" start true
fails "one with an option of its own" 2 "hint: flowsup start -- ls -l$" "$FLOWSUP" start ls -l
fails "with several" 2 "hint: flowsup start --wait -- ls -la --color=always$" "$FLOWSUP" start --wait ls -la --color=always
fails "with one that is ours by chance" 2 "hint: flowsup start -- grep -j foo" "$FLOWSUP" start grep -j foo
fails "with one that is ours" 2 "hint: flowsup start --help" "$FLOWSUP" start demo.yaml --label
fails "a line for a shell" 2 "hint: flowsup start -- sh -c 'echo hi'" "$FLOWSUP" start 'echo hi'
fails "one with options" 2 "hint: flowsup start --wait -- sh -c 'echo a.b | wc'" "$FLOWSUP" start --wait 'echo a.b | wc'
fails "several" 2 "hint: flowsup start --chain 'echo a' 'echo b'" "$FLOWSUP" start 'echo a' 'echo b'
printf '#!/bin/sh\necho hi\n' >script
chmod +x script
fails "a script" 2 "hint: flowsup start -- ./script " "$FLOWSUP" start script
fails "a program" 2 "hint: flowsup start -- /bin/sh " "$FLOWSUP" start /bin/sh
for words in "start" "check"; do
	fails "$words: more operations than --max-ops" 2 '^flowsup: demo.yaml:[0-9]+:[0-9]+: 2 operations.*or --max-ops 2' \
		"$FLOWSUP" $words --max-ops 1 demo.yaml
done
fails "an argument that is no pair" 2 'is not NAME=VALUE' "$FLOWSUP" start --arg a demo.yaml
fails "two documents" 2 "unexpected" "$FLOWSUP" start demo.yaml demo.yaml
fails "document and command" 2 "exclude" "$FLOWSUP" start demo.yaml -- true
fails "--each and --chain" 2 "exclude" "$FLOWSUP" start --each x --chain y
fails "-0 alone" 2 "with --each" "$FLOWSUP" start -0 -- true
fails "an unknown option" 2 "--wait" "$FLOWSUP" start --wiat -- true
fails "the beginning of several options, which is none of them" 2 'may be --keep-days, --keep-n' "$FLOWSUP" gc --keep 3
fails "--events without --wait" 2 "--wait" "$FLOWSUP" start --events 2 -- true
fails "--events to a closed descriptor" 2 "not open" "$FLOWSUP" start --wait --events 99 -- true
fails "--jobs 0" 2 "between" "$FLOWSUP" start -j0 -- true

# ---- What this environment cannot run ----
fails "a program that is not there" 78 "no-such-program" "$FLOWSUP" start -- no-such-program
fails "a line for a shell behind --" 78 "sh -c" "$FLOWSUP" start -- 'echo hi'
fails "a file that cannot be executed" 78 "demo.yaml" "$FLOWSUP" start -- ./demo.yaml
printf 'plan: [{id: a, exec: [no-such-a]}, {id: b, exec: [./no-such-b]}]\n' >programs.yaml
fails "several programs, all named" 78 'operation "a".*no-such-a.*operation "b".*no-such-b.*2 programs' \
	"$FLOWSUP" start programs.yaml
printf 'env: {FLOW_TEST_TOKEN: {required: true}}\nplan: [{id: a, run: x}]\n' >needs.yaml
fails "a variable that is not set" 78 "FLOW_TEST_TOKEN" "$FLOWSUP" start needs.yaml
mkdir gone
fails "a directory that is gone" 78 "current directory" \
	bash -c 'cd gone && rmdir ../gone && exec "$0" start -- true' "$FLOWSUP"
equal "nothing of all this made a state directory" 0 "$(find "$FLOWSUP_HOME" 2>/dev/null | count)"
check "and nothing was executed" [ ! -e made ]

# ---- State directories ----
mkdir open && chmod 777 open
fails "a state directory that others may write to" 78 "others may write" \
	"$FLOWSUP" start --home open -- true
# home_hint DIRECTORY: what is hinted for a start there.
home_hint() { "$FLOWSUP" --home "$1" start -- true 2>&1 | sed -n 's/^hint: //p'; }
another='flowsup --home /var/tmp/flowsup-[0-9]+ doctor +# or another place to write to'
matches "an empty one may be closed" '^chmod go-w .*/open$' "$(home_hint open)"
mkdir -m 1777 shared && mkdir used && : >used/file && chmod 777 used
matches "a directory that is shared is not closed to others" "^$another$" "$(home_hint shared)"
matches "nor one that has been used for something else" "^$another$" "$(home_hint used)"
equal "the variable is mended as the variable" 1 \
	"$(FLOWSUP_HOME=$PWD/used "$FLOWSUP" start -- true 2>&1 | grep -c '^hint: export FLOWSUP_HOME=/var/tmp/')"
: >used/state.db
matches "a state directory may be closed" '^chmod go-w .*/used$' "$(home_hint used)"
: >file
fails "a file as state directory" 78 "file" "$FLOWSUP" start --home file -- true
equal "nothing was left in either" 0 "$(find open -mindepth 1 | count)"
if [ "$(id -u)" = 0 ]; then
	mkdir foreign && chown 65534 foreign
	fails "one of somebody else" 78 "belongs to" "$FLOWSUP" start --home foreign -- true
	matches "which is left alone" "^$another$" "$(home_hint foreign)"
else
	mkdir readonly && chmod 500 readonly
	fails "one that is read-only" 73 "readonly" "$FLOWSUP" start --home readonly -- true
fi
long=$T/$(printf 'd%.0s' $(seq 150))/$(printf 'e%.0s' $(seq 150))
id=$("$FLOWSUP" start --home "$long" --wait -- echo far 2>/dev/null)
equal "one on a long path" "0 far" "$? $("$FLOWSUP" logs --home "$long" "$id")"

# ---- Forms ----
equal "a command keeps its words" "a  b \$HOME *" "$(output_of -- printf '%s %s' 'a ' 'b $HOME *')"
equal "a document on standard input" "in" "$(echo 'plan: [{id: a, run: echo in}]' | output_of -)"
equal "--each runs once for each line" "a b|a c|a c d" \
	"$(printf 'b\n\nc\nc d\n' | output_of --each 'echo "a $1"' | sed 's/.*| //' | sort | paste -sd'|')"
equal "-0 takes newlines as they are" "2" \
	"$(printf 'x\ny\0' | output_of -0 --each 'printf %s "$1" | wc -l | tr -d " " | sed s/1/2/')"
equal "--chain goes in order" "1 2 3" \
	"$(output_of -j 3 --chain 'echo 1 >>order' 'echo 2 >>order' 'echo 3 >>order; cat order' |
		sed 's/.*| //' | paste -sd' ')"
printf 'plan:\n- {id: make, run: "printf \\"#!/bin/sh\\necho built\\" >prog; chmod +x prog"}
- {id: use, needs: [make], exec: [./prog]}\n' >built.yaml
out=$("$FLOWSUP" start --wait built.yaml 2>err)
equal "a program that an operation makes" "0 built" "$? $("$FLOWSUP" logs "$out" use)"
equal "is no word of warning worth" 0 "$(grep -c warning: err)"
printf 'plan: [{id: a, run: ":"}, {id: b, needs: [a], exec: [no-such-program]}]\n' >late.yaml
out=$("$FLOWSUP" start late.yaml 2>&1 >/dev/null)
equal "a bare name that may be made meanwhile is taken" 0 $?
matches "with a warning" 'warning: operation "b".*no-such-program' "$out"
matches "a run has the name of its document" '"name":"demo"' \
	"$("$FLOWSUP" start --wait demo.yaml >/dev/null 2>&1; "$FLOWSUP" list --json -n 1)"
"$FLOWSUP" start --name other --label a=1 --label b=2 -- true >/dev/null
matches "--name is kept" '"name":"other"' "$("$FLOWSUP" list --json -n 1)"
matches "so are labels" '"a":"1","b":"2"' "$("$FLOWSUP" list --json -n 1)"
bytes=$'a\xff\xed\xb2\x80\xc3'
equal "a command keeps its bytes" "$(printf %s "$bytes" | od -An -tx1)" \
	"$(output_of --name "$bytes" -- printf %s "$bytes" | head -c 6 | od -An -tx1)"
matches "a name that is not UTF-8 is shown mended" '"name":"a\\ufffd' "$("$FLOWSUP" list --json -n 1)"
equal "--each and --chain keep them too" "61 ff 61 ff" \
	"$({ printf 'a\xff\n' | output_of --each 'printf %s "$1"' | head -c 2
		output_of --chain $'printf "a\xff"' | head -c 2; } | od -An -tx1 | xargs)"
equal "labels find it again" 1 "$("$FLOWSUP" list --json --label b=2 --label a=1 | wc -l)"
equal "other labels do not" 0 "$("$FLOWSUP" list --json --label b=1 2>/dev/null | wc -l)"

# ---- No time at all ----
for words in "start --timeout 0 -- true" "start --storage-timeout 0s -- true" "play backup --timeout 0ms" \
	"rerun @last --timeout 0" "fork @last --from x --timeout 0" "resume @last --timeout 0" "list --since 0"; do
	# shellcheck disable=SC2086 # words are meant
	equal "$words is refused" "2 yes" "$("$FLOWSUP" $words >/dev/null 2>"$T/err"; echo $?) $(
		grep -q 'is no time at all' "$T/err" && grep -q 'note: without --' "$T/err" && echo yes)"
done

# ---- Standard output, input and error ----
id=$("$FLOWSUP" start -- sleep 60 5>&1 | cat)
matches "the id alone is printed, and nobody keeps the pipe" '^[0-9]{8}T[0-9]{6}-[0-9a-z]{6}$' "$id"
"$FLOWSUP" start -- true | head -c1 >/dev/null
equal "start | head -c1 is no error" "0 0" "${PIPESTATUS[*]}"
equal "standard input closed" 0 "$("$FLOWSUP" start --wait -- cat <&- >/dev/null 2>&1; echo $?)"
rows() { "$FLOWSUP" list --json -n 100000 | wc -l; }
before=$(rows)
equal "all three closed: the id would be lost, nothing is started" 78 \
	"$("$FLOWSUP" start -- true <&- >&- 2>&-; echo $?)"
matches "standard output closed: said, with what to do" "standard output is closed.*note:.*>/dev/null" \
	"$({ "$FLOWSUP" start -- true 2>&1 >&-; } | tr '\n' ' ')"
equal "nothing was made" "$before" "$(rows)"
equal "standard input and error closed" 0 "$("$FLOWSUP" start -- true <&- >/dev/null 2>&-; echo $?)"
for words in "start -" "start --each true" "start --foreground -" "check -" "graph -" "msg $id -"; do
	# shellcheck disable=SC2086 # words are meant
	equal "$words: a closed standard input is not an empty one" "2 flowsup: standard input is closed" \
		"$("$FLOWSUP" $words <&- 2>"$T/err"; echo $?) $(head -1 "$T/err")"
done
equal "an operation in the foreground reads nothing then" "completed" \
	"$("$FLOWSUP" start --foreground -- cat <&- >"$T/id" 2>/dev/null; run_status "$(cat "$T/id")")"
equal "a list that goes nowhere is an error" 74 "$("$FLOWSUP" list >&- 2>/dev/null; echo $?)"

# ---- --json ----
made=$("$FLOWSUP" start --json -- true)
id=$(json "$made" id)
matches "start --json: one object with all its names" \
	"^\{\"id\":\"$id\",\"session_id\":\"[0-9a-f]{32}\",\"invocation_id\":\"[0-9a-f]{12}\",\"directory\":\"$FLOWSUP_HOME/runs/$id\",\"warnings\":\[\]\}$" \
	"$made"
printf 'plan: [{id: a, cwd: /no/such/directory, run: "true"}]\n' >"$T/warned.yaml"
for words in "start --json" "start --json --dry-run" "start --json --queue nobodys"; do
	# shellcheck disable=SC2086 # words are meant
	warned=$("$FLOWSUP" $words "$T/warned.yaml" 2>"$T/err")
	matches "$words: what is warned of stands in the object" \
		'"warnings":\[\{[^]]*"message":"operation .*/no/such/directory.*"hint":"mkdir -p /no/such/directory"' "$warned"
	equal "$words: and nothing on standard error" "" "$(cat "$T/err")"
done
matches "a queue that nobody gave slots, too" '"hint":"flowsup queue set nobodys --slots 1"' "$warned"
matches "its commands are for the home of the call" '"hint":"flowsup --home [^"]*/elsewhere queue set fresh --slots 1"' \
	"$("$FLOWSUP" start --home "$T/elsewhere" --json --queue fresh -- true 2>&1)"
FLOWSUP_HOME=$T/elsewhere "$FLOWSUP" supervisor stop --all
equal "they are the run's" "$(json "$made" session_id)" "$(run_fact "$id" session_id)"
equal "with --wait the exit status is the outcome" 1 \
	"$("$FLOWSUP" start --json --wait -- false >/dev/null 2>&1; echo $?)"
again=$("$FLOWSUP" resume --json --retry-failed @last-failed 2>/dev/null)
id=$(basename "$(json "$again" directory)")
matches "resume --json has the same names" "\"id\":\"$id\",\"session_id\":\"$(run_fact "$id" session_id)\"" "$again"
out=$("$FLOWSUP" start -- true 2>&1 >/dev/full)
equal "standard output full: exit 74" 74 $?
matches "the run is named all the same" "run [0-9T]+-[0-9a-z]+ was started" "$out"
out=$( (ulimit -f 1; FLOWSUP_HOME=$T/small "$FLOWSUP" start -- true) 2>&1)
equal "no file may be as large as the database: exit 74, no signal" 74 $?
matches "which is said" "flowsup: .*state\.db.*: " "$out"
equal "operations do not ignore that signal" 0 \
	"$((0x$(output_of -- sed -n 's/^SigIgn:[[:space:]]*//p' /proc/self/status) >> 24 & 1))"

# ---- Interrupted: nothing is made, or the run is named ----
# Without a command, which would wait for the supervisor: the file "making" goes when the row is there.
made() { ls "$FLOWSUP_HOME/runs" | wc -l; }
one_more() { [ "$(made)" -gt "$before" ] && ! compgen -G "$FLOWSUP_HOME/runs/*/making"; }
printf 'plan: [{id: a, run: exit 3}]\n' >fails.yaml
"$FLOWSUP" start --wait fails.yaml >failed.TERM 2>/dev/null
"$FLOWSUP" start --wait fails.yaml >failed.HUP 2>/dev/null
# What is read from standard input may never come.
mkfifo silent && exec 7<>silent
takes_signals() { grep -q 'SigCgt:.*4..[37bf]$' "/proc/$1/status" && grep -qx flowsup "/proc/$1/comm"; }
before=$(rows)
for words in "start -" "start --each true" "check -" "graph -" "msg $(cat failed.HUP) -"; do
	for signal in INT TERM HUP; do
		env --default-signal=HUP,INT,TERM "$FLOWSUP" $words <silent >out 2>said &
		wait_until takes_signals $!
		kill -$signal $!
		wait $!
		equal "SIG$signal ends $words, which waits for its input" 130 $?
		equal "which says so" "flowsup: interrupted" "$(cat said)"
	done
done
exec 7>&-
equal "nothing was made" "$before" "$(rows)"
pid=$(supervisor_pid)
# Nobody answers: who made a run is busy with that.
stop_still "$pid"
for signal in TERM HUP; do
	failed=$(cat failed.$signal)
	for words in "start fails.yaml" "rerun $failed" "fork $failed --from a" "resume --retry-failed $failed"; do
		before=$(made)
		env --default-signal=HUP,TERM "$FLOWSUP" $words >id 2>said & # nohup ignores it
		wait_until one_more
		kill -$signal $!
		wait $!
		equal "SIG$signal ends ${words%% *}" 130 $?
		matches "which says that the run goes on" "interrupted; run $(cat id) goes on" "$(cat said)"
		equal "the run that it made was named" "$(json "$("$FLOWSUP" list --json -n 1)" id)" "$(cat id)"
	done
done
kill -CONT "$pid"
before=$(rows)
for i in 2 4 6 8 10 12 14 16 18 20; do
	timeout -s INT "0.0$(printf %02d "$i")" "$FLOWSUP" start fails.yaml 2>/dev/null
done >ids
equal "at any moment: as many ids as runs" "$(wc -l <ids)" "$(($(rows) - before))"

# ---- Environments ----
out=$(env -i FLOWSUP_HOME="$FLOWSUP_HOME" "$FLOWSUP" start --wait -- sh -c 'echo ok' 2>/dev/null)
equal "neither HOME nor PATH" "0 ok" "$? $("$FLOWSUP" logs "$out")"
printf 'env: {A: "~/sub", B: "~"}\nplan: [{id: b, run: "pwd; echo $A $B", cwd: "~"}]\n' >tilde.yaml
account=$(cd "$(getent passwd "$(id -u)" | cut -d: -f6)" && pwd -P)
for home in -uHOME HOME=; do
	out=$(env "$home" "$FLOWSUP" start --wait tilde.yaml 2>/dev/null)
	equal "$home: ~ is the account's home directory" "$account $account/sub $account" \
		"$("$FLOWSUP" logs "$out" 2>/dev/null | paste -sd ' ')"
done
out=$( (umask 777 && "$FLOWSUP" start --wait -- sh -c umask) 2>/dev/null)
equal "an umask of 777 is the operation's" "0777" "$("$FLOWSUP" logs "$out")"
equal "and not the state directory's" 700 "$(stat -c %a "$FLOWSUP_HOME/runs/$out")"
equal "TMOUT does not matter" slow "$(TMOUT=1 output_of -- sh -c 'sleep 1.5; echo slow')"
export FLOWSUP_STRANGE=1
equal "names of ours do not reach operations" "none" \
	"$(output_of -- sh -c 'echo "${FLOWSUP_STRANGE-none}"')"

# ---- Two at the same instant, no supervisor ----
FLOWSUP_HOME=$T/two
for i in 1 2 3; do "$FLOWSUP" start -- true >"id.$i" & done
wait
check "all three are there and end" "$FLOWSUP" wait --timeout 60s $(cat id.1 id.2 id.3)
one_supervisor() { supervisors | count; }
equal_soon "below one supervisor" 1 one_supervisor

# ---- A database that somebody keeps for himself ----
if command -v sqlite3 >/dev/null; then
	ended=$("$FLOWSUP" start -- false) other=$("$FLOWSUP" start -- false)
	"$FLOWSUP" wait "$ended" "$other" >/dev/null 2>&1
	hold_database
	before=$(ls "$FLOWSUP_HOME/runs")
	op=$(json "$("$FLOWSUP" show "$other" --json | grep -o '"ops":.*')" id)
	pids=()
	for words in "start -- true" "rerun $ended" "resume $ended --retry-failed" "fork $other --from $op"; do
		# shellcheck disable=SC2086  # the words of a command
		"$FLOWSUP" $words >"$T/out.${words%% *}" 2>"$T/err.${words%% *}" &
		pids+=($!)
	done
	for verb in start rerun resume fork; do
		wait "${pids[0]}"
		equal "$verb with a busy database: exit status" 73 $?
		pids=("${pids[@]:1}")
		equal "no id" 0 "$(wc -c <"$T/out.$verb")"
		matches "it says that there is no run" "nothing was started: .* is busy" "$(cat "$T/err.$verb")"
	done
	equal "no directory is left" "$before" "$(ls "$FLOWSUP_HOME/runs")"
	release_database
else
	skip "python3 is not installed"
fi

# ---- An installation that is not whole ----
mkdir -p "$T/half/bin"
cp "$FLOWSUP" "$T/half/bin/flowsup"
ended=$("$FLOWSUP" start -- false) other=$("$FLOWSUP" start -- false)
"$FLOWSUP" wait "$ended" "$other" 2>/dev/null
op=$(json "$("$FLOWSUP" show "$other" --json | grep -o '"ops":.*')" id)
before=$(ls "$FLOWSUP_HOME/runs")
for words in "start -- true" "start -w -- true" "start --foreground -- true" "rerun $ended" "resume $ended --retry-failed" \
	"fork $other --from $op"; do
	# shellcheck disable=SC2086  # the words of a command
	"$T/half/bin/flowsup" $words >"$T/out" 2>"$T/err"
	equal "$words without the worker program: exit status" 78 $?
	matches "it names it, and who tells more" "flowsup-worker.*hint: flowsup doctor" "$(paste -sd' ' "$T/err")"
done
equal "nothing was created" "$before" "$(ls "$FLOWSUP_HOME/runs")"

# ---- Standard input that is a terminal ----
if command -v script >/dev/null; then
	while IFS='|' read -r words what; do
		matches "$words says what it waits for, and how that ends" "flowsup: reads $what from this terminal; Ctrl-D " \
			"$(timeout 30 script -qec "$FLOWSUP $words" /dev/null </dev/null)"
	done <<-'END'
		start -|a flow document
		check -|a flow document
		graph -|a flow document
		start --each true|items, one a line,
	END
	equal "of a file nothing is said" 0 "$(script -qec "$FLOWSUP check $ROOT/examples/nightly.yaml" /dev/null </dev/null | grep -c Ctrl-D)"
	equal "nor of a pipe" 0 "$(script -qec "$FLOWSUP check - <$ROOT/examples/nightly.yaml" /dev/null </dev/null | grep -c Ctrl-D)"
else
	skip "script is not installed"
fi


# ---- A variable that many require is told of once ----
printf 'env: {ONE_ID: {required: true}, TWO_ID: {required: true}}\nplan:\n' >"$T/many.yaml"
for op in a b c d; do printf '  - {id: %s, run: "true"}\n' $op; done >>"$T/many.yaml"
printf '  - {id: e, run: "true", env: {ONE_ID: x}}\n' >>"$T/many.yaml"
out=$("$FLOWSUP" start "$T/many.yaml" 2>&1)
equal "required variables that are not set" 78 $?
equal "each is told of once" "2 2 variables are missing" \
	"$(grep -c ' require the variable' <<<"$out") $(grep -oE '[0-9]+ variables are missing' <<<"$out")"
matches "with those that require it" 'operations "a", "b", "c" and 1 more require the variable ONE_ID' "$out"
matches "or all of them" 'all operations require the variable TWO_ID' "$out"

# ---- Braces that are no template of ours reach the shell ----
cat >"$T/braces.yaml" <<'FLOW'
plan:
  - id: a
    env: {T: '\{{item}}'}
    run: |
      echo '{{.Names}}' '{{range .files}}' {{name}} '{{item' "$T"
      awk 'BEGIN {{print "{{"}}'
FLOW
"$FLOWSUP" start --wait "$T/braces.yaml" >/dev/null 2>&1
equal "what a program of run wants with braces is left to it" \
	"$(printf '%s\n' '{{.Names}} {{range .files}} {{name}} {{item {{item}}' '{{')" "$("$FLOWSUP" logs @last)"
plan
