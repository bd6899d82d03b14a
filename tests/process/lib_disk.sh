# shellcheck shell=bash
# What tests of a full state directory share: a small file system of their own at $T/disk, whose mount
# nobody else sees and which is gone with the last process.
if [ -z "${STORAGE_TEST_ALONE:-}" ]; then
	if unshare -m true 2>/dev/null; then STORAGE_TEST_ALONE=root exec unshare -m "$0" "$@"; fi
	if unshare -rm true 2>/dev/null; then STORAGE_TEST_ALONE=mapped exec unshare -rm "$0" "$@"; fi
	export STORAGE_TEST_ALONE=no
fi
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
trap 'umount -l "$T/disk" 2>/dev/null; clean_up' EXIT
mkdir "$T/disk"

# mount_disk INODES: 12 MB, and so many files.
mount_disk() {
	[ "$STORAGE_TEST_ALONE" != no ] &&
		mount -t tmpfs -o "size=12m,nr_inodes=$1" none "$T/disk" 2>/dev/null
}
# have_disk INODES WHAT: without one the test is over.
have_disk() {
	if mount_disk "$1"; then return; fi
	skip "$2 (this user may not mount)"
	plan
}
# To the last byte, and with room again.
fill() { dd if=/dev/zero of="$T/disk/fill" bs=4k 2>/dev/null; dd if=/dev/zero of="$T/disk/fill2" bs=64 2>/dev/null; }
room() { rm -f "$T/disk/fill" "$T/disk/fill2"; }
# begin_counted: a run of one operation that counts its starts in $T/runs and ends with $T/go; its id, process
# and worker are $run, $op and $worker.
# shellcheck disable=SC2034 # they are for the tests
begin_counted() {
	rm -f "$T/go" "$T/runs"
	run=$("$FLOWSUP" start -- sh -c "echo x >>'$T/runs'; until [ -e '$T/go' ]; do sleep 0.02; done")
	wait_until worker_is_ready "$run"
	wait_until [ -s "$T/runs" ]
	op=$(sed -nE 's/.*"kind":"start".*"pid":([0-9]+).*/\1/p' "$FLOWSUP_HOME/runs/$run/attempts.log")
	worker=$(worker_pid "$run")
}
runs() { grep -c . "$T/runs"; }
# The supervisor has heard of what outlived the worker of $run.
known() { "$FLOWSUP" show --json "$run" | grep -qE "\"running_operations\":1"; }
