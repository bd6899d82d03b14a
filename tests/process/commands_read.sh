#!/usr/bin/env bash
# What reading commands print: texts and JSON, to files, pipes that close, full disks and terminals.
. "$(dirname "$0")/lib.sh"
mkdir "$T/work" && cd "$T/work" || exit 1

valid_json() { # every line of standard input is one JSON object
	perl -MJSON::PP -ne 'BEGIN { $j = JSON::PP->new->utf8 }
		eval { ref $j->decode($_) eq "HASH" } or exit 1; $n++; END { exit 1 if !$n && !$? }'
}
value() { # expression on $o, from one object on standard input
	perl -MJSON::PP -e 'my $o = JSON::PP->new->utf8->decode(join "", <STDIN>);
		my $v = eval $ARGV[0]; die $@ if $@; print defined $v ? $v : "null"' "$1"
}

# ---- Before the first run ----
for words in list "list --json" "list --check" waiting "waiting --json" "queue list" "gc --dry-run" gc \
	"supervisor status" "supervisor stop" "supervisor stop --all" "resume --all-crashed" "play list" config; do
	for home in "$T/none" "$T/empty"; do
		rm -rf "$home"
		[ "$home" = "$T/none" ] || mkdir -m 700 "$home"
		# shellcheck disable=SC2086 # words are meant
		equal "$words in a home that is ${home##*/}: nothing, and no error" "0" \
			"$("$FLOWSUP" $words --home "$home" >"$T/out" 2>"$T/err"; echo $?)"
		[ "$home" != "$T/none" ] || check "$words makes none" [ ! -e "$home" ]
	done
	case $words in *list | waiting* | gc* | *crashed)
		case $words in
		"play list") ;;
		"queue list") matches "$words says so" "no queues yet.*hint: flowsup .*queue set default" "$(paste -sd' ' "$T/err")" ;;
		*) matches "$words says so" "no runs yet" "$(cat "$T/err")" ;;
		esac ;;
	esac
done
"$FLOWSUP" show --home "$T/none" @last 2>"$T/err"
equal "one that is asked for by name is an error" "2 yes" \
	"$? $(grep -q 'no runs yet' "$T/err" && echo yes)"
"$FLOWSUP" queue set --home "$T/none" q --slots 1 && rm -r "$T/none/runs"
equal "a database without its directories is no home without runs" "74 yes" \
	"$("$FLOWSUP" list --home "$T/none" 2>"$T/err"; echo $?) $(
		grep -q "'$T/none'.* 'runs' is gone" "$T/err" && echo yes)"

for words in show logs watch "ctl status" "wait @last" "stop @last" "checkpoint show @last"; do
	# shellcheck disable=SC2086 # words are meant
	equal "$words is about one run: without any, an error" "2 flowsup: there are no runs yet" \
		"$("$FLOWSUP" $words --home "$T/nothing" >"$T/out" 2>"$T/err"; echo "$? $(head -1 "$T/err")")"
done

cat >flow.yaml <<'YAML'
name: demo
concurrency: 2
plan:
  - {id: good, run: "echo one; echo two"}
  - {id: bad, run: "echo oops >&2; exit 3"}
  - {id: after-bad, needs: [bad], run: "echo never"}
  - {id: after-that, needs: [after-bad], run: "echo never"}
  - {id: cleanup, needs: [{op: bad, on: failure}], run: "echo cleaned"}
  - {id: nasty, needs: [good], run: "printf '\\033[31mred\\007\\n\\377\\n'; printf end"}
YAML
id=$("$FLOWSUP" start --wait flow.yaml 2>"$T/lines")
equal "a run with a failure exits 1" 1 $?
matches "its lines say what failed" "bad failed: exit status 3" "$(cat "$T/lines")"
equal "and what was skipped for it, in the words of show" "after-bad skipped: bad failed,after-that skipped: bad failed" \
	"$(sed -n 's/^[0-9:]*  //; /skipped/p' "$T/lines" | paste -sd,)"
matches "and name the command that says more" "hint: flowsup show $id   # to see why" "$(cat "$T/lines")"
matches "and the one that goes on" "hint: flowsup resume $id --retry-failed   # to go on" "$(cat "$T/lines")"

# ---- show ----
"$FLOWSUP" show --json "$id" >show.json
check "show --json is JSON" valid_json <show.json
op() { value "(grep { \$_->{id} eq '$1' } @{\$o->{ops}})[0]{$2}" <show.json; }
equal "status and reason" "failed run.failed.operation" \
	"$(value '"$o->{status} $o->{reason}"' <show.json)"
equal "a completed operation" "completed 1 0 1" \
	"$(op good state) $(op good saved) $(op good exit) $(op good attempt)"
equal "a failed one" "failed 3 exit" "$(op bad state) $(op bad exit) $(op bad class)"
equal "and what it said last, which its status does not tell" "exit status 3: oops" "$(op bad why)"
equal "one that needed it" "skipped bad failed" "$(op after-bad state) $(op after-bad why)"
equal "and one behind that, for the same" "skipped bad failed" \
	"$(op after-that state) $(op after-that why)"
equal "one that reacts to the failure" "completed" "$(op cleanup state)"
equal "and says so" "because of the failure of bad" "$(op cleanup why)"
equal "others say what came before" "needs nothing, after good" "$(op good why), $(op nasty why)"
equal "everything is in order of the document" "good bad after-bad after-that cleanup nasty" \
	"$(value 'join " ", map { $_->{id} } @{$o->{ops}}' <show.json)"
equal "the checkpoint is clean" clean "$(value '$o->{checkpoint}{status}' <show.json)"
equal "and nothing more is said of it" none "$(value '$o->{checkpoint}{message} // "none"' <show.json)"
equal "transitions are in order" "queued starting running failed" \
	"$(value 'join " ", map { $_->{status} } @{$o->{transitions}}' <show.json)"
matches "the text counts as list does" "progress +6 of 6 done, 1 failed, 2 skipped, 4 saved" "$("$FLOWSUP" show "$id")"
matches "which says as many" " failed +6/6 " "$("$FLOWSUP" list -n 1)"
matches "the text says why" "after-bad +skipped +bad failed" "$("$FLOWSUP" show "$id")"
matches "the graph has states" "bad.*failed" "$("$FLOWSUP" show --graph text)"
for words in "graph flow.yaml" "show $id --graph text" "start -n flow.yaml"; do
	# shellcheck disable=SC2086 # words are meant
	matches "$words draws on a terminal" '─ cleanup .*← bad' "$(on_terminal 80 "$FLOWSUP" $words)"
	for how in NO_COLOR=1 TERM=dumb LC_ALL=C; do
		# shellcheck disable=SC2086 # words are meant
		matches "$words says it in words with $how" '    cleanup +([a-z]+ +)?needs bad' \
			"$(on_terminal 80 env $how "$FLOWSUP" $words)"
	done
	# shellcheck disable=SC2086 # words are meant
	equal "$words does not draw for a program" "" "$("$FLOWSUP" $words | LC_ALL=C grep '[^ -~]')"
done
matches "a graph for programs has the states" '"id":"bad","state":"failed"' "$("$FLOWSUP" show --graph dot --json "$id")"
matches "and that of a document what is needed" '^\{"file":"flow.yaml","valid":true.*"id":"nasty",.*"needs":\["good"\]' \
	"$("$FLOWSUP" graph --json flow.yaml)"
matches "a graph for Graphviz" "digraph" "$("$FLOWSUP" show --graph dot "$id")"
"$FLOWSUP" show --exit-status "$id" >/dev/null
equal "show --exit-status exits by the outcome" 1 $?
"$FLOWSUP" show "${id%?}" >/dev/null
equal "a prefix is enough" 0 $?
"$FLOWSUP" show 2020 >/dev/null 2>"$T/err"
equal "an unknown id: exit 2" 2 $?
"$FLOWSUP" show --json 2020 2>&1 >/dev/null | value '$o->{error} . " " . $o->{exit_status}' >"$T/err"
equal "with --json the error is an object" "NotFoundError 2" "$(cat "$T/err")"
for words in "list --bogus --json" "lst --json" "--jsn --json" "start --json" "ctl --json" "--json"; do
	# shellcheck disable=SC2086 # words
	equal "$words: so it is where the line is refused" "UsageError hint,exit_status,error,message 1" \
		"$("$FLOWSUP" $words 2>&1 >/dev/null | perl -MJSON::PP -ne 'BEGIN { @m = qw(hint exit_status error message) }
			$o = decode_json($_); print "$o->{error} ", join(",", grep { exists $o->{$_} } @m), " $."')"
done
matches "behind -- nothing is asked for" '^flowsup: ' "$("$FLOWSUP" list --bogus -- --json 2>&1)"
printf 'plan: [{id: a, rn: x}, {id: b, run: x, foo: 1}]\n' >wrong.yaml
members='join " ", scalar(@{$o->{problems}}), map { exists $_->{hint} && $_->{line} } @{$o->{problems}}'
for words in "start --json" "start --dry-run --json" "check --json" "graph --json"; do
	# shellcheck disable=SC2086 # words
	"$FLOWSUP" $words wrong.yaml 2>err >/dev/null
	equal "$words: all problems of a document are in the error" "2 1 1" "$(value "$members" <err)"
	equal "$words: and nothing else is said" 1 "$(wc -l <err)"
done
equal "check has the same" "2 1 1" "$("$FLOWSUP" check --json wrong.yaml 2>/dev/null | value "$members")"
matches "a misspelt option before a command is said, with the nearest" "--jsn.*hint: .*--json" \
	"$("$FLOWSUP" --jsn 2>&1 | paste -sd' ')"
matches "so is one whose value lacks" "--home needs a value" "$("$FLOWSUP" --home 2>&1)"

# ---- logs ----
equal "logs of one operation are its bytes" "$(printf 'one\ntwo\n' | od -c)" \
	"$("$FLOWSUP" logs "$id" good | od -c)"
equal "also strange ones, without a newline added" "$(printf '\033[31mred\007\n\377\nend' | od -c)" \
	"$("$FLOWSUP" logs "$id" nasty | od -c)"
matches "on a terminal they are harmless, without colours" '^red\\x07' "$(on_terminal 80 "$FLOWSUP" logs "$id" nasty)"
equal "no control character gets there" 0 \
	"$(on_terminal 80 "$FLOWSUP" logs "$id" nasty | LC_ALL=C tr -d '\n' | LC_ALL=C tr -cd '\000-\037' | wc -c)"
equal "several have prefixes" "good       | one" "$("$FLOWSUP" logs "$id" | grep one | sed 's/^good  *|/good       |/')"
others=$T/others
long=$("$FLOWSUP" --home "$others" start --wait - 2>/dev/null <<'END'
plan:
  - {id: integration-test-database-postgres, run: echo pg}
  - {id: integration-test-database-mysql, run: echo my}
END
)
equal "names are whole" "integration-test-database-postgres|pg integration-test-database-mysql|my " \
	"$("$FLOWSUP" --home "$others" logs "$long" | sort -r | tr -d ' ' | tr '\n' ' ')"
equal "a narrow terminal cuts them in the middle" 2 \
	"$(on_terminal 60 "$FLOWSUP" --home "$others" logs "$long" | grep -cE '^(.\[2m)?integra.*(gres|ysql) +\| ')"
equal "as objects, a line each" '{"run":"'"$id"'","op":"good","attempt":1,"stderr":false,"text":"one","newline":true}' \
	"$("$FLOWSUP" logs --json "$id" good | head -1)"
equal "that stay valid, whatever was written" "end false" \
	"$("$FLOWSUP" logs --json "$id" nasty | tail -1 | value '"$o->{text} " . ($o->{newline} ? "true" : "false")')"
for words in list show logs watch wait waiting "queue list" "ctl status" check graph "checkpoint show" "checkpoint verify" \
	"checkpoint export" config doctor version "play list" "play show" "supervisor status"; do
	# shellcheck disable=SC2086 # words are meant
	matches "$words has --json" ' --json' "$("$FLOWSUP" help $words)"
done
equal "the last line" two "$("$FLOWSUP" logs "$id" good -n 1)"
equal "more lines than there are" "one two" "$("$FLOWSUP" logs "$id" good --tail 10 | paste -sd' ')"
long=$("$FLOWSUP" start --home "$T/far" --wait -- sh -c 'seq 1 40000; printf last' 2>/dev/null)
equal "none of them" "0 " "$(said=$("$FLOWSUP" logs "$id" good --tail 0 2>&1); echo "$? $said")"
equal "nor with -f" "" "$("$FLOWSUP" logs -f -n 0 "$id" good 2>/dev/null)"
equal "of a long output" "39999 40000 last" "$("$FLOWSUP" logs --home "$T/far" "$long" -n 3 | paste -sd' ')"
equal "to its beginning" 40001 "$("$FLOWSUP" logs --home "$T/far" "$long" -n 40001 | grep -c .)"
equal "of each operation" "1 1" "$("$FLOWSUP" logs -n 1 "$id" | grep -cE '^good +\| two') $("$FLOWSUP" logs -n 1 "$id" | grep -c '^good')"
equal "with -f what is there is cut" two "$("$FLOWSUP" logs -f -n 1 "$id" good 2>/dev/null)"
equal "--stderr" oops "$("$FLOWSUP" logs --stderr "$id" bad)"
matches "no output: where to look" "hint: flowsup logs --stderr $id bad" \
	"$("$FLOWSUP" logs "$id" bad 2>&1)"
matches "an operation that never ran" "has not started" "$("$FLOWSUP" logs "$id" after-bad 2>&1)"
"$FLOWSUP" logs "$id" goood >/dev/null 2>"$T/err"
equal "an unknown operation: exit 2" 2 $?
matches "and the nearest" "hint: flowsup logs $id good" "$(cat "$T/err")"
"$FLOWSUP" logs "$id" good --attempt 7 >/dev/null 2>&1
equal "an attempt that was not: exit 2" 2 $?
equal "logs -f of a run at its end ends" "one two" "$("$FLOWSUP" logs -f "$id" good 2>/dev/null | paste -sd' ')"

# ---- list ----
for i in 1 2 3; do "$FLOWSUP" start --label "n=$i" -- true >/dev/null; done
check "wait for the latest" "$FLOWSUP" wait --timeout 60s @last
check "list --json is JSON" valid_json < <("$FLOWSUP" list --json)
equal "newest first" "3" "$("$FLOWSUP" list --json -n 1 | value '$o->{labels}{n}')"
equal "-n" 2 "$("$FLOWSUP" list --json -n 2 | wc -l)"
equal "--status" "$id" "$("$FLOWSUP" list --json --status failed | value '$o->{id}')"
equal "--resumable" "flowsup resume $id --retry-failed" "$("$FLOWSUP" list --json --resumable | value '$o->{resume_command}')"
equal "--since" 4 "$("$FLOWSUP" list --json --since 1h | wc -l)"
matches "--check" "clean" "$("$FLOWSUP" list --check "-n" 1)"
"$FLOWSUP" list --status fialed >/dev/null 2>"$T/err"
equal "an unknown status: exit 2" 2 $?
matches "and the nearest one" "failed" "$(cat "$T/err")"
matches "or, where none is near, all of them" "note: one of queued, .*completed, .*crashed" \
	"$("$FLOWSUP" list --status done 2>&1)"
near="${id%?}$([ "${id: -1}" = 0 ] && echo 1 || echo 0)"
ln -s gone.yaml dead.yaml
while IFS='|' read -r words wanted; do
	# shellcheck disable=SC2086 # words are meant
	"$FLOWSUP" $words >/dev/null 2>"$T/err"
	matches "$words: what is nearest" "^2 $wanted\$" "$? $(sed -n 's/^hint: //p' "$T/err")"
done <<LINES
LIST|flowsup list
playbook|flowsup play
retry $id|flowsup resume --retry-failed $id
ctl message $id x|flowsup ctl msg $id x
help ctl nosuch|flowsup help ctl
show $near|flowsup show $id
logs @lst|flowsup logs @last
msg --wait 3s @last|flowsup msg --wait=3s @last
stop --wait 5s|flowsup stop --wait=5s
approve --wait=3s 5s op|flowsup list
show @last-faild|flowsup show @last-failed
help strt|flowsup help start
run flow.yaml --wait|flowsup start flow.yaml --wait
status $id|flowsup show $id
ps|flowsup list
ls -n 3|flowsup list -n 3
restart @last|flowsup rerun @last
cancel @last --now|flowsup stop @last --now
rm @last|flowsup gc --dry-run
info @last|flowsup show @last
tail $id good|flowsup logs -f $id good
help tail|flowsup help logs
help ctl pasue|flowsup help ctl pause
ctl pasue @last|flowsup ctl pause @last
supervisor statsu|flowsup supervisor status
start --time 3 -- true|flowsup start --timeout 3 -- true
start --time=3 -- true|flowsup start --timeout=3 -- true
gc --keep 3|flowsup gc --help
graph --format txt flow.yaml|flowsup graph --format text flow.yaml
graph -ftxt flow.yaml|flowsup graph -ftext flow.yaml
ctl resolve x --as=appled|flowsup ctl resolve x --as=applied
list --status fialed|flowsup list --status failed
start echo hello|flowsup start -- echo hello
start echo -n hello|flowsup start -- echo -n hello
start --wait echo -j4|flowsup start --wait -- echo -j4
start sleep 5 --wait|flowsup start --wait -- sleep 5
start -j 2 sleep --timeout 9 5 --label a=b|flowsup start -j 2 --timeout 9 --label a=b -- sleep 5
wait|flowsup help wait
show --graph foo|flowsup show --help
list -n x|flowsup list --help
start flow.ymal|flowsup check flow.yaml   # did you mean this\?
check $PWD/flow.yml|flowsup check $PWD/flow.yaml   # did you mean this\?
graph nothing.like|ls
check $PWD/dead.yaml|ls -l $PWD/dead.yaml
check @last|flowsup show @last
resume @last --all-c --dry-run|flowsup resume --all-crashed --dry-run
resume --all --timeout 9 @last|flowsup resume --all-crashed --timeout 9
resume @last -n --all-crashed|flowsup resume -n --all-crashed
resume --wait --retry-failed|flowsup resume --wait --retry-failed @last
LINES
# Neither does a name that leads nowhere suggest itself.
matches "a link that leads nowhere is called so" "dead.yaml leads nowhere: it is a link to gone.yaml, which is not there" \
	"$("$FLOWSUP" check dead.yaml 2>&1)"
# What is no id may be a name.
echo '{"name": "tour", "plan": [{"id": "a", "run": "true"}]}' >tour.json
"$FLOWSUP" start --home "$T/far" tour.json >/dev/null 2>&1
tour=$("$FLOWSUP" start --home "$T/far" tour.json 2>/dev/null)
for verb in logs show; do
	matches "$verb of a name tells the latest run of it" "no run 'tour'.*hint: flowsup $verb --home $T/far $tour\$" \
		"$("$FLOWSUP" $verb --home "$T/far" tour 2>&1 | paste -sd' ')"
done

# ---- Hints can be pasted ----
mkdir "it's here" && cp flow.yaml "it's here/flow.yaml"
# What was given, and what is to be pasted as it stands: each is one command or several of a shell.
pasted() {
	local hint
	hint=$(sed -n 's/^hint: //p' <<<"$1")
	[ -n "$hint" ] && bash -n -c "$hint" && [[ $hint =~ ^(flowsup|export|mkdir|chmod|ls|read|man)(\ |$) ]] &&
		! grep -qE '\.\.\.|[A-Z]{3}' <<<"$(sed "s|$T|T|g; s|   #.*||" <<<"$hint")" # no "PATH..."
}
wrong() {
	local err
	err=$("$FLOWSUP" "$@" 2>&1 >/dev/null </dev/null)
	if pasted "$err"; then
		ok "$*: the hint can be pasted"
	else
		not_ok "$*: the hint can be pasted"
		note "$err"
	fi
}
wrong check "it's here/flow.yam"
wrong check "it's here/nothing.here"
wrong check nothing
wrong start "no such thing" with operands
wrong msg "$near" "it's a text with; a semicolon" --to gud
wrong logs "$id" "go od"
wrong play "it's none"
wrong fork "$id" --from "it's none"
wrong start --events 3 flow.yaml
wrong resume --events 3 "$id"
wrong resume
wrong start --queue "a b"
wrong --hom "$T/a b" list
wrong --home "$T/a b" lst
wrong list --home "$T/it's none" --status fialed
wrong wait --home "$T" nonsense
equal "a home that was given is in what is to be pasted" "flowsup --home $T/nowhere start -- echo hello" \
	"$("$FLOWSUP" list --home "$T/nowhere" 2>&1 | sed -n 's/^hint: //p')"
equal "pasted, the mended command runs" "0 $("$FLOWSUP" show "$id" | head -n 1)" \
	"$(PATH=$BUILD/bin:$PATH bash -c "$("$FLOWSUP" shwo "$id" 2>&1 | sed -n 's/^hint: //p')" >"$T/out"; echo "$? $(head -n 1 "$T/out")")"
matches "what no command mends is a note" "^note: durations look like" "$("$FLOWSUP" start --timeout x -- true 2>&1 | tail -n 1)"

# ---- Help of a family ----
for words in queue ctl emit checkpoint; do
	equal "$words --help is help $words" "0 $("$FLOWSUP" help $words)" "$("$FLOWSUP" $words --help >"$T/out"; echo "$? $(cat "$T/out")")"
	equal "$words -h as well" "$("$FLOWSUP" help $words)" "$("$FLOWSUP" --home "$T" $words -h)"
done
said=$("$FLOWSUP" help supervisor)
matches "a command that is the first word of others names them" 'also: *flowsup supervisor status \| stop \| restart' "$said"
equal "what its programs tell each other is seldom needed" "0 2" \
	"$(grep -c -- '-fd N' <<<"$said") $("$FLOWSUP" help --all supervisor | grep -c -- '-fd N')"
matches "gc says at once that it removes, and what" 'remove old runs at once.*--dry-run .*newest.* 1000 .*30 days' "$("$FLOWSUP" help gc | xargs -d '\n')"
# A screen has 24 lines and 80 columns, and the prompt wants one.
commands() {
	local word second
	for word in $("$FLOWSUP" completion words -- help '' | cut -f1 | grep -v '^-'); do
		echo "$word"
		for second in $("$FLOWSUP" completion words -- help "$word" '' | cut -f1 | grep -v '^-'); do
			echo "$word $second"
		done
	done
}
commands >"$T/commands"
check "help is asked for of every command" grep -q 'ctl resolve' "$T/commands"
while read -r words; do
	# shellcheck disable=SC2086 # words are meant
	help=$("$FLOWSUP" help $words)
	equal "help $words: begins with what it is for, then an example" "yes" \
		"$(sed -n '1{/^flowsup [a-z ]*: /!q}; 2s/^  .*flowsup .*/yes/p' <<<"$help")"
	equal "help $words: fits a screen" "" "$(awk 'NR > 23 || length > 80' <<<"$help")"
	# shellcheck disable=SC2086 # words are meant
	if [ "$("$FLOWSUP" help --all $words)" != "$help" ]; then
		matches "help $words: says how to see the rest" "flowsup help --all $words\$" "$help"
	fi
done <"$T/commands"
for words in -h --help "--utc -h" "--home $T -h"; do
	# shellcheck disable=SC2086 # options
	equal "$words is help" "0 $("$FLOWSUP" help)" "$("$FLOWSUP" $words >"$T/out"; echo "$? $(cat "$T/out")")"
done
equal "an option for help before the command, too" "$("$FLOWSUP" help list)" "$("$FLOWSUP" --help list)"
equal "it has every second word, also of what is known by one" "deny pause resolve resume status stop" \
	"$("$FLOWSUP" help ctl | awk '/^flowsup ctl [a-z]/ { print $3 }' | grep -vE 'approve|msg' | sort | xargs)"
equal "the version, by habit" "$("$FLOWSUP" version)" "$("$FLOWSUP" --version)"
mkdir -p "$T/a b"
id2=$("$FLOWSUP" start --home "$T/a b" -- false)
"$FLOWSUP" wait --home "$T/a b" "$id2"
matches "a command to paste names the home, quoted" "resume --home '$T/a b' $id2" \
	"$("$FLOWSUP" list --home "$T/a b")"

# ---- Long names ----
long=$(printf 'n%.0s' $(seq 5000))
printf 'plan:\n  - {id: a, gate: approve, run: "true"}\n' >gate.yaml
gated=$("$FLOWSUP" start --name "$long" gate.yaml)
waits() { "$FLOWSUP" waiting --json | grep -q "$gated"; }
wait_until waits
for words in "list -n 1" waiting; do
	# shellcheck disable=SC2086 # words are meant
	matches "$words in a pipe shows the beginning of a long name" "$gated  n{60,63}[^n]" "$("$FLOWSUP" $words)"
	# shellcheck disable=SC2086 # words are meant
	equal "and with JSON all of it" 5000 "$(json "$("$FLOWSUP" $words --json)" name | tr -d '\n' | wc -c)"
done
"$FLOWSUP" kill "$gated" 2>/dev/null

# ---- Others ----
for c in "doctor" "version" "ctl status" "supervisor status"; do
	# shellcheck disable=SC2086
	"$FLOWSUP" pause $id >/dev/null 2>&1
	[ "$c" = "ctl status" ] && continue
	# shellcheck disable=SC2086
	check "$c --json is JSON" valid_json < <("$FLOWSUP" $c --json)
done
strange=$BUILD/tests/preload/strange_fs.so
matches "doctor says when the file system is one of those that were tested" 'ok +file system +xfs' \
	"$(LD_PRELOAD=$strange STRANGE_FS=58465342 "$FLOWSUP" doctor 2>&1)"
matches "and when it is not" 'note +file system +f2fs: .*have not been run' \
	"$(LD_PRELOAD=$strange STRANGE_FS=F2F52010 "$FLOWSUP" doctor 2>&1)"
said=$(LD_PRELOAD=$strange STRANGE_FS=6969 "$FLOWSUP" list 2>&1)
equal "a remote file system is refused" 78 $?
matches "once with its name" "^flowsup: state directory: '$FLOWSUP_HOME' is on a remote file system \\(nfs\\)" "$said"
# How many are too few is no matter of this test: until it works it says why not.
for n in 4 5 6 7 8 9 10 11 12 13 14 15 16; do
	said=$(ulimit -n $n; "$FLOWSUP" list 2>&1) && break
	matches "list with $n descriptors says that they are too few" "Too many open files" "$said"
done
"$FLOWSUP" pause "$id" 2>/dev/null
equal "a control of a run at its end is refused: exit 4" 4 $?
matches "no controls" "no controls" "$("$FLOWSUP" ctl status "$id" 2>&1)"

# ---- Standard output ----
"$FLOWSUP" list | head -n 1 >/dev/null
equal "list | head is no error" "0 0" "${PIPESTATUS[*]}"
"$FLOWSUP" show "$id" | head -c 1 >/dev/null
equal "show | head is no error" "0 0" "${PIPESTATUS[*]}"
"$FLOWSUP" start --wait -- sh -c 'yes | head -c 3000000' >/dev/null 2>&1
"$FLOWSUP" logs | head -c 10 >/dev/null
equal "logs | head of much output is no error" "0 0" "${PIPESTATUS[*]}"
for c in list "show" "logs $id good" doctor help version "watch --json $id"; do
	# shellcheck disable=SC2086
	"$FLOWSUP" $c >/dev/full 2>"$T/err"
	equal "$c on a full disk: exit 74" 74 $?
	matches "$c names the cause" "No space left" "$(cat "$T/err")"
done

# ---- Terminals ----
for w in 40 80 200; do
	on_terminal $w "$FLOWSUP" list | sed 's/\x1b\[[0-9;]*[mK]//g; s/…/./g' >screen
	equal "list fits $w columns" "" "$(grep -v '^    next: flowsup ' screen | awk -v w=$w 'length > w')"
	matches "list in $w columns has the whole command" "flowsup resume $id --retry-failed" "$(cat screen)"
	matches "list in $w columns shows the run" "$id" "$(cat screen)"
done
# A reason that there is no room for is below its row, one that fits beside it.
lost=a/directory/with/a/long/name/and/in/it/the/file/that/was/to/be/made.txt
printf 'plan:\n  - {id: short, run: "false"}\n  - {id: lacks-what-it-was-to-make, run: "true", artifacts: [%s]}\n' "$lost" >lacks.yaml
lacks=$("$FLOWSUP" start lacks.yaml --wait 2>/dev/null)
on_terminal 80 "$FLOWSUP" show "$lacks" 2>/dev/null | sed 's/\x1b\[[0-9;]*[mK]//g' >screen
check "show: a path in a reason is whole" grep -qE "^ +\"$lost\"" screen
check "and a short reason in its column" grep -qE '^short +failed .* exit status 1$' screen
check "no id is cut for them" grep -qE '^lacks-what-it-was-to-make +failed' screen
# What is neither a path nor a command fits a narrow terminal.
for words in "list --check -n 3" "doctor" "checkpoint show $id" "checkpoint verify $id" "play list" "queue list"; do
	# shellcheck disable=SC2086 # words are meant
	on_terminal 40 "$FLOWSUP" $words 2>/dev/null | sed 's/\x1b\[[0-9;]*[mK]//g; s/…/./g' >screen
	check "$words on 40 columns says something" [ -s screen ]
	equal "$words fits 40 columns" "" "$(grep -vE '/|flowsup |[0-9a-f]{32}' screen | awk 'length > 40')"
done
mkdir -p .flowsup/playbooks
cat >.flowsup/playbooks/narrow.yaml <<'YAML'
args: {first_argument: {type: string, required: true}, second_argument: {type: string, default: x}}
plan: [{id: a, run: "true"}]
YAML
on_terminal 40 "$FLOWSUP" play show narrow 2>/dev/null | sed 's/\x1b\[[0-9;]*[mK]//g; s/…/./g' >screen
matches "play show on 40 columns has the command in lines that can be pasted" \
	'flowsup play narrow --arg \\ +first_argument=... \[--arg \\ ' "$(paste -sd' ' screen)"
equal "play show fits 40 columns" "" "$(grep -v / screen | awk 'length > 40')"
on_terminal 40 "$FLOWSUP" list -n 3 >screen
matches "list on 40 columns says how much is done" "DONE.*1/1" "$(paste -sd' ' screen)"
# More runs than fit: header and newest stay, whatever stands below the rows.
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13; do "$FLOWSUP" start -- false >/dev/null; done
check "the latest has ended" wait_until eval '"$FLOWSUP" wait @last; [ $? = 1 ]'
newest=$("$FLOWSUP" list --json -n 1 | value '$o->{id}')
for size in "80 24" "80 10" "40 24" "40 12" "200 20"; do
	env -u NO_COLOR TERM=xterm LC_ALL=C.UTF-8 script -qec \
		"stty cols ${size% *} rows ${size#* }; $(printf '%q ' "$FLOWSUP" list)" /dev/null </dev/null |
		tr -d '\r' | sed 's/\x1b\[[0-9;]*[mK]//g; s/…/./g' >screen
	equal "list on $size: no more lines than fit, with the prompt" "" \
		"$(awk -v w=${size% *} -v h=${size#* } '{ n += length == 0 ? 1 : int((length + w - 1) / w) }
			END { if (n > h - 1) print n }' screen)"
	matches "list on $size: the newest and what to do for more" "$newest.*older runs.*list -n 0" "$(paste -sd' ' screen)"
done
gated=$("$FLOWSUP" start gate.yaml)
wait_until waits
for w in 40 80 200; do
	on_terminal $w "$FLOWSUP" waiting | sed 's/\x1b\[[0-9;]*[mK]//g; s/…/./g' >screen
	equal "waiting fits $w columns" "" "$(grep -v '^    answer: flowsup ' screen | awk -v w=$w 'length > w')"
	matches "waiting in $w columns shows the run, the operation and the whole command" \
		"$gated.* a .*flowsup approve $gated a" "$(paste -sd' ' screen)"
done
"$FLOWSUP" kill "$gated" 2>/dev/null
matches "colour on a terminal" $'\033\\[3' "$(on_terminal 80 "$FLOWSUP" list)"
equal "none with NO_COLOR" "" "$(on_terminal 80 env NO_COLOR=1 "$FLOWSUP" list | grep $'\033')"
equal "none in a pipe" "" "$(env -u NO_COLOR TERM=xterm "$FLOWSUP" list | grep $'\033')"
display_on() { # TERM PATTERN
	rm -f screen drawn
	env -u NO_COLOR -u TMUX -u STY TERM="$1" LC_ALL=C.UTF-8 script -qec \
		"$(printf '%q ' "$FLOWSUP" start --wait -- sh -c 'until [ -e drawn ]; do sleep 0.02; done')" /dev/null </dev/null >screen &
	drawing=$!
	matches_soon "a display on a terminal ($1)" "$2" cat screen
	touch drawn
	wait $drawing
}
display_on xterm $'\033\\[\\?1049h.*\033\\[H'
display_on linux $'\033\\[[0-9]+A'
equal "which has no second screen" "" "$(grep -aF '[?1049h' screen)"
equal "no drawing with NO_COLOR" "" \
	"$(on_terminal 80 env NO_COLOR=1 "$FLOWSUP" start --wait -- true | grep $'\033')"
"$FLOWSUP" start --name $'a\n\033[31mb' -- true >/dev/null
equal "a name cannot break a line" 2 "$("$FLOWSUP" list -n 1 | wc -l)"
equal "nor steer a terminal" "" "$("$FLOWSUP" list -n 1 | grep $'\033')"

# ---- What JSON is made of ----
sed -n '/^\.Sh JSON/,/^\.Sh ENVIRONMENT/p' "$ROOT/man/flowsup.1" | grep -oE '[a-z_]+' | sort -u >named
undocumented() { perl -MJSON::PP -ne 'print map { "$_\n" } keys %{decode_json($_)}' | sort -u | comm -23 - named | paste -sd' '; }
id=$("$FLOWSUP" start -- sh -c 'echo x; exit 1')
"$FLOWSUP" wait "$id" 2>/dev/null
for words in list "show $id" "wait $id" "resume -n $id" "kill $id" "logs $id" "checkpoint show $id" "checkpoint verify $id" \
	"check flow.yaml" "graph flow.yaml" "queue list" "gc --dry-run --keep-n 0" version "supervisor status" doctor; do
	# shellcheck disable=SC2086 # words
	"$FLOWSUP" $words --json >printed 2>/dev/null
	check "$words: prints an object" [ -s printed ]
	equal "$words: every member stands in the man page" "" "$(undocumented <printed)"
done
# ---- A checkpoint that is refused ----
run=$("$FLOWSUP" start --wait -- false 2>/dev/null)
matches "a run that can be resumed" '"resumable":true.*"resume_command":"flowsup resume' "$("$FLOWSUP" list --check --json -n 1)"
echo x >"$FLOWSUP_HOME/runs/$run/checkpoint.json"
matches "cannot be any more" '"resumable":false.*"resume_command":null' "$("$FLOWSUP" list --check --json -n 1 2>/dev/null)"

# ---- start --wait, without a terminal ----
# An operation starts behind the saved outcome of the one before it.
"$FLOWSUP" start --wait --chain true true true true true true 2>"$T/lines" >/dev/null
equal "how many are done is no older than the lines above it" "" "$(awk '/ started$/ && !/run started/ { n++ }
	/ is running, / { match($0, /running, [0-9]+/); if (substr($0, RSTART + 9, RLENGTH - 9) + 1 < n) print }' "$T/lines")"

plan
