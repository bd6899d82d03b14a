/*
 * Where the strings, words and containers of a JSON text stand, one after the other, as jsmn finds
 * them. It goes only some way ahead, so that their number costs no memory and a text is looked at
 * while it is near. Its verdict is not asked for: where it stops early there are no more tokens, and
 * the reader, which looks at every byte between them, finds out why.
 */
#ifndef FLOWSUP_JSON_TOKENS_H
#define FLOWSUP_JSON_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

enum token_type { TOKEN_STRING, TOKEN_WORD, TOKEN_OBJECT, TOKEN_ARRAY };

struct tokens;

/* The text stays the caller's and must live as long, no longer than INT_MAX. NULL without memory. */
struct tokens *tokens_open(const char *text, size_t len);
void tokens_close(struct tokens *t); /* NULL is harmless */

/* Whether the next token is of this type and begins at `start`, which is the quote of a string; if so
 * it is taken. *end: behind a word, at the closing quote of a string; not set for containers. */
bool tokens_take(struct tokens *t, enum token_type type, size_t start, size_t *end);
/* Memory ran out: there are no more tokens for that reason. */
bool tokens_failed(const struct tokens *t);

#endif
