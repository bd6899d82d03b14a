/*
 * The writer's process killed from outside at each of its system calls, before it and behind it,
 * from the first of the workload to the last: whatever thread makes it and whatever the call is,
 * also those that no table of functions sees (memory, locks, the event). The tracer counts the
 * calls of one thread and ends the process at the n-th, for n = 1 until a run comes to its end; then
 * a new process loads what is there, and writes. Waits for locks are counted apart: their number is
 * not the same in every run, and would move the others.
 */
#include "ckpt_workload.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NUMBERS = 1024, MOST_CALLS = 20000, CANNOT_TRACE = 77 };

/* The calls that change what is on the disk: each must have been cut before and behind. */
static const struct {
	long number;
	const char *name;
} needed[] = {
	{SYS_openat, "openat"}, {SYS_write, "write"}, {SYS_fsync, "fsync"}, {SYS_renameat2, "renameat2"},
	{SYS_unlinkat, "unlinkat"}, {SYS_mkdirat, "mkdirat"}, {SYS_close, "close"},
};

enum moment { BEFORE, BEHIND, MOMENTS };
enum who { LOOP, WRITER, THREADS };
enum what { LOCKS, OTHERS, KINDS };
static unsigned long killed_at[MOMENTS][NUMBERS];
static unsigned long prefixes[WORKLOAD_STEPS + 1], none;

/* One traced run. */
struct trace {
	pid_t pid;
	/* Where to end it: at this call of this kind of this thread. */
	enum who who;
	enum what what;
	enum moment moment;
	unsigned long kill_at;
	pid_t thread[THREADS]; /* as they came */
	unsigned long calls;   /* of that kind of that thread, begun */
	pid_t inside; /* the thread whose call it is, once it has begun */
	long number;  /* of that call */
	bool killed;
	int status;
};

static _Noreturn void
run_traced(const struct ckpt_options *o, struct outcome *out)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
		_exit(CANNOT_TRACE);
	raise(SIGSTOP);
	workload_run(o, 0, out);
	_exit(0);
}

static void
end_it(struct trace *t)
{
	t->killed = true;
	kill(t->pid, SIGKILL);
}

static bool
is_counted(struct trace *t, pid_t thread, long number)
{
	if (t->thread[LOOP] == 0)
		t->thread[LOOP] = thread;
	else if (t->thread[WRITER] == 0 && thread != t->thread[LOOP])
		t->thread[WRITER] = thread;
	return thread == t->thread[t->who] && (number == SYS_futex) == (t->what == LOCKS);
}

/* A thread stands before or behind a call. */
static void
at_call(struct trace *t, pid_t thread)
{
	struct __ptrace_syscall_info info = {0};

	if (t->killed)
		return;
	if (thread == t->inside) {
		end_it(t);
		return;
	}
	if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof(info), &info) <= 0)
		fail_msg("PTRACE_GET_SYSCALL_INFO: %s", strerror(errno));
	if (info.op != PTRACE_SYSCALL_INFO_ENTRY || !is_counted(t, thread, (long)info.entry.nr) ||
	    ++t->calls != t->kill_at)
		return;
	t->inside = thread;
	t->number = (long)info.entry.nr;
	if (t->moment == BEFORE)
		end_it(t);
}

/* Lets a stopped thread go on. One that was killed meanwhile is gone, which its end will say. */
static void
go_on(pid_t thread, int sig)
{
	if (ptrace(PTRACE_SYSCALL, thread, NULL, (void *)(intptr_t)sig) != 0 && errno != ESRCH)
		fail_msg("PTRACE_SYSCALL: %s", strerror(errno));
}

/* Every stop of every thread until the process is gone. */
static void
follow(struct trace *t)
{
	const int at_syscall = SIGTRAP | 0x80;
	int status, sig;
	pid_t thread;

	for (;;) {
		thread = waitpid(-1, &status, __WALL);
		if (thread < 0)
			fail_msg("waitpid: %s", strerror(errno));
		if (!WIFSTOPPED(status)) {
			if (thread != t->pid)
				continue;
			t->status = status;
			return;
		}
		sig = WSTOPSIG(status);
		if (sig == at_syscall)
			at_call(t, thread);
		/* A new thread begins with SIGSTOP, its parent's clone reports SIGTRAP. */
		if (sig == at_syscall || sig == SIGTRAP || sig == SIGSTOP)
			sig = 0;
		go_on(thread, sig);
	}
}

/* False where processes may not be traced. */
static bool
trace(struct trace *t, const struct ckpt_options *o, struct outcome *out)
{
	const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;
	int status;

	*out = (struct outcome){0};
	fflush(NULL);
	t->pid = fork();
	assert_true(t->pid >= 0);
	if (t->pid == 0)
		run_traced(o, out);
	assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_TRACE)
		return false;
	assert_true(WIFSTOPPED(status));
	assert_int_equal(ptrace(PTRACE_SETOPTIONS, t->pid, NULL, (void *)options), 0);
	go_on(t->pid, 0);
	follow(t);
	return true;
}

static void
judge(const struct fixture *fx, const struct trace *t, const struct outcome *out)
{
	char text[512] = "";
	int found = workload_judge_apart(fx, out, false, text);

	if (found == -1)
		fail_msg("killed %s call %lu (number %ld): %s (opened %d, acked %u)",
		    t->moment == BEFORE ? "before" : "behind", t->kill_at, t->number, text, out->opened,
		    out->acked);
	if (found >= 0)
		prefixes[found]++;
	else
		none++;
}

/* Kills at the n-th such call, for every n; returns how many there were, or 0 without tracing. */
static unsigned long
kill_at_each(struct fixture *fx, struct outcome *out, struct trace like)
{
	struct trace t = {.killed = true};
	struct ckpt_options o;
	unsigned long n;

	for (n = 1; t.killed; n++) {
		assert_in_range(n, 1, MOST_CALLS);
		fixture_again(fx);
		o = workload_options(fx, NULL);
		t = like;
		t.kill_at = n;
		if (!trace(&t, &o, out))
			return 0;
		if (t.killed && t.number >= 0 && t.number < NUMBERS)
			killed_at[t.moment][t.number]++;
		if (t.killed != WIFSIGNALED(t.status))
			fail_msg("call %lu: the writer ended by itself", n);
		judge(fx, &t, out);
	}
	assert_int_equal(out->acked, WORKLOAD_STEPS);
	return n - 2;
}

static unsigned long
kill_at_all(struct fixture *fx, struct outcome *out)
{
	struct trace like = {0};
	unsigned long kills = 0;
	int who, what, moment;

	for (who = 0; who < THREADS; who++)
		for (what = 0; what < KINDS; what++)
			for (moment = 0; moment < MOMENTS; moment++) {
				like.who = (enum who)who;
				like.what = (enum what)what;
				like.moment = (enum moment)moment;
				kills += kill_at_each(fx, out, like);
			}
	return kills;
}

static void
test_syscalls__killed_at_each(void **state)
{
	struct fixture fx;
	struct outcome *out = outcome_shared();
	unsigned long kills;
	size_t i;

	(void)state;
	fixture_make(&fx);
	workload_models();
	kills = kill_at_all(&fx, out);
	fixture_remove(&fx);
	workload_free();
	if (kills == 0) {
		print_message("# processes may not be traced here\n");
		skip();
	}
	print_message("# %lu kills; without a checkpoint %lu, with 0 to %d transitions", kills, none,
	    WORKLOAD_STEPS);
	for (i = 0; i <= WORKLOAD_STEPS; i++) {
		print_message(" %lu", prefixes[i]);
		assert_true(prefixes[i] > 0);
	}
	print_message("\n");
	for (i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		print_message("# %s: %lu before, %lu behind\n", needed[i].name,
		    killed_at[BEFORE][needed[i].number], killed_at[BEHIND][needed[i].number]);
		assert_true(killed_at[BEFORE][needed[i].number] > 0);
		assert_true(killed_at[BEHIND][needed[i].number] > 0);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_syscalls__killed_at_each),
};

int
main(void)
{
	use_fast_directory();
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("kill at each system call", tests, NULL, NULL);
}
