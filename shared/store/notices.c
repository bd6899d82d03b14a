#include <stdio.h>
#include <string.h>

#include "session_row.h"

int
notice_add_at(struct store *s, const char *run_id, const char *event, bool problem, double now,
    struct err *e)
{
	sqlite3_stmt *q = store_statement(s, Q_NOTICE_ADD, e);

	if (q == NULL)
		return -1;
	if (!bind_text(q, 1, run_id) || !bind_text(q, 2, event) || !bind_real(q, 3, now) ||
	    !bind_int(q, 4, problem))
		return err_nomem(e);
	return store_run(s, q, NULL, e);
}

int
notice_add(struct store *s, const char *run_id, const char *event, bool problem, struct err *e)
{
	return notice_add_at(s, run_id, event, problem, store_now(), e);
}

int
notice_waiting(struct store *s, const char *run_id, const struct json *list, struct err *e)
{
	struct json_iter it = json_iterate(list);
	const struct json *one;
	char event[NOTICE_EVENT];
	const char *op;

	while (json_next(&it, NULL, &one)) {
		op = json_cstr_of(json_get(one, "op"));
		if (op == NULL)
			continue;
		snprintf(event, sizeof(event), "waiting:%s", op);
		if (notice_add(s, run_id, event, true, e) != 0)
			return -1;
	}
	return 0;
}

int
notice_list(struct store *s, const char *run_id, notice_each_fn *each, void *arg, struct err *e)
{
	sqlite3_stmt *q = store_statement(s, run_id != NULL ? Q_NOTICES : Q_NOTICES_UNCLAIMED, e);
	struct notice n;
	int rc = 1, stop = 0;

	if (q == NULL)
		return -1;
	if (run_id != NULL && !bind_text(q, 1, run_id))
		return err_nomem(e);
	while (stop == 0 && (rc = store_step(s, q, e)) == 1) {
		n.run_id = column_text(q, 0);
		n.event = column_text(q, 1);
		n.outcome = column_text(q, 2);
		n.at = sqlite3_column_double(q, 3);
		n.claimed_at = sqlite3_column_double(q, 4);
		n.ended_at = sqlite3_column_double(q, 5);
		stop = each(arg, &n);
	}
	sqlite3_reset(q);
	return rc < 0 ? -1 : 0;
}

int
notice_claim(struct store *s, const char *run_id, const char *event, bool *claimed, struct err *e)
{
	sqlite3_stmt *q = store_statement(s, Q_NOTICE_CLAIM, e);
	int changed = 0;

	if (q == NULL)
		return -1;
	if (!bind_text(q, 1, run_id) || !bind_text(q, 2, event) || !bind_real(q, 3, store_now()))
		return err_nomem(e);
	if (store_run(s, q, &changed, e) != 0)
		return -1;
	*claimed = changed > 0;
	return 0;
}

int
notice_lost(struct store *s, struct err *e)
{
	sqlite3_stmt *q = store_statement(s, Q_NOTICES_LOST, e);

	if (q == NULL)
		return -1;
	if (!bind_real(q, 1, store_now()))
		return err_nomem(e);
	return store_run(s, q, NULL, e);
}

int
notice_finish(struct store *s, const char *run_id, const char *event, const char *outcome,
    struct err *e)
{
	sqlite3_stmt *q = store_statement(s, Q_NOTICE_FINISH, e);

	if (q == NULL)
		return -1;
	if (!bind_text(q, 1, run_id) || !bind_text(q, 2, event) || !bind_real(q, 3, store_now()) ||
	    !bind_text(q, 4, outcome))
		return err_nomem(e);
	return store_run(s, q, NULL, e);
}
