/*
 * What an operation says while it runs (`flowsup emit`). A request carries the token of the attempt;
 * with the end of its process the token is dead. What it asks of the context is checked at once,
 * visible to itself at once, durable with the attempt before it is answered, and enters the shared
 * context with the outcome; of an attempt that fails, or has no outcome, it is dropped.
 */
#include "worker.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "changes.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "taken.h"

enum {
	EMIT_MAX_REQUESTS = 10000,  /* of one attempt, that are kept */
	EMIT_MAX_TEXT = 1000,	    /* of a progress, in bytes */
	EMIT_MAX_PATH = 4096,
	EMIT_VALUE_INLINE = 60000,  /* of an answer; a larger one goes as a memfd */
	EMIT_DEPTH_INLINE = 32	    /* and so does one that is nested deeper: packets are shallow */
};
#define EMIT_MAX_BYTES ((size_t)16 << 20) /* of one attempt */
#define OP_REFUSED "refused" /* a line of EMITTED_FILE that is no request */

struct emitted {
	struct json *requests;  /* changes, in order of arrival */
	struct json *artifacts; /* paths relative to the operation's artifact directory */
	struct json *ids;	/* object: requests that were taken, so that none is taken twice */
	struct json *view;	/* the context with the changes; NULL: to be made */
	const struct json *view_of; /* the context that it was made from; only compared */
	struct json *refused;	/* a request whose sender has not been told so, and why; or NULL */
	size_t bytes;
	unsigned writing;
	bool settle_waits;
};

/* ---- Tokens ---- */

/* For many attempts at once: a system call for each costs more than the bits. */
static const unsigned char *
take_bits(struct worker *w, struct err *e)
{
	if (w->tokens.left == 0) {
		/* Up to 256 bytes come whole, or not at all: getrandom(2). */
		if (getrandom(w->tokens.bits, sizeof(w->tokens.bits), 0) != (ssize_t)sizeof(w->tokens.bits)) {
			err_sys(e, ERR_IO, errno, "cannot get random bits");
			return NULL;
		}
		w->tokens.left = TOKENS_AT_ONCE;
	}
	return w->tokens.bits[--w->tokens.left];
}

int
emit_token(struct attempt_run *a, struct err *e)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *bits = take_bits(a->w, e);
	char *to = a->token;
	size_t n;
	int shift = 32;

	if (bits == NULL)
		return -1;
	for (n = 0; n < TOKEN_BYTES; n++) {
		*to++ = digits[bits[n] >> 4];
		*to++ = digits[bits[n] & 15];
	}
	*to++ = '-';
	while (shift > 4 && a->op >> (shift - 4) == 0)
		shift -= 4;
	for (; shift > 0; shift -= 4)
		*to++ = digits[a->op >> (shift - 4) & 15];
	*to = '\0';
	return 0;
}

/* One below a keeper may speak before its keeper has said that it runs: nobody else has the token. */
static bool
may_speak(const struct attempt_run *a)
{
	enum op_state s = (enum op_state)a->w->ops[a->op].state;

	return !a->exited && (s == OP_RUNNING || (s == OP_PREPARING && a->keeper != NULL));
}

static struct attempt_run *
find_attempt(const struct worker *w, const char *token)
{
	const char *dash = strchr(token, '-');
	unsigned long i = dash != NULL ? strtoul(dash + 1, NULL, 16) : w->flow->nops;
	struct attempt_run *a = i < w->flow->nops ? w->ops[i].live : NULL;

	/* The index of another run's worker may have been another one. */
	if ((a == NULL || strcmp(a->token, token) != 0) && w->taken != NULL)
		for (a = w->live; a != NULL && strcmp(a->token, token) != 0; a = a->following)
			;
	return a != NULL && may_speak(a) && strcmp(a->token, token) == 0 ? a : NULL;
}

/* ---- What is kept of an attempt ---- */

static struct emitted *
kept(struct attempt_run *a, struct err *e)
{
	struct emitted *m = a->emitted;

	if (m != NULL)
		return m;
	m = calloc(1, sizeof(*m));
	if (m != NULL) {
		m->requests = json_array();
		m->artifacts = json_array();
		m->ids = json_object();
	}
	a->emitted = m;
	if (m == NULL || m->requests == NULL || m->artifacts == NULL || m->ids == NULL) {
		emit_clear(a);
		err_nomem(e);
		return NULL;
	}
	return m;
}

void
emit_clear(struct attempt_run *a)
{
	struct emitted *m = a->emitted;

	if (m == NULL)
		return;
	json_unref(m->requests);
	json_unref(m->artifacts);
	json_unref(m->ids);
	json_unref(m->view);
	json_unref(m->refused);
	free(m);
	a->emitted = NULL;
}

const struct json *
emit_artifacts(const struct attempt_run *a)
{
	return a->emitted != NULL ? a->emitted->artifacts : NULL;
}

/* The context with its own changes; borrowed. */
static int
look(struct attempt_run *a, const struct json **view, struct err *e)
{
	struct worker *w = a->w;
	struct emitted *m = a->emitted;
	struct json *made;

	*view = w->flow_context;
	if (m == NULL || json_length(m->requests) == 0)
		return 0;
	if (m->view == NULL || m->view_of != w->flow_context) {
		if (changes_apply(w->flow_context, m->requests, &made, e) != 0)
			return err_wrap(e, "what was asked for before does not apply any more");
		json_unref(m->view);
		m->view = made;
		m->view_of = w->flow_context;
	}
	*view = m->view;
	return 0;
}

int
emit_take(struct attempt_run *a, const struct json *of_response, struct json **context,
    struct err *e)
{
	struct worker *w = a->w;
	bool own = a->emitted != NULL && json_length(a->emitted->requests) > 0;
	struct json *next = json_ref(w->flow_context), *more;

	*context = NULL;
	if (a->emitted != NULL && a->emitted->refused != NULL) {
		json_unref(next);
		return err_set(e, ERR_REFUSED, "what it asked for while its worker was gone is refused: %s",
		    json_cstr_of(json_get(a->emitted->refused, "text")));
	}
	if (own) {
		json_unref(next);
		if (changes_apply(w->flow_context, a->emitted->requests, &next, e) != 0)
			return -1;
	}
	if (of_response != NULL) {
		if (changes_apply(next, of_response, &more, e) != 0) {
			json_unref(next);
			return -1;
		}
		json_unref(next);
		next = more;
	}
	if (own || of_response != NULL)
		*context = next;
	else
		json_unref(next);
	return 0;
}

bool
emit_hold(struct attempt_run *a)
{
	if (a->emitted == NULL || a->emitted->writing == 0)
		return false;
	a->emitted->settle_waits = true;
	return true;
}

/* ---- Durable with the attempt ---- */

struct emit_job {
	struct io_job job;
	struct attempt_run *a; /* stays while `writing` counts this */
	struct link *link;
	uint64_t serial; /* of the connection; it may have gone */
	struct json *line;
	bool artifact;
	char dir[OP_FILE_TEXT];
};

static int
append_line(int dir, struct slice line, struct err *e)
{
	int fd = openat(dir, EMITTED_FILE, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
	    0600);
	int rc;

	if (fd < 0)
		return err_sys(e, ERR_IO, errno, "cannot create '%s'", EMITTED_FILE);
	rc = fs_write_all(&fs_real, "emit.write", fd, line, e);
	if (rc == 0 && fsync(fd) != 0)
		rc = err_sys(e, ERR_IO, errno, "fsync '%s'", EMITTED_FILE);
	fd_close(&fd);
	if (rc == 0)
		rc = fs_sync_dir(&fs_real, "emit.dir", dir, NULL, e);
	return rc;
}

static void
emit_work(struct io_job *job, struct io_context *c)
{
	struct emit_job *j = (struct emit_job *)job;
	bool made = mkdirat(c->ops_fd, j->dir, 0700) == 0;
	struct buf line = {0};
	int fd = -1;

	job->result = 0;
	if (!made && errno != EEXIST)
		job->result = err_sys(&job->error, ERR_IO, errno, "cannot create ops/%s", j->dir);
	json_write(&line, j->line);
	buf_putc(&line, '\n');
	if (job->result == 0)
		job->result = buf_ok(&line, &job->error);
	if (job->result == 0 && (fd = fs_open_private_dir(c->ops_fd, j->dir, &job->error)) < 0)
		job->result = -1;
	if (job->result == 0)
		job->result = append_line(fd, buf_view(&line), &job->error);
	if (job->result == 0 && made)
		job->result = fs_sync_dir(&fs_real, "emit.ops", c->ops_fd, NULL, &job->error);
	fd_close(&fd);
	buf_clear(&line);
}

/* It was refused after all: what came behind it meanwhile is judged without it. */
static void
take_back(struct emitted *m, const struct emit_job *j)
{
	struct json **list = j->artifact ? &m->artifacts : &m->requests;
	const struct json *what = j->artifact ? json_get(j->line, "path") : j->line;
	struct json *less;
	size_t i;

	for (i = 0; i < json_length(*list); i++)
		if (json_at(*list, i) == what)
			break;
	if (i == json_length(*list))
		return;
	less = json_erase(json_ref(*list), i);
	if (less == NULL)
		return; /* then it stays: a refusal that took effect */
	json_unref(*list);
	*list = less;
	json_unref(m->view);
	m->view = NULL;
}

static void refuse(struct attempt_run *a, struct link *l, const struct err *why);

static void
emit_done(struct io_job *job, void *owner)
{
	struct emit_job *j = (struct emit_job *)job;
	struct attempt_run *a = j->a;
	struct emitted *m = a->emitted;

	(void)owner;
	if (job->result != 0)
		take_back(m, j);
	if (j->link->serial == j->serial && job->result == 0)
		link_answer(j->link, NULL, -1);
	else if (j->link->serial == j->serial)
		refuse(a, j->link, &job->error);
	json_unref(j->line);
	free(j);
	if (--m->writing == 0 && m->settle_waits)
		outcome_begin(a);
}

/* Consumes line. */
static int
keep_durably(struct attempt_run *a, struct link *l, struct json *line, bool artifact, struct err *e)
{
	struct emit_job *j = calloc(1, sizeof(*j));

	if (j == NULL) {
		json_unref(line);
		return err_nomem(e);
	}
	j->job.work = emit_work;
	j->job.done = emit_done;
	j->a = a;
	j->link = l;
	j->serial = l->serial;
	j->line = line;
	j->artifact = artifact;
	op_file_name(a->w, a->op, a->number, "", j->dir);
	a->emitted->writing++;
	io_submit(a->w->io, &j->job);
	return 0;
}

/* Whose sender has been told that it is kept, and relies on it, cannot be told any more: the attempt
 * fails by it, also when another worker has it by then. The first is enough. */
static void
refuse_untold(struct attempt_run *a, struct link *l, const struct err *why)
{
	struct err e = {0};
	struct emitted *m = kept(a, &e);
	int rc = m != NULL ? 0 : -1;

	if (m != NULL && m->refused == NULL) {
		m->refused = json_set(json_object(), "op", json_cstr(OP_REFUSED));
		m->refused = json_set(m->refused, "text", json_string_lossy(slice_of(why->msg), NULL));
		rc = m->refused != NULL ? keep_durably(a, l, json_ref(m->refused), false, &e) : err_nomem(&e);
	}
	if (rc != 0)
		worker_error(a->w, &e);
}

static void
refuse(struct attempt_run *a, struct link *l, const struct err *why)
{
	link_refuse(l, why);
	if (l->fd < 0)
		refuse_untold(a, l, why);
}

/* ---- Verbs ---- */

/* 0: it is answered, now or later; -1: refused with *e. */
typedef int emit_verb(struct attempt_run *a, struct link *l, const char *verb,
    const struct json *value, struct err *e);

static int
answer_value(struct link *l, const struct json *found, struct err *e)
{
	struct json *value = json_set(json_object(), "value", json_ref(found));
	struct buf text = {0};
	int fd = -1, rc;

	if (value != NULL && json_encoded_length(value) <= EMIT_VALUE_INLINE &&
	    json_depth(value, EMIT_DEPTH_INLINE + 1) <= EMIT_DEPTH_INLINE) {
		link_answer(l, value, -1);
		return 0;
	}
	if (value == NULL)
		return err_nomem(e);
	json_write(&text, value);
	json_unref(value);
	rc = buf_ok(&text, e);
	if (rc == 0)
		fd = ipc_memfd("emit", buf_view(&text), e);
	buf_clear(&text);
	if (fd < 0)
		return -1;
	link_answer(l, NULL, fd);
	fd_close(&fd);
	return 0;
}

static int
do_get(struct attempt_run *a, struct link *l, const char *verb, const struct json *value,
    struct err *e)
{
	const struct json *pointer = json_get(value, "pointer"), *view, *found;
	struct json *seen;
	int rc = -1;

	(void)verb;
	if (look(a, &view, e) != 0)
		return -1;
	seen = context_public(view);
	if (seen == NULL)
		return err_nomem(e);
	found = json_pointer_get(seen, json_text(pointer), e);
	if (found != NULL)
		rc = answer_value(l, found, e);
	json_unref(seen);
	return rc;
}

static int
check_room(struct emitted *m, size_t more, struct err *e)
{
	if (json_length(m->ids) >= EMIT_MAX_REQUESTS)
		return err_set(e, ERR_LIMIT, "an attempt may ask for %d changes, no more",
		    EMIT_MAX_REQUESTS);
	if (more > EMIT_MAX_BYTES - m->bytes)
		return err_set(e, ERR_LIMIT, "the changes of an attempt may have %zu MiB in all",
		    EMIT_MAX_BYTES >> 20);
	return 0;
}

/* Consumes what. */
static int
remember_as(struct emitted *m, const struct json *value, struct json *what, size_t bytes,
    struct err *e)
{
	struct json *ids = json_setn(json_ref(m->ids), json_text(json_get(value, "id")), what);

	if (ids == NULL)
		return err_nomem(e);
	json_unref(m->ids);
	m->ids = ids;
	m->bytes += bytes;
	return 0;
}

static int
remember(struct emitted *m, const struct json *value, size_t bytes, struct err *e)
{
	return remember_as(m, value, json_bool(true), bytes, e);
}

static int
add_change(struct attempt_run *a, struct link *l, struct json *change, const struct json *value,
    struct err *e)
{
	struct emitted *m = a->emitted;
	size_t bytes = json_encoded_length(change);
	const struct json *view;
	struct json *next, *more;

	if (check_room(m, bytes, e) != 0 || look(a, &view, e) != 0 ||
	    change_apply(view, change, &next, e) != 0)
		return -1;
	more = json_append(json_ref(m->requests), json_ref(change));
	if (more == NULL || remember(m, value, bytes, e) != 0) {
		json_unref(more);
		json_unref(next);
		return err_nomem(e);
	}
	json_unref(m->requests);
	m->requests = more;
	json_unref(m->view);
	m->view = next;
	m->view_of = a->w->flow_context;
	return keep_durably(a, l, json_ref(change), false, e);
}

static bool
was_taken(const struct emitted *m, const struct json *value)
{
	return json_getn(m->ids, json_text(json_get(value, "id"))) != NULL;
}

static int
do_change(struct attempt_run *a, struct link *l, const char *verb, const struct json *value,
    struct err *e)
{
	struct emitted *m = kept(a, e);
	const struct json *v = json_get(value, "value"), *pointer = json_get(value, "pointer");
	struct json *change;
	int rc;

	if (m == NULL)
		return -1;
	if (was_taken(m, value)) {
		link_answer(l, NULL, -1);
		return 0;
	}
	change = json_set(json_object(), "op", json_cstr(verb + sizeof("context.") - 1));
	if (pointer != NULL)
		change = json_set(change, "pointer", json_ref(pointer));
	if (v != NULL)
		change = json_set(change, "value", json_ref(v));
	/* So that it is known again when another worker takes the attempt over. */
	if (json_get(value, "id") != NULL)
		change = json_set(change, "id", json_ref(json_get(value, "id")));
	if (change == NULL)
		return err_nomem(e);
	rc = add_change(a, l, change, value, e);
	json_unref(change);
	return rc;
}

static int
do_progress(struct attempt_run *a, struct link *l, const char *verb, const struct json *value,
    struct err *e)
{
	const struct json *text = json_get(value, "text");
	double fraction;

	(void)verb;
	if (!json_double(json_get(value, "fraction"), &fraction) || fraction < 0 || fraction > 1)
		return err_set(e, ERR_USAGE, "a progress is a number from 0 to 1");
	if (text != NULL && (json_cstr_of(text) == NULL || json_text(text).len > EMIT_MAX_TEXT))
		return err_set(e, ERR_LIMIT, "the text of a progress may have %d bytes", EMIT_MAX_TEXT);
	event_begin(a->w, "NodeProgress");
	event_op(a->w, a->op);
	event_real(a->w, "fraction", fraction);
	if (text != NULL)
		event_text(a->w, "text", json_cstr_of(text));
	event_end(a->w);
	link_answer(l, NULL, -1);
	return 0;
}

/* The path relative to the operation's artifact directory, or NULL. */
static const char *
inside(const struct worker *w, const char *id, const char *path)
{
	size_t root = strlen(w->artifacts_path), len = strlen(id);

	if (path[0] == '/') {
		if (strncmp(path, w->artifacts_path, root) != 0 || path[root] != '/' ||
		    strncmp(path + root + 1, id, len) != 0 || path[root + 1 + len] != '/')
			return NULL;
		path += root + 1 + len + 1;
	}
	return fs_path_is_inside(path) ? path : NULL;
}

static int
check_artifact(const struct worker *w, const char *id, const char *path, struct err *e)
{
	struct buf full = {0};
	const char *why;
	struct stat st;
	int fd, rc;

	buf_printf(&full, "%s/%s", id, path);
	rc = buf_ok(&full, e);
	if (rc == 0) {
		fd = fs_open_artifact(w->artifacts_fd, buf_text(&full), &st, &why);
		if (fd < 0)
			rc = err_set(e, ERR_REFUSED, "artifact \"%s\" %s", path, why);
		fd_close(&fd);
	}
	buf_clear(&full);
	return rc;
}

static int
add_artifact(struct attempt_run *a, struct link *l, const char *path, const struct json *value,
    struct err *e)
{
	struct emitted *m = a->emitted;
	struct json *text = json_cstr(path), *more, *line;

	if (text == NULL)
		return err_nomem(e);
	line = json_set(json_set(json_object(), "op", json_cstr("artifact")), "path", json_ref(text));
	if (json_get(value, "id") != NULL)
		line = json_set(line, "id", json_ref(json_get(value, "id")));
	more = json_append(json_ref(m->artifacts), text);
	if (line == NULL || more == NULL || remember(m, value, strlen(path), e) != 0) {
		json_unref(line);
		json_unref(more);
		return err_nomem(e);
	}
	json_unref(m->artifacts);
	m->artifacts = more;
	return keep_durably(a, l, line, true, e);
}

static int
do_artifact(struct attempt_run *a, struct link *l, const char *verb, const struct json *value,
    struct err *e)
{
	const char *id = a->w->flow->ops[a->op].id, *path = json_cstr_of(json_get(value, "path"));
	struct emitted *m = kept(a, e);

	(void)verb;
	if (m == NULL)
		return -1;
	if (path == NULL || strlen(path) > EMIT_MAX_PATH)
		return err_set(e, ERR_USAGE, "artifact needs a path");
	path = inside(a->w, id, path);
	if (path == NULL)
		return err_set(e, ERR_REFUSED, "an artifact lies in the directory FLOWSUP_ARTIFACTS");
	/* What is found missing only after it was accepted fails the operation at its end. */
	if (l->fd >= 0 && check_artifact(a->w, id, path, e) != 0)
		return -1;
	if (was_taken(m, value) || json_find(m->artifacts, NULL, path) != NULL) {
		link_answer(l, NULL, -1);
		return 0;
	}
	if (check_room(m, strlen(path), e) != 0)
		return -1;
	return add_artifact(a, l, path, value, e);
}

uint32_t
emit_known(const struct attempt_run *a, const struct json *value)
{
	const struct json *id = json_get(value, "id");
	uint64_t i;

	if (a->emitted == NULL || id == NULL ||
	    !json_uint64(json_getn(a->emitted->ids, json_text(id)), &i))
		return OP_NO_INDEX;
	return (uint32_t)i;
}

int
emit_remember(struct attempt_run *a, const struct json *value, uint32_t child, struct err *e)
{
	struct emitted *m = kept(a, e);

	return m == NULL ? -1 : remember_as(m, value, json_uint(child), 0, e);
}

static int
do_grow(struct attempt_run *a, struct link *l, const char *verb, const struct json *value,
    struct err *e)
{
	return reactive_request(a, l, strcmp(verb, "escalate") == 0, value, e);
}

static const struct {
	const char *word;
	emit_verb *act;
	bool outcome; /* the operation's outcome is another without it; growth tells its rejections itself */
} verbs[] = {
    {"context.get", do_get, false},
    {"context.set", do_change, true},
    {"context.append", do_change, true},
    {"context.remove", do_change, true},
    {"progress", do_progress, false},
    {"artifact", do_artifact, true},
    {"spawn", do_grow, false},
    {"escalate", do_grow, false},
};

static int
request(struct worker *w, struct link *l, const struct json *body, const struct json *value,
    struct err *e)
{
	const char *verb = json_cstr_of(json_get(body, "verb"));
	struct attempt_run *a = find_attempt(w, json_cstr_of(json_get(body, "token")));
	size_t i;

	if (a == NULL)
		return err_set(e, ERR_REFUSED,
		    "this attempt of the operation has ended, or is not of this run");
	if (a->taken != NULL)
		taken_spool(a); /* what it said while nobody listened came before this */
	for (i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strcmp(verbs[i].word, verb) == 0)
			return verbs[i].act(a, l, verb, value, e);
	return err_set(e, ERR_REFUSED, "this worker does not know the request \"%.64s\"", verb);
}

/* ---- An attempt that is taken over ---- */

int
emit_restore(struct attempt_run *a, const struct json *line, struct err *e)
{
	struct emitted *m = kept(a, e);
	struct slice op = json_text(json_get(line, "op"));
	bool artifact = slice_is(op, "artifact");
	const struct json *what = artifact ? json_get(line, "path") : line;
	struct json *more;

	if (m == NULL)
		return -1;
	if (slice_is(op, OP_REFUSED) && m->refused == NULL)
		m->refused = json_ref(line);
	if (what == NULL || slice_is(op, OP_REFUSED))
		return 0;
	more = json_append(json_ref(artifact ? m->artifacts : m->requests), json_ref(what));
	if (more == NULL ||
	    (json_get(line, "id") != NULL &&
		remember(m, line, json_encoded_length(line), e) != 0)) {
		json_unref(more);
		return err_nomem(e);
	}
	json_unref(artifact ? m->artifacts : m->requests);
	if (artifact)
		m->artifacts = more;
	else
		m->requests = more;
	return 0;
}

/* Of what was spooled. */
static struct link nobody = {.fd = -1};

/* Its answer goes nowhere: what comes of it is in the log, or in the operation's outcome. */
void
emit_spooled(struct attempt_run *a, const struct json *body)
{
	const char *verb = json_cstr_of(json_get(body, "verb"));
	struct err e = {0};
	size_t i;

	nobody.w = a->w;
	for (i = 0; verb != NULL && i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (strcmp(verbs[i].word, verb) != 0)
			continue;
		if (verbs[i].act(a, &nobody, verb, json_get(body, "value"), &e) == 0)
			return;
		if (verbs[i].outcome)
			refuse(a, &nobody, &e);
		else
			link_refuse(&nobody, &e);
		return;
	}
	err_set(&e, ERR_REFUSED, "this worker does not know the request \"%.64s\"", verb != NULL ? verb : "");
	refuse(a, &nobody, &e);
}

void
emit_unreadable(struct attempt_run *a, const struct err *why)
{
	refuse(a, &nobody, why);
}

bool
emit_is_writing(const struct attempt_run *a)
{
	return (a->emitted != NULL && a->emitted->writing > 0) || reactive_is_recording(a);
}

/* A value too large for a packet comes beside it. */
static int
read_passed(int fd, struct json **out, struct err *e)
{
	const struct json_options o = {.max_bytes = JSON_MAX_REQUEST};
	struct buf text = {0};
	int rc = ipc_memfd_read(fd, JSON_MAX_REQUEST, &text, e);

	if (rc == 0)
		rc = json_parse(buf_view(&text), &o, out, NULL, e);
	buf_clear(&text);
	return rc;
}

void
emit_request(struct worker *w, struct link *l, const struct json *body, int passed)
{
	const struct json *value = json_get(body, "value");
	struct json *read = NULL;
	struct err e = {0};
	int rc = 0;

	if (passed >= 0)
		rc = read_passed(passed, &read, &e);
	if (rc == 0)
		rc = request(w, l, body, read != NULL ? read : value, &e);
	if (rc != 0)
		link_refuse(l, &e);
	json_unref(read);
}
