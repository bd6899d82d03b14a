#include "gc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client.h"
#include "flowsup/fs.h"
#include "seek.h"
#include "view.h"

enum { GONE_NAME = sizeof(GC_GONE) + RUN_ID_TEXT };

/* Without memory nothing more can be done; else it is told, and the next one is looked at. 0, or -1. */
static int
set_aside(const struct gc_aside *aside, const char *name, struct err *e)
{
	if (e->code == ERR_NOMEM)
		return -1;
	aside->tell(aside->arg, name, e);
	err_clear(e);
	return 0;
}

/* ---- What holds one ---- */

static const char locked[] = "it is locked";

/* 1: something of it runs (*why says what). Of a copy nothing runs here: that is its original's. */
static int
check_nothing_runs(const struct home *h, const struct session *s, int run_fd, struct leftovers *left,
    const char **why, struct err *e)
{
	struct attempts a = {0};
	int rc = attempts_read(run_fd, &a, e) == 0 ? 0 : e->code == ERR_NOTFOUND ? 0 : -1;
	int n = 0;

	if (rc == 0 && session_is_copy(s, h)) {
		/* its marks and numbers are those of the original */
	} else if (rc == 0 && view_survivors(&a) > 0) {
		*why = "operations of it still run";
		rc = 1;
	} else if (rc == 0 && (n = leftovers_count(left, s->run_id, run_fd, &a, e)) > 0) {
		*why = "processes that its operations left still run";
		rc = 1;
	}
	if (n < 0)
		rc = -1;
	attempts_clear(&a);
	return rc;
}

/* As its removal will find it, as long as nothing changes. */
static int
look_at_one(const struct home *h, const struct session *s, struct leftovers *left, const char **why, struct err *e)
{
	int run_fd = rundir_open(h, s->run_id, e), rc;
	bool held = false;

	if (run_fd < 0) {
		rc = e->code == ERR_NOTFOUND ? 0 : -1;
	} else if (seek_lock_held(run_fd, RUN_LOCK_OVER_MS, &held, e) != 0 && e->code != ERR_NOTFOUND) {
		rc = -1;
	} else if (held) {
		*why = locked;
		rc = 1;
	} else {
		err_clear(e);
		rc = check_nothing_runs(h, s, run_fd, left, why, e);
	}
	if (rc >= 0)
		err_clear(e);
	fd_close(&run_fd);
	return rc;
}

/* ---- Which ---- */

/* Session ids and run ids that something which stays refers to. Few: only of chains and forks. */
struct planning {
	const struct gc_rules *rules;
	double now;
	const struct home *home;
	struct leftovers *left;
	const struct gc_aside *aside;
	struct gc_plan *plan;
	struct json *needed; /* object, id -> true */
	int64_t seen;
	struct err err;
};

static bool
is_over(const struct session *s)
{
	return status_is_terminal(s->status) && !session_is_restarting(s);
}

static bool
is_old(const struct planning *p, const struct session *s)
{
	double keep = p->rules->keep_s, age = p->now - (s->ended_at > 0 ? s->ended_at : s->created_at);

	if (p->rules->keep_runs >= 0 && p->seen <= p->rules->keep_runs)
		return false;
	if (s->status != STATUS_COMPLETED && p->rules->keep_failed_s >= 0)
		keep = p->rules->keep_failed_s;
	return keep < 0 || age >= keep;
}

static void
need(struct planning *p, const char *id)
{
	if (id == NULL || id[0] == '\0')
		return;
	p->needed = json_set(p->needed, id, json_bool(true));
	if (p->needed == NULL)
		err_nomem(&p->err);
}

static int
add(struct planning *p, const struct session *s, const char *held)
{
	struct gc_plan *plan = p->plan;
	size_t cap = plan->cap > 0 ? plan->cap * 2 : 64;
	struct gc_item *more;

	if (plan->count == plan->cap) {
		more = reallocarray(plan->items, cap, sizeof(*more));
		if (more == NULL)
			return err_nomem(&p->err);
		plan->items = more;
		plan->cap = cap;
	}
	memcpy(plan->items[plan->count].run_id, s->run_id, RUN_ID_TEXT);
	plan->items[plan->count++].held = held;
	return 0;
}

static bool
is_needed(const struct planning *p, const struct session *s)
{
	return json_get(p->needed, s->session_id) != NULL || json_get(p->needed, s->run_id) != NULL;
}

/* 1: it goes, 0: it stays, -1 with p->err. */
static int
judge(struct planning *p, const struct session *s)
{
	const char *why = NULL;
	int held;

	if (!is_over(s) || !is_old(p, s)) {
		p->plan->kept++;
		return 0;
	}
	if (is_needed(p, s)) {
		p->plan->kept++;
		p->plan->needed++;
		return 0;
	}
	held = look_at_one(p->home, s, p->left, &why, &p->err);
	if (held < 0)
		return set_aside(p->aside, s->run_id, &p->err);
	return add(p, s, why) == 0 ? held == 0 : -1;
}

/* Newest first, so that whatever refers to a run has been seen before it. */
static int
on_run(void *arg, const struct session *s)
{
	struct planning *p = arg;

	p->seen++;
	if (judge(p, s) == 0) {
		need(p, s->resumed_from);
		need(p, json_cstr_of(json_get(s->metadata, "forked_from")));
	}
	return p->err.code != ERR_NONE;
}

int
gc_plan(const struct home *h, struct store *s, const struct gc_rules *rules, double now,
    struct leftovers *left, const struct gc_aside *aside, struct gc_plan *out, struct err *e)
{
	struct gc_plan plan = {0};
	struct planning p = {.rules = rules, .now = now, .home = h, .left = left, .aside = aside, .plan = &plan,
	    .needed = json_object()};
	int rc = p.needed == NULL ? err_nomem(e) : session_list(s, NULL, on_run, &p, e);

	if (rc == 0 && p.err.code != ERR_NONE) {
		*e = p.err;
		rc = -1;
	}
	json_unref(p.needed);
	if (rc == 0)
		*out = plan;
	else
		gc_plan_clear(&plan);
	return rc;
}

void
gc_plan_clear(struct gc_plan *p)
{
	free(p->items);
	*p = (struct gc_plan){0};
}

/* ---- Removal ---- */

int
gc_alone(const struct home *h, int *lock_fd, struct err *e)
{
	int rc;

	*lock_fd = openat(h->runs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*lock_fd < 0)
		return err_sys(e, ERR_IO, errno, "open '%s/" HOME_RUNS "'", h->path);
	do
		rc = flock(*lock_fd, LOCK_EX);
	while (rc != 0 && errno == EINTR);
	if (rc == 0)
		return 0;
	err_sys(e, ERR_IO, errno, "lock '%s/" HOME_RUNS "'", h->path);
	fd_close(lock_fd);
	return -1;
}

/* What the supervisor keeps for its resume goes with it. */
static void
drop_values(const struct home *h, const struct session *s)
{
	if (json_length(json_get(s->policy, "withheld")) > 0)
		client_drop_values(h, s->run_id);
}

static int
take_away(const struct home *h, struct store *s, const struct session *row, const struct gc_aside *aside,
    struct err *e)
{
	const char *run_id = row->run_id;
	char gone[GONE_NAME];
	bool moved;

	snprintf(gone, sizeof(gone), GC_GONE "%s", run_id);
	moved = renameat(h->runs_fd, run_id, h->runs_fd, gone) == 0;
	if (!moved && errno != ENOENT) {
		err_sys(e, ERR_IO, errno, "run %s: rename its directory", run_id);
		return set_aside(aside, run_id, e) == 0 ? 1 : -1;
	}
	if (session_remove(s, run_id, e) != 0) {
		/* What keeps its row keeps its files; where that fails, the next gc ends what was begun. */
		if (moved)
			(void)renameat(h->runs_fd, gone, h->runs_fd, run_id);
		return -1;
	}
	drop_values(h, row);
	if (fs_remove_tree(h->runs_fd, gone, e) == 0)
		return 0;
	err_wrap(e, "run %s", run_id);
	return set_aside(aside, gone, e) == 0 ? 1 : -1;
}

/* With the lock, which *lock is then, nobody takes it up. As look_at_one(). */
static int
hold_one(const struct home *h, const struct session *row, struct leftovers *left, int *lock, const char **why,
    struct err *e)
{
	int run_fd = rundir_open(h, row->run_id, e), rc = 0;

	if (run_fd < 0 && e->code != ERR_NOTFOUND)
		return -1;
	err_clear(e);
	if (run_fd < 0)
		return 0;
	*lock = run_lock_take(run_fd, RUN_LOCK_OVER_MS, e);
	if (*lock < 0 && e->code == ERR_BUSY) {
		*why = locked;
		rc = 1;
	} else if (*lock < 0 && e->code != ERR_NOTFOUND) {
		rc = -1;
	} else {
		err_clear(e);
		rc = check_nothing_runs(h, row, run_fd, left, why, e);
	}
	if (rc >= 0)
		err_clear(e);
	fd_close(&run_fd);
	return rc;
}

static int
remove_locked(const struct home *h, struct store *s, const struct session *row, struct leftovers *left,
    const struct gc_aside *aside, const char **why, struct err *e)
{
	int lock = -1, rc = hold_one(h, row, left, &lock, why, e);

	if (rc == 0)
		rc = take_away(h, s, row, aside, e);
	else if (rc < 0)
		rc = set_aside(aside, row->run_id, e) == 0 ? 1 : -1;
	fd_close(&lock);
	return rc;
}

int
gc_remove(const struct home *h, struct store *s, const char *run_id, struct leftovers *left,
    const struct gc_aside *aside, const char **why, struct err *e)
{
	struct session row = {0};
	int rc;

	/* Without a row there is nothing but its files. */
	if (session_read(s, run_id, &row, e) != 0 && e->code != ERR_NOTFOUND)
		return -1;
	err_clear(e);
	strlcpy(row.run_id, run_id, sizeof(row.run_id));
	*why = NULL;
	rc = remove_locked(h, s, &row, left, aside, why, e);
	session_clear(&row);
	return rc;
}

/* ---- What was left half done ---- */

/* A run gets its directory whole: one with nothing in it is what a removal left. */
static bool
is_empty_run(const struct home *h, const char *name)
{
	int fd = run_id_is_valid(name)
	    ? openat(h->runs_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
	    : -1;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	bool empty = dir != NULL;

	if (dir == NULL) {
		fd_close(&fd);
		return false;
	}
	errno = 0;
	while (empty && (entry = readdir(dir)) != NULL)
		empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
	empty = empty && errno == 0;
	closedir(dir);
	return empty;
}

/* The row is asked for after the stage: one that is born in between has it. 1 yes, 0 no, -1 with *e. */
static int
is_cut_off(const struct home *h, struct store *s, const char *name, struct err *e)
{
	struct session row;

	if (rundir_stage(h, name) != RUNDIR_CUT_OFF && !is_empty_run(h, name))
		return 0;
	if (!run_id_is_valid(name))
		return 1;
	if (session_read(s, name, &row, e) == 0) {
		session_clear(&row);
		return 0;
	}
	if (e->code != ERR_NOTFOUND)
		return -1;
	err_clear(e);
	return 1;
}

static int
finish_one(const struct home *h, struct store *s, const char *name, bool dry_run, const struct gc_aside *aside,
    unsigned *found, struct err *e)
{
	bool gone = strncmp(name, GC_GONE, strlen(GC_GONE)) == 0;
	int cut = gone ? 1 : is_cut_off(h, s, name, e);

	if (cut <= 0)
		return cut;
	if (dry_run) {
		++*found;
		return 0;
	}
	if (gone && run_id_is_valid(name + strlen(GC_GONE)) &&
	    session_remove(s, name + strlen(GC_GONE), e) != 0)
		return -1;
	if (fs_remove_tree(h->runs_fd, name, e) != 0)
		return set_aside(aside, name, e);
	++*found;
	return 0;
}

int
gc_leftovers(const struct home *h, struct store *s, bool dry_run, const struct gc_aside *aside, unsigned *found,
    struct err *e)
{
	int fd = openat(h->runs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	*found = 0;
	if (dir == NULL) {
		rc = err_sys(e, ERR_IO, errno, "read '%s/" HOME_RUNS "'", h->path);
		fd_close(&fd);
		return rc;
	}
	while (rc == 0 && (entry = readdir(dir)) != NULL)
		rc = finish_one(h, s, entry->d_name, dry_run, aside, found, e);
	closedir(dir);
	return rc;
}
