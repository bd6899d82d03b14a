#include <fcntl.h>

#include "flowsup/exits.h"
#include "flowsup/fs.h"

enum { AGENT_RECORD_MOST = 1 << 20 };

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
	fd_close(&dir);
	buf_clear(&text);
	return record;
}
