/*
 * Responses that are in files: the file is read when somebody asks for what is in it, and is to be the one that
 * was recorded.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "edge.h"
#include "flowsup/checkpoint.h"
#include "flowsup/fs.h"

/* ---- The file ---- */

static int
read_whole(int fd, size_t size, struct buf *to, struct err *e)
{
	char *at = buf_reserve(to, size + 1);
	ssize_t n;

	if (at == NULL)
		return err_nomem(e);
	while (to->len < size) {
		n = pread(fd, to->data + to->len, size - to->len, (off_t)to->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, ERR_IO, errno, "it cannot be read");
		if (n == 0)
			break;
		to->len += (size_t)n;
	}
	return 0;
}

/* Consumes fd. */
static int
read_recorded(int fd, const struct stat *st, const struct json *recorded, struct buf *to, struct err *e)
{
	char digest[CKPT_DIGEST_TEXT];
	int rc = -1;

	if ((uint64_t)st->st_size > JSON_MAX_RESPONSE)
		err_set(e, ERR_LIMIT, "it has %lld bytes, and no more than 64 MiB are looked into", (long long)st->st_size);
	else
		rc = read_whole(fd, (size_t)st->st_size, to, e);
	fd_close(&fd);
	if (rc != 0)
		return -1;
	ckpt_digest_bytes(buf_view(to), digest);
	if (slice_is(json_text(json_get(recorded, "digest")), digest))
		return 0;
	return err_set(e, ERR_REFUSED, "it has changed since (its digest differs)");
}

static int
as_json(const struct buf *text, bool lines, struct json **out, struct err *e)
{
	size_t values = JSON_MAX_RESPONSE_VALUES;
	struct json_options options = {.max_bytes = JSON_MAX_RESPONSE, .values_left = &values};
	struct flow_lines l = {.at = text->data, .end = text->data + text->len, .number = 1, .values_left = values};
	struct json_failure why = {.fault = JSON_OK};

	if (lines)
		return flow_parse_lines(&l, text->len, out, e);
	if (json_parse(buf_view(text), &options, out, &why, e) == 0)
		return 0;
	return why.fault == JSON_FAULT_MANY ? flow_too_many_values(e) : -1;
}

/* As it would have been understood had it been small: of one that failed a mere text is what was printed. */
static int
understand(const struct buf *text, enum flow_response kind, bool completed, struct json **out, struct err *e)
{
	bool is_json = kind == FLOW_RESPONSE_JSON || kind == FLOW_RESPONSE_JSONL;
	struct json *value = NULL;
	struct err ignored = {0};

	if (is_json && completed)
		return as_json(text, kind == FLOW_RESPONSE_JSONL, out, e);
	if (is_json && as_json(text, kind == FLOW_RESPONSE_JSONL, &value, &ignored) == 0 &&
	    json_type(value) != JSON_STRING) {
		*out = value;
		return 0;
	}
	json_unref(value);
	*out = json_string_lossy(buf_view(text), NULL);
	return *out != NULL ? 0 : err_nomem(e);
}

int
flow_response_read(int run_fd, const struct json *recorded, enum flow_response kind, bool completed, struct json **out,
    struct err *e)
{
	const char *path = json_cstr_of(json_get(recorded, "file")), *words = NULL;
	struct buf text = {0};
	struct stat st;
	int fd = path != NULL ? fs_open_recorded(run_fd, path, &st, &words) : -1;
	int rc = fd < 0 ? err_set(e, ERR_NOTFOUND, "it %s", words != NULL ? words : "has no name that can be read")
			: read_recorded(fd, &st, recorded, &text, e);

	if (rc == 0)
		rc = understand(&text, kind, completed, out, e);
	buf_clear(&text);
	return rc == 0 ? 0 : err_wrap(e, "the file of its response, '%s'", path != NULL ? path : "");
}

/* ---- Conditions ---- */

static bool
is_asked(const struct flow_edge *edge, uint32_t from, enum flow_outcome outcome)
{
	return edge->op == from && edge->when != FLOW_WHEN_ALWAYS && flow_edge_fits(edge, outcome);
}

static char *
key_of(const struct flow_edge *edge)
{
	struct json *condition = edge_condition(edge);
	struct buf text = {0};

	json_write(&text, condition);
	text.failed |= condition == NULL;
	json_unref(condition);
	if (!text.failed)
		return buf_steal(&text);
	buf_clear(&text);
	return NULL;
}

static int
add_edge(struct flow_asked *a, const struct flow_edge *edge, struct err *e)
{
	struct flow_asked_edge *more = reallocarray(a->edges, a->count + 1, sizeof(*more));

	if (more == NULL)
		return err_nomem(e);
	a->edges = more;
	a->edges[a->count] = (struct flow_asked_edge){.edge = *edge, .key = key_of(edge)};
	if (a->edges[a->count].key == NULL)
		return err_nomem(e);
	a->count++;
	return 0;
}

int
flow_asked_init(struct flow_asked *a, const struct flow *f, uint32_t from, enum flow_outcome outcome, struct err *e)
{
	const struct flow_op *op = &f->ops[from], *successor;
	uint32_t s, n;

	*a = (struct flow_asked){.id = op->id, .how = op->how, .outcome = outcome};
	for (s = 0; s < op->nsuccessors; s++) {
		successor = &f->ops[op->successors[s]];
		for (n = 0; n < successor->nneeds; n++)
			if (is_asked(&successor->needs[n], from, outcome) && add_edge(a, &successor->needs[n], e) != 0) {
				flow_asked_clear(a);
				return -1;
			}
	}
	return 0;
}

void
flow_asked_clear(struct flow_asked *a)
{
	while (a->count > 0)
		free(a->edges[--a->count].key);
	free(a->edges);
	a->edges = NULL;
}

static struct json *
failure(const struct err *why)
{
	return json_set(json_object(), "error", json_string_lossy(slice_of(why->msg), NULL));
}

static struct json *
answer(const struct flow_asked *a, const struct flow_edge *edge, const struct json *response)
{
	struct buf why = {0};
	struct err e = {0};
	struct json *v;
	bool holds;

	if (edge_holds(a->how, edge, a->outcome, response, &holds, &e) != 0)
		return e.code == ERR_NOMEM ? NULL : failure(&e);
	v = json_set(json_object(), "holds", json_bool(holds));
	if (!holds) {
		edge_unmet(a->id, a->how, edge, a->outcome, response, &why);
		v = why.failed ? json_set(v, "why", NULL) : json_set(v, "why", json_string_lossy(buf_view(&why), NULL));
	}
	buf_clear(&why);
	return v;
}

struct json *
flow_asked_answers(const struct flow_asked *a, int run_fd, const struct json *recorded)
{
	struct json *response = NULL, *answers = json_object();
	struct err e = {0};
	size_t i;

	if (flow_response_read(run_fd, recorded, a->how->response, a->outcome == FLOW_COMPLETED, &response, &e) != 0) {
		json_unref(answers);
		return e.code == ERR_NOMEM ? NULL : failure(&e);
	}
	for (i = 0; i < a->count; i++)
		answers = json_setn(answers, slice_of(a->edges[i].key), answer(a, &a->edges[i].edge, response));
	json_unref(response);
	return answers;
}

int
flow_answers_read(const struct flow *f, uint32_t from, enum flow_outcome outcome, int run_fd, const struct json *entry,
    struct json **all, struct err *e)
{
	const char *id = f->ops[from].id;
	struct flow_asked a;

	if (!ckpt_is_file(entry) || json_get(*all, id) != NULL)
		return 0;
	if (flow_asked_init(&a, f, from, outcome, e) != 0)
		return -1;
	if (a.count > 0) {
		*all = json_set(*all != NULL ? *all : json_object(), id,
		    flow_asked_answers(&a, run_fd, json_get(entry, "response")));
		if (*all == NULL)
			err_nomem(e);
	}
	flow_asked_clear(&a);
	return e->code == ERR_NOMEM ? -1 : 0;
}

static int
find(const struct json *answers, const struct flow_edge *edge, const struct json **out, struct err *e)
{
	const struct json *error = json_get(answers, "error");
	char *key;

	*out = NULL;
	if (error == NULL) {
		key = key_of(edge);
		if (key == NULL)
			return err_nomem(e);
		*out = json_getn(answers, slice_of(key));
		free(key);
		error = json_get(*out, "error");
	}
	if (error != NULL)
		return err_set(e, ERR_LIMIT, "%s", json_cstr_of(error) != NULL ? json_cstr_of(error) : "it cannot be read");
	return *out != NULL ? 0 : err_set(e, ERR_LIMIT, "the file of its response was not read");
}

int
flow_answer_holds(const struct json *answers, const struct flow_edge *edge, bool *holds, struct err *e)
{
	const struct json *found;

	if (find(answers, edge, &found, e) != 0)
		return -1;
	*holds = json_is_true(json_get(found, "holds"));
	return 0;
}

int
flow_need_holds_entry(const struct flow *f, const struct flow_edge *edge, enum flow_outcome outcome,
    const struct json *entry, const struct json *all, bool *holds, struct err *e)
{
	if (edge->when != FLOW_WHEN_ALWAYS && flow_edge_fits(edge, outcome) && ckpt_is_file(entry))
		return flow_answer_holds(json_get(all, f->ops[edge->op].id), edge, holds, e);
	return flow_need_holds(f, edge, outcome, json_get(entry, "response"), holds, e);
}

void
flow_answer_unmet(const struct json *answers, const struct flow_edge *edge, struct buf *to)
{
	const struct json *found;
	struct err e = {0};

	if (find(answers, edge, &found, &e) == 0)
		buf_slice(to, json_text(json_get(found, "why")));
	else
		buf_puts(to, e.msg);
}

void
flow_need_unmet_entry(const struct flow *f, const struct flow_edge *edge, enum flow_outcome outcome,
    const struct json *entry, const struct json *all, struct buf *to)
{
	if (ckpt_is_file(entry))
		flow_answer_unmet(json_get(all, f->ops[edge->op].id), edge, to);
	else
		flow_need_unmet(f, edge, outcome, json_get(entry, "response"), to);
}
