#include <stdlib.h>

#include "base.h"
#include "entry.h"
#include "item.h"

void
list_init(struct list *l)
{
	l->head = NULL;
	l->tail = &l->head;
}

void
list_add(struct list *l, struct item *i)
{
	i->next = NULL;
	*l->tail = i;
	l->tail = &i->next;
}

struct item *
list_last(const struct list *l)
{
	struct item *i = l->head;

	while (i->next != NULL)
		i = i->next;
	return i;
}

struct item *
list_take(struct list *l)
{
	struct item *i = l->head;

	if (i == NULL)
		return NULL;
	l->head = i->next;
	if (l->head == NULL)
		l->tail = &l->head;
	return i;
}

void
list_move(struct list *to, struct list *from)
{
	if (from->head == NULL)
		return;
	*to->tail = from->head;
	to->tail = from->tail;
	list_init(from);
}

void
item_free(struct item *i)
{
	json_unref(i->entry);
	json_unref(i->context);
	json_unref(i->ack.identity);
	free(i);
}

void
list_clear(struct list *l)
{
	struct item *i;

	while ((i = list_take(l)) != NULL)
		item_free(i);
}

static int
check_entry(enum ckpt_kind kind, const struct json *entry, struct err *e)
{
	if (kind != CKPT_PLAN)
		return entry_check(kind, entry, NULL, e);
	if (json_type(entry) != JSON_ARRAY)
		return err_set(e, ERR_DOCUMENT, "what is added to a plan is no array");
	return plan_check(entry, NULL, e);
}

struct item *
item_new(enum ckpt_kind kind, struct json *entry, struct json *context, struct err *e)
{
	struct item *i = NULL;

	if (kind == CKPT_CONTEXT ? entry != NULL || context == NULL : entry == NULL)
		err_set(e, ERR_DOCUMENT, "a transition lacks its entry or its context");
	else if (entry != NULL && check_entry(kind, entry, e) != 0) {
		if (e != NULL)
			e->code = ERR_DOCUMENT;
	} else if (entry != NULL && json_depth(entry, CKPT_MAX_ENTRY_DEPTH) > CKPT_MAX_ENTRY_DEPTH) {
		err_set(e, ERR_LIMIT, "an entry is nested more than %d levels deep (CKPT_MAX_ENTRY_DEPTH)",
		    CKPT_MAX_ENTRY_DEPTH);
	} else if (kind == CKPT_CONTEXT &&
	    json_depth(context, CKPT_MAX_CONTEXT_DEPTH) > CKPT_MAX_CONTEXT_DEPTH) {
		err_set(e, ERR_LIMIT, "a context is nested more than %d levels deep "
		    "(CKPT_MAX_CONTEXT_DEPTH)", CKPT_MAX_CONTEXT_DEPTH);
	} else if (context != NULL && json_type(context) != JSON_OBJECT)
		err_set(e, ERR_DOCUMENT, "a context is not an object");
	else if ((i = calloc(1, sizeof(*i))) == NULL)
		err_nomem(e);
	if (i == NULL) {
		json_unref(entry);
		json_unref(context);
		return NULL;
	}
	i->entry = entry;
	i->context = context;
	i->ack.kind = kind;
	if (entry != NULL && kind != CKPT_PLAN)
		i->ack.identity = json_ref(entry_identity(kind, entry));
	return i;
}
