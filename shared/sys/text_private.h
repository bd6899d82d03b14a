/* The step below text_neutralise, for places that must not allocate. */
#ifndef FLOWSUP_TEXT_PRIVATE_H
#define FLOWSUP_TEXT_PRIVATE_H

#include <stdint.h>

#include "flowsup/buf.h"

enum { TEXT_UNIT = 12 };

/* Puts the harmless form of the first character of `in` (not empty) into `to`, NUL-terminated.
 * Returns how many bytes of `in` it stands for. */
size_t text_harmless_unit(struct slice in, bool newline, char to[TEXT_UNIT]);

#endif
