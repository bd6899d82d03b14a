#!/usr/bin/env bash
# What flowsup-checkpoint(5) lists is what the sources hold, and the tests that its promises name are
# run and look at each reason that a report can have. TAP.
cd "$(dirname "$0")/../.." || exit 1
page=man/flowsup-checkpoint.5
work=$(mktemp -d "${TMPDIR:-/tmp}/flowsup-man-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
n=0
failed=0
result() { # STATUS NAME
	n=$((n + 1))
	[ "$1" = 0 ] && { echo "ok $n - $2"; return; }
	echo "not ok $n - $2"
	failed=1
}
same() { # NAME FILE-OF-THE-PAGE FILE-OF-THE-SOURCES
	diff "$2" "$3" | sed 's/^/# /'
	cmp -s "$2" "$3" && [ -s "$2" ]
	result $? "$1"
}
words() { grep -oE '\b[a-z][a-z0-9_]*\b' | LC_ALL=C sort -u; }
listed() { # FROM TO: the words of literal lines between two lines of the page
	sed -n "/$1/,/$2/{s/^\.Pq Li //p;s/^\.Li //p;}" "$page" | grep -v '^{' | words
}

# ---- Reasons ----

listed '^Reasons of a recovered' '^Of these:' >"$work/page"
{
	# Of statements that refuse or report, the texts that are reasons, and not names of members or messages.
	grep -ohzE '\<(refuse|report_reason|fields_check|strlcpy)\([^;]*;' shared/checkpoint/*.c supervisor/seek.c |
		tr '\0\n\t' '   ' | tr ';' '\n' | sed -E 's/json_(get|set)\([^)]*\)//g' |
		grep -oE '"[a-z]+(_[a-z]+)+"|"incoherent"' | tr -d '"' | grep -vE '^(dep_indices|agent_id|journal_seq)$'
	sed -n '/JSON_FAULT_[A-Z0-9_]*\] = {"/s/.*{"\([a-z0-9_]*\)".*/\1/p' shared/json/reader.c |
		grep -vE '^(none|too_many|out_of_memory)$' # no answers of the loader
} | LC_ALL=C sort -u >"$work/sources"
same "reasons of reports" "$work/page" "$work/sources"

missing=
while read -r reason; do
	grep -rqw --include='*.c' --include='*.sh' "$reason" tests/conformance tests/process tests/unit || missing="$missing $reason"
done <"$work/page"
[ -z "$missing" ] || echo "# no test has:$missing"
[ -z "$missing" ]
result $? "each of them has a test"

missing=
for reason in missing_identity misplaced_entry foreign_identity unknown_output bad_path unguarded_splice; do
	sed -n '/^Of these:/,/^\.Ss Digests/p' "$page" | grep -qx "\.It Li $reason" || missing="$missing $reason"
done
[ -z "$missing" ] || echo "# no condition for:$missing"
[ -z "$missing" ]
result $? "those that their names do not explain have their condition"

# ---- Members ----

sed -n '/^static const struct field plan_fields/,/^};/s/^\t{"\([a-z_]*\)".*/\1/p' shared/checkpoint/base.c |
	LC_ALL=C sort >"$work/sources"
listed '^An element of' '^Any other member refuses' | grep -vx plan >"$work/page"
same "members of a plan entry" "$work/page" "$work/sources"

sed -n 's/.*json_set(o, "\([a-z_]*\)".*/\1/p' shared/checkpoint/report.c | LC_ALL=C sort >"$work/sources"
listed '^Every loader gives' '^Numbers are integers' | grep -vxE 'checkpoint_recovery|clean|no|recovered_prefix|refused' >"$work/page"
same "members of a report" "$work/page" "$work/sources"

# Of config what is written beside the keys of the document.
{
	grep -ohE 'json_set\((config|json_ref\(config\)|json_ref\(json_get\([^()]*, "config"\)\)), *("[a-z_0-9]+"|C[A-Z]+_[A-Z0-9_]+)' \
		worker/begin.c supervisor/*.c shared/checkpoint/*.c | sed 's/.*, *//' | while read -r name; do
		case $name in
		\"*) printf '%s\n' "$name" ;;
		*) sed -n -E "s/^#define $name +(\"[a-z_0-9]+\").*/\1/p" include/flowsup/*.h ;;
		esac
	done | tr -d '"' | grep -vxE 'roles|timeout' # keys of the document, by another name or time
} | LC_ALL=C sort -u >"$work/sources"
sed -n 's/^\.It Li config\.//p' "$page" | LC_ALL=C sort >"$work/page"
same "members of config" "$work/page" "$work/sources"

# ---- Promises ----

missing=
for path in $(sed -n '/^\.Sh PROMISES/,/^\.Sh SEE/s/^\.Pa //p' "$page" | tr -d ','); do
	case $path in
	# All that are there are built and run.
	tests/process/*.sh | tests/fuzz/fuzz_*.c | tests/unit/test_*.c | tests/conformance/test_*.c | tests/fault/test_*.c)
		[ -e "$path" ] || missing="$missing $path" ;;
	tests/bench/*) name=$(basename "$path" .c) && grep -qw "${name#bench_}" tests/bench/run || missing="$missing $path" ;;
	*) missing="$missing $path" ;;
	esac
done
[ -z "$missing" ] || echo "# nothing runs:$missing"
[ -z "$missing" ]
result $? "the tests of each promise are run"
promises=$(sed -n '/^\.Sh PROMISES/,/^\.Sh SEE/p' "$page")
[ "$(grep -c '^\.It ' <<<"$promises")" -gt 10 ] && [ "$(grep -c '^\.It ' <<<"$promises")" = "$(grep -c '^\.Pa ' <<<"$promises")" ]
result $? "each promise names its tests"
echo "1..$n"
exit $failed
