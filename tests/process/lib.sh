# shellcheck shell=bash
# What process tests share: a home of their own, TAP, waiting for conditions, clean-up by pid.
# Use it with:	. "$(dirname "$0")/lib.sh"
#
# Each test has its own state directory below $T, exported as FLOWSUP_HOME. At the end (also after
# an error) the supervisor, workers and operations of every home below $T are ended, known by their
# environment, and $T is removed. On failure the supervisor's log is printed as TAP comments.
set -u
umask 022

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
BUILD=${FLOWSUP_BUILD:-$ROOT/build}
FLOWSUP=$BUILD/bin/flowsup
WORKER=$BUILD/libexec/flowsup/flowsup-worker
T=$(mktemp -d "${TMPDIR:-/tmp}/flowsup-test.XXXXXX") || exit 1
export FLOWSUP_HOME=$T/home
export NO_COLOR=1
# In a tree built with sanitizers a library of ours may stand before theirs.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
# JITTER=SEED: every program of ours sleeps here and there (preload/jitter.c).
[ -z "${JITTER:-}" ] || export JITTER LD_PRELOAD=$BUILD/tests/preload/jitter.so
LIMIT=${FLOWSUP_TEST_LIMIT:-60} # seconds a condition may take; a slow machine is no failure
TESTS=0
FAILED=0

# ---- TAP ----

note() { printf '# %s\n' "$*"; }
ok() { TESTS=$((TESTS + 1)); printf 'ok %d - %s\n' "$TESTS" "$*"; }
not_ok() { TESTS=$((TESTS + 1)); FAILED=$((FAILED + 1)); printf 'not ok %d - %s\n' "$TESTS" "$*"; }
skip() { TESTS=$((TESTS + 1)); printf 'ok %d - %s # SKIP\n' "$TESTS" "$*"; }

# check NAME COMMAND...: ok when the command succeeds.
check() {
	local name=$1
	shift
	if "$@"; then ok "$name"; else not_ok "$name"; note "failed: $*"; fi
}

# A tree built with sanitizers, which keep memory of their own: how much is used says nothing there.
is_sanitized() { grep -qaF __asan_init "$WORKER"; }

# check_memory NAME COMMAND...: as check, but where memory cannot be compared.
check_memory() {
	if is_sanitized; then skip "$1: sanitizers use memory of their own"; else check "$@"; fi
}

# equal NAME WANTED GOT: both are shown when they differ.
equal() {
	if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1"; note "wanted: $2"; note "got:    $3"; fi
}

# matches NAME REGEX TEXT
matches() {
	if [[ $3 =~ $2 ]]; then ok "$1"; else not_ok "$1"; note "wanted: $2"; note "got:    $3"; fi
}

on_terminal() { # columns command...: its output on a terminal of this width
	local columns=$1
	shift
	env -u NO_COLOR TERM=xterm LC_ALL=C.UTF-8 script -qec \
		"stty cols $columns rows 24; $(printf '%q ' "$@")" /dev/null </dev/null | tr -d '\r'
}

# The last line of a test.
plan() {
	printf '1..%d\n' "$TESTS"
	[ "$FAILED" -eq 0 ]
	exit
}

# ---- Waiting ----

# wait_until COMMAND...: tries it until it succeeds; fails after $LIMIT seconds.
wait_until() {
	local end=$((SECONDS + LIMIT))
	until "$@" >/dev/null 2>&1; do
		if [ $SECONDS -ge "$end" ]; then
			note "never came true: $*"
			return 1
		fi
		sleep 0.02 # (a process substitution would change $!)
	done
}

# What a live process writes on its own time is not looked at once:
# matches_soon NAME REGEX COMMAND..., equal_soon NAME WANTED COMMAND...: of what the command prints.
prints_match() { [[ $("${@:2}") =~ $1 ]]; }
matches_soon() {
	wait_until prints_match "${@:2}"
	matches "$1" "$2" "$("${@:3}")"
}
prints() { [ "$("${@:2}")" = "$1" ]; }
equal_soon() {
	wait_until prints "${@:2}"
	equal "$1" "$2" "$("${@:3}")"
}

# ---- Clocks (preload/clock.c) ----

# movable COMMAND...: with clocks that jump: to a supervisor that is started so, and all its workers.
# Its own monotonic clock, for limits that it sees to, and the boot clock, for deadlines of runs.
export MONO_JUMP=$T/mono-jump BOOT_JUMP=$T/boot-jump
movable() {
	CLOCK_OF=flowsup LD_PRELOAD=$BUILD/tests/preload/clock.so${LD_PRELOAD:+:$LD_PRELOAD} "$@"
}
# jump FILE SECONDS: what is in the file is the whole jump; a clock that is read meanwhile does not go back.
jump() {
	echo "$2" >"$1.new"
	mv "$1.new" "$1"
}
# limits_pass: two hours by the supervisor's clock, which it is made to look at.
jumped=0
limits_pass() {
	jumped=$((jumped + 7200))
	jump "$MONO_JUMP" $jumped
	"$FLOWSUP" supervisor status >/dev/null 2>&1
}
# they_pass_until COMMAND...: one look at it, for what is counted from a moment that is not known here.
they_pass_until() { limits_pass && "$@"; }
# For what starts from here on they have not passed: a clock goes back with its process alone.
limits_are_ahead() {
	[ "$jumped" -gt 0 ] || return 0
	"$FLOWSUP" supervisor stop
	rm "$MONO_JUMP"
	jumped=0
	movable "$FLOWSUP" supervisor
}
# The deadline of every run of so many seconds passes; it has not passed for those that start afterwards.
deadline_passes() { jump "$BOOT_JUMP" 7200; }
deadline_is_ahead() { rm -f "$BOOT_JUMP"; }

# ---- Processes ----

# The field of a process' stat behind its name: 1 state, 2 parent, 3 group, 4 session.
stat_field() {
	local line
	line=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
	line=${line##*) }
	set -- "$2" $line
	shift "$1"
	printf '%s\n' "$1"
}
# It may be reaped between two looks: what cannot be read any more has gone.
gone() {
	local state
	state=$(stat_field "$1" 1) || return 0
	[ "$state" = Z ]
}
alive() { ! gone "$1"; }

all_stopped() { ! sed 's/.*) //' "/proc/$1"/task/*/stat | grep -qv '^T'; }
# stop_still PID: SIGSTOP, but not in the middle of a change to the database, which would keep everybody out.
stop_still() {
	while :; do
		kill -STOP "$1" && wait_until all_stopped "$1" || return
		grep -qE "POSIX +ADVISORY +WRITE $1 " /proc/locks || return 0
		kill -CONT "$1"
	done
}

# Processes whose environment names a home below $T.
# The tools of the pipeline that asks are none.
ours() {
	local pid name
	for pid in $(grep -lzs "^FLOWSUP_HOME=$T/" /proc/[0-9]*/environ | cut -d/ -f3); do
		{ read -r name <"/proc/$pid/comm"; } 2>/dev/null || continue
		case $name in wc | grep | cut) ;; *) echo "$pid" ;; esac
	done
}

# Supervisors of this home. Asked for in /proc, so that none is started by asking.
supervisors() {
	local pid argv
	for pid in $(grep -lzsxF "FLOWSUP_HOME=$FLOWSUP_HOME" /proc/[0-9]*/environ | cut -d/ -f3); do
		mapfile -d '' -t argv 2>/dev/null <"/proc/$pid/cmdline" || continue
		[ "${argv[1]:-}" != supervisor ] || echo "$pid"
	done
}
count() { wc -w; }
# Of several that are started at once the others leave.
one_supervisor() { [ "$(supervisors | count)" = 1 ]; }
supervisor_pid() { json "$("$FLOWSUP" supervisor status --json 2>/dev/null)" pid | grep -v null; }
supervisor_answers() { [ -n "$(supervisor_pid)" ]; }

# json TEXT NAME: the first such member in JSON on one line, without its quotes; "" when there is
# none, or it is an object or an array.
json() {
	printf '%s' "$1" | grep -oE "\"$2\":(\"[^\"]*\"|[^]\"[{},]+)" | head -1 | cut -d: -f2- | tr -d '"'
}
# run_fact RUN NAME: a member of `show --json`.
run_fact() { json "$("$FLOWSUP" list --json -n 100000 | grep -F "{\"id\":\"$1\"")" "$2"; }
run_status() { run_fact "$1" status; }
status_is() { [ "$(run_status "$1")" = "$2" ]; }
# The worker's pid as the supervisor knows it: stands first in the run's object.
worker_pid() {
	"$FLOWSUP" supervisor status --json | sed -nE "s/.*\"$1\":\{\"pid\":([0-9]+).*/\1/p"
}
worker_is_ready() { "$FLOWSUP" supervisor status --json | grep -qE "\"$1\":\{\"pid\":[1-9][0-9]*,\"state\":\"ready\""; }
# sql STATEMENT: others may be writing, or just open or close the database.
sql() { sqlite3 -cmd '.timeout 60000' "$FLOWSUP_HOME/state.db" "$1"; }
# hold_database: nobody else writes to the database, until release_database.
hold_database() {
	rm -f "$T/held" "$T/let-go"
	printf 'BEGIN IMMEDIATE;\n.shell touch "%s/held"\n.shell until test -e "%s/let-go"; do sleep 0.02; done\nROLLBACK;\n' "$T" "$T" |
		sqlite3 -bail -cmd '.timeout 60000' "$FLOWSUP_HOME/state.db" >/dev/null 2>&1 &
	HOLDER=$!
	wait_until test -e "$T/held"
}
release_database() {
	: >"$T/let-go"
	wait "$HOLDER"
}
logged() { grep -qE -- "$1" "$FLOWSUP_HOME/supervisor.log"; }

# power_loss RUN: of a crashed run, as if the machine had been started anew: nothing of it runs, and
# nobody knows how that ended.
power_loss() {
	local dir=$FLOWSUP_HOME/runs/$1 name pid records=() record
	while read -r name pid; do
		gone "$pid" || records+=("$dir/ops/$name/exit.json")
	done < <(sed -nE 's/.*"kind":"start","op":"([^"]*)","attempt":([0-9]+),"pid":([0-9]+),.*/\1.\2 \3/p' "$dir/attempts.log")
	"$FLOWSUP" stop "$1" >/dev/null 2>&1
	# The last that is written by others.
	for record in "${records[@]}"; do wait_until [ -e "$record" ]; done
	sed -i -e 's/"boot_id":"[^"]*"/"boot_id":"00000000-0000-0000-0000-000000000000"/' \
		-e '/"kind":"start"/s/"start":\([0-9]\)/"start":9\1/' "$dir/attempts.log"
}

# as_of_elsewhere DIRECTORY [DIGIT]: a copy of a run, or its checkpoint, as of one that this state directory knows
# nothing of: its session is another one, for each digit.
as_of_elsewhere() {
	local file digit=${2:-0}
	for file in "$1/launch.json" "$1/checkpoint.json"; do
		[ ! -e "$file" ] || sed -i -E "s/\"session_id\": ?\"[0-9a-f]{32}\"/\"session_id\":\"0000000000000000000000000000000$digit\"/" "$file"
	done
}

clean_up() {
	local pid round
	trap - EXIT
	if [ "$FAILED" -ne 0 ] && [ -e "$FLOWSUP_HOME/supervisor.log" ]; then
		tail -20 "$FLOWSUP_HOME/supervisor.log" | sed 's/^/# log: /'
	fi
	for round in 1 2 3 4 5; do
		[ -n "$(ours)" ] || break
		for pid in $(ours); do
			[ "$pid" = $$ ] || kill -KILL "$pid" 2>/dev/null
		done
	done
	cd / && rm -rf "$T"
}
# This shell must not take itself for one of its own: its environment was set when it began.
trap clean_up EXIT
trap 'exit 1' HUP INT TERM

[ -x "$FLOWSUP" ] || { echo "Bail out! $FLOWSUP is not built"; exit 1; }
