# shellcheck shell=bash
# What an outcome names is on disk before the outcome is recorded: the output that a response does not
# hold, and artifacts, each with the directories that lead to it. Not with --durability=relaxed, and no
# call is made for an output that its response holds.
. "$(dirname "$0")/lib.sh"

if ! strace -o /dev/null true 2>/dev/null; then
	skip "system calls are looked at: strace does not work here"
	plan
fi

cat >"$T/flow.yaml" <<-'END'
	name: saved
	roles:
	  maker: {provider: sh, artifacts: [report, deep/er]}
	plan:
	- {id: small, run: "echo small"}
	- {id: spaced, response: json, run: "echo '{ \"a\" : 1 }'"}
	- {id: quiet, response: none, run: "echo log"}
	- {id: large, run: "head -c 2000000 /dev/zero | tr '\\0' x"}
	- {id: made, assignee: maker, instruction: 'cd "$FLOWSUP_ARTIFACTS"; mkdir -p deep; echo x >report; echo y >deep/er'}
END

# (A search for leaks cannot stop a process that is traced already.)
run_traced() { # OPTION...
	ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 strace -f -y -s 60000 -e trace=fsync,fdatasync,write,pwrite64,writev,pwritev -o "$T/calls" \
		"$FLOWSUP" start --foreground "$@" "$T/flow.yaml" >"$T/out" 2>"$T/err"
}
# Threads are cut into each other's lines: what a call returned does not matter here.
sync_of() { grep -nE "(fsync|fdatasync)\\([0-9]+<[^>]*/$1>" "$T/calls" | head -n 1 | cut -d: -f1; }
record_of() { grep -nE "checkpoint.json.journal>.*$1" "$T/calls" | head -n 1 | cut -d: -f1; }
before() { # FILE OPERATION
	local synced recorded
	synced=$(sync_of "$1")
	recorded=$(record_of "$2")
	[ -n "$synced" ] && [ -n "$recorded" ] && [ "$synced" -lt "$recorded" ]
}

run_traced
equal "the run completes" 0 $?
check "a response in a file" before 'ops/large\.1\.out' 'agent_id..:..large'
check "an output that its response says in other bytes" before 'ops/spaced\.1\.out' 'agent_id..:..spaced'
check "one that is no response" before 'ops/quiet\.1\.out' 'agent_id..:..quiet'
check "an artifact" before 'artifacts/made/report' 'agent_id..:..made'
check "one further down" before 'artifacts/made/deep/er' 'agent_id..:..made'
check "its directory" before 'artifacts/made/deep' 'agent_id..:..made'
check "that of the operation" before 'artifacts/made' 'agent_id..:..made'
equal "what its response holds costs nothing" "" "$(sync_of 'ops/small\.1\.out')"

run_traced --durability=relaxed
equal "the run completes" 0 $?
equal "nothing is waited for where that was given up" "" "$(sync_of 'ops/.*\.out')$(sync_of 'artifacts/made/.*')"
plan
