#!/usr/bin/env bash
# check and start look for the same programs, directories and variables, and say the same.
. "$(dirname "$0")/lib.sh"
cd "$T" || exit 1
mkdir bin empty
printf '#!/bin/sh\n' >bin/here
chmod +x bin/here
PATH=$T/bin:$PATH
doc() { printf '%s\n' 'roles: {w: {provider: gemini, env: {PATH: /nowhere}}}' 'plan:' "$@" >flow.yaml; }
both() { # what each says, without the plan, and its status
	check_said=$("$FLOWSUP" check flow.yaml 2>&1 >/dev/null)
	check_status=$?
	start_said=$("$FLOWSUP" start --dry-run flow.yaml 2>&1 >/dev/null)
	start_status=$?
}

doc '  - {id: a, exec: [here]}' '  - {id: b, needs: [a], exec: [./made]}' '  - {id: c, exec: ["{{prompt}}"]}'
both
equal "what is there, made or not known yet is no matter" "0 0 " "$check_status $start_status $check_said$start_said"
doc '  - {id: a, exec: [no-such-program]}'
both
equal "a missing program is 78 to both" "78 78" "$check_status $start_status"
equal "and said the same" "$start_said" "$check_said"
matches "by the operation" 'operation "a": cannot execute "no-such-program"' "$check_said"
doc '  - {id: a, exec: [here]}' '  - {id: b, needs: [a], exec: [no-such-program]}'
both
equal "what others may make is a warning to both" "0 0" "$check_status $start_status"
matches "with its words" '^flowsup: warning: operation "b"' "$check_said"
doc '  - {id: a, assignee: w, instruction: x}'
both
equal "an agent's program is looked for by both" "78 78" "$check_status $start_status"
matches "where the role finds it" 'operation "a": cannot execute "gemini"' "$check_said"
doc '  - {id: a, env: {NO_SUCH_VARIABLE: {required: true}}, run: x}'
both
equal "so are required variables" "78 78" "$check_status $start_status"
matches "JSON says that the document is valid" '"valid":true' "$("$FLOWSUP" check --json flow.yaml 2>/dev/null)"
# ---- JSON ----
doc '  - {id: a, cwd: bim, run: x}' '  - {id: b, needs: [a], exec: [no-such-program]}' \
	'  - {id: c, env: {NO_SUCH_VARIABLE: {required: true}}, run: x}' '  - {id: d, exec: [no-such-program]}'
both
matches "each that is missing is said" 'warning: operation "a".*warning: operation "b".*operation "d".*operation "c"' \
	"$(paste -sd' ' <<<"$check_said")"
equal "by both" "78 $start_said" "$check_status $check_said"
marks() { perl -MJSON::PP -0777 -ne 'print join " ", map { $_->{message} =~ /"(.)"/; $1 . ($_->{warning} ? "w" : "") }
	@{decode_json($_)->{problems}}'; }
equal "check --json has it in the problems" "aw bw d c" "$("$FLOWSUP" check --json flow.yaml 2>err | marks)"
equal "and one object on standard error" 1 "$(wc -l <err)"
equal "start --json has it in the error" "aw bw d c" "$("$FLOWSUP" start --json flow.yaml 2>&1 >/dev/null | marks)"
matches "a document without a name is called as its run" '"name":"flow"' "$("$FLOWSUP" check --json flow.yaml 2>/dev/null)"
# ---- Directories ----
doc '  - {id: a, cwd: bin, run: x}' '  - {id: b, needs: [a], cwd: made, run: x}'
both
equal "a directory that is there, or may be made, is no matter" "0 0 " \
	"$check_status $start_status $check_said$start_said"
doc '  - {id: a, cwd: bim, run: x}'
both
equal "one that is not is a warning to both" "0 0" "$check_status $start_status"
equal "with the same words" "$start_said" "$check_said"
matches "which name it, and why" "^flowsup: warning: operation \"a\": cwd 'bim': No such file or directory" \
	"$check_said"
doc '  - {id: a, cwd: "~/bim", run: x}'
matches "below the home directory too" "cwd '$T/empty/bim': No such" \
	"$(HOME=$T/empty "$FLOWSUP" check flow.yaml 2>&1)"
account=$(getent passwd "$(id -u)" | cut -d: -f6)
for home in -uHOME HOME= HOME=work; do
	matches "$home: the account's home directory counts" "cwd '$account/no.such.bim': No such" \
		"$(sed -i 's|~/.*bim|~/no.such.bim|' flow.yaml; env "$home" "$FLOWSUP" check flow.yaml 2>&1)"
done
doc '  - {id: a, cwd: bin/here, run: x}'
both
matches "so is what is no directory" "cwd 'bin/here': Not a directory" "$check_said"
doc '  - {id: a, cwd: /etc/passwd, run: x}'
both
matches "whoever may enter what" "cwd '/etc/passwd': Not a directory" "$check_said"

check "nothing was made" [ ! -e "$FLOWSUP_HOME" ]
plan
