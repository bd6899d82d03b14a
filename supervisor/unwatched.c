#include "unwatched.h"

#include <string.h>

#include "flowsup/fs.h"
#include "view.h"

struct count {
	const struct home *home;
	struct unwatched *to;
};

static unsigned
survivors(const struct home *h, const struct session *s)
{
	int run_fd = rundir_open(h, s->run_id, NULL);
	struct attempts a = {0};
	unsigned n = 0;

	if (run_fd >= 0 && attempts_read(run_fd, &a, NULL) == 0)
		n = view_survivors(&a);
	attempts_clear(&a);
	fd_close(&run_fd);
	return n;
}

/* A resume takes over what runs of the run before it; what a row tells of no operation has none. */
static int
count_one(void *arg, const struct session *s)
{
	const struct json *running = json_get(s->metadata, "running_operations");
	struct count *c = arg;
	unsigned n;

	if (s->resumed_as_run[0] != '\0' || (running != NULL && json_length(running) == 0) ||
	    session_is_copy(s, c->home))
		return 0;
	n = survivors(c->home, s);
	if (n > 0 && c->to->runs++ == 0)
		memcpy(c->to->run, s->run_id, sizeof(c->to->run));
	c->to->ops += n;
	return 0;
}

int
unwatched_count(const struct home *h, struct store *s, struct unwatched *out, struct err *e)
{
	static const struct session_filter crashed = {
	    .statuses = {STATUS_CRASHED}, .nstatuses = 1, .brief = true};
	struct unwatched found = {0};
	struct count c = {h, &found};

	if (session_list(s, &crashed, count_one, &c, e) != 0)
		return -1;
	*out = found;
	return 0;
}

void
unwatched_text(const struct unwatched *u, struct buf *to)
{
	const bool one = u->ops == 1;

	buf_printf(to, "%u operation%s of run %s", u->ops, one ? "" : "s", u->run);
	if (u->runs > 1)
		buf_printf(to, " and %u more", u->runs - 1);
	buf_printf(to, ", whose worker is dead, run%s on, and nobody sees to %s limits", one ? "s" : "",
	    one ? "its" : "their");
}
