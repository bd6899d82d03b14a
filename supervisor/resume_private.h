/* What the parts of a resume's examination share. They write nothing and start nothing. */
#ifndef FLOWSUP_RESUME_PRIVATE_H
#define FLOWSUP_RESUME_PRIVATE_H

#include "lacking.h"
#include "resume.h"

/* Of an operation, from its lines in attempts.log. */
struct history {
	unsigned attempts;	   /* highest number that was started */
	bool started;		   /* any start line, or a durable mark */
	struct attempt_line *end;  /* of the latest attempt, or NULL */
};

/* The program that was looked for last. */
struct programs {
	const struct flow_how *how;
	enum flow_kind kind;
	struct buf name;
	struct err why; /* ERR_NONE: it is there, or only its start tells */
};

struct examining {
	const struct resume_input *in;
	struct resume_plan *plan;
	struct history *history;
	const struct json *entries; /* ops of the state */
	const struct json *digested; /* the response that was looked at last, and its digest */
	char digest[CKPT_DIGEST_TEXT];
	struct lacking lacking; /* variables that what is to run requires */
	struct programs programs;
	bool failed;		    /* memory ran out */
};

/* A check that did not hold; op NULL: the run as a whole; flag: what lifts it, or NULL. Without memory
 * p->failures is NULL afterwards. */
void resume_fail(struct resume_plan *p, int check, const char *op, const char *flag, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* A member more of the last one. */
void resume_fail_with(struct resume_plan *p, const char *member, const char *text);
/* A flow_state_problem, with the plan as its argument. */
void resume_state_problem(void *arg, int check, const char *op, const char *text);
/* What becomes of operation i, and why. */
void resume_decide(struct examining *x, size_t i, enum resume_action action, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void resume_refuse(struct examining *x, size_t i, int check, const char *flag, const char *reason);
const char *resume_fact(const struct examining *x, size_t i, const char *name); /* NULL: nothing is known */
/* Member `name` of the line that the latest attempt's end wrote, or NULL. */
const struct json *resume_end_member(struct examining *x, size_t i, const char *name);

/* ---- resume_conditions.c: what must hold beside the outcomes ---- */

void resume_check_environment(struct examining *x, size_t i);
/* Once all was decided: checks 10 and 12. */
void resume_check_variables(struct examining *x);
void resume_check_conversation(struct examining *x, size_t i);
void resume_check_turn(struct examining *x, size_t i);
void resume_check_added(struct examining *x, size_t i);
/* Once all was decided: what is independent may stand before who asked for it. */
void resume_check_emitters(struct examining *x);

/* ---- resume_programs.c: once all was decided ---- */

void resume_check_programs(struct examining *x);

#endif
