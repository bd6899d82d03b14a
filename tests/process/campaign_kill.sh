#!/usr/bin/env bash
# Random flows of 30 operations whose worker is killed at a random instant and which are then
# resumed: every resume ends completed; what had been saved ran once; what was in flight is taken
# over, or, where its end came to nobody, ran once more when it was over; everything ran.
#
# CAMPAIGN_ROUNDS rounds (20 in check); CAMPAIGN_SEED repeats one campaign.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

rounds=${CAMPAIGN_ROUNDS:-20}
seed=${CAMPAIGN_SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
echo "# CAMPAIGN_SEED=$seed CAMPAIGN_ROUNDS=$rounds"
operations=30

flow() { # seed: prints a document; every operation appends its name to $RUNLOG when it starts
	perl -e '
		my ($seed, $n) = @ARGV;
		srand($seed);
		print "name: campaign\nconcurrency: ", 1 + int(rand(8)), "\nplan:\n";
		for my $i (0 .. $n - 1) {
			my %needs = map { int(rand($i)) => 1 } 1 .. int(rand($i < 3 ? $i : 3)) if $i;
			printf "  - id: op%d\n", $i;
			printf "    needs: [%s]\n", join(", ", map { "op$_" } sort { $a <=> $b } keys %needs) if %needs;
			printf "    run: echo op%d >> \"\$RUNLOG\"; sleep 0.%03d; echo result of op%d; echo end op%d >> \"\$RUNLOG\"\n", $i, int(rand(60)), $i, $i;
		}' "$1" "$operations"
}

run_is_terminal() {
	case $(run_status "$1") in
	completed | failed | crashed | cancelled | timed_out) ;;
	*) return 1 ;;
	esac
}

saved() { # run id: the operations whose outcome a new process finds in the checkpoint
	"$FLOWSUP" show "$1" --json | perl -MJSON::PP -e '
		local $/; my $run = decode_json(<STDIN>);
		print "$_->{id}\n" for grep { $_->{saved} } @{$run->{ops}};'
}

verdict() { # log, file with what was saved: prints what is wrong, nothing when all is well
	awk -v n="$operations" -v savedfile="$2" '
		$1 == "end" { if (!runs[$2]--) print $2 " ended without a start"; next }
		{ if (runs[$1]++) print $1 " ran beside itself"; count[$1]++ }
		END {
			while ((getline op < savedfile) > 0) saved[op] = 1
			for (i = 0; i < n; i++) {
				op = "op" i
				if (!count[op]) print op " never ran"
				else if (saved[op] && count[op] != 1) print op " was saved and ran " count[op] " times"
				else if (count[op] > 2) print op " ran " count[op] " times"
			}
		}' "$1"
}

crashes=0
for round in $(seq "$rounds"); do
	RUNLOG=$T/log.$round
	export RUNLOG
	: >"$RUNLOG"
	flow $((seed + round)) >"$T/flow.yaml"
	run=$("$FLOWSUP" start "$T/flow.yaml") || { not_ok "round $round: start"; continue; }
	# The instant is part of what is tried: anywhere from before the first operation to after the last.
	sleep "$(perl -e 'srand($ARGV[0]); printf "%.3f", rand(1.1)' $((seed + round)))"
	worker=$(worker_pid "$run")
	[ -z "$worker" ] || kill -9 "$worker" 2>/dev/null
	wait_until run_is_terminal "$run"
	status=$(run_status "$run")
	saved "$run" >"$T/saved"
	final=$run
	if [ "$status" = crashed ]; then
		crashes=$((crashes + 1))
		final=$("$FLOWSUP" resume "$run" --wait 2>"$T/resume.err") || {
			sed 's/^/# /' "$T/resume.err"
			not_ok "round $round: resume of $run"
			continue
		}
	fi
	status=$(run_status "$final")
	wrong=$(verdict "$RUNLOG" "$T/saved")
	if [ "$status" = completed ] && [ -z "$wrong" ]; then
		ok "round $round: $(wc -l <"$T/saved") saved before the end, all $operations done"
	else
		printf '%s\n' "$wrong" | sed 's/^/# /'
		not_ok "round $round (seed $((seed + round))): run $final is $status"
	fi
done
echo "# the worker was killed in $crashes of $rounds rounds"
plan
