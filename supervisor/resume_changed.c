/*
 * resume: what has become of the document that the run was started from. What was recorded holds; where the
 * document says something else by now that is told, and with --rerun-changed operations that it defines
 * in another way run as it says. Compared are operations by their ids, as they stand in a plan.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "resuming.h"

/* What belongs to all operations, and is not taken over. */
static const char *const settings[] = {"env", "defaults"};
enum { SETTINGS = sizeof(settings) / sizeof(settings[0]), NAMED_MOST = 5 };

/* Both sides: the flow and its plan. */
struct side {
	const struct flow *flow;
	struct json *plan, *config;
};

struct comparing {
	struct resuming *r;
	struct side then, now;
};

/* ---- Sides ---- */

static int
side_make(struct side *s, const struct flow *f, struct err *e)
{
	const char **nodes = calloc(f->nops + 1, sizeof(*nodes));
	size_t i;

	if (nodes == NULL)
		return err_nomem(e);
	for (i = 0; i < f->nops; i++)
		nodes[i] = "";
	s->flow = f;
	s->plan = flow_plan(f, nodes);
	s->config = flow_config(f);
	free(nodes);
	return s->plan != NULL && s->config != NULL ? 0 : err_nomem(e);
}

static void
side_clear(struct side *s)
{
	json_unref(s->plan);
	json_unref(s->config);
}

/* Edges by the ids of what they come from: indices move when an operation is added. */
static struct json *
edges_of(const struct side *s, size_t i)
{
	struct json_iter it = json_iterate(json_get(json_at(s->plan, i), "needs"));
	const struct flow_op *op = &s->flow->ops[i];
	struct json *all = json_object();
	const struct json *one;
	uint32_t n;

	for (n = 0; n < op->nneeds; n++)
		all = json_set(all, s->flow->ops[op->needs[n].op].id, json_bool(true));
	while (json_next(&it, NULL, &one))
		all = json_setn(all, json_text(json_get(one, "op")), json_ref(one));
	return all;
}

static struct json *
definition_of(const struct side *s, size_t i)
{
	struct json *o = json_remove(json_ref(json_at(s->plan, i)), slice_of("dep_indices"));

	return json_set(json_remove(o, slice_of("node_id")), "needs", edges_of(s, i));
}

/* ---- Differences ---- */

static void
note_change(struct resuming *r, const char *op, const char *setting, const char *change)
{
	struct json *one = json_set(json_object(), "op", op != NULL ? json_cstr(op) : json_null());

	one = json_set(one, "setting", setting != NULL ? json_cstr(setting) : json_null());
	r->changes = json_append(r->changes, json_set(one, "change", json_cstr(change)));
}

/* 1 when they differ, -1 without memory. */
static int
differs(const struct comparing *c, size_t then, size_t now)
{
	struct json *a = definition_of(&c->then, then), *b = definition_of(&c->now, now);
	int rc = a == NULL || b == NULL ? -1 : !json_equal(a, b);

	json_unref(a);
	json_unref(b);
	return rc;
}

static int
compare_operations(const struct comparing *c, struct err *e)
{
	const struct flow *then = c->then.flow, *now = c->now.flow;
	size_t i, k;
	int rc;

	for (i = 0; i < then->nops; i++) {
		k = flow_find(now, then->ops[i].id);
		rc = k == SIZE_MAX ? 0 : differs(c, i, k);
		if (rc < 0)
			return err_nomem(e);
		if (k == SIZE_MAX || rc > 0)
			note_change(c->r, then->ops[i].id, NULL, k == SIZE_MAX ? "removed" : "changed");
	}
	for (k = 0; k < now->nops; k++)
		if (flow_find(then, now->ops[k].id) == SIZE_MAX)
			note_change(c->r, now->ops[k].id, NULL, "added");
	return 0;
}

static void
compare_settings(const struct comparing *c)
{
	const struct json *a, *b;
	size_t i;

	for (i = 0; i < SETTINGS; i++) {
		a = json_get(c->then.config, settings[i]);
		b = json_get(c->now.config, settings[i]);
		if ((a == NULL) != (b == NULL) || (a != NULL && !json_equal(a, b)))
			note_change(c->r, NULL, settings[i], "changed");
	}
}

/* ---- --rerun-changed ---- */

/* The new definition's edges as indices of the recorded plan. NULL in *why: all are there. */
static struct json *
indices_then(const struct comparing *c, size_t now, const char **missing)
{
	const struct flow_op *op = &c->now.flow->ops[now];
	struct json *all = json_array();
	size_t at;
	uint32_t n;

	for (n = 0; n < op->nneeds; n++) {
		const char *id = c->now.flow->ops[op->needs[n].op].id;

		at = flow_find(c->then.flow, id);
		if (at == SIZE_MAX)
			*missing = id;
		else
			all = json_append(all, json_uint(at));
	}
	return all;
}

static void
run_again(struct resuming *r, const char *op, struct json *problem)
{
	struct json *how = json_set(json_object(), "why", json_cstr("its definition changed"));

	how = json_set(how, "flag", json_cstr("rerun-changed"));
	if (problem != NULL)
		how = json_set(how, "problem", problem);
	r->again = json_set(r->again, op, how);
}

/* The plan with the i-th operation as it is defined now; under its id and node it stays the same one. */
static struct json *
redefine(const struct comparing *c, struct json *plan, size_t then, size_t now)
{
	const char *id = c->then.flow->ops[then].id, *missing = NULL;
	const struct json *node = json_get(json_at(plan, then), "node_id");
	struct json *entry = json_remove(json_ref(json_at(c->now.plan, now)), slice_of("node_id"));
	struct json *indices = indices_then(c, now, &missing);

	if (missing != NULL) {
		run_again(c->r, id, json_printf("its new definition needs %s, which is new in the "
		    "document and was not recorded; without --rerun-changed it stays as it was", missing));
		json_unref(entry);
		json_unref(indices);
		return plan;
	}
	entry = json_set(entry, "dep_indices", indices);
	if (node != NULL)
		entry = json_set(entry, "node_id", json_ref(node));
	run_again(c->r, id, NULL);
	return json_put(plan, then, entry);
}

static struct json *
redefine_all(const struct comparing *c, const struct json *recorded)
{
	struct json_iter it = json_iterate(c->r->changes);
	struct json *plan = json_ref(recorded);
	const struct json *one;

	while (json_next(&it, NULL, &one)) {
		const char *op = json_cstr_of(json_get(one, "op"));

		if (op != NULL && slice_is(json_text(json_get(one, "change")), "changed"))
			plan = redefine(c, plan, flow_find(c->then.flow, op), flow_find(c->now.flow, op));
	}
	return plan;
}

/* From the document alone, where nothing was ever started. */
static int
document_anew(struct resuming *r, struct json *state, struct err *e)
{
	struct flow *f;
	int rc = flow_from_state(state, &f, &r->flow_error);

	if (rc != 0 && r->flow_error.code == ERR_NOMEM)
		return err_nomem(e);
	r->redefined_badly = rc != 0;
	if (rc != 0)
		return 0;
	json_unref(r->document);
	r->document = flow_as_document(f);
	flow_free(f);
	return r->document != NULL ? 0 : err_nomem(e);
}

static int
apply(const struct comparing *c, struct err *e)
{
	struct resuming *r = c->r;
	struct json *state = r->state != NULL ? json_ref(r->state)
	    : json_set(json_set(json_object(), "config", json_ref(c->then.config)), "prompt",
		  json_cstr(c->then.flow->prompt != NULL ? c->then.flow->prompt : ""));
	struct json *plan = redefine_all(c, r->state != NULL ? json_get(r->state, "plan") : c->then.plan);
	int rc = 0;

	state = json_set(state, "plan", plan);
	r->redefined = json_length(r->again) > 0;
	if (state == NULL || r->again == NULL)
		rc = err_nomem(e);
	else if (json_length(r->again) > 0 && r->state == NULL)
		rc = document_anew(r, state, e);
	if (rc == 0 && json_length(r->again) > 0 && r->state != NULL) {
		json_unref(r->state);
		r->state = json_ref(state);
		/* It is made of the plan again, which is another one now. */
		json_unref(r->document);
		r->document = NULL;
	}
	json_unref(state);
	return rc;
}

/* ---- All of it ---- */

static int
compare(struct resuming *r, const struct flow *then, const struct flow *now, struct err *e)
{
	struct comparing c = {.r = r};
	int rc = -1;

	if (side_make(&c.then, then, e) == 0 && side_make(&c.now, now, e) == 0)
		rc = compare_operations(&c, e);
	if (rc == 0)
		compare_settings(&c);
	if (rc == 0 && r->changes == NULL)
		rc = err_nomem(e);
	if (rc == 0 && cli_flag(r->c, "rerun-changed"))
		rc = apply(&c, e);
	side_clear(&c.then);
	side_clear(&c.now);
	return rc;
}

/* The file has the bytes that the flow was made of: nothing can have changed, and it need not be read as a
 * document. */
static bool
is_the_same(const struct resuming *r)
{
	int fd = r->launch.document_digest == NULL ? -1
	    : open(r->launch.document, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	char now[CKPT_DIGEST_TEXT];
	uint64_t size;
	struct stat st;
	bool same = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= (off_t)JSON_MAX_DOCUMENT &&
	    ckpt_digest_file(fd, now, &size, NULL) == 0 && strcmp(now, r->launch.document_digest) == 0;

	fd_close(&fd);
	return same;
}

/* 1: there is none to compare with, or it is the same. */
static int
read_now(struct resuming *r, struct flow **now, struct err *e)
{
	const char *path = r->launch.document;
	bool asked = cli_flag(r->c, "rerun-changed");
	struct err why = {0};
	char word[SHELL_WORD_TEXT];
	struct stat st;

	if (path == NULL && asked)
		return err_set(e, ERR_REFUSED, "%s was not started from a document, so none can have "
		    "changed: --rerun-changed does not apply", r->label);
	if (path == NULL || (!asked && (stat(path, &st) != 0 || is_the_same(r))))
		return 1;
	/* Nothing that could block is opened for a comparison. */
	if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) {
		err_set(&why, ERR_REFUSED, "'%s': %s", path, errno != 0 ? strerror(errno) : "no file");
	} else if (flow_read_file(path, now, NULL, &why) == 0) {
		return 0;
	}
	if (asked) {
		err_set(e, ERR_REFUSED, "the document cannot be read for --rerun-changed: %s", why.msg);
		return err_hint(e, "flowsup check %s", shell_word(word, path));
	}
	r->unreadable = json_string_lossy(slice_of(why.msg), NULL);
	return r->unreadable != NULL ? 1 : err_nomem(e);
}

/* A planner's answer is no part of a document. */
static bool
is_planned(const struct flow *f)
{
	return f->unplanned || f->planner_op != SIZE_MAX;
}

int
resuming_compare(struct resuming *r, struct err *e)
{
	struct flow *then = NULL, *now = NULL;
	struct err ignored = {0};
	int rc;

	r->changes = json_array();
	r->again = r->again != NULL ? r->again : json_object();
	if (r->changes == NULL || r->again == NULL)
		return err_nomem(e);
	/* By its policy a job goes on as it was asked for, and nobody is there to be told. */
	if (r->by_policy)
		return 0;
	rc = read_now(r, &now, e);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	rc = r->state != NULL ? flow_from_state(r->state, &then, &ignored)
			      : flow_from_document(r->document, &then, &ignored);
	/* What cannot be read of the record is told by the checks. */
	if (rc != 0)
		rc = ignored.code == ERR_NOMEM ? err_nomem(e) : 0;
	else if (!is_planned(then) && !is_planned(now))
		rc = compare(r, then, now, e);
	else if (cli_flag(r->c, "rerun-changed"))
		rc = err_set(e, ERR_REFUSED, "--rerun-changed: the plan is a planner's answer, which no "
					     "document defines");
	flow_free(then);
	flow_free(now);
	return rc;
}

/* ---- Telling it ---- */

/* "a, b and 3 more"; false when there is none. */
static bool
name_all(const struct resuming *r, const char *member, const char *change, struct buf *to)
{
	struct json_iter it = json_iterate(r->changes);
	const struct json *one;
	size_t n = 0;

	buf_reset(to);
	while (json_next(&it, NULL, &one)) {
		const char *name = json_cstr_of(json_get(one, member));

		if (name == NULL || !slice_is(json_text(json_get(one, "change")), change))
			continue;
		if (n++ < NAMED_MOST)
			buf_printf(to, "%s%s", n > 1 ? ", " : "", name);
	}
	if (n > NAMED_MOST)
		buf_printf(to, " and %zu more", n - NAMED_MOST);
	return n > 0;
}

static void
tell_kind(const struct resuming *r, const char *member, const char *change, const char *what)
{
	struct buf names = {0};

	if (name_all(r, member, change, &names))
		cli_note("the document '%s' has changed since: %s: %s", r->launch.document, what,
		    buf_text(&names));
	buf_clear(&names);
}

void
resuming_tell_changes(const struct resuming *r)
{
	bool rerun = cli_flag(r->c, "rerun-changed");

	if (r->unreadable != NULL)
		cli_note("the document has changed since and cannot be read: %s; what was recorded holds",
		    json_cstr_of(r->unreadable));
	tell_kind(r, "op", "changed", rerun
		? "run as they are defined now"
		: "other definitions (those recorded hold; --rerun-changed runs them as they are now)");
	tell_kind(r, "op", "added", "new, and not in this run");
	tell_kind(r, "op", "removed", "not there any more, and still in this run");
	tell_kind(r, "setting", "changed", "other settings (those recorded hold)");
}
