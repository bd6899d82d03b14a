/* What `flowsup doctor` looks at and how it is said; the parts of it that are files of their own. */
#ifndef FLOWSUP_DOCTOR_H
#define FLOWSUP_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "cli.h"
#include "flowsup/err.h"
#include "flowsup/home.h"
#include "unwatched.h"

enum grade { GRADE_OK, GRADE_NOTE, GRADE_WARNING, GRADE_BROKEN };

struct doctor {
	struct cli *c;
	struct home home;
	bool has_home;
	struct unwatched unwatched;
	enum grade worst;
};

/* One line of the report, or object with --json; hint, which may be NULL, is a command. */
void doctor_say(struct doctor *d, enum grade g, const char *check, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
void doctor_say_error(struct doctor *d, enum grade g, const char *check, const struct err *e);

/* config.yaml, the roles and the playbooks: what is wrong in them is met by a start, or at night by the
 * supervisor. */
void doctor_config(struct doctor *d);
/* Processes that no start line names, each one counted in *found: those of this crashed run, and, as the
 * supervisor knows them, those of which nobody can say whose they are. */
struct session;
void doctor_strays(struct doctor *d, const struct session *s, size_t *found);
void doctor_unproved_processes(struct doctor *d, size_t *found);
/* Whether runs go on after a boot. */
void doctor_boot(struct doctor *d);

#endif
