/* The loader: a coherent copy, checked and replayed; and its report. */
#include <stdio.h>
#include <time.h>

#include "base.h"
#include "capture.h"
#include "journal.h"

enum { MAX_TRIES = 11, PAUSE_FIRST_MS = 1, PAUSE_MOST_MS = 50 };

static void
report_start(struct ckpt_report *report)
{
	*report = (struct ckpt_report){
		.status = CKPT_REFUSED,
		.format = -1,
		.base_bytes = -1,
		.journal_bytes = -1,
		.records_applied = -1,
		.last_seq = -1,
		.in_progress_bytes = -1,
		.stale_records = -1,
		.discarded_tail_bytes = -1,
		.position_line = -1,
		.position_offset = -1,
		.directory_sync = -1,
	};
}

static void
report_reason(struct ckpt_report *report, const char *reason, int64_t line, int64_t offset)
{
	snprintf(report->reason, sizeof(report->reason), "%s", reason);
	report->position_line = line;
	report->position_offset = offset;
}

/* The file that a reason is about, by the name under which it was read. */
static void
report_file(struct ckpt_report *report, const struct ckpt_load_options *o, bool journal)
{
	snprintf(report->position_file, sizeof(report->position_file), "%s%s",
	    o->base_name != NULL ? o->base_name : CKPT_BASE, journal ? CKPT_JOURNAL_ENDING : "");
}

static void
pause_before(int64_t tries)
{
	long ms = PAUSE_FIRST_MS << (tries < 6 ? tries : 6);
	struct timespec t;

	if (ms > PAUSE_MOST_MS)
		ms = PAUSE_MOST_MS;
	t = (struct timespec){.tv_nsec = ms * 1000000};
	nanosleep(&t, NULL);
}

/* ---- Replay ---- */

struct replay {
	struct state state;
	struct slice rest;
	int64_t line, offset; /* of the line in hand; lines from 1 */
	int64_t applied, stale;
};

static int
replay_lines(struct replay *p, const char *generation, struct refusal *r, struct err *e)
{
	enum record_result result;
	struct slice line;

	while (journal_line(&p->rest, &line)) {
		p->line++;
		result = record_apply(line, generation, p->applied + 1, &p->state, r, e);
		if (result == RECORD_ERROR)
			return -1;
		if (result == RECORD_REFUSED) {
			r->line = p->line;
			r->offset = p->offset + (r->offset > 0 ? r->offset : 0);
			return -1;
		}
		if (result == RECORD_APPLIED)
			p->applied++;
		else
			p->stale++;
		p->offset += (int64_t)line.len + 1;
	}
	return 0;
}

static void
report_journal(struct ckpt_report *report, const struct replay *p)
{
	report->records_applied = p->applied;
	report->last_seq = p->applied;
	report->stale_records = p->stale;
}

/* All lines were read, so what is left is the beginning of one. Behind a line that was refused nobody
 * looked, and nothing is said of it. */
static void
report_success(struct ckpt_report *report, const struct replay *p, bool lock_held)
{
	/* Between its new base and the empty journal a live writer leaves nothing but the old journal, all of
	 * which that base holds; with a record of its own in it, it was not a live writer. */
	const bool resetting = lock_held && p->applied == 0;
	const int64_t tail = (int64_t)p->rest.len;

	report->in_progress_bytes = lock_held ? tail : 0;
	report->discarded_tail_bytes = lock_held ? 0 : tail;
	report->status = CKPT_CLEAN;
	if (p->stale > 0 && !resetting) {
		report->status = CKPT_RECOVERED_PREFIX;
		report_reason(report, "stale_records", -1, -1);
	}
	if (report->discarded_tail_bytes > 0) {
		report->status = CKPT_RECOVERED_PREFIX;
		report_reason(report, "torn_tail", p->line + 1, p->offset);
	}
}

/* Applies the journal of a capture. 0, or -1: refused (r) or ERR_NOMEM. *state is the valid prefix. */
static int
replay(const struct capture *c, bool lock_held, struct json **state, struct ckpt_report *report,
    struct refusal *r, struct err *e)
{
	struct replay p = {.rest = buf_view(&c->journal_bytes)};
	struct json *made = base_state(c->root);
	int result;

	if (c->version < 3) {
		*state = made;
		report->status = CKPT_CLEAN;
		return made != NULL ? 0 : err_nomem(e);
	}
	if (made == NULL)
		return err_nomem(e);
	result = state_init(&p.state, made, e);
	json_unref(made);
	if (result != 0)
		return -1;
	result = replay_lines(&p, c->generation, r, e);
	if (result == 0 || e->code != ERR_NOMEM) {
		made = state_root(&p.state);
		if (made == NULL)
			result = err_nomem(e);
		else
			*state = made;
		report_journal(report, &p);
	}
	if (result == 0)
		report_success(report, &p, lock_held);
	state_clear(&p.state);
	return result;
}

/* ---- Loading ---- */

/* Whether another try may see something else. */
static bool
again(enum capture_result got, int result, bool lock_held, const struct err *e)
{
	if (got == CAPTURE_AGAIN)
		return true;
	/* A live writer may have been cutting its journal back while we read it. */
	return got == CAPTURE_OK && result != 0 && lock_held && e->code == ERR_CHECKPOINT;
}

static int
load_once(struct capture *c, int run_fd, const struct ckpt_load_options *o, struct json **state,
    struct ckpt_report *report, enum capture_result *got, struct err *e)
{
	const int64_t retries = report->coherence_retries;
	struct refusal r = {.line = -1, .offset = -1};
	int result = -1;

	report_start(report);
	report->coherence_retries = retries;
	*got = capture_take(c, run_fd, o, report, &r, e);
	if (*got == CAPTURE_OK)
		result = replay(c, o->lock_held, state, report, &r, e);
	if (result != 0 && r.reason != NULL && e->code == ERR_CHECKPOINT)
		report_reason(report, r.reason, r.line, r.offset);
	if (report->reason[0] != '\0')
		report_file(report, o, *got == CAPTURE_OK || c->in_journal);
	if (result != 0 && *got == CAPTURE_OK && e->code == ERR_CHECKPOINT)
		err_wrap(e, "'%s' line %lld", report->position_file, (long long)r.line);
	return result;
}

int
load_captured(struct capture *c, int run_fd, const struct ckpt_load_options *o,
    struct json **state, struct ckpt_report *report, struct err *e)
{
	struct json *loaded = NULL;
	struct err local = {0};
	enum capture_result got;
	int tries, result = -1;

	report->coherence_retries = 0;
	*state = NULL;
	for (tries = 1;; tries++) {
		result = load_once(c, run_fd, o, &loaded, report, &got, &local);
		if (tries == MAX_TRIES || !again(got, result, o->lock_held, &local))
			break;
		json_unref(loaded);
		loaded = NULL;
		capture_clear(c);
		err_clear(&local);
		pause_before(report->coherence_retries);
		report->coherence_retries++;
	}
	*state = loaded;
	if (result != 0 && e != NULL)
		*e = local;
	return result;
}

int
ckpt_load(int run_fd, const struct ckpt_load_options *o, struct json **state,
    struct ckpt_report *report, struct err *e)
{
	static const struct ckpt_load_options defaults = {0};
	struct capture c;
	int result;

	result = load_captured(&c, run_fd, o != NULL ? o : &defaults, state, report, e);
	capture_clear(&c);
	return result;
}
