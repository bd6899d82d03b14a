/* Readers of single values: strict types, every problem with its place. */
#include <stdlib.h>
#include <strings.h>

#include "flowsup/clock.h"
#include "flowsup/log.h"
#include "flowsup/fs.h"
#include "model.h"

const char *
found(const struct json *v)
{
	switch (json_type(v)) {
	case JSON_NULL:
		return "nothing";
	case JSON_BOOL:
		return json_is_true(v) ? "true" : "false";
	case JSON_INTEGER:
		return "an integer";
	case JSON_REAL:
		return "a number with a fraction";
	case JSON_STRING:
		return "a text";
	case JSON_ARRAY:
		return "a list";
	case JSON_OBJECT:
		break;
	}
	return "an object";
}

static struct flow_diagnostic *
wrong_type(struct reader *r, const struct key *k, const struct json *v)
{
	return problem(r, v, "\"%s\" must be %s, not %s", k->name, k->type, found(v));
}

/* ---- Texts ---- */

/* A byte that was no UTF-8 stands in our own documents as the lone surrogate U+DC00 + byte. */
static bool
is_byte(const char *p, size_t left)
{
	const unsigned char *u = (const unsigned char *)p;

	return left >= 3 && u[0] == 0xed && (u[1] == 0xb2 || u[1] == 0xb3);
}

static void
add_byte(struct buf *to, unsigned char byte)
{
	char three[3] = {'\xed', (char)(byte < 0xc0 ? 0xb2 : 0xb3), (char)(0x80 | (byte & 0x3f))};

	buf_add(to, three, sizeof(three));
}

static size_t
valid_prefix(struct slice s)
{
	struct json *v;
	size_t len, least = s.len < 4 ? s.len : 4;

	for (len = 1; len <= least; len++) {
		v = json_string((struct slice){s.data, len});
		if (v != NULL && !json_has_lone_surrogate(v)) {
			json_unref(v);
			return len;
		}
		json_unref(v);
	}
	return 0;
}

struct json *
bytes_string(struct slice bytes)
{
	struct json *v = json_string(bytes);
	struct buf b = {0};
	size_t i, n;

	if (v != NULL && !json_has_lone_surrogate(v))
		return v;
	json_unref(v);
	for (i = 0; i < bytes.len; i += n > 0 ? n : 1) {
		n = (unsigned char)bytes.data[i] < 0x80
		    ? 1
		    : valid_prefix((struct slice){bytes.data + i, bytes.len - i});
		if (n > 0)
			buf_add(&b, bytes.data + i, n);
		else
			add_byte(&b, (unsigned char)bytes.data[i]);
	}
	v = b.failed ? NULL : json_string(buf_view(&b));
	buf_clear(&b);
	return v;
}

static const char *
keep_bytes(struct reader *r, struct slice text)
{
	struct buf b = {0};
	const char *kept = NULL;
	size_t i;

	for (i = 0; i < text.len; i++) {
		if (is_byte(text.data + i, text.len - i)) {
			buf_putc(&b, (char)(((unsigned char)text.data[i + 1] & 3) << 6 |
				     ((unsigned char)text.data[i + 2] & 0x3f)));
			i += 2;
		} else {
			buf_putc(&b, text.data[i]);
		}
	}
	if (!b.failed)
		kept = intern_text(&r->interned, buf_view(&b));
	buf_clear(&b);
	return kept;
}

const char *
keep_text(struct reader *r, const char *key, const struct json *v)
{
	struct slice text = json_text(v);
	const char *kept;

	if (json_type(v) != JSON_STRING) {
		problem(r, v, "\"%s\" must be a text, not %s", key, found(v));
		return NULL;
	}
	if (text.len > 0 && memchr(text.data, '\0', text.len) != NULL) {
		problem(r, v, "\"%s\" holds a NUL character", key);
		return NULL;
	}
	if (json_has_lone_surrogate(v) && (r->origin == ORIGIN_PERSON || r->origin == ORIGIN_MODEL)) {
		problem(r, v, "\"%s\" holds half of a surrogate pair", key);
		return NULL;
	}
	kept = json_has_lone_surrogate(v) ? keep_bytes(r, text) : intern_text(&r->interned, text);
	if (kept == NULL)
		out_of_memory(r);
	return kept;
}

void
read_any_text(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	const char *text;

	if (json_type(v) != JSON_STRING) {
		wrong_type(r, k, v);
		return;
	}
	text = keep_text(r, k->name, v);
	if (text != NULL)
		*(const char **)to = text;
}

void
read_text(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	if (json_type(v) == JSON_STRING && json_text(v).len == 0)
		problem(r, v, "\"%s\" is empty", k->name);
	else
		read_any_text(r, k, v, to);
}

void
read_command(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	struct slice text = json_text(v);
	struct flow_diagnostic *p;
	size_t i = 0;

	if (json_type(v) != JSON_STRING) {
		p = wrong_type(r, k, v);
		if (json_type(v) == JSON_ARRAY && strcmp(k->name, "run") == 0)
			hint(p, "a program and its arguments are a list: exec: [PROGRAM, ARGUMENT]");
		return;
	}
	while (i < text.len && strchr(" \t\r\n", text.data[i]) != NULL)
		i++;
	if (i == text.len)
		problem(r, v, "\"%s\" is empty", k->name);
	else
		*(const struct json **)to = v;
}

bool
is_id(const char *text)
{
	static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	size_t len = strlen(text);

	return len > 0 && len <= FLOW_MAX_ID && strchr(first, text[0]) != NULL &&
	    strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == len;
}

void
read_id(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	const char *text = NULL;

	/* In a checkpoint of another writer a member that is not given may be null. */
	if (json_type(v) == JSON_NULL && r->origin == ORIGIN_STATE && !(k->flags & KEY_REQUIRED))
		return;
	if (json_type(v) != JSON_STRING) {
		hint(wrong_type(r, k, v), "put it in quotes");
		return;
	}
	text = keep_text(r, k->name, v);
	if (text == NULL)
		return;
	if (!is_id(text)) {
		hint(problem(r, v, "\"%s\" is no valid id: \"%.80s\"", k->name, text),
		    "an id is a letter or digit and then at most 63 letters, digits, '.', '_' or '-'");
		return;
	}
	*(const char **)to = text;
}

void
read_pointer(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	struct err e = {0};
	const char *text = NULL;

	read_any_text(r, k, v, &text);
	if (text == NULL)
		return;
	if (json_pointer_get(v, slice_of(text), &e) == NULL && e.code == ERR_SYNTAX)
		hint(problem(r, v, "\"%s\" is no JSON pointer: \"%.80s\"", k->name, text),
		    "a pointer is empty or begins with /, such as /verdict or /items/0");
	else
		*(const char **)to = text;
}

/* ---- Scalars ---- */

void
read_bool(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	static const char *const yes[] = {"true", "yes", "on", "y"}, *const no[] = {"false", "no", "off", "n"};
	struct flow_diagnostic *p;
	const char *text = json_cstr_of(v);
	size_t i;

	if (json_type(v) == JSON_BOOL) {
		*(bool *)to = json_is_true(v);
		return;
	}
	p = wrong_type(r, k, v);
	for (i = 0; text != NULL && i < sizeof(yes) / sizeof(yes[0]); i++)
		if (strcasecmp(text, yes[i]) == 0 || strcasecmp(text, no[i]) == 0)
			hint(p, "write %s: %s", k->name, strcasecmp(text, yes[i]) == 0 ? "true" : "false");
}

void
read_int64(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	int64_t i;

	if (json_type(v) != JSON_INTEGER)
		wrong_type(r, k, v);
	else if (!json_int64(v, &i) || i < k->least || i > k->most)
		problem(r, v, "\"%s\" must be from %lld to %lld", k->name, (long long)k->least,
		    (long long)k->most);
	else
		*(int64_t *)to = i;
}

void
read_unsigned(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	int64_t i = -1;

	read_int64(r, k, v, &i);
	if (i >= 0)
		*(unsigned *)to = (unsigned)i;
}

void
read_nice(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	struct flow_how *how = to;
	int64_t i = INT64_MIN;

	read_int64(r, k, v, &i);
	if (i == INT64_MIN)
		return;
	how->nice = (int)i;
	how->has_nice = true;
}

void
read_factor(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	double d;

	if (!json_double(v, &d))
		wrong_type(r, k, v);
	else if (d < (double)k->least || d > (double)k->most)
		problem(r, v, "\"%s\" must be from %lld to %lld", k->name, (long long)k->least,
		    (long long)k->most);
	else
		*(double *)to = d;
}

void
read_duration(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	struct buf b = {0};
	struct err e = {0};
	int64_t ns;

	if (json_type(v) == JSON_STRING)
		buf_slice(&b, json_text(v));
	else if (json_type(v) == JSON_INTEGER || json_type(v) == JSON_REAL)
		json_write(&b, v);
	else {
		wrong_type(r, k, v);
		return;
	}
	if (b.failed)
		out_of_memory(r);
	else if (duration_parse(buf_view(&b), &ns, &e) < 0)
		hint(problem(r, v, "\"%s\" must be %s: %s", k->name, k->type, e.msg),
		    "units are w, d, h, m, s, ms: 90s, 2h30m, 1.5h; a bare number is seconds");
	else if (ns == 0)
		problem(r, v, "\"%s\" must be longer than nothing", k->name);
	else if (ns < NS_PER_MS) /* what is recorded and shown goes no further */
		problem(r, v, "\"%s\" must be at least 1ms", k->name);
	else
		*(int64_t *)to = ns;
	buf_clear(&b);
}

void
read_cpu(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	int64_t ns = -1;

	read_duration(r, k, v, &ns);
	if (ns >= 0)
		*(int64_t *)to = (ns + NS_PER_S - 1) / NS_PER_S;
}

void
read_size(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	struct err e = {0};
	uint64_t bytes = 0;
	bool read = false;

	if (json_type(v) == JSON_INTEGER)
		read = json_uint64(v, &bytes);
	else if (json_type(v) == JSON_STRING)
		read = size_parse(json_text(v), &bytes, &e) == 0;
	else {
		wrong_type(r, k, v);
		return;
	}
	if (!read || bytes == 0 || bytes > INT64_MAX)
		hint(problem(r, v, "\"%s\" must be %s%s%s", k->name, k->type,
			 e.msg[0] != '\0' ? ": " : "", e.msg),
		    "sizes are 512k, 64M, 1.5G or a number of bytes");
	else
		*(int64_t *)to = (int64_t)bytes;
}

/* The place of v in the key's words, or SIZE_MAX with a problem. */
static size_t
word_index(struct reader *r, const struct key *k, const struct json *v)
{
	struct flow_diagnostic *p;
	const char *text = json_cstr_of(v), *nearest;
	size_t n = 0;

	for (n = 0; k->words[n] != NULL; n++)
		if (slice_is(json_text(v), k->words[n]))
			return n;
	if (text == NULL) {
		wrong_type(r, k, v);
		return SIZE_MAX;
	}
	p = problem(r, v, "\"%s\" must be %s, not \"%.80s\"", k->name, k->type, text);
	nearest = text_nearest(text, k->words, n);
	if (nearest != NULL)
		hint(p, "did you mean \"%s\"?", nearest);
	return SIZE_MAX;
}

void
read_word(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	size_t i = word_index(r, k, v);

	if (i != SIZE_MAX)
		*(unsigned *)to = (unsigned)i;
}

void
read_flag_word(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	size_t i = word_index(r, k, v);

	if (i != SIZE_MAX)
		*(bool *)to = i == 1;
}

/* YAML 1.2 reads 022 as twenty-two, so a number would be taken for something that nobody means. */
void
read_umask(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	const char *text = json_cstr_of(v);
	size_t len;

	if (text == NULL) {
		hint(wrong_type(r, k, v), "put it in quotes: umask: \"022\"");
		return;
	}
	len = strlen(text);
	if (len == 0 || strspn(text, "01234567") != len)
		problem(r, v, "\"%s\" must be %s", k->name, k->type);
	else if (len > 4 || strtol(text, NULL, 8) > 0777)
		problem(r, v, "\"%s\" must be from 000 to 777", k->name);
	else
		*(int *)to = (int)strtol(text, NULL, 8);
}

/* ---- Values that stay JSON ---- */

void
read_json(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	(void)r;
	(void)k;
	*(const struct json **)to = v;
}

void
read_json_object(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	if (json_type(v) != JSON_OBJECT)
		wrong_type(r, k, v);
	else
		*(const struct json **)to = v;
}

void
read_json_array(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	struct flow_diagnostic *p;

	if (json_type(v) == JSON_ARRAY) {
		*(const struct json **)to = v;
		return;
	}
	p = wrong_type(r, k, v);
	if (json_type(v) == JSON_STRING)
		hint(p, "write a list: %s: [...]", k->name);
}

/* ---- Lists ---- */

static bool
is_command(const struct key *k)
{
	return k->read == read_command_list || k->read == read_notify;
}

static bool
are_texts(struct reader *r, const struct key *k, const struct json *v)
{
	struct json_iter it = json_iterate(v);
	const struct json *item;
	struct flow_diagnostic *p;
	bool good = true;

	if (json_type(v) != JSON_ARRAY) {
		p = wrong_type(r, k, v);
		hint(p, is_command(k) ? "a program and its arguments are a list: %s: [PROGRAM, ARGUMENT]"
				      : "write a list: %s: [...]", k->name);
		return false;
	}
	while (json_next(&it, NULL, &item)) {
		if (json_type(item) == JSON_STRING) {
			good = keep_text(r, k->name, item) != NULL && good;
			continue;
		}
		p = problem(r, item, "\"%s\" holds texts, not %s", k->name, found(item));
		if (json_type(item) != JSON_ARRAY && json_type(item) != JSON_OBJECT)
			hint(p, "put it in quotes");
		good = false;
	}
	return good;
}

void
read_texts_json(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	if (are_texts(r, k, v))
		*(const struct json **)to = v;
}

void
read_command_list(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	if (!are_texts(r, k, v))
		return;
	if (json_length(v) == 0 || json_text(json_at(v, 0)).len == 0)
		hint(problem(r, v, "\"%s\" names no program", k->name),
		    "a program and its arguments are a list: %s: [PROGRAM, ARGUMENT]", k->name);
	else
		*(const struct json **)to = v;
}

enum { APART_MOST = 1000 }; /* of more it is found when they are looked at */

/* The directory itself is no file in it. */
static bool
is_itself(const char *path)
{
	for (; path[0] == '.' && (path[1] == '/' || path[1] == '\0'); path += strspn(path, "/"))
		path++;
	return *path == '\0';
}

/* One of both would have to be a file and a directory. */
static bool
is_below(const char *path, const char *other)
{
	size_t len = strlen(other);

	return strncmp(path, other, len) == 0 && path[len] == '/';
}

static void
check_apart(struct reader *r, const struct key *k, const struct json *v, const char *const *list, size_t n)
{
	size_t i, j;

	for (i = 0; i < n; i++)
		for (j = 0; j < n; j++)
			if (is_below(list[i], list[j])) {
				hint(problem(r, v, "\"%s\" holds \"%.80s\" and \"%.80s\"", k->name, list[j], list[i]),
				    "each is a file: none lies below another");
				return;
			}
}

void
read_paths(struct reader *r, const struct key *k, const struct json *v, void *to)
{
	struct json_iter it = json_iterate(v);
	const struct json *item;
	const char **list, *text;
	size_t n = 0;

	if (!are_texts(r, k, v))
		return;
	list = calloc(json_length(v) + 1, sizeof(*list));
	if (list == NULL) {
		out_of_memory(r);
		return;
	}
	while (json_next(&it, NULL, &item)) {
		text = keep_text(r, k->name, item);
		if (text == NULL || !fs_path_is_inside(text) || is_itself(text))
			hint(problem(r, item, "\"%s\" holds \"%.80s\"", k->name, text ? text : ""),
			    "a path is relative to the operation's artifact directory, without \"..\"");
		else if (r->origin != ORIGIN_STATE && text[strlen(text) - 1] == '/')
			hint(problem(r, item, "\"%s\" holds \"%.80s\", a directory", k->name, text), "name the files in it");
		else
			list[n++] = text;
	}
	if (r->origin != ORIGIN_STATE && n <= APART_MOST)
		check_apart(r, k, v, (const char *const *)list, n);
	*(const char *const **)to = intern(&r->interned, list, (n + 1) * sizeof(*list));
	if (*(const char *const **)to == NULL)
		out_of_memory(r);
	free(list);
}
