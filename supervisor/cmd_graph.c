/* flowsup graph: draws a document's operations. Executes nothing. */
#include "cli.h"
#include "flowsup/flow.h"
#include "output.h"
#include "plan.h"
#include "problems.h"
#include "stdin.h"

static const char *const examples[] = {
    "flowsup graph nightly.yaml                              # for people",
    "flowsup graph nightly.yaml -f svg > flow.svg            # for a browser",
    "flowsup graph nightly.yaml -f dot | dot -Tpdf > f.pdf   # for Graphviz",
    "flowsup graph nightly.yaml -f mermaid                   # for Markdown",
    NULL};

static const struct cli_option options[] = {
    {.name = "format", .letter = 'f', .kind = CLI_CHOICE, .value = "text|dot|mermaid|svg",
	.help = "text (the default), dot, mermaid or svg"},
    CLI_END};

static int
run(struct cli *c, struct err *e)
{
	struct flow_diagnostics d = {0};
	int64_t format = cli_int(c, "format", FLOW_GRAPH_TEXT);
	struct flow *f;
	int r;

	stdin_expect_document(c->operands[0]);
	r = flow_read_file(c->operands[0], &f, &d, e);
	if (c->json && (r == 0 || d.count > 0))
		out_json(c->out, plan_document(r == 0 ? f : NULL, c->operands[0], &d));
	if (r < 0) {
		r = problems_tell(c, problems_file(c->operands[0]), &d, "", e);
	} else if (r == 0 && c->json) {
		flow_free(f);
	} else if (r == 0) {
		r = plan_draw(c->out, f, format, NULL, NULL, e);
		/* A picture for a program says nothing but what is known. */
		if (r == 0 && format == FLOW_GRAPH_TEXT)
			plan_tell_unplanned(f, c->out);
		flow_free(f);
	}
	flow_diagnostics_clear(&d);
	return r;
}

const struct command cmd_graph = {
    .name = "graph",
    .group = CLI_GROUP_FILES,
    .synopsis = "FILE|-",
    .summary = "draw the operations of a flow document",
    .examples = examples,
    .details = "As text one line is an operation (or all operations of one foreach), in levels:\n"
	       "what stands in one level can run at once. Behind it stands what it needs.",
    .options = options,
    .min_operands = 1,
    .max_operands = 1,
    .operands = "file",
    .json = true,
    .run = run,
};
