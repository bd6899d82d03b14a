/* A session as a row of a query that selects SESSION_COLUMNS. */
#ifndef STORE_SESSION_ROW_H
#define STORE_SESSION_ROW_H

#include "db.h"

/* Reads the row that q stands on. *out is the caller's (session_clear). */
int session_from_row(sqlite3_stmt *q, struct session *out, struct err *e);
int session_from_row_brief(sqlite3_stmt *q, struct session *out, struct err *e); /* session_filter's brief */
/* The one row of q; ERR_NOTFOUND with code only when there is none: the caller says what it sought. */
int session_only(struct store *s, sqlite3_stmt *q, struct session *out, struct err *e);
/* The row that a statement gives for a run's id, its first value; to be reset. NULL with *e when there
 * is no such run. */
sqlite3_stmt *session_row(struct store *s, enum statement which, const char *run_id, struct err *e);
int session_no_run(const char *run_id, struct err *e); /* -1 */

/* What META_MADE_IN says of the home at that path. */
struct json *session_home_json(const char *path, size_t length, struct fs_identity home);
/* Makes is_copy(run_id, metadata) known to the statements of an open store: whether session_home() is OTHER. */
int session_home_function(struct store *s, struct err *e);

/* Inside a transaction. */

enum { NOTICE_EVENT = 96 };
int notice_add_at(struct store *s, const char *run_id, const char *event, bool problem, double now,
    struct err *e);
/* One for each operation in the list (metadata "waiting"). */
int notice_waiting(struct store *s, const char *run_id, const struct json *list, struct err *e);
/* session_new's unique_key: 0 when the run may be inserted. */
int unique_check(struct store *s, const struct session_new *n, const char *origin, double now,
    struct err *e);
/* As session_give_up. */
int give_up_inside(struct store *s, const char *run_id, const char *why, bool *gave_up, struct err *e);
/* A stop with mode now, unless one waits or was applied. */
int control_stop_inside(struct store *s, const char *run_id, struct err *e);
/* The stops of a run whose worker is dead: nobody takes them from here on, and a death is one way to
 * start nothing more, so they have been applied. */
int control_stop_dead(struct store *s, const char *run_id, struct err *e);
/* One member of metadata. Consumes value. */
int session_set_inside(struct store *s, const char *run_id, const char *name, struct json *value,
    struct err *e);

#endif
