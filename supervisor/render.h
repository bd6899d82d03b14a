/* The objects of view.h as text for people. */
#ifndef FLOWSUP_RENDER_H
#define FLOWSUP_RENDER_H

#include <stdint.h>

#include "flowsup/json.h"
#include "output.h"

/* The text of a member, "" when it is null, absent or no plain string. */
const char *render_member(const struct json *o, const char *name);
/* Why op was skipped: what became of the operation behind it, or, when that is op itself, that a condition
 * of its edges did not hold. */
void render_cause(struct buf *to, const char *op, const char *cause, const char *state);
/* Of a control: "approve publish"; and " by root: fine", or nothing. */
void render_asked(const struct json *control, struct buf *to);
void render_asker(const struct json *control, struct buf *to);
double render_number(const struct json *o, const char *name, double otherwise);
/* "4m10s", or "" for a negative number. */
const char *render_seconds(double seconds, char *to);
/* "3/7" by the members done and total; "-" while the total is not known (no plan is empty). */
enum { PROGRESS_TEXT = 48 };
const char *render_progress(const struct json *o, char to[PROGRESS_TEXT]);
const char *render_counts(int64_t done, int64_t total, char to[PROGRESS_TEXT]); /* the same of the numbers */
/* ", 3 of 7 done"; "" while the total is not known. */
const char *render_done(int64_t done, int64_t total, char to[PROGRESS_TEXT]);
/* Seconds from a member that holds a time until now; negative when it is null. */
double render_age(const struct json *o, const char *name);
double render_since(double at); /* the same of the time itself */
enum out_style render_status_style(const char *word);
/* "crashed (2 running)", "running, stalled" */
void render_status(const struct json *run, struct buf *to);
/* "50%: half"; nothing below 0. */
void render_percent(double fraction, const char *text, struct buf *to);
/* "; 3 leftover processes ended" of an operation or an event that counts them; `before` stands first. */
void render_leftovers(const struct json *o, const char *before, struct buf *to);
/* Since when, of a run that was told to stop, or is behind its deadline, and is not at its end; else nothing. */
void render_stopping(const struct json *run, struct buf *to);
/* What a run waits for, or how to go on with it. */
void render_next(const struct json *run, struct buf *to);
void render_resumed_as(const char *run_id, struct buf *to); /* the same of a run that was resumed */

#endif
