/* What most commands begin with: the state directory, its database, and the run that is meant. */
#ifndef FLOWSUP_TARGET_H
#define FLOWSUP_TARGET_H

#include "cli.h"
#include "flowsup/home.h"
#include "flowsup/store.h"

struct target {
	struct home home;
	struct store *store;
	struct session session;
	bool has_session;
	const struct cli *cli; /* for hints */
};

/* Opens without creating anything. ERR_NOTFOUND (with a hint how to start a run) when there is no
 * state directory or database. t is closed again on error. */
int target_open(const struct cli *c, struct target *t, struct err *e);
void target_close(struct target *t);
/* For what is about all runs, of which none is no error: 1 when there is no state directory or
 * database; that was said. */
int target_open_any(const struct cli *c, struct target *t, struct err *e);

/* Whether the state directory holds runs but no database: somebody took it away. *e says so. */
bool target_lost_database(const struct home *h, struct err *e);

/* Finds a run by what a person wrote (session_resolve). */
int target_find(struct target *t, const char *name, struct err *e);
/* Goes on to the latest run of its chain of resumes and says so; with --this-run it stays. */
int target_latest(const struct cli *c, struct target *t, struct err *e);
/* Reads the session's row anew. */
int target_reload(struct target *t, struct err *e);

/* Starts a supervisor when none listens and some run is not at its end, or a dead worker's operations run. A
 * failure is only said: reading goes on without. */
void target_wake(struct target *t);

/*
 * ERR_REFUSED for a run that goes on, or has crashed or was cancelled and was not resumed, of which this home holds only a
 * copy: its own home is named.
 */
int target_check_own(const struct cli *c, const struct home *h, const struct session *s, struct err *e);

/*
 * Whether a run goes on by its row, began on another host or in another pid namespace, and no worker of it is
 * seen by its lock: nothing here tells whether it lives. *text says where it ran.
 */
bool target_is_lost(const struct home *h, const struct session *s, struct buf *text);
/* ERR_REFUSED for such a one: nobody would take what is asked of it. */
int target_check_seen(const struct cli *c, const struct target *t, struct err *e);
/* The command for who knows that it is dead there. */
void target_lost_hint(const char *home_option, const struct session *s, struct buf *to);

/* target_open, target_find (@last for NULL), and with latest target_latest. */
int target_of(const struct cli *c, const char *name, bool latest, struct target *t, struct err *e);

#endif
