#!/usr/bin/env bash
# Each fuzz target for a few seconds from its corpus: a finding here fails the check.
# FUZZ_SECONDS sets how long each one runs.
cd "$(dirname "$0")/../.." || exit 1
build=${FLOWSUP_BUILD:-build}
seconds=${FUZZ_SECONDS:-10}
export LSAN_OPTIONS=suppressions=$PWD/tests/fuzz/lsan.supp:print_suppressions=0
targets=()
for source in tests/fuzz/fuzz_*.c; do
	[ -e "$source" ] && targets+=("$(basename "$source" .c)")
done
echo "1..$((${#targets[@]} + 1))"
if ! make BUILD="$build" fuzz-build >"$build/fuzz-build.log" 2>&1; then
	tail -30 "$build/fuzz-build.log" | sed 's/^/# /'
	echo "not ok 1 - fuzz targets build"
	exit 1
fi
echo "ok 1 - fuzz targets build"
n=1
status=0
for target in "${targets[@]}"; do
	n=$((n + 1))
	work=$build/fuzzing/work/$target
	mkdir -p "$work"
	arguments=(-max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1)
	[ ! -e "tests/fuzz/$target.dict" ] || arguments+=("-dict=tests/fuzz/$target.dict")
	[ ! -d "tests/fuzz/corpus/$target" ] || arguments+=("tests/fuzz/corpus/$target")
	# New inputs go to the first folder named: below the build tree, never into the sources.
	if "$build/fuzzing/fuzz/$target" "$work" "${arguments[@]}" \
		-artifact_prefix="$work/" >"$work.log" 2>&1; then
		echo "ok $n - $target: $(grep -o 'number_of_executed_units: [0-9]*' "$work.log")"
	else
		tail -40 "$work.log" | sed 's/^/# /'
		echo "not ok $n - $target"
		status=1
	fi
done
exit $status
