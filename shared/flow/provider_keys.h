/*
 * Reading a provider's file: one table of keys per object. A function reads a value into `to`; the
 * values belong to the document, which outlives the provider's other members. The first problem is
 * the error, with file, line and column.
 */
#ifndef FLOWSUP_PROVIDER_KEYS_H
#define FLOWSUP_PROVIDER_KEYS_H

#include "provider_private.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct draft {
	struct provider p;
	struct provider_rules r;
};
struct source {
	const char *file;
	struct draft *d;
	struct err *e;
};
struct key;
typedef int key_read(struct source *s, const struct key *k, const struct json *v, void *to);
struct key {
	const char *name;
	key_read *read;
	size_t offset; /* in what keys_read is given */
	bool required;
	const char *const *words; /* of a choice, NULL-terminated */
};
struct table {
	const char *what;
	const struct key *keys;
	size_t count;
};

/* Problems: always -1. `at` may be NULL. */
int key_refuse(struct source *s, const struct json *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int key_wrong_type(struct source *s, const struct key *k, const struct json *v, const char *wanted);
/* -1 unless v has that type and from least to most members; what each is called (plural). */
int key_members(struct source *s, const struct key *k, const struct json *v, enum json_type type,
    const char *what, size_t least, size_t most);
/* With the nearest of the n names as a hint. */
int key_unknown(struct source *s, const char *what, const struct json *at,
    const char *const *names, size_t n);

/* Reads each member by its key into `to` + its offset. */
int keys_read(struct source *s, const struct table *t, const struct json *v, void *to);

/* To const char *. */
key_read key_text, key_any_text, key_text_or_null, key_pattern;
key_read key_bool;     /* to bool */
key_read key_word;     /* to unsigned: its index in k->words */
key_read key_duration; /* to int64_t, in ns */
/* To const struct json *: names of variables, words, an object of variables, an argv with places. */
key_read key_names, key_words, key_texts, key_argv;
int key_word_index(struct source *s, const struct key *k, const struct json *v, unsigned *out);

/* To struct condition, struct selectors, and the rules of s->d. */
key_read rule_condition, rule_selectors, rule_usage, rule_failures;
void rules_clear(struct provider_rules *r);

#endif
