#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/checkpoint.h"
#include "flowsup/endops.h"
#include "flowsup/flow.h"
#include "flowsup/fs.h"
#include "seek.h"

/* ---- The worker ---- */

void
seek_words(const struct home *h, const char *run_id, const char *words[SEEK_WORDS])
{
	const char *all[SEEK_WORDS] = {"flowsup-worker", "--home", h->path, "--run", run_id, NULL};

	memcpy(words, all, sizeof(all));
}

/* A proc_each. */
static int
take_first(void *arg, const struct proc_stat *st, int pidfd)
{
	struct proc_id *id = arg;

	(void)pidfd;
	*id = (struct proc_id){st->pid, st->start_ticks};
	return 1;
}

int
seek_worker(const struct home *h, const char *run_id, struct proc_id *out, struct err *e)
{
	const char *words[SEEK_WORDS];

	seek_words(h, run_id, words);
	return proc_each_command(words, take_first, out, e);
}

/* ---- Killed, stopped ---- */

static const char *const marks[] = {[SEEK_KILLED] = "killed", [SEEK_STOPPED] = "stopped"};

int
seek_set_mark(int run_fd, enum seek_mark mark, struct err *e)
{
	int fd = openat(run_fd, marks[mark], O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_sys(e, ERR_IO, errno, "cannot create '%s'", marks[mark]);
	fd_close(&fd);
	return fsync(run_fd) == 0 ? 0 : err_sys(e, ERR_IO, errno, "cannot store '%s'", marks[mark]);
}

bool
seek_has_mark(const struct home *h, const char *run_id, enum seek_mark mark)
{
	struct err ignored = {0};
	struct stat st;
	int run_fd = rundir_open(h, run_id, &ignored);
	bool found = run_fd >= 0 && fstatat(run_fd, marks[mark], &st, AT_SYMLINK_NOFOLLOW) == 0;

	fd_close(&run_fd);
	return found;
}

/* ---- Telling it ---- */

static bool
is_damage(const struct err *e)
{
	return e->code == ERR_NOTFOUND || e->code == ERR_SYNTAX || e->code == ERR_DOCUMENT || e->code == ERR_LIMIT;
}

int
seek_damaged(const struct session *s, struct err *e)
{
	char name[RUN_ID_TEXT + sizeof("run ")];

	/* As faults of what somebody wrote they are the caller's; here they are damage. */
	if (is_damage(e))
		e->code = ERR_IO;
	snprintf(name, sizeof(name), "run %s", s->run_id);
	if (strncmp(e->msg, name, strlen(name)) != 0)
		err_wrap(e, "%s", name);
	if (err_has_hint(e))
		return -1;
	return status_is_terminal(s->status) ? err_hint(e, "flowsup show %s", s->run_id)
					     : err_hint(e, "flowsup kill %s", s->run_id);
}

void
seek_refuse_damage(struct err *e)
{
	/* Without a fault of the system it could be read, and is not as it was written. */
	if (is_damage(e) || e->code == ERR_IDENTITY || (e->code == ERR_IO && e->sys == 0))
		e->code = ERR_REFUSED;
}

int
seek_damaged_for_good(const struct session *s, struct err *e)
{
	seek_refuse_damage(e);
	return seek_damaged(s, e);
}

int
seek_rundir(const struct home *h, const struct session *s, struct err *e)
{
	int fd = rundir_open(h, s->run_id, e);

	return fd >= 0 ? fd : seek_damaged(s, e);
}

/* ---- Files ---- */

static int
try_launch(int run_fd, bool started, struct err *e)
{
	struct launch_read l;

	(void)started;
	if (launch_read(run_fd, &l, e) != 0)
		return -1;
	launch_read_clear(&l);
	return 0;
}

static int
try_environ(int run_fd, bool started, struct err *e)
{
	char *block, **list;

	(void)started;
	if (environ_read(run_fd, &block, &list, e) != 0)
		return -1;
	free(list);
	free(block);
	return 0;
}

static int
try_lock(int run_fd, bool started, struct err *e)
{
	bool held;

	(void)started;
	return run_lock_held(run_fd, &held, e);
}

/* A planner's operations stand in the checkpoint alone. Without one nothing is known of them. */
static void
take_planned(int run_fd, struct flow **f)
{
	struct ckpt_load_options o = {0};
	struct ckpt_report report;
	struct json *state = NULL;
	struct flow *planned;
	struct err ignored = {0};

	if (run_lock_held(run_fd, &o.lock_held, &ignored) == 0 &&
	    ckpt_load(run_fd, &o, &state, &report, &ignored) == 0 &&
	    flow_from_state(state, &planned, &ignored) == 0) {
		flow_free(*f);
		*f = planned;
	}
	json_unref(state);
}

int
seek_flow(int run_fd, struct flow **out, struct err *e)
{
	struct json *document = NULL;
	int rc = rundir_read_json(run_fd, RUN_FLOW, &document, e);

	if (rc == 0 && (rc = flow_from_document(document, out, e)) != 0)
		err_wrap(e, "'%s'", RUN_FLOW);
	json_unref(document);
	if (rc == 0 && (*out)->unplanned)
		take_planned(run_fd, out);
	return rc;
}

static int
try_flow(int run_fd, bool started, struct err *e)
{
	struct flow *flow;

	(void)started;
	if (seek_flow(run_fd, &flow, e) != 0)
		return -1;
	flow_free(flow);
	return 0;
}

bool
seek_has_started(int run_fd, double started_at)
{
	struct stat st;

	return started_at > 0 || fstatat(run_fd, CKPT_BASE, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

bool
seek_lacks_attempts(bool started, const struct attempts *a)
{
	return started && !a->has_place;
}

bool
seek_hides_start(const struct attempts *a)
{
	bool here = true, other_boot = false;

	return a->torn && (endops_is_here(a, &here, &other_boot, NULL) != 0 || !other_boot);
}

int
seek_attempts(int run_fd, bool started, struct attempts *out, struct err *e)
{
	struct attempts a;

	if (attempts_read(run_fd, &a, e) != 0)
		return -1;
	if (!seek_lacks_attempts(started, &a)) {
		*out = a;
		return 0;
	}
	attempts_clear(&a);
	if (faccessat(run_fd, RUN_ATTEMPTS, F_OK, 0) != 0)
		return err_sys(e, ERR_IO, errno, "%s", RUN_ATTEMPTS);
	return err_set(e, ERR_IO, "'%s' is damaged: the line of the run's worker is not in it",
	    RUN_ATTEMPTS);
}

static int
try_attempts(int run_fd, bool started, struct err *e)
{
	struct attempts a;

	if (seek_attempts(run_fd, started, &a, e) != 0)
		return -1;
	attempts_clear(&a);
	return 0;
}

bool
seek_started_any(const struct attempts *a)
{
	const struct json *line;
	size_t i;

	if (a->torn || a->damaged > 0)
		return true;
	for (i = 0; i < a->nlines; i++) {
		if (a->lines[i].kind == ATTEMPT_LINE_WORKER)
			continue;
		line = attempt_line_json(&a->lines[i]);
		if (line == NULL || json_get(line, "run") == NULL)
			return true;
	}
	return false;
}

bool
seek_lacks_checkpoint(int run_fd, bool started, const struct attempts *a)
{
	struct stat st;

	return fstatat(run_fd, CKPT_BASE, &st, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT &&
	    ((started && a->nlines == 0) || seek_started_any(a));
}

/* The first journal is made before the base, and is empty then. */
static bool
has_records(int run_fd)
{
	struct stat st;

	return fstatat(run_fd, CKPT_JOURNAL, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
}

int
seek_refuse_lost(int run_fd, bool started, struct ckpt_report *report, struct err *e)
{
	struct err ignored = {0};
	struct attempts a;
	bool lacks, no_log, records;

	/* A log that cannot be read is told by itself. */
	if (e->code != ERR_NOTFOUND || attempts_read(run_fd, &a, &ignored) != 0)
		return -1;
	lacks = seek_lacks_checkpoint(run_fd, started, &a);
	no_log = a.nlines == 0;
	attempts_clear(&a);
	records = !lacks && has_records(run_fd);
	if (!lacks && !records)
		return -1;
	strlcpy(report->reason, "missing_base", sizeof(report->reason));
	strlcpy(report->position_file, CKPT_BASE, sizeof(report->position_file));
	err_clear(e);
	return err_set(e, ERR_CHECKPOINT, "there is no '" CKPT_BASE "'%s", records
	    ? ", but " CKPT_JOURNAL " has records" : no_log
	    ? " and no " RUN_ATTEMPTS ", but the run was started"
	    : ", but " RUN_ATTEMPTS " shows that operations were started");
}

int
seek_judge(const struct json *loaded, int format, flow_state_problem *tell, void *arg, struct flow **out,
    struct err *e)
{
	struct json *state = json_ref(loaded);
	struct err why = {0};
	int rc;

	*out = NULL;
	/* What was added under version 1 a resume refuses whatever that is, and all else goes on without. */
	if (format < 2)
		state = json_remove(state, slice_of("spawned"));
	if (state != NULL)
		state = ckpt_migrate(state, format, &why);
	if (state == NULL && (why.code == ERR_NONE || why.code == ERR_NOMEM))
		return err_nomem(e);
	if (state == NULL) {
		tell(arg, FLOW_CHECK_LOADED, NULL, why.msg);
		return 0;
	}
	rc = flow_judge_state(state, tell, arg, out, e);
	json_unref(state);
	return rc;
}

static const struct {
	const char *name;
	int (*try)(int run_fd, bool started, struct err *e);
	bool always; /* from the run's first moment */
} files[] = {
    {RUN_FLOW, try_flow, true},
    {RUN_LAUNCH, try_launch, true},
    {RUN_ENVIRON, try_environ, true},
    {RUN_LOCK, try_lock, true},
    {RUN_ATTEMPTS, try_attempts, false},
};
enum { FILES = sizeof(files) / sizeof(files[0]) };

const char *
seek_missing(int run_fd, bool started)
{
	struct stat st;
	unsigned i;

	for (i = 0; i < FILES; i++)
		if ((started || files[i].always) &&
		    fstatat(run_fd, files[i].name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			return files[i].name;
	return NULL;
}

struct json *
seek_problem(const char *file, const char *text)
{
	struct json *one = json_set(json_object(), "file", json_cstr(file));

	return json_set(one, "error", json_string_lossy(slice_of(text), NULL));
}

int
seek_problems(int run_fd, bool started, struct json **problems, struct err *e)
{
	struct json *all = json_array();
	struct err why;
	unsigned i;

	for (i = 0; i < FILES; i++) {
		why = (struct err){0};
		if (files[i].try(run_fd, started, &why) != 0)
			all = json_append(all, seek_problem(files[i].name, why.msg));
	}
	*problems = all;
	return all != NULL ? 0 : err_nomem(e);
}
