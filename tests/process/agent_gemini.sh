#!/usr/bin/env bash
# A real agent's command line, with recorded answers instead of a model: it needs no network once it
# is installed. It is installed once, from the npm registry, below the build directory; where that
# cannot be done the test is skipped and says why.
. "$(dirname "$0")/lib.sh"
VERSION=0.61.0
INSTALL_S=${FLOWSUP_TEST_NPM_SECONDS:-180}
CACHE=${FLOWSUP_TEST_NPM_CACHE:-$ROOT/build/npm/gemini-$VERSION}
GEMINI=$CACHE/node_modules/.bin/gemini

skip_all() {
	skip "$1"
	plan
}
[ "${FLOWSUP_TEST_NPM:-1}" != 0 ] || skip_all "FLOWSUP_TEST_NPM is 0"
command -v npm >/dev/null && command -v node >/dev/null || skip_all "npm is not installed"
major=$(node -p 'process.versions.node.split(".")[0]')
[ "$major" -ge 20 ] || skip_all "node $major is older than 20"
if [ ! -x "$GEMINI" ]; then
	mkdir -p "$CACHE" || skip_all "no place for the package"
	# Whole or not at all: two tests at once each make their own and one wins.
	new=$(mktemp -d "$CACHE.XXXXXX")
	timeout "$INSTALL_S" npm install --prefix "$new" --ignore-scripts --no-audit --no-fund --no-save \
		"@google/gemini-cli@$VERSION" >"$T/npm.log" 2>&1 || {
		rm -rf "$new"
		skip_all "npm cannot install @google/gemini-cli@$VERSION: $(grep -m1 -i 'err' "$T/npm.log")"
	}
	rmdir "$CACHE" 2>/dev/null
	mv -T "$new" "$CACHE" 2>/dev/null || rm -rf "$new"
fi

# Every answer of the model is the next line; a line is used up by a turn.
mkdir "$T/bin" "$T/gemini"
answer() {
	printf '{"method":"generateContentStream","response":[{"candidates":[{"content":{"parts":[{"text":"%s"}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":15}}]}\n' "$1"
}
answer "The capital is Paris." >"$T/answers"
: >"$T/none"
ln -s "$GEMINI" "$T/bin/gemini"
export PATH=$T/bin:$PATH GEMINI_CLI_HOME=$T/gemini GEMINI_API_KEY=mock-key XDG_CONFIG_HOME=$T/config
export HOME=$T/gemini
cd "$T" || exit 1
# One at a time: where two of them write into a home at once, the file of a conversation may get lost.
cat >flow.yaml <<END
name: gemini
concurrency: 1
roles:
  answers: {provider: gemini, args: [--approval-mode, plan, --fake-responses, $T/answers]}
  silent: {provider: gemini, args: [--approval-mode, plan, --fake-responses, $T/none]}
defaults: {timeout: 5m}
plan:
  - {id: a, assignee: answers, instruction: "What is the capital of France?"}
  - {id: b, assignee: answers, needs: [a], inherit_context: a, instruction: "Are you sure?"}
  - {id: c, assignee: answers, needs: [b], inherit_context: b, instruction: "And now?"}
  - {id: d, assignee: answers, needs: [b], inherit_context: b, instruction: "Really?"}
  - {id: e, assignee: silent, instruction: "Say something"}
END
LIMIT=300
RUN=$("$FLOWSUP" start flow.yaml)
ended() { [[ $(run_status "$RUN") =~ ^(completed|failed|crashed)$ ]]; }
check "the flow ends" wait_until ended
dir=$FLOWSUP_HOME/runs/$RUN
entry() { grep -F "\"agent_id\":\"$1\"" "$dir/checkpoint.json.journal" | tail -1; }
id() { entry "$1" | sed -nE 's/.*"conversation":\{[^}]*"id":"([^"]*)".*/\1/p'; }
matches "it answers" '"status":"completed","response":"The capital is Paris."' "$(entry a)"
matches "its version is recorded" "\"conversation\":\\{\"provider\":\"gemini\",\"version\":\"$VERSION\"" "$(entry a)"
matches "so is what it used" '"usage":\{"input_tokens":10,"output_tokens":5,"cached_input_tokens":0\}' "$(entry a)"
matches "the conversation goes on" '"status":"completed"' "$(entry b)"
chat() { cat "$dir/ops/$1.1/chat.jsonl"; }
turns() { chat "$1" | grep -oE 'capital of France|Are you sure|And now' | sort -u | tr '\n' ' '; }
equal "both turns are in it" "Are you sure capital of France " "$(turns b)"
check "the others' turns are not" [ -z "$(chat b | grep -E 'And now|Really')" ]
matches "one fork" '"status":"completed"' "$(entry c)"
matches "and another" '"status":"completed"' "$(entry d)"
equal "have ids of their own" 3 "$(printf '%s\n' "$(id b)" "$(id c)" "$(id d)" | grep . | sort -u | wc -l)"
equal "a fork has the turns before it" "And now Are you sure capital of France " "$(turns c)"

# ---- A person's own command line ----
RUN=$("$FLOWSUP" start -- gemini -p "What is the capital of France?" --skip-trust --approval-mode plan \
	--fake-responses "$T/answers" --output-format json)
"$FLOWSUP" msg "$RUN" 'Are you sure?' 2>"$T/err"
check "the command ends" wait_until ended
equal "well" completed "$(run_status "$RUN")"
equal "a message was its second turn" 2 "$(find "$FLOWSUP_HOME/runs/$RUN/ops" -name '*.out' | wc -l)"
said() { sed -nE 's/.*"session_id": "([^"]*)".*/\1/p' "$FLOWSUP_HOME/runs/$RUN/ops/gemini.$1.out"; }
check "of a conversation" [ -n "$(said 1)" ]
equal "which is the same" "$(said 1)" "$(said 2)"
matches "and has both" 'capital of France.*Are you sure' "$(cat "$T"/gemini/.gemini/tmp/*/chats/session-*"$(said 1 | cut -c1-8)"* | tr '\n' ' ')"
matches "without an answer it has failed" '"status":"failed"' "$(entry e)"
matches "and the message is short" '"message":"[^"]{1,450}","code":1' "$(entry e)"
plan
