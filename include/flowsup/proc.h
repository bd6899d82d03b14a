/* Processes: starting one well, knowing one again, ending what belongs to one. */
#ifndef FLOWSUP_PROC_H
#define FLOWSUP_PROC_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "flowsup/buf.h"
#include "flowsup/err.h"

enum { BOOT_ID_TEXT = 37, HOST_TEXT = 65 };

/* Where a pid means something: host name, boot, pid namespace. */
struct proc_place {
	char host[HOST_TEXT];
	char boot_id[BOOT_ID_TEXT]; /* /proc/sys/kernel/random/boot_id */
	uint64_t pid_namespace;	    /* inode of /proc/self/ns/pid */
};
int proc_place_here(struct proc_place *out, struct err *e);
/* "host boot-id pid-namespace", and back; false when it is none. */
enum { PROC_PLACE_TEXT = HOST_TEXT + BOOT_ID_TEXT + 24 };
void proc_place_text(const struct proc_place *p, char to[PROC_PLACE_TEXT]);
bool proc_place_parse(const char *text, struct proc_place *out);
/*
 * Whether what ran there can be judged here: this boot and pid namespace, whatever the host is called
 * now, or an earlier boot of this host (*other_boot): nothing of that runs any more.
 */
bool proc_place_is(const struct proc_place *there, const struct proc_place *here, bool *other_boot);

/* A process that can be told from a later one with the same pid. proc(5), field 22 of stat. */
struct proc_id {
	pid_t pid;
	uint64_t start_ticks; /* since boot */
};
/* ERR_NOTFOUND when there is none (a zombie is found). */
int proc_identify(pid_t pid, struct proc_id *out, struct err *e);
bool proc_is_alive(struct proc_id id); /* exists with this start time and is no zombie */
/* One line of /proc/PID/stat. */
struct proc_stat {
	pid_t pid, ppid, pgrp, session;
	char state;
	unsigned threads;
	uint64_t start_ticks;
	uint64_t cpu_ticks; /* user + system, own */
};
int proc_stat_read(pid_t pid, struct proc_stat *out, struct err *e);
/* Has ended and waits to be reaped. A process whose first thread has left is none. */
bool proc_stat_is_zombie(const struct proc_stat *st);

/* pidfd_open(2), close-on-exec; checks the start time after opening. -1 with ERR_NOTFOUND. */
int proc_open(struct proc_id id, struct err *e);
/* pidfd_send_signal(2). 0 also when it has already ended. */
int proc_signal(int pidfd, int sig, struct err *e);
/*
 * SIGSTOP, and waits until none of its threads runs any more, at a moment when it has no file locked for
 * writing (fcntl(2), as SQLite does): who stands in the middle of a change keeps everybody out. Blocks for
 * up to a second or so. -1, and it goes on: ERR_NOTFOUND (it has ended), ERR_TIMEOUT, ERR_PERMISSION, ERR_IO.
 */
int proc_stop(struct proc_id id, int pidfd, struct err *e);

/* ---- Starting: what the child does, as data ---- */

enum { PROC_MAX_FDS = 10, PROC_MAX_RLIMITS = 8 };

struct proc_fd {
	int from; /* descriptor in the parent */
	int to;	  /* number in the child */
};
struct proc_rlimit {
	int resource;
	struct rlimit value;
};
struct proc_spawn {
	const char *path;	/* searched in search_path when it holds no slash */
	const char *search_path;/* value of PATH for the look-up; NULL: the system's default */
	char *const *argv;
	char *const *envp;
	int cwd_fd;		/* fchdir, or -1 */
	const char *cwd;	/* chdir (from cwd_fd), or NULL; both absent: inherited */
	bool new_session;	/* setsid: own session and process group */
	bool new_group;		/* setpgid(0, 0) */
	/* Every other descriptor is closed by exec; of 0, 1 and 2 those not named lead to /dev/null. */
	struct proc_fd fds[PROC_MAX_FDS];
	unsigned nfds;
	mode_t umask;
	bool set_umask;
	int nice; /* setpriority(2): the value, not a difference */
	bool set_nice;
	struct proc_rlimit rlimits[PROC_MAX_RLIMITS];
	unsigned nrlimits;
	pid_t die_with;		/* PR_SET_PDEATHSIG SIGKILL unless our parent is not this pid; 0: no */
	/*
	 * A line the child writes to log_fd by one write(2) before exec (O_APPEND), or -1. The text is
	 * log_before, then the decimal pid, log_between, the start time in ticks, log_after. All
	 * borrowed. A failed write stops the start and is reported like an exec error.
	 */
	int log_fd;
	struct slice log_before, log_between, log_after;
};
#define PROC_SPAWN_INIT                                                                            \
	{                                                                                          \
		.cwd_fd = -1, .log_fd = -1                                                         \
	}

/*
 * For a program whose output goes into a file in memory: no file that it writes grows beyond `bytes`
 * (setrlimit(2), RLIMIT_FSIZE: SIGXFSZ). A limit that is lower already stays.
 */
void proc_spawn_limit_files(struct proc_spawn *s, rlim_t bytes);

struct proc_child {
	struct proc_id id;
	int pidfd; /* close-on-exec, caller closes */
};

/* At which step a start failed; step names are for messages: "change directory", "execute", ... */
struct proc_failure {
	const char *step;
	int sys;
};

/*
 * Starts a process at vfork speed: clone(CLONE_VM|CLONE_VFORK|CLONE_PIDFD); between it and exec
 * only async-signal-safe calls. In the child all signals have their default action and none is
 * blocked (signals that the caller itself ignores only after its first start may stay so). Any thread
 * may call it; die_with follows that thread. Returns 0 once the program was executed, or
 * -1 with the exact step that failed in *failure (may be NULL) and e = ERR_ENVIRONMENT (no such
 * program or directory, not executable), ERR_IO or ERR_NOMEM; the child is then already reaped.
 */
int proc_start(const struct proc_spawn *what, struct proc_child *out, struct proc_failure *failure,
    struct err *e);
/* The look-up that proc_start does, alone: full path to *out, or -1 ERR_ENVIRONMENT with a
 * message that names the nearest program of the search path in its hint where there is one. */
int proc_find_program(const char *name, const char *search_path, struct buf *out, struct err *e);
/* The same; what is relative lies below the directory `base`. */
int proc_find_at(int base, const char *name, const char *search_path, struct buf *out, struct err *e);

/* ---- Ending ---- */

/* killpg(2) with care: refuses 0, 1 and our own group (ERR_INTERNAL). 0 when the group has gone. */
int proc_signal_group(pid_t group, int sig, struct err *e);
/* Calls each for every live process whose pgrp is group, or whose environment holds every one of
 * the `marks` ("NAME=value", or "NAME=" for any value; at most 8) — proc(5). each gets a pidfd that
 * it does not own and ends the walk by a result other than 0. Returns how many were visited, or -1.
 * Neither zombies nor the caller are visited. What starts during a walk may be missed: repeat until
 * nothing new comes. */
typedef int proc_each(void *arg, const struct proc_stat *st, int pidfd);
int proc_each_in_group(pid_t group, proc_each *each, void *arg, struct err *e);
int proc_each_marked(const char *const *marks, unsigned nmarks, proc_each *each, void *arg,
    struct err *e);
/* The same for processes of this user whose command line is exactly these words. */
int proc_each_command(const char *const *words, proc_each *each, void *arg, struct err *e);
/* Whether a process stands apart: it and whatever descends from it belong to nobody above it. */
typedef bool proc_apart(pid_t pid);
/* Direct and indirect descendants of `ancestor`, but for what stands apart; apart may be NULL. */
int proc_each_descendant(pid_t ancestor, proc_apart *apart, proc_each *each, void *arg, struct err *e);
/* Children of ours that have ended and wait to be reaped; each may do that. 0, or -1. */
int proc_each_ended_child(void (*each)(void *arg, pid_t pid), void *arg, struct err *e);
/*
 * Children of ours, also those that have ended: as many as there are when it begins, where none is reaped
 * meanwhile, and this process has one thread. -1 with ERR_ENVIRONMENT: the kernel lists none (CONFIG_PROC_CHILDREN).
 */
int proc_each_child(void (*each)(void *arg, pid_t pid), void *arg, struct err *e);
/*
 * The process groups and the descendants of many, by one walk: each is told whose a process is, as an
 * index into leaders. One that is not there any more, not as a zombie either, has none. What is in
 * the group of one and descends from another is the first one's. What stands apart (apart may be NULL)
 * is told of its group alone.
 */
typedef int proc_of_leader(void *arg, size_t leader, const struct proc_stat *st, int pidfd);
int proc_each_of_leaders(const struct proc_id *leaders, size_t n, proc_apart *apart, proc_of_leader *each,
    void *arg, struct err *e);
/*
 * All of one operation: the session and the group of its leader as long as that one is there, also as a
 * zombie, what bears its marks, and whatever descends from one of these.
 */
struct proc_operation {
	struct proc_id leader;
	char run[48], op[96], attempt[32]; /* the marks */
};
/* A name too long for any run or operation is found in no environment. */
void proc_operation_init(struct proc_operation *of, struct proc_id leader, const char *run_id, const char *op,
    unsigned attempt);
int proc_each_of_operation(const struct proc_operation *of, proc_each *each, void *arg, struct err *e);
/* The words of a command line of this user's, each with its NUL; -1 where there is none or it has more bytes. */
ssize_t proc_command(pid_t pid, char *to, size_t size);
/* Whether `pid` has an ancestor (or itself) with mark in its environment. */
bool proc_descends_from_marked(pid_t pid, const char *mark);
/* Whether `pid` has an ancestor of this user whose command line begins with the word `name`. */
bool proc_descends_from_called(pid_t pid, const char *name);

/* How a process ended, from waitid(2). */
struct proc_end {
	bool known;
	bool signaled;
	int code;	/* exit status or signal number */
	bool dumped;
	struct rusage usage;
};
/* WEXITED|WNOHANG(|WNOWAIT with peek) by pidfd. 1: ended, 0: not yet, -1 error (ECHILD ->
 * ERR_NOTFOUND). */
int proc_wait(int pidfd, bool peek, struct proc_end *out, struct err *e);
/*
 * What the kernel kept of a process that somebody else has reaped (PIDFD_GET_INFO, Linux 6.15): only
 * where the pidfd was opened while it was there. 1: *out says how it ended (usage is not known); 0: it
 * is not over, or the kernel does not tell.
 */
int proc_end_of_reaped(int pidfd, struct proc_end *out);
const char *proc_signal_name(int sig); /* "SIGTERM"; "signal 42" from a static table otherwise */

/* ---- Silence ---- */

/* Since when an operation gives no sign of life; since_ns is set by the caller first. */
struct proc_life {
	uint64_t bytes, cpu;
	int64_t since_ns; /* CLOCK_MONOTONIC */
};
/*
 * Notes its output so far (bytes) and, when that has not grown, the processor time of all its processes:
 * only then /proc is walked. of NULL: output alone counts. True: it has given a sign; also when it could
 * not be looked at.
 */
bool proc_life_look(struct proc_life *l, uint64_t bytes, const struct proc_operation *of);
/* When to look again, so that its silence is noticed when it is silence_ns long. */
int64_t proc_life_next(const struct proc_life *l, int64_t silence_ns);

/* ---- This program itself ---- */

/* Absolute path of <executable's directory>/relative ("../libexec/flowsup/flowsup-worker"). */
int proc_relative_to_self(const char *relative, struct buf *out, struct err *e);
int proc_set_subreaper(struct err *e);

#endif
