/* What a provider's file asks of records: conditions, selectors and failures. */
#include <stdlib.h>

#include "provider_keys.h"

enum { ALTERNATIVES_MOST = 16, RULES_MOST = 64, PATTERN_MOST = 1024 };

/* ---- Conditions ---- */

static int
read_pattern(struct source *s, const struct json *v, struct pattern **to)
{
	const char *text = json_cstr_of(v);
	struct err why = {0};

	if (text == NULL || strlen(text) > PATTERN_MOST)
		return key_refuse(s, v, "a pattern is a text of at most %d bytes", PATTERN_MOST);
	if (pattern_new(text, PATTERN_FEW_PLACES, to, &why) == 0)
		return 0;
	if (why.code == ERR_NOMEM)
		return err_nomem(s->e);
	if (why.code == ERR_LIMIT)
		return key_refuse(s, v, "\"%.60s\" is too costly: %s", text, why.msg);
	return key_refuse(s, v, "\"%.60s\" is no extended regular expression: %s", text, why.msg);
}

static int
read_comparison(struct source *s, const struct json *v, struct test *t)
{
	static const char *const words[] = {"not", "exists", "matches", NULL};
	struct json_iter it = json_iterate(v);
	const struct json *value;
	struct slice name;

	if (json_length(v) != 1)
		return key_refuse(s, v, "a comparison has exactly one of not, exists and matches");
	json_next(&it, &name, &value);
	t->value = value;
	if (slice_is(name, "not")) {
		t->kind = TEST_NOT;
	} else if (slice_is(name, "exists")) {
		t->kind = TEST_EXISTS;
		if (json_type(value) != JSON_BOOL)
			return key_refuse(s, value, "\"exists\" is true or false");
	} else if (slice_is(name, "matches")) {
		if (read_pattern(s, value, &t->pattern) != 0)
			return -1;
		t->kind = TEST_MATCHES;
	} else {
		return key_unknown(s, "no comparison is called", json_iter_name(&it), words, 3);
	}
	return 0;
}

static int
check_pointer(struct source *s, const struct json *at, struct slice text)
{
	struct err e = {0};
	struct json *nothing = json_object();

	/* Whether it is well formed shows by looking something up: absent is fine. */
	if (nothing == NULL)
		return err_nomem(s->e);
	json_pointer_get(nothing, text, &e);
	json_unref(nothing);
	return e.code == ERR_SYNTAX ? key_refuse(s, at, "%s", e.msg) : 0;
}

static int
read_test(struct source *s, const struct json *name, const struct json *v, struct test *t)
{
	t->pointer = json_text(name);
	t->value = v;
	if (check_pointer(s, name, t->pointer) != 0)
		return -1;
	if (json_type(v) == JSON_OBJECT)
		return read_comparison(s, v, t);
	t->kind = json_type(v) == JSON_ARRAY ? TEST_ONE_OF : TEST_EQUALS;
	return 0;
}

static int
read_alternative(struct source *s, const struct json *v, struct alternative *a)
{
	struct json_iter it = json_iterate(v);
	const struct json *value;

	if (json_type(v) != JSON_OBJECT || json_length(v) == 0)
		return key_refuse(s, v, "a condition is an object of pointers and values, not empty");
	a->tests = calloc(json_length(v), sizeof(*a->tests));
	if (a->tests == NULL)
		return err_nomem(s->e);
	while (json_next(&it, NULL, &value)) {
		/* Counted once it is whole: only then a pattern has to be given back. */
		if (read_test(s, json_iter_name(&it), value, &a->tests[a->ntests]) != 0)
			return -1;
		a->ntests++;
	}
	return 0;
}

int
rule_condition(struct source *s, const struct key *k, const struct json *v, void *to)
{
	struct condition *c = to;
	size_t n = json_type(v) == JSON_ARRAY ? json_length(v) : 1, i;

	if (n == 0 || n > ALTERNATIVES_MOST)
		return key_refuse(s, v, "\"%s\" has from 1 to %d alternatives", k->name, ALTERNATIVES_MOST);
	c->list = calloc(n, sizeof(*c->list));
	if (c->list == NULL)
		return err_nomem(s->e);
	for (i = 0; i < n; i++) {
		c->count = i + 1;
		if (read_alternative(s, json_type(v) == JSON_ARRAY ? json_at(v, i) : v,
			&c->list[i]) != 0)
			return -1;
	}
	return 0;
}

/* ---- Selectors ---- */

static int
read_path(struct source *s, const struct key *k, const struct json *v, void *to)
{
	if (json_type(v) != JSON_STRING)
		return key_wrong_type(s, k, v, "a JSON pointer");
	*(struct slice *)to = json_text(v);
	return check_pointer(s, v, json_text(v));
}

static const char *const take_words[] = {"last", "first", "concat", "sum", NULL};

#define SELECTOR(member) offsetof(struct selector, member)
static const struct key selector_keys[] = {
    {"where", rule_condition, SELECTOR(where), false, NULL},
    {"after", rule_condition, SELECTOR(after), false, NULL},
    {"path", read_path, SELECTOR(path), false, NULL},
    {"take", key_word, SELECTOR(take), false, take_words},
    {"separator", key_any_text, SELECTOR(separator), false, NULL},
    {"file", key_bool, SELECTOR(from_file), false, NULL},
};
static const struct table selector_table = {"a selector", selector_keys, COUNT(selector_keys)};

static int
read_selector(struct source *s, const struct json *v, struct selector *to)
{
	if (keys_read(s, &selector_table, v, to) != 0)
		return -1;
	if (to->from_file) {
		s->d->p.writes_out = true;
		if (json_length(v) != 1)
			return key_refuse(s, v, "a selector with \"file\" has nothing else");
		return 0;
	}
	if (to->path.data == NULL)
		return key_refuse(s, v, "a selector needs the key \"path\"");
	if (to->separator != NULL && to->take != TAKE_CONCAT)
		return key_refuse(s, v, "\"separator\" goes with \"take\": \"concat\"");
	return 0;
}

int
rule_selectors(struct source *s, const struct key *k, const struct json *v, void *to)
{
	struct selectors *list = to;
	size_t n = json_type(v) == JSON_ARRAY ? json_length(v) : 1, i;

	if (n == 0 || n > ALTERNATIVES_MOST)
		return key_refuse(s, v, "\"%s\" has from 1 to %d selectors", k->name, ALTERNATIVES_MOST);
	list->list = calloc(n, sizeof(*list->list));
	if (list->list == NULL)
		return err_nomem(s->e);
	for (i = 0; i < n; i++) {
		list->count = i + 1;
		if (read_selector(s, json_type(v) == JSON_ARRAY ? json_at(v, i) : v,
			&list->list[i]) != 0)
			return -1;
	}
	return 0;
}

int
rule_usage(struct source *s, const struct key *k, const struct json *v, void *to)
{
	struct provider_rules *r = &s->d->r;
	struct json_iter it = json_iterate(v);
	const struct json *value;
	struct usage_member *m;

	(void)to;
	if (key_members(s, k, v, JSON_OBJECT, "selectors", 0, RULES_MOST) != 0)
		return -1;
	r->usage = calloc(json_length(v) + 1, sizeof(*r->usage));
	if (r->usage == NULL)
		return err_nomem(s->e);
	while (json_next(&it, NULL, &value)) {
		m = &r->usage[r->nusage++];
		m->name = json_cstr_of(json_iter_name(&it));
		if (m->name == NULL)
			return key_refuse(s, value, "a member of \"usage\" has a name without NUL");
		if (rule_selectors(s, k, value, &m->selectors) != 0)
			return -1;
	}
	return 0;
}

/* ---- Failures ---- */

static const char *const failure_classes[] = {"agent_error", "auth", "limit", "rate_limited",
    "session_lost", "denied", "response", NULL};

static int
read_class(struct source *s, const struct key *k, const struct json *v, void *to)
{
	unsigned n = 0;

	if (key_word_index(s, k, v, &n) != 0)
		return -1;
	*(const char **)to = failure_classes[n];
	return 0;
}

static int
read_codes(struct source *s, const struct key *k, const struct json *v, void *to)
{
	struct json_iter it = json_iterate(v);
	const struct json *item;
	int64_t n;

	if (key_members(s, k, v, JSON_ARRAY, "exit codes", 1, SIZE_MAX) != 0)
		return -1;
	while (json_next(&it, NULL, &item))
		if (!json_int64(item, &n) || n < 1 || n > 255)
			return key_refuse(s, item, "an exit code of a failure is from 1 to 255");
	*(const struct json **)to = v;
	return 0;
}

static int
read_error_pattern(struct source *s, const struct key *k, const struct json *v, void *to)
{
	struct failure_rule *rule = to;

	(void)k;
	return read_pattern(s, v, &rule->error);
}

static int
read_stderr_pattern(struct source *s, const struct key *k, const struct json *v, void *to)
{
	struct failure_rule *rule = to;

	(void)k;
	return read_pattern(s, v, &rule->errors);
}

#define RULE(member) offsetof(struct failure_rule, member)
static const struct key failure_keys[] = {
    {"class", read_class, RULE(class), true, failure_classes},
    {"where", rule_condition, RULE(where), false, NULL},
    {"exit", read_codes, RULE(exit), false, NULL},
    {"error", read_error_pattern, 0, false, NULL},
    {"stderr", read_stderr_pattern, 0, false, NULL},
};
static const struct table failure_table = {"a failure", failure_keys, COUNT(failure_keys)};

int
rule_failures(struct source *s, const struct key *k, const struct json *v, void *to)
{
	struct provider_rules *r = &s->d->r;
	struct json_iter it = json_iterate(v);
	const struct json *item;

	(void)to;
	if (key_members(s, k, v, JSON_ARRAY, "rules", 0, RULES_MOST) != 0)
		return -1;
	r->failures = calloc(json_length(v) + 1, sizeof(*r->failures));
	if (r->failures == NULL)
		return err_nomem(s->e);
	while (json_next(&it, NULL, &item)) {
		if (keys_read(s, &failure_table, item, &r->failures[r->nfailures++]) != 0)
			return -1;
		if (json_length(item) < 2)
			return key_refuse(s, item, "a failure needs where, exit, error or stderr");
	}
	return 0;
}

/* ---- Giving back ---- */

static void
clear_condition(struct condition *c)
{
	size_t i, n;

	for (i = 0; i < c->count; i++) {
		for (n = 0; n < c->list[i].ntests; n++)
			pattern_free(c->list[i].tests[n].pattern);
		free(c->list[i].tests);
	}
	free(c->list);
}

static void
clear_selectors(struct selectors *s)
{
	size_t i;

	for (i = 0; i < s->count; i++) {
		clear_condition(&s->list[i].where);
		clear_condition(&s->list[i].after);
	}
	free(s->list);
}

void
rules_clear(struct provider_rules *r)
{
	size_t i;

	clear_condition(&r->terminal);
	clear_condition(&r->acknowledged);
	clear_condition(&r->failed);
	clear_selectors(&r->answer);
	clear_selectors(&r->id);
	clear_selectors(&r->error);
	for (i = 0; i < r->nusage; i++)
		clear_selectors(&r->usage[i].selectors);
	for (i = 0; i < r->nfailures; i++) {
		clear_condition(&r->failures[i].where);
		pattern_free(r->failures[i].error);
		pattern_free(r->failures[i].errors);
	}
	free(r->usage);
	free(r->failures);
	free(r->file);
	json_unref(r->document);
}
