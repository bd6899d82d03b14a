/*
 * What must be there before an operation's process is started: marks of messages, which the
 * checkpoint writer makes durable, and files, which the io thread writes. The operation holds its
 * slot meanwhile; afterwards admission and gate are looked at again.
 */
#include "agent.h"

#include "start_line.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/fs.h"

enum { CONTEXT_NAME = 64 };

struct prepare_job {
	struct io_job job;
	uint32_t op;
	char dir[OP_FILE_TEXT];	     /* of the attempt, for `started`; "" when it needs none */
	struct buf mark;	     /* the text of it */
	char messages[OP_FILE_TEXT]; /* "" when it takes none */
	struct buf lines;
	struct json *context; /* NULL: it needs no file of it */
	struct json *prompt;
	unsigned version;
	const struct flow_op *artifacts_of; /* NULL: it declares none */
	int artifacts_fd;
};

static bool
needs_context(const struct worker *w, uint32_t i)
{
	return w->flow->ops[i].how->context || w->flow->ops[i].kind == FLOW_INSTRUCTION;
}

/* An agent's directory is made, with its mark, by agent_files.c. */
static int
make_mark(const struct worker *w, uint32_t i, struct buf *to, struct err *e)
{
	return w->flow->ops[i].kind == FLOW_INSTRUCTION ? 0 : start_mark_make(w, i, to, e);
}

static bool
has_artifacts(const struct flow_op *def)
{
	return def->how->artifacts != NULL && def->how->artifacts[0] != NULL;
}

/* ---- In the io thread ---- */

/* An operation that must not be repeated silently: that it was started is durable first. */
static int
write_started(int ops_fd, const char *dir, struct slice mark, struct err *e)
{
	int fd, rc;

	if (mkdirat(ops_fd, dir, 0700) != 0 && errno != EEXIST)
		return err_sys(e, ERR_IO, errno, "cannot create ops/%s", dir);
	fd = fs_open_private_dir(ops_fd, dir, e);
	rc = fd < 0 ? -1 : fs_create_file(fd, "started", mark, e);
	if (rc == 0)
		rc = fs_sync_dir(&fs_real, "started.dir", fd, NULL, e);
	if (rc == 0)
		rc = fs_sync_dir(&fs_real, "started.ops", ops_fd, NULL, e);
	fd_close(&fd);
	return rc;
}

static int
write_file(int dir, const char *name, mode_t mode, struct slice bytes, struct err *e)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode);
	int rc;

	if (fd < 0)
		return err_sys(e, ERR_IO, errno, "cannot create '%s'", name);
	rc = fs_write_all(&fs_real, "prepare.write", fd, bytes, e);
	fd_close(&fd);
	return rc;
}

static int
encode_context(const struct prepare_job *j, struct buf *to, struct err *e)
{
	struct json *whole = json_set(json_object(), "prompt", json_ref(j->prompt));

	whole = json_set(whole, "context", json_ref(j->context));
	if (whole == NULL)
		return err_nomem(e);
	json_write(to, whole);
	buf_putc(to, '\n');
	json_unref(whole);
	return buf_ok(to, e);
}

/* Once per version. It appears whole under its name, for another operation may read it already. */
static int
write_context(const struct prepare_job *j, int run_fd, struct err *e)
{
	char name[CONTEXT_NAME], made[CONTEXT_NAME + 8];
	struct buf text = {0};
	int dir, rc;

	if (mkdirat(run_fd, RUN_CONTEXT, 0700) != 0 && errno != EEXIST)
		return err_sys(e, ERR_IO, errno, "cannot create '%s'", RUN_CONTEXT);
	dir = fs_open_private_dir(run_fd, RUN_CONTEXT, e);
	if (dir < 0)
		return -1;
	snprintf(name, sizeof(name), "%u.json", j->version);
	snprintf(made, sizeof(made), ".%s", name);
	rc = 0;
	if (faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) != 0) {
		unlinkat(dir, made, 0);
		rc = encode_context(j, &text, e);
		if (rc == 0)
			rc = write_file(dir, made, 0400, buf_view(&text), e);
		if (rc == 0 && renameat(dir, made, dir, name) != 0)
			rc = err_sys(e, ERR_IO, errno, "cannot rename '%s'", made);
	}
	buf_clear(&text);
	fd_close(&dir);
	return rc;
}

static void
prepare_work(struct io_job *job, struct io_context *c)
{
	struct prepare_job *j = (struct prepare_job *)job;

	job->result = 0;
	if (j->messages[0] != '\0')
		job->result = write_file(c->ops_fd, j->messages, 0600, buf_view(&j->lines),
		    &job->error);
	if (job->result == 0 && j->context != NULL)
		job->result = write_context(j, c->run_fd, &job->error);
	if (job->result == 0 && j->artifacts_of != NULL)
		job->result = artifacts_remove_stale(j->artifacts_fd, j->artifacts_of, &job->error);
	if (job->result == 0 && j->dir[0] != '\0')
		job->result = write_started(c->ops_fd, j->dir, buf_view(&j->mark), &job->error);
}

/* ---- In the loop ---- */

static void
job_free(struct prepare_job *j)
{
	buf_clear(&j->lines);
	buf_clear(&j->mark);
	json_unref(j->context);
	json_unref(j->prompt);
	free(j);
}

/* An agent has more to prepare. */
static void
go_on(struct attempt_run *a)
{
	if (a->w->flow->ops[a->op].kind == FLOW_INSTRUCTION)
		agent_prepare(a);
	else
		spawn_now(a);
}

static void
prepare_done(struct io_job *job, void *owner)
{
	struct prepare_job *j = (struct prepare_job *)job;
	struct worker *w = owner;
	struct attempt_run *a = w->ops[j->op].live;

	assert(w->ops[j->op].state == OP_PREPARING);
	if (job->result != 0) {
		spawn_failed(a, CLASS_SPAWN, &job->error);
	} else if (!admission_open(w) || w->gate_closed) {
		spawn_give_back(a, j->dir[0] != '\0' ? j->dir : NULL);
	} else {
		if (j->context != NULL && j->version > w->context_written)
			w->context_written = j->version;
		go_on(a);
	}
	job_free(j);
}

static int
fill_job(struct attempt_run *a, struct prepare_job *j, struct err *e)
{
	struct worker *w = a->w;
	const struct flow_op *def = &w->flow->ops[a->op];

	j->job.work = prepare_work;
	j->job.done = prepare_done;
	j->op = a->op;
	j->artifacts_of = has_artifacts(def) ? def : NULL;
	j->artifacts_fd = w->artifacts_fd;
	if (make_mark(w, a->op, &j->mark, e) != 0)
		return -1;
	if (j->mark.len > 0)
		op_file_name(w, a->op, a->number, "", j->dir);
	if (messages_by_file(w, a->op)) {
		op_file_name(w, a->op, a->number, ".messages", j->messages);
		messages_render(w, a->op, &j->lines);
	}
	if (needs_context(w, a->op) && w->context_version > w->context_written) {
		j->version = w->context_version;
		j->context = json_ref(flow_context_public(w));
		j->prompt = json_cstr(w->flow->prompt);
		if (j->context == NULL || j->prompt == NULL)
			return err_nomem(e);
	}
	return buf_ok(&j->lines, e);
}

/* Whether anything is to be written or removed before it may start. */
static bool
needs_files(const struct worker *w, uint32_t i)
{
	const struct flow_op *def = &w->flow->ops[i];

	return !def->how->idempotent || has_artifacts(def) || messages_by_file(w, i) ||
	    (needs_context(w, i) && w->context_version > w->context_written);
}

void
prepare_start(struct attempt_run *a)
{
	struct worker *w = a->w;
	struct prepare_job *j;
	struct err e = {0};

	a->context_version = needs_context(w, a->op) ? w->context_version : 0;
	if (!needs_files(w, a->op)) {
		go_on(a);
		return;
	}
	j = calloc(1, sizeof(*j));
	if (j == NULL || fill_job(a, j, &e) != 0) {
		if (j == NULL)
			err_nomem(&e);
		else
			job_free(j);
		spawn_failed(a, CLASS_SPAWN, &e);
		return;
	}
	io_submit(w->io, &j->job);
}

void
spawn_marked(struct worker *w, uint32_t i, bool durable)
{
	struct attempt_run *a = w->ops[i].live;

	assert(w->ops[i].state == OP_PREPARING);
	if (durable) {
		event_begin(w, "MessageRendered");
		event_op(w, i);
		event_int(w, "count", (int64_t)a->messages);
		event_end(w);
	}
	if (!durable || !admission_open(w) || w->gate_closed)
		spawn_give_back(a, NULL);
	else
		prepare_start(a);
}
