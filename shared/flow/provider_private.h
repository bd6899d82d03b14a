/*
 * What the parts of providers share.
 *
 *	provider.c	   finding files           provider_read.c   file to struct
 *	provider_keys.c	   keys and single values  provider_rules.c  its conditions and selectors
 *	provider_words.c   argv from templates     provider_match.c  conditions and selectors
 *	provider_reading.c output to records       provider_judge.c  records to a result
 *	provider_whole.c   one JSON text           ansi.c            escape sequences
 */
#ifndef FLOWSUP_PROVIDER_PRIVATE_H
#define FLOWSUP_PROVIDER_PRIVATE_H

#include "flowsup/provider.h"
#include "pattern.h"

/* One question to a record: the value at pointer, compared. */
enum test_kind { TEST_EQUALS, TEST_ONE_OF, TEST_NOT, TEST_EXISTS, TEST_MATCHES };
struct test {
	struct slice pointer;
	enum test_kind kind;
	const struct json *value;
	struct pattern *pattern; /* of TEST_MATCHES */
};
/* All tests of one alternative hold. */
struct alternative {
	struct test *tests;
	size_t ntests;
};
/* Any alternative holds; none: there is no such condition. */
struct condition {
	struct alternative *list;
	size_t count;
};

enum take { TAKE_LAST, TAKE_FIRST, TAKE_CONCAT, TAKE_SUM };
struct selector {
	struct condition where, after;
	struct slice path;
	enum take take;
	const char *separator; /* of concat */
	bool from_file;	       /* the content of {out}, and nothing else */
};
struct selectors {
	struct selector *list;
	size_t count;
};

struct usage_member {
	const char *name;
	struct selectors selectors;
};

struct failure_rule {
	const char *class;
	struct condition where;
	const struct json *exit; /* array of codes, or NULL */
	struct pattern *error, *errors; /* of what was printed to standard error; or NULL */
};

/* Everything that is asked of records. Owned, with its regular expressions. */
struct provider_rules {
	struct json *document;
	char *file;
	struct condition terminal, acknowledged, failed;
	struct selectors answer, id, error;
	struct usage_member *usage;
	size_t nusage;
	struct failure_rule *failures;
	size_t nfailures;
};

extern const char *const place_words[PLACE_COUNT];

/* Length of the place that begins at text ("{model}"), with *place; 0: a brace that is none. -1:
 * a word in braces that is no place. */
int place_at(const char *text, enum provider_place *place);

/* Patterns look at the beginning of long texts only. Nothing is allocated, and it never takes too many steps. */
bool text_fits(const struct pattern *pattern, struct slice text);
bool condition_holds(const struct condition *c, const struct json *record);
bool condition_given(const struct condition *c);

/* What a list of selectors has found so far. One state per selector. */
struct found {
	struct json *value;
	struct buf text; /* of concat */
	bool any;
	double sum;
	int64_t sum_int;
	bool sum_real;
};
int selectors_see(const struct selectors *s, struct found *states, const struct json *record,
    struct err *e);
void found_clear(struct found *states, size_t n);
/* The first selector with a find: its text (values that are no texts in their encoding). */
int selectors_text(const struct selectors *s, const struct found *states, struct buf *to, bool *any,
    struct err *e);
bool selectors_any(const struct selectors *s, const struct found *states);
/* As a value, for usage; NULL without memory, or when nothing was found. */
struct json *selectors_value(const struct selectors *s, const struct found *states);

/* Where brackets close that opened at the first byte looked at; each byte is looked at once. */
struct brackets {
	size_t at; /* looked at up to here */
	unsigned depth;
	bool in_string, escaped, closed;
};
/* Looks at what text has got since; at is behind the last bracket then. True when it closes. */
bool brackets_close(struct brackets *b, struct slice text);

/* One JSON text as it comes, in `line`; provider_whole.c. */
struct whole {
	size_t from, seek; /* where it begins; where the next line that may begin one is sought */
	bool begun, inside; /* inside: seek is not at the beginning of a line */
	bool line_seen;	    /* that its first line can begin a text */
	bool done, cut; /* cut: it never closed */
	unsigned beginnings;
};

struct provider_reading {
	const struct provider *p;
	provider_sink *sink;
	void *arg;
	struct ansi_filter ansi;
	struct buf line, stripped;
	struct brackets brackets;
	struct whole whole;
	bool passing_over; /* the rest of a line that is too long */
	bool too_large;
	bool ended, acknowledged, failed;
	bool ends_open; /* the last line is a final record, but its end has not come */
	bool mended;	/* a record had bytes that are no UTF-8 */
	bool any_text;
	uint64_t records, skipped, long_lines;
	bool *rule_held;
	struct found *answer, *id, *error, **usage;
};
/* What is left once nothing more comes. */
int reading_rest(struct provider_reading *r, struct err *e);
int reading_record(struct provider_reading *r, const struct json *record, struct err *e);
/* json_parse(), but what is no UTF-8 becomes U+FFFD, and r knows. */
int reading_parse(struct provider_reading *r, struct slice text, size_t most, struct json **out,
    struct json_failure *failure, struct err *e);
int whole_feed(struct provider_reading *r, struct slice text, struct err *e);
int whole_rest(struct provider_reading *r, struct err *e);

#endif
