#include "taken.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent.h"
#include "changes.h"
#include "flowsup/clock.h"
#include "flowsup/exits.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"

enum { MARK_MOST = 1 << 20 };

/* ---- Messages that they have rendered ---- */

/* Ranges that the line had no room for stand in the file `started`. NULL when there are none. */
static struct json *
read_ranges(const struct worker *w, const char *op, const struct json *line)
{
	const struct json_options o = {.max_bytes = MARK_MOST};
	struct json *mark = NULL, *ranges = NULL;
	const char *run = json_cstr_of(json_get(line, "run"));
	struct buf text = {0}, path = {0};
	int64_t attempt = 0;
	int fd = -1;

	if (json_get(line, "messages") != NULL)
		return json_ref(json_get(line, "messages"));
	if (!json_is_true(json_get(line, "more")) || !json_int64(json_get(line, "attempt"), &attempt))
		return NULL;
	buf_printf(&path, "%s/" RUN_OPS "/%s.%lld", run != NULL ? run : "", op, (long long)attempt);
	if (!path.failed)
		fd = openat(w->home.runs_fd, buf_text(&path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && fs_read_private_file(fd, "started", MARK_MOST, &text, NULL) == 0 &&
	    json_parse(buf_view(&text), &o, &mark, NULL, NULL) == 0)
		ranges = json_ref(json_get(mark, "messages"));
	fd_close(&fd);
	json_unref(mark);
	buf_clear(&text);
	buf_clear(&path);
	return ranges;
}

static struct json *
mark_rendered(const struct worker *w, struct json *messages)
{
	struct json_iter it = json_iterate(w->taken);
	const struct json *line;
	struct json *ranges;
	size_t marked;

	while (json_next(&it, NULL, &line)) {
		const char *op = json_cstr_of(json_iter_name(&it));

		ranges = read_ranges(w, op, line);
		messages = messages_mark_ranges(messages, ranges, op, &marked);
		if (marked > 0)
			log_line(LOG_INFO, "%zu message%s rendered into %s before the worker died", marked,
			    marked == 1 ? " was" : "s were", op);
		json_unref(ranges);
	}
	return messages;
}

int
taken_read(struct worker *w, struct err *e)
{
	const struct json *context = json_get(w->state, "flow_context");
	const struct json *messages = json_get(context, CONTEXT_MESSAGES);

	if (json_get(w->state, RUN_TAKEN_OVER) == NULL)
		return 0;
	w->taken = json_ref(json_get(w->state, RUN_TAKEN_OVER));
	if (messages != NULL)
		w->state = json_set(w->state, "flow_context", json_set(json_ref(context),
		    CONTEXT_MESSAGES, mark_rendered(w, json_ref(messages))));
	w->state = json_remove(w->state, slice_of(RUN_TAKEN_OVER));
	return w->state != NULL ? 0 : err_nomem(e);
}

/* ---- Its end ---- */

static enum op_class
class_named(const char *word)
{
	return strcmp(word, "timeout") == 0 ? CLASS_TIMEOUT
	    : strcmp(word, "silence") == 0  ? CLASS_SILENCE : CLASS_NONE;
}

static bool
wrote_nothing_after(const struct attempt_run *a, double time)
{
	struct stat st;

	return fstat(a->out_fd, &st) == 0 &&
	    (double)st.st_mtim.tv_sec + (double)st.st_mtim.tv_nsec / (double)NS_PER_S <= time;
}

static void
ended(struct attempt_run *a, const struct proc_end *end, double time)
{
	char class[STOP_CLASS_TEXT];
	double stopped;
	struct taken *t = a->taken;

	timer_disarm(&a->w->loop.timers, &t->look);
	poller_unwatch(&a->w->loop, &a->source);
	if (a->forced == CLASS_NONE && stop_record_read(t->ops_fd, t->dir, a->id, class, &stopped, NULL) == 0) {
		a->forced = class_named(class);
		if (a->agent != NULL)
			a->agent->whole_by_limit = wrote_nothing_after(a, stopped);
	}
	a->ended_at = time;
	taken_spool(a);
	taken_link(a, AGENT_LAST);
	ending_exited(a, end);
}

/* Whether its number is still taken by it, as long as nobody has reaped it. */
static bool
is_there(const struct attempt_run *a)
{
	struct proc_id now;

	return proc_identify(a->id.pid, &now, NULL) == 0 && now.start_ticks == a->id.start_ticks;
}

/* Its process has ended. Whether there is nobody any more who will tell how. */
static bool
nobody_tells(struct taken *t, int64_t now)
{
	if (t->reaper.pid > 0 && proc_is_alive(t->reaper))
		return now - t->over_ns >= TAKEN_REAPER_S * NS_PER_S;
	if (is_there(t->a))
		return now - t->over_ns >= TAKEN_GONE_S * NS_PER_S;
	/* A supervisor that watches it asks the kernel too, and writes down what it is told. */
	if (t->gone_ns == 0)
		t->gone_ns = now;
	return now - t->gone_ns >= TAKEN_AFTER_MS * NS_PER_MS;
}

static bool
find_end(struct attempt_run *a, struct proc_end *end, double *time)
{
	struct taken *t = a->taken;
	struct exit_record r;

	*time = (double)clock_wall_ns() / (double)NS_PER_S;
	if (exit_record_read(t->ops_fd, t->dir, a->id, &r, NULL) == 0) {
		*end = r.end;
		*time = r.time;
		return true;
	}
	if ((t->reaper.pid == 0 || !proc_is_alive(t->reaper)) && a->pidfd >= 0 &&
	    proc_end_of_reaped(a->pidfd, end) > 0)
		return true;
	if (!nobody_tells(t, clock_monotonic_ns()))
		return false;
	*end = (struct proc_end){.known = false};
	agents_interrupt(a->w, a->op, t->ops_fd, t->dir);
	return a->pidfd < 0 || proc_end_of_reaped(a->pidfd, end) >= 0;
}

static void
arm_look(struct attempt_run *a, int64_t in_ms);

static void
look_due(void *arg)
{
	struct attempt_run *a = arg;
	struct proc_end end;
	double time;

	if (a->taken->over_ns == 0) {
		taken_spool(a);
		arm_look(a, TAKEN_SPOOL_MS);
	} else if (find_end(a, &end, &time)) {
		ended(a, &end, time);
	} else {
		arm_look(a, TAKEN_LOOK_MS);
	}
}

static void
arm_look(struct attempt_run *a, int64_t in_ms)
{
	struct err e = {0};

	if (timer_arm(&a->w->loop.timers, &a->taken->look, clock_monotonic_ns() + in_ms * NS_PER_MS,
		look_due, a, &e) != 0)
		worker_error(a->w, &e);
}

static void
process_ready(void *arg, short revents)
{
	struct attempt_run *a = arg;

	(void)revents;
	poller_unwatch(&a->w->loop, &a->source);
	a->taken->over_ns = clock_monotonic_ns();
	arm_look(a, 0);
}

static int
watch(struct attempt_run *a, const struct json *line, struct err *e)
{
	int64_t limit_ms;

	a->w->alive++;
	/* One that the resume found ended has nothing to do with whoever has its number. */
	a->pidfd = !json_is_true(json_get(line, "ended")) && proc_is_alive(a->id) ? proc_open(a->id, e)
										  : -1;
	if (a->pidfd < 0)
		a->taken->over_ns = clock_monotonic_ns();
	else if (poller_watch(&a->w->loop, &a->source, a->pidfd, POLLIN, process_ready, a, e) != 0)
		return -1;
	arm_look(a, 0);
	if (!json_int64(json_get(line, "limit_ms"), &limit_ms) || limit_ms > INT64_MAX / NS_PER_MS)
		limit_ms = 0;
	ending_limits(a, limit_ms * NS_PER_MS);
	return 0;
}

/* ---- Making the attempt ---- */

/* When it was started, from its start time in clock ticks since boot. */
static void
set_times(struct attempt_run *a)
{
	long hz = sysconf(_SC_CLK_TCK);
	int64_t age = hz > 0
	    ? clock_boottime_ns() - (int64_t)(a->id.start_ticks * (uint64_t)NS_PER_S / (uint64_t)hz) : 0;

	if (age < 0)
		age = 0;
	a->started_ns = clock_monotonic_ns() - age;
	a->started_at = (double)(clock_wall_ns() - age) / (double)NS_PER_S;
}

static bool
read_line(struct attempt_run *a, const struct json *line)
{
	const char *token = json_cstr_of(json_get(line, "token"));
	int64_t attempt, pid;

	if (!json_int64(json_get(line, "attempt"), &attempt) || attempt < 1 || attempt > INT32_MAX ||
	    !json_int64(json_get(line, "pid"), &pid) || pid < 1 || pid > INT32_MAX ||
	    !json_uint64(json_get(line, "start"), &a->id.start_ticks))
		return false;
	a->number = (unsigned)attempt;
	a->id.pid = (pid_t)pid;
	snprintf(a->token, sizeof(a->token), "%s", token != NULL ? token : "");
	if (json_int64(json_get(line, "reaper"), &pid) && pid > 0 && pid <= INT32_MAX &&
	    json_uint64(json_get(line, "reaper_start"), &a->taken->reaper.start_ticks))
		a->taken->reaper.pid = (pid_t)pid;
	return true;
}

static struct attempt_run *
make_attempt(struct worker *w, uint32_t i, struct err *e)
{
	struct attempt_run *a = attempt_new(w, i);

	if (a == NULL || (a->taken = calloc(1, sizeof(*a->taken))) == NULL) {
		err_nomem(e);
		return NULL;
	}
	a->taken->a = a;
	a->taken->ops_fd = -1;
	return a;
}

static void
count_as_running(struct attempt_run *a)
{
	struct worker *w = a->w;
	struct op *op = &w->ops[a->op];

	op->attempts = a->number;
	op_become(op, OP_READY);
	op_become(op, OP_PREPARING);
	op_become(op, OP_RUNNING);
	op->has_run = true;
	w->running++;
	w->counts.starts++;
	event_begin(w, "NodeTakenOver");
	event_op(w, a->op);
	event_int(w, "pid", a->id.pid);
	event_real(w, "started_at", a->started_at);
	event_end(w);
}

/* Nothing speaks to us by the socket of a run that lies elsewhere: what is taken over from one lies
 * in our own directory, and has ended. */
static int
open_files(struct attempt_run *a, const char *run, struct err *e)
{
	if (strcmp(run, a->w->run_id) == 0) {
		a->taken->ops_fd = fs_open_private_dir(a->w->run_fd, RUN_OPS, e);
		return a->taken->ops_fd < 0 ? -1 : 0;
	}
	a->taken->door = link_open_door(a->w, run, e);
	if (a->taken->door != NULL)
		a->taken->ops_fd = link_door_ops(a->taken->door, e);
	return a->taken->ops_fd < 0 ? -1 : 0;
}

static int
take_over(struct worker *w, uint32_t i, const struct json *line, struct err *e)
{
	const char *run = json_cstr_of(json_get(line, "run"));
	struct attempt_run *a;

	if (run == NULL || !run_id_is_valid(run) || w->ops[i].state != OP_PENDING)
		return err_set(e, ERR_INTERNAL, "the attempt of %s cannot be taken over", w->flow->ops[i].id);
	a = make_attempt(w, i, e);
	if (a == NULL)
		return -1;
	if (!read_line(a, line))
		return err_set(e, ERR_INTERNAL, "the start line of %s is damaged", w->flow->ops[i].id);
	op_file_name(w, i, a->number, "", a->taken->dir);
	if (open_files(a, run, e) != 0)
		return -1;
	set_times(a);
	count_as_running(a);
	if (taken_files(a, e) != 0 || reactive_restore(a, e) != 0 ||
	    (w->flow->ops[i].kind == FLOW_INSTRUCTION && agent_taken(a, e) != 0))
		return -1;
	return watch(a, line, e);
}

int
taken_begin(struct worker *w, struct err *e)
{
	struct json_iter it = json_iterate(w->taken);
	const struct json *line;
	size_t i;

	/* A process that runs must be watched, whatever memory there is by then. */
	if (poller_reserve(&w->loop, w->loop.count + json_length(w->taken) + w->slots, e) != 0)
		return -1;
	while (json_next(&it, NULL, &line)) {
		i = flow_find(w->flow, json_cstr_of(json_iter_name(&it)));
		if (i != SIZE_MAX && take_over(w, (uint32_t)i, line, e) != 0)
			return err_wrap(e, "ops/%s", w->flow->ops[i].id);
	}
	return 0;
}

void
taken_free(struct attempt_run *a)
{
	struct taken *t = a->taken;

	if (t == NULL)
		return;
	timer_disarm(&a->w->loop.timers, &t->look);
	taken_spool_clean(a);
	json_unref(t->applied);
	fd_close(&t->ops_fd);
	free(t);
	a->taken = NULL;
}

const struct door *
taken_door(const struct attempt_run *a)
{
	return a->taken->door;
}

/* ---- Signals ---- */

struct signalling {
	struct proc_id leader;
	int sig;
};

/* As long as the leader lives its number is not given away: so what was in its group a moment ago was
 * in this group. */
static int
signal_one(void *arg, const struct proc_stat *st, int pidfd)
{
	const struct signalling *s = arg;
	struct err e = {0};

	(void)st;
	if (!proc_is_alive(s->leader))
		return 1;
	if (proc_signal(pidfd, s->sig, &e) != 0)
		log_line(LOG_WARNING, "%s", e.msg);
	return 0;
}

void
taken_signal(const struct attempt_run *a, int sig)
{
	struct signalling s = {a->id, sig};
	struct err e = {0};

	if (proc_each_in_group(a->id.pid, signal_one, &s, &e) < 0)
		log_line(LOG_WARNING, "ops/%s: %s", a->w->flow->ops[a->op].id, e.msg);
}
