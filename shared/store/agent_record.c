#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "flowsup/exits.h"
#include "flowsup/fs.h"

enum { AGENT_RECORD_MOST = 1 << 20 };

/* A store lies in its attempt's directory. The record says where that was when the attempt was started, and there
 * the original of a copy may still be, which is another run's. Consumes record. */
static struct json *
with_own_store(struct json *record, int dir, struct err *e)
{
	const char *recorded = json_cstr_of(json_get(record, "store"));
	const char *name = recorded != NULL ? strrchr(recorded, '/') : NULL;
	char link[sizeof("/proc/self/fd/") + 16], here[PATH_MAX];
	struct json *now;
	ssize_t n;

	if (name == NULL || name[1] == '\0' || faccessat(dir, name + 1, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
		return record;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
	n = readlink(link, here, sizeof(here) - 1);
	if (n <= 0)
		return record;
	now = json_printf("%.*s%s", (int)n, here, name);
	record = now != NULL ? json_set(record, "store", now) : record;
	if (record == NULL)
		err_nomem(e);
	return record;
}

struct json *
agent_record_read(int ops_fd, const char *name, struct err *e)
{
	const struct json_options o = {.max_bytes = AGENT_RECORD_MOST};
	struct json *record = NULL;
	struct buf text = {0};
	int dir = openat(ops_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (dir < 0)
		err_set(e, ERR_NOTFOUND, "ops/%s is not there", name);
	else if (fs_read_private_file(dir, AGENT_RECORD, AGENT_RECORD_MOST, &text, e) == 0)
		(void)json_parse(buf_view(&text), &o, &record, NULL, e);
	if (record != NULL)
		record = with_own_store(record, dir, e);
	fd_close(&dir);
	buf_clear(&text);
	return record;
}
