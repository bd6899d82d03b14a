#!/usr/bin/env bash
# Manual pages refer only to pages of flowsup, and to tests, that exist. TAP.
cd "$(dirname "$0")/../../man" || exit 1
failed=0
verdict() { # NUMBER NAME WHAT-IS-MISSING
	[ -z "$3" ] && { echo "ok $1 - $2"; return; }
	echo "not ok $1 - $2"
	echo "# missing: $3"
	failed=1
}
echo 1..2
verdict 1 "references lead to pages" "$(grep -ohE '^\.Xr flowsup[a-z-]* [0-9]' ./*.[0-9] | sort -u |
	while read -r _ name section; do
		[ -e "$name.$section" ] || echo "$name($section)"
	done)"
verdict 2 "tests that are named exist" "$(grep -ohE '\btests/[a-z]+/[a-z_0-9]+\.(c|sh)\b' ./*.[0-9] | sort -u |
	while read -r path; do
		[ -e "../$path" ] || echo "$path"
	done)"
exit $failed
