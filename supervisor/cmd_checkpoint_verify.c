/* flowsup checkpoint verify: whether a resume could go on from it, and what was recorded of files and responses. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "evidence.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "output.h"
#include "resume.h"
#include "saved.h"
#include "seek.h"

/* ---- Comparing with what was recorded ---- */

struct digests {
	uint64_t right, unrecorded;
	struct json *absent, *wrong; /* names */
};

struct verification {
	const struct saved *s;
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

static int
check_entry(struct verification *v, const struct json *entry, bool spawned, struct err *e)
{
	const char *name = json_cstr_of(json_get(entry, spawned ? "node_id" : "agent_id"));
	const char *op = json_cstr_of(json_get(entry, spawned ? "spawn_id" : "agent_id"));
	enum evidence found;

	if (saved_is_pending(entry))
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
source_path(const struct saved *s, struct err *e)
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
follow_move(struct saved *s, struct err *e)
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
verification_init(struct verification *v, const struct saved *s)
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

	saved_print_report(out, r, verdict(v));
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

/* The exit status, or -1. */
static int
exit_by_verdict(const struct verification *v, struct err *e)
{
	size_t wrong, missing;
	struct buf text = {0};

	if (verdict(v) != CKPT_REFUSED)
		return saved_exit(&v->s->report);
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
report_verification(struct cli *c, const struct verification *v, struct err *e)
{
	if (c->json)
		out_json(c->out, verification_json(v));
	else
		print_verification(c->out, v);
	out_flush(c->out);
	return exit_by_verdict(v, e);
}

int
saved_judge(const struct saved *s, const char *operand, const char *became, struct err *e)
{
	struct saved own = *s; /* what is moved in it is for the comparison alone */
	char word[SHELL_WORD_TEXT];
	struct verification v;
	int result = -1;

	own.state = json_ref(s->state);
	verification_init(&v, &own);
	if (follow_move(&own, e) == 0 && check_all(&v, e) == 0)
		result = exit_by_verdict(&v, e);
	verification_clear(&v);
	json_unref(own.state);
	if (result < 0 && e->code == ERR_CHECKPOINT) {
		err_wrap(e, "%s", became);
		err_hint(e, "flowsup checkpoint verify %s   # names each", shell_word(word, operand));
	}
	return result;
}

static int
run_verify(struct cli *c, struct err *e)
{
	struct verification v;
	struct saved s;
	int result = -1;

	if (saved_open(c, c->operands[0], &s, e) != 0)
		goto out;
	if (saved_load(&s, e) != 0) {
		if (e->code == ERR_CHECKPOINT && c->json)
			out_json(c->out, refusal_json(&s.report));
		else if (e->code == ERR_CHECKPOINT)
			saved_note(&s);
		goto out;
	}
	saved_note(&s);
	verification_init(&v, &s);
	if (follow_move(&s, e) == 0 && check_all(&v, e) == 0)
		result = report_verification(c, &v, e);
	verification_clear(&v);
out:
	saved_close(&s);
	return result;
}

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
