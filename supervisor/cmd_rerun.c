/* rerun: a new run from the document of an earlier one, as it was recorded. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "seek.h"
#include "start.h"
#include "target.h"

static const char *const examples[] = {
    "flowsup rerun @last                    # once more; prints the new run's id",
    "flowsup rerun @last --arg since=2d     # with another argument",
    "flowsup rerun @last-failed --dry-run   # its plan; no side effect",
    NULL};

struct rerun {
	struct target t;
	char **texts; /* of options that were recorded */
	size_t ntexts;
	int run_fd;
	struct launch_read launch;
	struct flow *flow;
};

static int
read_run(struct rerun *r, struct err *e)
{
	const struct session *s = &r->t.session;
	struct json *document = NULL;
	int rc;

	r->run_fd = seek_rundir(&r->t.home, s, e);
	if (r->run_fd < 0)
		return -1;
	rc = launch_read(r->run_fd, &r->launch, e);
	if (rc == 0)
		rc = rundir_read_json(r->run_fd, RUN_FLOW, &document, e);
	if (rc == 0 && (rc = flow_from_document(document, &r->flow, e)) != 0)
		err_wrap(e, "'%s'", RUN_FLOW);
	json_unref(document);
	return rc == 0 ? 0 : seek_damaged(s, e);
}

/* ---- What was asked for then, as if it had been given now ---- */

static int
prepend(struct cli *c, struct rerun *r, const char *option, struct buf *text, struct err *e)
{
	char **grown = reallocarray(r->texts, r->ntexts + 1, sizeof(*grown));

	if (grown != NULL)
		r->texts = grown;
	if (grown == NULL || buf_ok(text, e) != 0) {
		buf_clear(text);
		return err_nomem(e);
	}
	r->texts[r->ntexts] = buf_steal(text);
	return cli_prepend(c, option, r->texts[r->ntexts++], e);
}

static int
prepend_pairs(struct cli *c, struct rerun *r, const char *option, const struct json *values,
    struct err *e)
{
	struct json_iter it = json_iterate(values);
	const struct json *value;
	struct slice name;

	while (json_next(&it, &name, &value)) {
		struct buf text = {0};

		buf_printf(&text, "%.*s=", (int)name.len, name.data);
		if (json_type(value) == JSON_STRING)
			buf_add(&text, json_text(value).data, json_text(value).len);
		else
			json_write(&text, value);
		if (prepend(c, r, option, &text, e) != 0)
			return -1;
	}
	return 0;
}

static int
prepend_text(struct cli *c, struct rerun *r, const char *option, const char *value, struct err *e)
{
	struct buf text = {0};

	if (value == NULL || value[0] == '\0')
		return 0;
	buf_puts(&text, value);
	return prepend(c, r, option, &text, e);
}

static int
recall_options(struct cli *c, struct rerun *r, struct err *e)
{
	const struct session *s = &r->t.session;

	/* In the foreground it stands in no queue. */
	if (!cli_flag(c, "foreground") && prepend_text(c, r, "queue", s->queue, e) != 0)
		return -1;
	if (prepend_text(c, r, "unique", s->unique_key, e) != 0 ||
	    prepend_pairs(c, r, "label", s->labels, e) != 0)
		return -1;
	return prepend_pairs(c, r, "arg", r->flow->arguments, e);
}

/* ---- Doing it ---- */

/* Relative names in the document mean what they meant then. */
static int
go_there(const struct rerun *r, struct err *e)
{
	char word[SHELL_WORD_TEXT];

	if (chdir(r->launch.cwd) == 0)
		return 0;
	err_sys(e, ERR_ENVIRONMENT, errno, "run %s was started in '%s'", r->t.session.run_id,
	    r->launch.cwd);
	return err_hint(e, "mkdir -p %s", shell_word(word, r->launch.cwd));
}

static int
start_again(struct cli *c, struct rerun *r, struct err *e)
{
	struct flow_overrides o = {.name = NULL};
	const struct start_source from = {.document = r->launch.document, .options = r->launch.options,
	    .rerun_of = r->t.session.run_id, .digest = r->launch.document_digest};
	const char *named = getenv("FLOWSUP_HOME");

	/* From here on the directory is another one: what was named from the old one gets its absolute path. */
	if (c->home != NULL || (named != NULL && named[0] != '/'))
		c->home = r->t.home.path;
	if (go_there(r, e) != 0 || recall_options(c, r, e) != 0 || start_change(c, NULL, &o, &r->flow, e) != 0)
		return -1;
	return start_launch(c, r->flow, &from, e);
}

static int
run(struct cli *c, struct err *e)
{
	struct rerun r = {.run_fd = -1};
	int rc;

	if (target_open(c, &r.t, e) != 0)
		return -1;
	rc = target_find(&r.t, c->operands[0], e);
	if (rc == 0)
		rc = read_run(&r, e);
	if (rc == 0)
		rc = start_again(c, &r, e);
	flow_free(r.flow);
	while (r.ntexts > 0)
		free(r.texts[--r.ntexts]);
	free(r.texts);
	launch_read_clear(&r.launch);
	fd_close(&r.run_fd);
	target_close(&r.t);
	return rc;
}

const struct command cmd_rerun = {
    .name = "rerun",
    .group = CLI_GROUP_START,
    .synopsis = "[OPTION]... RUN",
    .summary = "start a new run from the document of an earlier one",
    .examples = examples,
    .details = "The document as it was recorded, with its arguments, items and options, in the\n"
	       "same directory; the environment is this one. Nothing is reused.",
    .options = start_options + START_OWN_OPTIONS,
    .min_operands = 1,
    .max_operands = 1,
    .operands = "run",
    .json = true,
    .run = run,
};
