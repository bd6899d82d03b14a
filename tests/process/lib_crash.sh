# shellcheck shell=bash
# What the campaign of crashes uses: a chain of runs that is killed and resumed, and what must hold
# of it. Whatever does not is written to $T/wrong.
. "$(dirname "$0")/lib.sh"

export FLOWSUP OPS=$ROOT/tests/lib/crash_op.sh PATH=$BUILD/bin:$PATH
chain=() # the runs of a job, the last one is $run
refused_ops=" "

random_flow() { python3 "$ROOT/tests/lib/crash_flow.py" "$@" >"$T/flow.json"; } # SEED KIND SIZE
state_of() { python3 "$ROOT/tests/lib/crash_state.py" "$@"; }
wrong() { printf '%s: %s\n' "$run" "$*" >>"$T/wrong"; }

# A member of `show`, asked for by id: lists name other runs of the chain too.
run_fact_of() {
	"$FLOWSUP" show "$1" --json | perl -MJSON::PP -e '
		local $/; my $r = decode_json(<STDIN>); print $r->{$ARGV[0]} // "", "\n"' "$2"
}
is_at_end() {
	status=$(run_fact_of "$run" status)
	case $status in
	completed | failed | crashed | cancelled | timed_out) ;;
	*) return 1 ;;
	esac
}
wait_for_end() { wait_until is_at_end || wrong "no end of it is known: $status"; }
nap_ms() { [ "$1" -le 0 ] || sleep "$(($1 / 1000)).$(printf %03d $(($1 % 1000)))"; }
random_below() { echo $(((RANDOM * 32768 + RANDOM) % ($1 + 1))); }

# ---- The log of what was started ----

log_to() { # PREFIX: from here on
	export RUNLOG=$T/$1
	rm -rf "$RUNLOG" "$RUNLOG".*
	mkdir "$RUNLOG.in"
	truncate -s 0 "$RUNLOG" "$RUNLOG.keys"
}
times() { grep -cxF -- "$1" "$RUNLOG"; }
saved() { # what is saved, and how often it was started so far
	"$FLOWSUP" show "$run" --json | perl -MJSON::PP -e '
		local $/; my $r = decode_json(<STDIN>); print "$_->{id}\n" for grep { $_->{saved} } @{$r->{ops}}' |
		while read -r op; do echo "$op $(times "$op")"; done
}
check_log() {
	local op before
	while read -r op before; do
		[ "$(times "$op")" = "$before" ] || wrong "$op was saved and ran again"
	done <"$T/saved"
	awk '$1 == "end" { runs[$2]--; next } runs[$1]++ { print $1 " ran beside itself" }' "$RUNLOG" >>"$T/wrong"
	sort -u "$RUNLOG.keys" | cut -d' ' -f1 | uniq -d | sed 's/$/ had two idempotency keys/' >>"$T/wrong"
	for op in $(python3 -c '
import json, sys
print(*(o["id"] for o in json.load(open(sys.argv[1]))["plan"] if o.get("idempotent") is False))' "$T/flow.json"); do
		[[ $refused_ops == *" $op "* ]] || [ "$(times "$op")" -le 1 ] || wrong "$op must not be repeated and was"
	done
}

# ---- Messages ----

send_message() { # NUMBER
	"$FLOWSUP" msg "$run" "<text $1>" >/dev/null 2>&1 && echo "$1" >>"$T/sent"
}
# Each is in the input of one operation only; one that is applied is in that of one.
check_messages() {
	local id n ops row
	for id in "${chain[@]}"; do
		"$FLOWSUP" ctl status "$id" --this-run --json 2>/dev/null
	done >"$T/rows"
	while read -r n; do
		ops=$(grep -lF "<text $n>" "$RUNLOG".in/* | sed -E 's|.*/([A-Za-z0-9.-]+)\.[0-9]{8}T.*|\1|' | sort -u | xargs)
		row=$(grep -F "<text $n>" "$T/rows")
		[ "$(wc -w <<<"$ops")" -le 1 ] || wrong "message $n is in several operations: $ops"
		[ "$(grep -c . <<<"$row")" = 1 ] || wrong "message $n has not one row: $row"
		case $(json "$row" state) in
		applied) [ -n "$ops" ] || wrong "message $n was applied and is lost" ;;
		claimed) ;;
		rejected | "never landed") [ -z "$ops" ] || wrong "message $n is in $ops and was rejected" ;;
		*) wrong "message $n: $row" ;;
		esac
	done <"$T/sent"
}

# ---- Killing ----

# The worker by the run's own log: a killed supervisor tells nothing. "" when it is gone.
worker_of() {
	local pid
	pid=$(sed -nE 's/.*"kind":"worker".*"pid":([0-9]+).*/\1/p' "$FLOWSUP_HOME/runs/$run/attempts.log" \
		2>/dev/null | tail -1)
	[ -z "$pid" ] || gone "$pid" || echo "$pid"
}
# Worker, supervisor or both, by one random number.
kill_some() {
	local worker super
	worker=$(worker_of)
	super=$(supervisors)
	case $((RANDOM % 3)) in
	0) super= ;;
	1) worker= ;;
	esac
	# shellcheck disable=SC2086
	[ -z "$worker$super" ] || kill -KILL $worker $super 2>/dev/null
	[ -z "$worker" ] || kills=$((kills + 1))
}

# ---- Going on ----

# A failure of an operation is the end of a run also where its deadline has passed.
was_late() { grep -q '"event":"DeadlineClosed"' "$FLOWSUP_HOME/runs/$run/events.jsonl"; }
# Of a run that has ended by its deadline: nothing started after it, and what is settled is as it
# would have been; the rest is left for a resume.
check_late() {
	awk '/"event":"DeadlineClosed"/ { closed = 1 } closed && /"event":"NodeStarted"/' \
		"$FLOWSUP_HOME/runs/$run/events.jsonl" | grep -q . && wrong "something was started after its deadline"
	state_of "$run" "$T/wanted" | sed "s/^/$run settled otherwise: /" >>"$T/wrong"
}

# resume OPTION...: $run becomes the new run. What must not be repeated and whose end is unknown is
# to be refused by its name; then it is allowed.
resume() {
	local new rc op
	saved >"$T/saved"
	new=$("$FLOWSUP" resume "$run" "$@" 2>"$T/resume.err")
	rc=$?
	if [ $rc -eq 4 ] && grep -q 'idempotent: false' "$T/resume.err"; then
		refusals=$((refusals + 1))
		for op in $(sed -nE 's/.*operation ([^ :]+): .*idempotent: false.*/\1/p' "$T/resume.err"); do
			refused_ops="$refused_ops$op "
			! grep -qxF "$op $(times "$op")" "$T/saved" || wrong "$op is saved, and refused"
		done
		new=$("$FLOWSUP" resume "$run" "$@" --rerun-in-flight 2>"$T/resume.err")
		rc=$?
	fi
	if [ $rc -ne 0 ] || [ -z "$new" ]; then
		wrong "resume $*: $rc: $(cat "$T/resume.err")"
		return 1
	fi
	resumes=$((resumes + 1))
	run=$new
	chain+=("$run")
}

# go_on KILLS MS: to the end of the job, through so many deaths, at most MS apart.
go_on() {
	local left=$1 again
	while :; do
		if [ "$left" -gt 0 ]; then
			left=$((left - 1))
			# One in three at once: while the run is made, or taken over.
			nap_ms "$(random_below $((RANDOM % 3 ? $2 : 80)))"
			[ $((RANDOM % 2)) = 0 ] || send_message "$((${#chain[@]})).$left.$RANDOM"
			kill_some
			[ -z "$(worker_of)" ] || continue
		fi
		wait_for_end
		check_log
		again=(--keep-failed)
		if [ "$status" != crashed ]; then
			[ "$status" != completed ] && was_late || return
			check_late
			again+=(--timeout "$([ "$left" -gt 0 ] && echo $(($(random_below "$2") + 50))ms || echo 1h)")
		fi
		[ ! -s "$T/wrong" ] || return
		resume "${again[@]}" || return
	done
}
