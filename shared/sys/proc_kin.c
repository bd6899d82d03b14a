/*
 * Finding by descent. Everybody is listed once, then each is asked for those above it: numbers may pass
 * on meanwhile, so who belongs is looked at again by its start time before it is handed out.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "proc_private.h"

/* ---- By descent ---- */

enum kin { KIN_UNKNOWN, KIN_OPEN, KIN_YES, KIN_NO };

struct relative {
	pid_t pid, ppid, pgrp, session;
	uint64_t start_ticks;
	enum kin kin;
	size_t of; /* with KIN_YES: whose */
};

struct ancestor {
	pid_t pid;
	size_t index; /* as the caller counts */
};

struct family {
	struct relative *list; /* sorted by pid */
	size_t count, cap;
	struct ancestor *ancestors; /* sorted by pid */
	size_t nancestors;
	proc_apart *apart; /* or NULL */
};

static int
add_relative(struct family *all, const struct proc_stat *st, struct err *e)
{
	size_t cap = all->cap ? all->cap * 2 : 256;
	struct relative *more;

	if (all->count == all->cap) {
		more = reallocarray(all->list, cap, sizeof(*more));
		if (more == NULL)
			return err_nomem(e);
		all->list = more;
		all->cap = cap;
	}
	all->list[all->count++] = (struct relative){.pid = st->pid, .ppid = st->ppid,
	    .pgrp = st->pgrp, .session = st->session, .start_ticks = st->start_ticks, .kin = KIN_UNKNOWN};
	return 0;
}

static int
compare_relatives(const void *a, const void *b)
{
	const struct relative *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static int
compare_ancestors(const void *a, const void *b)
{
	const struct ancestor *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static struct relative *
find_relative(const struct family *all, pid_t pid)
{
	const struct relative key = {.pid = pid};

	if (all->count == 0)
		return NULL;
	return bsearch(&key, all->list, all->count, sizeof(*all->list), compare_relatives);
}

static const struct ancestor *
find_ancestor(const struct family *all, pid_t pid)
{
	const struct ancestor key = {.pid = pid};

	if (all->nancestors == 0)
		return NULL;
	return bsearch(&key, all->ancestors, all->nancestors, sizeof(*all->ancestors), compare_ancestors);
}

/* Zombies too: one whose first thread alone has ended may have children. */
static int
list_everybody(struct family *all, struct err *e)
{
	DIR *dir = proc_open_dir(e);
	struct proc_stat st;
	int result = 0;
	pid_t pid;

	if (dir == NULL)
		return -1;
	while ((pid = proc_next_pid(dir)) > 0 && result == 0)
		if (proc_stat_read(pid, &st, NULL) == 0)
			result = add_relative(all, &st, e);
	if (pid < 0)
		result = err_sys(e, ERR_IO, errno, "/proc");
	closedir(dir);
	if (all->count > 0)
		qsort(all->list, all->count, sizeof(*all->list), compare_relatives);
	return result;
}

/* Of `steps` from r upwards the last one that stands apart, or NULL: it and all below it are no kin. */
static struct relative *
find_apart(const struct family *all, struct relative *r, size_t steps)
{
	struct relative *last = NULL;

	for (; all->apart != NULL && steps > 0 && r != NULL; steps--) {
		if (all->apart(r->pid))
			last = r;
		r = find_relative(all, r->ppid);
	}
	return last;
}

/* Goes up from r to somebody who is known, then gives the answer to all on the way. */
static void
settle_kin(const struct family *all, struct relative *r)
{
	const struct ancestor *found = NULL;
	struct relative *at = r, *apart = NULL;
	enum kin answer = KIN_NO;
	size_t of = 0, steps = 0;

	while (at != NULL && at->kin == KIN_UNKNOWN) {
		at->kin = KIN_OPEN;
		steps++;
		if ((found = find_ancestor(all, at->ppid)) != NULL)
			break;
		at = find_relative(all, at->ppid);
	}
	if (found != NULL || (at != NULL && at->kin == KIN_YES)) {
		answer = KIN_YES;
		of = found != NULL ? found->index : at->of;
		apart = find_apart(all, r, steps);
	}
	/* KIN_OPEN met again: numbers passed on while we looked closed a ring; nobody in it counts. */
	for (at = r; at != NULL && at->kin == KIN_OPEN; at = find_relative(all, at->ppid)) {
		at->kin = apart != NULL ? KIN_NO : answer;
		at->of = of;
		if (at == apart)
			apart = NULL;
	}
}

static bool
is_relative(const void *arg, const struct proc_stat *st)
{
	const struct relative *r = arg;

	return st->start_ticks == r->start_ticks;
}

static int
visit_kin(const struct family *all, proc_each *each, void *arg)
{
	bool end = false;
	int count = 0;
	size_t i;

	for (i = 0; i < all->count && !end; i++) {
		settle_kin(all, &all->list[i]);
		if (all->list[i].kin == KIN_YES)
			count += proc_visit(all->list[i].pid, is_relative, &all->list[i], each, arg, &end);
	}
	return count;
}

int
proc_each_descendant(pid_t ancestor, proc_apart *apart, proc_each *each, void *arg, struct err *e)
{
	struct ancestor only = {.pid = ancestor};
	struct family all = {.ancestors = &only, .nancestors = 1, .apart = apart};
	int count = -1;

	if (list_everybody(&all, e) == 0)
		count = visit_kin(&all, each, arg);
	free(all.list);
	return count;
}

/* ---- By leaders ---- */

/* Those that are there, as themselves. */
static int
list_leaders(struct family *all, const struct proc_id *leaders, size_t n, struct err *e)
{
	const struct relative *r;
	size_t i;

	all->ancestors = calloc(n > 0 ? n : 1, sizeof(*all->ancestors));
	if (all->ancestors == NULL)
		return err_nomem(e);
	for (i = 0; i < n; i++) {
		r = find_relative(all, leaders[i].pid);
		if (r != NULL && r->start_ticks == leaders[i].start_ticks)
			all->ancestors[all->nancestors++] = (struct ancestor){r->pid, i};
	}
	qsort(all->ancestors, all->nancestors, sizeof(*all->ancestors), compare_ancestors);
	return 0;
}

struct of_leader {
	proc_of_leader *each;
	void *arg;
	size_t leader;
};

static int
visit_of_leader(void *arg, const struct proc_stat *st, int pidfd)
{
	const struct of_leader *v = arg;

	return v->each(v->arg, v->leader, st, pidfd);
}

/* A group's number is pinned by its leader, and descent may lead to another one: the group is first. */
static bool
belongs_to_leader(const struct family *all, struct relative *r, size_t *leader)
{
	const struct ancestor *group = find_ancestor(all, r->pgrp);

	settle_kin(all, r);
	*leader = group != NULL ? group->index : r->of;
	return group != NULL || r->kin == KIN_YES;
}

int
proc_each_of_leaders(const struct proc_id *leaders, size_t n, proc_apart *apart, proc_of_leader *each,
    void *arg, struct err *e)
{
	struct of_leader v = {.each = each, .arg = arg};
	struct family all = {.apart = apart};
	bool end = false;
	int count = 0;
	size_t i;

	if (list_everybody(&all, e) != 0 || list_leaders(&all, leaders, n, e) != 0)
		count = -1;
	for (i = 0; count >= 0 && i < all.count && !end; i++)
		if (belongs_to_leader(&all, &all.list[i], &v.leader))
			count += proc_visit(all.list[i].pid, is_relative, &all.list[i], visit_of_leader, &v, &end);
	free(all.ancestors);
	free(all.list);
	return count;
}

/* ---- Of one operation ---- */

void
proc_operation_init(struct proc_operation *of, struct proc_id leader, const char *run_id, const char *op,
    unsigned attempt)
{
	*of = (struct proc_operation){.leader = leader};
	snprintf(of->run, sizeof(of->run), "FLOWSUP_RUN_ID=%s", run_id);
	snprintf(of->op, sizeof(of->op), "FLOWSUP_OP_ID=%s", op);
	snprintf(of->attempt, sizeof(of->attempt), "FLOWSUP_ATTEMPT=%u", attempt);
}

/* What bears the marks cannot be older than the leader; who is, is not asked for its environment. */
static bool
is_of_operation(const struct relative *r, const struct proc_operation *of, bool leads)
{
	const char *const text[] = {of->run, of->op, of->attempt};
	const struct proc_marks marks = {text, sizeof(text) / sizeof(text[0])};

	if (leads && (r->pid == of->leader.pid || r->pgrp == of->leader.pid || r->session == of->leader.pid))
		return true;
	return r->start_ticks >= of->leader.start_ticks && proc_environ_has(r->pid, &marks);
}

/* Before anybody is asked for those above it: what has lost its parent may have children. */
static void
note_operation(struct family *all, const struct proc_operation *of)
{
	const struct relative *leader = find_relative(all, of->leader.pid);
	bool leads = leader != NULL && leader->start_ticks == of->leader.start_ticks;
	size_t i;

	for (i = 0; i < all->count; i++)
		if (is_of_operation(&all->list[i], of, leads))
			all->list[i].kin = KIN_YES;
}

int
proc_each_of_operation(const struct proc_operation *of, proc_each *each, void *arg, struct err *e)
{
	struct family all = {0};
	int count = -1;

	if (list_everybody(&all, e) == 0) {
		note_operation(&all, of);
		count = visit_kin(&all, each, arg);
	}
	free(all.list);
	return count;
}
