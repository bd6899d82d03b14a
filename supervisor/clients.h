/*
 * The supervisor's side of commands' connections. It never waits for one: who does not read its
 * answers, says nonsense, or says nothing, is disconnected.
 */
#ifndef FLOWSUP_SUPERVISOR_CLIENTS_H
#define FLOWSUP_SUPERVISOR_CLIENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "flowsup/home.h"
#include "flowsup/status.h"
#include "loop.h"

struct daemon;

enum {
	CLIENTS_MOST = 4096,
	CLIENTS_HELLO_MS = 5000, /* a connection says hello within this time */
	CLIENTS_PACKETS_A_TURN = 16,
	CLIENTS_ACCEPTS_A_TURN = 64,
	CLIENTS_SAY_MS = 60000, /* one line for each kind of refusal in so much time; the rest is counted */
	CLIENTS_PAGE = 400 /* workers in one answer to `status`: below the packet's size */
};

struct client {
	TAILQ_ENTRY(client) entry;
	struct daemon *daemon;
	struct source channel;
	pid_t pid;
	bool greeted, subscribed;
	bool newer; /* than this program */
	bool waits;		  /* for a restart: told when it cannot be done */
	char run_id[RUN_ID_TEXT]; /* subscribed to this run alone; "": to all */
	int64_t since_ns;
};
TAILQ_HEAD(client_list, client);

enum client_refusal { CLIENT_DISCONNECTED, CLIENT_NOT_ACCEPTED, CLIENT_REFUSALS };

struct clients {
	struct client_list list;
	unsigned count, subscribers;
	bool full; /* the listening socket is not looked at */
	struct {
		int64_t said_ns; /* the last line; 0: none */
		unsigned more;	 /* since then */
	} refused[CLIENT_REFUSALS];
};

void clients_init(struct clients *clients);
void clients_clear(struct daemon *d);
/* Accepts what waits, at most CLIENTS_ACCEPTS_A_TURN. True when there may be more. */
bool clients_accept(struct daemon *d);
void clients_on_accept(void *daemon);
/* Reads once from every connection; before leaving. */
void clients_serve_all(struct daemon *d);
void clients_silent(void *daemon); /* timer */
void clients_say_more(void *daemon); /* timer */
void clients_tell_changed(struct daemon *d, const char *run_id, const char *status,
    const char *reason);
void clients_tell_progress(struct daemon *d, const char *run_id, int64_t done, int64_t total);
/* Answers those who wait for a restart that failed, or for an end that is not whole. */
void clients_failed(struct daemon *d, const struct err *why);

#endif
