/*
 * Planning: the planner is the only operation of a run until its answer is a plan. That answer is its
 * response; once it is saved the plan it makes is saved too, by a base, and only then does the run
 * become the larger flow. A worker that dies in between finds the response and makes the same of it.
 */
#ifndef WORKER_PLAN_H
#define WORKER_PLAN_H

#include "worker.h"

/* Whether i is the planner and its plan is not there yet. */
bool plan_is_awaited(const struct worker *w, uint32_t i);

/* On the io thread: *answer is replaced by the plan in it, cut to what is allowed, with *left_out
 * operations gone; or -1 with what is wrong with it, for the planner. */
int plan_judge(const struct worker *w, struct json **answer, size_t *left_out, struct err *e);

/* Whether the planner is told what was wrong with its answer and asked again; keeps that then. */
bool plan_feeds_back(struct attempt_run *a, const struct outcome *o);
/* The context that the planner's outcome carries, without what was kept. Consumes context (NULL: as it is). */
struct json *plan_forget_feedback(struct worker *w, struct json *context);
/* Appends to the planner's instruction what a plan looks like and what was wrong before. */
void plan_instruction(const struct worker *w, struct buf *to);

/* Entries of the plan for operations from `first` on, with new node ids; NULL without memory. */
struct json *plan_entries(const struct flow *f, size_t first);
/* The planner's outcome is saved: its plan is next. */
void plan_store(struct worker *w);
/* The plan is saved: the run goes on as that flow. */
void plan_adopt(struct worker *w);
/* Tells the database what was cut off the plan, and which lists in it are empty. */
void plan_tell(struct worker *w);
/* At the beginning: the plan of a planner that had completed before its plan was saved. */
int plan_of_state(struct worker *w, struct err *e);
void plan_clear(struct worker *w);

#endif
