/*
 * What supervisor, workers and clients say to each other: one JSON object a packet (ipc.h), its
 * member `type` from this list. A connection begins with `hello`. A peer that sends anything else
 * is disconnected and logged. A newer minor version is tolerated: unknown members are ignored.
 */
#ifndef FLOWSUP_PROTOCOL_H
#define FLOWSUP_PROTOCOL_H

#include "flowsup/err.h"
#include "flowsup/json.h"

enum { PROTOCOL_MAJOR = 1, PROTOCOL_MINOR = 2 }; /* 1.1: values; 1.2: settle */

/* Who may send a message to whom. */
enum {
	FROM_CLIENT = 1,     /* command -> supervisor */
	FROM_WORKER = 2,     /* worker -> supervisor */
	FROM_SUPERVISOR = 4, /* supervisor -> client or worker */
	FROM_OPERATION = 8,  /* flowsup emit -> worker */
	FROM_WORKER_REPLY = 16 /* worker -> operation */
};

/*
 * name, word, senders, most bytes, members that must be there with their types
 * (s string, i integer, b boolean, o object), separated by spaces; "?" before one that may lack.
 */
#define MESSAGE_TABLE(X)                                                                           \
	X(MSG_HELLO, "hello", FROM_CLIENT | FROM_WORKER | FROM_SUPERVISOR | FROM_OPERATION, 512,   \
	    "role:s major:i minor:i ?run:s ?version:s ?token:s")                                   \
	X(MSG_POKE, "poke", FROM_CLIENT | FROM_SUPERVISOR, 512, "run:s ?scan:b")                   \
	X(MSG_ACCEPTED, "accepted", FROM_SUPERVISOR, 512, "run:s")                                 \
	X(MSG_STATUS, "status", FROM_CLIENT, 512, "?after:s")                                              \
	X(MSG_STATUS_IS, "status_is", FROM_SUPERVISOR, 65536, "pid:i version:s runs:i ?workers:o ?next:s") \
	X(MSG_STOP, "stop", FROM_CLIENT, 512, "all:b now:b")                                       \
	X(MSG_RESTART, "restart", FROM_CLIENT, 512, "")                                            \
	X(MSG_SUBSCRIBE, "subscribe", FROM_CLIENT, 512, "?run:s")                                  \
	X(MSG_CHANGED, "changed", FROM_SUPERVISOR, 4096, "run:s status:s ?reason:s ?done:i ?total:i")               \
	X(MSG_ERROR, "error", FROM_SUPERVISOR | FROM_WORKER_REPLY, 4096, "error:s message:s ?hint:s") \
	X(MSG_OK, "ok", FROM_SUPERVISOR | FROM_WORKER_REPLY, 65536, "?value:o")                    \
	X(MSG_READY, "ready", FROM_WORKER, 512, "run:s pid:i")                                     \
	X(MSG_PROGRESS, "progress", FROM_WORKER, 16384, "run:s done:i total:i ?saved:i ?running:i ?notice:b") \
	X(MSG_DRAIN, "drain", FROM_SUPERVISOR, 512, "now:b")                                       \
	X(MSG_ENDED, "ended", FROM_WORKER, 4096, "run:s status:s reason:s")                        \
	X(MSG_VALUES, "values", FROM_CLIENT, 512, "run:s ?drop:b") /* answered by ok and a memfd; or forgotten */ \
	X(MSG_SETTLE, "settle", FROM_CLIENT, 1024, "run:s line:o") /* ok: of this attempt it has no unwritten end */ \
	X(MSG_REQUEST, "request", FROM_OPERATION, 65536, "token:s verb:s ?value:o")

enum message_type {
#define X(name, word, from, most, members) name,
	MESSAGE_TABLE(X)
#undef X
	    MESSAGE_TYPES
};

struct message {
	enum message_type type;
	struct json *body;
};
void message_clear(struct message *m);

/* Encodes and sends; consumes body (a JSON object without `type`, or NULL for none). 0; 1 when the
 * peer's queue is full; -1 as ipc_send. An assert holds bounds and permission. */
int message_send(int fd, enum message_type type, struct json *body, int pass_fd, struct err *e);
/* Receives one that one of `from` (a mask) may send, validated by the table. 1: *out is the
 * caller's; 0: none waits; -1: ERR_NOTFOUND at the end, ERR_PROTOCOL for nonsense. */
int message_recv(int fd, unsigned from, struct message *out, int *passed, struct err *e);
/* The same from bytes, for tests and fuzzing. */
int message_parse(struct slice packet, unsigned from, struct message *out, struct err *e);
const char *message_word(enum message_type type);

#endif
