#!/usr/bin/env bash
# What an operation says in its first moment is heard, also when its keeper has not yet said that it
# runs. The two race; many tries, of which each may lose.
. "$(dirname "$0")/lib_grow.sh"

refused=0
for round in 1 2 3 4 5 6; do
	run_flow -j 16 <<'Y'
roles: {agent: {provider: robot}}
plan:
  - {id: a, assignee: agent, foreach: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16], instruction: 'exec flowsup emit progress 0.5'}
Y
	[ "$(run_status "$RUN")" = completed ] || refused=$((refused + 1))
done
equal "in ninety-six starts nothing is refused" 0 "$refused"
plan
