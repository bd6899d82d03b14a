#!/usr/bin/env bash
# Compares the keys that a provider's file may have with man/flowsup-provider.5, and reads its
# example. TAP.
set -u
cd "$(dirname "$0")/../.." || exit 1
flowsup=$(realpath "${FLOWSUP_BUILD:-build}/bin/flowsup") || exit 1
work=$(mktemp -d "${TMPDIR:-/tmp}/flowsup-man-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
n=0
result() { # ok? text
	n=$((n + 1))
	if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi
}

missing=
for key in $(sed -nE 's/^    \{"([a-z_0-9]+)", read_.*/\1/p' shared/flow/provider_read.c | sort -u); do
	grep -qE "^\.(It )?Ic (.* )?$key( |\$|,)|Ic $key\b" man/flowsup-provider.5 || missing="$missing $key"
done
[ -z "$missing" ]
result $? "every key stands in the manual$missing"

missing=
for place in $(sed -nE 's/^\tX\(PLACE_[A-Z0-9]+, "([a-z0-9]+)"\).*/\1/p' include/flowsup/provider.h); do
	grep -qF "It Li {$place}" man/flowsup-provider.5 || missing="$missing $place"
done
[ -z "$missing" ]
result $? "every place stands in the manual$missing"

mkdir -p "$work/flowsup/providers"
sed -n '/^\.Bd -literal/,/^\.Ed/p' man/flowsup-provider.5 | sed '1d;$d' >"$work/flowsup/providers/ask.json"
printf '%s\n' 'roles: {r: {provider: ask}}' 'plan: [{id: a, assignee: r, instruction: hello}]' >"$work/flow.yaml"
printf '#!/bin/sh\n' >"$work/ask" && chmod +x "$work/ask"
PATH=$work:$PATH XDG_CONFIG_HOME=$work "$flowsup" check "$work/flow.yaml" >"$work/out" 2>&1
status=$?
sed 's/^/# /' "$work/out"
result $status "its example is a provider"
echo "1..$n"
[ -z "$missing" ] && [ $status = 0 ]
