/*
 * Any bytes as a flow document, in YAML and (after a first byte 'j') in JSON. What is read must
 * make the same document again, draw, and turn into a checkpoint's plan and back.
 */
#include <stdlib.h>

#include "flowsup/flow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_OPERATIONS = 2000 };

static void
must(int result)
{
	if (result < 0)
		abort();
}

static void
draw(const struct flow *f)
{
	struct buf b = {0};

	flow_graph(f, FLOW_GRAPH_TEXT, NULL, NULL, &b);
	flow_graph(f, FLOW_GRAPH_DOT, NULL, NULL, &b);
	flow_graph(f, FLOW_GRAPH_MERMAID, NULL, NULL, &b);
	flow_graph(f, FLOW_GRAPH_SVG, NULL, NULL, &b);
	must(buf_ok(&b, NULL));
	buf_clear(&b);
}

static void
go_back(const struct flow *f)
{
	const char **ids = calloc(f->nops + 1, sizeof(*ids));
	struct flow *g;
	struct json *state;
	size_t i;

	if (ids == NULL)
		abort();
	for (i = 0; i < f->nops; i++)
		ids[i] = "00000000000000000000000000000000";
	must(flow_from_document(f->document, &g, NULL));
	if (g->nops != f->nops)
		abort();
	flow_free(g);
	state = json_set(json_set(json_object(), "plan", flow_plan(f, ids)), "config", flow_config(f));
	/* An empty list of a foreach makes a flow without operations, which no checkpoint has. */
	if (f->nops > 0) {
		must(flow_from_state(state, &g, NULL));
		if (g->nops != f->nops)
			abort();
		flow_free(g);
	}
	json_unref(state);
	free(ids);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct flow_source source = {"f", {(const char *)data, size}, false};
	struct flow_diagnostics d = {0};
	struct flow *f;

	if (size > 0 && data[0] == 'j') {
		source.text = (struct slice){(const char *)data + 1, size - 1};
		source.json = true;
	}
	if (flow_read(&source, &f, &d, NULL) == 0) {
		if (f->nops <= MOST_OPERATIONS) {
			draw(f);
			go_back(f);
		}
		(void)flow_check_size(f, NULL, NULL, NULL);
		flow_free(f);
	}
	flow_diagnostics_clear(&d);
	return 0;
}
