/* What the checkpoint commands are about: what a run has saved, or a copy of it somewhere else. */
#ifndef FLOWSUP_SAVED_H
#define FLOWSUP_SAVED_H

#include "cli.h"
#include "flowsup/checkpoint.h"
#include "target.h"

struct saved {
	struct target target; /* of a run */
	bool is_run;
	int fd;		       /* the directory */
	char *directory;       /* of a path */
	const char *base_name; /* NULL: CKPT_BASE; else within directory's text */
	char *file;
	bool lock_held;
	struct json *state;
	struct ckpt_report report;
};

/* An operand with a slash, or one that names something here, is a path. To be closed, also after -1. */
int saved_open(struct cli *c, const char *name, struct saved *s, struct err *e);
void saved_close(struct saved *s);
/* 0, or -1; refused with ERR_CHECKPOINT, and then the report is good. */
int saved_load(struct saved *s, struct err *e);
/* The whole way from the operand to a state, with what is to be said of it. Nothing is open after -1. */
int saved_take(struct cli *c, struct saved *s, struct err *e);
/* There is none. Where operations were started there was one, and that is the answer a resume gives. */
int saved_tell_missing(struct saved *s, struct err *e);
/* What is not clean is said before anything is done with it. */
void saved_note(const struct saved *s);
/*
 * The verdict of `verify` on what is loaded, for those who do something else with it: the exit status, or -1 with
 * ERR_CHECKPOINT, `became` in front and a hint, or another error.
 */
int saved_judge(const struct saved *s, const char *operand, const char *became, struct err *e);
/* The exit status where it was not refused. */
int saved_exit(const struct ckpt_report *r);
/* A line for people; the verdict may be worse than the report. */
void saved_print_report(struct output *out, const struct ckpt_report *r, enum ckpt_status verdict);
/* An entry that has no outcome yet, so nothing of one is recorded. */
bool saved_is_pending(const struct json *entry);

#endif
