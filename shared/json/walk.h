/*
 * A stack of frames for walks that must not recurse. The first WALK_INLINE frames need no memory,
 * which is as deep as anything can be that was read.
 */
#ifndef FLOWSUP_JSON_WALK_H
#define FLOWSUP_JSON_WALK_H

#include <stdlib.h>

#include "value.h"

enum { WALK_INLINE = JSON_MAX_DEPTH + 8 };

struct walk_frame {
	const struct json *a, *b;
	struct json_iter it;
	size_t n;
};

struct walk {
	size_t depth, cap;
	struct walk_frame *more; /* frames from WALK_INLINE on */
	struct walk_frame frame[WALK_INLINE];
};

static inline void
walk_init(struct walk *w)
{
	w->depth = w->cap = 0;
	w->more = NULL;
}

static inline void
walk_clear(struct walk *w)
{
	free(w->more);
}

static inline struct walk_frame *
walk_top(struct walk *w)
{
	size_t i = w->depth - 1;

	return i < WALK_INLINE ? &w->frame[i] : &w->more[i - WALK_INLINE];
}

/* A new frame on top, to be filled in; NULL when memory runs out. */
static inline struct walk_frame *
walk_push(struct walk *w)
{
	if (w->depth >= WALK_INLINE + w->cap) {
		size_t cap = w->cap == 0 ? WALK_INLINE : w->cap * 2;
		struct walk_frame *more;

		if (cap > SIZE_MAX / 2 / sizeof(*more))
			return NULL;
		more = realloc(w->more, cap * sizeof(*more));
		if (more == NULL)
			return NULL;
		w->more = more;
		w->cap = cap;
	}
	w->depth++;
	return walk_top(w);
}

#endif
