/* flowsup checkpoint: look at, verify, copy, migrate and compact what a run has saved. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "evidence.h"
#include "flowsup/checkpoint.h"
#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "output.h"
#include "resume.h"
#include "seek.h"
#include "target.h"

enum { EXIT_RECOVERED = 6 };

/* A checkpoint: of a run, or somewhere else. */
struct source {
	struct target target; /* of a run */
	bool is_run;
	int fd;		       /* the directory */
	char *directory;       /* of a path */
	const char *base_name; /* NULL: CKPT_BASE; else within directory's text */
	char *file;
	bool lock_held;
	struct json *state;
	struct ckpt_report report;
};

/* ---- Finding ---- */

static int
open_path(struct source *s, const char *path, const struct stat *st, struct err *e)
{
	const char *slash = strrchr(path, '/');

	if (S_ISDIR(st->st_mode))
		s->directory = strdup(path);
	else {
		s->directory = slash == NULL ? strdup(".") : slash == path ? strdup("/") :
		    strndup(path, (size_t)(slash - path));
		s->file = strdup(slash == NULL ? path : slash + 1);
		s->base_name = s->file;
	}
	if (s->directory == NULL || (s->base_name == NULL && !S_ISDIR(st->st_mode)))
		return err_nomem(e);
	s->fd = fs_open_shared_dir(s->directory, e);
	return s->fd >= 0 ? 0 : -1;
}

static int
find_lock(struct source *s, struct err *e)
{
	struct stat st;

	/* A copy has no lock and no worker, also one that lies beside the run's own pair. */
	if (s->base_name != NULL && strcmp(s->base_name, CKPT_BASE) != 0)
		return 0;
	if (fstatat(s->fd, RUN_LOCK, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? 0 : err_sys(e, ERR_IO, errno, "%s", RUN_LOCK);
	return run_lock_held(s->fd, &s->lock_held, e);
}

/* An operand with a slash, or one that names something here, is a path. */
static int
source_open(struct cli *c, const char *name, struct source *s, struct err *e)
{
	struct stat st;
	int result;

	*s = (struct source){.fd = -1};
	if (strchr(name, '/') != NULL || stat(name, &st) == 0) {
		if (stat(name, &st) != 0)
			return err_sys(e, ERR_NOTFOUND, errno, "%s", name);
		result = open_path(s, name, &st, e);
	} else {
		result = target_of(c, name, false, &s->target, e);
		if (result != 0)
			return -1;
		s->is_run = true;
		s->fd = rundir_open(&s->target.home, s->target.session.run_id, e);
		result = s->fd < 0 ? -1 : 0;
	}
	return result == 0 ? find_lock(s, e) : -1;
}

static void
source_close(struct source *s)
{
	json_unref(s->state);
	if (s->is_run)
		target_close(&s->target);
	if (s->fd >= 0)
		close(s->fd);
	free(s->directory);
	free(s->file);
	*s = (struct source){.fd = -1};
}

/* There is none. Where operations were started there was one, and that is the answer a resume gives. */
static int
tell_missing(struct source *s, struct err *e)
{
	const struct session *run = s->is_run ? &s->target.session : NULL;

	if (s->base_name == NULL)
		(void)seek_refuse_lost(s->fd, run != NULL && run->started_at > 0, &s->report, e);
	if (e->code == ERR_CHECKPOINT)
		return run != NULL ? err_hint(e, "flowsup logs %s   # what its operations wrote", run->run_id)
				   : -1;
	return err_set(e, ERR_NOTFOUND, "there is no checkpoint%s", run == NULL ? " here" :
	    status_is_terminal(run->status) ? ": the run started no operation" :
	    ": the run started no operation yet");
}

/* 0, or -1; refused with ERR_CHECKPOINT, and then the report is good. */
static int
source_load(struct source *s, struct err *e)
{
	const struct ckpt_load_options o = {.lock_held = s->lock_held, .base_name = s->base_name};

	if (ckpt_load(s->fd, &o, &s->state, &s->report, e) == 0)
		return 0;
	return e->code == ERR_NOTFOUND ? tell_missing(s, e) : -1;
}

/* What is not clean is said before anything is done with it. */
static void
note_report(const struct source *s)
{
	struct buf line = {0};

	if (s->report.status == CKPT_CLEAN)
		return;
	ckpt_report_line(&s->report, &line);
	cli_note("%s", buf_text(&line));
	buf_clear(&line);
}

/* The whole way from the operand to a state. */
static int
source_take(struct cli *c, struct source *s, struct err *e)
{
	if (source_open(c, c->operands[0], s, e) == 0 && source_load(s, e) == 0) {
		note_report(s);
		return 0;
	}
	if (e->code == ERR_CHECKPOINT && s->report.reason[0] != '\0')
		note_report(s);
	/* A program that asked for JSON finds the reason in the same structure. */
	if (e->code == ERR_CHECKPOINT && c->json)
		out_json(c->out, json_set(json_object(), "checkpoint_recovery",
		    ckpt_report_json(&s->report)));
	source_close(s);
	return -1;
}

static int
exit_of(const struct ckpt_report *r)
{
	return r->status == CKPT_RECOVERED_PREFIX ? EXIT_RECOVERED : 0;
}

/* ---- Comparing with what was recorded ---- */

struct digests {
	uint64_t right, unrecorded;
	struct json *absent, *wrong; /* names */
};

struct verification {
	const struct source *s;
	/* The run's own directory, where what is absent is lost; else a copy, which leaves out all but the
	 * checkpoint. */
	bool whole;
	struct flow *flow; /* with what was added; NULL when the checkpoint makes none */
	struct json *problems; /* [{"check","op","message"}]: what no resume could go on from */
	struct evidence_root root;
	struct digests results, files, outputs, artifacts;
};

static void
count(struct digests *d, enum evidence found, const char *name, const char *path)
{
	struct json **list = found == EVIDENCE_ABSENT ? &d->absent : &d->wrong;

	d->right += found == EVIDENCE_RIGHT;
	d->unrecorded += found == EVIDENCE_UNRECORDED;
	if (found == EVIDENCE_ABSENT || found == EVIDENCE_WRONG)
		*list = json_append(*list, path != NULL ? json_printf("%s: %s", name, path) : json_cstr(name));
}

static int
check_file(struct verification *v, struct digests *d, const struct json *recorded, const char *name,
    struct err *e)
{
	enum evidence found;
	struct buf why = {0};
	int rc = evidence_of_file(v->s->fd, recorded, &found, &why, e);

	if (rc == 0)
		count(d, found, name, json_cstr_of(json_get(recorded, "file")));
	buf_clear(&why);
	return rc;
}

/* Where a response may not say its output byte for byte, the output has a digest of its own. */
static int
check_output(struct verification *v, const struct json *entry, const char *name, const char *op,
    struct err *e)
{
	const struct json *output = json_get(entry, CKPT_OUTPUT);
	size_t i = v->flow != NULL && op != NULL ? flow_find(v->flow, op) : SIZE_MAX;

	if (json_type(output) == JSON_OBJECT)
		return check_file(v, &v->outputs, output, name, e);
	if (i != SIZE_MAX && resume_output_unknown(&v->flow->ops[i], entry))
		count(&v->outputs, EVIDENCE_UNRECORDED, name, NULL);
	return 0;
}

struct artifacts {
	struct verification *v;
	const struct json *entry;
	const char *op, *name;
	struct err *e;
};

static int
check_artifact(void *arg, const char *path)
{
	const struct artifacts *a = arg;
	enum evidence found = EVIDENCE_WRONG;
	struct buf why = {0};
	int rc = 0;

	if (path != NULL)
		rc = evidence_of_artifact(&a->v->root, a->op, path, a->entry, &found, &why, a->e);
	if (rc == 0)
		count(&a->v->artifacts, found, a->name, path);
	buf_clear(&why);
	return rc;
}

static int
check_artifacts(struct verification *v, const struct json *contract, const struct json *entry,
    const char *name, const char *op, struct err *e)
{
	struct artifacts a = {v, entry, op, name, e};

	if (op == NULL || !slice_is(json_text(json_get(entry, "status")), "completed"))
		return 0;
	return evidence_each_artifact(contract, entry, check_artifact, &a);
}

/* It has no outcome yet, so nothing of one is recorded. */
static bool
is_pending(const struct json *entry)
{
	return slice_is(json_text(json_get(entry, "status")), "pending");
}

static int
check_entry(struct verification *v, const struct json *entry, bool spawned, struct err *e)
{
	const char *name = json_cstr_of(json_get(entry, spawned ? "node_id" : "agent_id"));
	const char *op = json_cstr_of(json_get(entry, spawned ? "spawn_id" : "agent_id"));
	enum evidence found;

	if (is_pending(entry))
		return 0;
	if (name == NULL)
		name = "(a name that is no plain text)";
	if (evidence_of_response(entry, &found, e) != 0)
		return -1;
	count(&v->results, found, name, NULL);
	if (ckpt_is_file(entry) && check_file(v, &v->files, json_get(entry, "response"), name, e) != 0)
		return -1;
	if (check_output(v, entry, name, op, e) != 0)
		return -1;
	return spawned ? check_artifacts(v, json_get(entry, "artifacts_expected"), entry, name, op, e) : 0;
}

static int
check_entries(struct verification *v, const struct json *entries, bool spawned, struct err *e)
{
	struct json_iter it = json_iterate(entries);
	const struct json *entry;

	while (json_next(&it, NULL, &entry))
		if (check_entry(v, entry, spawned, e) != 0)
			return -1;
	return 0;
}

/* Of what was planned the plan has the contract. */
static int
check_planned_artifacts(struct verification *v, struct err *e)
{
	const struct json *ops = json_get(v->s->state, "ops"), *planned;
	struct json_iter it = json_iterate(json_get(v->s->state, "plan"));

	while (json_next(&it, NULL, &planned)) {
		const char *op = json_cstr_of(json_get(planned, "agent_id"));

		if (op != NULL && check_artifacts(v, json_get(planned, "artifacts"), json_get(ops, op), op, op,
		    e) != 0)
			return -1;
	}
	return 0;
}

static void
open_root(struct verification *v)
{
	const char *root = json_cstr_of(json_get(json_get(v->s->state, "config"), "artifact_root"));

	v->root.fd = openat(v->s->fd, root != NULL ? root : RUN_ARTIFACTS,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	v->root.absent = v->root.fd < 0 && errno == ENOENT;
}

static void
note_problem(void *arg, int check, const char *op, const char *text)
{
	struct verification *v = arg;
	struct json *one = json_set(json_object(), "check", json_int(check));

	one = json_set(one, "op", op != NULL ? json_cstr(op) : json_null());
	v->problems = json_append(v->problems, json_set(one, "message", json_string_lossy(slice_of(text), NULL)));
}

/* Without links, for its parts are compared. */
static char *
source_path(const struct source *s, struct err *e)
{
	char *path = NULL;

	if (!s->is_run)
		path = realpath(s->directory, NULL);
	else if (asprintf(&path, "%s/" HOME_RUNS "/%s", s->target.home.path, s->target.session.run_id) < 0)
		path = NULL;
	if (path == NULL && s->is_run)
		err_nomem(e);
	else if (path == NULL)
		err_sys(e, errno == ENOMEM ? ERR_NOMEM : ERR_IO, errno, "'%s'", s->directory);
	return path;
}

/* Files of runs count as where these are now, as they do for a resume. */
static int
follow_move(struct source *s, struct err *e)
{
	char *path = source_path(s, e);
	struct launch_read l;
	bool has_launch = launch_read(s->fd, &l, NULL) == 0;

	if (path != NULL)
		s->state = rundir_follow_move(s->state, path, has_launch ? json_cstr_of(json_get(l.object, "run_id")) : NULL,
		    s->is_run ? &s->target.home : NULL, e);
	if (has_launch)
		launch_read_clear(&l);
	free(path);
	return path != NULL && s->state != NULL ? 0 : -1;
}

static int
check_all(struct verification *v, struct err *e)
{
	const struct digests *all[] = {&v->results, &v->files, &v->outputs, &v->artifacts};
	int result = seek_judge(v->s->state, v->s->report.format, note_problem, v, &v->flow, e);
	size_t i;

	v->whole = v->s->is_run || faccessat(v->s->fd, RUN_LAUNCH, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	open_root(v);
	if (result == 0)
		result = check_entries(v, json_get(v->s->state, "ops"), false, e);
	if (result == 0)
		result = check_planned_artifacts(v, e);
	if (result == 0)
		result = check_entries(v, json_get(v->s->state, "spawned"), true, e);
	for (i = 0; result == 0 && i < 4; i++)
		if (v->problems == NULL || all[i]->absent == NULL || all[i]->wrong == NULL)
			result = err_nomem(e);
	fd_close(&v->root.fd);
	return result;
}

static void
digests_init(struct digests *d)
{
	*d = (struct digests){.absent = json_array(), .wrong = json_array()};
}

static void
digests_clear(struct digests *d)
{
	json_unref(d->absent);
	json_unref(d->wrong);
}

static void
verification_init(struct verification *v, const struct source *s)
{
	*v = (struct verification){.s = s, .problems = json_array(), .root = {.fd = -1}};
	digests_init(&v->results);
	digests_init(&v->files);
	digests_init(&v->outputs);
	digests_init(&v->artifacts);
}

static void
verification_clear(struct verification *v)
{
	digests_clear(&v->results);
	digests_clear(&v->files);
	digests_clear(&v->outputs);
	digests_clear(&v->artifacts);
	json_unref(v->problems);
	flow_free(v->flow);
}

/* ---- verify ---- */

static struct json *
digests_json(const struct digests *d)
{
	struct json *o = json_set(json_object(), "right", json_uint(d->right));

	o = json_set(o, "not_recorded", json_uint(d->unrecorded));
	o = json_set(o, "absent", json_ref(d->absent));
	return json_set(o, "wrong", json_ref(d->wrong));
}

static void
print_bad(struct output *out, const char *what, const char *word, const struct json *names)
{
	struct json_iter it = json_iterate(names);
	const struct json *name;

	while (json_next(&it, NULL, &name)) {
		out_printf(out, "  %s%-18s %s%s  ", out_style(out, OUT_BAD), what, word,
		    out_style(out, OUT_PLAIN));
		out_text(out, json_text(name), false);
		out_puts(out, "\n");
	}
}

static void
print_digests(struct output *out, bool whole, const char *what, const struct digests *d)
{
	if (d->right + d->unrecorded + json_length(d->absent) + json_length(d->wrong) == 0)
		return;
	out_printf(out, "  %-18s %" PRIu64 " right", what, d->right);
	if (d->unrecorded > 0)
		out_printf(out, ", %" PRIu64 " not recorded, so not verified", d->unrecorded);
	if (json_length(d->absent) > 0 && !whole)
		out_printf(out, ", %zu not in this copy, so not verified", json_length(d->absent));
	out_puts(out, "\n");
	print_bad(out, what, "WRONG", d->wrong);
	if (whole)
		print_bad(out, what, "MISSING", d->absent);
}

static void
print_problems(struct output *out, const struct json *problems)
{
	struct json_iter it = json_iterate(problems);
	const struct json *one;

	while (json_next(&it, NULL, &one)) {
		out_printf(out, "  %sstructure          WRONG%s  ", out_style(out, OUT_BAD),
		    out_style(out, OUT_PLAIN));
		if (json_type(json_get(one, "op")) == JSON_STRING) {
			out_text(out, json_text(json_get(one, "op")), false);
			out_puts(out, ": ");
		}
		out_text(out, json_text(json_get(one, "message")), false);
		out_puts(out, "\n");
	}
}

static void
print_report(struct output *out, const struct ckpt_report *r, enum ckpt_status verdict)
{
	out_printf(out, "%s: version %d", ckpt_status_name(verdict), r->format);
	if (r->generation[0] != '\0')
		out_printf(out, ", generation %s", r->generation);
	out_printf(out, ", base of %" PRId64 " bytes", r->base_bytes);
	if (r->journal_bytes >= 0)
		out_printf(out, ", journal of %" PRId64 " bytes", r->journal_bytes);
	out_puts(out, "\n");
}

/* What is wrong, and what is missing where nothing may be. */
static void
count_bad(const struct verification *v, size_t *wrong, size_t *missing)
{
	const struct digests *all[] = {&v->results, &v->files, &v->outputs, &v->artifacts};
	size_t i;

	*wrong = *missing = 0;
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		*wrong += json_length(all[i]->wrong);
		*missing += v->whole ? json_length(all[i]->absent) : 0;
	}
}

static enum ckpt_status
verdict(const struct verification *v)
{
	size_t wrong, missing;

	count_bad(v, &wrong, &missing);
	return wrong + missing + json_length(v->problems) > 0 ? CKPT_REFUSED : v->s->report.status;
}

enum { VERIFIED_INDENT = 21 };

static void
print_verification(struct output *out, const struct verification *v)
{
	const struct ckpt_report *r = &v->s->report;
	size_t from = out->pending.len;

	print_report(out, r, verdict(v));
	out_wrap(out, from, 2);
	from = out->pending.len;
	out_printf(out, "  %-18s base", "structure");
	if (r->records_applied >= 0)
		out_printf(out, " and %" PRId64 " record%s", r->records_applied,
		    r->records_applied == 1 ? "" : "s");
	out_puts(out, "\n");
	print_problems(out, v->problems);
	print_digests(out, v->whole, "result digests", &v->results);
	print_digests(out, v->whole, "response files", &v->files);
	print_digests(out, v->whole, "outputs", &v->outputs);
	print_digests(out, v->whole, "artifacts", &v->artifacts);
	out_puts(out, "  not covered        plan, prompt and values of the context, and flow.json: the format "
		      "has no digest of them, and resume takes them as recorded\n");
	out_wrap(out, from, out_go_on(out, VERIFIED_INDENT));
}

/* Of one that the loader refuses nothing was looked at. */
static struct json *
refusal_json(const struct ckpt_report *r)
{
	struct json *o = json_set(json_object(), "checkpoint_recovery", ckpt_report_json(r));

	o = json_set(o, "verdict", json_cstr(ckpt_status_name(CKPT_REFUSED)));
	o = json_set(o, "problems", json_array());
	o = json_set(o, "result_digests", json_null());
	o = json_set(o, "response_files", json_null());
	o = json_set(o, "outputs", json_null());
	return json_set(o, "artifacts", json_null());
}

static struct json *
verification_json(const struct verification *v)
{
	struct json *o = json_set(json_object(), "checkpoint_recovery", ckpt_report_json(&v->s->report));

	o = json_set(o, "verdict", json_cstr(ckpt_status_name(verdict(v))));
	o = json_set(o, "problems", json_ref(v->problems));
	o = json_set(o, "result_digests", digests_json(&v->results));
	o = json_set(o, "response_files", digests_json(&v->files));
	o = json_set(o, "outputs", digests_json(&v->outputs));
	return json_set(o, "artifacts", digests_json(&v->artifacts));
}

static void
add_count(struct buf *to, size_t n, const char *one, const char *several)
{
	if (n > 0)
		buf_printf(to, "%s%zu %s", to->len > 0 ? ", " : "", n, n == 1 ? one : several);
}

static int
report_verification(struct cli *c, const struct verification *v, struct err *e)
{
	size_t wrong, missing;
	struct buf text = {0};

	if (c->json)
		out_json(c->out, verification_json(v));
	else
		print_verification(c->out, v);
	out_flush(c->out);
	if (verdict(v) != CKPT_REFUSED)
		return exit_of(&v->s->report);
	count_bad(v, &wrong, &missing);
	add_count(&text, json_length(v->problems), "thing recorded does not fit the others",
	    "things recorded do not fit the others");
	add_count(&text, wrong, "digest does not fit what is stored", "digests do not fit what is stored");
	add_count(&text, missing, "file is missing", "files are missing");
	err_set(e, ERR_CHECKPOINT, "%s", buf_text(&text));
	buf_clear(&text);
	return -1;
}

static int
run_verify(struct cli *c, struct err *e)
{
	struct verification v;
	struct source s;
	int result = -1;

	if (source_open(c, c->operands[0], &s, e) != 0)
		goto out;
	if (source_load(&s, e) != 0) {
		if (e->code == ERR_CHECKPOINT && c->json)
			out_json(c->out, refusal_json(&s.report));
		else if (e->code == ERR_CHECKPOINT)
			note_report(&s);
		goto out;
	}
	note_report(&s);
	verification_init(&v, &s);
	if (follow_move(&s, e) == 0 && check_all(&v, e) == 0)
		result = report_verification(c, &v, e);
	verification_clear(&v);
out:
	source_close(&s);
	return result;
}

/* ---- show ---- */

static struct json *
entry_summary(const struct json *entry, bool spawned)
{
	static const char *const copied[] = {"status", "attempts", "started_at", "ended_at",
	    "result_digest", "artifacts", "parent_id", "assignee", "operation", NULL};
	const char *const *name;
	const struct json *value;
	struct json *o = json_object();

	o = json_set(o, "id", json_ref(json_get(entry, spawned ? "node_id" : "agent_id")));
	o = json_set(o, "kind", json_cstr(spawned ? "spawned" : "op"));
	for (name = copied; *name != NULL; name++)
		if ((value = json_get(entry, *name)) != NULL)
			o = json_set(o, *name, json_ref(value));
	return json_set(o, "response_bytes", is_pending(entry) ? json_null()
	    : json_uint(json_encoded_length(json_get(entry, "response"))));
}

static struct json *
summaries(const struct json *state)
{
	static const char *const members[] = {"ops", "spawned"};
	struct json *all = json_array();
	const struct json *entry;
	struct json_iter it;
	int i;

	for (i = 0; i < 2; i++) {
		it = json_iterate(json_get(state, members[i]));
		while (json_next(&it, NULL, &entry))
			all = json_append(all, entry_summary(entry, i == 1));
	}
	return all;
}

static void
print_summaries(struct output *out, const struct json *all)
{
	static const struct column columns[] = {
		{.title = "OUTCOME", .least = 12}, {.title = "KIND", .drop = 2}, {.title = "STATUS"},
		{.title = "ATTEMPTS", .right = true, .drop = 1}, {.title = "RESPONSE", .right = true},
	};
	struct table *t = table_new(columns, sizeof(columns) / sizeof(columns[0]));
	struct json_iter it = json_iterate(all);
	char size[DURATION_TEXT];
	const struct json *o;
	int64_t attempts;
	uint64_t bytes;

	while (json_next(&it, NULL, &o)) {
		const char *id = json_cstr_of(json_get(o, "id"));
		const char *status = json_cstr_of(json_get(o, "status"));

		table_text(t, OUT_PLAIN, id != NULL ? id : "?");
		table_text(t, OUT_PLAIN, json_cstr_of(json_get(o, "kind")));
		table_text(t, strcmp(status, "completed") == 0 ? OUT_GOOD : OUT_WARN, status);
		if (json_int64(json_get(o, "attempts"), &attempts))
			table_printf(t, OUT_PLAIN, "%" PRId64, attempts);
		else
			table_text(t, OUT_PLAIN, "");
		table_text(t, OUT_PLAIN, json_uint64(json_get(o, "response_bytes"), &bytes)
		    ? size_format(bytes, size) : "-");
	}
	table_print(t, out, "");
}

static void
print_state(struct cli *c, const struct source *s, const struct json *all)
{
	size_t from = c->out->pending.len;

	print_report(c->out, &s->report, s->report.status);
	out_printf(c->out, "%zu of %zu planned operations have an outcome, %zu spawned entries, "
	    "%zu members of context\n\n", json_length(json_get(s->state, "ops")),
	    json_length(json_get(s->state, "plan")), json_length(json_get(s->state, "spawned")),
	    json_length(json_get(s->state, "flow_context")));
	out_wrap(c->out, from, 2);
	print_summaries(c->out, all);
}

static int
run_show(struct cli *c, struct err *e)
{
	struct json *all, *o;
	struct source s;
	int result;

	if (source_take(c, &s, e) != 0)
		return -1;
	all = summaries(s.state);
	result = all != NULL ? exit_of(&s.report) : err_nomem(e);
	if (all != NULL && c->json) {
		o = json_set(json_object(), "checkpoint_recovery", ckpt_report_json(&s.report));
		o = json_set(o, "planned", json_uint(json_length(json_get(s.state, "plan"))));
		o = json_set(o, "context_members",
		    json_uint(json_length(json_get(s.state, "flow_context"))));
		out_json(c->out, json_set(o, "outcomes", json_ref(all)));
	} else if (all != NULL)
		print_state(c, &s, all);
	json_unref(all);
	source_close(&s);
	return result;
}

/* ---- export and migrate ---- */

static int
write_into(const char *path, int version, const struct json *state, struct err *e)
{
	bool made = mkdir(path, 0700) == 0;
	int fd, result;

	if (!made && errno != EEXIST)
		return err_sys(e, ERR_CREATE, errno, "cannot make '%s'", path);
	/* One that every command would refuse gets nothing. */
	fd = fs_open_shared_dir(path, e);
	if (fd < 0) {
		if (e->code == ERR_NOTFOUND)
			e->code = ERR_CREATE;
		return -1;
	}
	result = ckpt_write_new(NULL, fd, CKPT_BASE, version, state, e);
	close(fd);
	if (result != 0 && made)
		rmdir(path);
	return result == 0 ? 0 : err_wrap(e, "%s", path);
}

/* With an empty journal beside it that is a checkpoint: an older file, which has no generation, gets one. */
static int
print_base_form(struct cli *c, const struct source *s, struct err *e)
{
	struct json *o = json_object(), *copy;
	char made[UUID_TEXT];
	struct json_iter it;
	const struct json *value;
	struct slice name;

	_Static_assert(sizeof(made) == sizeof(s->report.generation), "a generation is as long as such an id");
	if (s->report.generation[0] == '\0' && uuid_make(made, e) != 0) {
		json_unref(o);
		return -1;
	}
	copy = json_ref(s->state);
	it = json_iterate(copy);
	o = json_set(o, "version", json_int(3));
	o = json_set(o, "generation", json_cstr(s->report.generation[0] != '\0' ? s->report.generation : made));
	o = json_set(o, "journal_seq", json_int(0));
	while (json_next(&it, &name, &value))
		o = json_setn(o, name, json_ref(value));
	json_unref(copy);
	out_json(c->out, o);
	return exit_of(&s->report);
}

static int
to_version_3(struct source *s, struct err *e)
{
	s->state = ckpt_migrate(s->state, s->report.format, e);
	return s->state != NULL ? 0 : -1;
}

/* What stands in the directory stays as it is: the first name of that kind that is free. */
static void
hint_at_another(const struct cli *c, struct err *e)
{
	enum { TRIES = 100 };
	const char *directory = c->operands[1];
	struct buf other = {0};
	struct stat st;
	int n = 2;

	do {
		buf_reset(&other);
		buf_printf(&other, "%s-%d", directory, n);
	} while (!other.failed && n++ < TRIES && lstat(buf_text(&other), &st) == 0);
	if (!other.failed)
		cli_hint_instead(c->argv, directory, strlen(directory), buf_text(&other), e);
	buf_clear(&other);
}

static int
run_export(struct cli *c, struct err *e)
{
	const int version = (int)cli_int(c, "checkpoint-format", 3);
	struct source s;
	int result;

	if (!c->json && c->noperands < 2) {
		err_set(e, ERR_USAGE, "checkpoint export: a directory to write to is missing, or --json");
		return cli_hint_with(c->argv, "./copy", e);
	}
	if (source_take(c, &s, e) != 0)
		return -1;
	result = to_version_3(&s, e);
	if (result == 0 && c->noperands == 2) {
		result = write_into(c->operands[1], version, s.state, e);
		if (result != 0 && e->sys == EEXIST)
			hint_at_another(c, e);
	}
	if (result == 0)
		result = c->json ? print_base_form(c, &s, e) : exit_of(&s.report);
	if (result >= 0 && !c->json) {
		out_text(c->out, slice_of(c->operands[1]), false);
		out_puts(c->out, "/" CKPT_BASE "\n");
	}
	source_close(&s);
	return result;
}

static int
run_migrate(struct cli *c, struct err *e)
{
	struct source s;
	int result;

	if (source_take(c, &s, e) != 0)
		return -1;
	if (s.report.format == 3)
		result = err_set(e, ERR_REFUSED, "it is of version 3 already");
	else
		result = to_version_3(&s, e);
	if (result == 0)
		result = write_into(c->operands[1], 3, s.state, e);
	if (result == 0) {
		if (c->json)
			out_json(c->out, json_set(json_object(), "checkpoint_recovery",
			    ckpt_report_json(&s.report)));
		else {
			out_text(c->out, slice_of(c->operands[1]), false);
			out_puts(c->out, "/" CKPT_BASE "\n");
		}
		result = exit_of(&s.report);
	}
	source_close(&s);
	return result;
}

/* ---- compact ---- */

/* Whoever holds the lock knows that no worker writes; a copy elsewhere has none. */
static int
take_lock(const struct source *s, int *lock_fd, struct err *e)
{
	bool lives = s->is_run && !status_is_terminal(s->target.session.status);
	struct stat st;

	*lock_fd = -1;
	if (fstatat(s->fd, RUN_LOCK, &st, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
		return 0;
	*lock_fd = run_lock_take(s->fd, lives ? 0 : RUN_LOCK_OVER_MS, e);
	if (*lock_fd >= 0)
		return 0;
	if (e->code == ERR_BUSY) {
		err_set(e, ERR_RUNNING, "the run is alive: its worker compacts by itself");
		if (s->is_run)
			err_hint(e, "flowsup wait %s", s->target.session.run_id);
	}
	return -1;
}

/* What the base holds can be had without anything being destroyed. */
static void
hint_to_export(const char *operand, struct err *e)
{
	char word[SHELL_WORD_TEXT];

	err_hint(e, "flowsup checkpoint export %s ./base   # the base alone", shell_word(word, operand));
}

static int
run_compact(struct cli *c, struct err *e)
{
	struct ckpt_options o = {.version = 3, .runs_fd = -1, .run_id = "",
	    .compact_records = CKPT_COMPACT_RECORDS, .compact_bytes = CKPT_COMPACT_BYTES,
	    .first_sequence = 1};
	struct source s;
	int lock = -1, result;

	result = source_open(c, c->operands[0], &s, e);
	if (result == 0 && s.base_name != NULL && strcmp(s.base_name, CKPT_BASE) != 0)
		result = err_set(e, ERR_REFUSED, "only a pair named %s can be compacted", CKPT_BASE);
	if (result == 0)
		result = take_lock(&s, &lock, e);
	if (result == 0) {
		o.run_fd = s.fd;
		o.sweep = lock >= 0;
		if (s.is_run) {
			o.runs_fd = s.target.home.runs_fd;
			o.run_id = s.target.session.run_id;
		}
		result = ckpt_compact(&o, &s.report, e);
		if (result != 0 && e->code == ERR_NOTFOUND)
			tell_missing(&s, e);
		if (result == 0 || e->code == ERR_CHECKPOINT || s.report.status == CKPT_RECOVERED_PREFIX)
			note_report(&s);
		if (result != 0 && e->code == ERR_REFUSED && s.report.stale_records > 0)
			hint_to_export(c->operands[0], e);
	}
	if (result == 0) {
		result = exit_of(&s.report);
		if (c->json)
			out_json(c->out, json_set(json_object(), "checkpoint_recovery",
			    ckpt_report_json(&s.report)));
	}
	if (lock >= 0)
		close(lock);
	source_close(&s);
	return result;
}

/* ---- The commands ---- */

static const char *const show_examples[] = {
    "flowsup checkpoint show @last     # outcomes, without their contents",
    "flowsup checkpoint show ./copy --json", NULL};

const struct command cmd_checkpoint_show = {
    .name = "checkpoint show",
    .group = CLI_GROUP_FILES,
    .synopsis = "RUN|PATH",
    .summary = "show what a checkpoint holds",
    .examples = show_examples,
    .details = "Shows no prompt, response or context; export --json prints everything.",
    .min_operands = 1,
    .max_operands = 1,
    .operands = "run|file",
    .json = true,
    .run = run_show,
};

static const char *const verify_examples[] = {
    "flowsup checkpoint verify @last   # exit 0 clean, 6 recovered, 4 refused",
    "flowsup checkpoint verify ./copy --json", NULL};

const struct command cmd_checkpoint_verify = {
    .name = "checkpoint verify",
    .group = CLI_GROUP_FILES,
    .synopsis = "RUN|PATH",
    .summary = "judge a checkpoint as resume would; compare digests",
    .examples = verify_examples,
    .details = "Says what was verified and what cannot be. Exit 0: clean. 6: recovered without\n"
	       "a torn tail or stale records. 4: refused: it makes no run that could go on, a\n"
	       "digest is wrong, or a file is missing (a copy may lack them). 74: I/O error.",
    .min_operands = 1,
    .max_operands = 1,
    .operands = "run|file",
    .json = true,
    .run = run_verify,
};

static const char *const export_examples[] = {
    "flowsup checkpoint export @last ./copy   # also of a run that is alive",
    "flowsup checkpoint export @last --json   # the whole state on standard output",
    "flowsup checkpoint export @last ./old --checkpoint-format 2", NULL};

static const struct cli_option export_options[] = {
    {.name = "checkpoint-format", .kind = CLI_INT, .value = "VERSION",
	.help = "3 (default), or 2 for older readers", .least = 2, .most = 3},
    CLI_END};

const struct command cmd_checkpoint_export = {
    .name = "checkpoint export",
    .group = CLI_GROUP_FILES,
    .synopsis = "RUN|PATH DIRECTORY [--checkpoint-format N]\nRUN|PATH --json",
    .summary = "take a coherent copy of a checkpoint",
    .examples = export_examples,
    .details = "The directory is made if missing; nothing in it is replaced. Outputs and\n"
	       "artifacts of operations are not copied.",
    .options = export_options,
    .min_operands = 1,
    .max_operands = 2,
    .operands = "run|file file",
    .json = true,
    .run = run_export,
};

static const char *const migrate_examples[] = {
    "flowsup checkpoint migrate old/checkpoint.json ./new", NULL};

const struct command cmd_checkpoint_migrate = {
    .name = "checkpoint migrate",
    .group = CLI_GROUP_FILES,
    .synopsis = "RUN|PATH DIRECTORY",
    .summary = "write an older checkpoint as version 3",
    .examples = migrate_examples,
    .details = "The source stays as it is. Members that only the older file knew are kept in\n"
	       "config.v2_members.",
    .min_operands = 2,
    .max_operands = 2,
    .operands = "run|file file",
    .json = true,
    .run = run_migrate,
};

static const char *const compact_examples[] = {
    "flowsup checkpoint compact @last             # one base, an empty journal", NULL};

const struct command cmd_checkpoint_compact = {
    .name = "checkpoint compact",
    .group = CLI_GROUP_FILES,
    .synopsis = "RUN|PATH",
    .summary = "fold the journal of a finished run into its base",
    .examples = compact_examples,
    .min_operands = 1,
    .max_operands = 1,
    .operands = "run|file",
    .json = true,
    .run = run_compact,
};
