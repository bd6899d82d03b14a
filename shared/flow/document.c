/* YAML to JSON values, event by event: the nesting of a document never becomes ours. */
#include <libfyaml.h>
#include <stdlib.h>

#include "document.h"
#include "yaml_text.h"

/* Brackets that are open by a count which takes those in texts and comments for some too. */
enum { DEPTH_DOUBTFUL = 2 * JSON_MAX_DEPTH };

/* How much a value holds, with what its aliases stand for. */
struct extent {
	size_t values;
	size_t bytes;
	unsigned height;
};

struct frame {
	struct json *container;
	struct json *name; /* of the member whose value comes next */
	struct json_where where;
	struct extent extent;
	size_t anchor; /* index + 1, 0: none */
	bool mapping;
};

struct anchor {
	struct json *value; /* NULL while it is not complete */
	struct extent extent;
};

struct yaml {
	struct fy_diag *diag;
	struct fy_parser *parser;
	struct slice text;
	struct yaml_lines lines;
	struct json_where *where; /* of the failure */
	struct frame stack[JSON_MAX_DEPTH];
	unsigned depth;
	struct anchor *anchors;
	size_t nanchors, anchor_cap;
	struct json *anchor_index; /* name -> index */
	struct extent expanded;
	struct json *root;
	unsigned documents;
	struct err *e;
};

static int
fail(struct yaml *y, struct json_where where)
{
	*y->where = where;
	return -1;
}

/* The mark of a quoted scalar lies behind its quote; people look for the quote. */
static struct json_where
mark_of(const struct yaml *y, struct fy_event *event)
{
	const struct fy_mark *m = fy_event_start_mark(event);
	size_t at = m != NULL ? m->input_pos : y->lines.length;
	enum fy_scalar_style style = FYSS_ANY;

	if (event->type == FYET_SCALAR && event->scalar.value != NULL)
		style = fy_token_scalar_style(event->scalar.value);
	if ((style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED) && at > 0 &&
	    at <= y->text.len && (y->text.data[at - 1] == '"' || y->text.data[at - 1] == '\''))
		at--;
	return yaml_lines_at(&y->lines, at);
}

/* An empty value has no token: it stands where the name before it ends. */
static struct json_where
place_of(const struct yaml *y, struct fy_event *event)
{
	const struct frame *f = y->depth > 0 ? &y->stack[y->depth - 1] : NULL;
	struct json_where where;

	if (fy_event_start_mark(event) == NULL && f != NULL && f->name != NULL &&
	    json_position(f->name, &where))
		return where;
	return mark_of(y, event);
}

static struct slice
token_text(struct fy_token *token)
{
	size_t len = 0;
	const char *text = token != NULL ? fy_token_get_text(token, &len) : NULL;

	return text != NULL ? (struct slice){text, len} : (struct slice){"", 0};
}

/* ---- Anchors and aliases ---- */

static int
anchor_begin(struct yaml *y, struct fy_event *event, size_t *anchor)
{
	struct fy_token *token = fy_event_get_anchor_token(event);
	struct anchor *more;
	size_t cap;

	*anchor = 0;
	if (token == NULL)
		return 0;
	if (y->nanchors == DOCUMENT_MAX_ANCHORS) {
		err_set(y->e, ERR_LIMIT, "more than %d anchors", DOCUMENT_MAX_ANCHORS);
		return fail(y, mark_of(y, event));
	}
	if (y->nanchors == y->anchor_cap) {
		cap = y->anchor_cap ? 2 * y->anchor_cap : 16;
		more = realloc(y->anchors, cap * sizeof(*more));
		if (more == NULL)
			return err_nomem(y->e);
		y->anchors = more;
		y->anchor_cap = cap;
	}
	y->anchors[y->nanchors++] = (struct anchor){0};
	*anchor = y->nanchors;
	y->anchor_index = json_setn(y->anchor_index, token_text(token), json_uint(y->nanchors - 1));
	return y->anchor_index == NULL ? err_nomem(y->e) : 0;
}

static void
anchor_complete(struct yaml *y, size_t anchor, const struct json *value, struct extent extent)
{
	if (anchor == 0)
		return;
	y->anchors[anchor - 1].value = json_ref(value);
	y->anchors[anchor - 1].extent = extent;
}

static int
alias_refused(struct yaml *y, struct json_where where, enum err_code code, struct slice name,
    const char *why)
{
	err_set(y->e, code, "alias *%.*s: %s", (int)(name.len > 64 ? 64 : name.len), name.data, why);
	return fail(y, where);
}

static int
alias_find(struct yaml *y, struct fy_event *event, struct anchor *out)
{
	struct slice name = token_text(fy_event_get_token(event));
	struct json_where where = mark_of(y, event);
	uint64_t index;

	if (!json_uint64(json_getn(y->anchor_index, name), &index))
		return alias_refused(y, where, ERR_SYNTAX, name, "no such anchor before it");
	*out = y->anchors[index];
	if (out->value == NULL)
		return alias_refused(y, where, ERR_SYNTAX, name, "it refers to itself");
	y->expanded.values += out->extent.values;
	y->expanded.bytes += out->extent.bytes;
	if (y->expanded.values > DOCUMENT_MAX_EXPANDED ||
	    y->expanded.bytes > DOCUMENT_MAX_EXPANDED_BYTES)
		return alias_refused(y, where, ERR_LIMIT, name,
		    "the document grows too large by its aliases");
	if (out->extent.height + y->depth <= JSON_MAX_DEPTH)
		return 0;
	err_set(y->e, ERR_LIMIT, "alias *%.*s: nested more than %d deep",
	    (int)(name.len > 64 ? 64 : name.len), name.data, JSON_MAX_DEPTH);
	return fail(y, where);
}

/* ---- Putting values in their place ---- */

static int
take_name(struct yaml *y, struct frame *f, struct json *value)
{
	struct json_where where;
	struct slice name = json_text(value);

	if (!json_position(value, &where))
		where = f->where;
	if (json_type(value) != JSON_STRING) {
		err_set(y->e, ERR_SYNTAX, "a key must be a text, not %s", json_type_name(value));
		err_advice(y->e, "put the key in quotes");
		json_unref(value);
		return fail(y, where);
	}
	if (json_getn(f->container, name) != NULL) {
		err_set(y->e, ERR_SYNTAX, "the key \"%.*s\" stands here twice",
		    (int)(name.len > 64 ? 64 : name.len), name.data);
		json_unref(value);
		return fail(y, where);
	}
	f->name = value;
	return 0;
}

/* Consumes value. */
static int
place_value(struct yaml *y, struct json *value, struct extent extent)
{
	struct frame *f;

	if (y->depth == 0) {
		y->root = value;
		return 0;
	}
	f = &y->stack[y->depth - 1];
	f->extent.values += extent.values;
	f->extent.bytes += extent.bytes;
	if (f->extent.height < extent.height + 1)
		f->extent.height = extent.height + 1;
	if (f->mapping && f->name == NULL)
		return take_name(y, f, value);
	if (f->mapping) {
		f->container = json_set_named(f->container, f->name, value);
		f->name = NULL;
	} else {
		f->container = json_append(f->container, value);
	}
	return f->container == NULL ? err_nomem(y->e) : 0;
}

/* ---- Events ---- */

static int
on_scalar(struct yaml *y, struct fy_event *event)
{
	struct fy_token *token = fy_event_get_token(event);
	struct slice text = token_text(token);
	struct extent extent = {1, text.len + 8, 0};
	struct json_where where = place_of(y, event);
	struct json *value;
	bool plain = token == NULL || fy_token_scalar_style(token) == FYSS_PLAIN;
	size_t anchor;

	if (anchor_begin(y, event, &anchor) < 0)
		return -1;
	if (yaml_scalar(text, plain, token_text(fy_event_get_tag_token(event)), &value, y->e) < 0)
		return fail(y, where);
	value = json_set_position(value, where);
	if (value == NULL)
		return err_nomem(y->e);
	anchor_complete(y, anchor, value, extent);
	return place_value(y, value, extent);
}

static int
on_alias(struct yaml *y, struct fy_event *event)
{
	struct anchor anchor;

	if (alias_find(y, event, &anchor) < 0)
		return -1;
	return place_value(y, json_ref(anchor.value), anchor.extent);
}

static int
container_tag(struct yaml *y, struct fy_event *event, const char *expected)
{
	struct slice tag = token_text(fy_event_get_tag_token(event));

	if (tag.len == 0 || slice_is(tag, expected) || slice_is(tag, "!"))
		return 0;
	err_set(y->e, ERR_SYNTAX, "the tag %.*s means nothing here",
	    (int)(tag.len > 80 ? 80 : tag.len), tag.data);
	return fail(y, mark_of(y, event));
}

static int
on_start(struct yaml *y, struct fy_event *event, bool mapping)
{
	struct frame f = {.where = place_of(y, event), .extent = {1, 2, 1}, .mapping = mapping};

	if (container_tag(y, event, mapping ? "tag:yaml.org,2002:map" : "tag:yaml.org,2002:seq") < 0)
		return -1;
	if (y->depth == JSON_MAX_DEPTH) {
		err_set(y->e, ERR_LIMIT, "nested more than %d deep", JSON_MAX_DEPTH);
		return fail(y, f.where);
	}
	if (anchor_begin(y, event, &f.anchor) < 0)
		return -1;
	f.container = mapping ? json_object() : json_array();
	if (f.container == NULL)
		return err_nomem(y->e);
	y->stack[y->depth++] = f;
	return 0;
}

static int
on_end(struct yaml *y)
{
	struct frame *f = &y->stack[--y->depth];
	struct json *value = json_set_position(f->container, f->where);

	f->container = NULL;
	if (value == NULL)
		return err_nomem(y->e);
	anchor_complete(y, f->anchor, value, f->extent);
	return place_value(y, value, f->extent);
}

static int
on_document(struct yaml *y, struct fy_event *event)
{
	struct fy_document_state *state = event->document_start.document_state;
	const struct fy_version *v = fy_document_state_version(state);

	if (++y->documents > 1) {
		err_set(y->e, ERR_SYNTAX, "a second document begins here");
		err_advice(y->e, "a file holds one flow; put the others in files of their own");
		return fail(y, mark_of(y, event));
	}
	if (fy_document_state_version_explicit(state) && v != NULL &&
	    (v->major != 1 || v->minor != 2)) {
		err_set(y->e, ERR_SYNTAX, "this document says YAML %d.%d; flow documents are YAML 1.2",
		    v->major, v->minor);
		return fail(y, (struct json_where){0, 1, 1});
	}
	return 0;
}

static int
on_event(struct yaml *y, struct fy_event *event)
{
	switch (event->type) {
	case FYET_DOCUMENT_START:
		return on_document(y, event);
	case FYET_SCALAR:
		return on_scalar(y, event);
	case FYET_ALIAS:
		return on_alias(y, event);
	case FYET_MAPPING_START:
		return on_start(y, event, true);
	case FYET_SEQUENCE_START:
		return on_start(y, event, false);
	case FYET_MAPPING_END:
	case FYET_SEQUENCE_END:
		return on_end(y);
	case FYET_NONE:
	case FYET_STREAM_START:
	case FYET_STREAM_END:
	case FYET_DOCUMENT_END:
		break;
	}
	return 0;
}

/* ---- The whole ---- */

static int
yaml_open(struct yaml *y, struct slice text)
{
	struct fy_diag_cfg quiet;
	struct fy_parse_cfg cfg = {
	    .flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG | FYPCF_DEFAULT_VERSION_1_2 | FYPCF_JSON_NONE |
		FYPCF_DISABLE_DEPTH_LIMIT};

	fy_diag_cfg_default(&quiet);
	quiet.fp = NULL;
	quiet.level = FYET_ERROR;
	quiet.colorize = false;
	y->diag = fy_diag_create(&quiet);
	if (y->diag == NULL)
		return err_nomem(y->e);
	fy_diag_set_collect_errors(y->diag, true);
	cfg.diag = y->diag;
	y->parser = fy_parser_create(&cfg);
	y->anchor_index = json_object();
	if (y->parser == NULL || y->anchor_index == NULL ||
	    fy_parser_set_string(y->parser, text.data, text.len) != 0)
		return err_nomem(y->e);
	return yaml_lines_init(&y->lines, text, y->e);
}

static void
yaml_close(struct yaml *y)
{
	size_t i;

	while (y->depth > 0) {
		y->depth--;
		json_unref(y->stack[y->depth].container);
		json_unref(y->stack[y->depth].name);
	}
	for (i = 0; i < y->nanchors; i++)
		json_unref(y->anchors[i].value);
	free(y->anchors);
	json_unref(y->anchor_index);
	json_unref(y->root);
	fy_parser_destroy(y->parser);
	if (y->diag != NULL)
		fy_diag_destroy(y->diag);
	yaml_lines_clear(&y->lines);
}

static int
syntax_error(struct yaml *y)
{
	void *position = NULL;
	struct fy_diag_error *first = fy_diag_errors_iterate(y->diag, &position);

	if (first == NULL) {
		err_set(y->e, ERR_SYNTAX, "this is not YAML");
		return fail(y, (struct json_where){0, 0, 0});
	}
	err_set(y->e, ERR_SYNTAX, "not YAML: %s", first->msg != NULL ? first->msg : "unreadable");
	return fail(y,
	    yaml_lines_at(&y->lines, yaml_lines_offset(&y->lines, first->line, first->column)));
}

static int
yaml_events(struct yaml *y)
{
	struct fy_event *event;
	int r = 0;

	while (r == 0 && (event = fy_parser_parse(y->parser)) != NULL) {
		r = on_event(y, event);
		fy_parser_event_free(y->parser, event);
	}
	if (r == 0 && fy_parser_get_stream_error(y->parser))
		return syntax_error(y);
	return r;
}

static int
empty_document(struct json_where *where, struct err *e)
{
	*where = (struct json_where){0, 0, 0};
	err_set(e, ERR_DOCUMENT, "the document is empty");
	return err_hint(e, "man 5 flowsup-flow   # a flow needs a plan");
}

static int
read_yaml(struct slice text, struct json **out, struct json_where *where, struct err *e)
{
	struct yaml *y = calloc(1, sizeof(*y));
	int r;

	if (y == NULL)
		return err_nomem(e);
	y->text = text;
	y->where = where;
	y->e = e;
	r = yaml_open(y, text);
	if (r == 0)
		r = yaml_events(y);
	if (r == 0) {
		*out = y->root; /* NULL: it is empty */
		y->root = NULL;
	}
	yaml_close(y);
	free(y);
	return r;
}

/*
 * The parser looks ahead through all opening brackets that follow each other before it tells the first,
 * at hundreds of bytes for each. So where brackets pile up, the text before that place is read
 * alone first. It is the same reader, so brackets inside of texts and comments refuse nothing; and what
 * exceeds a limit in a beginning exceeds it in the whole. Probes come at places that grow
 * geometrically, which keeps all of them together within a few readings of the whole.
 */
static int
check_depth(struct slice text, struct json_where *where, struct err *e)
{
	size_t i, piled = 0, next = 0;

	for (i = 0; i < text.len; i++) {
		char c = text.data[i];
		struct json *beginning = NULL;
		struct err why = {0};

		if (c == '[' || c == '{')
			piled++;
		else if ((c == ']' || c == '}') && piled > 0)
			piled--;
		if (piled <= DEPTH_DOUBTFUL || i < next)
			continue;
		if (read_yaml((struct slice){text.data, i + 1}, &beginning, where, &why) == 0)
			json_unref(beginning);
		if (why.code == ERR_LIMIT || why.code == ERR_NOMEM) {
			if (e != NULL)
				*e = why;
			return -1;
		}
		piled = 0;
		next = i + i / 4;
	}
	*where = (struct json_where){0, 0, 0};
	return 0;
}

static int
check_text(struct slice text, struct json_where *where, struct err *e)
{
	struct yaml_lines lines;
	size_t at = 0;

	if (yaml_text_check(text, &at, e) == 0)
		return 0;
	if (yaml_lines_init(&lines, text, e) < 0)
		return -1;
	*where = yaml_lines_at(&lines, at);
	yaml_lines_clear(&lines);
	return -1;
}

/* The place is told by *where, so the reader's own "line L, column C: " is taken off. */
static void
strip_place(struct err *e)
{
	char *colon;

	if (e == NULL || strncmp(e->msg, "line ", 5) != 0)
		return;
	colon = strstr(e->msg, ": ");
	if (colon != NULL)
		memmove(e->msg, colon + 2, strlen(colon + 2) + 1);
}

static int
read_json(struct slice text, struct json **out, struct json_where *where, struct err *e)
{
	static const struct json_options options = {.positions = true, .tell_names = true};
	struct json_failure failure = {0};

	if (json_parse(text, &options, out, &failure, e) == 0)
		return 0;
	*where = failure.where;
	strip_place(e);
	return -1;
}

/* *out stays NULL where there is nothing in it. */
static int
read_any(const struct flow_source *source, struct json **out, struct json_where *where, struct err *e)
{
	struct slice text = source->text;

	*where = (struct json_where){0, 0, 0};
	if (text.len > JSON_MAX_DOCUMENT)
		return err_set(e, ERR_LIMIT, "the document is larger than %zu MiB",
		    JSON_MAX_DOCUMENT >> 20);
	if (text.len == 0)
		return 0;
	if (source->json)
		return read_json(text, out, where, e);
	if (text.len >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0)
		text = (struct slice){text.data + 3, text.len - 3};
	if (check_text(text, where, e) < 0 || check_depth(text, where, e) < 0)
		return -1;
	return read_yaml(text, out, where, e);
}

int
document_read(const struct flow_source *source, struct json **out, struct json_where *where,
    struct err *e)
{
	*out = NULL;
	if (read_any(source, out, where, e) != 0)
		return -1;
	return *out != NULL ? 0 : empty_document(where, e);
}

int
document_read_settings(const struct flow_source *source, struct json **out, struct json_where *where,
    struct err *e)
{
	*out = NULL;
	if (read_any(source, out, where, e) != 0)
		return -1;
	if (*out == NULL)
		*out = json_object();
	return *out != NULL ? 0 : err_nomem(e);
}
