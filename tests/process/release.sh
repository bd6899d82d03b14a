#!/usr/bin/env bash
# The project's own release, from a copy of its tree: its worker is killed while both compilers build,
# the run is resumed, and everything was done once.
# shellcheck source=tests/process/lib.sh
. "$(dirname "$0")/lib.sh"
LIMIT=1500 # two builds
export PATH=$BUILD/bin:$PATH

mkdir "$T/tree" && cd "$T/tree" || exit 1
(cd "$ROOT" && tar -cf - --exclude=./build --exclude=./.git .) | tar -xf -
times() { grep -c "\"kind\":\"start\",\"op\":\"$1\"" "$FLOWSUP_HOME/runs/$first/attempts.log"; }
builds() { [ "$(times build-gcc)" -eq 1 ] && [ "$(times build-clang)" -eq 1 ]; }
ended() { [[ $(run_status "$run") =~ ^(completed|failed|crashed)$ ]]; }

# Nothing is left to make for this: the unit tests have a run of their own.
first=$(flowsup start examples/release.yaml --arg check=programs) run=$first
check "both builds run" wait_until builds
# What is not saved yet when the worker dies may run again: the short ones are over first.
saved() { [ "$(flowsup show "$run" --json | grep -oE '"id":"(manuals|checksums)"[^{}]*"state":"completed"[^{}]*"saved":true' | wc -l)" -eq 2 ]; }
wait_until saved
wait_until worker_is_ready "$run"
kill -KILL "$(worker_pid "$run")"
check "the death is seen" wait_until status_is "$run" crashed
matches "list says how to go on" "flowsup resume" "$(flowsup list)"
run=$(flowsup resume "$first")
check "the resumed run ends" wait_until ended
equal "well" completed "$(run_status "$run")"
# A run that takes one over writes down its process once more.
starts() {
	cat "$FLOWSUP_HOME/runs/$first/attempts.log" "$FLOWSUP_HOME/runs/$run/attempts.log" |
		sed -nE 's/.*"kind":"start","op":"([^"]*)",.*"pid":([0-9]+),.*/\1 \2/p' | sort -u
}
equal "each operation was started once" "7 7" "$(starts | wc -l) $(starts | cut -d' ' -f1 | sort -u | wc -l)"
summary=$(flowsup logs "$run" summary)
matches "the summary has both builds" "built by gcc.*flowsup [0-9.]+.*built by .*clang.*flowsup [0-9.]+" "$(tr '\n' ' ' <<<"$summary")"
matches "and the checksum of the tarball" "[0-9a-f]{64}  flowsup\.tar\.gz" "$summary"
plan
