#!/usr/bin/env bash
# The picture for a browser: a file that is XML whatever stands in it, where lines meet no box, which
# tells states and what was added apart without colour, and which large flows can be drawn as.
. "$(dirname "$0")/lib_grow.sh"

draw() { "$FLOWSUP" graph - --format svg >"$T/svg"; }
seen() { python3 "$ROOT/tests/lib/inspect_svg.py" "$T/svg" "$@" 2>&1; }
box() { seen "[$2 for b in boxes if b.id == '$1'][0]"; }

# ---- A document ----
draw <<'Y'
name: "a <b>&amp; \"name\" ]]> \u0001\e[31m \uFFFE\uFFFF"
plan:
  - {id: part, run: x, foreach: [1, 2, 3]}
  - {id: many, run: x, foreach: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]}
  - {id: look, run: x}
  - {id: ship, run: x, gate: approve, needs: [part, {op: look, when: {pointer: /<ok>, equals: "</text><script>&\u0007\u009b'\uFFFE"}}]}
  - {id: sorry, run: x, needs: [many, {op: ship, on: failure}]}
  - {id: end, run: x, needs: [{op: sorry, on: always}, part, look]}
Y
equal "it is XML, and each operation has a place of its own" 8 "$(seen)"
equal "a large group is one box" "many.* (13)" "$(seen '[b.id for b in boxes if "many" in b.id][0]')"
equal "nothing that it says is markup, or acts" True "$(seen '"</text><script>&" in text and "a <b>&amp; \"name\" ]]> \\x01\\x1b[31m" in text')"
check "no character that XML does not have" bash -c "! LC_ALL=C grep -qP '[\x00-\x09\x0b-\x1f]|\xc2[\x80-\x9f]|\xef\xbf[\xbe\xbf]' '$T/svg'"
check "no script, no link to elsewhere" bash -c "! grep -qiE '<script|href|url\((\"|.?http)|<foreign' '$T/svg'"
equal "conditions stand beside their lines" "['always', 'on failure']" "$(seen 'sorted(l.label for l in lines if l.label[:4] != "when" and l.label)')"
equal "and are lines of another kind" "always failure" "$(seen '" ".join(sorted(c for l in lines for c in l.classes if c in ("failure", "always")))')"
matches "a long one is cut, its tooltip has all of it" 'when /<ok> = .*…' "$(seen '[l.label for l in lines if l.label[:4] == "when"][0]')"
matches "its tooltip" "look → ship, when /<ok> = \"</text><script>&" "$(seen '[l.title for l in lines if l.label[:4] == "when"][0]')"
matches "who waits for a person is said" "needs approval" "$(box ship b.title)"

# ---- A run: states, and what was added ----
run_flow <<'Y'
reactive: all
roles:
  low: {provider: robot, env: {WHO: low}, escalate_to: high}
  high: {provider: robot, env: {WHO: high}}
plan:
  - {id: list, run: 'echo "[1, 2]"', response: json}
  - {id: each, needs: [list], foreach: "", run: 'true'}
  - {id: work, assignee: low, instruction: 'flowsup emit spawn --instruction "true"; flowsup emit spawn --instruction "true" --independent; test $WHO = high'}
  - {id: bad, run: 'false'}
  - {id: behind, needs: [bad, work], run: 'true'}
  - {id: after, needs: [{op: work, on: always}], run: 'true'}
Y
"$FLOWSUP" show "$RUN" --graph svg >"$T/svg"
equal "of a run too" 13 "$(seen)"
equal "states are classes, words and signs" "completed failed skipped ✓ ✗ –" \
	"$(box list b.classes[1]) $(box bad b.classes[1]) $(box behind b.classes[1]) $(seen '" ".join(t[0] for t in ([b.text for b in boxes if b.id == n][0] for n in ("list", "bad", "behind")))')"
equal "what was replaced is told apart" "True replaced by work.s3" "$(box work '"replaced" in b.classes') $(box work b.title | tail -1)"
equal "what was spawned" "✓ completed, spawned" "$(box work.s1 b.text)"
matches "and by whom" "spawned by work$" "$(box work.s2 b.title)"
matches "another try says of what" "another try at work$" "$(box work.s3 b.title)"
equal "each kind has lines of its own" "{'after': 'spliced', 'behind': 'spliced', 'work.s3': 'try', 'work.s1': 'spawn', 'work.s2': 'origin', 'each.0': 'spawn'}" \
	"$(seen '{n: c for n in ("after", "behind", "work.s3", "work.s1", "work.s2", "each.0") for l in lines for c in l.classes if l.title.split(" → ")[1].split(",")[0] == n and c in ("spliced", "try", "spawn", "origin")}')"
equal "states differ without colour" True "$(python3 - "$T/svg" <<'P'
import re, sys
css = re.search("<style>(.*)</style>", open(sys.argv[1]).read()).group(1)
def look(rule):
    d = dict(p.split(":") for p in re.search(r"(?:^|})\." + rule + " rect{([^}]*)}", css).group(1).split(";"))
    return d.get("stroke-width", "1"), d.get("stroke-dasharray", "")
names = ["completed", "failed", "interrupted", "cancelled", "running", "waiting", "skipped"]
print(len({look(n) for n in names}) == len(names))
P
)"

# ---- Ten thousand operations, with lines over many layers; processor time, not time, is bounded ----
big() { # expression for what i needs
	python3 - "$1" >"$T/big.yaml" <<'P'
import random, sys
random.seed(7)
print("max_ops: 10000\nplan:")
for i in range(10000):
    print("- {id: o%d, run: x, needs: [%s]}" % (i, ", ".join("o%d" % k for k in sorted(set(eval(sys.argv[1]))))))
P
	(ulimit -t 20; exec "$FLOWSUP" graph "$T/big.yaml" --format svg >"$T/svg")
}
for needs in '[random.randrange(i) for _ in range(min(i, 3))]' '[i - 1, 0][:i]' \
	'[i // 100 * 100 - 100 + k for k in range(5)] if i >= 100 else []'; do
	big "$needs"
	equal "ten thousand operations: $needs" 10000 "$(seen)"
done
plan
