#ifndef FLOWSUP_FLOW_YAML_TEXT_H
#define FLOWSUP_FLOW_YAML_TEXT_H

#include "flowsup/buf.h"
#include "flowsup/json.h"

/* 0, or -1 with ERR_SYNTAX and the offset *at of what no YAML text may hold. */
int yaml_text_check(struct slice text, size_t *at, struct err *e);

/* Where lines begin, so that an offset becomes a line and a column in bytes. Texts are shorter than
 * 4 GiB. */
struct yaml_lines {
	uint32_t *start;
	size_t count;
	size_t length;
};
int yaml_lines_init(struct yaml_lines *l, struct slice text, struct err *e);
void yaml_lines_clear(struct yaml_lines *l);
struct json_where yaml_lines_at(const struct yaml_lines *l, size_t offset);
/* The inverse; a place beyond the text is its end. */
size_t yaml_lines_offset(const struct yaml_lines *l, int line, int column);

/*
 * A scalar by the core schema of YAML 1.2 (10.3.2). tag is the full tag, or empty: then a plain
 * scalar is resolved by its form and any other is a string. -1 with ERR_SYNTAX for a number that
 * JSON cannot hold, for a text that does not fit its tag and for tags outside the schema.
 */
int yaml_scalar(struct slice text, bool plain, struct slice tag, struct json **out, struct err *e);

#endif
