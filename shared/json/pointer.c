/* Pointers: RFC 6901. */
#include "pointer.h"

int
pointer_check(struct slice pointer, struct err *e)
{
	size_t i;

	if (pointer.len > 0 && pointer.data[0] != '/')
		return err_set(e, ERR_SYNTAX, "a pointer is empty or begins with '/'");
	for (i = 0; i < pointer.len; i++)
		if (pointer.data[i] == '~' &&
		    (i + 1 == pointer.len || (pointer.data[i + 1] != '0' && pointer.data[i + 1] != '1')))
			return err_set(e, ERR_SYNTAX, "'~' in a pointer without 0 or 1 behind it");
	return 0;
}

/* Decodes once, from the left: "~01" is "~1". */
static struct slice
decoded(struct slice raw, struct buf *scratch)
{
	size_t i;

	buf_reset(scratch);
	for (i = 0; i < raw.len; i++) {
		if (raw.data[i] != '~')
			buf_putc(scratch, raw.data[i]);
		else
			buf_putc(scratch, raw.data[++i] == '0' ? '~' : '/');
	}
	return buf_view(scratch);
}

bool
pointer_next(struct slice *rest, struct slice *token, struct buf *scratch)
{
	struct slice raw;
	const char *slash;

	if (rest->len == 0)
		return false;
	raw = (struct slice){rest->data + 1, rest->len - 1};
	slash = memchr(raw.data, '/', raw.len);
	if (slash != NULL)
		raw.len = (size_t)(slash - raw.data);
	rest->data += raw.len + 1;
	rest->len -= raw.len + 1;
	*token = raw.len > 0 && memchr(raw.data, '~', raw.len) != NULL ? decoded(raw, scratch) : raw;
	return true;
}

bool
pointer_index(struct slice token, size_t *index)
{
	size_t i, n = 0;

	if (token.len == 0 || (token.len > 1 && token.data[0] == '0'))
		return false;
	for (i = 0; i < token.len; i++) {
		unsigned d = (unsigned)(token.data[i] - '0');

		if (token.data[i] < '0' || token.data[i] > '9' || n > (SIZE_MAX - d) / 10)
			return false;
		n = n * 10 + d;
	}
	*index = n;
	return true;
}

int64_t
pointer_place(const struct json *v, struct slice token)
{
	size_t index;

	if (json_type(v) == JSON_OBJECT)
		return json_place(v, token);
	if (json_type(v) != JSON_ARRAY || !pointer_index(token, &index) || index >= json_length(v))
		return NO_PLACE;
	return (int64_t)index;
}

const struct json *
json_pointer_get(const struct json *root, struct slice pointer, struct err *e)
{
	struct slice rest = pointer, token;
	struct buf scratch = {0};
	const struct json *v = root;

	if (pointer_check(pointer, e) == -1)
		return NULL;
	while (v != NULL && pointer_next(&rest, &token, &scratch)) {
		int64_t place = scratch.failed ? NO_PLACE : pointer_place(v, token);

		v = place == NO_PLACE ? NULL :
					json_at_place(v, (size_t)place)[v->type == JSON_OBJECT];
	}
	if (scratch.failed)
		err_nomem(e);
	else if (v == NULL)
		err_set(e, ERR_NOTFOUND, "nothing stands at \"%.*s\"",
		    (int)(pointer.len < 200 ? pointer.len : 200), pointer.data);
	buf_clear(&scratch);
	return v;
}

void
json_pointer_add(struct buf *pointer, struct slice token)
{
	size_t i, from = 0;

	buf_putc(pointer, '/');
	for (i = 0; i < token.len; i++) {
		if (token.data[i] != '~' && token.data[i] != '/')
			continue;
		buf_add(pointer, token.data + from, i - from);
		buf_puts(pointer, token.data[i] == '~' ? "~0" : "~1");
		from = i + 1;
	}
	buf_add(pointer, token.data + from, token.len - from);
}
