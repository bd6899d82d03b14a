#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base.h"
#include "publish.h"

enum { HEAD = 128 }; /* enough of a file to hold its generation */

const struct publish_seams base_seams = {
	.create = "ckpt.base.create",
	.inspect = "ckpt.base.inspect",
	.write = "ckpt.base.write",
	.sync = "ckpt.base.sync",
	.install = "ckpt.base.install",
	.install_first = "ckpt.base.install_first",
	.look = "ckpt.base.look",
	.reopen = "ckpt.base.reopen",
	.reinspect = "ckpt.base.reinspect",
	.reread = "ckpt.base.reread",
	.reclose = "ckpt.base.reclose",
	.restore = "ckpt.base.restore",
	.sync_run = "ckpt.base.sync_run",
	.sync_staging = "ckpt.base.sync_staging",
	.find_retired = "ckpt.base.find_retired",
	.unlink_retired = "ckpt.base.unlink_retired",
	.close_retired = "ckpt.base.close_retired",
	.find_unused = "ckpt.base.find_unused",
	.unlink_unused = "ckpt.base.unlink_unused",
	.close_unused = "ckpt.base.close_unused",
	.withdraw = "ckpt.base.withdraw",
};

const struct publish_seams journal_seams = {
	.create = "ckpt.journal.create",
	.inspect = "ckpt.journal.inspect",
	.write = NULL, /* a new journal is empty: there is nothing to write */
	.sync = "ckpt.journal.sync",
	.install = "ckpt.journal.install",
	.install_first = "ckpt.journal.install_first",
	.look = "ckpt.journal.look",
	.reopen = "ckpt.journal.reopen",
	.reinspect = "ckpt.journal.reinspect",
	.reread = "ckpt.journal.reread",
	.reclose = "ckpt.journal.reclose",
	.restore = "ckpt.journal.restore",
	.sync_run = "ckpt.journal.sync_run",
	.sync_staging = "ckpt.journal.sync_staging",
	.find_retired = "ckpt.journal.find_retired",
	.unlink_retired = "ckpt.journal.unlink_retired",
	.close_retired = "ckpt.journal.close_retired",
	.find_unused = "ckpt.journal.find_unused",
	.unlink_unused = "ckpt.journal.unlink_unused",
	.close_unused = "ckpt.journal.close_unused",
	.withdraw = "ckpt.journal.withdraw",
};

/* One publication on its way. */
struct job {
	struct place *p;
	const struct fs_ops *fs;
	const struct publish_seams *seams;
	const char *name;
	char head[HEAD]; /* the first bytes of the content */
	char temp[STAGING_NAME];
	struct pin made;
	struct pin old;
};

static bool
leads_to(const struct stat *st, const struct pin *pin)
{
	return pin->fd >= 0 && fs_same(fs_identity_of(st), pin->id);
}

static int
stat_name(const struct job *j, const char *what, int dirfd, const char *name, struct stat *st)
{
	return j->fs->fstatat(j->fs, what, dirfd, name, st, AT_SYMLINK_NOFOLLOW);
}

/* ---- The staging directory ---- */

struct staging_seams {
	const char *make, *open, *inspect_run, *inspect;
};
static const struct staging_seams at_open = {
	"ckpt.open.make_staging", "ckpt.open.staging", "ckpt.open.inspect_run", "ckpt.open.inspect_staging"};
static const struct staging_seams anew = {
	"ckpt.staging.make", "ckpt.staging.open", "ckpt.staging.inspect_run", "ckpt.staging.inspect"};

/* What leads elsewhere, or to nothing, is no matter of storage: waiting does not bring it back. */
static enum err_code
code_of_lookup(int sys)
{
	return sys == ENOENT || sys == ENOTDIR || sys == ELOOP ? ERR_IDENTITY : ERR_IO;
}

static int
staging_check(struct place *p, const struct staging_seams *seams, struct err *e)
{
	struct stat st, run;

	if (p->fs->fstat(p->fs, seams->inspect_run, p->run_fd, &run) != 0)
		return err_sys(e, ERR_IO, errno, "the run directory");
	if (p->fs->fstat(p->fs, seams->inspect, p->staging_fd, &st) != 0)
		return err_sys(e, ERR_IO, errno, "%s", CKPT_STAGING);
	if (run.st_uid != geteuid() || (run.st_mode & 022) != 0)
		return err_set(e, ERR_PERMISSION,
		    "the run directory is not ours alone: its owner or mode is wrong");
	if (st.st_uid != geteuid() || (st.st_mode & 07777) != 0700 || st.st_dev != run.st_dev)
		return err_set(e, ERR_IDENTITY,
		    "%s is not a directory of ours with mode 0700 on the same file system",
		    CKPT_STAGING);
	p->run = fs_identity_of(&run);
	p->staging = fs_identity_of(&st);
	return 0;
}

static int
staging_open(struct place *p, const struct staging_seams *seams, struct err *e)
{
	const struct fs_ops *fs = p->fs;

	if (fs->mkdirat(fs, seams->make, p->run_fd, CKPT_STAGING, 0700) != 0 && errno != EEXIST)
		return err_sys(e, code_of_lookup(errno), errno, "cannot make %s", CKPT_STAGING);
	p->staging_fd = fs->openat(fs, seams->open, p->run_fd, CKPT_STAGING,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (p->staging_fd < 0)
		return err_sys(e, code_of_lookup(errno), errno, "cannot open %s", CKPT_STAGING);
	if (staging_check(p, seams, e) == 0)
		return 0;
	fd_close(&p->staging_fd);
	return -1;
}

int
place_open(struct place *p, const struct fs_ops *fs, int runs_fd, int run_fd, const char *run_id,
    struct err *e)
{
	*p = (struct place){.fs = fs, .runs_fd = runs_fd, .run_fd = run_fd, .run_id = run_id,
	    .staging_fd = -1, .directory_sync = true};
	return staging_open(p, &at_open, e);
}

int
place_keep_staging(struct place *p, struct err *e)
{
	const struct fs_ops *fs = p->fs;
	struct stat st;

	if (p->staging_fd >= 0) {
		if (fs->fstatat(fs, "ckpt.staging.look", p->run_fd, CKPT_STAGING, &st, AT_SYMLINK_NOFOLLOW) == 0)
			return fs_same(fs_identity_of(&st), p->staging) ? 0 : err_set(e, ERR_IDENTITY,
			    "'%s' leads to something that is not ours", CKPT_STAGING);
		if (errno != ENOENT)
			return err_sys(e, ERR_IO, errno, "cannot look at '%s'", CKPT_STAGING);
		/* What was retired into it has gone with it, or is left to whoever moved it. */
		(void)fs_close(fs, "ckpt.staging.close", &p->staging_fd, NULL);
	}
	if (staging_open(p, &anew, e) != 0)
		return -1;
	if (fs_sync_dir(fs, "ckpt.staging.sync_run", p->run_fd, NULL, e) != 0)
		return err_wrap(e, "%s", CKPT_STAGING);
	return 0;
}

void
place_close(struct place *p)
{
	struct retired *r;

	while ((r = p->retired) != NULL) {
		p->retired = r->next;
		fd_close(&r->pin.fd);
		free(r);
	}
	fd_close(&p->staging_fd);
}

/* ---- Objects that have had their time ---- */

/* Unlinks a name below staging while it still leads to our object. Linux cannot unlink by
 * identity; between the two calls only the directory's mode protects. */
static void
unlink_ours(struct place *p, const char *find, const char *unlink_seam, const char *name,
    const struct pin *pin)
{
	struct stat st;

	if (p->fs->fstatat(p->fs, find, p->staging_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return;
	if (leads_to(&st, pin))
		p->fs->unlinkat(p->fs, unlink_seam, p->staging_fd, name, 0);
}

/* What is left over here is superseded and durable elsewhere: a failure costs room, not state. */
static void
drop_retired(struct place *p, const struct publish_seams *seams)
{
	struct retired *r;

	while ((r = p->retired) != NULL) {
		p->retired = r->next;
		if (r->name[0] != '\0')
			unlink_ours(p, seams->find_retired, seams->unlink_retired, r->name, &r->pin);
		(void)fs_close(p->fs, seams->close_retired, &r->pin.fd, NULL);
		free(r);
	}
}

static bool
is_left_over(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_uid == geteuid() && st->st_nlink == 1 && (st->st_mode & 07777) == 0600;
}

void
place_sweep(struct place *p)
{
	int fd = openat(p->staging_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;
	struct stat st;

	if (dir == NULL) {
		fd_close(&fd);
		return;
	}
	while ((entry = readdir(dir)) != NULL)
		if (generation_is_valid(slice_of(entry->d_name)) &&
		    p->fs->fstatat(p->fs, "ckpt.sweep.find", p->staging_fd, entry->d_name, &st,
			AT_SYMLINK_NOFOLLOW) == 0 && is_left_over(&st))
			(void)p->fs->unlinkat(p->fs, "ckpt.sweep.unlink", p->staging_fd, entry->d_name, 0);
	closedir(dir);
}

static void
drop_made(struct job *j)
{
	unlink_ours(j->p, j->seams->find_unused, j->seams->unlink_unused, j->temp, &j->made);
	if (j->made.fd >= 0)
		(void)fs_close(j->fs, j->seams->close_unused, &j->made.fd, NULL);
}

/* ---- Making ---- */

static int
inspect_made(struct job *j, struct err *e)
{
	struct stat st;

	if (j->fs->fstat(j->fs, j->seams->inspect, j->made.fd, &st) != 0)
		return err_sys(e, ERR_IO, errno, "cannot inspect the new '%s'", j->name);
	j->made.id = fs_identity_of(&st);
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1)
		return err_set(e, ERR_IDENTITY, "the new '%s' is not a file of ours alone", j->name);
	/* A umask that takes the owner's bits would make a file that no loader can open. */
	if ((st.st_mode & 07777) != 0600)
		return err_set(e, ERR_CREATE, "the new '%s' has mode %04o instead of 0600 (umask?)",
		    j->name, (unsigned)(st.st_mode & 07777));
	return 0;
}

/* A piece of the content. */
static int
write_piece(void *arg, struct slice piece, struct err *e)
{
	struct job *j = arg;
	const size_t at = (size_t)j->made.size;

	if (fs_write_all(j->fs, j->seams->write, j->made.fd, piece, e) != 0)
		return err_wrap(e, "the new '%s'", j->name);
	if (at < HEAD)
		memcpy(j->head + at, piece.data, piece.len < HEAD - at ? piece.len : HEAD - at);
	j->made.size += (off_t)piece.len;
	return 0;
}

static int
make(struct job *j, emit_content *emit, const void *arg, struct err *e)
{
	struct sink to = {.put = write_piece, .arg = j};
	int result = 0;

	if (generation_make(j->temp, e) != 0)
		return -1;
	j->made.fd = j->fs->openat(j->fs, j->seams->create, j->p->staging_fd, j->temp,
	    O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (j->made.fd < 0)
		return err_sys(e, code_of_lookup(errno), errno, "cannot create the new '%s'", j->name);
	if (inspect_made(j, e) != 0)
		return -1;
	if (emit != NULL)
		result = emit(arg, &to, e);
	sink_clear(&to);
	if (result != 0)
		return -1;
	if (j->fs->fsync(j->fs, j->seams->sync, j->made.fd) != 0)
		return err_sys(e, ERR_IO, errno, "fsync of the new '%s'", j->name);
	return 0;
}

/* ---- Installing ---- */

static int
elsewhere(const struct job *j, struct err *e)
{
	return err_set(e, ERR_IDENTITY, "'%s' leads to something that is not ours", j->name);
}

/* The name leads to what is pinned, or to nothing where nothing is. */
static int
look_before(struct job *j, struct err *e)
{
	struct stat st;

	if (stat_name(j, j->seams->look, j->p->run_fd, j->name, &st) != 0) {
		if (errno == ENOENT)
			return j->old.fd < 0 ? 0 : elsewhere(j, e);
		return err_sys(e, ERR_IO, errno, "cannot look at '%s'", j->name);
	}
	if (leads_to(&st, &j->made))
		return err_set(e, ERR_UNCERTAIN, "rename of '%s': refused, and yet done", j->name);
	return leads_to(&st, &j->old) ? 0 : elsewhere(j, e);
}

/* A rename failed: which object is published now decides; the errno does not. */
static int
look_after(struct job *j, int sys, struct err *e)
{
	struct stat st;

	if (stat_name(j, j->seams->look, j->p->run_fd, j->name, &st) != 0) {
		if (errno == ENOENT && j->old.fd >= 0)
			return elsewhere(j, e);
		if (errno != ENOENT)
			return err_sys(e, ERR_IO, errno, "cannot look at '%s'", j->name);
	} else if (leads_to(&st, &j->made))
		return err_sys(e, ERR_UNCERTAIN, sys, "rename of '%s'", j->name);
	else if (!leads_to(&st, &j->old))
		return elsewhere(j, e);
	/* Neither name changed, so the one in staging has gone. */
	if (sys == ENOENT)
		return err_set(e, ERR_IDENTITY, "the new '%s' is not where it was made", j->name);
	return err_sys(e, ERR_IO, sys, "rename of '%s'", j->name);
}

static int
move(struct job *j, unsigned flags)
{
	return j->fs->renameat2(j->fs, flags == RENAME_NOREPLACE ? j->seams->install_first :
	    j->seams->install, j->p->staging_fd, j->temp, j->p->run_fd, j->name, flags);
}

static int
install(struct job *j, struct err *e)
{
	int sys;

	if (!j->p->plain) {
		if (move(j, j->old.fd >= 0 ? RENAME_EXCHANGE : RENAME_NOREPLACE) == 0)
			return 0;
		sys = errno;
		if (sys != EINVAL && sys != ENOSYS && sys != EOPNOTSUPP)
			return look_after(j, sys, e);
		j->p->plain = true;
	}
	if (look_before(j, e) != 0)
		return -1;
	return move(j, 0) == 0 ? 0 : look_after(j, errno, e);
}

/* ---- Checking what was installed ---- */

enum verdict { RIGHT, WRONG, UNKNOWN };

static enum verdict
check_names(struct job *j)
{
	struct stat st;

	if (stat_name(j, j->seams->look, j->p->run_fd, j->name, &st) != 0)
		return errno == ENOENT ? WRONG : UNKNOWN;
	if (!leads_to(&st, &j->made) || st.st_nlink != 1)
		return WRONG;
	if (j->old.fd < 0 || j->p->plain)
		return RIGHT;
	if (stat_name(j, j->seams->look, j->p->staging_fd, j->temp, &st) != 0)
		return errno == ENOENT ? WRONG : UNKNOWN;
	return leads_to(&st, &j->old) ? RIGHT : WRONG;
}

static enum verdict
compare_head(struct job *j, int fd)
{
	const size_t want = j->made.size < HEAD ? (size_t)j->made.size : HEAD;
	char head[HEAD + 1];
	struct stat st;
	ssize_t n;

	if (j->fs->fstat(j->fs, j->seams->reinspect, fd, &st) != 0)
		return UNKNOWN;
	if (!leads_to(&st, &j->made))
		return WRONG;
	do
		n = j->fs->pread(j->fs, j->seams->reread, fd, head, want + 1, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return UNKNOWN;
	if ((size_t)n < want || ((off_t)want == j->made.size && (size_t)n != want))
		return WRONG;
	return want == 0 || memcmp(head, j->head, want) == 0 ? RIGHT : WRONG;
}

/* Reads the generation back by the published name. */
static enum verdict
check_content(struct job *j)
{
	enum verdict v;
	int fd;

	fd = j->fs->openat(j->fs, j->seams->reopen, j->p->run_fd, j->name,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
	if (fd < 0)
		return errno == ENOENT || errno == ELOOP || errno == ENXIO ? WRONG : UNKNOWN;
	v = compare_head(j, fd);
	(void)fs_close(j->fs, j->seams->reclose, &fd, NULL);
	return v;
}

/* The identity check failed: both names get back what they led to before the exchange. */
static int
restore(struct job *j, struct err *e)
{
	const struct fs_ops *fs = j->fs;
	struct place *p = j->p;
	int done = -1;

	elsewhere(j, e);
	if (p->plain)
		return -1;
	if (j->old.fd >= 0)
		done = fs->renameat2(fs, j->seams->restore, p->staging_fd, j->temp, p->run_fd, j->name,
		    RENAME_EXCHANGE);
	else
		done = fs->renameat2(fs, j->seams->restore, p->run_fd, j->name, p->staging_fd, j->temp,
		    RENAME_NOREPLACE);
	/* The published name may be gone; then the displaced object returns to an empty place. */
	if (done != 0 && errno == ENOENT && j->old.fd >= 0)
		done = fs->renameat2(fs, j->seams->restore, p->staging_fd, j->temp, p->run_fd, j->name,
		    RENAME_NOREPLACE);
	if (done != 0)
		err_sys(e, ERR_IDENTITY, errno,
		    "'%s' leads to something that is not ours, and cannot be put back", j->name);
	return -1;
}

static int
verify(struct job *j, struct err *e)
{
	enum verdict v = check_names(j);

	if (v == RIGHT)
		v = check_content(j);
	if (v == WRONG)
		return restore(j, e);
	if (v == UNKNOWN)
		return err_sys(e, ERR_UNCERTAIN, errno, "cannot check the new '%s'", j->name);
	return 0;
}

static int
sync_both(struct job *j, struct err *e)
{
	bool run = true, staging = true;

	if (fs_sync_dir(j->fs, j->seams->sync_run, j->p->run_fd, &run, e) != 0 ||
	    (!j->p->more_follows &&
		fs_sync_dir(j->fs, j->seams->sync_staging, j->p->staging_fd, &staging, e) != 0)) {
		if (e != NULL)
			e->code = ERR_UNCERTAIN;
		return err_wrap(e, "'%s'", j->name);
	}
	if (!run || !staging)
		j->p->directory_sync = false;
	return 0;
}

/* The pin moves; what it held waits for the next directory fsync that succeeds. */
static void
adopt(struct job *j, struct pin *pin, struct retired *r)
{
	if (j->old.fd >= 0) {
		*r = (struct retired){.next = j->p->retired, .pin = j->old};
		if (!j->p->plain)
			memcpy(r->name, j->temp, sizeof(r->name));
		j->p->retired = r;
	} else
		free(r);
	*pin = j->made;
}

int
publish(struct place *p, const char *name, const struct publish_seams *seams, emit_content *emit,
    const void *arg, struct pin *pin, struct err *e)
{
	struct job j = {.p = p, .fs = p->fs, .seams = seams, .name = name, .made = {.fd = -1}, .old = *pin};
	struct err local = {0};
	struct retired *r;
	int result;

	/* Everything that can be short is got before anything is changed. */
	r = calloc(1, sizeof(*r));
	if (r == NULL)
		return err_nomem(e);
	result = make(&j, emit, arg, &local);
	if (result == 0)
		result = install(&j, &local);
	if (result == 0)
		result = verify(&j, &local);
	if (result == 0)
		result = sync_both(&j, &local);
	if (result == 0 || local.code == ERR_UNCERTAIN)
		adopt(&j, pin, r);
	else {
		free(r);
		drop_made(&j);
	}
	if (result == 0)
		drop_retired(p, seams);
	else if (e != NULL)
		*e = local;
	return result;
}

/* Moves a published object of ours to staging and unlinks it there. True when its name no longer
 * leads to it. */
static bool
take_away(struct place *p, const char *name, const struct publish_seams *seams,
    const struct pin *pin)
{
	const struct fs_ops *fs = p->fs;
	char temp[STAGING_NAME];
	struct stat st;

	if (fs->fstatat(fs, seams->look, p->run_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT;
	if (!leads_to(&st, pin))
		return true;
	if (generation_make(temp, NULL) != 0 ||
	    fs->renameat2(fs, seams->withdraw, p->run_fd, name, p->staging_fd, temp,
	    p->plain ? 0 : RENAME_NOREPLACE) != 0)
		return false;
	unlink_ours(p, seams->find_unused, seams->unlink_unused, temp, pin);
	return true;
}

bool
withdraw(struct place *p, const char *name, const struct publish_seams *seams, struct pin *pin)
{
	bool gone;

	if (pin->fd < 0)
		return true;
	gone = take_away(p, name, seams, pin);
	(void)fs_close(p->fs, seams->close_unused, &pin->fd, NULL);
	return gone;
}

int
place_check_name(struct place *p, const char *what, const char *name, const struct pin *pin,
    off_t size, struct err *e)
{
	struct stat st;

	if (p->fs->fstatat(p->fs, what, p->run_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
		if (errno == ENOENT)
			return err_set(e, ERR_IDENTITY, "'%s' has gone", name);
		return err_sys(e, ERR_IO, errno, "cannot look at '%s'", name);
	}
	if (!leads_to(&st, pin))
		return err_set(e, ERR_IDENTITY, "'%s' leads to something that is not ours", name);
	if (st.st_nlink != 1)
		return err_set(e, ERR_IDENTITY, "'%s' has %ju links", name, (uintmax_t)st.st_nlink);
	/* Else no reader takes it, and what was acknowledged could not be read. */
	if ((st.st_mode & (S_IRUSR | S_IWGRP | S_IWOTH)) != S_IRUSR)
		return err_set(e, ERR_IDENTITY, "'%s' has mode %04o, with which nobody reads it", name,
		    (unsigned)(st.st_mode & 07777));
	if (size >= 0 && st.st_size != size)
		return err_set(e, ERR_IDENTITY, "'%s' has %jd bytes instead of %jd: somebody else "
		    "wrote to it", name, (intmax_t)st.st_size, (intmax_t)size);
	return 0;
}

enum leads
place_leads(struct place *p, const char *what, const char *name, const struct pin *pin)
{
	struct stat st;

	if (p->fs->fstatat(p->fs, what, p->run_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? TO_NOTHING : TO_OURS;
	return leads_to(&st, pin) ? TO_OURS : TO_STRANGER;
}

int
place_check_run(struct place *p, const char *what, struct err *e)
{
	struct stat st;

	if (p->runs_fd < 0)
		return 0;
	if (p->fs->fstatat(p->fs, what, p->runs_fd, p->run_id, &st, AT_SYMLINK_NOFOLLOW) != 0) {
		if (errno == ENOENT)
			return err_set(e, ERR_IDENTITY, "the run directory has gone from its place");
		return err_sys(e, ERR_IO, errno, "cannot look at the run directory");
	}
	if (!fs_same(fs_identity_of(&st), p->run))
		return err_set(e, ERR_IDENTITY, "another directory stands in the place of the run's");
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return err_set(e, ERR_IDENTITY, "others may write to the run directory (mode %04o)",
		    (unsigned)(st.st_mode & 07777));
	return 0;
}
