# shellcheck shell=bash
# What a start costs, in files and directories that are made, and in waiting for the disk, until the
# command returns; and what its run costs then.
. "$(dirname "$0")/lib.sh"

if ! strace -o /dev/null true 2>/dev/null; then
	skip "system calls are counted: strace does not work here"
	plan
fi

calls=openat,mkdirat,renameat,renameat2,sync_file_range,fsync,fdatasync,execve,sendmsg
made() { grep -cE '(mkdirat\(|openat\(.*O_EXCL).* = [0-9]+$' "$1"; }
syncs() { grep -cE '(fsync|fdatasync)\(.* = 0$' "$1"; }

"$FLOWSUP" start --wait -- true 2>/dev/null >&2 # the database and its log are there
strace -f -e "trace=$calls" -o "$T/client" "$FLOWSUP" start -- true >"$T/id" 2>/dev/null
run=$(cat "$T/id")
equal "the run completes" completed "$("$FLOWSUP" wait "$run" >/dev/null 2>&1; run_status "$run")"
note "the command: $(made "$T/client") files and directories, $(syncs "$T/client") syncs"
check "a start makes no more files than it must" [ "$(made "$T/client")" -le 6 ]
check "and waits for the disk no more often" [ "$(syncs "$T/client")" -le 8 ]
# Every file is written before the first wait: that one does most of the work of all.
first=$(grep -nE '(fsync|fdatasync)\(' "$T/client" | head -n 1 | cut -d: -f1)
equal "no file is made after the first wait" 0 \
	"$(tail -n "+$first" "$T/client" | grep -cE 'O_EXCL.* = [0-9]+$')"
# Before the run has its name it is whole, and synced; the name is synced before it is told.
named=$(grep -n 'renameat2(' "$T/client" | head -n 1 | cut -d: -f1)
equal "files and directory are synced before the run has its name" 5 "$(head -n "$named" "$T/client" | grep -cE 'fsync\(')"

# ---- An operation ----

# When a process was made is read from a file only where the clock does not tell: at the turn of a tick.
for i in $(seq 60); do printf 'true\n'; done | strace -f -e trace=openat,execve,getdents64,getrandom,wait4,waitid \
	-o "$T/ops" "$FLOWSUP" start --foreground --each 'exec true' -j 1 >/dev/null 2>&1
read_of() { grep -c '"/proc/self/stat"' "$1"; }
note "60 operations: /proc/self/stat is read $(read_of "$T/ops") times"
equal "all of them ran" 60 "$(grep -cE 'execve\("(/usr)?/bin/true"' "$T/ops")"
check "and not each had a file read for its start time" [ "$(read_of "$T/ops")" -lt 60 ]
calls_of() { grep -cE "$1" "$T/ops"; }
note "directories are read $(calls_of 'getdents64\(') times, and opened $(calls_of 'O_DIRECTORY') times"
check "nor its empty directory of artifacts read" [ "$(calls_of 'getdents64\(')" -lt 60 ]
check "nor a directory opened to start in" [ "$(calls_of 'O_DIRECTORY')" -lt 60 ]
check "nor random bits got for its token alone" [ "$(calls_of 'getrandom\(.*, 16, ')" -lt 60 ]
note "ends of children are asked for $(calls_of 'waitid\(') times"

# ---- Libraries ----

# To load one takes a process longer than many a run.
loaded() { env -u LD_PRELOAD ldd "$1" | grep -v -e ld-linux -e vdso | grep -c '=>'; }
if is_sanitized || [ ! -e "$(cc -print-file-name=libb2.a 2>/dev/null)" ]; then
	skip "libraries are counted: there is no archive of libb2"
else
	note "libraries: $(loaded "$FLOWSUP") of the command, $(loaded "$WORKER") of the worker"
	check "a command loads SQLite, YAML, mathematics and C" [ "$(loaded "$FLOWSUP")" -le 4 ]
	check "a worker loads SQLite, mathematics and C" [ "$(loaded "$WORKER")" -le 3 ]
fi

# ---- The run ----

export FLOWSUP_HOME=$T/traced
strace -f -e "trace=$calls" -o "$T/all" "$FLOWSUP" supervisor --foreground 2>/dev/null &
tracer=$!
wait_until supervisor_answers
"$FLOWSUP" start --wait -- true 2>/dev/null >&2
"$FLOWSUP" start --wait -- true 2>/dev/null >&2 # by then everything has been made that is made once
"$FLOWSUP" supervisor stop >/dev/null 2>&1
wait "$tracer"
worker=$(grep -F 'execve("'"$WORKER"'", ["flowsup-worker", "--home"' "$T/all" | grep -F -- '"--run"' | tail -n 1 | cut -d' ' -f1)
awk -v worker="$worker" '$1 == worker && /execve\(/ { found = 1 } found' "$T/all" >"$T/worker"
# Most processes are somebody else's, and that is found out by being refused one file of each.
looks=$(grep -cE 'openat\(.*"/proc/[0-9]+/stat"' "$T/worker")
note "the run: the lines of $looks processes are read"
check "whose processes are left is asked of few" [ "$looks" -le 12 ]
# The thread that opens the database, which takes as long as the checkpoint, is there before that is published.
line() { grep -nE "$1" "$T/worker" | head -n 1 | cut -d: -f1; }
check "the database is opened while the checkpoint is published" \
	[ "$(line 'openat.*"events\.jsonl"')" -lt "$(line 'renameat2.*"checkpoint\.json"')" ]
# Where the run's processes are is on the disk before there is a base to resume from.
named=$(line 'renameat2.*"checkpoint\.json"')
kept=$(sed -nE 's/.*openat\(.*"attempts\.log".* = ([0-9]+)$/\1/p' "$T/worker" | head -n 1)
kept=$(line " fsync\\($kept\\) += 0")
check "the worker's line is synced before the checkpoint has its name" [ "${kept:-$named}" -lt "$named" ]
# The worker's line, journal, its name, base, its name, and staging once for both.
started=$(line 'execve\("(/usr)?/bin/true"')
waits=$(head -n "$started" "$T/worker" | grep -cE ' fsync\(')
note "the run: $waits syncs before its first operation, beside those of the database"
check "before the first operation no more than the checkpoint and that line need is synced" [ "$waits" -le 6 ]
# A worker takes the place of a dead one's socket in one step: an operation that asks finds one or the other.
check "its socket has its name only when it is listened at" grep -qE 'renameat.*"worker\.sock\.new".*"worker\.sock"\) += 0' "$T/worker"
# The worker is loaded while the supervisor writes that the run starts, and waits for that.
order=$(sed -n "$(grep -nF 'execve("'"$WORKER"'"' "$T/all" | grep -F -- '"--run"' | tail -n 1 | cut -d: -f1),\$p" "$T/all" |
	sed -nE -e "/^$worker .*execve[(]/s/.*/loaded/p" -e "/^$worker .*\"attempts\.log\"/s/.*/begins/p" \
		-e "/^$(head -n 1 "$T/all" | cut -d' ' -f1) .*fdatasync/s/.*/written/p" | uniq | head -n 3 | paste -sd' ')
equal "the row is written behind the worker's back, and before it begins" "loaded written begins" "$order"
plan
