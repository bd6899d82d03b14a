#!/usr/bin/env bash
# The output of one operation that cannot be read keeps nobody from that of the others.
. "$(dirname "$0")/lib.sh"
cat >"$T/flow.yaml" <<'END_OF_FLOW'
name: outputs
concurrency: 1
plan:
  - {id: a, run: echo one}
  - {id: b, needs: [a], run: echo two}
  - {id: c, needs: [b], run: echo three}
  - {id: d, needs: [c], run: echo four}
  - {id: e, needs: [d], cwd: ./not-there, run: echo five}
END_OF_FLOW
RUN=$("$FLOWSUP" start --wait "$T/flow.yaml" 2>/dev/null | head -1)
ops=$FLOWSUP_HOME/runs/$RUN/ops
rm "$ops/b.1.out" "$ops/c.1.out"
ln -s a.1.out "$ops/b.1.out"
mkfifo "$ops/c.1.out"
out=$("$FLOWSUP" logs "$RUN" 2>"$T/err")
equal "what cannot be read ends it with the status of that" 74 $?
equal "behind all that can" "a | one,d | four" "$(paste -sd, <<<"$out")"
matches "a link is told" "b attempt 1: .*b.1.out.: Too many levels of symbolic links" "$(cat "$T/err")"
matches "a pipe, too" "c attempt 1: .*c.1.out.* is not a regular file" "$(cat "$T/err")"
matches "and how many there are" "the output of 2 operations could not be read" "$(cat "$T/err")"
out=$("$FLOWSUP" logs -f "$RUN" 2>"$T/err")
equal "with -f it is the same" "74 a | one,d | four" "$? $(paste -sd, <<<"$out")"
matches "one that could not be started is told from one that has not" 'attempt 1 of operation "e" could not be started' \
	"$("$FLOWSUP" logs "$RUN" e 2>&1)"

# ---- Files that are gone ----
cat >"$T/gone.yaml" <<'END_OF_FLOW'
concurrency: 1
plan:
  - {id: a, run: "echo one; echo err >&2"}
  - {id: b, needs: [a], run: "echo two; echo err >&2"}
  - {id: m, needs: [b], output: merged, run: "echo three; echo err >&2"}
  - {id: l, needs: [m], run: "head -c 2000000 /dev/zero | tr '\\0' x"}
END_OF_FLOW
RUN=$("$FLOWSUP" start --wait "$T/gone.yaml" 2>/dev/null | head -1)
ops=$FLOWSUP_HOME/runs/$RUN/ops
equal "one file for both is no loss" "0 a | err,b | err" "$("$FLOWSUP" logs -e "$RUN" >"$T/out" 2>&1; echo $? "$(paste -sd, "$T/out")")"
rm "$ops/a.1.out" "$ops/b.1.err" "$ops/l.1.out"
said() { "$FLOWSUP" logs "$@" >"$T/out" 2>"$T/err"; echo "$? $(paste -sd, "$T/out")"; }
equal "output that is gone is an error" "74 " "$(said "$RUN" a)"
matches "which says so" "a attempt 1: .*a.1.out.: No such file or directory" "$(cat "$T/err")"
equal "with -f, too" "74 " "$(said -f "$RUN" a)"
equal "and with --json" "74 " "$(said --json "$RUN" a)"
equal "a large response also" "74 " "$(said "$RUN" l)"
"$FLOWSUP" show "$RUN" >"$T/out" 2>"$T/err"
equal "of which show has that status, too" 74 $?
matches "names it among what is missing" "the response of operation \"l\" \('ops/l.1.out'\) is not there" "$(cat "$T/out")"
matches "and in the error" "the response of operation \"l\" .* is not there" "$(cat "$T/err")"
matches "also for programs" '"problems":\[\{"file":"ops/l.1.out","error":"the response of' "$("$FLOWSUP" show --json "$RUN" 2>/dev/null)"
equal "the others are printed" "74 b | two,m | three,m | err" "$(said "$RUN")"
equal "standard error of another" "74 " "$(said -e "$RUN" b)"
equal "that of one with its file" "0 err" "$(said -e "$RUN" a)"
equal "what has one file for both has none for that" 0 "$("$FLOWSUP" logs -e "$RUN" m >/dev/null 2>&1; echo $?)"
plan
