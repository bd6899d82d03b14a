#!/usr/bin/env bash
# Real terminals (tmux) of 40, 80 and 200 columns: the live display through gates, resize, Ctrl-C and
# Ctrl-Z, and the tables. No line is wider than the terminal, nothing of a drawing stays behind.
. "$(dirname "$0")/lib.sh"
export LC_ALL=C.UTF-8
if ! command -v tmux >/dev/null; then
	skip "tmux is not installed"
	plan
fi
mkdir "$T/work" && cd "$T/work" || exit 1
mkfifo gate1 gate2
echo "PS1='\$ '; unset NO_COLOR" >"$T/rc"
cat >flow.yaml <<'FLOW'
name: a-flow-with-a-name
concurrency: 4
plan:
  - {id: quick, run: 'true'}
  - {id: coloured, run: "flowsup emit progress 0.5 half; printf '\\033[31mred\\033[0m and a last line that goes on and on\\n'; read x <gate1"}
  - {id: steering, run: "printf 'title \\033]0;mine\\007 \\033[2J'; read x <gate2"}
  - {id: deploy-to-production, needs: [quick], gate: approve, run: 'echo deployed'}
FLOW

# ---- A terminal ----
PANE=flowsup
tm() { tmux -f /dev/null -S "$T/tmux" "$@"; }
# Else the server leaves with the window of one width, while that of the next is asked of it.
tm new-session -d -s stays 'exec sleep 100000'
# terminal COLUMNS ROWS: a shell in a window of this size.
terminal() {
	env -u NO_COLOR -u XTERM_VERSION -u STY PATH="$BUILD/bin:$PATH" TERM=xterm \
		tmux -u -f /dev/null -S "$T/tmux" new-session -d -s $PANE -x "$1" -y "$2" \
		"exec bash --noprofile --rcfile '$T/rc' -i"
	tm set-option -g status off
	WIDTH=$1
	wait_until prompt_is_back
}
keys() { tm send-keys -t $PANE "$@"; }
enter() { keys -l "$1"; keys Enter; }
resize() { WIDTH=$1; tm resize-window -t $PANE -x "$1" -y "$2"; }
screen() { tm capture-pane -p -t $PANE; }
shows() { screen | sed 's/ *$//' | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}' | grep -qE -- "$1"; }
hides() { ! shows "$1"; }
bars() { screen | grep -cE '\[[█░]+\]'; }
# What was printed in one line is one, also where the terminal wrapped it.
printed() { tm capture-pane -pJ -t $PANE | sed 's/ *$//'; }
fits() {
	local line
	while IFS= read -r line; do
		[ ${#line} -le "$WIDTH" ] || return 1
	done
}
display() { printed | sed -n '/\[[█░]*\]/,$p'; }
# The display is there once, whole, and no line of it wraps.
drawn_once() { [ "$(bars)" = 1 ] && display | fits && shows 'coloured[^ ]* +[0-9]' && shows running; }
# What the bar says of the time; and whether the display was drawn anew since, and is there once.
elapsed() { screen | grep -oE 'running  [0-9.]+m?s' | head -n 1; }
drawn_later() { [ "$(elapsed)" != "$stamp" ] && drawn_once; }
# The command that is shown for the gate, as a shell would read it.
answer() {
	screen | awk '/^ *flowsup approve/ { inside = 1 }
		inside { gsub(/^ +| +$/, ""); more = sub(/\\$/, ""); printf "%s", $0; inside = more }'
}
prompt_is_back() { screen | grep -v '^$' | tail -n 1 | grep -q '^\$ *$'; }

for width in 40 80 200; do
	terminal $width 24
	enter 'flowsup start flow.yaml --wait'
	check "$width columns: start --wait draws a bar and what runs" wait_until drawn_once
	check "$width columns: and what waits for a person" wait_until shows 'deploy-to-production waits for'
	id=$("$FLOWSUP" list --json -n 1 | sed -E 's/.*"id":"([^"]*)".*/\1/')
	check "$width columns: the display names the run" wait_until shows "^run $id"
	check "$width columns: and how far it is" wait_until shows 'coloured .* 50%: half'
	check "$width columns: the last line of output, without its colours" wait_until shows 'red and|red a'
	check "$width columns: nothing of an operation's escapes gets through" wait_until shows 'title .x1b'
	equal_soon "$width columns: the command that answers is whole" \
		"flowsup approve $id deploy-to-production" answer
	"$FLOWSUP" pause "$id" --wait 2>/dev/null
	check "$width columns: a paused run is shown with the command that lets it go on" \
		wait_until shows 'flowsup ctl resume'
	"$FLOWSUP" ctl resume "$id" --wait 2>/dev/null
	check "$width columns: which is gone once it does" wait_until hides 'ctl resume'
	for to in $((width / 2 + 10)) $((width + 15)) $width; do
		resize "$to" 24
		check "$width columns: resized to $to, drawn once" wait_until drawn_once
	done
	keys C-c
	check "$width columns: Ctrl-C gives the prompt back" wait_until prompt_is_back
	check "$width columns: the display is taken away" hides '[█░]|coloured'
	check "$width columns: the id stands alone and whole" shows "^$id\$"
	matches "$width columns: and it is told how to go on" "run $id goes on.*flowsup watch.*$id.*flowsup stop" \
		"$(printed | paste -sd' ')"

	matches "$width columns: list says what it waits for" \
		"flowsup approve $id deploy-to-production" "$("$FLOWSUP" list -n 1)"

	keys -l clear; keys Enter
	enter 'flowsup watch'
	check "$width columns: watch draws it again" wait_until drawn_once
	stamp=$(elapsed)
	keys Enter Enter
	check "$width columns: and what is typed leaves nothing of it behind" wait_until drawn_later
	keys C-z
	check "$width columns: Ctrl-Z gives the prompt back" wait_until prompt_is_back
	check "$width columns: without a display" hides '[█░]|coloured'
	enter fg
	check "$width columns: fg draws it again, once" wait_until drawn_once
	wait_until prints "flowsup approve $id deploy-to-production" answer
	PATH=$BUILD/bin:$PATH sh -c "$(answer)" >/dev/null 2>&1
	check "$width columns: an answered gate is gone" wait_until hides 'waits for|approve'
	echo >gate1
	echo >gate2
	check "$width columns: at the end one line is left" wait_until eval 'printed | grep -q "completed, 4 of 4"'
	wait_until prompt_is_back
	check "$width columns: and nothing of the display" hides '[█░]|coloured'

	keys -l clear; keys Enter
	enter 'flowsup list; flowsup show'
	check "$width columns: list and show end" wait_until shows '^deplo.*tion +completed'
	wait_until prompt_is_back
	check "$width columns: ids are whole" shows "$id"
	check "$width columns: no line of list or show is too wide, but for paths" eval 'printed | grep -v / | fits'
	tm kill-session -t $PANE
done

# ---- Several sizes at once, as when an edge is dragged ----
# What stands in the terminal and above it; the same text would be there twice if a drawing stayed behind.
json_id() { sed -E 's/.*"id":"([^"]*)".*/\1/'; }
history() { tm capture-pane -pJ -S - -t $PANE | sed 's/ *$//'; }
bars_of_history() { history | grep -cE '\[[█░]+\]'; }
above() { history | grep '^above '; }
cat >many.yaml <<'FLOW'
concurrency: 6
plan:
  - {id: coloured, foreach: [1, 2, 3, 4, 5, 6], run: "echo a last line that goes on and on until it fills all of the columns that this terminal has, and more; read x <never"}
FLOW
mkfifo never
all_six() { drawn_once && [ "$(screen | grep -c 'coloured.*a last')" = 6 ]; }
# Of the drawings nothing is left, once it ends, and all that stood there before.
nothing_left() { prompt_is_back && [ "$(bars_of_history)" = 0 ] && [ "$(history | grep -c coloured)" = 0 ]; }
for lines in 3 20 40; do
	tm kill-session -t $PANE
	terminal 80 24
	enter "clear; tmux -S '$T/tmux' clear-history; printf 'above %d\\n' {1..$lines}; flowsup start many.yaml --wait"
	check "below $lines lines: drawn once before" wait_until all_six
	id=$("$FLOWSUP" list --json -n 1 | json_id)
	for to in 40 120 30 80 "40 120 30 80" "30 80" "40 120 60 100 80" "120 40"; do
		for columns in $to; do
			resize "$columns" 24
		done
		check "below $lines lines, resized to $to: drawn once" wait_until drawn_once
		equal "below $lines lines, resized to $to: no other drawing in what scrolled away" 1 "$(bars_of_history)"
	done
	resize 80 24
	keys C-c
	check "below $lines lines: nothing of it is left at the end" wait_until nothing_left
	equal "below $lines lines: nothing above it is lost" "$(printf 'above %d\n' $(seq $lines))" "$(above)"
	"$FLOWSUP" kill "$id" 2>/dev/null
done
terminal_is_sane() { enter 'clear; stty -a'; shows ' echo '; }
enter 'clear; flowsup start many.yaml --wait'
wait_until all_six
keys 'C-\'
check 'Ctrl-\ gives the terminal back as well' wait_until nothing_left
check 'as it was' wait_until terminal_is_sane
"$FLOWSUP" kill @last 2>/dev/null

# ---- Terminals of few lines ----
tm kill-session -t $PANE
cat >small.yaml <<'FLOW'
plan:
  - {id: small, foreach: [1, 2, 3, 4], run: 'until [ -e release ]; do sleep 0.02; done'}
concurrency: 4
FLOW
all_run() { [ "$("$FLOWSUP" show --json "$id" | grep -o '"state":"running"' | wc -l)" = 4 ]; }
for rows in 1 2 3 5; do
	rm -f release
	before=$("$FLOWSUP" list --json -n 1 | json_id)
	terminal 80 $rows
	enter "clear; flowsup start small.yaml --wait"
	is_new() { id=$("$FLOWSUP" list --json -n 1 | json_id) && [ "$id" != "$before" ]; }
	wait_until is_new
	wait_until all_run
	[ $rows = 1 ] || check "$rows lines: something is drawn" wait_until eval '[ "$(bars)" = 1 ]'
	: >release
	wait_until status_is "$id" completed
	check "$rows lines: the end is told" wait_until eval 'history | grep -q "completed, 4 of 4"'
	resize 80 24
	check "$rows lines: the prompt is back" wait_until prompt_is_back
	equal "$rows lines: nothing of a drawing comes back with more" 0 "$(bars_of_history)"
	tm kill-session -t $PANE
done
terminal 80 24

# ---- Documents with long ids ----
long=an-operation-with-an-id-that-is-long-enough-for-anybody-who-reads-it
cat >long.yaml <<FLOW
plan:
  - {id: ${long:0:60}-1, run: 'true'}
  - {id: ${long:0:60}-2, needs: [${long:0:60}-1], run: 'true'}
FLOW
resize 50 24
is_resized() { enter 'clear; stty size'; shows '^24 50$'; }
wait_until is_resized
run=$("$FLOWSUP" start long.yaml --wait 2>/dev/null)
all_fit() { local all; all=$(printed) && WIDTH=50 fits <<<"$all"; }
for words in "check long.yaml" "graph long.yaml" "start -n long.yaml" "show --graph text $run"; do
	enter "clear; flowsup ${words/$run/@last}"
	check "narrow: $words says something of both" wait_until eval 'prompt_is_back && [ "$(printed | grep -c "an-op")" -ge 2 ]'
	check "narrow: $words: no line is wrapped" all_fit
	check "narrow: $words: what begins alike can be told apart" shows 'an-op[a-z-]*[…~][a-z-]*-1( |$)'
	check "narrow: $words: both of it" shows 'an-op[a-z-]*[…~][a-z-]*-2( |$)'
	equal "narrow: $words: whole in a pipe" 2 "$("$FLOWSUP" $words | grep -oE "${long:0:60}-[12]" | sort -u | grep -c .)"
done

# ---- What is there to be pasted is not cut ----
resize 40 24
blocker=$("$FLOWSUP" start --unique key -- sh -c 'read x <never' 2>/dev/null)
"$FLOWSUP" start --unique key --if-running queue -- true >/dev/null 2>&1
fits_40() { WIDTH=40; printed | grep -v / | fits; }
ends_of() { enter "clear; XDG_CONFIG_HOME=$T/config flowsup $1"; wait_until prompt_is_back; }
ends_of 'list -n 1'
check "40 columns: list says whole which run is waited for" shows "^ +([a-z]+ )*$blocker\$"
ends_of 'show'
check "40 columns: show wraps what is next, where that is no command" wait_until shows "^next +waits for the key 'key', held\$"
check "40 columns: at its column" wait_until shows "^ {11}by run $blocker\$"
printf 'plan:\n  - {id: before, run: "true"}\n  - {id: beside, needs: [before], gate: approve, run: "true"}\n  - {id: %s, needs: [before], gate: approve, run: "true"}\n' \
	an-operation-that-waits >gates.yaml
ends_of 'graph gates.yaml'
check "40 columns: a line of a graph goes on below itself, beside the rail" wait_until shows '^ {4}│ +\[needs approval\]$'
check "40 columns: the last one without a rail" wait_until shows '^ {9}\[needs approval\]$'
check "40 columns: and nothing of it is cut but ids" eval 'fits_40 && hides "…$"'
ends_of 'supervisor status'
check "40 columns: supervisor status cuts nothing" eval 'WIDTH=40; printed | fits'
mkdir -p "$T/config/flowsup/playbooks"
printf 'args:\n  first: {type: string, help: "what the first argument means, in many words"}\nplan: [{id: a, run: "true"}]\n' \
	>"$T/config/flowsup/playbooks/wordy.yaml"
ends_of "play show wordy"
equal "40 columns: play show cuts nothing" 0 "$(screen | grep -c '…')"
check "40 columns: and wraps between words" shows '^ +means, in many words$'
ends_of "checkpoint verify $run"
check "40 columns: checkpoint verify wraps between words" wait_until eval 'fits_40 && shows "^ {2}not covered +plan, prompt and$"'
check "40 columns: the rest of it stands further left" wait_until shows '^ {10}[a-z].*json: the format has no$'
resize 40 60
ends_of doctor
check "40 columns: doctor names what it looked at, and says what it found beside it" wait_until shows '^ok +fsync: directories can be$'
check "40 columns: no line of doctor is too wide, but for paths" fits_40
"$FLOWSUP" kill "$blocker" 2>/dev/null

# ---- What starts nothing more says so, with the command that ends what runs ----
cat >ends.yaml <<'FLOW'
plan:
  - {id: works, run: 'read x <never'}
  - {id: later, needs: [works], run: 'true'}
FLOW
resize 80 24
for how in stop deadline; do
	limit=
	[ $how = stop ] || limit='--timeout 500ms'
	enter "clear; flowsup start --wait $limit ends.yaml"
	check "$how: the display draws what runs" wait_until shows '^ +works +[0-9]'
	id=$("$FLOWSUP" list --json -n 1 | json_id)
	if [ $how = stop ]; then
		"$FLOWSUP" stop "$id" 2>/dev/null
		check "stop: the display says since when it is stopping" wait_until shows '^ +stopping for [0-9.]+m?s$'
	else
		check "deadline: the display says that it has passed" \
			wait_until shows '^ +deadline passed [0-9.]+m?s ago: nothing more is started$'
	fi
	check "$how: and the command that ends what runs" wait_until shows "^ +flowsup stop --now $id\$"
	check "$how: nothing is estimated" hides ' left'
	"$FLOWSUP" stop --now "$id" 2>/dev/null
	check "$how: nothing of it stays behind" wait_until eval 'prompt_is_back && hides "stop --now|passed .* ago"'
done

tm kill-server
plan
