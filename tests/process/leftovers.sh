#!/usr/bin/env bash
# What operations leave in other sessions is counted, also where it is found after their end.
. "$(dirname "$0")/lib_grow.sh"

run_flow -j 8 <<'Y'
plan:
  - id: each
    foreach: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]
    run: |
      (setsid sh -c 'echo >"$T/there.$FLOWSUP_OP_ID"; exec sleep 1000' &)
      until [ -s "$T/there.$FLOWSUP_OP_ID" ]; do :; done
Y
equal "the run completes" completed "$(run_status "$RUN")"
equal "and each has left one process" "20 1" "$("$FLOWSUP" show "$RUN" --json | grep -o '"leftovers":[0-9]*' | sort | uniq -c | tr -d 'a-z":' | tr -s ' ' | sed 's/^ //')"
plan
