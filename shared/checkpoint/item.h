/* Transitions on their way through the writer, and lists of them. */
#ifndef CHECKPOINT_ITEM_H
#define CHECKPOINT_ITEM_H

#include "flowsup/checkpoint.h"

struct item {
	struct item *next;
	struct ckpt_ack ack;
	struct json *entry, *context; /* NULL once they are the tip's */
	size_t line_end;	      /* in the batch; 0: no line was made */
};
/* Takes entry and context over, also on error. ERR_DOCUMENT, ERR_LIMIT. */
struct item *item_new(enum ckpt_kind kind, struct json *entry, struct json *context, struct err *e);
void item_free(struct item *i);

struct list {
	struct item *head, **tail;
};
void list_init(struct list *l);
void list_add(struct list *l, struct item *i);
/* The last one of a list that is not empty. */
struct item *list_last(const struct list *l);
/* The first one, taken out, or NULL. */
struct item *list_take(struct list *l);
/* All of `from` behind what is in `to`. */
void list_move(struct list *to, struct list *from);
void list_clear(struct list *l);

#endif
