#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "members.h"
#include "session_row.h"

static const char swept[] = "rejected: run reached terminal status before the control could land";
static const char given_up[] = "rejected: the job ended before the control could land";
static const char claim_prefix[] = "applying:";
static const char took_effect[] = "applied";

/* Kinds of run whose worker has a consumer for a verb. */
enum { IN_FLOW = 1, IN_PLAY = 2, IN_AGENT = 4, IN_ALL = 7 };

/* verb, kinds, payload as for members_check ("": none may come) */
static const struct {
	const char *verb;
	unsigned kinds;
	const char *members;
} verbs[] = {
    {"pause", IN_FLOW | IN_PLAY, ""},
    {"resume", IN_FLOW | IN_PLAY, ""},
    {"message", IN_ALL, "text:s ?to:s"},
    {"stop", IN_ALL, "mode:s"},
    {"approve", IN_ALL, "op:s ?note:s ?by:s"},
    {"deny", IN_ALL, "op:s ?note:s ?by:s"},
};
enum { VERBS = sizeof(verbs) / sizeof(verbs[0]) };

static const struct {
	const char *word;
	unsigned bit;
} kinds[] = {{"flow", IN_FLOW}, {"play", IN_PLAY}, {"agent", IN_AGENT}};

static size_t
find_verb(const char *verb)
{
	size_t i = 0;

	while (i < VERBS && strcmp(verbs[i].verb, verb) != 0)
		i++;
	return i;
}

static unsigned
kind_bit(const char *kind)
{
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i].word, kind) == 0)
			return kinds[i].bit;
	return 0;
}

void
control_clear(struct control *c)
{
	free(c->verb);
	json_unref(c->payload);
	free(c->result);
	*c = (struct control){0};
}

/* ---- Writer ---- */

static bool
is_mode(const struct json *payload)
{
	struct slice mode = json_text(json_get(payload, "mode"));

	return slice_is(mode, "drain") || slice_is(mode, "now");
}

static int
check_payload(size_t verb, const struct json *payload, struct err *e)
{
	const char *members = verbs[verb].members;
	struct err why = {0};

	if (members[0] == '\0')
		return payload == NULL ? 0 : err_set(e, ERR_USAGE, "'%s' takes nothing with it",
						 verbs[verb].verb);
	if (payload == NULL || json_type(payload) != JSON_OBJECT)
		return err_set(e, ERR_USAGE, "'%s' needs an object", verbs[verb].verb);
	if (members_check(members, payload, &why) != 0)
		return err_set(e, ERR_USAGE, "'%s': %s", verbs[verb].verb, why.msg);
	if (strcmp(verbs[verb].verb, "stop") == 0 && !is_mode(payload))
		return err_set(e, ERR_USAGE, "'stop': the mode is 'drain' or 'now'");
	return 0;
}

static int
refuse_kind(const char *run_id, const char *kind, const char *verb, struct err *e)
{
	if (strcmp(kind, "agent") == 0)
		return err_set(e, ERR_REFUSED,
		    "run %s is one agent operation, which has no boundary to %s at", run_id, verb);
	return err_set(e, ERR_REFUSED, "a run of kind '%s' has no consumer for '%s'", kind, verb);
}

/* Looks before the insert at what cannot change (the kind), after it at why it wrote nothing. */
static int
look(struct store *s, const char *run_id, char status[16], char kind[16], struct err *e)
{
	sqlite3_stmt *q = session_row(s, Q_SESSION_STATUS, run_id, e);

	if (q == NULL)
		return -1;
	column_copy(q, 1, status, 16);
	column_copy(q, 2, kind, 16);
	sqlite3_reset(q);
	return 0;
}

static int
add_row(struct store *s, const char *id, const char *run_id, const char *verb,
    const struct json *payload, int *changed, struct err *e)
{
	sqlite3_stmt *q = store_statement(s, Q_CONTROL_ADD, e);

	if (q == NULL)
		return -1;
	if (!bind_text(q, 1, id) || !bind_text(q, 2, run_id) || !bind_text(q, 3, verb) ||
	    !bind_json(q, 4, payload) || !bind_real(q, 5, store_now()))
		return err_nomem(e);
	return store_run(s, q, changed, e);
}

static int
insert_checked(struct store *s, const char *run_id, size_t verb, const struct json *payload,
    char id[UUID_TEXT], struct err *e)
{
	char status[16], kind[16], made[UUID_TEXT];
	int changed = 0;

	if (check_payload(verb, payload, e) != 0 || look(s, run_id, status, kind, e) != 0)
		return -1;
	if ((verbs[verb].kinds & kind_bit(kind)) == 0)
		return refuse_kind(run_id, kind, verbs[verb].verb, e);
	/* The insert is a write of one statement: BEGIN IMMEDIATE gives it the busy limit. */
	if (uuid_make(made, e) != 0 || store_begin(s, e) != 0 ||
	    store_end(s, add_row(s, made, run_id, verbs[verb].verb, payload, &changed, e), e) != 0)
		return -1;
	if (changed == 0) {
		if (look(s, run_id, status, kind, e) != 0)
			return -1;
		return err_set(e, ERR_REFUSED, "run %s is %s, %s: nothing was queued", run_id, status,
		    strcmp(status, "queued") == 0 ? "and has no worker yet" : "not running");
	}
	memcpy(id, made, UUID_TEXT);
	return 0;
}

int
control_insert(struct store *s, const char *run_id, const char *verb, struct json *payload,
    char id[UUID_TEXT], struct err *e)
{
	size_t at = find_verb(verb);
	int rc;

	if (at == VERBS)
		rc = err_set(e, ERR_USAGE, "there is no control '%s'", verb);
	else
		rc = insert_checked(s, run_id, at, payload, id, e);
	json_unref(payload);
	return rc;
}

/* ---- Reader ---- */

static int
from_row(sqlite3_stmt *q, struct control *out, struct err *e)
{
	struct control c = {0};

	column_copy(q, 0, c.id, sizeof(c.id));
	c.verb = strdup(column_text(q, 1));
	c.created_at = sqlite3_column_double(q, 3);
	c.claimed_at = sqlite3_column_double(q, 4);
	c.applied_at = sqlite3_column_double(q, 5);
	if (sqlite3_column_type(q, 6) != SQLITE_NULL)
		c.result = strdup(column_text(q, 6));
	if (c.verb == NULL || (c.result == NULL && sqlite3_column_type(q, 6) != SQLITE_NULL)) {
		control_clear(&c);
		return err_nomem(e);
	}
	/* A row by somebody else's hand must not stop all others: its payload is then null, which its
	 * consumer rejects by name. */
	if (column_json(q, 2, &c.payload, NULL) != 0)
		c.payload = NULL;
	*out = c;
	return 0;
}

int
control_list(struct store *s, const char *run_id, bool pending_only, control_each *each,
    void *arg, struct err *e)
{
	sqlite3_stmt *q = store_statement(s, pending_only ? Q_CONTROLS_PENDING : Q_CONTROLS, e);
	struct control c;
	int rc = 0, stop = 0;

	if (q == NULL)
		return -1;
	if (!bind_text(q, 1, run_id))
		return err_nomem(e);
	while (stop == 0 && (rc = store_step(s, q, e)) == 1) {
		rc = from_row(q, &c, e);
		if (rc != 0)
			break;
		stop = each(arg, &c);
		control_clear(&c);
	}
	sqlite3_reset(q);
	return rc < 0 ? -1 : 0;
}

static void
add_waiting(struct control_standing *at, const struct control *c)
{
	if (strcmp(c->verb, "stop") != 0)
		return;
	at->stop_asked = true;
	at->stop_asked_now |= slice_is(json_text(json_get(c->payload, "mode")), "now");
	if (at->stop_at == 0)
		at->stop_at = c->created_at;
}

static int
add_control(void *arg, const struct control *c)
{
	struct control_standing *at = arg;

	if (c->applied_at <= 0)
		add_waiting(at, c);
	if (c->applied_at <= 0 || c->result == NULL ||
	    strncmp(c->result, took_effect, sizeof(took_effect) - 1) != 0)
		return 0;
	if (strcmp(c->verb, "stop") == 0) {
		at->stopped = true;
		at->stopped_now |= slice_is(json_text(json_get(c->payload, "mode")), "now");
		if (at->stop_at == 0)
			at->stop_at = c->created_at;
	} else if (strcmp(c->verb, "pause") == 0 && !at->paused) {
		at->paused = true;
		at->paused_at = c->created_at;
	} else if (strcmp(c->verb, "resume") == 0) {
		at->paused = false;
	}
	return 0;
}

int
control_standing(struct store *s, const char *run_id, struct control_standing *out, struct err *e)
{
	*out = (struct control_standing){0};
	return control_list(s, run_id, false, add_control, out, e);
}

int
control_lost(struct store *s, control_lost_each *each, void *arg, struct err *e)
{
	sqlite3_stmt *q = store_statement(s, Q_CONTROLS_LOST, e);
	struct control c;
	int rc = 0, stop = 0;

	if (q == NULL)
		return -1;
	while (stop == 0 && (rc = store_step(s, q, e)) == 1) {
		rc = from_row(q, &c, e);
		if (rc != 0)
			break;
		stop = each(arg, column_text(q, 7), column_text(q, 8), &c);
		control_clear(&c);
	}
	sqlite3_reset(q);
	return rc < 0 ? -1 : 0;
}

int
control_read(struct store *s, const char *id, struct control *out, char run_id[RUN_ID_TEXT],
    struct err *e)
{
	sqlite3_stmt *q = store_statement(s, Q_CONTROL_READ, e);
	int rc;

	if (q == NULL)
		return -1;
	if (!bind_text(q, 1, id))
		return err_nomem(e);
	rc = store_step(s, q, e);
	if (rc < 0)
		return -1;
	if (rc == 0)
		return err_set(e, ERR_NOTFOUND, "there is no control '%s'", id);
	column_copy(q, 7, run_id, RUN_ID_TEXT);
	rc = from_row(q, out, e);
	sqlite3_reset(q);
	return rc;
}

int
control_find(struct store *s, const char *prefix, char id[UUID_TEXT], char run_id[RUN_ID_TEXT],
    struct err *e)
{
	sqlite3_stmt *q = store_statement(s, Q_CONTROL_FIND, e);
	char end[UUID_TEXT + 1], other[UUID_TEXT];
	size_t len = strlen(prefix);
	int rc;

	if (q == NULL)
		return -1;
	if (len == 0 || len >= UUID_TEXT)
		return err_set(e, ERR_NOTFOUND, "'%.64s' is not the id of a control", prefix);
	snprintf(end, sizeof(end), "%s~", prefix);
	if (!bind_text(q, 1, prefix) || !bind_text(q, 2, end))
		return err_nomem(e);
	rc = store_step(s, q, e);
	if (rc < 0)
		return -1;
	if (rc == 0)
		return err_set(e, ERR_NOTFOUND, "there is no control '%s'", prefix);
	column_copy(q, 0, id, UUID_TEXT);
	column_copy(q, 1, run_id, RUN_ID_TEXT);
	rc = store_step(s, q, e);
	if (rc == 1) {
		column_copy(q, 0, other, sizeof(other));
		rc = err_set(e, ERR_AMBIGUOUS, "'%s' may be control %s or %s", prefix, id, other);
	}
	sqlite3_reset(q);
	return rc;
}

/* ---- Consumer ---- */

void
control_claim_text(const char *owner, char to[CONTROL_CLAIM_TEXT])
{
	assert(strlen(owner) < RUN_ID_TEXT);
	memcpy(to, claim_prefix, sizeof(claim_prefix) - 1);
	memcpy(to + sizeof(claim_prefix) - 1, owner, strlen(owner) + 1);
}

int
control_claim(struct store *s, const char *id, const char *owner, bool *claimed, struct err *e)
{
	sqlite3_stmt *q = store_statement(s, Q_CONTROL_CLAIM, e);
	char claim[CONTROL_CLAIM_TEXT];
	int changed = 0;

	if (q == NULL)
		return -1;
	control_claim_text(owner, claim);
	if (!bind_text(q, 1, id) || !bind_real(q, 2, store_now()) || !bind_text(q, 3, claim))
		return err_nomem(e);
	if (store_run(s, q, &changed, e) != 0)
		return -1;
	*claimed = changed == 1;
	return 0;
}

int
control_finish(struct store *s, const char *id, const char *claim, const char *result,
    bool *written, struct err *e)
{
	sqlite3_stmt *q = store_statement(s, Q_CONTROL_FINISH, e);
	int changed = 0;

	if (q == NULL)
		return -1;
	if (!bind_text(q, 1, id) || !bind_real(q, 2, store_now()) || !bind_text(q, 3, result) ||
	    !bind_text(q, 4, claim))
		return err_nomem(e);
	if (store_run(s, q, &changed, e) != 0)
		return -1;
	*written = changed == 1;
	return 0;
}

static int
sweep(struct store *s, const char *run_id, const char *result, bool crashed_too, struct err *e)
{
	sqlite3_stmt *q = store_statement(s, Q_CONTROL_SWEEP, e);

	if (q == NULL)
		return -1;
	if (!bind_text(q, 1, run_id) || !bind_real(q, 2, store_now()) || !bind_text(q, 3, result) ||
	    !bind_int(q, 4, crashed_too))
		return err_nomem(e);
	return store_run(s, q, NULL, e);
}

int
control_sweep(struct store *s, const char *run_id, struct err *e)
{
	return sweep(s, run_id, swept, false, e);
}

int
control_end_job(struct store *s, const char *run_id, struct err *e)
{
	return sweep(s, run_id, given_up, true, e);
}

int
control_stop_inside(struct store *s, const char *run_id, struct err *e)
{
	struct control_standing at;
	struct json *payload;
	char id[UUID_TEXT];
	int changed = 0, rc;

	if (control_standing(s, run_id, &at, e) != 0)
		return -1;
	if (at.stop_asked_now || at.stopped_now)
		return 0;
	payload = json_set(json_object(), "mode", json_cstr("now"));
	rc = payload == NULL ? err_nomem(e) : uuid_make(id, e);
	if (rc == 0)
		rc = add_row(s, id, run_id, "stop", payload, &changed, e);
	json_unref(payload);
	return rc;
}

int
control_stop_dead(struct store *s, const char *run_id, struct err *e)
{
	sqlite3_stmt *q = store_statement(s, Q_CONTROL_STOP_DEAD, e);

	if (q == NULL)
		return -1;
	if (!bind_text(q, 1, run_id) || !bind_real(q, 2, store_now()) || !bind_text(q, 3, took_effect))
		return err_nomem(e);
	return store_run(s, q, NULL, e);
}

int
control_resolve(struct store *s, const char *id, bool applied, const char *who, bool *written,
    struct err *e)
{
	sqlite3_stmt *q = store_statement(s, Q_CONTROL_RESOLVE, e);
	int changed = 0;

	if (q == NULL)
		return -1;
	if (!bind_text(q, 1, id) || !bind_real(q, 2, store_now()) ||
	    !bind_text(q, 3, applied ? "applied" : "abandoned") || !bind_text(q, 4, who))
		return err_nomem(e);
	if (store_run(s, q, &changed, e) != 0)
		return -1;
	*written = changed == 1;
	return 0;
}
