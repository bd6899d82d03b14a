/* How processes end; and a few facts about this one. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc_private.h"

static void
fill_end(struct proc_end *out, const siginfo_t *info, const struct rusage *usage)
{
	*out = (struct proc_end){.known = true, .code = info->si_status, .usage = *usage};
	out->signaled = info->si_code == CLD_KILLED || info->si_code == CLD_DUMPED;
	out->dumped = info->si_code == CLD_DUMPED;
}

int
proc_wait(int pidfd, bool peek, struct proc_end *out, struct err *e)
{
	const int how = WEXITED | WNOHANG | (peek ? WNOWAIT : 0);
	siginfo_t info = {0};
	struct rusage usage = {0};
	long result;

	/* By number: the C library's waitid(3) leaves out the usage. */
	do
		result = syscall(SYS_waitid, P_PIDFD, pidfd, &info, how, &usage);
	while (result != 0 && errno == EINTR);
	if (result != 0 && errno == ECHILD)
		return err_set(e, ERR_NOTFOUND, "not a child of ours, or already reaped");
	if (result != 0)
		return err_sys(e, ERR_IO, errno, "cannot wait for a process");
	if (info.si_pid == 0)
		return 0;
	fill_end(out, &info, &usage);
	return 1;
}

/* The kernel's struct pidfd_info in its first size; headers older than the kernel lack it. */
struct reaped_info {
	uint64_t mask, cgroup;
	uint32_t pid, tgid, ppid, ids[8];
	int32_t exit_code;
};
_Static_assert(sizeof(struct reaped_info) == 64, "the first size of struct pidfd_info");
#define REAPED_GET _IOWR(0xFF, 11, struct reaped_info)
#define REAPED_EXIT (UINT64_C(1) << 3)

int
proc_end_of_reaped(int pidfd, struct proc_end *out)
{
	struct reaped_info info = {.mask = REAPED_EXIT};

	if (ioctl(pidfd, REAPED_GET, &info) != 0 || (info.mask & REAPED_EXIT) == 0)
		return 0;
	*out = (struct proc_end){.known = true, .signaled = WIFSIGNALED(info.exit_code)};
	out->code = out->signaled ? WTERMSIG(info.exit_code) : WEXITSTATUS(info.exit_code);
	out->dumped = out->signaled && WCOREDUMP(info.exit_code);
	return 1;
}

/* Signals of Linux on the usual machines; numbers differ between them, so by macro. */
static const char *const signal_names[] = {
#define X(name) [name] = #name,
    X(SIGHUP) X(SIGINT) X(SIGQUIT) X(SIGILL) X(SIGTRAP) X(SIGABRT) X(SIGBUS) X(SIGFPE) X(SIGKILL)
    X(SIGUSR1) X(SIGSEGV) X(SIGUSR2) X(SIGPIPE) X(SIGALRM) X(SIGTERM) X(SIGCHLD) X(SIGCONT)
    X(SIGSTOP) X(SIGTSTP) X(SIGTTIN) X(SIGTTOU) X(SIGURG) X(SIGXCPU) X(SIGXFSZ) X(SIGVTALRM)
    X(SIGPROF) X(SIGWINCH) X(SIGIO) X(SIGPWR) X(SIGSYS)
#undef X
};

/* Those without a name, by number. */
#define NUMBERS(X)                                                                                 \
	X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)      \
	X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23) X(24) X(25) X(26) X(27) X(28) X(29)        \
	X(30) X(31) X(32) X(33) X(34) X(35) X(36) X(37) X(38) X(39) X(40) X(41) X(42) X(43)        \
	X(44) X(45) X(46) X(47) X(48) X(49) X(50) X(51) X(52) X(53) X(54) X(55) X(56) X(57)        \
	X(58) X(59) X(60) X(61) X(62) X(63) X(64)

static const char *const signal_numbers[] = {
#define X(n) "signal " #n,
    NUMBERS(X)
#undef X
};

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

const char *
proc_signal_name(int sig)
{
	if (sig > 0 && sig < COUNT(signal_names) && signal_names[sig] != NULL)
		return signal_names[sig];
	return sig >= 0 && sig < COUNT(signal_numbers) ? signal_numbers[sig] : "unknown signal";
}

int
proc_signal_group(pid_t group, int sig, struct err *e)
{
	/* 0 is our own group and 1, negated, everybody we may signal. */
	if (group <= 1 || group == getpgrp())
		return err_set(e, ERR_INTERNAL, "refused to signal process group %jd",
		    (intmax_t)group);
	if (kill(-group, sig) == 0 || errno == ESRCH)
		return 0;
	return err_sys(e, errno == EPERM ? ERR_PERMISSION : ERR_IO, errno,
	    "cannot send %s to process group %jd", proc_signal_name(sig), (intmax_t)group);
}

/* The link's text is a path without links, so that ".." can be taken by cutting. */
static void
cut_component(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash != NULL)
		*slash = '\0';
}

int
proc_relative_to_self(const char *relative, struct buf *out, struct err *e)
{
	enum { PATH_ROOM = 4096 };
	char path[PATH_ROOM];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path));

	if (n < 0)
		return err_sys(e, ERR_ENVIRONMENT, errno, "/proc/self/exe");
	if ((size_t)n >= sizeof(path))
		return err_set(e, ERR_ENVIRONMENT, "/proc/self/exe: too long");
	path[n] = '\0';
	cut_component(path);
	while (strncmp(relative, "../", 3) == 0) {
		cut_component(path);
		relative += 3;
	}
	buf_puts(out, path);
	buf_putc(out, '/');
	buf_puts(out, relative);
	return buf_ok(out, e);
}

int
proc_set_subreaper(struct err *e)
{
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
		return err_sys(e, ERR_ENVIRONMENT, errno, "cannot become a subreaper");
	return 0;
}
