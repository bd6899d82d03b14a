/* resume: what was recorded, and the examination of it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "client.h"
#include "policy.h"
#include "resuming.h"
#include "roles.h"
#include "seek.h"
#include "withheld.h"

extern char **environ;

int
resuming_take_session(struct resuming *r, struct err *e)
{
	const char *id = r->t->session.run_id;

	r->is_run = true;
	free(r->name);
	free(r->label);
	free(r->run_path);
	fd_close(&r->run_fd);
	r->label = r->run_path = NULL;
	r->name = strdup(id);
	if (r->name == NULL || asprintf(&r->label, "run %s", id) < 0 ||
	    asprintf(&r->run_path, "%s/" HOME_RUNS "/%s", r->t->home.path, id) < 0)
		return err_nomem(e);
	r->run_fd = rundir_open(&r->t->home, id, e);
	if (r->run_fd >= 0)
		return 0;
	if (e->code == ERR_NOTFOUND && !r->fork)
		err_advice(e, "if it was moved, give its path: flowsup resume PATH");
	return seek_damaged(&r->t->session, e);
}

/* A directory that is no run of ours may lack what only this program writes. */
static bool
may_lack(const struct resuming *r, struct err *e)
{
	if (r->is_run || e->code != ERR_NOTFOUND)
		return false;
	err_clear(e);
	return true;
}

static int
read_document(struct resuming *r, struct err *e)
{
	return rundir_read_json(r->run_fd, RUN_FLOW, &r->document, e) == 0 || may_lack(r, e) ? 0 : -1;
}

static int
read_launch(struct resuming *r, struct err *e)
{
	r->has_launch = launch_read(r->run_fd, &r->launch, e) == 0;
	return r->has_launch || may_lack(r, e) ? 0 : -1;
}

/* Names of this program's own belong to one run. */
static int
take_environment(struct resuming *r, struct err *e)
{
	static const char ours[] = "FLOWSUP_", home[] = "FLOWSUP_HOME=";
	size_t n = 0, kept = 0, i;

	while (environ[n] != NULL)
		n++;
	r->environment = calloc(n + 1, sizeof(*r->environment));
	if (r->environment == NULL)
		return err_nomem(e);
	for (i = 0; i < n; i++)
		if (strncmp(environ[i], ours, strlen(ours)) != 0 ||
		    strncmp(environ[i], home, strlen(home)) == 0)
			r->environment[kept++] = environ[i];
	return 0;
}

static int
read_environment(struct resuming *r, struct err *e)
{
	if (environ_read(r->run_fd, &r->environment_block, &r->environment, e) == 0)
		return 0;
	return may_lack(r, e) ? take_environment(r, e) : -1;
}

static int
read_attempts(struct resuming *r, struct err *e)
{
	bool started = r->is_run && seek_has_started(r->run_fd, r->t->session.started_at);

	r->has_attempts = true;
	/* Nothing may run beside a fork, and nothing tells of it any more. */
	if (r->fork)
		return seek_attempts(r->run_fd, started, &r->attempts, e);
	r->has_attempts = faccessat(r->run_fd, RUN_ATTEMPTS, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || (r->is_run && !started);
	if (attempts_read(r->run_fd, &r->attempts, e) != 0)
		return -1;
	r->lost_attempts = seek_lacks_attempts(started, &r->attempts);
	r->hidden_start = seek_hides_start(&r->attempts);
	return 0;
}

/* An older form becomes the newest one in memory only; the file stays as it is. */
static int
migrate(struct resuming *r, struct err *e)
{
	struct err why = {0};

	r->state = ckpt_migrate(r->state, r->report.format, &why);
	if (r->state != NULL) {
		r->state = roles_complete(r->state, e);
		return r->state != NULL ? 0 : -1;
	}
	if (why.code == ERR_NOMEM)
		return err_nomem(e);
	r->load_failed = true;
	r->load_error = why;
	return 0;
}

/* A resumed run that died before its first base has what it was to start from. */
static int
load_carry(struct resuming *r, struct err *e)
{
	struct err why = {0};

	if (rundir_read_json(r->run_fd, RUN_CARRY, &r->state, &why) != 0) {
		if (why.code == ERR_NOTFOUND)
			return 0;
		*e = why;
		return -1;
	}
	/* attempts.log says it as well, and what has become of it since. */
	if (json_get(r->state, RUN_TAKEN_OVER) != NULL)
		r->state = json_remove(r->state, slice_of(RUN_TAKEN_OVER));
	return r->state != NULL ? 0 : err_nomem(e);
}

/* A refused checkpoint is an answer; that it cannot be read is none. */
static int
load_checkpoint(struct resuming *r, struct err *e)
{
	struct ckpt_load_options o = {0};

	if (resuming_lock_held(r, 0, &o.lock_held, e) != 0)
		return -1;
	if (ckpt_load(r->run_fd, &o, &r->state, &r->report, &r->load_error) == 0) {
		r->has_checkpoint = true;
		return migrate(r, e);
	}
	(void)seek_refuse_lost(r->run_fd, r->is_run && r->t->session.started_at > 0, &r->report,
	    &r->load_error);
	if (r->load_error.code == ERR_NOTFOUND) {
		r->load_error = (struct err){0};
		return load_carry(r, e);
	}
	if (r->load_error.code != ERR_CHECKPOINT) {
		*e = r->load_error;
		return -1;
	}
	r->has_checkpoint = r->load_failed = true;
	return 0;
}

static struct json *
replace_member(struct json *o, const char *name, const struct json *value)
{
	if (o == NULL || value == NULL)
		return o;
	return json_type(value) == JSON_OBJECT && json_length(value) == 0
	    ? json_remove(o, slice_of(name))
	    : json_set(o, name, json_ref(value));
}

static struct json *
replace_policy(struct json *o, const struct json *notify, const struct json *restart)
{
	return replace_member(replace_member(o, "notify", notify), "restart", restart);
}

/* What this call says of notify and restart stands from now on in what is recorded. */
/* The deadline of what goes on; the recorded one starts anew too. */
static int
apply_timeout(struct resuming *r, struct err *e)
{
	int64_t ns = cli_int(r->c, "timeout", 0);
	struct json *value, *config;

	if (ns <= 0)
		return 0;
	value = json_printf("%lld.%09llds", (long long)(ns / NS_PER_S), (long long)(ns % NS_PER_S));
	if (value == NULL)
		return err_nomem(e);
	if (r->state != NULL && json_get(r->state, "config") != NULL) {
		config = json_set(json_ref(json_get(r->state, "config")), "timeout", json_ref(value));
		r->state = json_set(r->state, "config", config);
		if (r->state == NULL)
			err_nomem(e);
	}
	if (r->document != NULL) {
		r->document = json_set(r->document, "timeout", json_ref(value));
		if (r->document == NULL)
			err_nomem(e);
	}
	json_unref(value);
	return e->code == ERR_NOMEM ? -1 : 0;
}

/* NULL: the recorded environment has none. */
static const char *
recorded_path(const struct resuming *r)
{
	static const char path[] = "PATH=";
	char *const *one;

	for (one = r->environment; one != NULL && *one != NULL; one++)
		if (strncmp(*one, path, strlen(path)) == 0)
			return *one + strlen(path);
	return NULL;
}

static int
apply_options(struct resuming *r, struct err *e)
{
	struct json *notify = NULL, *restart = NULL, *config = NULL;
	const struct json *now = json_get(
	    r->state != NULL ? json_get(r->state, "config") : r->document, "restart");
	bool had_state = r->state != NULL, had_document = r->document != NULL;

	if (policy_options(r->c, now, &notify, &restart, e) != 0)
		return -1;
	if (policy_check_notify(notify, recorded_path(r), e) != 0) {
		json_unref(notify);
		json_unref(restart);
		return -1;
	}
	r->document = replace_policy(r->document, notify, restart);
	if (had_state && json_get(r->state, "config") != NULL && (notify != NULL || restart != NULL)) {
		config = replace_policy(json_ref(json_get(r->state, "config")), notify, restart);
		r->state = json_set(r->state, "config", config);
	}
	json_unref(notify);
	json_unref(restart);
	return had_state == (r->state != NULL) && had_document == (r->document != NULL) ? 0
											: err_nomem(e);
}

static int
make_flow(struct resuming *r, struct err *e)
{
	struct err *why = &r->flow_error;
	int rc = r->redefined_badly ? -1
	    : r->state != NULL ? flow_from_state(r->state, &r->flow, why)
			       : flow_from_document(r->document, &r->flow, why);

	r->flow_failed = rc != 0;
	if (rc != 0 && why->code == ERR_NOMEM)
		return err_nomem(e);
	return 0;
}

int
resuming_damaged(const struct resuming *r, struct err *e)
{
	char word[SHELL_WORD_TEXT];

	seek_refuse_damage(e);
	err_wrap(e, "%s", r->label);
	if (!err_has_hint(e) && faccessat(r->run_fd, CKPT_BASE, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		err_hint(e, "flowsup checkpoint show %s   # what was saved of it", shell_word(word, r->is_run ? r->name : r->run_path));
	return -1;
}

static int
read_files(struct resuming *r, struct err *e)
{
	if (read_launch(r, e) == 0 && read_document(r, e) == 0 && read_environment(r, e) == 0 &&
	    read_attempts(r, e) == 0)
		return 0;
	return r->is_run ? seek_damaged_for_good(&r->t->session, e) : resuming_damaged(r, e);
}

bool
resuming_goes_without(const struct cli *c, const char *name)
{
	size_t i;

	for (i = 0; i < cli_count(c, "without-env"); i++)
		if (strcmp(cli_nth(c, "without-env", i), name) == 0)
			return true;
	return false;
}

static int
refuse_without(const struct resuming *r, const char *name, const struct json *withheld, struct err *e)
{
	const char **names = calloc(json_length(withheld) + 1, sizeof(*names)), *nearest;
	struct json_iter it = json_iterate(withheld);
	const struct json *one;
	size_t n = 0;

	if (names == NULL)
		return err_nomem(e);
	while (json_next(&it, NULL, &one))
		if (json_cstr_of(one) != NULL)
			names[n++] = json_cstr_of(one);
	err_set(e, ERR_NOTFOUND, "%s has no withheld variable \"%.64s\"", r->label, name);
	nearest = text_nearest(name, names, n);
	if (nearest != NULL)
		cli_hint_instead(r->c, name, strlen(name), nearest, e);
	free(names);
	return -1;
}

int
resuming_check_without(const struct resuming *r, const struct json *withheld, struct err *e)
{
	size_t i;

	for (i = 0; i < cli_count(r->c, "without-env"); i++)
		if (!withheld_has(withheld, cli_nth(r->c, "without-env", i)) &&
		    !(!r->fork && cli_flag(r->c, "all-crashed")))
			return refuse_without(r, cli_nth(r->c, "without-env", i), withheld, e);
	return 0;
}

static size_t
count_of(char *const *list)
{
	size_t n = 0;

	while (list != NULL && list[n] != NULL)
		n++;
	return n;
}

int
resuming_unheard(struct resuming *r, struct json *text, struct err *e)
{
	r->unheard = json_append(r->unheard != NULL ? r->unheard : json_array(), text);
	return r->unheard != NULL ? 0 : err_nomem(e);
}

/* Where it has not said whether it has them. */
static int
values_unheard(struct resuming *r, const struct json *missing, const struct err *why, struct err *e)
{
	struct json_iter it = json_iterate(missing);
	struct buf names = {0};
	const struct json *one;
	int rc = 0;

	if (why->code != ERR_TIMEOUT && why->code != ERR_BUSY)
		return 0;
	while (json_next(&it, NULL, &one))
		buf_printf(&names, "%s%s", names.len > 0 ? ", " : "", json_cstr_of(one));
	rc = buf_ok(&names, e);
	if (rc == 0)
		rc = resuming_unheard(r, json_printf("%s; it may have kept the value of %s", why->msg, buf_text(&names)), e);
	buf_clear(&names);
	return rc;
}

/* Values that are not set here, and that the supervisor still has of a run that crashed. */
static int
ask_supervisor(struct resuming *r, struct err *e)
{
	struct json *missing = withheld_missing(r->asked, environ, e);
	size_t n = json_length(missing), have = count_of(r->environment);
	struct err why = {0};
	int fd, rc = 0;

	if (missing == NULL)
		return -1;
	fd = n > 0 && r->is_run && !r->by_policy ? client_values(&r->t->home, r->t->session.run_id, &why) : -1;
	if (fd < 0) {
		if (why.code == ERR_TIMEOUT)
			(void)client_say_silent(&r->t->home, &why);
		rc = values_unheard(r, missing, &why, e);
	}
	json_unref(missing);
	if (fd < 0)
		return rc;
	rc = withheld_read(fd, r->asked, environ, &r->held_block, &r->held, e);
	fd_close(&fd);
	if (rc != 0)
		return -1;
	n = count_of(r->held);
	r->sources = calloc(n + have + 1, sizeof(*r->sources));
	if (r->sources == NULL)
		return err_nomem(e);
	memcpy(r->sources, r->held, n * sizeof(*r->held));
	memcpy(r->sources + n, r->environment, have * sizeof(*r->environment));
	return 0;
}

/* Those of the run that is resumed, less --without-env; then values that an older record holds, or
 * this environment where there is no record. */
static int
read_withheld(struct resuming *r, struct err *e)
{
	struct json_iter it = json_iterate(r->launch.withheld);
	const struct json *one;

	if (resuming_check_without(r, r->launch.withheld, e) != 0)
		return -1;
	r->asked = json_array();
	while (json_next(&it, NULL, &one))
		if (json_cstr_of(one) != NULL && !resuming_goes_without(r->c, json_cstr_of(one)))
			r->asked = json_append(r->asked, json_ref(one));
	r->withheld = r->by_policy ? json_array() : withheld_names(r->environment, e);
	it = json_iterate(r->asked);
	while (json_next(&it, NULL, &one))
		r->withheld = json_append(r->withheld, json_ref(one));
	if (r->asked == NULL || r->withheld == NULL)
		return err_nomem(e);
	return ask_supervisor(r, e);
}

/* Files of runs count as where these are now. */
static int
follow_move(struct resuming *r, struct err *e)
{
	const char *id = r->has_launch ? json_cstr_of(json_get(r->launch.object, "run_id")) : NULL;

	if (r->state == NULL)
		return 0;
	if (id == NULL && r->original_is_here)
		id = r->original;
	r->state = rundir_follow_move(r->state, r->run_path, id, r->has_home ? &r->t->home : NULL, e);
	return r->state != NULL ? 0 : -1;
}

int
resuming_read(struct resuming *r, struct err *e)
{
	if (read_files(r, e) != 0 || read_withheld(r, e) != 0 || load_checkpoint(r, e) != 0)
		return -1;
	if (!r->is_run && (resuming_find_original(r, e) != 0 || resuming_check_unlocked(r, e) != 0))
		return -1;
	if (r->load_failed)
		return 0;
	if (!r->has_checkpoint && r->state == NULL && r->document == NULL)
		return err_set(e, ERR_NOTFOUND, "there is no checkpoint in %s", r->label);
	if (follow_move(r, e) != 0 || apply_options(r, e) != 0 || apply_timeout(r, e) != 0 ||
	    resuming_compare(r, e) != 0 || make_flow(r, e) != 0)
		return -1;
	/* From the plan alone: what is added to the graph later is no part of a document. */
	if (r->document == NULL && r->flow != NULL) {
		r->document = flow_as_document(r->flow);
		if (r->document == NULL)
			return err_nomem(e);
	}
	if (!r->is_run && resuming_check_marks(r, e) != 0)
		return -1;
	if (resume_facts(r->run_fd, r->state, r->fork, &r->facts, &r->root_problem, e) != 0)
		return -1;
	return resuming_survivors(r, e);
}

static void
read_flags(const struct resuming *r, struct resume_flags *flags)
{
#define X(member, option, help, seldom) flags->member = cli_flag(r->c, option) || r->supposed.member;
	RESUME_FLAG_TABLE(X)
#undef X
}

int
resuming_examine_input(struct resuming *r, struct err *e)
{
	const struct json *ops = json_get(r->input.state, "ops"), *entry;
	const struct flow *f = r->input.flow;
	const struct flow_grown *g;
	enum flow_outcome outcome;
	size_t i;

	for (i = 0; f != NULL && i < f->nops; i++) {
		g = flow_grown(f, (uint32_t)i);
		entry = g != NULL ? g->entry : json_get(ops, f->ops[i].id);
		outcome = slice_is(json_text(json_get(entry, "status")), "completed") ? FLOW_COMPLETED : FLOW_FAILED;
		if (flow_answers_read(f, (uint32_t)i, outcome, r->run_fd, entry, &r->answers, e) != 0)
			return -1;
	}
	r->input.answers = r->answers;
	return resume_examine(&r->input, &r->plan, e);
}

static int
examine_once(struct resuming *r, struct err *e)
{
	struct resume_input *in = &r->input;
	bool grown;

	*in = (struct resume_input){
	    .state = r->load_failed ? NULL : r->state,
	    .report = r->has_checkpoint ? &r->report : NULL,
	    .load_error = r->load_failed ? &r->load_error : NULL,
	    .flow = r->flow_failed ? NULL : r->flow,
	    .flow_error = &r->flow_error,
	    .attempts = &r->attempts,
	    .no_attempts = !r->has_attempts,
	    .lost_attempts = r->lost_attempts,
	    .hidden_start = r->hidden_start,
	    .may_have_gone_on = r->may_have_gone_on,
	    .lacks_list = r->is_run && json_get(r->t->session.metadata, META_FORK_FROM) != NULL,
	    .lacks_room = r->is_run && json_get(r->t->session.metadata, META_MAX_OPS) != NULL,
	    .facts = r->facts,
	    .again = r->again,
	    .directory = r->has_launch ? r->launch.cwd : ".",
	    .artifact_root_problem = r->root_problem,
	    .recorded_environment = r->environment,
	    .current_environment = environ,
	    .withheld = r->asked,
	    .kept_out = r->launch.withheld,
	    .held_environment = r->held,
	    .values_come = r->by_policy,
	};
	read_flags(r, &in->flags);
	grown = in->flow != NULL && json_length(json_get(in->state, "spawned")) > 0;
	if (in->flow != NULL && (grown || r->fork)) {
		if (resuming_read_providers(r, e) != 0)
			return -1;
		in->settings = r->settings;
		in->copying = r->fork ? r->copying : NULL;
	}
	return grown ? resuming_examine_grown(r, e) : resuming_examine_input(r, e);
}

/* ---- What would be refused next ---- */

/* True where it was neither given nor supposed until now. */
static bool
suppose(struct resuming *r, const char *option)
{
	struct resume_flags before = r->supposed;

#define X(member, word, help, seldom)                                                            \
	if (strcmp(option, word) == 0 && !cli_flag(r->c, word))                                    \
		r->supposed.member = true;
	RESUME_FLAG_TABLE(X)
#undef X
	return memcmp(&before, &r->supposed, sizeof(before)) != 0;
}

/* Failures run again, or are kept: one option says it for all. */
static bool
says_the_other(const struct resuming *r, const char *option)
{
	if (strcmp(option, "retry-failed") == 0)
		return r->supposed.keep_failed;
	return strcmp(option, "keep-failed") == 0 &&
	    (r->supposed.retry_failed || json_find(r->plan.failures, "flag", RESUME_LIFTS_FAILED) != NULL);
}

static bool
suppose_lifts(struct resuming *r)
{
	struct json_iter it = json_iterate(r->plan.failures);
	const struct json *one;
	const char *option;
	bool more = false;

	while (json_next(&it, NULL, &one)) {
		option = resuming_lift(one);
		if (option != NULL && !says_the_other(r, option))
			more |= suppose(r, option);
	}
	return more;
}

static struct json *
supposed_options(const struct resuming *r)
{
	struct json *all = json_array();

#define X(member, word, help, seldom)                                                            \
	if (r->supposed.member)                                                                    \
		all = json_append(all, json_cstr(word));
	RESUME_FLAG_TABLE(X)
#undef X
	return all;
}

static bool
is_listed(const struct json *all, const struct json *failure)
{
	static const char *const members[] = {"check", "op", "flag", "name", "variable", "directory", "needed"};
	struct json_iter it = json_iterate(all);
	const struct json *one;
	size_t i;

	while (json_next(&it, NULL, &one)) {
		for (i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
			const struct json *a = json_get(one, members[i]), *b = json_get(failure, members[i]);

			if ((a == NULL) != (b == NULL) || (a != NULL && !json_equal(a, b)))
				break;
		}
		if (i == sizeof(members) / sizeof(members[0]))
			return true;
	}
	return false;
}

static struct json *
add_behind(const struct resuming *r, struct json *all)
{
	struct json_iter it = json_iterate(r->plan.failures);
	const struct json *one;

	while (json_next(&it, NULL, &one))
		if (!is_listed(all, one))
			all = json_append(all, json_set(json_ref(one), "behind", supposed_options(r)));
	return all;
}

/* From the graph as it is recorded. */
static int
examine_anew(struct resuming *r, struct err *e)
{
	resume_plan_clear(&r->plan);
	flow_free(r->flow);
	r->flow = NULL;
	return make_flow(r, e) == 0 ? examine_once(r, e) : -1;
}

int
resuming_examine(struct resuming *r, struct err *e)
{
	struct json *all;

	if (examine_once(r, e) != 0)
		return -1;
	if (r->flow == NULL || r->flow_failed || resume_is_accepted(&r->plan) || !suppose_lifts(r))
		return 0;
	all = json_ref(r->plan.failures);
	do {
		if (examine_anew(r, e) != 0) {
			json_unref(all);
			return -1;
		}
		all = add_behind(r, all);
	} while (!r->flow_failed && suppose_lifts(r));
	/* What was asked for is what is told. */
	r->supposed = (struct resume_flags){0};
	if (examine_anew(r, e) != 0) {
		json_unref(all);
		return -1;
	}
	json_unref(r->plan.failures);
	r->plan.failures = all;
	return all != NULL ? 0 : err_nomem(e);
}

void
resuming_forget(struct resuming *r)
{
	resume_plan_clear(&r->plan);
	flow_free(r->flow);
	json_unref(r->state);
	json_unref(r->document);
	json_unref(r->facts);
	json_unref(r->answers);
	attempts_clear(&r->attempts);
	r->flow = NULL;
	r->state = r->document = r->facts = r->answers = NULL;
	r->input = (struct resume_input){0};
}

void
resuming_clear(struct resuming *r)
{
	resuming_forget(r);
	json_unref(r->changes);
	json_unref(r->unreadable);
	json_unref(r->again);
	json_unref(r->kept);
	json_unref(r->dropped);
	json_unref(r->misfits);
	json_unref(r->settings);
	json_unref(r->copying);
	launch_read_clear(&r->launch);
	free(r->environment_block);
	free(r->environment);
	withheld_wipe(&r->held_block);
	free(r->held);
	free(r->sources);
	free(r->root_problem);
	json_unref(r->unheard);
	json_unref(r->asked);
	json_unref(r->withheld);
	free(r->run_path);
	free(r->name);
	free(r->label);
	fd_close(&r->lock_fd);
	fd_close(&r->run_fd);
}
