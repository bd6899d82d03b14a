/*
 * What an operation asks for: a further operation, or another try by a stronger role. Read and
 * judged against the document here; nothing is changed.
 */
#ifndef WORKER_WISH_H
#define WORKER_WISH_H

#include "worker.h"

const char *wish_reject_word(enum wish_reject r);

/* Values are borrowed from the request. */
struct wish {
	bool retry; /* an escalation */
	enum flow_kind kind;
	const struct json *what; /* a text or an argv; NULL of a retry: what the emitter does */
	const struct flow_role *role; /* NULL: none */
	bool independent;
	const struct json *reason, *context, *key; /* NULL: not given */
};

enum { WISH_CONTEXT_MOST = 64 << 10 }; /* bytes of the JSON that a spawned operation is given */

/* request: of `emit spawn`, or a member of a response (NULL or JSON null: no child). -1 with *why
 * and a message: rejected; ERR_NOMEM is neither. */
int wish_spawn(const struct worker *w, uint32_t emitter, const struct json *request,
    struct wish *out, enum wish_reject *why, struct err *e);
/* request: an object with `to` and `reason`, a role's name, or true. failed: nobody asks, but the
 * role says so for its failures. */
int wish_escalation(const struct worker *w, uint32_t emitter, const struct json *request,
    bool failed, struct wish *out, enum wish_reject *why, struct err *e);
/* Whether the provider call of i reads settings of the user; true without a provider. */
bool wish_reads_settings(const struct worker *w, uint32_t i);

#endif
