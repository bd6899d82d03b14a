#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base.h"
#include "files.h"

/* ---- Publishing ---- */

struct snapshot {
	int version;
	const char *generation;
	const struct state *state;
};

static int
emit_snapshot(const void *arg, struct sink *to, struct err *e)
{
	const struct snapshot *s = arg;

	if (s->version == 3)
		return base_encode(to, s->generation, s->state, e);
	return snapshot_encode(to, s->state, false, e);
}

static int
emit_without_journal(const void *arg, struct sink *to, struct err *e)
{
	const struct snapshot *s = arg;

	return base_encode(to, NULL, s->state, e);
}

static int
put_base(struct files *f, const struct state *s, struct err *e)
{
	char generation[CKPT_GENERATION_TEXT];
	const struct snapshot snapshot = {f->version, generation, s};

	if (generation_make(generation, e) != 0 ||
	    publish(&f->place, CKPT_BASE, &base_seams, f->displaced ? emit_without_journal : emit_snapshot,
	    &snapshot, &f->base, e) != 0)
		return -1;
	memcpy(f->generation, generation, sizeof(generation));
	return 0;
}

static int
put_journal(struct files *f, struct err *e)
{
	if (publish(&f->place, CKPT_JOURNAL, &journal_seams, NULL, NULL, &f->journal, e) != 0)
		return -1;
	f->records = 0;
	f->next_seq = 1;
	f->journal_dead = false;
	return 0;
}

/* ---- Names ---- */

struct name_seams {
	const char *base, *journal, *run;
};
static const struct name_seams before_append = {
	"ckpt.append.before_base", "ckpt.append.before_journal", "ckpt.append.before_run"};
static const struct name_seams after_append = {
	"ckpt.append.after_base", "ckpt.append.after_journal", "ckpt.append.after_run"};
static const struct name_seams after_base = {
	"ckpt.rotate.base", "ckpt.rotate.journal", "ckpt.rotate.run"};

static int
check_names(struct files *f, const struct name_seams *seams, off_t journal_size, struct err *e)
{
	if (place_check_name(&f->place, seams->base, CKPT_BASE, &f->base, f->base.size, e) != 0)
		return -1;
	if (f->journal.fd >= 0 && place_check_name(&f->place, seams->journal, CKPT_JOURNAL,
	    &f->journal, journal_size, e) != 0)
		return -1;
	return place_check_run(&f->place, seams->run, e);
}

/* ---- First publication ---- */

/*
 * A worker that died between the first journal and the first base left an empty journal: it is
 * taken over, so that the start can be tried again. Anything else in its place is a stranger.
 */
static int
find_leftover_journal(struct files *f, struct err *e)
{
	const struct fs_ops *fs = f->place.fs;
	struct stat st;
	int fd;

	fd = fs->openat(fs, "ckpt.open.leftover", f->place.run_fd, CKPT_JOURNAL,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return err_sys(e, errno == ELOOP || errno == ENXIO ? ERR_IDENTITY : ERR_IO, errno,
		    "cannot open '%s'", CKPT_JOURNAL);
	if (fs->fstat(fs, "ckpt.open.inspect_leftover", fd, &st) != 0) {
		err_sys(e, ERR_IO, errno, "cannot inspect '%s'", CKPT_JOURNAL);
		fd_close(&fd);
		return -1;
	}
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1 || st.st_size != 0) {
		fd_close(&fd);
		return err_set(e, ERR_IDENTITY, "'%s' is there already", CKPT_JOURNAL);
	}
	f->journal = (struct pin){.fd = fd, .id = fs_identity_of(&st)};
	return 0;
}

static int
check_fresh(struct files *f, struct err *e)
{
	const struct fs_ops *fs = f->place.fs;
	struct stat st;

	if (fs->fstatat(fs, "ckpt.open.look_base", f->place.run_fd, CKPT_BASE, &st,
	    AT_SYMLINK_NOFOLLOW) == 0)
		return err_set(e, ERR_IDENTITY, "'%s' is there already", CKPT_BASE);
	if (errno != ENOENT)
		return err_sys(e, ERR_IO, errno, "cannot look at '%s'", CKPT_BASE);
	return f->version == 3 ? find_leftover_journal(f, e) : 0;
}

static int
put_first_journal(struct files *f, struct err *e)
{
	int result;

	f->place.more_follows = f->journal.fd < 0;
	result = put_journal(f, e);
	f->place.more_follows = false;
	return result;
}

static void
start(struct files *f, const struct ckpt_options *o)
{
	*f = (struct files){.version = o->version, .base = {.fd = -1}, .journal = {.fd = -1},
	    .next_seq = 1};
}

int
files_open(struct files *f, const struct ckpt_options *o, const struct state *s, struct err *e)
{
	start(f, o);
	if (place_open(&f->place, o->fs, o->runs_fd, o->run_fd, o->run_id, e) != 0)
		return -1;
	if (check_fresh(f, e) == 0 && (f->version == 2 || put_first_journal(f, e) == 0) &&
	    put_base(f, s, e) == 0 && check_names(f, &after_base, 0, e) == 0) {
		f->next_seq = o->first_sequence;
		f->bases_all = 1;
		return 0;
	}
	files_withdraw(f);
	return -1;
}

void
files_withdraw(struct files *f)
{
	/* A base that cannot be taken back keeps its journal: together they are whole. */
	if (withdraw(&f->place, CKPT_BASE, &base_seams, &f->base))
		withdraw(&f->place, CKPT_JOURNAL, &journal_seams, &f->journal);
	files_close(f);
}

int
files_adopt(struct files *f, const struct ckpt_options *o, struct pin base, struct pin journal,
    struct err *e)
{
	start(f, o);
	if (place_open(&f->place, o->fs, o->runs_fd, o->run_fd, o->run_id, e) != 0)
		return -1;
	f->base = base;
	f->journal = journal;
	f->journal_dead = true; /* opened for reading: no record may be appended to it */
	return 0;
}

void
files_close(struct files *f)
{
	/* Everything acknowledged was fsynced; close(2) has nothing left to lose. */
	if (f->base.fd >= 0)
		(void)fs_close(f->place.fs, "ckpt.close.base", &f->base.fd, NULL);
	if (f->journal.fd >= 0)
		(void)fs_close(f->place.fs, "ckpt.close.journal", &f->journal.fd, NULL);
	place_close(&f->place);
}

/* ---- Appending ---- */

/* Whole lines at the start of `found` that are what was to be written. */
static size_t
whole_lines(struct slice found, struct slice lines)
{
	size_t same = 0, whole = 0;

	while (same < found.len && same < lines.len && found.data[same] == lines.data[same])
		if (lines.data[same++] == '\n')
			whole = same;
	return whole;
}

static int
read_back(struct files *f, off_t from, size_t len, struct buf *to, struct err *e)
{
	const struct fs_ops *fs = f->place.fs;
	char *room = buf_reserve(to, len);
	size_t got = 0;
	ssize_t n;

	if (room == NULL)
		return err_nomem(e);
	while (got < len) {
		n = fs->pread(fs, "ckpt.repair.read", f->journal.fd, room + got, len - got,
		    from + (off_t)got);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, ERR_IO, errno, "cannot read '%s' back", CKPT_JOURNAL);
		if (n == 0)
			break;
		got += (size_t)n;
	}
	to->len += got;
	return 0;
}

/*
 * A write failed: the journal is read again, what stands behind the last whole line is cut off on
 * the same handle, and that is fsynced before anything else is written. *keep: bytes of `lines`
 * that stay.
 */
static int
repair(struct files *f, struct slice lines, size_t *keep, struct err *e)
{
	const struct fs_ops *fs = f->place.fs;
	const off_t from = f->journal.size;
	struct buf found = {0};
	struct stat st;
	int result = -1;

	if (fs->fstat(fs, "ckpt.repair.inspect", f->journal.fd, &st) != 0) {
		err_sys(e, ERR_IO, errno, "cannot inspect '%s'", CKPT_JOURNAL);
		goto out;
	}
	if (st.st_size < from || (size_t)(st.st_size - from) > lines.len) {
		err_set(e, ERR_IDENTITY, "'%s' was written to by somebody else", CKPT_JOURNAL);
		goto out;
	}
	if (read_back(f, from, (size_t)(st.st_size - from), &found, e) != 0)
		goto out;
	*keep = whole_lines(buf_view(&found), lines);
	if (st.st_size != from + (off_t)*keep &&
	    fs->ftruncate(fs, "ckpt.repair.cut", f->journal.fd, from + (off_t)*keep) != 0) {
		err_sys(e, ERR_IO, errno, "cannot cut '%s'", CKPT_JOURNAL);
		goto out;
	}
	if (fs->fsync(fs, "ckpt.repair.sync", f->journal.fd) != 0) {
		err_sys(e, ERR_IO, errno, "fsync of '%s'", CKPT_JOURNAL);
		goto out;
	}
	result = 0;
out:
	buf_clear(&found);
	return result;
}

static uint64_t
count_lines(struct slice text)
{
	uint64_t lines = 0;
	size_t i;

	for (i = 0; i < text.len; i++)
		if (text.data[i] == '\n')
			lines++;
	return lines;
}

/* bytes of whole lines are durable; they count once the names have been checked again. */
static int
settle(struct files *f, size_t bytes, uint64_t records, size_t *durable, struct err *e)
{
	const off_t size = f->journal.size + (off_t)bytes;

	if (check_names(f, &after_append, size, e) != 0) {
		f->journal_dead = true;
		return -1;
	}
	f->journal.size = size;
	f->records += records;
	f->next_seq += records;
	f->journal_bytes_all += bytes;
	f->records_all += records;
	*durable = bytes;
	return 0;
}

int
files_append(struct files *f, struct slice lines, uint64_t records, size_t *durable,
    struct err *e)
{
	const struct fs_ops *fs = f->place.fs;
	struct err later = {0};
	size_t keep = 0;

	*durable = 0;
	if (check_names(f, &before_append, f->journal.size, e) != 0)
		return -1;
	if (fs_write_all(fs, "ckpt.append.write", f->journal.fd, lines, e) != 0) {
		err_wrap(e, "'%s': %zu bytes", CKPT_JOURNAL, lines.len);
		if (repair(f, lines, &keep, &later) != 0) {
			f->journal_dead = true;
			if (later.code == ERR_IDENTITY && e != NULL)
				*e = later;
			return -1;
		}
		if (settle(f, keep, count_lines((struct slice){lines.data, keep}), durable,
		    &later) != 0 && e != NULL)
			*e = later;
		return -1;
	}
	/* The pages of a failed fsync may be gone: this handle is never believed again. */
	if (fs->fsync(fs, "ckpt.append.sync", f->journal.fd) != 0) {
		f->journal_dead = true;
		return err_sys(e, ERR_IO, errno, "fsync of '%s'", CKPT_JOURNAL);
	}
	return settle(f, lines.len, records, durable, e);
}

/* ---- A fresh base ---- */

enum { MENDS = 4 }; /* of one publication; whoever takes files away faster than that has won */

/* Nothing is left to be retired; the descriptor only kept the inode. */
static void
let_go(struct files *f, const char *what, struct pin *pin)
{
	(void)fs_close(f->place.fs, what, &pin->fd, NULL);
}

bool
files_mend(struct files *f)
{
	struct err why = {0};

	if (place_check_run(&f->place, "ckpt.mend.run", &why) != 0 && why.code == ERR_IDENTITY)
		return false;
	if (f->base.fd >= 0)
		switch (place_leads(&f->place, "ckpt.mend.base", CKPT_BASE, &f->base)) {
		case TO_STRANGER:
			return false;
		case TO_NOTHING:
			let_go(f, "ckpt.mend.close_base", &f->base);
			break;
		case TO_OURS:
			break;
		}
	if (f->version == 2)
		return true;
	switch (place_leads(&f->place, "ckpt.mend.journal", CKPT_JOURNAL, &f->journal)) {
	case TO_STRANGER:
		f->displaced = true;
		return true;
	case TO_NOTHING:
		if (f->journal.fd >= 0)
			let_go(f, "ckpt.mend.close_journal", &f->journal);
		break;
	case TO_OURS:
		break;
	}
	f->displaced = false;
	return true;
}

/* The old journal may be longer than what was acknowledged: its size does not matter now. Until a name
 * leads to a whole journal again no reader would take the base. */
static int
check_old_journal(struct files *f, bool *whole, struct err *e)
{
	*whole = true;
	if (f->version == 2 || f->displaced)
		return 0;
	*whole = f->journal.fd >= 0;
	if (!*whole || place_check_name(&f->place, after_base.journal, CKPT_JOURNAL, &f->journal, -1, e) == 0)
		return 0;
	*whole = false;
	if (e->code == ERR_IDENTITY &&
	    place_leads(&f->place, "ckpt.mend.journal", CKPT_JOURNAL, &f->journal) == TO_OURS) {
		err_clear(e);
		return 0;
	}
	return -1;
}

static int
rotate(struct files *f, const struct state *s, bool *covered, struct err *e)
{
	bool whole;

	*covered = false;
	/* From here to the end of the reset no record may follow the old generation's. */
	f->journal_dead = true;
	if (place_keep_staging(&f->place, e) != 0 || put_base(f, s, e) != 0)
		return -1;
	f->bases_all++;
	if (place_check_name(&f->place, after_base.base, CKPT_BASE, &f->base, f->base.size, e) != 0 ||
	    check_old_journal(f, &whole, e) != 0 || place_check_run(&f->place, after_base.run, e) != 0)
		return -1;
	*covered = whole;
	if (f->displaced)
		return err_set(e, ERR_IDENTITY, "'%s' leads to something that is not ours; '%s' holds all that was "
		    "saved, as version 2, which has no journal", CKPT_JOURNAL, CKPT_BASE);
	if (f->version == 3 && put_journal(f, e) != 0)
		return -1;
	*covered = true;
	return 0;
}

int
files_rotate(struct files *f, const struct state *s, bool *covered, struct err *e)
{
	struct err local = {0};
	int mends;

	/* The stranger may have left since the last try. */
	if (f->displaced)
		(void)files_mend(f);
	for (mends = 0;; mends++) {
		err_clear(&local);
		if (rotate(f, s, covered, &local) == 0)
			return 0;
		if (local.code != ERR_IDENTITY || mends == MENDS || (f->displaced && *covered) || !files_mend(f))
			break;
	}
	if (e != NULL)
		*e = local;
	return -1;
}
