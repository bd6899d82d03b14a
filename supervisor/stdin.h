/* Standard input as a text, for operands that are `-`. */
#ifndef FLOWSUP_STDIN_H
#define FLOWSUP_STDIN_H

#include <stddef.h>

#include "flowsup/buf.h"

/* Appends everything up to its end. ERR_LIMIT above most bytes, ERR_ENVIRONMENT when it cannot be
 * read. */
int stdin_read(size_t most, struct buf *to, struct err *e);

#endif
