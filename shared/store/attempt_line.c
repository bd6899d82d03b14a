#include "attempt_line.h"

#include <string.h>

/* ---- Flat lines of plain text and whole numbers ---- */

enum { MOST_MEMBERS = 16, MOST_DIGITS = 18 };

struct member {
	struct slice name, text; /* text.data NULL: a number, true or false */
	int64_t number;		 /* -1: none */
};

struct flat {
	struct member members[MOST_MEMBERS];
	size_t n;
	uint64_t seen; /* a bit for each name's length and first letter */
};

/* The characters of a string that stand for themselves; *p is behind its first quote, then behind its last. */
static bool
take_text(const char **p, const char *end, struct slice *to)
{
	const char *from = *p, *at = from;

	while (at < end && *at >= ' ' && *at <= '~' && *at != '"' && *at != '\\')
		at++;
	if (at == end || *at != '"')
		return false;
	*to = (struct slice){from, (size_t)(at - from)};
	*p = at + 1;
	return true;
}

static bool
take_number(const char **p, const char *end, int64_t *to)
{
	const char *from = *p;
	int64_t n = 0;

	while (*p < end && **p >= '0' && **p <= '9' && *p - from < MOST_DIGITS)
		n = n * 10 + (*(*p)++ - '0');
	*to = n;
	return *p > from && (*from != '0' || *p - from == 1);
}

static bool
take_word(const char **p, const char *end, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(end - *p) < len || memcmp(*p, word, len) != 0)
		return false;
	*p += len;
	return true;
}

static bool
take_value(const char **p, const char *end, struct member *m)
{
	m->text = (struct slice){NULL, 0};
	m->number = -1;
	if (take_word(p, end, "\""))
		return take_text(p, end, &m->text);
	return take_word(p, end, "true") || take_word(p, end, "false") || take_number(p, end, &m->number);
}

static bool
is_new(struct flat *f, struct slice name)
{
	const unsigned key = (unsigned)name.len * 31 + (name.len > 0 ? (unsigned char)name.data[0] : 0);
	const uint64_t bit = UINT64_C(1) << (key & 63);
	size_t i;

	if (!(f->seen & bit)) {
		f->seen |= bit;
		return true;
	}
	for (i = 0; i < f->n; i++)
		if (slice_eq(f->members[i].name, name))
			return false;
	return true;
}

/* False: it may be JSON all the same. */
static bool
read_flat(struct slice text, struct flat *f)
{
	const char *p = text.data, *end = p + text.len;
	const char *before = "{";
	struct member *m;

	f->n = 0;
	f->seen = 0;
	do {
		m = &f->members[f->n];
		if (f->n == MOST_MEMBERS || !take_word(&p, end, before) || !take_word(&p, end, "\"") ||
		    !take_text(&p, end, &m->name) || !is_new(f, m->name) || !take_word(&p, end, ":") ||
		    !take_value(&p, end, m))
			return false;
		f->n++;
		before = ",";
	} while (p < end && *p != '}');
	return p + 1 == end;
}

static const struct member *
member(const struct flat *f, const char *name)
{
	static const struct member none = {.number = -1};
	size_t i;

	for (i = 0; i < f->n; i++)
		if (slice_is(f->members[i].name, name))
			return &f->members[i];
	return &none;
}

static struct proc_id
flat_id(const struct flat *f, const char *number, const char *ticks)
{
	const int64_t pid = member(f, number)->number, start = member(f, ticks)->number;

	if (pid <= 0 || pid > INT32_MAX || start < 0)
		return (struct proc_id){0};
	return (struct proc_id){(pid_t)pid, (uint64_t)start};
}

static enum attempt_line_kind
kind_of(struct slice kind)
{
	return slice_is(kind, "start")	 ? ATTEMPT_LINE_START
	    : slice_is(kind, "end")	 ? ATTEMPT_LINE_END
	    : slice_is(kind, "worker") ? ATTEMPT_LINE_WORKER
	    : slice_is(kind, "stray")	 ? ATTEMPT_LINE_STRAY
				       : ATTEMPT_LINE_OTHER;
}

static bool
read_quickly(struct slice text, struct attempt_fields *out)
{
	struct flat f;
	const struct member *run;
	int64_t attempt;

	if (!read_flat(text, &f))
		return false;
	attempt = member(&f, "attempt")->number;
	run = member(&f, "run");
	*out = (struct attempt_fields){.kind = kind_of(member(&f, "kind")->text),
	    .op = member(&f, "op")->text,
	    .attempt = (unsigned)attempt,
	    .id = flat_id(&f, "pid", "start"),
	    .reaper = flat_id(&f, "reaper", "reaper_start"),
	    .run = run->text,
	    .class = member(&f, "class")->text};
	/* Whatever is not as it is written is for those who judge it. */
	return (out->kind == ATTEMPT_LINE_END || (out->kind == ATTEMPT_LINE_START && out->id.pid > 0)) &&
	    out->op.data != NULL && attempt >= 1 && attempt <= INT32_MAX &&
	    (run->text.data != NULL || run->name.data == NULL);
}

/* ---- Any line ---- */

static struct proc_id
json_id(const struct json *line, const char *number, const char *ticks)
{
	int64_t pid;
	uint64_t start;

	if (!json_int64(json_get(line, number), &pid) || pid <= 0 || pid > INT32_MAX ||
	    !json_uint64(json_get(line, ticks), &start))
		return (struct proc_id){0};
	return (struct proc_id){(pid_t)pid, start};
}

/* Text that C can hold. */
static struct slice
json_member_text(const struct json *line, const char *name)
{
	const char *text = json_cstr_of(json_get(line, name));

	return text != NULL ? slice_of(text) : (struct slice){NULL, 0};
}

static bool
take_fields(struct json *line, struct attempt_fields *out)
{
	int64_t attempt = 0;

	(void)json_int64(json_get(line, "attempt"), &attempt);
	*out = (struct attempt_fields){.kind = kind_of(json_text(json_get(line, "kind"))),
	    .op = json_member_text(line, "op"),
	    .attempt = attempt < 1 || attempt > INT32_MAX ? 0 : (unsigned)attempt,
	    .id = json_id(line, "pid", "start"),
	    .reaper = json_id(line, "reaper", "reaper_start"),
	    .run = json_member_text(line, "run"),
	    .class = json_member_text(line, "class"),
	    .json = line};
	if (out->kind == ATTEMPT_LINE_START || out->kind == ATTEMPT_LINE_END)
		return out->op.data != NULL && out->attempt > 0 &&
		    (out->kind == ATTEMPT_LINE_END || out->id.pid > 0);
	if (out->kind == ATTEMPT_LINE_STRAY)
		return out->id.pid > 0;
	return json_text(json_get(line, "kind")).data != NULL;
}

int
attempt_line_read(struct slice text, struct attempt_fields *out, struct err *e)
{
	const struct json_options o = {.max_bytes = ATTEMPT_MAX_LINE};
	struct json *line = NULL;
	struct err why = {0};

	if (text.len <= ATTEMPT_MAX_LINE && read_quickly(text, out))
		return 1;
	if (json_parse(text, &o, &line, NULL, &why) != 0 && why.code == ERR_NOMEM)
		return err_nomem(e);
	if (take_fields(line, out))
		return 1;
	json_unref(line);
	out->json = NULL;
	return 0;
}
