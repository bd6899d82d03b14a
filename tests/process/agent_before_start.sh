#!/usr/bin/env bash
# What is asked of an agent's program before it is started: its version, and the id of a new conversation. It holds
# up nobody else, ends with the attempt's limit and with a stop, and is said where it takes long.
. "$(dirname "$0")/lib_agent.sh"
mkdir -p "$T/config/flowsup/providers"
cat >"$BIN/asked" <<'END_OF_PROGRAM'
#!/bin/sh
name=$1
case $2 in
version | mint) echo $$ >>"$T/$name.$2"; until [ -e "$T/$name.go" ]; do sleep 0.05; done; echo "$name-1"; exit ;;
long) head -c 600 /dev/zero | tr '\0' x; exit ;;
fast) echo 1; exit ;;
bad) exit 3 ;;
esac
echo "$name answers"
END_OF_PROGRAM
chmod +x "$BIN/asked"
export T
# asked NAME KEYS CONVERSATION: a provider with further keys and a way to get an id.
asked() {
	cp "$BIN/asked" "$BIN/$1"
	printf '{"provider":1,"name":"%s","verified":null,"reads_user_settings":false,"prompt":"stdin",%s
		"start":{"new":["%s","%s","{sid}"],"resume":["%s","%s","{old}"]},"conversation":{%s},
		"exit_0_reliable":true,"output":{"format":"text"}}' "$1" "$2" "$1" "$1" "$1" "$1" "$3" \
		>"$T/config/flowsup/providers/$1.json"
}
minted() { asked "$1" '' "\"id\":\"command\",\"mint\":[\"$1\",\"$1\",\"$2\"]"; }
asked slow '"version":["slow","slow","version"],' '"id":"minted"'
asked quick '"version":["quick","quick","fast"],' '"id":"minted"'
minted waits mint
minted long long
minted bad bad
# of PROVIDER [KEYS]: the line of an operation of that name.
of() { printf '  - {id: %s, assignee: %s, instruction: x%s}\n' "$1" "$1" "${2:-}"; }
# begin LINES...: starts a flow of them.
begin() {
	printf '%s\n' 'name: before' 'concurrency: 4' 'defaults: {grace: 500ms}' 'roles:' >"$T/flow.yaml"
	for p in slow quick waits long bad; do printf '  %s: {provider: %s}\n' $p $p; done >>"$T/flow.yaml"
	printf '%s\n' 'plan:' "$@" >>"$T/flow.yaml"
	RUN=$("$FLOWSUP" start "$T/flow.yaml")
}
why() { "$FLOWSUP" show "$RUN" --json | grep -oE "\"id\":\"$1\",\"state\".*" | grep -oE '"why":"[^"]*"' | head -1; }
has() { [ -s "$T/$1" ]; }

# ---- A version that takes long ----
begin "$(of slow)" "$(of quick)"
"$FLOWSUP" watch "$RUN" >"$T/watched" 2>&1 &
settled() { event NodeCompleted "$1"; }
check "its version is asked for" wait_until has slow.version
check "another provider's agent does not wait for that" wait_until settled quick
check "its own does" [ ! -e "$(run_dir)/ops/slow.1.out" ]
matches_soon "and says so" '"why":"waits for the version of its program"' why slow
check "also to who watches" wait_until grep -q 'slow waits for the version of its program' "$T/watched"
"$FLOWSUP" stop "$RUN"
check "a stop does not wait for it" wait_until ended
equal "and has cancelled the run" cancelled "$(run_status "$RUN")"
check "the command has ended" wait_until gone "$(head -1 "$T/slow.version")"

# ---- An id that takes long ----
begin "$(of waits)"
check "an id is asked for" wait_until has waits.mint
matches_soon "what waits for it says so" '"why":"waits for the id of its conversation"' why waits
"$FLOWSUP" stop --now "$RUN"
check "a stop does not wait for the id" wait_until ended
equal "and has cancelled that run, too" cancelled "$(run_status "$RUN")"
check "that command has ended" wait_until gone "$(head -1 "$T/waits.mint")"
rm "$T/waits.mint"
begin "$(of waits ', timeout: 1s')"
check "the limit of an attempt ends it" wait_until ended
matches "as what it is" '"class":"timeout","message":".*ran longer than 1s, in ..waits.., which was to give an id' "$(entry waits)"
took=$("$FLOWSUP" show "$RUN" --json | python3 -c 'import json, sys; o = json.load(sys.stdin)["ops"][0]; print(o["ended_at"] > o["started_at"], o["why"])')
matches "with the time that it took, and its class" "^True timeout: ran longer than 1s" "$took"
check "and its command" wait_until gone "$(head -1 "$T/waits.mint")"
: >"$T/waits.go"
begin "$(of waits ', timeout: 1h')"
check "an id that comes is used" wait_until ended
matches "as it is" '"response":"waits answers..?".*"id":"waits-1"' "$(entry waits)"

# ---- No id ----
begin "$(of long)" "$(of bad)"
check "without an id a flow fails" wait_until ended
matches "one that is too long is not cut" '"class":"spawn","message":".*gave an id for its conversation of more than 512 bytes"' "$(entry long)"
matches "how the command failed is said" '"class":"spawn","message":".*which was to give an id for its conversation, failed with exit status 3"' "$(entry bad)"
plan
