/* What the files of kept share: kept.c has the table, kept_ends.c what no report has named yet, kept_limits.c
 * sees to the limits. */
#ifndef FLOWSUP_SUPERVISOR_KEPT_PRIVATE_H
#define FLOWSUP_SUPERVISOR_KEPT_PRIVATE_H

#include "daemon.h"

struct kept_op {
	TAILQ_ENTRY(kept_op) entry;
	struct kept_run *run;
	struct json *line; /* as the report describes it; owns what is borrowed here */
	const char *op, *files; /* files: the run whose directory has them */
	unsigned attempt;
	struct proc_id id, reaper;
	struct source process;
	int ops_fd; /* of files, which may be moved while it runs; -1: its directory was not there */
	int64_t limit_ns, silence_ns; /* 0: none */
	bool strict;
	struct proc_life life;
	int64_t look_ns, again_ns; /* not before: of silence; of a try to end it */
	int64_t over_ns; /* since when it has ended, while others tell how; 0: it runs */
	/* How it ended is known, and could not be written down yet. A child of ours is not reaped before:
	 * so a resume sees that it has to wait. */
	unsigned tries;
	int64_t write_ns; /* not before: the next try */
	struct proc_end end;
	double time;
	const char *by;
};
TAILQ_HEAD(kept_ops, kept_op);

/* A helper that ends something of a run. */
struct kept_end {
	TAILQ_ENTRY(kept_end) entry;
	struct kept_run *run;
	struct source helper;
	pid_t pid;
	char op[]; /* "": all that is there */
};
TAILQ_HEAD(kept_ends, kept_end);

struct kept_run {
	TAILQ_ENTRY(kept_run) entry;
	struct daemon *daemon;
	char run_id[RUN_ID_TEXT];
	struct kept_ops ops;
	bool beside_row;  /* a resume that has no worker yet, or a crash that is not recorded: its row says nothing of them */
	bool resumed;	  /* its limits are the business of another run's worker */
	int64_t until_ns; /* INT64_MAX: for any time, or not known yet */
	int64_t again_ns; /* not before: a try to end all of it */
	struct kept_ends ends;
	unsigned nends;
	int lock_fd; /* the run's, for as long as there are ends, which have it too; or -1 */
};

/* kept.c */
/* Fills what stands in the line; borrows from it and from run_id. */
bool kept_read_line(const struct json *line, const char *run_id, struct kept_op *o);
void kept_set_end(struct kept_op *o, const struct proc_end *end, double time, const char *by);
/* Only writes. False: it is to be tried again, also while the run's directory is away. A run that was removed, row and
 * all, needs no record. */
bool kept_write_end(struct daemon *d, struct kept_op *o, struct err *e);
/* The same, and true when o is gone. */
bool kept_try(struct kept_op *o, struct err *e);
struct kept_op *kept_find(const struct daemon *d, struct proc_id id); /* or NULL */
/* How it ended is known, and written down where it is not yet. Frees o, and its run with the last,
 * unless there is no room: then it stays, and kept_write() tries again. */
void kept_told(struct kept_op *o, const struct proc_end *end, const char *by);
void kept_write(struct kept_op *o);
/* Nothing of it is left to be watched. The same. */
void kept_over(struct kept_op *o);
bool kept_has_record(struct daemon *d, const struct kept_op *o);
/* The entry of a run, made where there is none; NULL: out of memory (logged). */
struct kept_run *kept_run_of(struct daemon *d, const char *run_id);
/* Frees r when nothing of it is left. */
void kept_run_look(struct kept_run *r);

/* Its row says what runs. */
void kept_store_list(struct kept_run *r);

/* kept_ends.c */
/* Whether its end was held, and is written down now. One that could not be is o's from then on. */
bool kept_claim(struct daemon *d, struct kept_op *o);
void kept_clear_ends(struct daemon *d);

/* kept_limits.c */
void kept_arm(struct daemon *d);
/* Of one that is not our child, and has ended: takes what others tell of it. o may be gone then. */
void kept_look_at_end(struct kept_op *o, int64_t now);
/* A child that has ended: true when it was a helper of r's, which is reaped; r may go with it. */
bool kept_helper_reap(struct kept_run *r, pid_t pid);
/* All that is there of r. */
bool kept_is_ending(const struct kept_run *r);
/* Watches its helpers no longer; they go on. */
void kept_forget_ends(struct kept_run *r);
/* Asks the row for how long r is kept; orphans is the document's word, in seconds (NULL: for ever). */
void kept_ask_policy(struct kept_run *r, const struct json *orphans);

#endif
