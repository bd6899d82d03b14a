/* Checking an object's members against a table. */
#include <assert.h>

#include "refusal.h"

int
refuse(struct refusal *r, const char *reason, const struct json *at, struct err *e,
    const char *what)
{
	if (r != NULL)
		*r = (struct refusal){.reason = reason, .at = at, .line = -1, .offset = -1};
	return err_set(e, ERR_CHECKPOINT, "%s", what);
}

/* The number of the field, or `count`. Most differ in their first letter. */
static size_t
find(const struct field *fields, size_t count, struct slice name)
{
	size_t i;

	if (name.len == 0)
		return count;
	for (i = 0; i < count; i++)
		if (fields[i].name[0] == name.data[0] && slice_is(name, fields[i].name))
			break;
	return i;
}

int
fields_check(const struct json *object, const struct field *fields, size_t count, bool closed,
    const char *unknown, struct refusal *r, struct err *e)
{
	struct json_iter it = json_iterate(object);
	const struct json *value;
	uint64_t seen = 0; /* a bit for each field */
	struct slice name;
	size_t i;

	assert(count <= 64);
	while (json_next(&it, &name, &value)) {
		i = find(fields, count, name);
		if (i == count && closed)
			return refuse(r, unknown, value, e, "a member that is not known");
		if (i == count)
			continue;
		seen |= UINT64_C(1) << i;
		if ((fields[i].types & (1u << json_type(value))) == 0) {
			refuse(r, "wrong_type", value, e, "");
			return err_set(e, ERR_CHECKPOINT, "`%s` may not be of type %s", fields[i].name,
			    json_type_name(value));
		}
	}
	for (i = 0; i < count; i++)
		if (fields[i].required && !(seen >> i & 1)) {
			refuse(r, "missing_member", object, e, "");
			return err_set(e, ERR_CHECKPOINT, "`%s` is missing", fields[i].name);
		}
	return 0;
}
