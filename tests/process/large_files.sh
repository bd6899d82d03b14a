#!/usr/bin/env bash
# Nothing waits behind the digest of a large response or artifact: controls, what operations ask for,
# the ends of others.
. "$(dirname "$0")/lib_grow.sh"

export HOLD_READ=$T/held # while it is there, no file of more than a MiB comes to an end
touch "$HOLD_READ"
LD_PRELOAD=$BUILD/tests/preload/hold_read.so${LD_PRELOAD:+:$LD_PRELOAD} "$FLOWSUP" supervisor
begin -j 8 <<Y
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
plan
