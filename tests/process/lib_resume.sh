# shellcheck shell=bash
# For tests of resume and fork: a directory to work in, whose file `count` gets a line for each operation
# that runs, and ways to lose a worker.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

mkdir "$T/w"
cd "$T/w" || exit 1
has_line() { grep -qx "$1" count 2>/dev/null; }
times() { grep -cx "$1" count; }
is_crashed() { status_is "$1" crashed; }
dir_of() { echo "$FLOWSUP_HOME/runs/$1"; }
lose_worker() { # RUN; what it ran lives on
	kill -KILL "$(worker_pid "$1")"
	wait_until is_crashed "$1"
}
crash() { lose_worker "$1" && power_loss "$1"; }
