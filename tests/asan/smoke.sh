#!/usr/bin/env bash
# The tests again, built with the address and undefined behaviour sanitizers.
cd "$(dirname "$0")/../.." || exit 1
build=${FLOWSUP_BUILD:-build}/asan
# `make check-asan` runs the fault and process tests so, too.
groups=(--only unit --only conformance)
echo 1..1
if ! make -j"$(nproc)" BUILD="$build" SANITIZE='-fsanitize=address,undefined -fno-sanitize-recover=all' \
	OPTIMISE='-O1 -g' HARDENING= tests >"$build.log" 2>&1; then
	tail -30 "$build.log" | sed 's/^/# /'
	echo "not ok 1 - builds with sanitizers"
	exit 1
fi
# A leak in a program that a test kills on purpose is no finding; one at a normal end is.
if scripts/run-tests --build "$build" "${groups[@]}" >"$build.log" 2>&1; then
	echo "ok 1 - $(tail -1 "$build.log") under address and undefined behaviour sanitizers"
else
	tail -60 "$build.log" | sed 's/^/# /'
	echo "not ok 1 - $(tail -1 "$build.log") under address and undefined behaviour sanitizers"
	exit 1
fi
