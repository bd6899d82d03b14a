/* flowsup checkpoint: look at, copy, migrate and compact what a run has saved. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "output.h"
#include "saved.h"

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
	return json_set(o, "response_bytes", saved_is_pending(entry) ? json_null()
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
print_state(struct cli *c, const struct saved *s, const struct json *all)
{
	size_t from = c->out->pending.len, done = json_length(json_get(s->state, "ops")),
	    planned = json_length(json_get(s->state, "plan")), spawned = json_length(json_get(s->state, "spawned")),
	    members = json_length(json_get(s->state, "flow_context"));

	saved_print_report(c->out, &s->report, s->report.status);
	out_printf(c->out, "%zu of %zu planned operation%s %s an outcome, %zu spawned entr%s, %zu member%s of context\n\n",
	    done, planned, planned == 1 ? "" : "s", done == 1 ? "has" : "have", spawned, spawned == 1 ? "y" : "ies",
	    members, members == 1 ? "" : "s");
	out_wrap(c->out, from, 2);
	print_summaries(c->out, all);
}

static int
run_show(struct cli *c, struct err *e)
{
	struct json *all, *o;
	struct saved s;
	int result;

	if (saved_take(c, &s, e) != 0)
		return -1;
	all = summaries(s.state);
	result = all != NULL ? saved_exit(&s.report) : err_nomem(e);
	if (all != NULL && c->json) {
		o = json_set(json_object(), "checkpoint_recovery", ckpt_report_json(&s.report));
		o = json_set(o, "planned", json_uint(json_length(json_get(s.state, "plan"))));
		o = json_set(o, "context_members",
		    json_uint(json_length(json_get(s.state, "flow_context"))));
		out_json(c->out, json_set(o, "outcomes", json_ref(all)));
	} else if (all != NULL)
		print_state(c, &s, all);
	json_unref(all);
	saved_close(&s);
	return result;
}

/* ---- export and migrate ---- */

#define WRITTEN "written as it is"

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
		if (e->sys != 0)
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
print_base_form(struct cli *c, const struct saved *s, struct err *e)
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
	return 0;
}

static void
print_base_path(struct cli *c)
{
	out_text(c->out, slice_of(c->operands[1]), false);
	out_puts(c->out, "/" CKPT_BASE "\n");
}

/* What was found wrong in what was written is told behind it: a copy of what is there loses nothing. */
static int
exit_of_copy(int judged, const struct err *found, struct err *e)
{
	if (judged < 0)
		*e = *found;
	return judged;
}

static int
to_version_3(struct saved *s, struct err *e)
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
		cli_hint_instead(c, directory, strlen(directory), buf_text(&other), e);
	buf_clear(&other);
}

static int
run_export(struct cli *c, struct err *e)
{
	const int version = (int)cli_int(c, "checkpoint-format", 3);
	struct err found = {0};
	struct saved s;
	int judged, result;

	if (!c->json && c->noperands < 2) {
		err_set(e, ERR_USAGE, "checkpoint export: a directory to write to is missing, or --json");
		return cli_hint_with(c, "./copy", e);
	}
	if (saved_take(c, &s, e) != 0)
		return -1;
	judged = saved_judge(&s, c->operands[0], WRITTEN, &found);
	result = to_version_3(&s, e);
	if (result == 0 && c->noperands == 2) {
		result = write_into(c->operands[1], version, s.state, e);
		if (result != 0 && e->sys == EEXIST)
			hint_at_another(c, e);
	}
	if (result == 0 && c->json)
		result = print_base_form(c, &s, e);
	else if (result == 0)
		print_base_path(c);
	if (result == 0)
		result = exit_of_copy(judged, &found, e);
	saved_close(&s);
	return result;
}

static int
run_migrate(struct cli *c, struct err *e)
{
	struct err found = {0};
	struct saved s;
	int judged, result;

	if (saved_take(c, &s, e) != 0)
		return -1;
	judged = saved_judge(&s, c->operands[0], WRITTEN, &found);
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
		else
			print_base_path(c);
		result = exit_of_copy(judged, &found, e);
	}
	saved_close(&s);
	return result;
}

/* ---- compact ---- */

/* Whoever holds the lock knows that no worker writes; a copy elsewhere has none. */
static int
take_lock(const struct saved *s, int *lock_fd, struct err *e)
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

/* Nobody could tell afterwards which record brought what does not fit. One that the loader refuses is told by who
 * folds it. */
static int
judge_before(struct saved *s, const char *operand, struct err *e)
{
	struct err refused = {0};

	s->lock_held = false; /* it is ours */
	if (saved_load(s, &refused) != 0 || s->report.format != 3)
		return 0;
	return saved_judge(s, operand, "left as it was", e) < 0 ? -1 : 0;
}

static int
run_compact(struct cli *c, struct err *e)
{
	struct ckpt_options o = {.version = 3, .runs_fd = -1, .run_id = "",
	    .compact_records = CKPT_COMPACT_RECORDS, .compact_bytes = CKPT_COMPACT_BYTES,
	    .first_sequence = 1};
	struct saved s;
	int lock = -1, result;

	result = saved_open(c, c->operands[0], &s, e);
	if (result == 0 && s.base_name != NULL && strcmp(s.base_name, CKPT_BASE) != 0)
		result = err_set(e, ERR_REFUSED, "only a pair named %s can be compacted", CKPT_BASE);
	if (result == 0)
		result = take_lock(&s, &lock, e);
	if (result == 0 && (result = judge_before(&s, c->operands[0], e)) == 0) {
		o.run_fd = s.fd;
		o.sweep = lock >= 0;
		if (s.is_run) {
			o.runs_fd = s.target.home.runs_fd;
			o.run_id = s.target.session.run_id;
		}
		result = ckpt_compact(&o, &s.report, e);
		if (result != 0 && e->code == ERR_NOTFOUND)
			saved_tell_missing(&s, e);
		/* Here somebody looks after it; a run waits until it may write again. */
		if (result != 0 && e->code == ERR_IO && (e->sys == EACCES || e->sys == EPERM || e->sys == EROFS))
			e->code = ERR_PERMISSION;
		if (result == 0 || e->code == ERR_CHECKPOINT || s.report.status == CKPT_RECOVERED_PREFIX)
			saved_note(&s);
		if (result != 0 && e->code == ERR_REFUSED && s.report.stale_records > 0)
			hint_to_export(c->operands[0], e);
	}
	if (result == 0) {
		result = saved_exit(&s.report);
		if (c->json)
			out_json(c->out, json_set(json_object(), "checkpoint_recovery",
			    ckpt_report_json(&s.report)));
	}
	if (lock >= 0)
		close(lock);
	saved_close(&s);
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
