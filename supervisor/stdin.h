/* Standard input as a text, for operands that are `-`. */
#ifndef FLOWSUP_STDIN_H
#define FLOWSUP_STDIN_H

#include <stddef.h>

#include "flowsup/buf.h"

/* Says on standard error what is read from it, where it is a terminal: else nothing seems to happen. */
void stdin_expect(const char *what);
/* The same of an operand that is a path, or "-". */
void stdin_expect_document(const char *path);
/* Appends everything up to its end, and says so. ERR_LIMIT above most bytes, ERR_ENVIRONMENT when it cannot be
 * read. */
int stdin_read(const char *what, size_t most, struct buf *to, struct err *e);

#endif
