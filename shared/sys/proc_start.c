/*
 * Starting a process at vfork speed. The child runs on a stack of its own in our memory while the
 * calling thread stands still, until it has executed its program or ended. So it reports an error
 * simply by writing it down, and it must do nothing that leaves a trace in our memory: it makes
 * system calls by number, because the C library's functions (and a sanitizer's versions of them)
 * may keep accounts. All work that can be done before is done before.
 *
 * Any thread may call this: each call has its own stack, and signals are blocked around, so that
 * no handler of ours runs in the child. PR_SET_PDEATHSIG follows the calling thread, not the
 * process: a caller who sets die_with stays alive.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "proc_private.h"

#if defined(__clang__)
#define CHILD_CODE __attribute__((disable_sanitizer_instrumentation, no_sanitize("undefined")))
#else
#define CHILD_CODE __attribute__((no_sanitize("address", "thread", "undefined")))
#endif

/* ThreadSanitizer puts a version of clone in place that takes every child for a fork, and writes so
 * into the memory that we share with ours. This is the C library's own, under its other name. */
#if defined(__SANITIZE_THREAD__)
#define PLAIN_CLONE 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PLAIN_CLONE 1
#endif
#endif
#ifdef PLAIN_CLONE
extern int __clone(int (*run)(void *), void *stack, int flags, void *arg, ...);
#define clone __clone
#endif

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

enum {
	CHILD_STACK = 64 * 1024,
	NUMBER_TEXT = 24,
	CHILD_STAT_LINE = 1024,
	START_FIELD = 22,
	IGNORED_FIELD = 33, /* of the signals 1 to 31 */
	/* How far the kernel's reading of a clock and ours may differ by rounding, and more. */
	CLOCK_SLACK_NS = 1000,
	/* What the kernel's rt_ calls want: a bit for each signal. */
	KERNEL_SIGSET = _NSIG / 8,
	/* At least as large as the kernel's struct sigaction; all zero is SIG_DFL everywhere. */
	KERNEL_SIGACTION = 64,
	FIRST_NOT_STANDARD = 3,
};

/* The steps of the child in their order; the texts go to messages. */
#define STEPS(X)                                                                                   \
	X(STEP_NONE, "")                                                                           \
	X(STEP_SIGNALS, "reset signals")                                                           \
	X(STEP_PARENT, "tie to the parent")                                                        \
	X(STEP_SESSION, "start a session")                                                         \
	X(STEP_GROUP, "start a process group")                                                     \
	X(STEP_NICE, "set the priority")                                                           \
	X(STEP_CHDIR, "change directory")                                                          \
	X(STEP_IDENTIFY, "read the start time")                                                    \
	X(STEP_LOG, "write the start line")                                                        \
	X(STEP_FDS, "duplicate descriptors")                                                       \
	X(STEP_RLIMIT, "set a limit")                                                              \
	X(STEP_EXECUTE, "execute")                                                                 \
	X(STEP_CLONE, "create a process")                                                          \
	X(STEP_PREPARE, "prepare")

enum step {
#define X(name, text) name,
	STEPS(X)
#undef X
	    STEP_COUNT
};

static const char *const step_names[STEP_COUNT] = {
#define X(name, text) text,
    STEPS(X)
#undef X
};

/* Everything the child reads and the little that it writes. */
struct start {
	const struct proc_spawn *what;
	const char *path; /* after look-up */
	int cwd_fd;	  /* or -1 */
	const char *cwd;  /* where the child goes by name, or NULL */
	int above_fds;	  /* the first number above every target */
	struct rlimit64 rlimits[PROC_MAX_RLIMITS];
	int resources[PROC_MAX_RLIMITS];
	bool handlers_cleared; /* by the kernel, when it made the child; ignored signals stay so */
	uint64_t ignored;      /* bit n - 1: signal n; what is known of them before the start */
	int64_t tick_ns;       /* of the clock of start times; 0: its length is not known */
	int64_t before_ns;     /* that clock just before the start */
	bool reckon;	       /* the start time may come from that clock, and `ignored` is whole */
	/* written by the child */
	volatile enum step failed;
	volatile int sys;
	volatile int64_t start_ticks;
	volatile long pid;
};

/* ---- The child: raw system calls only, until the end of this part ---- */

CHILD_CODE static void
child_fail(struct start *s, enum step step, int sys)
{
	s->sys = sys;
	s->failed = step;
	for (;;)
		syscall(SYS_exit_group, 127);
}

CHILD_CODE static void
child_check(struct start *s, enum step step, long result)
{
	if (result < 0)
		child_fail(s, step, errno);
}

CHILD_CODE static void
child_reset_signals(struct start *s)
{
	char none[KERNEL_SIGACTION];
	size_t i;
	int sig;

	for (i = 0; i < sizeof(none); i++)
		((volatile char *)none)[i] = 0;
	for (sig = 1; sig < _NSIG; sig++)
		if (sig != SIGKILL && sig != SIGSTOP &&
		    (!s->handlers_cleared || (s->ignored >> (sig - 1) & 1) != 0))
			child_check(s, STEP_SIGNALS,
			    syscall(SYS_rt_sigaction, sig, none, NULL, KERNEL_SIGSET));
}

CHILD_CODE static void
child_unblock_signals(struct start *s)
{
	unsigned long none[2] = {0, 0};

	child_check(s, STEP_SIGNALS,
	    syscall(SYS_rt_sigprocmask, SIG_SETMASK, none, NULL, KERNEL_SIGSET));
}

CHILD_CODE static void
child_place(struct start *s)
{
	const struct proc_spawn *w = s->what;

	if (w->die_with != 0) {
		child_check(s, STEP_PARENT, syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0));
		/* It may have died before that call. */
		if (syscall(SYS_getppid) != w->die_with)
			child_fail(s, STEP_PARENT, ESRCH);
	}
	if (w->new_session)
		child_check(s, STEP_SESSION, syscall(SYS_setsid));
	else if (w->new_group)
		child_check(s, STEP_GROUP, syscall(SYS_setpgid, 0, 0));
	if (w->set_umask)
		syscall(SYS_umask, w->umask);
	if (w->set_nice)
		child_check(s, STEP_NICE, syscall(SYS_setpriority, PRIO_PROCESS, 0, w->nice));
	if (s->cwd_fd >= 0)
		child_check(s, STEP_CHDIR, syscall(SYS_fchdir, s->cwd_fd));
	else if (s->cwd != NULL)
		child_check(s, STEP_CHDIR, syscall(SYS_chdir, s->cwd));
}

/* A number behind the last ')' by its field; -1 when the line is not understood. */
CHILD_CODE static int64_t
child_stat_field(const char *line, long len, int wanted)
{
	int64_t value = 0;
	long at = len - 1;
	int field = 2;

	while (at >= 0 && line[at] != ')')
		at--;
	if (at < 0)
		return -1;
	for (; at < len && field < wanted; at++)
		if (line[at] == ' ')
			field++;
	if (at >= len || line[at] < '0' || line[at] > '9')
		return -1;
	for (; at < len && line[at] >= '0' && line[at] <= '9'; at++)
		value = value * 10 + (line[at] - '0');
	return value;
}

CHILD_CODE static int64_t
boot_clock(void)
{
	struct timespec t;

	if (syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &t) != 0)
		return -1;
	return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

/*
 * The kernel notes the time at which it makes a process and shows it in ticks, rounded down. Where the
 * clock was within one tick before and after, that is the tick, and the file is not needed: it costs
 * more than everything else the child does before it executes its program.
 */
CHILD_CODE static bool
child_reckon(struct start *s)
{
	int64_t after, tick;

	if (!s->reckon)
		return false;
	after = boot_clock();
	tick = (s->before_ns - CLOCK_SLACK_NS) / s->tick_ns;
	if (after < s->before_ns || (after + CLOCK_SLACK_NS) / s->tick_ns != tick)
		return false;
	s->start_ticks = tick;
	return true;
}

CHILD_CODE static void
child_identify(struct start *s)
{
	char line[CHILD_STAT_LINE];
	int64_t ignored;
	long fd, len;

	s->pid = syscall(SYS_getpid);
	if (child_reckon(s))
		return;
	fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/stat", O_RDONLY | O_CLOEXEC, 0);
	child_check(s, STEP_IDENTIFY, fd);
	len = syscall(SYS_read, fd, line, sizeof(line));
	child_check(s, STEP_IDENTIFY, len);
	syscall(SYS_close, fd);
	s->start_ticks = child_stat_field(line, len, START_FIELD);
	ignored = child_stat_field(line, len, IGNORED_FIELD);
	if (s->start_ticks < 0 || ignored < 0)
		child_fail(s, STEP_IDENTIFY, EINVAL);
	s->ignored |= (uint64_t)ignored;
}

CHILD_CODE static struct iovec
child_decimal(uint64_t value, char text[NUMBER_TEXT])
{
	struct iovec out;
	size_t at = NUMBER_TEXT;

	do {
		text[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value > 0);
	out.iov_base = text + at;
	out.iov_len = NUMBER_TEXT - at;
	return out;
}

CHILD_CODE static struct iovec
child_borrow(const struct slice *from)
{
	struct iovec out;

	out.iov_base = (void *)(uintptr_t)from->data;
	out.iov_len = from->len;
	return out;
}

/* One call, so that with O_APPEND the line is whole whoever else writes. */
CHILD_CODE static void
child_log(struct start *s)
{
	const struct proc_spawn *w = s->what;
	char pid[NUMBER_TEXT], ticks[NUMBER_TEXT];
	struct iovec parts[5];
	size_t whole = 0;
	unsigned i;
	long n;

	parts[0] = child_borrow(&w->log_before);
	parts[1] = child_decimal((uint64_t)s->pid, pid);
	parts[2] = child_borrow(&w->log_between);
	parts[3] = child_decimal((uint64_t)s->start_ticks, ticks);
	parts[4] = child_borrow(&w->log_after);
	for (i = 0; i < 5; i++)
		whole += parts[i].iov_len;
	n = syscall(SYS_writev, w->log_fd, parts, 5);
	child_check(s, STEP_LOG, n);
	/* A regular file takes less only when there is no room for more. */
	if ((size_t)n != whole)
		child_fail(s, STEP_LOG, ENOSPC);
}

/* Whether another entry's target overwrites the source of entry i. */
CHILD_CODE static bool
child_fd_in_way(const struct proc_spawn *w, unsigned i)
{
	unsigned k;

	for (k = 0; k < w->nfds; k++)
		if (k != i && w->fds[k].to == w->fds[i].from)
			return true;
	return false;
}

CHILD_CODE static bool
child_fd_named(const struct proc_spawn *w, int to)
{
	unsigned k;

	for (k = 0; k < w->nfds; k++)
		if (w->fds[k].to == to)
			return true;
	return false;
}

/* Sources in the way of a target are first moved above all targets; then each goes to its place. */
CHILD_CODE static void
child_map_fds(struct start *s)
{
	const struct proc_spawn *w = s->what;
	int from[PROC_MAX_FDS];
	unsigned i;
	long fd;
	int to;

	/* Ours are close-on-exec from birth; those we inherited ourselves need not be. A kernel
	 * without the call (before 5.11) leaves it at that. */
	syscall(SYS_close_range, FIRST_NOT_STANDARD, ~0U, CLOSE_RANGE_CLOEXEC);
	for (i = 0; i < w->nfds; i++) {
		from[i] = w->fds[i].from;
		if (from[i] != w->fds[i].to && child_fd_in_way(w, i)) {
			fd = syscall(SYS_fcntl, from[i], F_DUPFD_CLOEXEC, s->above_fds);
			child_check(s, STEP_FDS, fd);
			from[i] = (int)fd;
		}
	}
	for (i = 0; i < w->nfds; i++) {
		if (from[i] == w->fds[i].to)
			fd = syscall(SYS_fcntl, from[i], F_SETFD, 0);
		else
			fd = syscall(SYS_dup3, from[i], w->fds[i].to, 0);
		child_check(s, STEP_FDS, fd);
	}
	/* A program whose first open file becomes its standard output writes into it. */
	for (to = 0; to < FIRST_NOT_STANDARD; to++) {
		if (child_fd_named(w, to))
			continue;
		syscall(SYS_close, to);
		fd = syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR, 0);
		child_check(s, STEP_FDS, fd);
		if (fd != to) {
			child_check(s, STEP_FDS, syscall(SYS_dup3, fd, to, 0));
			syscall(SYS_close, fd);
		}
	}
}

CHILD_CODE static int
child_main(void *arg)
{
	struct start *s = arg;
	const struct proc_spawn *w = s->what;
	unsigned i;

	child_place(s);
	child_identify(s);
	/* All are blocked until the end. */
	child_reset_signals(s);
	/* The line before the mapping, which may put something else at log_fd's number; and before
	 * the limits, of which one is the size of files. */
	if (w->log_fd >= 0)
		child_log(s);
	child_map_fds(s);
	for (i = 0; i < w->nrlimits; i++)
		child_check(s, STEP_RLIMIT,
		    syscall(SYS_prlimit64, 0, s->resources[i], &s->rlimits[i], NULL));
	child_unblock_signals(s);
	syscall(SYS_execve, s->path, w->argv, w->envp);
	child_fail(s, STEP_EXECUTE, errno);
	return 0;
}

/* ---- The parent ---- */

static int
fail_at(struct proc_failure *failure, enum step step, int sys)
{
	if (failure != NULL)
		*failure = (struct proc_failure){step_names[step], sys};
	return -1;
}

/* What cannot be the world's doing. */
static void
assert_sane(const struct proc_spawn *w)
{
	unsigned i, k;

	assert(w->argv != NULL && w->argv[0] != NULL && w->envp != NULL && w->path != NULL);
	assert(w->nfds <= PROC_MAX_FDS && w->nrlimits <= PROC_MAX_RLIMITS);
	for (i = 0; i < w->nfds; i++) {
		assert(w->fds[i].from >= 0 && w->fds[i].to >= 0);
		for (k = 0; k < i; k++)
			assert(w->fds[i].to != w->fds[k].to);
	}
}

static uint64_t
widen_limit(rlim_t value)
{
	return value == RLIM_INFINITY ? RLIM64_INFINITY : (uint64_t)value;
}

static void
fill_plan(struct start *s, const struct proc_spawn *w)
{
	unsigned i;

	s->what = w;
	s->above_fds = FIRST_NOT_STANDARD;
	for (i = 0; i < w->nfds; i++)
		if (w->fds[i].to >= s->above_fds)
			s->above_fds = w->fds[i].to + 1;
	for (i = 0; i < w->nrlimits; i++) {
		s->resources[i] = w->rlimits[i].resource;
		s->rlimits[i].rlim_cur = widen_limit(w->rlimits[i].value.rlim_cur);
		s->rlimits[i].rlim_max = widen_limit(w->rlimits[i].value.rlim_max);
	}
}

/* An empty part is the current directory. */
static bool
has_relative_part(const char *search)
{
	for (; search != NULL; search = strchr(search, ':')) {
		search += search[0] == ':';
		if (search[0] != '/')
			return true;
	}
	return false;
}

/* Where the path itself, or a relative part of the search path, begins there. */
static bool
is_looked_up_in_cwd(const struct proc_spawn *w)
{
	if (strchr(w->path, '/') != NULL)
		return w->path[0] != '/';
	return has_relative_part(w->search_path);
}

static int
fail_at_cwd(const struct proc_spawn *w, int sys, struct err *e)
{
	return err_sys(e, ERR_ENVIRONMENT, sys, "cannot change to directory \"%s\"", w->cwd);
}

/* The directory is opened here where something is looked up in it; then the child goes there by handle,
 * and else by name. *own says that the descriptor is ours to close. */
static int
open_cwd(struct start *s, int *own, struct proc_failure *failure, struct err *e)
{
	const struct proc_spawn *w = s->what;

	*own = -1;
	s->cwd_fd = w->cwd_fd;
	if (w->cwd == NULL)
		return 0;
	if (w->cwd_fd < 0 && !is_looked_up_in_cwd(w)) {
		s->cwd = w->cwd;
		return 0;
	}
	*own = openat(w->cwd_fd >= 0 ? w->cwd_fd : AT_FDCWD, w->cwd,
	    O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*own < 0) {
		fail_at(failure, STEP_CHDIR, errno);
		return fail_at_cwd(w, errno, e);
	}
	s->cwd_fd = *own;
	return 0;
}

/* The whole map below the stack's first pages is a guard. */
static void *
map_stack(size_t *size)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *at;

	*size = CHILD_STACK + page;
	at = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (at == MAP_FAILED)
		return NULL;
	if (mprotect(at, page, PROT_NONE) != 0) {
		munmap(at, *size);
		return NULL;
	}
	return at;
}

/* One stack is kept for the next start: to map it anew costs more than the rest of the parent's part. */
static _Atomic(char *) spare_stack;

static char *
take_stack(size_t *size)
{
	char *at = atomic_exchange(&spare_stack, NULL);

	*size = CHILD_STACK + (size_t)sysconf(_SC_PAGESIZE);
	return at != NULL ? at : map_stack(size);
}

static void
give_stack(char *at, size_t size)
{
	char *none = NULL;

	if (!atomic_compare_exchange_strong(&spare_stack, &none, at))
		munmap(at, size);
}

/*
 * clone3(2), whose CLONE_CLEAR_SIGHAND spares a system call for each signal. The C library offers no
 * function for it that may be called, and one that returns twice cannot change the stack; so the few
 * instructions that follow the call in the child stand here. -ENOSYS where they are not known.
 */
static long
clone3_child(struct clone_args *args, struct start *s)
{
#if defined(__x86_64__)
	register int (*run)(void *) __asm__("r8") = child_main;
	register struct start *arg __asm__("r9") = s;
	long result;

	__asm__ volatile("syscall\n\t"
			 "testq %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xorl %%ebp, %%ebp\n\t"
			 "movq %%r9, %%rdi\n\t"
			 "callq *%%r8\n\t"
			 "ud2\n"
			 "1:"
			 : "=a"(result)
			 : "0"((long)SYS_clone3), "D"(args), "S"(sizeof(*args)), "r"(run), "r"(arg)
			 : "rcx", "r11", "memory", "cc");
	return result;
#elif defined(__aarch64__)
	register long number __asm__("x8") = SYS_clone3;
	register struct clone_args *first __asm__("x0") = args;
	register size_t second __asm__("x1") = sizeof(*args);
	register int (*run)(void *) __asm__("x10") = child_main;
	register struct start *arg __asm__("x11") = s;

	__asm__ volatile("svc #0\n\t"
			 "cbnz x0, 1f\n\t"
			 "mov x29, xzr\n\t"
			 "mov x0, x11\n\t"
			 "blr x10\n\t"
			 "brk #0\n"
			 "1:"
			 : "+r"(first)
			 : "r"(second), "r"(number), "r"(run), "r"(arg)
			 : "memory", "cc");
	return (long)first;
#else
	(void)args;
	(void)s;
	return -ENOSYS;
#endif
}

/* Nobody can ignore it: its bit says that the others were looked at. */
#define LOOKED_AT (UINT64_C(1) << (SIGKILL - 1))

/* Signals that are ignored, looked at once: at the first start. Of the two or three that are the C
 * library's own it answers nothing, so they count as ignored. */
static uint64_t
ignored_at_first(void)
{
	static _Atomic uint64_t known;
	uint64_t mask = atomic_load(&known);
	struct sigaction have;
	int sig;

	if (mask != 0)
		return mask & ~LOOKED_AT;
	for (sig = 1; sig < _NSIG; sig++)
		if (sigaction(sig, NULL, &have) != 0 || have.sa_handler == SIG_IGN)
			mask |= UINT64_C(1) << (sig - 1);
	mask &= ~LOOKED_AT;
	atomic_store(&known, mask | LOOKED_AT);
	return mask;
}

/* ---- The clock of start times ---- */

/* Whether the clock tells the start times that /proc shows is not taken for granted (a time namespace,
 * another system that stands in for Linux): the first process that is made within a tick shows it. */
enum trust { TRUST_UNKNOWN, TRUST_PROVED, TRUST_NONE };
static _Atomic(enum trust) clock_trust;

static void
look_at_clock(struct start *s)
{
	const long per_second = sysconf(_SC_CLK_TCK);
	const enum trust trust = atomic_load(&clock_trust);

	if (trust == TRUST_NONE || per_second <= 0 || NS_PER_S % per_second != 0)
		return;
	s->tick_ns = NS_PER_S / per_second;
	s->before_ns = boot_clock();
	s->reckon = trust == TRUST_PROVED && s->before_ns > CLOCK_SLACK_NS && s->handlers_cleared;
}

static void
judge_clock(const struct start *s)
{
	int64_t after;

	if (s->tick_ns == 0 || atomic_load(&clock_trust) != TRUST_UNKNOWN)
		return;
	after = boot_clock();
	if (s->before_ns < 0 || after < s->before_ns ||
	    s->start_ticks < s->before_ns / s->tick_ns || s->start_ticks > after / s->tick_ns)
		atomic_store(&clock_trust, TRUST_NONE);
	else if (s->before_ns / s->tick_ns == after / s->tick_ns)
		atomic_store(&clock_trust, TRUST_PROVED);
}

/* False where the kernel (before 5.5) or a filter of system calls refuses it. */
static bool
try_clone3(struct start *s, char *stack, size_t size, int *pidfd, int *pid)
{
	static atomic_bool refused;
	struct clone_args args = {
		.flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD | CLONE_CLEAR_SIGHAND,
		.pidfd = (uintptr_t)pidfd,
		.exit_signal = SIGCHLD,
		.stack = (uintptr_t)stack,
		.stack_size = size,
	};
	long result;

	if (atomic_load(&refused))
		return false;
	s->handlers_cleared = true;
	s->ignored = ignored_at_first();
	look_at_clock(s);
	result = clone3_child(&args, s);
	if (result == -ENOSYS || result == -EINVAL || result == -EPERM) {
		atomic_store(&refused, true);
		s->handlers_cleared = false;
		s->reckon = false;
		return false;
	}
	if (result < 0)
		errno = (int)-result;
	*pid = result < 0 ? -1 : (int)result;
	return true;
}

/* With every signal blocked around it, also the two that the C library keeps. */
static int
clone_child(struct start *s, char *stack, size_t size, int *pidfd)
{
	unsigned long all[2] = {~0UL, ~0UL}, before[2] = {0, 0};
	int pid, sys;

	syscall(SYS_rt_sigprocmask, SIG_SETMASK, all, before, KERNEL_SIGSET);
	if (!try_clone3(s, stack, size, pidfd, &pid))
		pid = clone(child_main, stack + size, CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, s,
		    pidfd);
	sys = errno;
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, before, NULL, KERNEL_SIGSET);
	errno = sys;
	return pid;
}

static void
reap(int *pidfd)
{
	siginfo_t info;

	while (waitid(P_PIDFD, (id_t)*pidfd, &info, WEXITED) != 0 && errno == EINTR)
		continue;
	fd_close(pidfd);
}

static enum err_code
code_of_failure(enum step step, int sys)
{
	if (sys == ENOMEM)
		return ERR_NOMEM;
	switch (step) {
	case STEP_EXECUTE:
	case STEP_CHDIR:
	case STEP_NICE:
	case STEP_RLIMIT:
		return ERR_ENVIRONMENT;
	case STEP_NONE:
	case STEP_SIGNALS:
	case STEP_PARENT:
	case STEP_SESSION:
	case STEP_GROUP:
	case STEP_IDENTIFY:
	case STEP_LOG:
	case STEP_FDS:
	case STEP_CLONE:
	case STEP_PREPARE:
	case STEP_COUNT:
		break;
	}
	return ERR_IO;
}

static int
report(const struct start *s, struct err *e)
{
	const struct proc_spawn *w = s->what;

	if (s->failed == STEP_CHDIR && w->cwd != NULL)
		return fail_at_cwd(w, s->sys, e);
	if (s->failed != STEP_EXECUTE)
		/* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): each step has its words */
		return err_sys(e, code_of_failure(s->failed, s->sys), s->sys,
		    "cannot start \"%s\": cannot %s", w->path, step_names[s->failed]);
	if (s->sys == ENOEXEC) {
		err_sys(e, ERR_ENVIRONMENT, s->sys, "cannot execute \"%s\"", s->path);
		return err_advice(e, "a script needs a first line such as #!/bin/sh");
	}
	err_sys(e, code_of_failure(s->failed, s->sys), s->sys, "cannot execute \"%s\"", w->path);
	if (s->sys == E2BIG)
		err_advice(e, "arguments and environment are too large together: pass data by file");
	/* The file is there, or the look-up would have failed: its interpreter is missing. */
	if (s->sys == ENOENT &&
	    faccessat(s->cwd_fd >= 0 ? s->cwd_fd : AT_FDCWD, s->path, F_OK, 0) == 0)
		err_advice(e, "%s exists; the interpreter in its first line does not", s->path);
	return -1;
}

static int
run_clone(struct start *s, struct proc_child *out, struct proc_failure *failure, struct err *e)
{
	int pidfd = -1, pid;
	size_t size;
	char *stack = take_stack(&size);

	if (stack == NULL) {
		fail_at(failure, STEP_PREPARE, errno);
		return err_nomem(e);
	}
	pid = clone_child(s, stack, size, &pidfd);
	if (pid < 0) {
		s->sys = errno;
		s->failed = STEP_CLONE;
	}
	give_stack(stack, size);
	if (s->failed != STEP_NONE) {
		if (pid > 0)
			reap(&pidfd);
		fail_at(failure, s->failed, s->sys);
		return report(s, e);
	}
	judge_clock(s);
	*out = (struct proc_child){{(pid_t)pid, (uint64_t)s->start_ticks}, pidfd};
	return 0;
}

int
proc_start(const struct proc_spawn *what, struct proc_child *out, struct proc_failure *failure,
    struct err *e)
{
	struct start s = {.failed = STEP_NONE};
	struct buf found = {0};
	int own, result = -1;

	assert_sane(what);
	fill_plan(&s, what);
	if (open_cwd(&s, &own, failure, e) != 0)
		return -1;
	s.path = what->path;
	if (strchr(what->path, '/') == NULL) {
		if (proc_find_at(s.cwd_fd >= 0 ? s.cwd_fd : AT_FDCWD, what->path, what->search_path,
			&found, e) != 0) {
			fail_at(failure, STEP_EXECUTE, errno);
			goto out;
		}
		s.path = buf_text(&found);
	}
	result = run_clone(&s, out, failure, e);
out:
	buf_clear(&found);
	fd_close(&own);
	return result;
}
