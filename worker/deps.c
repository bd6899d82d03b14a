/* Where an operation finds the responses of its predecessors. */
#include "given.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent.h"
#include "flowsup/fs.h"
#include "outcome.h"

/* For one whose outcome was carried over, where its response says its output, or nobody knows that any
 * more. */
static int
write_replayed(struct worker *w, uint32_t i, struct err *e)
{
	char name[OP_FILE_TEXT];
	struct buf text = {0};
	int fd, rc;

	if (w->ops[i].replay_written)
		return 0;
	outcome_response_text(w->flow->ops[i].how->response, w->ops[i].state == OP_COMPLETED,
	    w->ops[i].response, &text);
	rc = buf_ok(&text, e);
	snprintf(name, sizeof(name), "%s.response", w->flow->ops[i].id);
	fd = rc == 0 ? openat(w->ops_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
			   0600) : -1;
	if (rc == 0 && fd < 0)
		rc = err_sys(e, ERR_IO, errno, "cannot create ops/%s", name);
	if (rc == 0)
		rc = fs_write_all(&fs_real, "replay.write", fd, buf_view(&text), e);
	fd_close(&fd);
	buf_clear(&text);
	w->ops[i].replay_written = rc == 0;
	return rc;
}

static const char *
output_suffix(const struct worker *w, uint32_t i)
{
	return agents_has_answer(w, i) ? "/" AGENT_ANSWER : ".out";
}

static bool
is_file(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* The output itself, where the response does not say it byte for byte. 1: there is none, and its bytes are
 * not known. */
static int
find_output(const struct worker *w, uint32_t i, struct buf *to, struct err *e)
{
	const struct json *output = json_get(w->outputs, w->flow->ops[i].id);
	const char *file = json_cstr_of(json_get(output, "file")), *attempt = json_cstr_of(output);
	size_t before = to->len;

	if (file != NULL)
		buf_puts(to, file);
	else if (attempt != NULL)
		buf_printf(to, "%s%s", attempt, output_suffix(w, i));
	else
		return 1;
	if (to->failed)
		return err_nomem(e);
	if (is_file(to->data + before))
		return 0;
	to->len = before;
	return file == NULL ? 1
			    : err_set(e, ERR_IO, "the output of %s, '%s', is not there any more",
				  w->flow->ops[i].id, file);
}

int
given_response_path(struct worker *w, uint32_t i, struct buf *to, struct err *e)
{
	const struct op *op = &w->ops[i];
	char name[OP_FILE_TEXT];
	int found;

	if (op->replayed && op->by_reference) {
		buf_puts(to, json_cstr_of(json_get(op->response, "file")));
	} else if (op->replayed && op->never_ran) {
		return 0;
	} else if (op->replayed) {
		found = find_output(w, i, to, e);
		if (found < 0 || (found > 0 && write_replayed(w, i, e) != 0))
			return -1;
		if (found > 0)
			buf_printf(to, "%s/%s.response", w->ops_path, w->flow->ops[i].id);
	} else if (!op->replayed && op->attempts > 0) {
		buf_printf(to, "%s/%s", w->ops_path,
		    op_file_name(w, i, op->attempts, output_suffix(w, i), name));
	} else if (!op->replayed) {
		return 0;
	}
	buf_putc(to, '\0');
	return to->failed ? err_nomem(e) : 0;
}

/* Another try is found under the name of what it stands for, but by a further one, which sees both. */
static const char *
name_of(const struct building *b, uint32_t from_op)
{
	const struct flow *f = b->w->flow;
	uint32_t root = flow_stands_for(f, from_op);

	return f->ops[flow_stands_for(f, b->op) == root ? from_op : root].id;
}

static int
add_dep_variable(struct building *b, uint32_t from_op, struct err *e)
{
	const char *id = name_of(b, from_op);
	size_t from = b->text->len, value;

	buf_puts(b->text, "FLOWSUP_DEP_");
	for (; *id != '\0'; id++)
		buf_putc(b->text, (*id >= 'a' && *id <= 'z') || (*id >= 'A' && *id <= 'Z') ||
			(*id >= '0' && *id <= '9') || *id == '_' ? *id : '_');
	buf_putc(b->text, '=');
	value = b->text->len;
	if (given_response_path(b->w, from_op, b->text, e) != 0)
		return -1;
	if (b->text->failed)
		return err_nomem(e);
	if (b->text->len == value) { /* skipped: there is no file, so there is no name */
		b->text->len = from;
		return 0;
	}
	return given_add(b, from, e);
}

static int
add_dep_line(struct building *b, const char *name, uint32_t from, struct buf *to, struct err *e)
{
	size_t before = to->len;
	int rc;

	buf_puts(to, name);
	buf_putc(to, '\t');
	rc = given_response_path(b->w, from, to, e);
	if (rc == 0 && !to->failed && to->data[to->len - 1] == '\0')
		to->data[to->len - 1] = '\n';
	else
		to->len = before;
	return rc;
}

struct dep {
	uint32_t place, op; /* place: where the first try of it stands */
};

static int
compare_deps(const void *a, const void *b)
{
	const struct dep *x = a, *y = b;

	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	return x->op < y->op ? -1 : x->op > y->op;
}

/* In the order of the flow, another try where the first one stands. The synthesis needs all there are, also
 * those that were added to the plan. */
static int
list_deps(const struct building *b, struct dep **out, size_t *count, struct err *e)
{
	const struct flow *f = b->w->flow;
	const struct flow_op *def = &f->ops[b->op];
	bool all = flow_is_synthesis(f, b->op);
	size_t most = all ? f->nops : def->nneeds, n;
	struct dep *list = calloc(most + 1, sizeof(*list));
	uint32_t op;

	if (list == NULL)
		return err_nomem(e);
	for (*count = 0, n = 0; n < most; n++) {
		op = all ? (uint32_t)n : def->needs[n].op;
		if (op != b->op)
			list[(*count)++] = (struct dep){flow_stands_for(f, op), op};
	}
	qsort(list, *count, sizeof(*list), compare_deps);
	*out = list;
	return 0;
}

static int
write_deps_file(struct building *b, const char *name, struct err *e)
{
	const struct flow *f = b->w->flow;
	bool all = flow_is_synthesis(f, b->op);
	struct buf text = {0};
	struct dep *deps = NULL;
	size_t n, count = 0;
	int fd, rc = list_deps(b, &deps, &count, e);

	for (n = 0; rc == 0 && n < count; n++)
		rc = add_dep_line(b, all ? f->ops[deps[n].op].id : name_of(b, deps[n].op), deps[n].op, &text, e);
	free(deps);
	if (rc == 0)
		rc = buf_ok(&text, e);
	fd = rc == 0 ? openat(b->w->ops_fd, name,
			   O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600) : -1;
	if (rc == 0 && fd < 0)
		rc = err_sys(e, ERR_IO, errno, "cannot create ops/%s", name);
	if (rc == 0)
		rc = fs_write_all(&fs_real, "deps.write", fd, buf_view(&text), e);
	fd_close(&fd);
	buf_clear(&text);
	return rc;
}

/* An item needs its own foreach, of which it is a part. */
static bool
is_item_of(const struct building *b, uint32_t op)
{
	const struct flow_grown *g = flow_grown(b->w->flow, b->op);

	return g != NULL && g->kind == FLOW_GROWN_ITEM && g->parent == op;
}

/* It needs a foreach over a response: nobody who wrote it knew of how many operations. */
static bool
needs_items(const struct building *b)
{
	const struct flow_op *def = &b->w->flow->ops[b->op];
	uint32_t n;

	for (n = 0; n < def->nneeds; n++)
		if (b->w->flow->ops[def->needs[n].op].how->foreach_pointer != NULL &&
		    !is_item_of(b, def->needs[n].op))
			return true;
	return false;
}

static int
add_deps_file(struct building *b, struct err *e)
{
	char name[OP_FILE_TEXT];
	struct buf value = {0};
	int rc;

	op_file_name(b->w, b->op, b->w->ops[b->op].attempts, ".deps", name);
	buf_printf(&value, "%s/%s", b->w->ops_path, name);
	rc = buf_ok(&value, e);
	if (rc == 0)
		rc = write_deps_file(b, name, e);
	if (rc == 0)
		rc = given_variable(b, "FLOWSUP_DEPS", buf_text(&value), e);
	buf_clear(&value);
	return rc;
}

int
given_deps(struct building *b, struct err *e)
{
	const struct flow_op *def = &b->w->flow->ops[b->op];
	bool only_file = def->nneeds > FLOW_MAX_DEP_VARIABLES || flow_is_synthesis(b->w->flow, b->op);
	uint32_t n;

	for (n = 0; n < def->nneeds && !only_file; n++)
		if (add_dep_variable(b, def->needs[n].op, e) != 0)
			return -1;
	return only_file || needs_items(b) ? add_deps_file(b, e) : 0;
}
