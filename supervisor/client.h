/*
 * What commands say to the supervisor of a home (protocol.h). Every call ends within a bounded
 * time, whatever the other side does. Nothing here decides about a run: a row in the database is
 * the request, a message only makes it fast.
 */
#ifndef FLOWSUP_CLIENT_H
#define FLOWSUP_CLIENT_H

#include <stdbool.h>
#include <sys/types.h>

#include "flowsup/err.h"
#include "flowsup/home.h"
#include "flowsup/json.h"
#include "flowsup/protocol.h"

/* An answer is waited for so long; then a supervisor is started and asked again; then given up. A nudge waits no
 * longer than a glance. */
enum { CLIENT_GLANCE_MS = 150, CLIENT_ANSWER_MS = 1000, CLIENT_LIMIT_MS = 10000 };

/*
 * Says that a run, or a control of it, is waiting. Starts a supervisor when none answers, and asks
 * again; after a second without an answer it is said what is waited for. 0 once the supervisor has accepted: from then on it looks at the run before it leaves.
 * ERR_BUSY after CLIENT_ANSWER_MS from one that stops every run; else that or ERR_TIMEOUT after CLIENT_LIMIT_MS: what is in the database stays there and the next
 * supervisor finds it.
 */
int client_poke(const struct home *h, const char *run_id, struct err *e);
/* The same once, for CLIENT_GLANCE_MS at most; starts none. ERR_NOTFOUND, ERR_TIMEOUT, ERR_BUSY. */
int client_nudge(const struct home *h, const char *run_id, struct err *e);
/* The same, and it gets the run's withheld values: a memfd of withheld.h, or -1. */
int client_supply(const struct home *h, const char *run_id, int values_fd, struct err *e);
/* The same, and it looks at everything that waits: slots or a key have become free. */
int client_scan(const struct home *h, const char *run_id, struct err *e);
/* The same once, where one runs, of what it finds by itself later: nobody has to wait for it. Starts none. */
void client_mention(const struct home *h, const char *run_id);
/* The withheld values that it has of a run: a memfd, which the caller closes; -1 when it has none, or none
 * listens, with e->code ERR_TIMEOUT or ERR_BUSY when it does not say whether it has. Starts none. */
int client_values(const struct home *h, const char *run_id, struct err *e);
/* It keeps none of this run any longer: nobody will resume it. Starts none. */
void client_drop_values(const struct home *h, const char *run_id);

/*
 * Has it write down how the attempt of a start line ended, if it knows and has not. 0: nothing that it knows is
 * unwritten. ERR_NOTFOUND when none listens (none is started), ERR_TIMEOUT and ERR_BUSY when it does not
 * answer; any other error: why it cannot. end, unless NULL: for who has the directory at another place: it is told
 * as JSON of kept_read_end() instead of written down, or NULL; the caller's.
 */
int client_settle(const struct home *h, const char *run_id, const struct json *line, struct json **end, struct err *e);

/* Starts a supervisor where none listens and waits until it does. *started (may be NULL) says
 * whether this call did it. Errors as above, and ERR_ENVIRONMENT when it cannot be executed. */
int client_ensure(const struct home *h, int64_t idle_exit_ns, bool *started, struct err *e);
#define CLIENT_IDLE_DEFAULT INT64_C(-1)
/* Of one that has the lock and does not answer: *e names its process, and what to do. False where none is
 * known to have it; *e is as it was then. */
bool client_say_silent(const struct home *h, struct err *e);
/* The process of one that has the lock, 0: there is none. *stopped: nothing can be heard of it. */
pid_t client_supervisor(const struct home *h, bool *stopped);
/* Whether one answers, be it with a refusal. */
bool client_is_answered(const struct home *h);

/* Whether a supervisor listens; starts none. */
bool client_is_up(const struct home *h);

/*
 * Changes of one run, or of all with run_id NULL. Returns a descriptor to poll for reading, which
 * the caller closes; -1 with ERR_NOTFOUND when no supervisor listens (none is started), ERR_TIMEOUT.
 * From its return on no change is missed: read the state after subscribing, not before.
 */
int client_subscribe(const struct home *h, const char *run_id, struct err *e);

/* A change of status, or progress of a run (then status is "running"). */
struct client_change {
	struct json *body; /* owns the rest */
	const char *run_id, *status;
	const char *reason; /* code, or NULL */
};
/* 1: got one (client_change_clear), 0: none waits, -1: ERR_NOTFOUND when the supervisor has gone or
 * dropped a subscriber that did not read (subscribe again and read the state), ERR_PROTOCOL. */
int client_next_change(int fd, struct client_change *out, struct err *e);
void client_change_clear(struct client_change *c);

/*
 * {"pid":N,"version":TEXT,"runs":N,"unwritten":N,"unwritten_why":TEXT,"database_lost":BOOL,"strays":[{"pid":N,
 * "start":N,"runs":[RUN]}] (astray.h),"workers":{RUN:{"pid":N,"state":WORD,
 * "stalled":BOOL,"done":N,"total":N}}}, both null while the plan is not known; all pages put together. ERR_NOTFOUND when no supervisor listens (none is
 * started); ERR_TIMEOUT after limit_ms for a page.
 */
int client_status(const struct home *h, int limit_ms, struct json **out, struct err *e);

struct client_stop {
	bool all;	  /* every run gets a stop: mode drain, with now mode now */
	bool now;
	int64_t limit_ns; /* with all: waits no longer; negative: as long as the runs take */
	/* With all, when it takes longer, now and again: client_status of what is not at its end. */
	void (*waits)(const struct json *status);
};
/* It is said first after so long, and then so often. */
enum { CLIENT_TELL_FIRST_MS = 2000, CLIENT_TELL_MS = 30000 };
/*
 * Asks the supervisor to leave; without all workers go on, with all it leaves after their ends.
 * Returns once its process has gone: within CLIENT_LIMIT_MS, with all within limit_ns, else
 * ERR_RUNNING (what was asked for goes on). *was_up is false when none listened.
 */
int client_stop(const struct home *h, const struct client_stop *how, bool *was_up, struct err *e);

/* Has it execute itself anew and returns when the new one answers. ERR_NOTFOUND when none listens. */
int client_restart(const struct home *h, struct err *e);

#endif
