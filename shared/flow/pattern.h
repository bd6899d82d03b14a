/*
 * Regular expressions: what somebody wrote is asked of what somebody else printed, so the cost of every
 * answer has a bound. A pattern becomes places, of which all that can stand at a character are followed at
 * once: nothing is ever tried again, and a text takes at most its length times the number of places. An
 * answer that would take more than PATTERN_STEPS is an error, the same one each time it is asked for.
 *
 * The language is that of POSIX extended regular expressions, by characters of UTF-8, with what people
 * write besides: \d \w \s \D \W \S \b \B \n \r \t \f \v \xHH \uHHHH (?:...) and lazy repetitions.
 */
#ifndef FLOWSUP_PATTERN_H
#define FLOWSUP_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flowsup/buf.h"
#include "flowsup/err.h"

enum {
	PATTERN_STEPS = 4 << 20,     /* some tens of milliseconds */
	PATTERN_MAX_COUNT = 10000,   /* n of {n} */
	PATTERN_MAX_PLACES = 32768,  /* with counts written out */
	PATTERN_MAX_DEPTH = 200,     /* of ( in ( */
	PATTERN_FEW_PLACES = 256     /* of these no text of 16 KiB takes too many steps, or memory */
};

struct pattern;

/*
 * Reads a pattern. 0, or -1: ERR_DOCUMENT says what is wrong with it as the rest of a sentence, perhaps with
 * advice; ERR_LIMIT: it has more than `places`; ERR_NOMEM.
 */
int pattern_new(const char *text, size_t places, struct pattern **out, struct err *e);
void pattern_free(struct pattern *p);

/*
 * Whether it fits somewhere in the text, of which bytes that are no UTF-8 count as a character each. 0 with
 * *fits and, if not NULL, *steps; or -1: ERR_LIMIT when it takes too many steps, ERR_NOMEM. May be asked by
 * several threads at once.
 */
int pattern_fits(const struct pattern *p, struct slice text, bool *fits, uint64_t *steps, struct err *e);

/* At most so many bytes of a text, cut between characters. */
struct slice pattern_beginning(struct slice text, size_t bytes);

/* ---- For its two sources ---- */

enum place_kind {
	PLACE_CHAR,  /* stands at the character `c` */
	PLACE_CLASS, /* at one of class a */
	PLACE_ANY,
	PLACE_SPLIT, /* goes on at a and at b */
	PLACE_BEGIN, /* these go on where they hold */
	PLACE_END,
	PLACE_WORD,
	PLACE_NO_WORD,
	PLACE_WORD_BEGIN,
	PLACE_WORD_END,
	PLACE_FOUND
};

struct place {
	enum place_kind kind;
	uint16_t a, b;
	uint32_t c;
};

struct pattern_range {
	uint32_t first, last;
};

/* Characters; those of ASCII stand in bits, the others in ranges. */
struct pattern_class {
	uint64_t ascii[2];
	bool negated;
	size_t range, nranges;
};

struct pattern {
	struct place *places;
	size_t nplaces;
	struct pattern_class *classes;
	size_t nclasses;
	struct pattern_range *ranges;
	size_t nranges;
};

/* The character at text, which is not empty; bytes that are none are numbers above all characters. */
uint32_t pattern_char(struct slice text, size_t *len);

#endif
