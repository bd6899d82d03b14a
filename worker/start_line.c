/* The line of attempts.log that a child writes before exec; flowsup/home.h has its members. */
#include "start_line.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent.h"
#include "changes.h"
#include "flowsup/clock.h"
#include "flowsup/fs.h"

enum {
	RANGES_MOST = 64, /* in the line; the rest of it never takes more than the others */
	START_LINE_USUAL = 250,
};

/* Who gets what we leave when we die: the supervisor that started us, while it lives. */
static struct proc_id
find_reaper(const struct worker *w)
{
	return w->parent.pid > 0 && getppid() == w->parent.pid ? w->parent : (struct proc_id){0};
}

static bool
has_room(const struct buf *ranges)
{
	return ranges->len <= RANGES_MOST;
}

static void
add_signals(const struct agent *g, struct buf *to)
{
	unsigned n;

	if (g == NULL || g->p->nsignals == 0)
		return;
	buf_puts(to, ",\"signals\":[");
	for (n = 0; n < g->p->nsignals; n++)
		buf_printf(to, "%s[%d,%lld]", n > 0 ? "," : "", g->p->signals[n].signal,
		    (long long)(g->p->signals[n].wait_ns / NS_PER_MS));
	buf_putc(to, ']');
}

static void
add_limits(const struct attempt_run *a, struct buf *to)
{
	const struct flow_how *how = a->w->flow->ops[a->op].how;

	buf_puts(to, ",\"grace_ms\":");
	buf_int(to, how->grace_ns / NS_PER_MS);
	if (how->timeout_ns > 0)
		buf_printf(to, ",\"limit_ms\":%lld",
		    (long long)((a->started_ns + turns_time_left_ns(a->w, a->op)) / NS_PER_MS));
	if (how->silence_ns > 0 && !how->silence_notify)
		buf_printf(to, ",\"silence_ms\":%lld%s", (long long)(how->silence_ns / NS_PER_MS),
		    how->silence_strict ? ",\"strict\":true" : "");
	if (how->leave)
		buf_puts(to, ",\"leave\":true");
}

static void
add_rest(const struct attempt_run *a, struct buf *to)
{
	struct proc_id reaper = {0};
	struct buf ranges = {0};

	if (a->keeper == NULL)
		reaper = find_reaper(a->w);
	if (reaper.pid > 0) {
		buf_puts(to, ",\"reaper\":");
		buf_int(to, reaper.pid);
		buf_puts(to, ",\"reaper_start\":");
		buf_uint(to, reaper.start_ticks);
	}
	add_limits(a, to);
	add_signals(a->agent, to);
	buf_puts(to, ",\"token\":\"");
	buf_puts(to, a->token);
	buf_putc(to, '"');
	messages_ranges(flow_context_kept(a->w, CONTEXT_MESSAGES), a->w->flow->ops[a->op].id, &ranges);
	if (ranges.len > 0 && has_room(&ranges))
		buf_printf(to, ",\"messages\":%s", buf_text(&ranges));
	else if (ranges.len > 0)
		buf_puts(to, ",\"more\":true");
	to->failed |= ranges.failed;
	buf_clear(&ranges);
	buf_puts(to, "}\n");
}

static void
make_before(const struct attempt_run *a, struct start_line *to)
{
	const char *id = a->w->flow->ops[a->op].id;
	char *at = to->before;

	assert(strlen(id) <= FLOW_MAX_ID);
	at = stpcpy(at, "{\"kind\":\"start\",\"op\":\"");
	at = stpcpy(at, id);
	at = stpcpy(at, "\",\"attempt\":");
	at = put_number(at, a->number, 1);
	stpcpy(at, ",\"pid\":");
}

int
start_line_make(const struct attempt_run *a, struct start_line *to, struct err *e)
{
	struct buf rest = {0};
	int rc;

	make_before(a, to);
	buf_reserve(&rest, START_LINE_USUAL);
	add_rest(a, &rest);
	rc = buf_ok(&rest, e);
	assert(rc != 0 || rest.len < sizeof(to->rest));
	if (rc == 0)
		memcpy(to->rest, buf_text(&rest), rest.len + 1);
	buf_clear(&rest);
	return rc;
}

static int
read_log(int run_fd, off_t from, struct buf *to, struct err *e)
{
	int fd = openat(run_fd, RUN_ATTEMPTS, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	char *at;
	ssize_t n = 0;
	int rc = 0;

	if (fd < 0 || fstat(fd, &st) != 0)
		rc = err_sys(e, ERR_IO, errno, "cannot read '%s'", RUN_ATTEMPTS);
	while (rc == 0 && from < st.st_size) {
		at = buf_reserve(to, (size_t)(st.st_size - from));
		if (at == NULL) {
			rc = err_nomem(e);
			break;
		}
		n = pread(fd, to->data + to->len, (size_t)(st.st_size - from), from);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			rc = err_sys(e, ERR_IO, errno, "cannot read '%s'", RUN_ATTEMPTS);
		if (n <= 0)
			break;
		to->len += (size_t)n;
		from += n;
	}
	fd_close(&fd);
	return rc;
}

/* The numbers behind `before`. */
static bool
read_numbers(const char *at, struct proc_id *id)
{
	char *end;
	long pid = strtol(at, &end, 10);

	if (pid <= 0 || strncmp(end, START_LINE_BETWEEN, strlen(START_LINE_BETWEEN)) != 0)
		return false;
	*id = (struct proc_id){.pid = (pid_t)pid,
	    .start_ticks = strtoull(end + strlen(START_LINE_BETWEEN), NULL, 10)};
	return true;
}

int
start_line_find(const struct attempt_run *a, off_t from, struct proc_id *id, struct err *e)
{
	struct start_line line;
	struct buf log = {0};
	const char *at;
	int rc = read_log(a->w->run_fd, from, &log, e);

	make_before(a, &line);
	/* A number that is cut off is followed by the end of the text, and a line that is cut off is none. */
	at = rc == 0 ? strstr(buf_text(&log), line.before) : NULL;
	if (at != NULL && strchr(at, '\n') != NULL && read_numbers(at + strlen(line.before), id))
		rc = 1;
	buf_clear(&log);
	return rc;
}

int
start_mark_make(const struct worker *w, uint32_t i, struct buf *to, struct err *e)
{
	struct buf ranges = {0};
	int rc;

	messages_ranges(flow_context_kept(w, CONTEXT_MESSAGES), w->flow->ops[i].id, &ranges);
	rc = buf_ok(&ranges, e);
	if (rc == 0 && (!w->flow->ops[i].how->idempotent || !has_room(&ranges)))
		buf_printf(to, "{\"messages\":%s}\n", ranges.len > 0 ? buf_text(&ranges) : "[]");
	buf_clear(&ranges);
	return rc == 0 ? buf_ok(to, e) : -1;
}
