#include <stdlib.h>
#include <string.h>

#include "attempt_line.h"
#include "flowsup/fs.h"

/* Starts and ends of 100,000 operations with many tries each stay far below this. */
#define ATTEMPTS_MAX_BYTES ((size_t)1 << 30)

struct reading {
	struct attempts a;
	char *name;	   /* where the next one goes, in a.names */
	size_t lines_cap, open_cap, strays_cap;
	struct start *starts; /* beside a.open, while reading */
	uint32_t *slots;      /* places in a.open and one more, by operation and attempt; 0: free */
	size_t nslots;	      /* a power of two, more than twice as many as starts */
};

struct start {
	size_t line;
	bool ended, stopped; /* stopped: ended by a stop */
};

static bool
copy_text(const struct json *value, char *to, size_t size)
{
	const char *text = json_cstr_of(value);

	if (text == NULL || strlen(text) >= size)
		return false;
	memcpy(to, text, strlen(text) + 1);
	return true;
}

static bool
read_worker(struct attempts *a, const struct attempt_fields *f)
{
	struct proc_place place;

	if (f->json == NULL || f->id.pid <= 0 ||
	    !copy_text(json_get(f->json, "host"), place.host, sizeof(place.host)) ||
	    !copy_text(json_get(f->json, "boot_id"), place.boot_id, sizeof(place.boot_id)) ||
	    !json_uint64(json_get(f->json, "pid_namespace"), &place.pid_namespace))
		return false;
	a->place = place;
	a->worker = f->id;
	a->has_place = true;
	return true;
}

/* ---- Which start is open ---- */

static size_t
first_slot(const struct reading *r, const char *op, unsigned attempt)
{
	uint64_t h = attempt;

	for (; *op != '\0'; op++)
		h = (h ^ (unsigned char)*op) * UINT64_C(1099511628211);
	return (size_t)(h ^ h >> 32) & (r->nslots - 1);
}

/* The slot of the latest start of this attempt, or the free one for it. */
static uint32_t *
find_slot(const struct reading *r, const char *op, unsigned attempt)
{
	size_t i = first_slot(r, op, attempt);
	const struct attempt *at;

	for (; r->slots[i] != 0; i = (i + 1) & (r->nslots - 1)) {
		at = &r->a.open[r->slots[i] - 1];
		if (at->attempt == attempt && strcmp(at->op, op) == 0)
			break;
	}
	return &r->slots[i];
}

static int
grow_slots(struct reading *r, struct err *e)
{
	size_t n = r->nslots > 0 ? r->nslots * 2 : 128, i;
	uint32_t *slots = calloc(n, sizeof(*slots));

	if (slots == NULL)
		return err_nomem(e);
	free(r->slots);
	r->slots = slots;
	r->nslots = n;
	for (i = 0; i < r->a.nopen; i++)
		*find_slot(r, r->a.open[i].op, r->a.open[i].attempt) = (uint32_t)i + 1;
	return 0;
}

static int
grow_open(struct reading *r, struct err *e)
{
	size_t cap = r->open_cap ? r->open_cap * 2 : 64;
	struct attempt *open = reallocarray(r->a.open, cap, sizeof(*open));
	struct start *starts;

	if (open == NULL)
		return err_nomem(e);
	r->a.open = open;
	starts = reallocarray(r->starts, cap, sizeof(*starts));
	if (starts == NULL)
		return err_nomem(e);
	r->starts = starts;
	r->open_cap = cap;
	return 0;
}

/* The same attempt a second time takes over the slot; the first one stays open for ever, so that its
 * processes are still looked for. */
static int
add_start(struct reading *r, const struct attempt_line *line, const struct attempt_fields *f, struct err *e)
{
	if (r->a.nopen == r->open_cap && grow_open(r, e) != 0)
		return -1;
	if (r->a.nopen * 2 >= r->nslots && grow_slots(r, e) != 0)
		return -1;
	*find_slot(r, line->op, line->attempt) = (uint32_t)r->a.nopen + 1;
	r->starts[r->a.nopen] = (struct start){.line = r->a.nlines};
	r->a.open[r->a.nopen++] = (struct attempt){
	    .op = line->op, .attempt = line->attempt, .id = f->id, .reaper = f->reaper};
	return 0;
}

static void
add_end(struct reading *r, const struct attempt_line *line, struct slice class)
{
	uint32_t start = r->nslots > 0 ? *find_slot(r, line->op, line->attempt) : 0;

	if (start == 0)
		return;
	r->starts[start - 1].ended = true;
	r->starts[start - 1].stopped = slice_is(class, "cancelled");
	r->a.nstopped += r->starts[start - 1].stopped;
}

static int
keep_start(struct reading *r, size_t i, struct attempt *to, struct err *e)
{
	*to = r->a.open[i];
	to->line = attempt_line_json(&r->a.lines[r->starts[i].line]);
	if (to->line == NULL)
		return err_nomem(e);
	to->run = json_cstr_of(json_get(to->line, "run"));
	return 0;
}

/* Of all starts those without an end, and apart from them those that a stop ended. */
static int
keep_unfinished(struct reading *r, struct err *e)
{
	struct attempts *a = &r->a;
	size_t i, kept = 0;

	a->stopped = calloc(a->nstopped + 1, sizeof(*a->stopped));
	if (a->stopped == NULL)
		return err_nomem(e);
	a->nstopped = 0;
	for (i = 0; i < a->nopen; i++) {
		if (r->starts[i].stopped && keep_start(r, i, &a->stopped[a->nstopped++], e) != 0)
			return -1;
		if (!r->starts[i].ended && keep_start(r, i, &a->open[kept++], e) != 0)
			return -1;
	}
	a->nopen = kept;
	return 0;
}

/* ---- Lines ---- */

static int
grow_lines(struct reading *r, struct err *e)
{
	size_t cap = r->lines_cap ? r->lines_cap * 2 : 64;
	struct attempt_line *lines = reallocarray(r->a.lines, cap, sizeof(*lines));

	if (lines == NULL)
		return err_nomem(e);
	r->a.lines = lines;
	r->lines_cap = cap;
	return 0;
}

/* A copy with a NUL; in its line the name had two quotes, so that there is room. */
static const char *
keep_name(struct reading *r, struct slice name)
{
	char *to = r->name;

	memcpy(to, name.data, name.len);
	to[name.len] = '\0';
	r->name = to + name.len + 1;
	return to;
}

static bool
is_run(struct slice run)
{
	char id[RUN_ID_TEXT];

	if (run.len >= sizeof(id))
		return false;
	memcpy(id, run.data, run.len);
	id[run.len] = '\0';
	return run_id_is_valid(id);
}

static int
add_stray(struct reading *r, struct proc_id id, struct err *e)
{
	size_t cap = r->strays_cap ? r->strays_cap * 2 : 8;
	struct proc_id *more;

	if (r->a.nstrays == r->strays_cap) {
		more = reallocarray(r->a.strays, cap, sizeof(*more));
		if (more == NULL)
			return err_nomem(e);
		r->a.strays = more;
		r->strays_cap = cap;
	}
	r->a.strays[r->a.nstrays++] = id;
	return 0;
}

/* 1: a line of use, 0: one to be set aside, -1: out of memory. */
static int
take_fields(struct reading *r, struct attempt_line *line, const struct attempt_fields *f, struct err *e)
{
	line->kind = f->kind;
	if (f->kind == ATTEMPT_LINE_WORKER)
		return read_worker(&r->a, f);
	if (f->kind == ATTEMPT_LINE_OTHER)
		return 1; /* of a newer version */
	if (f->kind == ATTEMPT_LINE_STRAY)
		return add_stray(r, f->id, e) == 0 ? 1 : -1;
	if (f->kind == ATTEMPT_LINE_START && f->run.data != NULL && !is_run(f->run))
		return 0;
	line->op = keep_name(r, f->op);
	line->attempt = f->attempt;
	if (f->kind == ATTEMPT_LINE_START)
		return add_start(r, line, f, e) == 0 ? 1 : -1;
	add_end(r, line, f->class);
	return 1;
}

static int
add_line(struct reading *r, struct slice text, struct err *e)
{
	struct attempt_line line = {.text = text};
	struct attempt_fields f = {0};
	int use;

	if (text.len == 0)
		return 0; /* ends a line that was cut for want of room */
	if (r->a.nlines == r->lines_cap && grow_lines(r, e) != 0)
		return -1;
	use = attempt_line_read(text, &f, e);
	if (use == 1)
		use = take_fields(r, &line, &f, e);
	if (use == 1) {
		line.json = f.json;
		r->a.lines[r->a.nlines++] = line;
		return 0;
	}
	json_unref(f.json);
	r->a.damaged += use == 0;
	return use;
}

/* The next whole line of *text, which loses it; false: there is none. */
static bool
next_line(struct slice *text, struct slice *line)
{
	const char *end = text->len > 0 ? memchr(text->data, '\n', text->len) : NULL;

	if (end == NULL)
		return false;
	*line = (struct slice){text->data, (size_t)(end - text->data)};
	*text = (struct slice){end + 1, text->len - line->len - 1};
	return true;
}

static int
add_lines(struct reading *r, struct err *e)
{
	struct slice text = buf_view(&r->a.text), line;

	r->name = r->a.names = malloc(text.len + 1);
	if (r->name == NULL)
		return err_nomem(e);
	while (next_line(&text, &line))
		if (add_line(r, line, e) != 0)
			return -1;
	r->a.torn = text.len > 0;
	return keep_unfinished(r, e);
}

/* No file: nothing was ever started. */
static int
read_log(int run_fd, struct buf *text, struct err *e)
{
	struct err why = {0};

	if (fs_read_private_file(run_fd, RUN_ATTEMPTS, ATTEMPTS_MAX_BYTES, text, &why) == 0 ||
	    why.code == ERR_NOTFOUND)
		return 0;
	if (e != NULL)
		*e = why;
	return -1;
}

int
attempts_read(int run_fd, struct attempts *out, struct err *e)
{
	struct reading r = {.nslots = 0};
	int rc = read_log(run_fd, &r.a.text, e);

	if (rc == 0)
		rc = add_lines(&r, e);
	if (rc == 0) {
		*out = r.a;
		r.a = (struct attempts){0};
	}
	attempts_clear(&r.a);
	free(r.starts);
	free(r.slots);
	return rc;
}

/* Whether it can be one: its kind stands there, unless an escape hides it. */
static bool
may_be_worker(struct slice line)
{
	static const char word[] = "\"worker\"";

	return memmem(line.data, line.len, word, strlen(word)) != NULL ||
	    memchr(line.data, '\\', line.len) != NULL;
}

int
attempts_read_place(int run_fd, struct attempts *out, struct err *e)
{
	struct attempts a = {0};
	struct buf text = {0};
	int rc = read_log(run_fd, &text, e);
	struct slice rest = buf_view(&text), line;
	struct attempt_fields f;

	while (rc == 0 && next_line(&rest, &line)) {
		int use = may_be_worker(line) ? attempt_line_read(line, &f, e) : 0;

		if (use == 1 && f.kind == ATTEMPT_LINE_WORKER)
			(void)read_worker(&a, &f);
		if (use == 1)
			json_unref(f.json);
		rc = use < 0 ? -1 : 0;
	}
	a.torn = rest.len > 0;
	buf_clear(&text);
	if (rc == 0)
		*out = a;
	return rc;
}

struct attempt_line *
attempts_worker_line(const struct attempts *a)
{
	size_t i = a->nlines;

	while (i-- > 0)
		if (a->lines[i].kind == ATTEMPT_LINE_WORKER)
			return &a->lines[i];
	return NULL;
}

/* It was looked at already: all that can be wrong is memory. */
const struct json *
attempt_line_json(struct attempt_line *line)
{
	if (line->json == NULL)
		(void)json_parse(line->text, NULL, &line->json, NULL, NULL);
	return line->json;
}

bool
attempts_any_leaves(const struct attempts *a)
{
	size_t i;

	for (i = 0; i < a->nlines; i++)
		if (a->lines[i].kind == ATTEMPT_LINE_START &&
		    json_is_true(json_get(attempt_line_json(&a->lines[i]), "leave")))
			return true;
	return false;
}

bool
attempts_stray_lives(const struct attempts *a, size_t stray)
{
	struct proc_stat st;
	size_t i;

	if (!proc_is_alive(a->strays[stray]) || proc_stat_read(a->strays[stray].pid, &st, NULL) != 0)
		return false;
	for (i = 0; i < a->nopen; i++)
		if (a->open[i].id.pid == st.session)
			return false;
	return true;
}

void
attempts_stray_line(struct proc_id id, struct buf *to)
{
	buf_printf(to, "{\"kind\":\"stray\",\"pid\":%d,\"start\":%llu}\n", (int)id.pid,
	    (unsigned long long)id.start_ticks);
}

void
attempts_clear(struct attempts *a)
{
	size_t i;

	for (i = 0; i < a->nlines; i++)
		json_unref(a->lines[i].json);
	free(a->lines);
	free(a->open);
	free(a->stopped);
	free(a->strays);
	free(a->names);
	buf_clear(&a->text);
	*a = (struct attempts){0};
}
