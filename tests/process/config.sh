#!/usr/bin/env bash
# config.yaml: what is printed of it, what is wrong with it, and what it changes.
. "$(dirname "$0")/lib.sh"
export XDG_CONFIG_HOME=$T/config T
mkdir -p "$T/config/flowsup"
config() { printf '%s\n' "$@" >"$T/config/flowsup/config.yaml"; }
wait_for() { "$FLOWSUP" wait "$1" >/dev/null 2>&1; }
launched() { cat "$FLOWSUP_HOME/runs/$1/launch.json"; }

said=$("$FLOWSUP" config)
matches "without a file the defaults are printed" 'config.yaml \(not there' "$said"
matches "all of them" 'keep: \{"days":30,"runs":1000,"failed_days":90\}.*secrets: withhold.*inline_limit: 1048576.*durability: full' \
	"$(tr '\n' ' ' <<<"$said")"
"$FLOWSUP" config >"$T/printed"
cp "$T/printed" "$T/config/flowsup/config.yaml"
equal "what is printed can be the file" "$(tail -n +2 "$T/printed")" "$("$FLOWSUP" config | tail -n +2)"

config
equal "one with nothing in it is as none" "$(tail -n +2 "$T/printed")" "$("$FLOWSUP" config | tail -n +2)"
config '# keep: {days: 5}'
equal "so is one of comments alone" "$(tail -n +2 "$T/printed")" "$("$FLOWSUP" config | tail -n +2)"
rm "$T/config/flowsup/config.yaml"
"$FLOWSUP" config >"$T/config/flowsup/config.yaml"
equal "it can be made by being printed into" "$(tail -n +2 "$T/printed")" "$("$FLOWSUP" config | tail -n +2)"

config 'keep: {days: 5}' 'notify: [sh, -c, "cat >>$T/told"]' 'durability: relaxed' 'inline_limit: 1k' \
	'watchdog: 5m' 'secrets: store'
matches "what the file says is printed" '"keep":\{"days":5,"runs":1000,"failed_days":90\}.*"inline_limit":1024.*"watchdog":"5m' \
	"$("$FLOWSUP" config --json)"
export MY_TOKEN=hidden
run=$("$FLOWSUP" start -- sh -c 'seq 1000; exit 3')
wait_for "$run"
matches "durability and limit are taken" '"durability":"relaxed","inline_limit":1024' "$(launched "$run")"
matches "a long response is kept as a file" '"response":\{"file":"ops/sh.1.out"' \
	"$(cat "$FLOWSUP_HOME/runs/$run/checkpoint.json.journal" "$FLOWSUP_HOME/runs/$run/checkpoint.json")"
matches "watchdog and notify stand in the document" '"notify":\[.*"watchdog":"300' "$(cat "$FLOWSUP_HOME/runs/$run/flow.json")"
check "it is notified" wait_until grep -q failed "$T/told"
matches "secrets are stored" 'MY_TOKEN=hidden' "$(tr '\0' '\n' <"$FLOWSUP_HOME/runs/$run/environ")"
run=$(echo '{"notify":["true"],"watchdog":"1h","plan":[{"id":"a","run":"exit 0"}]}' | "$FLOWSUP" start - --durability full)
wait_for "$run"
matches "the document comes first" '"notify":\["true"\],"watchdog":"1h"' "$(cat "$FLOWSUP_HOME/runs/$run/flow.json")"
matches "and the command line" '"durability":"full"' "$(launched "$run")"

config 'keep: {days: 0, runs: 1, failed_days: 0}'
run=$("$FLOWSUP" start -- sh -c 'exit 0')
wait_for "$run"
check "without secrets: store they are withheld" \
	sh -c "! grep -q MY_TOKEN=hidden '$FLOWSUP_HOME/runs/$run/environ'"
equal "gc keeps what it says" 2 "$("$FLOWSUP" gc --dry-run 2>/dev/null | wc -l)"

config 'kepp: 5'
said=$("$FLOWSUP" config 2>&1)
equal "an unknown key is refused" 2 $?
matches "with place and nearest" 'config.yaml:1:1: the configuration has no key "kepp".*did you mean "keep"' "$(tr '\n' ' ' <<<"$said")"
config 'keep: {days: -1}'
matches "so is a wrong value" 'config.yaml:1:14: "days" must be from 0' "$("$FLOWSUP" config 2>&1)"
config 'kepp: 5' 'keep: {days: -1}' 'durability: none'
for command in "config" "gc --dry-run" "start -- true"; do
	# shellcheck disable=SC2086 # words are meant
	said=$("$FLOWSUP" $command 2>&1)
	equal "$command: all of it is told at once" "2 1:1 2:14 3:13" \
		"$? $(grep -oE 'config.yaml:[0-9]+:[0-9]+' <<<"$said" | cut -d: -f2- | paste -sd ' ')"
	matches "$command: and how much it is" 'config.yaml: 3 problems' "$said"
done
equal "and by doctor" 3 "$("$FLOWSUP" doctor --json | grep -c '"check":"config","state":"broken"')"
config 'keep: {days: -1}'
said=$("$FLOWSUP" start -- sh -c 'exit 0' 2>&1)
matches "nothing starts by it" '^2: .*"days" must be' "$?: $said"
# ---- doctor reads all of it ----
doctor() { "$FLOWSUP" doctor --json | grep "\"check\":\"$1\""; }
places=$T/config/flowsup
rm -f "$places/config.yaml"
matches "without a file doctor says that the defaults hold" '"state":"ok","text":".*config.yaml is not there: the defaults hold"' \
	"$(doctor config)"
config 'kepp: 5'
mkdir -p "$places/roles" "$places/playbooks"
echo 'modle: x' >"$places/roles/critic.yaml"
echo 'plan: [{id: x, urn: y}]' >"$places/playbooks/nightly.yaml"
"$FLOWSUP" doctor >/dev/null 2>&1
equal "a key that is none is broken" 78 $?
matches "with its place" '"state":"broken","text":".*config.yaml:1:1: the configuration has no key' "$(doctor config)"
matches "so is one of a role" "\"state\":\"broken\",\"text\":\"$places/roles: role .*critic.*has no key .*modle" "$(doctor roles)"
matches "of a playbook it is a warning, with the command that says all" \
	"\"state\":\"warning\",\"text\":\".*nightly.yaml:1:16: .*\"hint\":\"flowsup check $places/playbooks/nightly.yaml\"" \
	"$(doctor playbook)"
echo 'a: [' >"$places/roles/critic.yaml"
matches "what is no document is broken" "\"state\":\"broken\",\"text\":\"$places/roles/critic.yaml:" "$(doctor roles)"
config 'keep: {days: 5}'
echo 'model: x' >"$places/roles/critic.yaml"
echo 'plan: [{id: x, run: y}]' >"$places/playbooks/nightly.yaml"
equal "good ones are counted" "ok ok ok" "$(for check in config roles playbooks; do json "$(doctor $check)" state; done | xargs)"

config 'notify: [no-such-program]'
matches "what no start can go without is broken" \
	'"state":"broken","text":".*config.yaml: notify: .*no-such-program' "$(doctor config)"
config 'keep: {days: 5}'
echo '{"plan": [{"id": "x", "run": "y"}]}' >"$places/playbooks/nightly.json"
equal "of two playbooks of one name neither can be meant: one warning" "1 warning" \
	"$(doctor playbook | grep -c .) $(json "$(doctor playbook)" state)"
matches "which names both" "nightly.json and .*nightly.yaml\".*\"hint\":\"flowsup start " "$(doctor playbook)"

plan
