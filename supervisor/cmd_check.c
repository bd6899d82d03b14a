/* flowsup check: says what is wrong in a document, or what would run. Executes nothing. */
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "flowsup/flow.h"
#include "flowsup/log.h"
#include "flowsup/provider.h"
#include "output.h"
#include "plan.h"
#include "problems.h"
#include "start.h"
#include "stdin.h"

enum { ID_LEAST = 10, TEXT_LEAST = 20, NEEDS_LEAST = 12, NEEDS_SHOWN = 8, SHOWN_MOST = 200 };

static const char *const examples[] = {
    "flowsup check nightly.yaml           # what is wrong, or what would run",
    "flowsup check nightly.yaml --json    # the same for programs",
    "generate | flowsup check -           # a document on standard input",
    NULL};

static const struct cli_option options[] = {
    {.name = "max-ops", .kind = CLI_INT, .value = "N", .help = "as `start --max-ops N` would see it",
	.least = 1, .most = FLOW_MAX_OPERATIONS},
    CLI_END};

/* ---- Reading ---- */

static int
read_flow(const struct cli *c, struct flow **out, struct flow_diagnostics *d, struct err *e)
{
	const char *path = c->operands[0];
	struct flow_overrides o = {.file = problems_file(path), .max_ops = cli_int(c, "max-ops", -1)};
	struct flow *f;

	stdin_expect_document(path);
	if (flow_read_file(path, &f, d, e) < 0)
		return -1;
	if (o.max_ops >= 0 && flow_override(f, &o, &f, e) < 0)
		return -1;
	if (flow_check(f, problems_file(path), d, e) < 0) {
		flow_free(f);
		return -1;
	}
	*out = f;
	return 0;
}

/* ---- What would run ---- */

static void
add_argument(struct buf *to, const char *argument)
{
	if (argument[0] != '\0' && strpbrk(argument, " \t\n\"'\\$`*?[]{}()<>|&;#~") == NULL)
		buf_puts(to, argument);
	else
		json_write_string(to, slice_of(argument));
}

/* Texts of documents have any length; one line of a terminal, or what a person reads of one, is shown. */
static void
add_shown(struct buf *to, const struct output *out, const char *text)
{
	int most = out->width > 0 && out->width < SHOWN_MOST ? out->width : SHOWN_MOST;
	struct buf clean = {0};

	text_neutralise(&clean, slice_of(text), false);
	text_fit(to, buf_view(&clean), most, out->unicode);
	to->failed = to->failed || clean.failed;
	buf_clear(&clean);
}

/* The first line of the text, or the words of an argv. */
static void
does(const struct flow_op *op, struct buf *to)
{
	const char *const *argument;
	size_t len;

	if (op->text != NULL) {
		len = strcspn(op->text, "\n");
		buf_add(to, op->text, len);
		if (op->text[len] != '\0' && op->text[len + 1] != '\0')
			buf_puts(to, " ...");
	}
	for (argument = op->argv; argument != NULL && *argument != NULL; argument++) {
		if (argument != op->argv)
			buf_putc(to, ' ');
		add_argument(to, *argument);
	}
	if (op->item != NULL)
		buf_printf(to, "  (item %.60s)", op->item);
}

static void
needs(const struct flow *f, const struct flow_op *op, struct buf *to)
{
	uint32_t i;

	for (i = 0; i < op->nneeds && i < NEEDS_SHOWN; i++)
		buf_printf(to, "%s%s", i > 0 ? ", " : "", f->ops[op->needs[i].op].id);
	if (op->nneeds > NEEDS_SHOWN)
		buf_printf(to, " and %u more", op->nneeds - NEEDS_SHOWN);
}

static int
print_plan(const struct flow *f, struct output *out, struct err *e)
{
	static const struct column columns[] = {
	    {.title = "OPERATION", .least = ID_LEAST, .id = true},
	    {.title = "DOES", .least = TEXT_LEAST},
	    {.title = "NEEDS", .least = NEEDS_LEAST, .drop = 1, .id = true},
	};
	struct table *t = table_new(columns, sizeof(columns) / sizeof(columns[0]));
	struct buf b = {0}, shown = {0};
	int r;
	size_t i;

	for (i = 0; i < f->nops; i++) {
		const struct flow_op *op = &f->ops[f->order[i]];

		table_text(t, OUT_PLAIN, op->id);
		buf_reset(&b);
		buf_reset(&shown);
		does(op, &b);
		add_shown(&shown, out, buf_text(&b));
		table_text(t, OUT_PLAIN, buf_text(&shown));
		buf_reset(&b);
		needs(f, op, &b);
		table_text(t, OUT_PLAIN, buf_text(&b));
	}
	r = buf_ok(&b, e) != 0 ? -1 : buf_ok(&shown, e);
	table_print(t, out, "");
	buf_clear(&shown);
	buf_clear(&b);
	return r;
}

static void
print_summary(const struct flow *f, const char *file, struct output *out)
{
	struct buf name = {0};
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned at_once = f->concurrency > 0 ? f->concurrency
	    : processors > 0		      ? (unsigned)processors
					      : 1;

	add_shown(&name, out, f->name != NULL ? f->name : file);
	out_bytes(out, buf_view(&name));
	buf_clear(&name);
	out_printf(out, ": %zu operation%s, at most %u at once\n", f->nops, f->nops == 1 ? "" : "s",
	    at_once);
	plan_tell_unplanned(f, out);
}

/* ---- The command ---- */

static int
tell_environment(struct cli *c, const struct flow *f, struct err *e)
{
	struct flow_diagnostics d = {0};
	int r;

	out_flush(c->out);
	r = start_check_environment(f, &d, e);
	problems_print(NULL, &d, true);
	if (r < 0)
		problems_refuse(c, NULL, &d);
	flow_diagnostics_clear(&d);
	return r;
}

static int
print_all(struct cli *c, const struct flow *f, const struct flow_diagnostics *d, struct err *e)
{
	const char *file = problems_file(c->operands[0]);

	problems_print(file, d, true);
	if (f == NULL)
		return problems_tell(c, file, d, "", e);
	print_summary(f, file, c->out);
	return print_plan(f, c->out, e) == 0 ? tell_environment(c, f, e) : -1;
}

static int
run(struct cli *c, struct err *e)
{
	struct flow_diagnostics d = {0};
	struct flow *f = NULL;
	int r = read_flow(c, &f, &d, e);

	if (!c->json) {
		r = print_all(c, f, &d, e);
	} else {
		if (r == 0 && (r = start_check_environment(f, &d, e)) < 0)
			problems_refuse(c, NULL, &d);
		else if (r < 0)
			problems_tell(c, problems_file(c->operands[0]), &d, "", e);
		if (r == 0 || d.count > 0)
			out_json(c->out, plan_document(f, c->operands[0], &d));
	}
	flow_free(f);
	flow_diagnostics_clear(&d);
	return r;
}

const struct command cmd_check = {
    .name = "check",
    .group = CLI_GROUP_FILES,
    .synopsis = "FILE|-",
    .summary = "say what is wrong in a flow document, or what would run",
    .examples = examples,
    .details = "Nothing is executed. Every problem is told with file, line and column. Exits 0\n"
	       "when the document could be started here, 2 when not, 78 when a program or a\n"
	       "variable is missing (a warning where what runs before may make it).\n"
	       "Keys: man 5 flowsup-flow.",
    .options = options,
    .min_operands = 1,
    .max_operands = 1,
    .operands = "file",
    .json = true,
    .run = run,
};
