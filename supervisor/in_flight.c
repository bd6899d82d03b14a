#include "in_flight.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client.h"
#include "flowsup/endops.h"
#include "flowsup/exits.h"
#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/provider.h"
#include "policy.h"
#include "seek.h"
#include "view.h"

/* ---- One attempt ---- */

int
in_flight_open_ops(const struct home *h, int run_fd, const struct attempt *a)
{
	int dir = a->run != NULL && h != NULL ? rundir_open(h, a->run, NULL) : fcntl(run_fd, F_DUPFD_CLOEXEC, 0);
	int fd = dir < 0 ? -1 : openat(dir, RUN_OPS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	fd_close(&dir);
	return fd;
}

const char *
in_flight_state(const struct home *h, int run_fd, const struct attempt *a, bool same_boot)
{
	char dir[ATTEMPT_DIR_TEXT], class[STOP_CLASS_TEXT] = "";
	struct exit_record end;
	int ops_fd = in_flight_open_ops(h, run_fd, a);
	bool ended;

	if (ops_fd < 0)
		return NULL;
	attempt_dir(a->op, a->attempt, dir);
	ended = exit_record_read(ops_fd, dir, a->id, &end, NULL) == 0;
	if (stop_record_read(ops_fd, dir, a->id, class, NULL, NULL) != 0)
		class[0] = '\0';
	fd_close(&ops_fd);
	if (!ended && same_boot && proc_is_alive(a->id))
		return "running";
	if (strcmp(class, "cancelled") == 0)
		return "stopped";
	/* Ended for a limit: so much is known, whoever saw it end. */
	return ended || class[0] != '\0' ? "ended" : NULL;
}

bool
in_flight_is_there(const struct attempt *a)
{
	struct proc_id now;

	return proc_identify(a->id.pid, &now, NULL) == 0 && now.start_ticks == a->id.start_ticks;
}

bool
in_flight_may_be_told(const struct session *s, const char *op)
{
	const struct json *found = json_get(s->metadata, "running_operations");

	return found == NULL || json_find(found, "op", op) != NULL;
}

/* ---- An agent's final record ---- */

static int
open_output(const struct home *h, int run_fd, const struct attempt *a)
{
	char dir[ATTEMPT_DIR_TEXT], name[ATTEMPT_DIR_TEXT + 8];
	int ops_fd = in_flight_open_ops(h, run_fd, a), fd;

	snprintf(name, sizeof(name), "%s.out", attempt_dir(a->op, a->attempt, dir));
	fd = ops_fd < 0 ? -1 : openat(ops_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	fd_close(&ops_fd);
	return fd;
}

/* What a command has ended wrote nothing from then on; true where no command did. */
static bool
wrote_nothing_after(const struct home *h, int run_fd, const struct attempt *a, int out_fd)
{
	char dir[ATTEMPT_DIR_TEXT], class[STOP_CLASS_TEXT];
	int ops_fd = in_flight_open_ops(h, run_fd, a);
	double time = 0;
	bool stopped;
	struct stat st;

	stopped = ops_fd >= 0 && stop_record_read(ops_fd, attempt_dir(a->op, a->attempt, dir), a->id, class, &time, NULL) == 0;
	fd_close(&ops_fd);
	return !stopped || (fstat(out_fd, &st) == 0 &&
	    (double)st.st_mtim.tv_sec + (double)st.st_mtim.tv_nsec / (double)NS_PER_S <= time);
}

bool
in_flight_has_final_record(const struct home *h, int run_fd, const struct flow *f, char *const *envp,
    const struct attempt *a)
{
	size_t i = flow_find(f, a->op);
	struct provider_search search;
	struct provider *p = NULL;
	struct provider_reading *reading = NULL;
	struct err e = {0};
	bool ended = false;
	int fd;

	if (i == SIZE_MAX || f->ops[i].kind != FLOW_INSTRUCTION || provider_search_init(&search, envp, &e) != 0)
		return false;
	fd = open_output(h, run_fd, a);
	if (fd >= 0 && wrote_nothing_after(h, run_fd, a, fd) &&
	    provider_load(&search, f->ops[i].how->role->provider, &p, &e) == 0 &&
	    provider_reading_new(p, NULL, NULL, &reading, &e) == 0 && provider_reading_feed_file(reading, fd, &e) == 0)
		ended = provider_reading_ended(reading);
	provider_reading_free(reading);
	provider_free(p);
	provider_search_clear(&search);
	fd_close(&fd);
	return ended;
}

/* ---- A run ---- */

struct asking {
	const struct home *home;
	const struct session *session;
	const struct run_files *files;
	const struct json *from; /* where a fork begins, which takes over nothing; NULL: a resume */
	bool same_boot;
	bool lost_log; /* nothing tells what was started, or not of all */
};

/* Of its last attempt: its start, and its end if there is one. */
static void
find_last(const struct attempts *all, const char *op, const struct attempt_line **start, struct attempt_line **end)
{
	struct attempt_line *line;
	size_t i;

	*start = NULL;
	*end = NULL;
	for (i = 0; i < all->nlines; i++) {
		line = &all->lines[i];
		if (line->op == NULL || strcmp(line->op, op) != 0)
			continue;
		if (line->kind == ATTEMPT_LINE_START) {
			*start = line;
			*end = NULL;
		} else if (line->kind == ATTEMPT_LINE_END && *start != NULL && line->attempt >= (*start)->attempt) {
			*end = line;
		}
	}
}

static bool
has_final_record(const struct asking *a, const struct attempt *attempt)
{
	char *block = NULL, **envp = NULL;
	bool has = environ_read(a->files->fd, &block, &envp, NULL) == 0 &&
	    in_flight_has_final_record(a->home, a->files->fd, a->files->flow, envp, attempt);

	free(envp);
	free(block);
	return has;
}

/* Of one whose end is not written down: a resume asks for it first. */
static bool
may_become_known(const struct asking *a, const struct attempt *attempt)
{
	bool stopped = false;

	if (!a->same_boot)
		return false;
	return in_flight_is_there(attempt) ||
	    (client_supervisor(a->home, &stopped) != 0 && (stopped || in_flight_may_be_told(a->session, attempt->op)));
}

/* Without a line of its end. */
static bool
is_lost(const struct asking *a, const struct attempt_line *start)
{
	const struct attempts *all = &a->files->attempts;
	const char *state;
	size_t i;

	for (i = 0; i < all->nopen; i++)
		if (all->open[i].line == start->json)
			break;
	if (i == all->nopen || a->from != NULL)
		return true;
	state = in_flight_state(a->home, a->files->fd, &all->open[i], a->same_boot);
	if (state == NULL && may_become_known(a, &all->open[i]))
		return false;
	return (state == NULL || strcmp(state, "stopped") == 0) && !has_final_record(a, &all->open[i]);
}

/* It failed, and has attempts left: the next one is no repetition that anybody has to allow. */
static bool
is_tried_again(const struct flow_op *op, const struct attempt_line *start, struct attempt_line *end)
{
	const struct json *line = attempt_line_json(end);
	const char *class = json_cstr_of(json_get(line, "class"));
	int64_t code = 0;

	json_int64(json_get(line, "code"), &code);
	return class != NULL && strcmp(class, "completed") != 0 && strcmp(class, "cancelled") != 0 &&
	    flow_retry_applies(&op->how->retry, class, (int)code, start->attempt);
}

static bool
is_in_flight(const struct asking *a, const struct flow_op *op)
{
	const struct attempts *all = &a->files->attempts;
	const struct attempt_line *start;
	struct attempt_line *end;

	find_last(all, op->id, &start, &end);
	if (start == NULL)
		return all->torn || all->damaged > 0;
	return end != NULL ? !is_tried_again(op, start, end) : is_lost(a, start);
}

static const struct json *
outcome_of(const struct run_files *f, size_t i)
{
	const struct flow_grown *g = flow_grown(f->flow, (uint32_t)i);
	const struct json *state = view_state(f);

	if (g == NULL)
		return json_get(json_get(state, "ops"), f->flow->ops[i].id);
	return slice_is(json_text(json_get(g->entry, "status")), "pending") ? NULL : g->entry;
}

/* again[i]: whether it runs again when failures do. Predecessors have been looked at before. */
static bool
asks(const struct asking *a, size_t i, bool failures_again, bool *again)
{
	const struct flow *f = a->files->flow;
	const struct flow_op *op = &f->ops[i];
	const struct json *outcome = outcome_of(a->files, i);
	bool failed = slice_is(json_text(json_get(outcome, "status")), "failed");
	bool behind = a->from != NULL && json_find(a->from, NULL, op->id) != NULL;
	uint32_t n;

	for (n = 0; n < op->nneeds; n++)
		behind = behind || again[op->needs[n].op];
	again[i] = outcome != NULL && !flow_is_replaced(f, (uint32_t)i) && ((failures_again && failed) || behind);
	if (a->lost_log && outcome == NULL)
		return true;
	if (op->how->idempotent)
		return false;
	return outcome != NULL ? again[i] && !failed : is_in_flight(a, op);
}

/* Without an end in the log: its worker's death was not its end. */
static bool
outlived(const struct asking *a, const struct flow_op *op)
{
	const struct attempt_line *start;
	struct attempt_line *end;

	find_last(&a->files->attempts, op->id, &start, &end);
	return start != NULL && end == NULL && !is_lost(a, start);
}

/* Whether something of what these had added would be given up: it has an outcome, or that is still to come. Whoever
 * adds something stands before it. */
static bool
any_is_dropped(const struct asking *a, bool *again)
{
	const struct flow *f = a->files->flow;
	const struct flow_grown *g;
	size_t i;

	for (i = f->nplanned; i < f->nops; i++) {
		g = flow_grown(f, (uint32_t)i);
		if ((g->parent == FLOW_NO_OP || !again[g->parent]) && (g->emitter == FLOW_NO_OP || !again[g->emitter]))
			continue;
		again[i] = true;
		if (outcome_of(a->files, i) != NULL || outlived(a, &f->ops[i]))
			return true;
	}
	return false;
}

static void
look_at_all(const struct asking *a, bool failures_again, struct in_flight *out)
{
	const struct flow *f = a->files->flow;
	bool *again = calloc(f->nops + 1, sizeof(*again));
	size_t i;

	for (i = 0; again != NULL && i < f->nops; i++)
		out->asks |= asks(a, f->order[i], failures_again, again);
	out->drops = again != NULL && any_is_dropped(a, again);
	free(again);
}

/* One that a worker brought to its end has saved what it did. */
static bool
has_lost_log(const struct home *h, const struct session *s)
{
	int fd = s->status == STATUS_CRASHED ? rundir_open(h, s->run_id, NULL) : -1;
	struct attempts a = {0};
	bool lost = fd >= 0 && attempts_read_place(fd, &a, NULL) == 0 &&
	    (seek_lacks_attempts(seek_has_started(fd, s->started_at), &a) || seek_hides_start(&a));

	attempts_clear(&a);
	fd_close(&fd);
	return lost;
}

/* What its worker saved it has also told. */
static bool
may_have_added_more(const struct session *s)
{
	return s->status == STATUS_CRASHED && json_get(s->metadata, META_GROWTH) != NULL &&
	    !json_is_true(json_get(s->metadata, META_LOSES_ADDED));
}

void
in_flight_look(const struct home *h, const struct session *s, bool again, const struct json *from,
    struct in_flight *out)
{
	struct run_files files;
	struct asking a = {.home = h, .session = s, .files = &files, .from = from};
	bool here = false, other_boot = true;
	struct err e = {0};

	*out = (struct in_flight){.drops = again && json_is_true(json_get(s->metadata, META_LOSES_ADDED))};
	if (h == NULL || !status_is_terminal(s->status))
		return;
	a.lost_log = has_lost_log(h, s);
	if ((from == NULL && !a.lost_log && !json_is_true(json_get(s->policy, POLICY_UNREPEATABLE)) &&
		!(again && may_have_added_more(s))) ||
	    run_files_open(h, s, true, &files, &e) != 0)
		return;
	if (files.flow != NULL && endops_is_here(&files.attempts, &here, &other_boot, &e) == 0) {
		a.same_boot = here && !other_boot;
		look_at_all(&a, again, out);
		out->drops |= again && json_is_true(json_get(s->metadata, META_LOSES_ADDED));
	}
	run_files_close(&files);
}
