#!/usr/bin/env bash
# doctor lists providers: installed, not installed, broken, deaf.
. "$(dirname "$0")/lib_agent.sh"
printf '#!/bin/sh\nexit 1\n' >"$BIN/codex"
printf '#!/bin/sh\nexec yes\n' >"$BIN/opencode"
chmod +x "$BIN/codex" "$BIN/opencode"
own_provider -n ''
mkdir -p "$T/config/flowsup/providers"
rm "$T/config/flowsup/providers/claude.json"
sed -e 's/"name": "goose"/"nam": "goose"/' "$ROOT/examples/providers/goose.json" >"$T/config/flowsup/providers/goose.json"
cp "$ROOT/examples/providers/aider.json" "$T/config/flowsup/providers/"
ln -s nowhere "$T/config/flowsup/providers/away.json"
export PATH=$BIN:/usr/bin:/bin
out=$("$FLOWSUP" doctor 2>&1)
matches "an installed one, with its version" "ok +provider +claude: 9.9.9 \(fake\) \($BIN/claude\)" "$out"
matches "one that fails, and how" "warning +provider +codex: says no version, exit status 1 \($BIN/codex\)" "$out"
matches "with the command that was to print it" $'codex[)]\n +hint: codex --version' "$out"
matches "one without an end is stopped, and what it says in memory has one" \
	"warning +provider +opencode: says no version, it was ended by SIGXFSZ" "$out"
matches "one whose file is a link to nothing" 'warning +provider +away: cannot open .*/away.json.: No such file' "$out"
matches "one that is not there" 'note +provider +aider: not installed, unverified' "$out"
matches "a broken file, with its place" 'warning +provider +goose: [^ ]*/goose.json:3:3: a provider has no key "nam"' "$out"
matches "and the nearest key" '; did you mean "name"' "$out"
matches "the same as JSON" '"check":"provider","state":"ok","text":"claude: 9.9.9' "$("$FLOWSUP" doctor --json 2>&1)"

# ---- A link that leads nowhere is not passed over ----
ln -s nowhere "$T/config/flowsup/providers/claude.json"
flow '  - {id: a, assignee: agent, instruction: ok}'
matches "the shipped file is not taken instead" "role \"agent\": cannot open '$T/config/flowsup/providers/claude.json': No such file" "$("$FLOWSUP" check "$T/flow.yaml" 2>&1)"
plan
