#include "elsewhere.h"

enum { ELSEWHERE_BUSY_MS = 1000 };

static int
latest_there(const char *owner, const char *run_id, struct session *out)
{
	struct err ignored = {0};
	struct store *s = NULL;
	struct home there;
	int rc;

	if (home_open(owner, false, &there, &ignored) != 0)
		return -1;
	rc = store_open(&there, STORE_DRY, false, ELSEWHERE_BUSY_MS, &s, &ignored);
	if (rc == 0)
		rc = session_latest(s, run_id, out, &ignored);
	store_close(s);
	home_close(&there);
	return rc;
}

void
elsewhere_tell(const struct session *s, const char *owner, struct buf *to)
{
	struct session latest;
	bool goes_on;

	buf_printf(to, "here a copy of that of the state directory '%s'", owner);
	if (latest_there(owner, s->run_id, &latest) != 0)
		return;
	goes_on = !status_is_terminal(latest.status) || session_is_restarting(&latest);
	buf_printf(to, ", where it %s (%s)", goes_on ? "goes on" : "has ended", status_word(latest.status));
	session_clear(&latest);
}
