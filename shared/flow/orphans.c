/* What becomes of operations whose worker has died. */
#include "flowsup/clock.h"
#include "flowsup/flow.h"

int64_t
flow_orphans_ns(const struct json *orphans)
{
	const struct json *keep = json_get(orphans, "keep");
	struct buf text = {0};
	int64_t ns = FLOW_ORPHANS_S * NS_PER_S;

	if (slice_is(json_text(orphans), "end"))
		return 0;
	if (slice_is(json_text(orphans), "keep"))
		return FLOW_ORPHANS_KEPT;
	if (json_type(keep) == JSON_STRING)
		buf_slice(&text, json_text(keep));
	else if (keep != NULL)
		json_write(&text, keep);
	if (text.len > 0 && duration_parse(buf_view(&text), &ns, NULL) != 0)
		ns = FLOW_ORPHANS_S * NS_PER_S; /* the reader of documents lets none of these pass */
	buf_clear(&text);
	return ns;
}
