/*
 * Runs whose files do not tell what they should: the directory was removed below a live worker, a
 * file of it is missing or damaged. What is asked instead, and how it is told.
 */
#ifndef FLOWSUP_SUPERVISOR_SEEK_H
#define FLOWSUP_SUPERVISOR_SEEK_H

#include "flowsup/checkpoint.h"
#include "flowsup/flow.h"
#include "flowsup/home.h"
#include "flowsup/proc.h"
#include "flowsup/store.h"

/* The words a worker is started with, NULL-terminated; borrows home and run id. */
enum { SEEK_WORDS = 6 };
void seek_words(const struct home *h, const char *run_id, const char *words[SEEK_WORDS]);
/* The worker of a run by its command line, for where its lock cannot be asked. 1: it lives, 0: there
 * is none, -1 with *e. */
int seek_worker(const struct home *h, const char *run_id, struct proc_id *out, struct err *e);

/* A process of this user that has the run's lock file open, and the beginning of its command line; false:
 * none is seen. Walks through /proc. */
enum { SEEK_HOLDER_TEXT = 128 };
bool seek_holder(int run_fd, pid_t *pid, char words[SEEK_HOLDER_TEXT]);
/* The same as words of a message, in `to`, which is returned. */
enum { SEEK_WHO_TEXT = SEEK_HOLDER_TEXT + 32 };
const char *seek_who(int run_fd, char to[SEEK_WHO_TEXT]);
/* run_lock_held() that waits up to wait_ms for whoever is about to leave, without taking it. */
int seek_lock_held(int run_fd, int wait_ms, bool *held, struct err *e);

/*
 * That a person has killed the run, or stopped it with all others, beside its files: where the row cannot be written
 * the death of its worker must not be taken for a crash, which a policy answers with a resume, and a queued run must
 * not start. Durable; needs no room.
 */
enum seek_mark { SEEK_KILLED, SEEK_STOPPED };
int seek_set_mark(int run_fd, enum seek_mark mark, struct err *e);
bool seek_has_mark(const struct home *h, const char *run_id, enum seek_mark mark);

/* rundir_open() for a run that has a row. ERR_IO, with a hint, when the directory is gone. */
int seek_rundir(const struct home *h, const struct session *s, struct err *e);
/*
 * Turns an error about a file of a run, which *e holds, into one that names the run and says what is
 * left to be done; a missing file is ERR_IO: it was made with the run. Returns -1.
 */
int seek_damaged(const struct session *s, struct err *e);
/* The same for who would go on from the files: what is wrong with one is ERR_REFUSED, for no wait mends it, and only that
 * it could not be read is ERR_IO. */
void seek_refuse_damage(struct err *e);
int seek_damaged_for_good(const struct session *s, struct err *e);

/* The run's document. */
int seek_flow(int run_fd, struct flow **out, struct err *e);
/*
 * Whether a worker of the run began: its row says so, or there is a base, which a worker publishes behind
 * its line in attempts.log and before it starts anything. The row alone does not tell: it is written beside
 * that, and a worker that is killed at once may be dead before it is.
 */
bool seek_has_started(int run_fd, double started_at);
/* Whether the log of a run that has `started` is gone or damaged: it tells of no worker. */
bool seek_lacks_attempts(bool started, const struct attempts *a);
/* Whether its last line is torn, which may be that of a start: the process of it may live, unless the host has been
 * booted since. */
bool seek_hides_start(const struct attempts *a);
/* attempts_read() of a run that has `started`: it then holds at least the line of its worker, and
 * without it nobody can tell what was done. ERR_IO. */
int seek_attempts(int run_fd, bool started, struct attempts *out, struct err *e);
/*
 * Tries what a run has from its first moment to its last and a resume needs: the document, how it was
 * launched, its environment, its lock and attempts. *problems becomes an array of {"file","error"}, one
 * for each that is missing or damaged; what is wrong with its checkpoint the loader says. -1 when memory
 * runs out.
 */
int seek_problems(int run_fd, bool started, struct json **problems, struct err *e);
/* One of them; file "" means the directory itself. */
struct json *seek_problem(const char *file, const char *text);
/* The name of a file without which the run cannot be resumed and that is missing, or NULL. */
const char *seek_missing(int run_fd, bool started);
/* Whether this run may have started operations, and not one that it was to take them over from. The
 * checkpoint is published before the first. */
bool seek_started_any(const struct attempts *a);
/* Whether the checkpoint is missing that such a run has had. started: what its row
 * says, where there is one: it tells where the log of attempts has gone too. */
bool seek_lacks_checkpoint(int run_fd, bool started, const struct attempts *a);
/*
 * ckpt_load() found no base (ERR_NOTFOUND in *e). If the run has had one, or the journal has records, that is a refusal
 * as any other: the report gets its reason, *e becomes ERR_CHECKPOINT. Otherwise both stay. Returns -1.
 */
int seek_refuse_lost(int run_fd, bool started, struct ckpt_report *report, struct err *e);
/* flow_judge_state() of a state as it was loaded, of whatever format: as a resume would read it. */
int seek_judge(const struct json *state, int format, flow_state_problem *tell, void *arg, struct flow **out,
    struct err *e);

#endif
