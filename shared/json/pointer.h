/* Steps of a pointer (RFC 6901), for pointers and patches. */
#ifndef FLOWSUP_JSON_POINTER_H
#define FLOWSUP_JSON_POINTER_H

#include "value.h"

/* 0, or -1 with ERR_SYNTAX. The other functions want a pointer that passed. */
int pointer_check(struct slice pointer, struct err *e);
/* Takes the first token off *rest, decoded; it may lie in scratch, which may have failed. False
 * when there is none. */
bool pointer_next(struct slice *rest, struct slice *token, struct buf *scratch);
/* Digits without a leading zero. */
bool pointer_index(struct slice token, size_t *index);
/* The place of the member or element, or NO_PLACE. */
int64_t pointer_place(const struct json *v, struct slice token);

/* patch.c: as json_patch, of a value of any type and with operations known to be well formed. */
int patch_apply(const struct json *root, const struct json *operations, struct json **out,
    struct err *e);

#endif
