#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "evidence.h"
#include "flowsup/checkpoint.h"
#include "flowsup/fs.h"

/* ---- A file as it is now ---- */

/* size and digest may be NULL: not recorded. Consumes fd. */
static int
compare(int fd, const struct stat *st, const struct json *size, const struct json *digest, enum evidence *out,
    struct buf *why, struct err *e)
{
	char now[CKPT_DIGEST_TEXT];
	uint64_t bytes = 0, recorded = 0;
	int rc = 0;

	*out = EVIDENCE_WRONG;
	if (json_uint64(size, &recorded) && recorded != (uint64_t)st->st_size)
		buf_printf(why, "has %lld byte%s, recorded were %llu", (long long)st->st_size,
		    st->st_size == 1 ? "" : "s", (unsigned long long)recorded);
	else if (json_type(digest) == JSON_NULL)
		*out = EVIDENCE_UNRECORDED;
	else if (ckpt_digest_file(fd, now, &bytes, e) != 0)
		rc = -1;
	else if (!slice_is(json_text(digest), now)) /* nor does what is recorded and is no digest fit */
		buf_puts(why, "has changed since (its digest differs)");
	else
		*out = EVIDENCE_RIGHT;
	fd_close(&fd);
	return rc;
}

/* ---- Files of the run ---- */

int
evidence_of_file(int run_fd, const struct json *recorded, enum evidence *out, struct buf *why, struct err *e)
{
	const char *path = json_cstr_of(json_get(recorded, "file")), *words = NULL;
	struct stat st;
	int fd = path != NULL ? fs_open_recorded(run_fd, path, &st, &words) : -1;

	if (fd >= 0)
		return compare(fd, &st, json_get(recorded, "size"), json_get(recorded, "digest"), out,
		    why, e);
	*out = path != NULL && errno == ENOENT ? EVIDENCE_ABSENT : EVIDENCE_WRONG;
	buf_puts(why, words != NULL ? words : "has no name that can be read");
	return buf_ok(why, e);
}

/* ---- Artifacts ---- */

int
evidence_of_artifact(const struct evidence_root *root, const char *op, const char *path, const struct json *entry,
    enum evidence *out, struct buf *why, struct err *e)
{
	const struct json *recorded = json_find(json_get(entry, "artifacts"), "path", path);
	struct buf name = {0};
	const char *words = NULL;
	struct stat st;
	int fd;

	if (root->fd < 0) {
		*out = root->absent ? EVIDENCE_ABSENT : EVIDENCE_WRONG;
		buf_puts(why, root->absent ? "is not there (no artifact root)"
					   : "cannot be reached (the artifact root cannot be used)");
		return buf_ok(why, e);
	}
	buf_printf(&name, "%s/%s", op, path);
	if (buf_ok(&name, e) != 0) {
		buf_clear(&name);
		return -1;
	}
	fd = fs_open_artifact(root->fd, buf_text(&name), &st, &words);
	*out = fd < 0 && errno == ENOENT ? EVIDENCE_ABSENT : EVIDENCE_WRONG;
	buf_clear(&name);
	if (fd >= 0)
		return compare(fd, &st, json_get(recorded, "size"), json_get(recorded, "digest"), out,
		    why, e);
	buf_puts(why, words);
	return buf_ok(why, e);
}

int
evidence_each_artifact(const struct json *contract, const struct json *entry, evidence_visit *visit, void *arg)
{
	struct json_iter it = json_iterate(contract);
	const struct json *one;
	const char *path;
	int rc = 0;

	if (json_type(contract) != JSON_ARRAY && json_type(contract) != JSON_NULL)
		rc = visit(arg, NULL);
	while (rc == 0 && json_next(&it, NULL, &one))
		rc = visit(arg, json_cstr_of(one));
	it = json_iterate(json_get(entry, "artifacts"));
	while (rc == 0 && json_next(&it, NULL, &one)) {
		path = json_cstr_of(json_get(one, "path"));
		if (path == NULL || json_find(contract, NULL, path) == NULL)
			rc = visit(arg, path);
	}
	return rc;
}

/* ---- Responses ---- */

int
evidence_of_response(const struct json *entry, enum evidence *out, struct err *e)
{
	const struct json *recorded = json_get(entry, "result_digest"), *response = json_get(entry, "response");
	char now[CKPT_DIGEST_TEXT];

	*out = EVIDENCE_UNRECORDED;
	if (json_type(recorded) == JSON_NULL)
		return 0;
	if (response != NULL && ckpt_digest(response, now, e) != 0)
		return -1;
	*out = response != NULL && slice_is(json_text(recorded), now) ? EVIDENCE_RIGHT : EVIDENCE_WRONG;
	return 0;
}
