#!/usr/bin/env bash
# Nothing waits behind the digest of a large response or artifact: controls, what operations ask for,
# the ends of others.
. "$(dirname "$0")/lib_grow.sh"

export HOLD_READ=$T/held # while it is there, no file of more than a MiB comes to an end
touch "$HOLD_READ"
LD_PRELOAD=$BUILD/tests/preload/hold_read.so${LD_PRELOAD:+:$LD_PRELOAD} "$FLOWSUP" supervisor
begin -j 8 <<Y
defaults: {grace: 10m} # as long as what is read may take after a stop
plan:
  - {id: big, run: 'echo \$\$ >"$T/big"; truncate -s 40M /proc/self/fd/1'}
  - {id: art, artifacts: [f], run: 'echo \$\$ >"$T/art"; truncate -s 40M "\$FLOWSUP_ARTIFACTS/f"'}
  - {id: sleeper, run: 'sleep 1000'}
  - id: talks
    run: |
      until [ -s "$T/big" ] && [ -s "$T/art" ]; do sleep 0.05; done
      while kill -0 \$(cat "$T/big") || kill -0 \$(cat "$T/art"); do sleep 0.05; done 2>"$T/none"
      "$FLOWSUP" emit context set /a 1 && "$FLOWSUP" emit context get /a
  - {id: middling, needs: [talks], run: 'head -c 200000 /dev/zero'}
  - {id: artist, needs: [talks], artifacts: [f], run: 'echo x >"\$FLOWSUP_ARTIFACTS/f"'}
  - {id: after, needs: [big, art], run: 'true'}
Y
check "what another emits is taken meanwhile" wait_until has_event NodeCompleted '"op":"talks"'
equal "and is there" 1 "$(output talks)"
check "others end, with a response that is looked at" wait_until has_event CheckpointSaved '"op":"middling"'
check "or with an artifact" wait_until has_event CheckpointSaved '"op":"artist"'
check "and an operation can be ended" "$FLOWSUP" stop "$RUN" --now
check "nothing of the large ones is known yet" [ "$(events NodeCompleted)" = 3 ]
rm "$HOLD_READ"
wait_until ended
check "their outcomes are saved when their digests are done" \
	[ "$(grep -c '"op":"\(big\|art\)"' <<<"$(grep '"CheckpointSaved"' "$(run_dir)/events.jsonl")")" = 2 ]
# Whose process has ended does not run: its limits are over, and it is shown as it is.
touch "$HOLD_READ"
begin -j 8 <<Y
defaults: {grace: 1ms}
plan:
  - {id: big, timeout: 2s, run: 'truncate -s 40M /proc/self/fd/1'}
  - {id: once, idempotent: false, artifacts: [f], run: 'echo >>"$T/once"; truncate -s 40M "\$FLOWSUP_ARTIFACTS/f"'}
Y
check "that it is read is an event" wait_until has_event NodeReading '"op":"big"'
check "of each" wait_until has_event NodeReading '"op":"once"'
equal "shown as read, without a process" "reading None reading None" "$(shown \
	'"%s %s %s %s" % (op["big"]["state"], op["big"]["pid"], op["once"]["state"], op["once"]["pid"])')"
matches "in words" "big +reading .*its process has ended; what it left is read" "$("$FLOWSUP" show "$RUN")"
"$FLOWSUP" stop "$RUN" >"$T/stop.out" 2>&1
matches "a stop waits for it" "waits for the end of big, once" "$("$FLOWSUP" show "$RUN")"
check "a stop that does not wait" "$FLOWSUP" stop "$RUN" --now
rm "$HOLD_READ"
check "ends the run when the grace is over" wait_until ended
equal "nothing of it counts" "cancelled cancelled" "$(shown '"%s %s" % (op["big"]["state"], op["once"]["state"])')"
matches "and why is said" "big +cancelled .*not read to its end before the stop" "$("$FLOWSUP" show "$RUN")"
RUN=$("$FLOWSUP" resume "$RUN")
wait_until ended
equal "a resume has both" "completed completed" "$(shown '"%s %s" % (op["big"]["state"], op["once"]["state"])')"
equal "and repeats nothing whose end is known" 1 "$(wc -l <"$T/once")"
plan
