/* What is wrong in a flow document, for people and for programs. */
#ifndef FLOWSUP_PROBLEMS_H
#define FLOWSUP_PROBLEMS_H

#include "flowsup/flow.h"

/* "FILE:LINE:COLUMN: text" and the hint of each, on standard error; warnings or what is none. */
void problems_print(const char *file, const struct flow_diagnostics *d, bool warnings);
/* How many are no warnings, with those that were not kept. */
size_t problems_count(const struct flow_diagnostics *d);
/* An array of {line, column, message, hint, warning}; NULL when memory runs out. */
struct json *problems_json(const struct flow_diagnostics *d);
/* "standard input" for "-". */
const char *problems_file(const char *path);

#endif
