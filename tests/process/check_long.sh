#!/usr/bin/env bash
# check shows the beginning of long names and texts, never all of them.
. "$(dirname "$0")/lib.sh"
mkdir "$T/work" && cd "$T/work" || exit 1
export LC_ALL=C.UTF-8

long() { printf "%$1s" "" | tr ' ' "$2"; }
printf 'name: %s\nplan:\n  - {id: long, run: "echo %s"}\n  - {id: short, run: "echo b"}\n' \
	"$(long 5000 n)" "$(long 5000 a)" >long.yaml
out=$("$FLOWSUP" check long.yaml)
equal "it is checked" 0 $?
equal "no line is much longer than 200 characters" "" "$(awk 'length > 260' <<<"$out")"
matches "the name is cut" "^$(long 199 n)…: 2 operations" "$out"
matches "so is what an operation runs" "long +echo $(long 194 a)…" "$out"
matches "what is short is whole" "short +echo b" "$out"
matches "for programs nothing is cut" "$(long 5000 n)" "$("$FLOWSUP" check --json long.yaml)"

plan
