/* The synthesis: what it is told of all others, and where it finds what they said. */
#include "given.h"

#include <string.h>

enum { SHOWN_EACH = 4 << 10, SHOWN_ALL = 128 << 10 };

/* The beginning of a response; of one that is kept by reference what the reference shows. */
static void
add_response(const struct op *op, size_t room, struct buf *to, bool *cut)
{
	const struct json *response = op->response;
	struct slice text = json_text(op->by_reference ? json_get(response, "head") : response);
	struct buf encoded = {0};

	if (text.data == NULL && response != NULL && json_type(response) != JSON_NULL) {
		json_write(&encoded, response);
		text = buf_view(&encoded);
	}
	*cut = text.len > room || op->by_reference;
	if (text.data != NULL && text.len > room) {
		/* Never inside a character. */
		while (room > 0 && ((unsigned char)text.data[room] & 0xc0) == 0x80)
			room--;
		text.len = room;
	}
	buf_slice(to, text);
	to->failed = to->failed || encoded.failed;
	buf_clear(&encoded);
}

static int
add_outcome(struct worker *w, uint32_t i, size_t *room, struct buf *to, struct err *e)
{
	size_t most = *room < SHOWN_EACH ? *room : SHOWN_EACH, from;
	struct buf path = {0};
	bool cut = false;
	int rc;

	buf_printf(to, "\n%s: %s\n", w->flow->ops[i].id,
	    op_state_word((enum op_state)w->ops[i].state));
	from = to->len;
	if (most > 0)
		add_response(&w->ops[i], most, to, &cut);
	*room -= to->len - from < *room ? to->len - from : *room;
	rc = given_response_path(w, i, &path, e);
	if (rc == 0 && path.len > 0 && (cut || most == 0))
		buf_printf(to, "\n(the whole stands in %s)", path.data);
	buf_clear(&path);
	buf_putc(to, '\n');
	return rc != 0 ? rc : buf_ok(to, e);
}

int
synthesis_instruction(struct worker *w, struct buf *to, struct err *e)
{
	size_t room = SHOWN_ALL;
	uint32_t i;

	buf_puts(to, "\n\nThese are the outcomes of all other operations:\n");
	for (i = 0; i < w->flow->nops; i++)
		if (!flow_is_synthesis(w->flow, i) && i != w->flow->planner_op && op_is_settled(&w->ops[i]) &&
		    add_outcome(w, i, &room, to, e) != 0)
			return -1;
	return buf_ok(to, e);
}
