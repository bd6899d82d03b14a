/* When a failed attempt is followed by another, and after how long. */
#include "flowsup/flow.h"

static bool
names_failure(const struct json *item, const char *failure, int code)
{
	int64_t wanted;

	if (json_int64(item, &wanted))
		return strcmp(failure, "exit") == 0 && wanted == code;
	return slice_is(json_text(item), failure);
}

bool
flow_retry_applies(const struct flow_retry *r, const char *failure, int code, unsigned attempts)
{
	struct json_iter it;
	const struct json *item;

	if (attempts >= r->attempts)
		return false;
	if (r->on == NULL)
		return strcmp(failure, "crash") != 0;
	it = json_iterate(r->on);
	while (json_next(&it, NULL, &item))
		if (names_failure(item, failure, code))
			return true;
	return false;
}

int64_t
flow_retry_delay_ns(const struct flow_retry *r, unsigned attempts, uint64_t random)
{
	double most = (double)r->max_ns, delay = (double)r->backoff_ns;
	unsigned i;

	/* Growing stops at the limit, so no product overflows; a factor of 1 has nothing to grow. */
	for (i = 1; i < attempts && delay < most && r->factor > 1; i++)
		delay *= r->factor;
	if (delay > most)
		delay = most;
	if (r->jitter)
		delay *= 0.5 + 0.5 * ((double)(random >> 11) / (double)(UINT64_C(1) << 53));
	return (int64_t)delay;
}
