/* Artifacts and responses. */
#include "agent.h"

#include <ctype.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "changes.h"
#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "plan.h"

enum { RESPONSE_EDGE = 4096 }; /* of a response by reference, shown from both ends */

enum { LINES_AT_ONCE = 64 << 10 }; /* bytes of JSON lines that are judged together */

/* Of response and artifacts together; what is larger keeps nobody waiting (io.h). At 150 MB/s that
 * many bytes take 30 ms. */
#define LENGTHY_BYTES ((uint64_t)4 << 20)

enum { READING_TOLD_MS = 500 }; /* what takes less is not worth an event */

void
outcome_clear(struct outcome *o)
{
	free(o->message);
	json_unref(o->response);
	json_unref(o->output);
	json_unref(o->artifacts);
	json_unref(o->conversation);
	json_unref(o->usage);
	json_unref(o->changes);
	json_unref(o->asking);
	*o = (struct outcome){0};
}

static void __attribute__((format(printf, 3, 4)))
fail(struct outcome *o, enum op_class class, const char *fmt, ...)
{
	struct buf text = {0};
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	free(o->message);
	o->message = buf_steal(&text); /* NULL without memory: the class says enough */
	o->class = class;
}

bool
outcome_used_up_cpu(const struct proc_end *end, const struct flow_how *how)
{
	return end->signaled && how->limit_cpu_s >= 0 &&
	    (end->code == SIGXCPU ||
		(end->code == SIGKILL &&
		    end->usage.ru_utime.tv_sec + end->usage.ru_stime.tv_sec >= how->limit_cpu_s));
}

void
outcome_of_end(const struct proc_end *end, enum op_class forced, const struct flow_how *how,
    struct outcome *o)
{
	char text[DURATION_TEXT];

	o->class = CLASS_NONE;
	o->code = end->known ? end->code : 0;
	o->signal = end->known && end->signaled ? end->code : 0;
	if (forced == CLASS_TIMEOUT)
		fail(o, forced, "ran longer than %s", duration_format(how->timeout_ns, text));
	else if (forced == CLASS_SILENCE)
		fail(o, forced, "no sign of life for %s", duration_format(how->silence_ns, text));
	else if (forced != CLASS_NONE)
		fail(o, forced, "ended by a stop");
	else if (!end->known)
		fail(o, CLASS_CRASH, "how it ended is not known");
	else if (outcome_used_up_cpu(end, how))
		fail(o, CLASS_SIGNAL, "used %lld s of processor time, as much as its limit allows (limits.cpu); "
		    "ended by %s%s", (long long)how->limit_cpu_s, proc_signal_name(end->code),
		    end->dumped ? " (core dumped)" : "");
	else if (end->signaled)
		fail(o, CLASS_SIGNAL, "ended by %s%s", proc_signal_name(end->code),
		    end->dumped ? " (core dumped)" : "");
	else if (end->code != 0)
		fail(o, CLASS_EXIT, "exit status %d", end->code);
}

/* ---- Files that an outcome names ---- */

/* The directories of `path`, from `root` on: a file is not found again without its name. */
static int
sync_directories(int root, const char *path, struct err *e)
{
	int fd = fcntl(root, F_DUPFD_CLOEXEC, 0), below, rc;
	const char *rest = path, *slash;
	char name[NAME_MAX + 1];

	if (fd < 0)
		return err_sys(e, ERR_IO, errno, "cannot open its directory");
	while ((rc = fs_sync_dir(&fs_real, "outcome.dir", fd, NULL, e)) == 0 && (slash = strchr(rest, '/')) != NULL) {
		snprintf(name, sizeof(name), "%.*s", (int)(slash - rest), rest);
		rest = slash + strspn(slash, "/");
		below = openat(fd, name[0] != '\0' ? name : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		fd_close(&fd);
		fd = below;
		if (fd < 0)
			return err_sys(e, ERR_IO, errno, "cannot open its directory");
	}
	fd_close(&fd);
	return rc;
}

static int
make_durable(int fd, int root, const char *path, struct err *e)
{
	/* EINVAL: of a file system that cannot. */
	if (fsync(fd) != 0 && errno != EINVAL)
		return err_sys(e, ERR_IO, errno, "fsync");
	return sync_directories(root, path, e);
}

static bool
names_output(const struct outcome_input *in, const struct outcome *o)
{
	return in->durable && (o->by_reference || (o->output != NULL && !(o->of_response && o->class == CLASS_NONE)));
}

/* A resume that finds another output, or none, is refused: so the record comes after the file. */
static void
save_output(const struct outcome_input *in, struct outcome *o, int ops_fd)
{
	struct err e = {0};

	if (names_output(in, o) &&
	    make_durable(in->out_fd, ops_fd, in->file + sizeof(RUN_OPS "/") - 1, &e) != 0)
		fail(o, CLASS_RESPONSE, "its output cannot be saved: %s", e.msg);
}

bool
outcome_is_enough(struct outcome_patience *p)
{
	int64_t until_ns = p->until_ns;

	p->given_up = p->given_up || *p->enough || (until_ns > 0 && clock_monotonic_ns() >= until_ns);
	return p->given_up;
}

static bool
is_enough(void *arg)
{
	return outcome_is_enough(arg);
}

static int
digest_file(const struct outcome_input *in, int fd, char to[CKPT_DIGEST_TEXT], uint64_t *size, struct err *e)
{
	return ckpt_digest_file_unless(fd, in->patience != NULL ? is_enough : NULL, in->patience, to, size, e);
}

/* ---- Artifacts ---- */

static struct json *
look_at_artifact(const struct outcome_input *in, const char *path, struct outcome *o)
{
	char digest[CKPT_DIGEST_TEXT];
	struct buf full = {0};
	struct err e = {0};
	struct json *entry = NULL;
	const char *why = "";
	struct stat st;
	uint64_t size;
	int fd = -1;

	buf_printf(&full, "%s/%s", in->op->id, path);
	if (buf_ok(&full, &e) == 0)
		fd = fs_open_artifact(in->artifacts_fd, buf_text(&full), &st, &why);
	if (fd < 0)
		fail(o, CLASS_ARTIFACT, "declared artifact \"%s\" %s", path, why);
	else if (digest_file(in, fd, digest, &size, &e) != 0 ||
	    (in->durable && make_durable(fd, in->artifacts_fd, buf_text(&full), &e) != 0))
		fail(o, CLASS_ARTIFACT, "declared artifact \"%s\": %s", path, e.msg);
	else {
		entry = json_set(json_object(), "path", json_cstr(path));
		entry = json_set(entry, "size", json_uint(size));
		entry = json_set(entry, "digest", json_cstr(digest));
	}
	fd_close(&fd);
	buf_clear(&full);
	return entry;
}

static void
add_artifact(const struct outcome_input *in, const char *path, struct outcome *o)
{
	struct json *entry = look_at_artifact(in, path, o);

	if (entry == NULL && o->class == CLASS_NONE)
		fail(o, CLASS_ARTIFACT, "not enough memory");
	if (entry != NULL)
		o->artifacts = json_append(o->artifacts, entry);
}

static bool
is_declared(const struct outcome_input *in, const char *path)
{
	const char *const *one = in->op->how->artifacts;

	for (; one != NULL && *one != NULL; one++)
		if (strcmp(*one, path) == 0)
			return true;
	return false;
}

static bool
has_artifacts(const struct outcome_input *in)
{
	const char *const *declared = in->op->how->artifacts;

	return (declared != NULL && *declared != NULL) || json_length(in->emitted) > 0;
}

static void
look_at_artifacts(const struct outcome_input *in, struct outcome *o)
{
	const char *const *path = in->op->how->artifacts;
	struct json_iter it = json_iterate(in->emitted);
	const struct json *one;

	if (!has_artifacts(in))
		return;
	o->artifacts = json_array();
	for (; path != NULL && *path != NULL && o->class == CLASS_NONE; path++)
		add_artifact(in, *path, o);
	while (o->class == CLASS_NONE && json_next(&it, NULL, &one))
		if (!is_declared(in, json_cstr_of(one)))
			add_artifact(in, json_cstr_of(one), o);
	if (o->class == CLASS_NONE && o->artifacts == NULL)
		fail(o, CLASS_ARTIFACT, "not enough memory");
}

/* ---- Responses ---- */

static int
read_range(int fd, uint64_t from, size_t len, struct buf *to, struct err *e)
{
	char *at = buf_reserve(to, len);
	ssize_t n;

	if (at == NULL)
		return err_nomem(e);
	while (len > 0) {
		n = pread(fd, to->data + to->len, len, (off_t)from);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, ERR_IO, errno, "cannot read the output");
		if (n == 0)
			break;
		to->len += (size_t)n;
		from += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

void
outcome_response_text(enum flow_response kind, bool completed, const struct json *response, struct buf *to)
{
	struct json_iter it = json_iterate(response);
	const struct json *line;

	if (response == NULL || json_type(response) == JSON_NULL) {
		buf_puts(to, completed && kind == FLOW_RESPONSE_JSON ? "null\n" : "");
	} else if (json_type(response) == JSON_STRING && (!completed || kind != FLOW_RESPONSE_JSON)) {
		buf_slice(to, json_text(response));
	} else if (kind == FLOW_RESPONSE_JSONL && json_type(response) == JSON_ARRAY) {
		while (json_next(&it, NULL, &line)) {
			json_write(to, line);
			buf_putc(to, '\n');
		}
	} else {
		json_write(to, response);
		buf_putc(to, '\n');
	}
}

static struct json *
file_json(const struct outcome_input *in, uint64_t size, const char *digest)
{
	struct json *v = json_set(json_object(), "file", json_cstr(in->file));

	v = json_set(v, "size", json_uint(size));
	return json_set(v, "digest", json_cstr(digest));
}

/* Its bytes are `text`, and what is made of the response are perhaps others. */
static int
note_output(const struct outcome_input *in, struct slice text, const struct json *response, struct outcome *o,
    struct err *e)
{
	char digest[CKPT_DIGEST_TEXT];
	struct buf made = {0};

	outcome_response_text(in->op->how->response, true, response, &made);
	o->of_response = !made.failed && !o->lossy && slice_eq(buf_view(&made), text);
	buf_clear(&made);
	ckpt_digest_bytes(text, digest);
	o->output = file_json(in, text.len, digest);
	return o->output != NULL ? 0 : err_nomem(e);
}

/* Bytes from one end of the output, as text for people. */
static struct json *
edge(const struct outcome_input *in, uint64_t from, size_t len)
{
	struct buf text = {0};
	struct json *v = NULL;

	if (read_range(in->out_fd, from, len, &text, NULL) == 0)
		v = json_string_lossy(buf_view(&text), NULL);
	buf_clear(&text);
	return v;
}

static int
by_reference(const struct outcome_input *in, struct outcome *o, struct err *e)
{
	char digest[CKPT_DIGEST_TEXT];
	struct json *v;
	uint64_t size;

	if (digest_file(in, in->out_fd, digest, &size, e) != 0)
		return -1;
	v = file_json(in, size, digest);
	v = json_set(v, "head", edge(in, 0, RESPONSE_EDGE));
	v = json_set(v, "tail", edge(in, size > RESPONSE_EDGE ? size - RESPONSE_EDGE : 0,
	    RESPONSE_EDGE));
	o->response = v;
	o->by_reference = true;
	return v == NULL ? err_nomem(e) : 0;
}

static int
as_text(const struct outcome_input *in, struct outcome *o, struct err *e)
{
	struct buf text = {0};
	bool mended;
	int rc;

	if (in->size > in->inline_limit)
		return by_reference(in, o, e);
	rc = read_range(in->out_fd, 0, (size_t)in->size, &text, e);
	if (rc == 0) {
		o->response = json_string_lossy(buf_view(&text), &mended);
		o->lossy |= mended;
		rc = o->response == NULL ? err_nomem(e) : 0;
		if (rc == 0 && mended)
			rc = note_output(in, buf_view(&text), o->response, o, e);
	}
	buf_clear(&text);
	return rc;
}

/* Nobody wants it as a response, but those that need the operation are given it. */
static int
as_nothing(const struct outcome_input *in, struct outcome *o, struct err *e)
{
	char digest[CKPT_DIGEST_TEXT];
	struct buf text = {0};
	uint64_t size;
	int rc;

	if (in->size == 0)
		return 0;
	if (in->size > in->inline_limit) {
		if (digest_file(in, in->out_fd, digest, &size, e) != 0)
			return -1;
		o->output = file_json(in, size, digest);
		return o->output != NULL ? 0 : err_nomem(e);
	}
	rc = read_range(in->out_fd, 0, (size_t)in->size, &text, e);
	if (rc == 0)
		rc = note_output(in, buf_view(&text), NULL, o, e);
	buf_clear(&text);
	return rc;
}

/* Lines that will stand in a file only are judged some at a time, and not kept. */
static int
judge_lines(const struct outcome_input *in, struct slice text, struct err *e)
{
	struct flow_lines l = {.at = text.data, .end = text.data + text.len, .number = 1};
	struct json *some;
	size_t index = 0;
	int rc = 0;

	while (rc == 0 && l.at < l.end) {
		l.values_left = JSON_MAX_RESPONSE_VALUES;
		if (flow_parse_lines(&l, LINES_AT_ONCE, &some, e) != 0)
			return -1;
		rc = flow_schema_fits_lines(in->op->how, some, index, e);
		index += json_length(some);
		json_unref(some);
	}
	return rc;
}

/* A plan that stands in a block of code, as many an agent answers, with nothing around it. */
static struct slice
without_fence(struct slice text)
{
	static const char fence[] = "```";
	size_t len = sizeof(fence) - 1, at;

	for (; text.len > 0 && isspace((unsigned char)text.data[0]); text.data++)
		text.len--;
	while (text.len > 0 && isspace((unsigned char)text.data[text.len - 1]))
		text.len--;
	if (text.len < 2 * len || memcmp(text.data, fence, len) != 0 ||
	    memcmp(text.data + text.len - len, fence, len) != 0)
		return text;
	for (at = len; at < text.len && isalnum((unsigned char)text.data[at]); at++) /* the name of a language */
		;
	if (text.len < at + len)
		return text;
	return (struct slice){text.data + at, text.len - len - at};
}

static int
read_json(const struct outcome_input *in, bool lines, struct buf *text, struct json **out, struct err *e)
{
	size_t values = JSON_MAX_RESPONSE_VALUES;
	struct json_options options = {.max_bytes = JSON_MAX_RESPONSE, .values_left = &values};
	struct flow_lines l = {.number = 1, .values_left = values};
	struct json_failure why = {.fault = JSON_OK};
	int rc;

	if (read_range(in->out_fd, 0, (size_t)in->size, text, e) != 0)
		return -1;
	l.at = text->data;
	l.end = l.at + text->len;
	if (lines && in->size > in->inline_limit && in->plans == NULL)
		return judge_lines(in, buf_view(text), e);
	if (lines)
		return flow_parse_lines(&l, text->len, out, e);
	rc = json_parse(in->plans != NULL ? without_fence(buf_view(text)) : buf_view(text), &options, out, &why, e);
	if (rc != 0 && why.fault == JSON_FAULT_MANY)
		flow_too_many_values(e);
	return rc == 0 || e->code != ERR_SYNTAX ? rc : err_wrap(e, "the answer is no JSON");
}

static int
as_json(const struct outcome_input *in, bool lines, struct outcome *o, struct err *e)
{
	struct json *value = NULL;
	struct buf text = {0};
	int rc;

	if (in->size > JSON_MAX_RESPONSE)
		return err_set(e, ERR_LIMIT, "a JSON response may have 64 MiB, this one has %llu bytes",
		    (unsigned long long)in->size);
	rc = read_json(in, lines, &text, &value, e);
	if (rc == 0 && in->plans != NULL)
		rc = plan_judge(in->plans, &value, &o->left_out, e);
	else if (rc == 0 && value != NULL)
		rc = flow_schema_fits(in->op->how, value, e);
	if (rc == 0 && (in->size <= in->inline_limit || in->plans != NULL))
		rc = note_output(in, buf_view(&text), value, o, e);
	buf_clear(&text);
	if (rc != 0) {
		json_unref(value);
		return -1;
	}
	if (rc == 0 && changes_of_response(value) != NULL)
		o->changes = json_ref(changes_of_response(value));
	if (rc == 0 && reactive_is_asking(value))
		o->asking = json_ref(value);
	if (rc == 0 && in->size > in->inline_limit && in->plans == NULL) {
		json_unref(value);
		return by_reference(in, o, e);
	}
	if (rc == 0)
		o->response = value;
	return rc;
}

/*
 * Of one that failed: as JSON where that is declared and it is, so that conditions can look into it.
 * A mere text stays as it was printed: a text in an entry that failed is always that.
 */
static int
as_said(const struct outcome_input *in, struct outcome *o, struct err *e)
{
	enum flow_response kind = in->op->how->response;
	bool lines = kind == FLOW_RESPONSE_JSONL;
	struct json *value = NULL;
	struct buf text = {0};
	struct err ignored = {0};
	bool is_json;
	int rc;

	if (in->size == 0)
		return 0;
	is_json = (lines || kind == FLOW_RESPONSE_JSON) && in->size <= in->inline_limit &&
	    in->size <= JSON_MAX_RESPONSE && read_json(in, lines, &text, &value, &ignored) == 0 &&
	    json_type(value) != JSON_STRING &&
	    json_depth(value, CKPT_MAX_RESPONSE_DEPTH) <= CKPT_MAX_RESPONSE_DEPTH;
	rc = is_json ? note_output(in, buf_view(&text), value, o, e) : as_text(in, o, e);
	buf_clear(&text);
	if (is_json && rc == 0)
		o->response = value;
	else
		json_unref(value);
	return rc;
}

static int
make_response(const struct outcome_input *in, struct outcome *o, struct err *e)
{
	enum flow_response kind = in->op->how->response;

	if (o->class != CLASS_NONE)
		return as_said(in, o, e);
	switch (kind) {
	case FLOW_RESPONSE_NONE:
		return as_nothing(in, o, e);
	case FLOW_RESPONSE_TEXT:
		return as_text(in, o, e);
	case FLOW_RESPONSE_JSON:
	case FLOW_RESPONSE_JSONL:
		return as_json(in, kind == FLOW_RESPONSE_JSONL, o, e);
	}
	return 0;
}

void
outcome_look(const struct outcome_input *in, struct outcome *o)
{
	struct err e = {0};

	if (o->class == CLASS_NONE)
		look_at_artifacts(in, o);
	if (make_response(in, o, &e) != 0) {
		if (o->class == CLASS_NONE)
			fail(o, CLASS_RESPONSE, "response: %s", e.msg);
		e = (struct err){0};
		/* What it said is kept for people, also when it is not what was declared. */
		if (o->response == NULL && as_said(in, o, &e) != 0)
			o->response = NULL;
	}
	if (o->response != NULL && ckpt_digest(o->response, o->digest, &e) != 0)
		fail(o, CLASS_RESPONSE, "response: %s", e.msg);
}

/* ---- In the loop, or by a job ---- */

struct outcome_job {
	struct io_job job;
	uint32_t op;
	struct outcome_input in;
	struct outcome outcome;
	struct outcome_patience patience; /* asked only when it is lengthy */
	bool looked; /* only what it names is to be saved */
};

static uint64_t
artifact_size(const struct outcome_input *in, const char *path)
{
	struct buf full = {0};
	struct stat st;
	uint64_t size = 0;

	/* What is no regular file by then is refused, and costs nothing. */
	buf_printf(&full, "%s/%s", in->op->id, path);
	if (buf_ok(&full, NULL) == 0 &&
	    fstatat(in->artifacts_fd, buf_text(&full), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISREG(st.st_mode))
		size = (uint64_t)st.st_size;
	buf_clear(&full);
	return size;
}

static bool
is_lengthy(const struct outcome_input *in)
{
	const char *const *path = in->op->how->artifacts;
	struct json_iter it = json_iterate(in->emitted);
	const struct json *one;
	uint64_t all = in->size;

	for (; path != NULL && *path != NULL && all <= LENGTHY_BYTES; path++)
		all += artifact_size(in, *path);
	while (all <= LENGTHY_BYTES && json_next(&it, NULL, &one))
		if (!is_declared(in, json_cstr_of(one)))
			all += artifact_size(in, json_cstr_of(one));
	return all > LENGTHY_BYTES;
}

static void
look_work(struct io_job *job, struct io_context *c)
{
	struct outcome_job *j = (struct outcome_job *)job;

	if (j->looked) {
		save_output(&j->in, &j->outcome, c->ops_fd);
		return;
	}
	if (!job->lengthy && is_lengthy(&j->in)) {
		job->lengthy = true;
		return;
	}
	j->patience.enough = c->enough;
	if (job->lengthy)
		j->in.patience = &j->patience;
	if (j->in.agent != NULL)
		agent_outcome(j->in.agent, &j->in, &j->outcome, c);
	outcome_look(&j->in, &j->outcome);
	save_output(&j->in, &j->outcome, c->ops_fd);
}

static void
look_done(struct io_job *job, void *owner)
{
	struct outcome_job *j = (struct outcome_job *)job;
	struct worker *w = owner;
	struct attempt_run *a = w->ops[j->op].live;

	assert(w->ops[j->op].state == OP_SETTLING && a != NULL);
	a->reading = NULL;
	timer_disarm(&w->loop.timers, &a->limit);
	/* Too late: it has no outcome, like one whose worker has died. */
	if (job->given_up || w->writer == NULL)
		;
	else if (j->patience.given_up)
		settle_unread(a);
	else
		settle_attempt(a, &j->outcome);
	outcome_clear(&j->outcome);
	free(j);
}

static void
tell_reading(void *arg)
{
	struct attempt_run *a = arg;

	event_begin(a->w, "NodeReading");
	event_op(a->w, a->op);
	event_real(a->w, "ended_at", a->ended_at);
	event_end(a->w);
}

void
outcome_hurry(struct attempt_run *a)
{
	int64_t grace_ns = a->w->flow->ops[a->op].how->grace_ns;

	if (a->reading != NULL && a->reading->patience.until_ns == 0)
		a->reading->patience.until_ns = clock_monotonic_ns() + grace_ns;
}

static void
submit(struct attempt_run *a, const struct outcome_input *in, struct outcome *o, bool looked)
{
	struct outcome_job *j = calloc(1, sizeof(*j));
	struct err e = {0};

	if (j == NULL) {
		fail(o, CLASS_RESPONSE, "not enough memory");
		settle_attempt(a, o);
		outcome_clear(o);
		return;
	}
	j->job.work = look_work;
	j->job.done = look_done;
	j->op = a->op;
	j->in = *in;
	j->outcome = *o;
	j->looked = looked;
	a->reading = j;
	if (a->w->stopped_now)
		outcome_hurry(a);
	if (timer_arm(&a->w->loop.timers, &a->limit, clock_monotonic_ns() + READING_TOLD_MS * NS_PER_MS, tell_reading,
		a, &e) != 0)
		worker_error(a->w, &e);
	io_submit(a->w->io, &j->job);
}

void
outcome_begin(struct attempt_run *a)
{
	struct worker *w = a->w;
	const struct flow_op *def = &w->flow->ops[a->op];
	struct outcome_input in = {.out_fd = a->out_fd, .artifacts_fd = w->artifacts_fd, .op = def,
	    .inline_limit = w->inline_limit, .agent = a->agent, .end = a->end, .durable = !w->relaxed};
	struct outcome o = {0};
	struct stat st;

	if (emit_hold(a))
		return;
	in.emitted = emit_artifacts(a);
	outcome_of_end(&a->end, a->forced, def->how, &o);
	if (o.class == CLASS_CANCELLED) {
		settle_attempt(a, &o);
		outcome_clear(&o);
		return;
	}
	in.size = fstat(a->out_fd, &st) == 0 ? (uint64_t)st.st_size : 0;
	snprintf(in.file, sizeof(in.file), RUN_OPS "/%s.%u.out", def->id, a->number);
	in.plans = plan_is_awaited(w, a->op) ? w : NULL;
	if (in.plans != NULL || in.agent != NULL || in.size > WORKER_INLINE_READ || has_artifacts(&in) ||
	    def->how->schema != NULL) {
		submit(a, &in, &o, false);
		return;
	}
	outcome_look(&in, &o);
	if (names_output(&in, &o)) {
		submit(a, &in, &o, true);
		return;
	}
	settle_attempt(a, &o);
	outcome_clear(&o);
}
