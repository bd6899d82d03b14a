#include "known_op.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "flowsup/log.h"
#include "view.h"

static void
hint_at(const char *run_id, const char *op, const char *near, const struct cli *c, struct err *e)
{
	if (near != NULL)
		cli_hint_instead(c, op, strlen(op), near, e);
	if (!err_has_hint(e))
		err_hint(e, "flowsup show %s", run_id);
}

/* The first item of a foreach that is called so: the items are the operations. */
static const char *
first_item(const struct flow *f, const char *op)
{
	size_t i, len = strlen(op);

	for (i = 0; i < f->nops; i++)
		if (strncmp(f->ops[i].id, op, len) == 0 && f->ops[i].id[len] == '.')
			return f->ops[i].id;
	return NULL;
}

int
known_op_refuse(const char *run_id, const struct flow *f, const char *op, const struct cli *c,
    struct err *e)
{
	const char **names = calloc(f->nops + 1, sizeof(*names)), *item = first_item(f, op);
	size_t i;

	if (names == NULL)
		return err_nomem(e);
	for (i = 0; i < f->nops; i++)
		names[i] = f->ops[i].id;
	err_set(e, ERR_NOTFOUND, "run %s has no operation \"%.64s\"%s", run_id, op,
	    item != NULL ? ": each of its items is one" : "");
	hint_at(run_id, op, item != NULL ? item : text_nearest(op, names, f->nops), c, e);
	free(names);
	return -1;
}

/* Not of one that goes on from another's state and has saved none of its own yet. */
static bool
can_tell(const struct run_files *f)
{
	return f->flow != NULL && f->state_error.code == ERR_NONE &&
	    (f->state != NULL || faccessat(f->fd, RUN_CARRY, F_OK, 0) != 0);
}

/* What was added is in the checkpoint, which may be large: it is read only for what is not planned. */
static bool
is_planned(const struct home *h, const struct session *s, const char *op)
{
	struct err ignored = {0};
	struct run_files f;
	bool found;

	if (run_files_open(h, s, false, &f, &ignored) != 0)
		return false;
	found = f.flow != NULL && flow_find(f.flow, op) != SIZE_MAX;
	run_files_close(&f);
	return found;
}

int
known_op_check(const struct home *h, const struct session *s, const char *op,
    const struct cli *c, struct err *e)
{
	struct err unreadable = {0};
	struct run_files f;
	int r = 0;

	if (is_planned(h, s, op) || run_files_open(h, s, true, &f, &unreadable) != 0)
		return 0;
	if (can_tell(&f) && flow_find(f.flow, op) == SIZE_MAX)
		r = known_op_refuse(s->run_id, f.flow, op, c, e);
	run_files_close(&f);
	return r;
}
