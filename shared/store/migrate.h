/*
 * The schema of state.db, by numbered steps. Each is done once, in order, in one transaction with
 * all others that are due, and noted in the table schema_steps.
 *
 * An additive step leaves everything as it was for programs that do not know it. Any other one also
 * raises user_version to its number: a program that knows fewer steps then refuses the database. It
 * waits while runs are live, whose workers may be of an older version; later additive steps do not
 * wait for it.
 */
#ifndef STORE_MIGRATE_H
#define STORE_MIGRATE_H

#include "db.h"

struct migration {
	const char *sql;
	const char *missing; /* a query: 1 when there is something to do; NULL: there always is */
	bool additive;
};

/* Does what is due of `steps`; *waiting is how many wait for live runs to end. ERR_REFUSED: written by
 * a newer program. */
int migrate_to(struct store *s, const struct migration *steps, int count, int *waiting,
    struct err *e);
/* The steps of this program, STORE_SCHEMA_VERSION of them. */
int migrate(struct store *s, struct err *e);
/* How many are noted that this program does not know. */
int migrate_count_unknown(struct store *s, int *count, struct err *e);

#endif
