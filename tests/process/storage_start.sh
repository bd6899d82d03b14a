#!/usr/bin/env bash
# A state directory in which no file can be made any more: whichever file is the first that is not to
# be had, a start ends with 74 and says what became of the run.
# shellcheck source=lib_disk.sh
. "$(dirname "$0")/lib_disk.sh"
have_disk 600 "no files left"
export FLOWSUP_HOME=$T/disk/home
MOST=40 # a run has fewer files

# leave N: so many files can be made.
leave() {
	local n=0 files=()
	rm -rf "$T/disk/fill"
	mkdir "$T/disk/fill"
	while : 2>/dev/null >"$T/disk/fill/$n"; do n=$((n + 1)); done
	for ((i = 0; i < $1; i++)); do files+=("$T/disk/fill/$((n - 1 - i))"); done
	[ $# -eq 0 ] || rm -f "${files[@]}"
}
runs() { find "$FLOWSUP_HOME/runs" -mindepth 1 -maxdepth 1 -name '2*' | wc -l; }

# starts OPTION...: with ever more files, until the run completes.
starts() {
	local left status said wrong=0 untold=0
	for ((left = 0; left < MOST; left++)); do
		leave $left
		"$FLOWSUP" start --storage-timeout 100ms "$@" -- true >"$T/id" 2>"$T/said"
		status=$?
		said=$(cat "$T/said")
		[ $status -ne 0 ] || break
		[ $status -eq 74 ] || { wrong=$((wrong + 1)); note "$left files: $status: $said"; }
		case $said in
		*"No space left on device"*) ;;
		*) untold=$((untold + 1)); note "$left files: $said" ;;
		esac
		# What has an id has a row that says the same.
		[ ! -s "$T/id" ] || matches "$left files: the run says why" "^failed run.failed.(storage|checkpoint)$" \
			"$(run_status "$(cat "$T/id")") $(run_fact "$(cat "$T/id")" reason)"
	done
	equal "start $*: completes with files enough" 0 "$status"
	check "after starts that could not" [ "$left" -gt 12 ]
	equal "start $*: each of them ended with 74" 0 $wrong
	equal "start $*: and said why" 0 $untold
	rm -r "$T/disk/fill"
}

# The first start ever, without room: what it leaves of a database is no older one.
(
	export FLOWSUP_HOME=$T/disk/first
	fill
	for words in "start --foreground -- true" list "list --json" "show @last --json" doctor; do
		# shellcheck disable=SC2086
		"$FLOWSUP" $words 2>&1 | tr '\n' ' '
		echo
	done >"$T/first"
)
check "it left a database" [ -e "$T/disk/first/state.db" ]
room
rm -r "${T:?}/disk/first"
equal "without room every command says so, from the first start on" 5 "$(grep -cE "full|No space" "$T/first")"
equal "and none names an older schema" 0 "$(grep -c "older than this program" "$T/first")"

# While nobody has the database open, its log cannot be made either.
"$FLOWSUP" start --foreground -- true >/dev/null 2>&1
starts --foreground
before=$(runs)
leave 0
"$FLOWSUP" list >"$T/list" 2>"$T/said"
equal "list works without files" 0 $?
equal "and shows all" "$before" "$(tail -n +2 "$T/list" | wc -l)"
rm -r "$T/disk/fill"

"$FLOWSUP" supervisor
starts --wait

# Between two tries to start an operation there is a pause, as long as files lack.
printf '{"plan": [{"id": "a", "run": "until test -e go; do sleep 0.05; done"}, {"id": "b", "needs": ["a"], "run": "true"}]}' >"$T/two.json"
cd "$T" || exit 1
run=$("$FLOWSUP" start two.json)
tries() { grep -c '"CheckpointError"' "$FLOWSUP_HOME/runs/$run/events.jsonl"; }
waits() { [ "$(run_fact "$run" reason)" = run.running.storage ]; }
second() { [ "$(tries)" -ge 2 ]; }
wait_until eval '[ "$(run_status "$run")" = running ]'
leave 0
touch go
check "the run says that it waits" wait_until waits
check "it is tried again" wait_until second
check "but not at every turn" [ "$(tries)" -lt 20 ]
rm -r "$T/disk/fill"
"$FLOWSUP" wait "$run" 2>/dev/null
equal "with files it completes" 0 $?
"$FLOWSUP" supervisor stop >/dev/null 2>&1
plan
