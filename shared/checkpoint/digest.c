#include <blake2.h>
#include <errno.h>
#include <unistd.h>

#include "flowsup/checkpoint.h"

#define CHUNK ((size_t)256 << 10)

static void
finish(blake2b_state *b, char to[CKPT_DIGEST_TEXT])
{
	static const char hex[] = "0123456789abcdef";
	unsigned char out[BLAKE2B_OUTBYTES];
	const size_t prefix = sizeof(CKPT_DIGEST_PREFIX) - 1;
	size_t i;

	blake2b_final(b, out, sizeof(out));
	memcpy(to, CKPT_DIGEST_PREFIX, prefix);
	for (i = 0; i < sizeof(out); i++) {
		to[prefix + 2 * i] = hex[out[i] >> 4];
		to[prefix + 2 * i + 1] = hex[out[i] & 15];
	}
	to[prefix + 2 * sizeof(out)] = '\0';
}

void
ckpt_digest_bytes(struct slice bytes, char to[CKPT_DIGEST_TEXT])
{
	blake2b_state b;

	blake2b_init(&b, BLAKE2B_OUTBYTES);
	blake2b_update(&b, (const uint8_t *)bytes.data, bytes.len);
	finish(&b, to);
}

int
ckpt_digest(const struct json *value, char to[CKPT_DIGEST_TEXT], struct err *e)
{
	struct buf text = {0};
	int result;

	json_write(&text, value);
	result = buf_ok(&text, e);
	if (result == 0)
		ckpt_digest_bytes(buf_view(&text), to);
	buf_clear(&text);
	return result;
}

int
ckpt_digest_file_unless(int fd, ckpt_enough *enough, void *arg, char to[CKPT_DIGEST_TEXT], uint64_t *size,
    struct err *e)
{
	struct buf chunk = {0};
	blake2b_state b;
	off_t at = 0;
	ssize_t n;
	char *room = buf_reserve(&chunk, CHUNK);

	if (room == NULL)
		return err_nomem(e);
	blake2b_init(&b, BLAKE2B_OUTBYTES);
	for (;;) {
		if (enough != NULL && enough(arg)) {
			buf_clear(&chunk);
			return err_set(e, ERR_INTERRUPTED, "interrupted");
		}
		n = pread(fd, room, CHUNK, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		blake2b_update(&b, (const uint8_t *)room, (size_t)n);
		at += n;
	}
	if (n < 0)
		err_sys(e, ERR_IO, errno, "cannot read");
	else {
		finish(&b, to);
		*size = (uint64_t)at;
	}
	buf_clear(&chunk);
	return n < 0 ? -1 : 0;
}

int
ckpt_digest_file(int fd, char to[CKPT_DIGEST_TEXT], uint64_t *size, struct err *e)
{
	return ckpt_digest_file_unless(fd, NULL, NULL, to, size, e);
}

bool
ckpt_looks_like_file(const struct json *response)
{
	const char *digest = json_cstr_of(json_get(response, "digest"));

	return json_cstr_of(json_get(response, "file")) != NULL && json_get(response, "size") != NULL &&
	    digest != NULL && strncmp(digest, CKPT_DIGEST_PREFIX, sizeof(CKPT_DIGEST_PREFIX) - 1) == 0;
}

bool
ckpt_is_file(const struct json *entry)
{
	return !json_is_true(json_get(entry, CKPT_LITERAL)) && ckpt_looks_like_file(json_get(entry, "response"));
}
