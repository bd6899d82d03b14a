/* resume: ends what the dead worker left and makes the run that goes on. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "autostart.h"
#include "client.h"
#include "flowsup/clock.h"
#include "flowsup/endops.h"
#include "flowsup/fs.h"
#include "follow.h"
#include "hold.h"
#include "policy.h"
#include "restart.h"
#include "resuming.h"
#include "withheld.h"
#include "start.h"
#include "view.h"

extern char **environ;

/* ---- Leftovers ---- */

static int
something_left(const struct resuming *r, const struct endops_result *left, struct err *e)
{
	const struct json *first = json_at(left->left, 0);
	struct buf text = {0};
	int64_t pid = 0;

	endops_tell_left(left, &text);
	json_int64(json_get(first, "pid"), &pid);
	err_set(e, ERR_REFUSED,
	    "%s cannot be resumed while something of it may still run: %s; end it if it is the run's, or "
	    "wait until it has ended, and resume again", r->label, buf_text(&text));
	err_hint(e, "ps -o pid,pgid,lstart,args -p %lld; kill %lld", (long long)pid, (long long)pid);
	buf_clear(&text);
	return -1;
}

static int
end_leftovers(struct resuming *r, struct err *e)
{
	const struct endops_request q = {.home = &r->t->home,
	    .run_id = r->t->session.run_id,
	    .session_id = r->t->session.session_id,
	    .attempts = &r->attempts,
	    .flow = r->flow,
	    .strays = r->strays_stay ? ENDOPS_STRAYS_LEAVE : ENDOPS_STRAYS_END,
	    .spares = resuming_spares,
	    .arg = r,
	    .grace_most_ns = -1};
	struct endops_result left;
	int rc = 0;

	if (endops_run(&q, &left, e) != 0)
		return -1;
	if (left.found > 0)
		cli_note("ended %u process%s that the dead worker had left", left.found,
		    left.found == 1 ? "" : "es");
	if (json_length(left.left) > 0)
		rc = something_left(r, &left, e);
	endops_clear(&left);
	return rc;
}

/* ---- The new run's directory ---- */

/* The recorded environment and the names that were missing in it. */
static char **
make_environment(const struct resuming *r)
{
	size_t n = 0, added = json_length(r->plan.added), i, k;
	char **all;

	while (r->environment[n] != NULL)
		n++;
	all = calloc(n + added + 1, sizeof(*all));
	if (all == NULL)
		return NULL;
	memcpy(all, r->environment, n * sizeof(*all));
	for (i = 0; i < added; i++) {
		struct slice name = json_text(json_at(r->plan.added, i));

		for (k = 0; environ[k] != NULL; k++)
			if (strncmp(environ[k], name.data, name.len) == 0 &&
			    environ[k][name.len] == '=')
				all[n++] = environ[k];
	}
	return all;
}

/* NULL without a problem: there never was one, and the new run makes its own. */
static char *
find_root(const struct resuming *r, struct err *e)
{
	char *root;

	/* A fork has its own: nothing it does is written to the other run's. */
	if (r->root_problem != NULL || r->fork)
		return NULL;
	root = resume_artifact_root(r->state, r->run_path);
	if (root == NULL)
		err_nomem(e);
	else if (access(root, F_OK) != 0 && errno == ENOENT) {
		free(root);
		root = NULL;
	}
	return root;
}

/* The earlier run may go on in its conversations too. Consumes o. */
static struct json *
share(struct json *o)
{
	return json_type(o) == JSON_OBJECT ? json_set(o, CKPT_SHARED, json_bool(true)) : o;
}

static struct json *
share_that_of(const struct json *entry)
{
	const struct json *conversation = json_get(entry, "conversation");

	return conversation == NULL ? json_ref(entry)
	    : json_set(json_ref(entry), "conversation", share(json_ref(conversation)));
}

static struct json *
share_conversations(struct json *carry)
{
	struct json *ops = json_object(), *spawned = json_array(), *interrupted = json_object(), *config;
	struct json_iter it = json_iterate(json_get(carry, "ops"));
	const struct json *one;
	struct slice id;

	while (json_next(&it, &id, &one))
		ops = json_setn(ops, id, share_that_of(one));
	it = json_iterate(json_get(carry, "spawned"));
	while (json_next(&it, NULL, &one))
		spawned = json_append(spawned, share_that_of(one));
	config = json_ref(json_get(carry, "config"));
	it = json_iterate(json_get(config, "interrupted"));
	while (json_next(&it, &id, &one))
		interrupted = json_setn(interrupted, id, share(json_ref(one)));
	config = json_set(config, "interrupted", interrupted);
	carry = json_set(json_set(carry, "ops", ops), "spawned", spawned);
	return json_set(carry, "config", config);
}

/* It resumes nothing. */
static int
say_forked(const struct resuming *r, struct json **carry, struct err *e)
{
	struct json *config = json_remove(json_ref(json_get(*carry, "config")), slice_of("resumed_from"));

	config = json_remove(json_remove(config, slice_of("rejected")), slice_of("rejected_by_operation"));
	config = json_remove(json_remove(config, slice_of("earlier_sessions")), slice_of(CONFIG_ORIGIN));
	config = json_set(config, "forked_from", json_cstr(r->t->session.run_id));
	*carry = share_conversations(json_set(*carry, "config", config));
	return *carry != NULL ? 0 : err_nomem(e);
}

/* The session of what is resumed, behind those that it has resumed: the new run has its own in the place
 * where theirs stood. Something else under that name stays, as the first. */
static struct json *
earlier_sessions(const struct json *state)
{
	const struct json *before = json_get(json_get(state, "config"), "earlier_sessions");
	const struct json *session = json_get(state, "session_id");
	struct json *all = json_type(before) == JSON_ARRAY ? json_ref(before) : json_array();

	if (before != NULL && json_type(before) != JSON_ARRAY)
		all = json_append(all, json_ref(before));
	return json_type(session) == JSON_STRING ? json_append(all, json_ref(session)) : all;
}

/* Of a session that another program began and whose id is of another form: as long as ours, and the same
 * wherever a copy of its file goes on. Without an id it is empty. */
static int
foreign_origin(const struct json *first, const struct json *last, char to[UUID_TEXT], struct err *e)
{
	const struct json *id = json_type(first) == JSON_STRING ? first : last;
	char digest[CKPT_DIGEST_TEXT];

	to[0] = '\0';
	if (json_text(id).len == 0)
		return 0;
	if (ckpt_digest(id, digest, e) != 0)
		return -1;
	snprintf(to, UUID_TEXT, "%.*s", UUID_TEXT - 1, digest + sizeof(CKPT_DIGEST_PREFIX) - 1);
	return 0;
}

/* The first session of the chain, which keys of idempotence are made from; empty: nothing tells it. Only the
 * state tells it to who resumes a copy in another state directory. */
static int
origin_of(const struct resuming *r, char to[UUID_TEXT], struct err *e)
{
	const struct json *config = json_get(r->state, "config");
	const char *recorded = json_cstr_of(json_get(config, CONFIG_ORIGIN));
	const struct json *first = json_at(json_get(config, "earlier_sessions"), 0);
	const struct json *last = json_get(r->state, "session_id");
	const char *row = r->is_run ? r->t->session.origin : r->original_origin;
	const char *found = resuming_is_session(recorded) ? recorded : resuming_is_session(row) ? row
	    : resuming_is_session(json_cstr_of(first)) ? json_cstr_of(first)
	    : resuming_is_session(json_cstr_of(last)) ? json_cstr_of(last) : NULL;

	if (found == NULL)
		return foreign_origin(first, last, to, e);
	strlcpy(to, found, UUID_TEXT);
	return 0;
}

static int
carry_sessions(const struct resuming *r, struct json **carry, struct err *e)
{
	struct json *config;
	char origin[UUID_TEXT];

	if (origin_of(r, origin, e) != 0)
		return -1;
	config = json_ref(json_get(*carry, "config"));
	if (origin[0] != '\0')
		config = json_set(config, CONFIG_ORIGIN, json_cstr(origin));
	config = json_set(config, "earlier_sessions", earlier_sessions(r->state));
	*carry = json_set(*carry, "config", config);
	return *carry != NULL ? 0 : err_nomem(e);
}

/* What it has in a directory whose name is not its run's is looked for in that run's own one, once it is back there. */
static int
carry_directory(const struct resuming *r, struct json **carry, struct err *e)
{
	const char *slash = strrchr(r->run_path, '/'), *id;
	struct json *config, *directories;

	id = r->has_launch ? json_cstr_of(json_get(r->launch.object, "run_id")) : r->original;
	if (r->is_run || id == NULL || !run_id_is_valid(id) || (slash != NULL && strcmp(slash + 1, id) == 0))
		return 0;
	config = json_ref(json_get(*carry, "config"));
	directories = json_get(config, CONFIG_RUN_DIRECTORIES) != NULL
	    ? json_ref(json_get(config, CONFIG_RUN_DIRECTORIES)) : json_object();
	config = json_set(config, CONFIG_RUN_DIRECTORIES, json_set(directories, r->run_path, json_cstr(id)));
	*carry = json_set(*carry, "config", config);
	return *carry != NULL ? 0 : err_nomem(e);
}

/* How many requests were rejected stands in the row alone; which operations had made them, in the events. */
static int
carry_rejected(const struct resuming *r, struct json **carry, struct err *e)
{
	const struct json *rejected = r->is_run
	    ? json_get(json_get(r->t->session.metadata, META_GROWTH), "rejected") : NULL;
	struct json *config, *by_operation;

	if (json_length(rejected) == 0)
		return 0;
	by_operation = view_rejected(r->run_fd, r->state);
	config = json_set(json_ref(json_get(*carry, "config")), "rejected", json_ref(rejected));
	config = json_set(config, "rejected_by_operation", by_operation);
	*carry = json_set(*carry, "config", config);
	return *carry != NULL ? 0 : err_nomem(e);
}

static int
make_carry(const struct resuming *r, struct json **out, struct err *e)
{
	const char *from = r->is_run ? r->t->session.run_id : r->run_path;
	char *root;

	*out = NULL;
	if (r->state == NULL)
		return 0;
	err_clear(e);
	root = find_root(r, e);
	if (e->code != ERR_NONE)
		return -1;
	*out = resume_carry(&r->input, &r->plan, from, r->run_path, root, e);
	free(root);
	if (*out == NULL)
		return -1;
	if (r->fork)
		return say_forked(r, out, e);
	return carry_sessions(r, out, e) == 0 && carry_directory(r, out, e) == 0 ? carry_rejected(r, out, e) : -1;
}

/* An older form was a choice for the run that is over: what goes on is of the newest. */
static struct json *
make_options(const struct resuming *r)
{
	if (!r->has_launch)
		return json_object();
	return json_remove(json_ref(r->launch.options), slice_of("checkpoint_format"));
}

/* A name that is new to the record may be one to be kept out of it. */
static struct json *
make_withheld(const struct resuming *r)
{
	struct json *names = json_ref(r->withheld);
	struct json_iter it = json_iterate(r->plan.added);
	const struct json *one;

	while (json_next(&it, NULL, &one))
		if (withheld_is(json_text(one).data))
			names = json_append(names, json_ref(one));
	return names;
}

struct making {
	char session_id[UUID_TEXT], invocation_id[INVOCATION_ID_TEXT];
	char *cwd; /* of this process, where none was recorded */
	struct json *carry, *options, *document;
	struct json *withheld;
	struct buf attempts;
	char **environment;
	int making; /* see rundir_create */
};

static void
making_clear(struct making *m)
{
	fd_close(&m->making);
	free(m->cwd);
	free(m->environment);
	json_unref(m->carry);
	json_unref(m->options);
	json_unref(m->document);
	json_unref(m->withheld);
	buf_clear(&m->attempts);
}

static const char *
flow_name(const struct resuming *r)
{
	if (r->has_launch)
		return r->launch.name;
	return r->flow->name != NULL ? r->flow->name : "resumed";
}

/* Consumes of, an object with the key. */
static struct json *
with_timeout(const struct resuming *r, struct json *of)
{
	return json_set(of, "timeout",
	    json_printf("%lldms", (long long)((cli_int(r->c, "timeout", 0) + NS_PER_MS - 1) / NS_PER_MS)));
}

/* The recorded time begins anew, or this one does; but what goes on by itself has the deadline that it had. */
static int
set_timeout(const struct resuming *r, struct making *m, struct err *e)
{
	struct json *config = m->carry != NULL ? json_ref(json_get(m->carry, "config")) : NULL;
	bool other = cli_flag(r->c, "timeout");

	if (other) {
		m->document = with_timeout(r, m->document);
		config = config != NULL ? with_timeout(r, config) : NULL;
	}
	if (config != NULL && json_get(config, CONFIG_DEADLINE) != NULL && (other || !r->by_policy))
		config = json_remove(config, slice_of(CONFIG_DEADLINE));
	if (m->carry != NULL)
		m->carry = json_set(m->carry, "config", config);
	return m->document != NULL && (r->state == NULL || m->carry != NULL) ? 0 : err_nomem(e);
}

/* Who keeps failures wants the rest to run, also where the first one was to end the start of anything. What goes
 * on by itself knows what was kept before, and nothing more. */
static int
set_kept(const struct resuming *r, struct making *m, struct err *e)
{
	struct json *config, *kept;
	size_t i;

	if (m->carry == NULL || r->by_policy || !r->flow->fail_fast)
		return 0;
	kept = json_object();
	for (i = 0; i < r->plan.nrows; i++)
		if (r->plan.rows[i].action == RESUME_KEEP_FAILED)
			kept = json_set(kept, r->flow->ops[i].id, json_bool(true));
	config = json_set(json_ref(json_get(m->carry, "config")), CONFIG_KEPT, kept);
	m->carry = json_set(m->carry, "config", config);
	return m->carry != NULL ? 0 : err_nomem(e);
}

static int
prepare(const struct resuming *r, struct making *m, struct err *e)
{
	if (uuid_make(m->session_id, e) != 0)
		return -1;
	if (r->is_run && !r->fork)
		strlcpy(m->invocation_id, r->t->session.invocation_id, sizeof(m->invocation_id));
	else if (r->original_session[0] != '\0')
		strlcpy(m->invocation_id, r->original_invocation, sizeof(m->invocation_id));
	else if (invocation_id_make(m->invocation_id, e) != 0)
		return -1;
	if (!r->has_launch) {
		m->cwd = getcwd(NULL, 0);
		if (m->cwd == NULL)
			return err_sys(e, ERR_ENVIRONMENT, errno,
			    "the current directory cannot be named");
	}
	m->environment = make_environment(r);
	m->options = make_options(r);
	m->document = r->document != NULL ? json_ref(r->document) : NULL;
	m->withheld = make_withheld(r);
	if (m->withheld == NULL || m->environment == NULL || m->options == NULL || m->document == NULL)
		return err_nomem(e);
	if (resuming_taken_lines(r, &m->attempts, e) != 0 || make_carry(r, &m->carry, e) != 0)
		return -1;
	return set_timeout(r, m, e) == 0 ? set_kept(r, m, e) : -1;
}

static int
create_directory(const struct resuming *r, struct making *m, struct err *e)
{
	struct launch l = {
	    .run_id = r->new_run,
	    .session_id = m->session_id,
	    .invocation_id = m->invocation_id,
	    .kind = r->has_launch ? r->launch.kind : "flow",
	    .name = flow_name(r),
	    .argv = r->c->argv,
	    .cwd = r->has_launch ? r->launch.cwd : m->cwd,
	    .umask = r->has_launch ? r->launch.umask : r->c->umask,
	    .environment = m->environment,
	    .withheld = m->withheld,
	    .resumed_from = r->is_run && !r->fork ? r->t->session.run_id : NULL,
	    .document = r->has_launch ? r->launch.document : NULL,
	    .document_digest = r->has_launch && !r->redefined ? r->launch.document_digest : NULL,
	    .options = m->options,
	    .flow = m->document,
	    .carry = m->carry,
	    .attempts = buf_view(&m->attempts),
	    .limits = r->has_launch ? r->launch.limits : NULL,
	};

	return rundir_create(&r->t->home, &l, &m->making, e);
}

/* ---- Its row ---- */

static struct json *
starts_json(const struct resuming *r)
{
	struct json *all = json_array();
	size_t i;

	for (i = 0; i < cli_count(r->c, "from"); i++)
		all = json_append(all, json_cstr(cli_nth(r->c, "from", i)));
	return all;
}

/* A foreach that failed for the length of its list stays failed. */
static bool
keeps_lack(const struct resuming *r)
{
	size_t i;

	for (i = 0; (r->input.lacks_room || r->input.lacks_list) && i < r->plan.nrows; i++)
		if (r->plan.rows[i].action == RESUME_KEEP_FAILED &&
		    resume_lacked_room(&r->input, &r->flow->ops[i], r->plan.rows[i].entry))
			return true;
	return false;
}

/* Consumes metadata. */
static struct json *
carry(struct json *metadata, const struct resuming *r, const char *name)
{
	const struct json *v = json_get(r->t->session.metadata, name);

	return v != NULL ? json_set(metadata, name, json_ref(v)) : metadata;
}

/* Consumes both. */
static struct json *
set_told(struct json *metadata, const char *name, struct json *value)
{
	if (value == NULL || json_type(value) != JSON_NULL)
		return json_set(metadata, name, value);
	json_unref(value);
	return metadata;
}

/* made: the state that it begins with, or NULL. checkpoint_recovery is written anew should this run crash too;
 * resumed_checkpoint stays. */
static struct json *
make_metadata(const struct resuming *r, const struct json *made)
{
	struct json *metadata = json_object();

	if (r->has_checkpoint) {
		metadata = json_set(metadata, "checkpoint_recovery", ckpt_report_json(&r->report));
		metadata = json_set(metadata, "resumed_checkpoint", ckpt_report_json(&r->report));
	}
	if (r->fork) {
		metadata = json_set(metadata, "forked_from", json_cstr(r->t->session.run_id));
		metadata = json_set(metadata, "forked_at", starts_json(r));
	}
	metadata = set_told(metadata, META_PLAN_CUT, flow_recorded_cut(made));
	metadata = set_told(metadata, META_PLAN_EMPTY, flow_recorded_empty_lists(made));
	if (keeps_lack(r))
		metadata = carry(carry(metadata, r, META_MAX_OPS), r, META_FORK_FROM);
	if (!r->is_run)
		metadata = json_set(metadata, META_RESUMED_DIRECTORY,
		    json_string_lossy(slice_of(r->run_path), NULL));
	if (!r->is_run && resuming_session(r) != NULL)
		metadata = json_set(metadata, META_RESUMED_SESSION, json_cstr(resuming_session(r)));
	return metadata;
}

/* By its policy a job goes on with what is left to it; a person's resume gives it everything anew. */
static void
set_restarts(const struct resuming *r, const struct policy *p, struct session_new *n)
{
	const struct session *old = &r->t->session;

	n->restarts_left = p->restarts;
	if (!r->by_policy)
		return;
	n->restarts_left = old->restarts_left - 1;
	n->restarts_done = old->restarts_done + 1;
	n->quick_deaths = restart_was_quick(old) ? old->quick_deaths + 1 : 0;
}

/* Its worker tells the same at its first turn, and may not live to. */
static void
set_counts(const struct resuming *r, const struct json *carry, struct session_new *n, struct json **metadata)
{
	struct json *counts = NULL;
	struct err ignored = {0};

	if (*metadata == NULL || carry == NULL || flow_progress(r->run_fd, carry, &counts, &ignored) != 0)
		return;
	(void)json_int64(json_get(counts, "done"), &n->done);
	(void)json_int64(json_get(counts, "total"), &n->total);
	if (json_length(json_get(counts, META_GROWTH)) > 0)
		*metadata = json_set(*metadata, META_GROWTH, json_ref(json_get(counts, META_GROWTH)));
	json_unref(counts);
}

static int
insert_row(const struct resuming *r, const struct making *m, struct err *e)
{
	struct json *metadata = make_metadata(r, m->carry);
	struct policy policy = {0};
	struct session_new n = {
	    .run_id = r->new_run,
	    .session_id = m->session_id,
	    .invocation_id = m->invocation_id,
	    .kind = r->is_run ? r->t->session.kind : "flow",
	    .name = r->is_run ? r->t->session.name : flow_name(r),
	    .resumed_from = r->is_run && !r->fork ? r->t->session.session_id
		: r->original_session[0] != '\0' ? r->original_session : NULL,
	    .queue = r->fork && r->t->session.queue[0] != '\0' ? r->t->session.queue : NULL,
	    .unique_key = r->fork && r->t->session.unique_key[0] != '\0' ? r->t->session.unique_key
									   : NULL,
	    .total = (int64_t)r->flow->nops,
	    .done = (int64_t)(r->plan.counts[RESUME_REPLAY] + r->plan.counts[RESUME_KEEP_FAILED]),
	    .labels = r->is_run ? r->t->session.labels : NULL,
	};
	int rc;

	set_counts(r, m->carry, &n, &metadata);
	n.metadata = metadata;
	rc = metadata != NULL ? policy_of(r->flow, m->withheld, false, &policy, e) : err_nomem(e);
	n.policy = policy.object;
	n.notify = policy.notify;
	set_restarts(r, &policy, &n);
	if (rc == 0)
		rc = session_insert(r->t->store, &n, e);
	json_unref(metadata);
	policy_clear(&policy);
	return rc;
}

static int
copy_artifacts(const struct resuming *r, struct err *e)
{
	char *root;
	int rc;

	if (r->root_problem != NULL || r->state == NULL)
		return 0;
	root = resume_artifact_root(r->state, r->run_path);
	if (root == NULL)
		return err_nomem(e);
	rc = resuming_copy_artifacts(r, root, e);
	free(root);
	return rc;
}

/* Held, as a start is. */
static int
create_run(struct resuming *r, struct err *e)
{
	struct making m = {.making = -1};
	int rc = r->new_run[0] == '\0' ? run_id_make(r->new_run, e) : 0;

	if (rc == 0)
		rc = prepare(r, &m, e);
	if (rc == 0)
		rc = create_directory(r, &m, e);
	if (rc == 0) {
		rc = r->fork ? copy_artifacts(r, e) : r->is_run ? 0 : resuming_copy_attempts(r, e);
		if (rc == 0)
			rc = hold_check(e);
		if (rc == 0)
			rc = insert_row(r, &m, e);
		if (rc != 0)
			(void)rundir_remove(&r->t->home, r->new_run, NULL);
		else
			rundir_born(&r->t->home, r->new_run, &m.making);
	}
	making_clear(&m);
	return rc;
}

/* ---- After it exists ---- */

static int
follow(const struct resuming *r, const char *run_id, int events_fd, struct err *e)
{
	struct output display;
	struct follow f = {
	    .home = &r->t->home,
	    .store = r->t->store,
	    .cli = r->c,
	    .home_option = r->c->home,
	    .from_start = true,
	    .out = &display,
	    .events_fd = events_fd,
	    .utc = r->c->utc,
	};
	int rc;

	/* The id alone is on standard output. */
	out_init(&display, STDERR_FILENO);
	f.show = follow_how(&display, false);
	rc = follow_run(&f, run_id, e);
	(void)out_end(&display, &(struct err){0});
	return rc;
}

static int
open_events(const struct resuming *r, int *fd, bool *owned, struct err *e)
{
	*fd = -1;
	*owned = false;
	if (r->fork || !cli_flag(r->c, "events"))
		return 0;
	return follow_open_events(cli_text(r->c, "events", ""), fd, owned, e);
}

int
resuming_follow_live(const struct resuming *r, struct err *e)
{
	bool owned;
	int fd, rc;

	if (!cli_flag(r->c, "wait") || cli_flag(r->c, "dry-run"))
		return 0;
	if (open_events(r, &fd, &owned, e) != 0)
		return -1;
	rc = follow(r, r->t->session.run_id, fd, e);
	if (owned)
		fd_close(&fd);
	return rc;
}

static struct json *
new_json(const struct resuming *r)
{
	struct json *o = json_set(resuming_json(r), r->fork ? "forked_from" : "resumed_from",
	    json_string_lossy(slice_of(r->name), NULL));
	struct session s;

	if (session_read(r->t->store, r->new_run, &s, NULL) != 0)
		return json_set(o, "id", json_cstr(r->new_run));
	o = start_made_json(o, &r->t->home, s.run_id, s.session_id, s.invocation_id);
	session_clear(&s);
	return o;
}

static void
print_new(const struct resuming *r, const struct hold *hold)
{
	hold_before_writing(hold, STDOUT_FILENO);
	if (r->c->json)
		out_json(r->c->out, new_json(r));
	else
		out_printf(r->c->out, "%s\n", r->new_run);
	out_flush(r->c->out);
	if (r->c->out->failed.code != ERR_NONE)
		cli_note("run %s was started all the same", r->new_run);
	hold_tell(r->new_run);
	hold_end(hold);
}

/* With the values that no file holds; by its policy the supervisor has them. */
static int
hand_over(const struct resuming *r, struct err *e)
{
	struct json *names;
	int values, rc = -1;

	if (r->by_policy)
		return client_poke(&r->t->home, r->new_run, e);
	names = make_withheld(r);
	values = withheld_gather(names, environ, r->sources != NULL ? r->sources : r->environment, e);
	if (values >= 0 || (names != NULL && json_length(names) == 0))
		rc = client_supply(&r->t->home, r->new_run, values, e);
	fd_close(&values);
	json_unref(names);
	return rc;
}

static int
go_on(struct resuming *r, int events_fd, struct err *e)
{
	struct err poked = {0};
	struct hold hold;
	int rc;

	resuming_tell_losses(r);
	if (r->is_run && !r->fork && end_leftovers(r, e) != 0)
		return -1;
	hold_begin(&hold);
	rc = create_run(r, e);
	if (rc == 0)
		print_new(r, &hold);
	hold_end(&hold);
	if (rc != 0) /* what is done by policy is tried again when the database is busy */
		return r->by_policy ? rc : start_nothing(rc, e);
	if (!r->has_checkpoint && r->state != NULL)
		cli_note("%s never started an operation: the new run starts from what it was given", r->label);
	else if (!r->has_checkpoint)
		cli_note("%s never started an operation: it starts from its document", r->label);
	fd_close(&r->lock_fd);
	resuming_unlock(r);
	if (hand_over(r, &poked) != 0) {
		/* The run is durable: whichever supervisor comes next finds it. */
		cli_note("run %s is queued, but no supervisor took it: %s", r->new_run, poked.msg);
		cli_hint("%s",
		    err_has_hint(&poked) && !poked.advice ? err_hint_text(&poked) : "flowsup supervisor --foreground");
		rc = err_exit_status(ERR_BUSY);
	}
	if (rc != 0 || !cli_flag(r->c, "wait"))
		return rc;
	resuming_forget(r);
	return follow(r, r->new_run, events_fd, e);
}

int
resuming_go_on(struct resuming *r, struct err *e)
{
	bool owned;
	int fd, rc;

	/* Where nobody could be told, or nothing could execute it, nothing is made. */
	if (out_check(r->c->out, e) != 0 || (!r->by_policy && autostart_check_worker(e) != 0) ||
	    open_events(r, &fd, &owned, e) != 0)
		return -1;
	rc = go_on(r, fd, e);
	if (owned)
		fd_close(&fd);
	return rc;
}
