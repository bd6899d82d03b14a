/*
 * The fixed workload of the fault tests: five transitions with one compaction, each waited for, so
 * that the sequence of file operations is the same in every run.
 */
#ifndef FLOWSUP_TEST_CKPT_WORKLOAD_H
#define FLOWSUP_TEST_CKPT_WORKLOAD_H

#include "ckpt_fixture.h"
#include "fault_fs.h"

enum { WORKLOAD_STEPS = 5 };

/* What a run of the workload saw, as far as it came. Lies in shared memory where a child runs it. */
struct outcome {
	int version;
	bool opened, ended;
	unsigned admitted, acked;
	enum ckpt_health health;
	enum err_code code; /* of the last error, ERR_NONE when all is well */
	char msg[256];
};

/* The states after 0, 1, ... transitions. */
struct json *const *workload_models(void);
void workload_free(void);
struct ckpt_options workload_options(const struct fixture *fx, const struct fs_ops *fs);
/* Runs it. In trouble with storage a fresh base is asked for `tries` times at each step. */
void workload_run(const struct ckpt_options *o, unsigned tries, struct outcome *out);
/* The same in a child that ends by itself or by a signal; returns the wait status. */
int workload_fork(const struct ckpt_options *o, unsigned tries, struct outcome *shared);
/* An outcome in memory that a child can write to. */
struct outcome *outcome_shared(void);

/*
 * Loads what is there and judges it: -1 when it is not what the outcome promises, else how many
 * transitions are in it, or -2 when there is no checkpoint and none was promised. text explains.
 */
int workload_judge(int run_fd, const struct outcome *out, char text[512]);
/*
 * The same in a new process, which then writes, as the next one would: a fresh base by
 * ckpt_compact(), which has to be made and hold the same state (of version 3: one of version 2 is
 * written by no one else). With `strangers` that may also be
 * refused, by ERR_IDENTITY, or because a version 2 file has taken the pair's place.
 */
int workload_judge_apart(const struct fixture *fx, const struct outcome *out, bool strangers,
    char text[512]);

/* Test directories go to memory where there is some, unless TMPDIR says otherwise; prints what
 * kind of file system that is. */
void use_fast_directory(void);

#endif
