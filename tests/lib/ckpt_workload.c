#include "ckpt_workload.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct json *models[WORKLOAD_STEPS + 1];

struct step {
	enum ckpt_kind kind;
	const char *entry, *context;
};

/* Two records, then a base in place of the third, then two records behind it. */
static const struct step steps[WORKLOAD_STEPS] = {
	{CKPT_OP, "{'agent_id':'op-0','status':'completed','response':'first'}", "{'list':['a']}"},
	{CKPT_SPAWNED, "{'node_id':'n','status':'pending','response':null}", "{'list':['a','b']}"},
	{CKPT_OP, "{'agent_id':'op-1','status':'failed','response':null}", NULL},
	{CKPT_SPAWNED, "{'node_id':'n','status':'completed','response':'done'}",
	    "{'list':['a','b'],'deep':{'x':{'y':1.5}}}"},
	{CKPT_OP, "{'agent_id':'op-0','status':'completed','response':'second'}", "{}"},
};

static struct json *
step_entry(const struct step *s)
{
	return fixture_json(s->entry);
}

static struct json *
step_context(const struct step *s)
{
	return s->context != NULL ? fixture_json(s->context) : NULL;
}

struct json *const *
workload_models(void)
{
	struct json *entry, *context;
	int i;

	if (models[0] != NULL)
		return models;
	models[0] = fixture_state(2);
	for (i = 0; i < WORKLOAD_STEPS; i++) {
		entry = step_entry(&steps[i]);
		context = step_context(&steps[i]);
		models[i + 1] = model_apply(json_ref(models[i]), steps[i].kind, entry, context);
		json_unref(entry);
		json_unref(context);
	}
	return models;
}

void
workload_free(void)
{
	int i;

	for (i = 0; i <= WORKLOAD_STEPS; i++) {
		json_unref(models[i]);
		models[i] = NULL;
	}
}

struct ckpt_options
workload_options(const struct fixture *fx, const struct fs_ops *fs)
{
	struct ckpt_options o = fixture_options(fx, fs);

	o.compact_records = 2;
	o.literal_limits = true;
	return o;
}

static void
note(struct outcome *out, const struct err *e)
{
	out->code = e->code;
	snprintf(out->msg, sizeof(out->msg), "%.250s", e->msg);
}

/* Empties the acknowledgements, which resets the event, and counts them. */
static void
collect(struct ckpt_writer *w, struct outcome *out)
{
	struct ckpt_ack ack;

	while (ckpt_take_ack(w, &ack)) {
		if (ack.ticket != out->acked + 1)
			abort();
		out->acked = (unsigned)ack.ticket;
		json_unref(ack.identity);
	}
}

/* Waits until all is acknowledged, or the tries are used up, or there is no remedy. */
static bool
settle(struct ckpt_writer *w, unsigned tries, struct outcome *out)
{
	struct pollfd p = {.fd = ckpt_event_fd(w), .events = POLLIN};
	struct err e = {0};

	for (;; tries--) {
		if (ckpt_flush(w, &e) == 0) {
			collect(w, out);
			out->health = CKPT_HEALTHY;
			out->code = ERR_NONE;
			return true;
		}
		note(out, &e);
		out->health = ckpt_progress(w).health;
		collect(w, out);
		if (tries == 0 || out->health == CKPT_STOPPED)
			return false;
		/* Every try that fails says so by the event. */
		ckpt_retry_now(w);
		poll(&p, 1, 10000);
	}
}

void
workload_run(const struct ckpt_options *o, unsigned tries, struct outcome *out)
{
	struct ckpt_writer *w = NULL;
	struct err e = {0};
	int i;

	*out = (struct outcome){.version = o->version};
	if (ckpt_writer_open(o, workload_models()[0], &w, &e) != 0) {
		note(out, &e);
		out->ended = true;
		return;
	}
	out->opened = true;
	for (i = 0; i < WORKLOAD_STEPS; i++) {
		if (ckpt_admit(w, steps[i].kind, step_entry(&steps[i]), step_context(&steps[i]), NULL,
		    &e) != 0) {
			note(out, &e);
			break;
		}
		out->admitted++;
		if (!settle(w, tries, out))
			break;
	}
	if (ckpt_writer_close(w, false, &e) != 0)
		note(out, &e);
	else
		out->acked = out->admitted;
	out->ended = true;
}

struct outcome *
outcome_shared(void)
{
	void *p = mmap(NULL, sizeof(struct outcome), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

int
workload_fork(const struct ckpt_options *o, unsigned tries, struct outcome *shared)
{
	pid_t pid;
	int status = 0;

	*shared = (struct outcome){0};
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		abort();
	if (pid == 0) {
		workload_run(o, tries, shared);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid)
		abort();
	return status;
}

/* A version 2 file has no node_id in its plan where nothing needs the guard: then no model has; but one
 * that takes the place of a pair has them all. */
static bool
is_model(const struct json *state, int i, int format)
{
	struct json *model = json_ref(models[i]), *plan = json_array();
	struct json_iter it = json_iterate(json_get(model, "plan"));
	const struct json *entry;
	bool same = state_equals(state, model);

	while (format == 2 && json_next(&it, NULL, &entry))
		plan = json_append(plan, json_remove(json_ref(entry), slice_of("node_id")));
	if (format == 2)
		model = json_set(model, "plan", json_ref(plan));
	same = same || state_equals(state, model);
	json_unref(plan);
	json_unref(model);
	return same;
}

int
workload_judge(int run_fd, const struct outcome *out, char text[512])
{
	struct ckpt_report report;
	struct json *state = NULL;
	struct err e = {0};
	int found = -1, i;

	workload_models();
	if (ckpt_load(run_fd, NULL, &state, &report, &e) != 0) {
		snprintf(text, 512, "load: %.400s (%s)", e.msg, report.reason);
		json_unref(state);
		return e.code == ERR_NOTFOUND && !out->opened ? -2 : -1;
	}
	for (i = 0; i <= WORKLOAD_STEPS && found < 0; i++)
		if (is_model(state, i, report.format))
			found = i;
	json_unref(state);
	if (found < 0)
		snprintf(text, 512, "the state is that of no prefix");
	else if (found < (int)out->acked) {
		snprintf(text, 512, "%u transitions were acknowledged and %d are there", out->acked,
		    found);
		found = -1;
	} else if (found > (int)out->admitted + (out->ended ? 0 : 1)) {
		snprintf(text, 512, "%d transitions are there and %u were admitted", found,
		    out->admitted);
		found = -1;
	}
	return found;
}

/* The next write to a checkpoint that holds the state number `found`. */
static int
write_next(const struct fixture *fx, int found, bool strangers, char text[512])
{
	struct ckpt_options o = workload_options(fx, NULL);
	struct ckpt_report report;
	struct json *state = NULL;
	struct err e = {0};

	if (ckpt_compact(&o, &report, &e) != 0) {
		snprintf(text, 512, "the next write: %.400s", e.msg);
		return strangers && (e.code == ERR_IDENTITY || (e.code == ERR_REFUSED && report.format == 2)) ?
		    found : -1;
	}
	if (ckpt_load(fx->run_fd, NULL, &state, &report, &e) != 0)
		snprintf(text, 512, "behind the next write: %.400s", e.msg);
	else if (report.status != CKPT_CLEAN || !json_equal(state, workload_models()[found]))
		snprintf(text, 512, "the next write changed the state");
	else {
		json_unref(state);
		return found;
	}
	json_unref(state);
	return -1;
}

struct verdict {
	int found;
	char text[512];
};

int
workload_judge_apart(const struct fixture *fx, const struct outcome *out, bool strangers,
    char text[512])
{
	struct verdict v = {.found = -1, .text = "the judge's process failed"};
	int ends[2];
	pid_t pid;

	fflush(NULL);
	if (pipe(ends) != 0 || (pid = fork()) < 0)
		abort();
	if (pid == 0) {
		v.found = workload_judge(fx->run_fd, out, v.text);
		if (v.found >= 0 && out->version == 3)
			v.found = write_next(fx, v.found, strangers, v.text);
		_exit(write(ends[1], &v, sizeof(v)) == (ssize_t)sizeof(v) ? 0 : 1);
	}
	close(ends[1]);
	if (read(ends[0], &v, sizeof(v)) != (ssize_t)sizeof(v))
		v.found = -1;
	close(ends[0]);
	if (waitpid(pid, NULL, 0) != pid)
		abort();
	memcpy(text, v.text, sizeof(v.text));
	return v.found;
}

static void
print_kind_of(const char *path)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const char *kind = "unknown";
	bool remote;

	if (fd >= 0)
		(void)fs_kind(fd, &kind, &remote, NULL);
	fd_close(&fd);
	printf("# on %s\n", kind);
}

void
use_fast_directory(void)
{
	if (getenv("TMPDIR") == NULL && access("/dev/shm", W_OK) == 0)
		setenv("TMPDIR", "/dev/shm", 1);
	print_kind_of(getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp");
}
