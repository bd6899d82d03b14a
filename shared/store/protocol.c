#include <assert.h>
#include <string.h>

#include "flowsup/fs.h"
#include "flowsup/ipc.h"
#include "flowsup/protocol.h"
#include "members.h"

static const struct {
	const char *word;
	unsigned from;
	size_t most;
	const char *members;
} table[MESSAGE_TYPES] = {
#define X(name, word, from, most, members) [name] = {word, from, most, members},
    MESSAGE_TABLE(X)
#undef X
};

#define X(name, word, from, most, members)                                                         \
	_Static_assert((most) > 0 && (most) <= IPC_MAX_PACKET, "a message fits into a packet");
MESSAGE_TABLE(X)
#undef X

enum { PROTOCOL_DEPTH = 64 };

const char *
message_word(enum message_type type)
{
	assert(type < MESSAGE_TYPES);
	return table[type].word;
}

void
message_clear(struct message *m)
{
	json_unref(m->body);
	m->body = NULL;
}

static int
find_type(const struct json *body, enum message_type *type, struct err *e)
{
	struct slice word = json_text(json_get(body, "type"));
	unsigned i;

	if (word.data == NULL)
		return err_set(e, ERR_PROTOCOL, "a message without a type");
	for (i = 0; i < MESSAGE_TYPES; i++)
		if (slice_is(word, table[i].word))
			break;
	if (i == MESSAGE_TYPES)
		return err_set(e, ERR_PROTOCOL, "a message of an unknown type");
	*type = (enum message_type)i;
	return 0;
}

/* Within one major version every newer minor one is understood; across, nothing is. */
static int
check_version(const struct json *hello, struct err *e)
{
	int64_t major = -1, minor = -1;

	json_int64(json_get(hello, "major"), &major);
	json_int64(json_get(hello, "minor"), &minor);
	if (major == PROTOCOL_MAJOR && minor >= 0)
		return 0;
	err_set(e, ERR_PROTOCOL, "the peer speaks version %lld.%lld of the protocol, this program %d.%d",
	    (long long)major, (long long)minor, PROTOCOL_MAJOR, PROTOCOL_MINOR);
	return major > PROTOCOL_MAJOR ? err_hint(e, "flowsup supervisor restart") : -1;
}

static int
check(const struct json *body, size_t bytes, unsigned from, enum message_type *type, struct err *e)
{
	if (json_type(body) != JSON_OBJECT)
		return err_set(e, ERR_PROTOCOL, "a message that is not an object");
	if (find_type(body, type, e) != 0)
		return -1;
	if ((table[*type].from & from) == 0)
		return err_set(e, ERR_PROTOCOL, "the peer may not send '%s'", table[*type].word);
	if (bytes > table[*type].most)
		return err_set(e, ERR_PROTOCOL, "'%s' of %zu bytes, more than %zu", table[*type].word,
		    bytes, table[*type].most);
	if (members_check(table[*type].members, body, e) != 0)
		return err_wrap(e, "'%s'", table[*type].word);
	return *type == MSG_HELLO ? check_version(body, e) : 0;
}

int
message_parse(struct slice packet, unsigned from, struct message *out, struct err *e)
{
	const struct json_options o = {.max_bytes = IPC_MAX_PACKET, .max_depth = PROTOCOL_DEPTH};
	struct message m = {MESSAGE_TYPES, NULL};

	if (json_parse(packet, &o, &m.body, NULL, e) != 0) {
		if (e != NULL && e->code != ERR_NOMEM)
			e->code = ERR_PROTOCOL;
		return err_wrap(e, "a packet that is no message");
	}
	if (check(m.body, packet.len, from, &m.type, e) != 0) {
		message_clear(&m);
		return -1;
	}
	*out = m;
	return 0;
}

/* `type` stands first, so that a trace of packets reads well. */
static struct json *
with_type(enum message_type type, struct json *body)
{
	struct json *whole = json_set(json_object(), "type", json_cstr(table[type].word));
	const struct json *value;
	struct json_iter it;
	struct slice name;

	if (body == NULL)
		return whole;
	assert(json_get(body, "type") == NULL);
	it = json_iterate(body);
	while (json_next(&it, &name, &value))
		whole = json_setn(whole, name, json_ref(value));
	json_unref(body);
	return whole;
}

int
message_send(int fd, enum message_type type, struct json *body, int pass_fd, struct err *e)
{
	struct json *whole;
	struct buf packet = {0};
	int rc = -1;

	assert(type < MESSAGE_TYPES);
	assert(members_check(table[type].members, body, NULL) == 0);
	whole = with_type(type, body);
	if (whole == NULL)
		return err_nomem(e);
	json_write(&packet, whole);
	if (buf_ok(&packet, e) == 0) {
		if (packet.len > table[type].most)
			err_set(e, ERR_PROTOCOL, "'%s' would have %zu bytes, more than %zu",
			    table[type].word, packet.len, table[type].most);
		else
			rc = ipc_send(fd, buf_view(&packet), pass_fd, e);
	}
	buf_clear(&packet);
	json_unref(whole);
	return rc;
}

int
message_recv(int fd, unsigned from, struct message *out, int *passed, struct err *e)
{
	struct buf packet = {0};
	int rc = ipc_recv(fd, &packet, passed, e);

	if (rc == 1 && message_parse(buf_view(&packet), from, out, e) != 0) {
		if (passed != NULL)
			fd_close(passed);
		rc = -1;
	}
	buf_clear(&packet);
	return rc;
}
