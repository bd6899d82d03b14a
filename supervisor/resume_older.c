/*
 * resume: a copy of a run whose directory is here. What the run holds and the copy lacks would be done again,
 * and the run shut out of what it has done: then the run itself is what goes on.
 */
#include <string.h>

#include "flowsup/checkpoint.h"
#include "flowsup/endops.h"
#include "in_flight.h"
#include "resuming.h"
#include "seek.h"

/* ---- Outcomes ---- */

static bool
has_outcome(const struct json *entry)
{
	const struct json *status = json_get(entry, "status");

	return json_type(status) == JSON_STRING && !slice_is(json_text(status), "pending");
}

static bool
is_same(const struct json *a, const struct json *b)
{
	return a == NULL || b == NULL ? a == b : json_equal(a, b);
}

/* By its digest: a response that does not fit that is no older one, but refused as what it is. */
static bool
is_same_response(const struct json *entry, const struct json *copied)
{
	const struct json *digest = json_get(entry, "result_digest");

	return json_type(digest) == JSON_STRING ? is_same(digest, json_get(copied, "result_digest"))
	    : is_same(json_get(entry, "response"), json_get(copied, "response"));
}

/* Whether the copy says the same; a file may have another path in it. */
static bool
says_outcome(const struct json *entry, const struct json *copied)
{
	return has_outcome(copied) && is_same(json_get(entry, "status"), json_get(copied, "status")) &&
	    is_same(json_get(entry, "turns"), json_get(copied, "turns")) &&
	    (ckpt_is_file(entry) || is_same_response(entry, copied));
}

static size_t
lacking_planned(const struct json *own, const struct json *copied)
{
	struct json_iter it = json_iterate(json_get(own, "ops"));
	const struct json *entry, *of_copy = json_get(copied, "ops");
	struct slice id;
	size_t n = 0;

	while (json_next(&it, &id, &entry))
		n += has_outcome(entry) && !says_outcome(entry, json_getn(of_copy, id));
	return n;
}

/* Stands where it stood when it was added; *added: so many are not in the copy at all, and have no outcome. */
static size_t
lacking_added(const struct json *own, const struct json *copied, size_t *added)
{
	struct json_iter it = json_iterate(json_get(own, "spawned"));
	const struct json *entry, *of_copy = json_get(copied, "spawned");
	size_t i, n = 0;

	for (i = 0; json_next(&it, NULL, &entry); i++)
		if (has_outcome(entry))
			n += !says_outcome(entry, json_at(of_copy, i));
		else
			*added += i >= json_length(of_copy);
	return n;
}

static size_t
messages_of(const struct json *state)
{
	return json_length(json_get(json_get(state, "flow_context"), "operator_messages"));
}

/* ---- Attempts ---- */

/* Ends without an outcome, which a resume of the run makes one of. An export has no attempts of its own. */
static int
lacking_ends(const struct resuming *r, int run_fd, const struct attempts *own, size_t *n, struct err *e)
{
	bool here, other_boot;
	const char *state;
	size_t i;

	if (own->nopen == 0)
		return 0;
	if (endops_is_here(own, &here, &other_boot, e) != 0)
		return -1;
	for (i = 0; i < own->nopen; i++) {
		state = in_flight_state(&r->t->home, run_fd, &own->open[i], here && !other_boot);
		if (state != NULL && strcmp(state, "ended") == 0)
			*n += in_flight_state(&r->t->home, r->run_fd, &own->open[i], here && !other_boot) == NULL;
	}
	return 0;
}

/* ---- All of it ---- */

static int
refuse(const struct resuming *r, size_t outcomes, struct err *e)
{
	if (outcomes > 0)
		err_set(e, ERR_REFUSED, "%s is an older copy of run %s, which holds %zu more outcome%s", r->label,
		    r->original, outcomes, outcomes == 1 ? "" : "s");
	else
		err_set(e, ERR_REFUSED, "%s is an older copy of run %s, which has gone on since", r->label, r->original);
	return err_hint(e, "flowsup resume %s", r->original);
}

/* NULL without an error: it has none that can be read, and the copy may be what is left of it. */
static int
load_own(int run_fd, struct json **out, struct err *e)
{
	struct ckpt_load_options o = {0};
	struct ckpt_report report;
	struct err why = {0};

	*out = NULL;
	if (ckpt_load(run_fd, &o, out, &report, &why) == 0)
		*out = ckpt_migrate(*out, report.format, &why);
	else {
		json_unref(*out);
		*out = NULL;
	}
	return why.code == ERR_NOMEM ? err_nomem(e) : 0;
}

int
resuming_check_older(const struct resuming *r, int run_fd, const struct attempts *own, struct err *e)
{
	struct json *state;
	size_t outcomes, more = 0;
	int rc;

	/* What it says is not known; why it cannot be loaded is told. */
	if (r->load_failed)
		return 0;
	if (load_own(run_fd, &state, e) != 0)
		return -1;
	/* Each of its lines is a start or an end that the copy has not. */
	if (state != NULL && r->has_attempts && own->nlines > r->attempts.nlines)
		more++;
	if (messages_of(state) > messages_of(r->state))
		more++;
	outcomes = lacking_planned(state, r->state) + lacking_added(state, r->state, &more);
	rc = state != NULL ? lacking_ends(r, run_fd, own, &outcomes, e) : 0;
	json_unref(state);
	if (rc != 0)
		return -1;
	return outcomes + more > 0 ? refuse(r, outcomes, e) : 0;
}
