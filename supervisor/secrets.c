#include "secrets.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon.h"
#include "flowsup/fs.h"
#include "flowsup/ipc.h"
#include "flowsup/log.h"
#include "seek.h"
#include "withheld.h"

void
secrets_init(struct secrets *secrets)
{
	TAILQ_INIT(&secrets->list);
	secrets->count = 0;
}

static struct secret *
find(struct daemon *d, const char *run_id)
{
	struct secret *s;

	TAILQ_FOREACH(s, &d->secrets.list, entry)
	{
		if (strcmp(s->run_id, run_id) == 0)
			return s;
	}
	return NULL;
}

static void
forget(struct daemon *d, struct secret *s)
{
	TAILQ_REMOVE(&d->secrets.list, s, entry);
	d->secrets.count--;
	fd_close(&s->fd);
	free(s);
}

void
secrets_clear(struct daemon *d)
{
	struct secret *s;

	while ((s = TAILQ_FIRST(&d->secrets.list)) != NULL)
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what was freed has left the list */
		forget(d, s);
}

static int
check(struct daemon *d, int fd, struct err *e)
{
	struct stat st;

	if (ipc_memfd_check(fd, e) != 0)
		return -1;
	if (fstat(fd, &st) != 0 || st.st_size < 0 || (uint64_t)st.st_size > WITHHELD_BYTES)
		return err_set(e, ERR_LIMIT, "the withheld environment values are too large");
	/* As a worker more would. */
	if (!queue_has_room(d->descriptors, d->workers.count + 1, d->clients.count + d->secrets.count))
		return err_set(e, ERR_BUSY, "too many descriptors are in use");
	return 0;
}

int
secrets_put(struct daemon *d, const char *run_id, int fd, struct err *e)
{
	struct secret *s;

	if (check(d, fd, e) != 0) {
		fd_close(&fd);
		return -1;
	}
	secrets_drop(d, run_id);
	s = calloc(1, sizeof(*s));
	if (s == NULL) {
		fd_close(&fd);
		return err_nomem(e);
	}
	strlcpy(s->run_id, run_id, sizeof(s->run_id));
	s->fd = fd;
	TAILQ_INSERT_TAIL(&d->secrets.list, s, entry);
	d->secrets.count++;
	return 0;
}

int
secrets_of(struct daemon *d, const char *run_id)
{
	const struct secret *s = find(d, run_id);

	return s != NULL ? s->fd : -1;
}

void
secrets_move(struct daemon *d, const char *from, const char *to)
{
	struct secret *s = find(d, from);

	if (s == NULL)
		return;
	if (find(d, to) != NULL) {
		forget(d, s);
		return;
	}
	strlcpy(s->run_id, to, sizeof(s->run_id));
	s->offered = false;
}

void
secrets_drop(struct daemon *d, const char *run_id)
{
	struct secret *s = find(d, run_id);

	if (s != NULL)
		forget(d, s);
}

bool
secrets_lack(struct daemon *d, const struct session *s)
{
	if (json_length(json_get(s->policy, "withheld")) == 0)
		return false;
	if (s->resumed_from_run[0] != '\0')
		secrets_move(d, s->resumed_from_run, s->run_id);
	return find(d, s->run_id) == NULL;
}

/* Oldest first. */
static void
bound_offered(struct daemon *d)
{
	struct secret *s, *oldest = NULL;
	unsigned n = 0;

	TAILQ_FOREACH(s, &d->secrets.list, entry)
	{
		if (s->offered && n++ == 0)
			oldest = s;
	}
	if (n <= SECRETS_CRASHED_MOST)
		return;
	log_line(LOG_WARNING, "run %s: its withheld values are not kept any longer, for those of %d runs that "
	    "crashed after it; a resume needs them in its environment", oldest->run_id, SECRETS_CRASHED_MOST);
	forget(d, oldest);
}

static void
offer(struct daemon *d, const char *run_id)
{
	struct secret *s = find(d, run_id);

	if (s == NULL || s->offered)
		return;
	s->offered = true;
	TAILQ_REMOVE(&d->secrets.list, s, entry);
	TAILQ_INSERT_TAIL(&d->secrets.list, s, entry);
	bound_offered(d);
}

void
secrets_settle(struct daemon *d, const struct session *s)
{
	bool needs = json_length(json_get(s->policy, "withheld")) > 0;

	/* A successor may not have been looked at yet: it takes them when it is. */
	if (!needs || (status_is_terminal(s->status) && s->status != STATUS_CRASHED) ||
	    (s->status == STATUS_CRASHED && find(d, s->run_id) != NULL && seek_has_mark(&d->home, s->run_id, SEEK_KILLED)))
		secrets_drop(d, s->run_id);
	else if (s->status == STATUS_CRASHED && !session_is_restarting(s) && s->resumed_as_run[0] == '\0')
		offer(d, s->run_id);
}

static enum job_result
settle_job(struct daemon *d, struct job *j, struct err *e)
{
	struct session s;

	if (session_read(d->store, j->run_id, &s, e) == 0) {
		secrets_settle(d, &s);
		session_clear(&s);
		return JOB_DONE;
	}
	if (e->code != ERR_NOTFOUND)
		return JOB_FAILED;
	secrets_drop(d, j->run_id);
	return JOB_DONE;
}

void
secrets_ended(struct daemon *d, const char *run_id)
{
	if (find(d, run_id) != NULL && !jobs_has(&d->jobs, settle_job, run_id))
		jobs_add(d, job_new(settle_job, run_id, true), false);
}
