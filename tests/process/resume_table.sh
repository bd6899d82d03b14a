#!/usr/bin/env bash
# The table of checks of a resume, where a checkpoint itself is not as it must be, in both versions:
# each refusal has its number, its operation, its reason and the option that lifts it, which lifts it
# and nothing else; what nothing lifts is refused whatever is given.
. "$(dirname "$0")/lib_agent.sh"

cat >"$T/edit.py" <<'P'
import json, os, shutil, sys
shutil.rmtree(sys.argv[2], ignore_errors=True)
shutil.copytree(sys.argv[1], sys.argv[2])
path = sys.argv[2] + "/checkpoint.json"
d = json.load(open(path))
p, o = d["plan"], d["ops"]
c = o["a"]["conversation"]
exec(sys.argv[3])
json.dump(d, open(path, "w"))
P
ALL=(--retry-failed --rerun-in-flight --accept-missing-artifacts --allow-degraded-context --drop-respawned)
verdict() { # OPTION...: "CHECK OPERATION OPTION" of each failure, or "accepted"
	"$FLOWSUP" resume "$T/bad" --dry-run --json "$@" 2>/dev/null | python3 -c '
import json, sys
d = json.load(sys.stdin)
print(" + ".join("%s %s %s" % (f["check"], f["op"], f["flag"]) for f in d["failures"]) if not d["accepted"] else "accepted")'
}

flow '  - {id: a, assignee: agent, instruction: ok one}' \
	'  - {id: held, run: "[ -e good ]"}' \
	'  - {id: b, assignee: agent, needs: [a, held], inherit_context: a, instruction: ok two}' \
	'  - {id: c, needs: [b], run: "true"}'
for format in 2 3; do
	rm -rf "$T/good.$format"
	RUN=$("$FLOWSUP" start "$T/flow.yaml" --checkpoint-format "$format")
	wait_until ended
	if [ "$format" = 2 ]; then # an export is of version 3
		mkdir -m 700 "$T/good.2" && cp -p "$(run_dir)/checkpoint.json" "$T/good.2"
	else
		"$FLOWSUP" checkpoint export "$RUN" "$T/good.3" >/dev/null
	fi
	cp -p "$(run_dir)/attempts.log" "$T/good.$format"
	mkdir -p "$T/good.$format/artifacts"
	as_of_elsewhere "$T/good.$format" # a copy with less than its run is another matter
	equal "version $format: is that of the file" "$format" "$(json "$(head -c 40 "$T/good.$format/checkpoint.json")" version)"

	# ---- what is done to it, check, operation, option ("-": none), reason ----
	while IFS='|' read -r edit check op flag reason; do
		name="version $format, check $check, $edit"
		python3 "$T/edit.py" "$T/good.$format" "$T/bad" "$edit" || not_ok "$name: it is edited"
		[ "$flag" = - ] && lifted=None || lifted=$flag
		equal "$name: refused" "$check $op $lifted" "$(verdict --retry-failed)"
		"$FLOWSUP" resume "$T/bad" --retry-failed >"$T/out" 2>"$T/said"
		equal "$name: nothing is made" "4 " "$? $(cat "$T/out")"
		[ "$op" = None ] && who= || who="operation $op: "
		if [ "$flag" = - ]; then
			matches "$name: people are told" "$who$reason" "$(grep -v 'lifted by' "$T/said")"
			equal "$name: no command is named" "" "$(grep '^hint' "$T/said")"
			equal "$name: nothing lifts it" "$check $op None" "$(verdict "${ALL[@]}")"
		else
			matches "$name: people are told" "$who$reason; lifted by: flowsup resume $T/bad --retry-failed --$flag" "$(cat "$T/said")"
			matches "$name: the command for all" "hint: flowsup resume $T/bad --retry-failed --$flag\$" "$(grep '^hint' "$T/said")"
			equal "$name: its option lifts it" accepted "$(verdict --retry-failed "--$flag")"
			others=("${ALL[@]/--$flag/--retry-failed}")
			equal "$name: and no other" "$check $op $lifted" "$(verdict "${others[@]}")"
		fi
	done <<-'END'
		d["version"] = 4|1|None|-|version
		d["version"] = True|1|None|-|version
		d["plan"] = []; d["ops"] = {}|2|None|-|plan is empty
		p[1]["dep_indices"] = [9]|2|None|-|operation "held": "dep_indices" holds what is no index of the plan
		p[1]["dep_indices"] = [1]|2|None|-|operation "held": it needs itself
		p[1]["dep_indices"] = [3]|2|None|-|operations wait for each other: held -> b -> c -> held
		p[2]["assignee"] = "nobody"|2|None|-|nobody
		o["nobody"] = dict(o["a"], agent_id="nobody")|2|None|-|"nobody", which is not in its plan
		o["a"]["response"] = "edited"|5|a|-|its recorded response does not match its digest
		o["held"]["response"] = "edited"|5|held|-|its recorded response does not match its digest
		o["a"]["result_digest"] = "blake2b:00"|5|a|-|its recorded response does not match its digest
		del o["a"]["conversation"]|6|b|allow-degraded-context|the conversation of a cannot be continued: none was recorded
		c["tentative"] = True|6|b|allow-degraded-context|the conversation of a cannot be continued: no turn of it was acknowledged
		o["b"] = {"agent_id": "b", "status": "failed", "response": None, "error": {"class": "session_lost", "message": "none of that id"}}|6|b|allow-degraded-context|the conversation of a cannot be continued: the last attempt to go on in it found it lost
		c["home"] = "/nowhere"|11|b|allow-degraded-context|the conversation of a cannot be continued: it is bound to '/nowhere', which is not there
		c["cwd"] = "/nowhere"|11|b|allow-degraded-context|the conversation of a cannot be continued: it is bound to '/nowhere', which is not there
	END
	python3 "$T/edit.py" "$T/good.$format" "$T/bad" 'pass'
	equal "version $format: as it was it is accepted" accepted "$(verdict --retry-failed)"
done
plan
