#!/usr/bin/env bash
# The table of checks of a resume, with checkpoints of both versions: every failure is listed at once, by
# number, operation, reason and command, and each flag lifts its own check and no other.
# shellcheck source=lib_resume.sh
. "$(dirname "$0")/lib_resume.sh"

settled() { [ "$(run_fact "$run" "done")" = 3 ]; }
checks() { # JSON: numbers of the failures
	grep -oE '"check":[0-9]+' <<<"$1" | cut -d: -f2 | sort -n | paste -sd' '
}
dry() { "$FLOWSUP" resume "$run" --dry-run --json "$@" 2>"$T/err"; }

cat >f.json <<-'END'
	{"name": "f", "plan": [
	 {"id": "made", "artifacts": ["x"], "run": "echo x >\"$FLOWSUP_ARTIFACTS/x\""},
	 {"id": "good", "needs": ["made"], "run": "true"},
	 {"id": "bad", "run": "exit 3"},
	 {"id": "pay", "idempotent": false, "run": "echo pay >>count; until [ -e go ]; do sleep 0.05; done"},
	 {"id": "named", "needs": ["pay"], "env": {"NEEDED": {"required": true}}, "run": "true"}]}
END

for format in 2 3; do
	rm -f count
	run=$(NEEDED=1 SOME_TOKEN=secret "$FLOWSUP" start f.json --checkpoint-format "$format")
	wait_until has_line pay
	wait_until settled
	kill -KILL "$(worker_pid "$run")"
	wait_until is_crashed "$run"
	power_loss "$run"
	"$FLOWSUP" supervisor stop # what it has in memory goes with the power
	dir=$FLOWSUP_HOME/runs/$run
	rm "$dir/artifacts/made/x"
	sed -i -z '/^NEEDED=/d' "$dir/environ"
	cp -a "$dir" "$T/whole.$format"
	out=$(dry)
	equal "version $format: refused" 4 $?
	equal "version $format: all at once" "3 4 7 10 12" "$(checks "$out")"
	"$FLOWSUP" resume "$run" >"$T/out" 2>"$T/said"
	equal "version $format: nothing is made" "4 " "$? $(cat "$T/out")"

	hint=$(sed -n 's/^hint: //p' "$T/said")
	check "version $format: and the one command that is named lifts all" sh -c "PATH=$BUILD/bin:$PATH; $hint --dry-run >'$T/out'" <<<1

	# ---- check, operation, reason, flag, what is left with it ----
	while IFS='|' read -r check op reason flag left; do
		matches "version $format, check $check: operation, reason, command" \
			"$reason.*$flag" "$(grep -E "${op:-SOME_TOKEN}" "$T/said")"
		[ -n "$left" ] || continue
		# shellcheck disable=SC2086
		equal "version $format, check $check: its flag lifts it, and no other" "$left" "$(checks "$(dry $flag)")"
	done <<-'END'
		3|operation bad|it failed: exit status 3; lifted by|--retry-failed|4 7 10 12
		3|operation bad|or lifted by|--keep-failed|4 7 10 12
		4|operation made|its artifact "x" is not there; lifted by|--accept-missing-artifacts|3 7 10 12
		7|operation pay|in flight when its worker ended.*idempotent: false; lifted by|--rerun-in-flight|3 4 10 12
		10|operation "named"|requires the variable NEEDED, which is not set|read -r NEEDED; export NEEDED; flowsup resume|
		12||SOME_TOKEN is not set|--without-env SOME_TOKEN|3 4 7 10
	END
	equal "version $format: the operations name their flags too" "bad retry-failed,made accept-missing-artifacts,pay rerun-in-flight" \
		"$(dry | grep -o '"id":"\(bad\|made\|pay\)"[^}]*' | sed -E 's/"id":"([a-z]+)".*"lifted_by":"([a-z-]+)".*/\1 \2/' | sort | paste -sd,)"
	equal "version $format: flags of what did not happen lift nothing" "3 4 7 10 12" \
		"$(checks "$(dry --allow-degraded-context --drop-respawned --rerun-changed)")"
	equal "version $format: what is set here is taken from here" "3 4 7" \
		"$(checks "$(NEEDED=1 SOME_TOKEN=x dry)")"
	out=$(NEEDED=1 dry --keep-failed --accept-missing-artifacts --rerun-in-flight --without-env SOME_TOKEN)
	equal "version $format: together they lift all" "0 " "$? $(checks "$out")"

	# ---- A checkpoint that cannot be trusted ----
	truncate -s -5 "$dir/checkpoint.json"
	out=$(dry --retry-failed --accept-missing-artifacts --rerun-in-flight --without-env SOME_TOKEN)
	equal "version $format: a torn one is refused" 4 $?
	matches "version $format: by the first check, whatever is given" "^1( |$)" "$(checks "$out")"
	rm -rf "$dir" && mv "$T/whole.$format" "$dir"
	touch go
	new=$(NEEDED=1 "$FLOWSUP" resume "$run" --keep-failed --accept-missing-artifacts --rerun-in-flight \
		--without-env SOME_TOKEN --wait 2>"$T/err")
	equal "version $format: and goes on to its end" "1 failed" "$? $(run_status "$new")"
	rm go
done

# ---- Digests that are null were not recorded ----
run=$("$FLOWSUP" start --wait - 2>/dev/null <<'Y'
plan: [{id: a, run: echo one}, {id: b, needs: [a], run: exit 1}]
Y
)
run=${run%%[[:space:]]*}
sed -i 's/"result_digest":"[^"]*"/"result_digest":null/g' "$FLOWSUP_HOME/runs/$run"/checkpoint.json*
check "null is nothing to be compared with, for verify" "$FLOWSUP" checkpoint verify "$run"
check "and for a resume" "$FLOWSUP" resume "$run" --retry-failed --dry-run
# ---- Check 10: what this environment lacks ----
mkdir here bin
printf '#!/bin/sh\necho prog >>"%s/ran"\nexit 1\n' "$T" >bin/prog
chmod +x bin/prog
printf '%s\n' 'plan:' '  - {id: b, exec: [prog]}' '  - {id: c, needs: [b], exec: [made.later]}' >lacks.yaml
run=$(cd here && PATH=$PATH:$T/w/bin "$FLOWSUP" start ../lacks.yaml --wait 2>"$T/err")
runs=$("$FLOWSUP" list --json | wc -l)
mv bin/prog away
out=$(dry --retry-failed)
equal "a program that is not there is 78" "78 10" "$? $(checks "$out")"
matches "and is named" '"op":"b","message":"cannot execute \\"prog\\"' "$out"
rmdir here
out=$("$FLOWSUP" resume "$run" --retry-failed 2>&1)
equal "so is the directory that the run was started in" 78 $?
matches "both are said" "started in '$T/w/here': No such file.*operation b: cannot execute \"prog\"" "$out"
matches "and how to go on" "hint: mkdir -p $T/w/here; flowsup resume $run --retry-failed   # once prog can be used" "$out"
dry >"$T/out"
equal "beside what nobody has allowed it is refused" 4 $?
out=$("$FLOWSUP" fork "$run" --from b 2>&1)
equal "a fork looks for the same" 78 $?
matches "and says so" "cannot be forked here: 2 reasons" "$out"
equal "nothing was made" "$runs" "$("$FLOWSUP" list --json | wc -l)"
mkdir here
mv away bin/prog
out=$("$FLOWSUP" resume "$run" --retry-failed --wait 2>&1)
equal "with both it goes on, whatever others may make" "1 2" "$? $(wc -l <"$T/ran")"
printf 'plan: [{id: a, cwd: "%s", run: "exit 1"}]\n' "$T" >lacks.yaml
run=$(cd here && "$FLOWSUP" start ../lacks.yaml --wait 2>"$T/err")
rmdir here
check "who has a directory of its own needs no other" dry --retry-failed
plan
