#include "value.h"
#include "walk.h"

unsigned
json_depth(const struct json *v, unsigned most)
{
	unsigned deepest = 0;
	struct walk_frame *f;
	struct walk w;

	walk_init(&w);
	for (;;) {
		if (v != NULL && is_container(v)) {
			if (w.depth + 1 > deepest)
				deepest = (unsigned)w.depth + 1;
			/* Without memory for another frame it is taken for too deep. */
			f = deepest > most ? NULL : walk_push(&w);
			if (f == NULL) {
				deepest = most + 1;
				break;
			}
			*f = (struct walk_frame){.a = v, .it = json_iterate(v)};
		}
		while (w.depth > 0 && !json_next(&walk_top(&w)->it, NULL, &v))
			w.depth--;
		if (w.depth == 0)
			break;
	}
	walk_clear(&w);
	return deepest;
}
