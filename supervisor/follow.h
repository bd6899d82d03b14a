/*
 * Following a run to its end: a live display on a terminal, plain lines or the events themselves
 * elsewhere. Used by watch, wait, start --wait and resume --wait.
 */
#ifndef FLOWSUP_FOLLOW_H
#define FLOWSUP_FOLLOW_H

#include <signal.h>

#include "cli.h"
#include "flowsup/home.h"
#include "flowsup/store.h"
#include "output.h"

enum follow_show {
	FOLLOW_QUIET,	/* nothing */
	FOLLOW_LINES,	/* one line for what happens: what is no terminal gets this */
	FOLLOW_LIVE,	/* a display that is drawn anew */
	FOLLOW_EVENTS	/* the lines of events.jsonl */
};

struct follow {
	const struct home *home; /* borrowed, as all here */
	struct store *store;
	const struct cli *cli;	 /* for hints */
	const char *home_option; /* --home as given, for commands that are shown; or NULL */
	enum follow_show show;
	bool from_start;    /* FOLLOW_LINES: also what happened before */
	struct output *out; /* where to show it */
	int events_fd;	    /* each event as one line by one write(2); -1: none */
	int64_t timeout_ns; /* 0: none */
	bool utc;
	bool this_run; /* stays with the run when its restart policy resumes it */
};

/*
 * Follows until the run is at its end, and over the crashes that its restart policy answers: returns its exit status; 3 when the time is over before; 130
 * after SIGINT (the run goes on, and how to return to it was said); -1 with *e. Ends also when the
 * supervisor has gone: the database is then read at an interval, and a supervisor started.
 */
int follow_run(const struct follow *f, const char *run_id, struct err *e);
/* Whether a crashed run's successor was made by its restart policy. */
bool follow_was_restarted(struct store *store, const struct session *s);
/* The signals that end a command which follows, and not what it follows. */
void follow_leaving(sigset_t *set);
/* After one of them: that the run goes on, the command to return to it (`again`, with op or NULL) and that to end it. */
void follow_say_interrupted(const char *home_option, const char *run_id, const char *again,
    const char *op);
/* The last line: how a run ended, and how far it came; and the hint on what to do about it. */
void follow_say_end(struct output *out, const struct home *h, const char *home_option, const struct session *s);
/* How to show it on `out`: events with json, live on a terminal, else lines. */
enum follow_show follow_how(const struct output *out, bool json);
/* Opens what --events names, a number or a file (created, appended to). *owned says that the
 * caller closes it. */
int follow_open_events(const char *text, int *fd, bool *owned, struct err *e);

#endif
