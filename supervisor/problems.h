/* What is wrong in a flow document, for people and for programs. */
#ifndef FLOWSUP_PROBLEMS_H
#define FLOWSUP_PROBLEMS_H

#include "flowsup/flow.h"

struct cli;

/* "FILE:LINE:COLUMN: text" and the hint of each, on standard error; warnings or what is none. Of what is
 * in no file (NULL) the text alone. */
void problems_print(const char *file, const struct flow_diagnostics *d, bool warnings);
/* Warnings of what is made nevertheless: printed, or with --json kept for its object (problems_take_warnings). */
void problems_warn(struct cli *c, const char *file, const struct flow_diagnostics *d);
/* One that is no problem of a document, with its hint. */
void problems_warn_of(struct cli *c, const char *text, const char *hint);
/* An array as problems_json(), the caller's; empty where there were none. */
struct json *problems_take_warnings(struct cli *c);
/* How many are no warnings, with those that were not kept. */
size_t problems_count(const struct flow_diagnostics *d);
/* What an error consists of, before it is said: with --json all of it will stand in its object, else it is
 * printed where there are several; one is the error itself. Returns how many are no warnings. */
size_t problems_refuse(struct cli *c, const char *file, const struct flow_diagnostics *d);
/* The same, and the error: one problem is the error itself, of several it is how many and `behind`; -1. */
int problems_tell(struct cli *c, const char *file, const struct flow_diagnostics *d, const char *behind,
    struct err *e);
/* Reads the configuration, and tells so what is wrong with it. */
struct config;
int problems_config(struct cli *c, struct config *config, const char *behind, struct err *e);
/* An array of {line, column, message, hint, warning}; NULL when memory runs out. */
struct json *problems_json(const struct flow_diagnostics *d);
/* "standard input" for "-". */
const char *problems_file(const char *path);

#endif
