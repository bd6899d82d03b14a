/*
 * A table of file system calls for tests: it makes the real calls, counts and records them, and at
 * a chosen one fails, writes less, ends the process or calls a hook (which may swap files).
 *
 *	struct fault_fs *f = fault_fs_new();
 *	fault_fs_add(f, (struct fault){.kind = FAULT_FAIL, .seam = "journal.append.fsync",
 *	    .call = 2, .sys = EIO});
 *	... code under test with &f->ops ...
 *	assert_int_equal(fault_fs_calls(f, "journal.append.write"), 2);
 *	fault_fs_free(f);
 *
 * State lies in shared memory: what a forked child did, up to its end by FAULT_KILL_*, can be read
 * in the parent. Threads may use it at the same time.
 */
#ifndef FLOWSUP_TEST_FAULT_FS_H
#define FLOWSUP_TEST_FAULT_FS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "flowsup/fs.h"

enum { FAULT_MAX = 8, FAULT_SEAMS = 128, FAULT_CALLS = 8192, FAULT_PATH = 80 };

enum fault_op {
	FAULT_OPENAT,
	FAULT_READ,
	FAULT_PREAD,
	FAULT_WRITE,
	FAULT_FSYNC,
	FAULT_FTRUNCATE,
	FAULT_FSTAT,
	FAULT_FSTATAT,
	FAULT_RENAMEAT2,
	FAULT_UNLINKAT,
	FAULT_MKDIRAT,
	FAULT_CLOSE,
	FAULT_OPS
};

/* One call as it was made. */
struct fault_call {
	enum fault_op op;
	const char *what; /* the seam */
	int fd;		  /* or the directory */
	char path[FAULT_PATH];	/* cut; for renameat2 the source */
	char to[FAULT_PATH];	/* renameat2's target */
	long result;
	int sys; /* errno when result is -1 */
};

enum fault_kind {
	FAULT_NONE,
	FAULT_FAIL,	   /* -1 with sys, the call is not made */
	FAULT_FAIL_AFTER,  /* the call is made, but -1 with sys is said (close: closed) */
	FAULT_SHORT,	   /* read, pread, write: at most `bytes` */
	FAULT_TEAR,	   /* write: at most `bytes`, then SIGKILL to ourselves */
	FAULT_SPACE,	   /* write: `bytes` in all calls from this one on, then sys (ENOSPC) */
	FAULT_KILL_BEFORE, /* SIGKILL to ourselves */
	FAULT_KILL_AFTER,
	FAULT_HOOK_BEFORE,
	FAULT_HOOK_AFTER,
};

struct fault {
	enum fault_kind kind;
	const char *seam; /* NULL: at any */
	unsigned call;	  /* the how-manieth call there, from 1 (0 is 1) */
	bool persistent;  /* also at every later one */
	int sys;
	size_t bytes;
	void (*hook)(void *arg, const struct fault_call *call);
	void *arg;
	/* kept by fault_fs */
	unsigned seen;
	bool fired;
};

struct fault_seam {
	const char *what;
	unsigned calls;
	size_t bytes; /* read or written */
};

struct fault_fs {
	struct fs_ops ops; /* first: the functions find their state by it */
	pthread_mutex_t lock;
	struct fault faults[FAULT_MAX];
	unsigned nfaults;
	struct fault_seam seams[FAULT_SEAMS];
	unsigned nseams;
	unsigned total;			      /* calls made */
	struct fault_call calls[FAULT_CALLS]; /* the first of them */
};

struct fault_fs *fault_fs_new(void);
void fault_fs_free(struct fault_fs *f);
/* Adds a fault. Counting for it starts now. */
void fault_fs_add(struct fault_fs *f, struct fault fault);
/* Drops all faults; counts and records stay. */
void fault_fs_disarm(struct fault_fs *f);
/* Drops faults, counts and records. */
void fault_fs_reset(struct fault_fs *f);
/* Whether any fault has struck. */
bool fault_fs_fired(const struct fault_fs *f);
/* Calls and bytes at a seam; 0 for one that was never met. */
unsigned fault_fs_calls(const struct fault_fs *f, const char *seam);
size_t fault_fs_bytes(const struct fault_fs *f, const char *seam);
/* "fsync journal.append.fsync": one line a recorded call, for comparing orders. */
void fault_fs_sequence(const struct fault_fs *f, struct buf *to);
const char *fault_op_name(enum fault_op op);

#endif
