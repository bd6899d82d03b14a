/*
 * Controls, between the sources that deal with them:
 *
 *	control.c	 reading the rows, one after the other; claims
 *	control_verbs.c	 what each verb does
 *	control_stamp.c	 what came of a control, written into its row
 *	turns.c		 a run of kind agent: messages at the end of a turn
 */
#ifndef WORKER_CONTROL_H
#define WORKER_CONTROL_H

#include "worker.h"

enum { CONTROL_RESULT_TEXT = 600 };

struct control_row {
	struct control_row *next;
	char id[UUID_TEXT];
	char *verb;
	struct json *payload;
	double created_at;
	char claim[CONTROL_CLAIM_TEXT]; /* "" until it is claimed */
	uint32_t op;			/* that a verdict is for */
};

struct control_verb {
	const char *word;
	void (*apply)(struct worker *w, const struct json *payload);
	void (*take)(struct worker *w, struct control_row *r); /* once it is claimed */
	bool of_agent; /* a run of kind agent has a consumer for it too */
	bool held;     /* stays unclaimed while turns_hold says so */
};

/* control.c */
void control_row_free(struct control_row *r);
void control_apply_next(struct worker *w);
/* This look is over. `whole`: every row was dealt with, or is left alone on purpose. */
void control_look_over(struct worker *w, bool whole);

/* control_verbs.c: NULL when there is no consumer for it. */
const struct control_verb *control_find_verb(const struct worker *w, const char *word);

/* control_stamp.c */
/* Writes what came of r, and consumes it. alone: no further control waits for it. */
void control_stamp(struct worker *w, struct control_row *r, const char *result, bool alone);
/* Submits what an earlier look could not write. False when there is nothing. */
bool control_stamp_rest(struct worker *w);
void control_stamp_clear(struct worker *w);

#endif
