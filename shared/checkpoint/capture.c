#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base.h"
#include "capture.h"

enum {
	NAME_ROOM = 256,
	LARGE_BASE = 1 << 20, /* bytes from which on its values are packed */
};

struct open_seams {
	const char *open, *inspect, *read;
};
static const struct open_seams base_open = {
	"ckpt.load.open_base", "ckpt.load.inspect_base", "ckpt.load.read_base"};
static const struct open_seams journal_open = {
	"ckpt.load.open_journal", "ckpt.load.inspect_journal", "ckpt.load.read_journal"};
static const struct open_seams again_open = {
	"ckpt.load.reopen_base", "ckpt.load.reinspect_base", "ckpt.load.reread_base"};

static const struct fs_ops *
ops_of(const struct ckpt_load_options *o)
{
	return o->fs != NULL ? o->fs : &fs_real;
}

static const char *
base_name(const struct ckpt_load_options *o)
{
	return o->base_name != NULL ? o->base_name : CKPT_BASE;
}

/* A checkpoint is a regular file of ours with one link and closed to others' writing. */
static enum capture_result
check_object(const struct stat *st, int fd, const char *name, struct refusal *r, struct err *e)
{
	if (!S_ISREG(st->st_mode))
		refuse(r, "not_regular", NULL, e, "not a regular file");
	else if (st->st_uid != geteuid())
		refuse(r, "wrong_owner", NULL, e, "owned by somebody else");
	else if ((st->st_mode & 022) != 0) {
		refuse(r, "wrong_mode", NULL, e, "others may write to it");
		fs_hint_close(e, fd, name);
	} else if (st->st_nlink > 1)
		refuse(r, "many_links", NULL, e, "it has more than one link");
	else if (st->st_nlink == 0) {
		/* Displaced and unlinked by a writer since we opened it. */
		refuse(r, "incoherent", NULL, e, "it changes all the time");
		return CAPTURE_AGAIN;
	} else
		return CAPTURE_OK;
	err_wrap(e, "'%s'", name);
	return CAPTURE_REFUSED;
}

static enum capture_result
open_failed(const char *name, struct refusal *r, struct err *e)
{
	const int sys = errno;

	if (sys == ELOOP || sys == ENXIO) {
		refuse(r, "not_regular", NULL, e, "not a regular file");
		err_wrap(e, "'%s'", name);
		return CAPTURE_REFUSED;
	}
	err_sys(e, sys == ENOENT ? ERR_NOTFOUND : sys == EACCES ? ERR_PERMISSION : ERR_IO, sys,
	    "cannot open '%s'", name);
	return CAPTURE_ERROR;
}

static enum capture_result
open_object(int run_fd, const char *name, const struct ckpt_load_options *o,
    const struct open_seams *seams, struct pin *pin, struct refusal *r, struct err *e)
{
	const struct fs_ops *fs = ops_of(o);
	struct stat st;

	pin->fd = fs->openat(fs, seams->open, run_fd, name,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
	if (pin->fd < 0)
		return open_failed(name, r, e);
	if (fs->fstat(fs, seams->inspect, pin->fd, &st) != 0) {
		err_sys(e, ERR_IO, errno, "cannot inspect '%s'", name);
		return CAPTURE_ERROR;
	}
	pin->id = fs_identity_of(&st);
	pin->size = st.st_size;
	return check_object(&st, pin->fd, name, r, e);
}

static enum capture_result
read_object(const char *name, const struct ckpt_load_options *o, const struct open_seams *seams,
    const struct pin *pin, struct buf *to, struct refusal *r, struct err *e)
{
	const size_t most = o->max_bytes != 0 ? o->max_bytes : JSON_MAX_PROGRAM;

	/* A guess that saves time; a file that grew or shrank is read all the same. */
	if (pin->size > 0 && (uintmax_t)pin->size <= most)
		(void)buf_expect(to, (size_t)pin->size + 1);
	if (fs_read_all(ops_of(o), seams->read, pin->fd, most, to, e) == 0)
		return CAPTURE_OK;
	if (e->code == ERR_LIMIT) {
		refuse(r, "too_large", NULL, NULL, "");
		e->code = ERR_CHECKPOINT;
		err_wrap(e, "'%s'", name);
		return CAPTURE_REFUSED;
	}
	err_wrap(e, "'%s'", name);
	return CAPTURE_ERROR;
}

/* ---- The base ---- */

static enum capture_result
parse_failed(const struct json_failure *failure, struct refusal *r, struct err *e)
{
	if (failure->fault == JSON_FAULT_MEMORY || e->code == ERR_NOMEM)
		return CAPTURE_ERROR;
	refuse(r, json_fault_name(failure->fault), NULL, NULL, "");
	r->line = failure->where.line;
	r->offset = (int64_t)failure->where.offset;
	e->code = ERR_CHECKPOINT;
	return CAPTURE_REFUSED;
}

/*
 * Strictly first. Files of version 2 may repeat a member, and the last one counts: only where a
 * repeated name was all that was wrong is the text read that way, and only if it then says that it
 * is one of them. `version` itself is never read twice.
 */
static enum capture_result
parse_base(const struct ckpt_load_options *o, struct slice text, bool positions, struct json **root,
    struct refusal *r, struct err *e)
{
	struct json_options how = {.max_bytes = o->max_bytes != 0 ? o->max_bytes : JSON_MAX_PROGRAM,
	    .together = text.len >= LARGE_BASE, .positions = positions};
	struct json_failure failure = {0}, second = {0};
	struct err ignored = {0};
	int version;

	if (json_parse(text, &how, root, &failure, e) == 0)
		return CAPTURE_OK;
	if (failure.fault != JSON_FAULT_DUPLICATE)
		return parse_failed(&failure, r, e);
	how.last_wins = true;
	how.unique_top = "version";
	if (json_parse(text, &how, root, &second, &ignored) != 0) {
		if (second.fault == JSON_FAULT_MEMORY) {
			err_nomem(e);
			return CAPTURE_ERROR;
		}
		return parse_failed(&failure, r, e);
	}
	if (base_version(*root, &version, r, &ignored) == 0 && version < 3)
		return CAPTURE_OK;
	json_unref(*root);
	*root = NULL;
	return parse_failed(&failure, r, e);
}

/* Reads the text once more, with positions, to say where the value stood that was refused. */
static void
locate(const struct ckpt_load_options *o, struct slice text, int version, struct refusal *r)
{
	struct refusal again = {0};
	struct err ignored = {0};
	struct json *root = NULL;
	struct json_where where;
	int found;

	if (parse_base(o, text, true, &root, &again, &ignored) != CAPTURE_OK)
		return;
	found = version == 0 ? base_version(root, &version, &again, &ignored) :
	    base_check(root, version, &again, &ignored);
	if (found != 0 && again.at != NULL && json_position(again.at, &where)) {
		r->line = where.line;
		r->offset = (int64_t)where.offset;
	}
	json_unref(root);
}

static enum capture_result
check_base(struct capture *c, const struct ckpt_load_options *o, struct ckpt_report *report,
    struct refusal *r, struct err *e)
{
	const struct slice text = buf_view(&c->base_bytes);
	struct slice generation;
	enum capture_result result;

	result = parse_base(o, text, false, &c->root, r, e);
	if (result != CAPTURE_OK)
		return result;
	if (base_version(c->root, &c->version, r, e) != 0) {
		locate(o, text, 0, r);
		return CAPTURE_REFUSED;
	}
	report->format = c->version;
	generation = json_text(json_get(c->root, "generation"));
	if (c->version == 3 && generation_is_valid(generation)) {
		memcpy(c->generation, generation.data, generation.len);
		memcpy(report->generation, c->generation, sizeof(report->generation));
	}
	if (base_check(c->root, c->version, r, e) == 0)
		return CAPTURE_OK;
	if (e->code != ERR_CHECKPOINT)
		return CAPTURE_ERROR;
	locate(o, text, c->version, r);
	return CAPTURE_REFUSED;
}

static enum capture_result
take_base(struct capture *c, int run_fd, const struct ckpt_load_options *o,
    struct ckpt_report *report, struct refusal *r, struct err *e)
{
	const char *name = base_name(o);
	enum capture_result result;

	result = open_object(run_fd, name, o, &base_open, &c->base, r, e);
	if (result == CAPTURE_OK)
		result = read_object(name, o, &base_open, &c->base, &c->base_bytes, r, e);
	if (result != CAPTURE_OK)
		return result;
	report->base_bytes = (int64_t)c->base_bytes.len;
	result = check_base(c, o, report, r, e);
	if (result == CAPTURE_REFUSED || (result == CAPTURE_ERROR && e->code != ERR_NOMEM))
		err_wrap(e, "'%s'", name);
	return result;
}

/* ---- The journal, and whether the base is still the same ---- */

static enum capture_result
take_journal(struct capture *c, int run_fd, const char *name, const struct ckpt_load_options *o,
    struct ckpt_report *report, struct refusal *r, struct err *e)
{
	enum capture_result result;

	result = open_object(run_fd, name, o, &journal_open, &c->journal, r, e);
	if (result == CAPTURE_ERROR && e->code == ERR_NOTFOUND) {
		refuse(r, "missing_journal", NULL, e, "the journal is missing");
		err_wrap(e, "'%s'", name);
		return CAPTURE_AGAIN;
	}
	if (result == CAPTURE_OK)
		result = read_object(name, o, &journal_open, &c->journal, &c->journal_bytes, r, e);
	if (result == CAPTURE_OK)
		report->journal_bytes = (int64_t)c->journal_bytes.len;
	return result;
}

/* The base by its name once more: the same object with the same head, so the same generation. */
static enum capture_result
check_unchanged(struct capture *c, int run_fd, const struct ckpt_load_options *o,
    struct refusal *r, struct err *e)
{
	const struct fs_ops *fs = ops_of(o);
	const char *name = base_name(o);
	enum capture_result result;
	struct pin now = {.fd = -1};
	char head[128];
	ssize_t n = 0;

	result = open_object(run_fd, name, o, &again_open, &now, r, e);
	if (result == CAPTURE_OK) {
		do
			n = fs->pread(fs, again_open.read, now.fd, head, sizeof(head), 0);
		while (n < 0 && errno == EINTR);
	}
	if (n < 0) {
		err_sys(e, ERR_IO, errno, "cannot read '%s'", name);
		result = CAPTURE_ERROR;
	}
	if (result == CAPTURE_OK && (!fs_same(now.id, c->base.id) ||
	    (size_t)n > c->base_bytes.len || memcmp(head, c->base_bytes.data, (size_t)n) != 0)) {
		refuse(r, "incoherent", NULL, e, "it changes all the time");
		result = CAPTURE_AGAIN;
	}
	fd_close(&now.fd);
	return result;
}

enum capture_result
capture_take(struct capture *c, int run_fd, const struct ckpt_load_options *o,
    struct ckpt_report *report, struct refusal *r, struct err *e)
{
	char journal[NAME_ROOM];
	enum capture_result result, unchanged;

	*c = (struct capture){.base = {.fd = -1}, .journal = {.fd = -1}};
	if (snprintf(journal, sizeof(journal), "%s.journal", base_name(o)) >= (int)sizeof(journal)) {
		err_set(e, ERR_IO, "'%s': the name is too long", base_name(o));
		return CAPTURE_ERROR;
	}
	result = take_base(c, run_fd, o, report, r, e);
	if (result != CAPTURE_OK || c->version < 3)
		return result;
	result = take_journal(c, run_fd, journal, o, report, r, e);
	c->in_journal = result != CAPTURE_OK;
	if (result == CAPTURE_ERROR)
		return result;
	/* A journal that is missing or refused may belong to another base than the one we read. */
	if (result == CAPTURE_OK)
		return check_unchanged(c, run_fd, o, r, e);
	struct refusal other = {0};
	struct err ignored = {0};
	unchanged = check_unchanged(c, run_fd, o, &other, &ignored);
	return unchanged == CAPTURE_OK ? result : CAPTURE_AGAIN;
}

void
capture_clear(struct capture *c)
{
	fd_close(&c->base.fd);
	fd_close(&c->journal.fd);
	buf_clear(&c->base_bytes);
	buf_clear(&c->journal_bytes);
	json_unref(c->root);
	c->root = NULL;
}
