#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fault_fs.h"

static const char *const op_names[FAULT_OPS] = {
	[FAULT_OPENAT] = "openat",
	[FAULT_READ] = "read",
	[FAULT_PREAD] = "pread",
	[FAULT_WRITE] = "write",
	[FAULT_FSYNC] = "fsync",
	[FAULT_FTRUNCATE] = "ftruncate",
	[FAULT_FSTAT] = "fstat",
	[FAULT_FSTATAT] = "fstatat",
	[FAULT_RENAMEAT2] = "renameat2",
	[FAULT_UNLINKAT] = "unlinkat",
	[FAULT_MKDIRAT] = "mkdirat",
	[FAULT_CLOSE] = "close",
};

const char *
fault_op_name(enum fault_op op)
{
	return op_names[op];
}

static struct fault_fs *
state_of(const struct fs_ops *fs)
{
	return (struct fault_fs *)(uintptr_t)fs;
}

static struct fault_seam *
find_seam(const struct fault_fs *f, const char *what)
{
	unsigned i;

	for (i = 0; i < f->nseams; i++)
		if (strcmp(f->seams[i].what, what) == 0)
			return (struct fault_seam *)(uintptr_t)&f->seams[i];
	return NULL;
}

static struct fault_seam *
add_seam(struct fault_fs *f, const char *what)
{
	struct fault_seam *seam = find_seam(f, what);

	if (seam != NULL)
		return seam;
	assert(f->nseams < FAULT_SEAMS);
	seam = &f->seams[f->nseams++];
	*seam = (struct fault_seam){.what = what};
	return seam;
}

static bool
strikes(struct fault *fault, const char *what)
{
	unsigned nth = fault->call > 0 ? fault->call : 1;

	if (fault->seam != NULL && strcmp(fault->seam, what) != 0)
		return false;
	fault->seen++;
	/* Space that has run out stays so. */
	return fault->seen == nth ||
	    (fault->seen > nth && (fault->persistent || fault->kind == FAULT_SPACE));
}

/* The state of one call on its way through. */
struct passage {
	struct fault_fs *f;
	struct fault_call call;
	struct fault hit; /* a copy; FAULT_NONE when nothing strikes */
	struct fault *source;
	unsigned number;
};

static void
copy_path(char to[FAULT_PATH], const char *path)
{
	snprintf(to, FAULT_PATH, "%s", path != NULL ? path : "");
}

static void
enter_with_target(struct passage *p, const struct fs_ops *fs, enum fault_op op, const char *what,
    int fd, const char *path, const char *to)
{
	unsigned i;

	*p = (struct passage){.f = state_of(fs), .call = {.op = op, .what = what, .fd = fd}};
	copy_path(p->call.path, path);
	copy_path(p->call.to, to);
	pthread_mutex_lock(&p->f->lock);
	add_seam(p->f, what)->calls++;
	p->number = p->f->total++;
	if (p->number < FAULT_CALLS)
		p->f->calls[p->number] = p->call;
	for (i = 0; i < p->f->nfaults; i++) {
		if (strikes(&p->f->faults[i], what) && p->source == NULL) {
			p->source = &p->f->faults[i];
			p->source->fired = true;
			p->hit = *p->source;
		}
	}
	pthread_mutex_unlock(&p->f->lock);
	if (p->hit.kind == FAULT_KILL_BEFORE)
		kill(getpid(), SIGKILL);
	if (p->hit.kind == FAULT_HOOK_BEFORE)
		p->hit.hook(p->hit.arg, &p->call);
}

static void
enter(struct passage *p, const struct fs_ops *fs, enum fault_op op, const char *what, int fd,
    const char *path)
{
	enter_with_target(p, fs, op, what, fd, path, NULL);
}

/* Whether the call is to be left out. */
static bool
is_refused(struct passage *p)
{
	if (p->hit.kind != FAULT_FAIL)
		return false;
	errno = p->hit.sys;
	return true;
}

static bool
carries_bytes(enum fault_op op)
{
	return op == FAULT_READ || op == FAULT_PREAD || op == FAULT_WRITE;
}

static long
leave(struct passage *p, long result)
{
	int sys = errno;

	if (p->hit.kind == FAULT_FAIL_AFTER) {
		result = -1;
		sys = p->hit.sys;
	}
	p->call.result = result;
	p->call.sys = result < 0 ? sys : 0;
	pthread_mutex_lock(&p->f->lock);
	if (p->number < FAULT_CALLS)
		p->f->calls[p->number] = p->call;
	if (result > 0 && carries_bytes(p->call.op))
		find_seam(p->f, p->call.what)->bytes += (size_t)result;
	if (result > 0 && p->hit.kind == FAULT_SPACE)
		p->source->bytes -= (size_t)result;
	pthread_mutex_unlock(&p->f->lock);
	if (p->hit.kind == FAULT_KILL_AFTER || p->hit.kind == FAULT_TEAR)
		kill(getpid(), SIGKILL);
	if (p->hit.kind == FAULT_HOOK_AFTER)
		p->hit.hook(p->hit.arg, &p->call);
	errno = sys;
	return result;
}

/* How many of len bytes the call may carry. */
static size_t
allowed(const struct passage *p, size_t len)
{
	bool limited = p->hit.kind == FAULT_SHORT || p->hit.kind == FAULT_TEAR ||
	    (p->hit.kind == FAULT_SPACE && p->call.op == FAULT_WRITE);

	return limited && p->hit.bytes < len ? p->hit.bytes : len;
}

static int
f_openat(const struct fs_ops *fs, const char *what, int dirfd, const char *path, int flags,
    mode_t mode)
{
	struct passage p;

	enter(&p, fs, FAULT_OPENAT, what, dirfd, path);
	return (int)leave(&p,
	    is_refused(&p) ? -1 : fs_real.openat(&fs_real, what, dirfd, path, flags, mode));
}

static ssize_t
f_read(const struct fs_ops *fs, const char *what, int fd, void *to, size_t len)
{
	struct passage p;

	enter(&p, fs, FAULT_READ, what, fd, NULL);
	return leave(&p,
	    is_refused(&p) ? -1 : fs_real.read(&fs_real, what, fd, to, allowed(&p, len)));
}

static ssize_t
f_pread(const struct fs_ops *fs, const char *what, int fd, void *to, size_t len, off_t at)
{
	struct passage p;

	enter(&p, fs, FAULT_PREAD, what, fd, NULL);
	return leave(&p,
	    is_refused(&p) ? -1 : fs_real.pread(&fs_real, what, fd, to, allowed(&p, len), at));
}

static ssize_t
f_write(const struct fs_ops *fs, const char *what, int fd, const void *from, size_t len)
{
	struct passage p;
	bool refused;

	enter(&p, fs, FAULT_WRITE, what, fd, NULL);
	refused = is_refused(&p);
	if (p.hit.kind == FAULT_SPACE && p.hit.bytes == 0 && len > 0) {
		errno = p.hit.sys != 0 ? p.hit.sys : ENOSPC;
		refused = true;
	}
	return leave(&p, refused ? -1 : fs_real.write(&fs_real, what, fd, from, allowed(&p, len)));
}

static int
f_fsync(const struct fs_ops *fs, const char *what, int fd)
{
	struct passage p;

	enter(&p, fs, FAULT_FSYNC, what, fd, NULL);
	return (int)leave(&p, is_refused(&p) ? -1 : fs_real.fsync(&fs_real, what, fd));
}

static int
f_ftruncate(const struct fs_ops *fs, const char *what, int fd, off_t len)
{
	struct passage p;

	enter(&p, fs, FAULT_FTRUNCATE, what, fd, NULL);
	return (int)leave(&p, is_refused(&p) ? -1 : fs_real.ftruncate(&fs_real, what, fd, len));
}

static int
f_fstat(const struct fs_ops *fs, const char *what, int fd, struct stat *st)
{
	struct passage p;

	enter(&p, fs, FAULT_FSTAT, what, fd, NULL);
	return (int)leave(&p, is_refused(&p) ? -1 : fs_real.fstat(&fs_real, what, fd, st));
}

static int
f_fstatat(const struct fs_ops *fs, const char *what, int dirfd, const char *path, struct stat *st,
    int flags)
{
	struct passage p;

	enter(&p, fs, FAULT_FSTATAT, what, dirfd, path);
	return (int)leave(&p,
	    is_refused(&p) ? -1 : fs_real.fstatat(&fs_real, what, dirfd, path, st, flags));
}

static int
f_renameat2(const struct fs_ops *fs, const char *what, int fromfd, const char *from, int tofd,
    const char *to, unsigned flags)
{
	struct passage p;

	enter_with_target(&p, fs, FAULT_RENAMEAT2, what, fromfd, from, to);
	return (int)leave(&p,
	    is_refused(&p) ? -1 :
			     fs_real.renameat2(&fs_real, what, fromfd, from, tofd, to, flags));
}

static int
f_unlinkat(const struct fs_ops *fs, const char *what, int dirfd, const char *path, int flags)
{
	struct passage p;

	enter(&p, fs, FAULT_UNLINKAT, what, dirfd, path);
	return (int)leave(&p,
	    is_refused(&p) ? -1 : fs_real.unlinkat(&fs_real, what, dirfd, path, flags));
}

static int
f_mkdirat(const struct fs_ops *fs, const char *what, int dirfd, const char *path, mode_t mode)
{
	struct passage p;

	enter(&p, fs, FAULT_MKDIRAT, what, dirfd, path);
	return (int)leave(&p,
	    is_refused(&p) ? -1 : fs_real.mkdirat(&fs_real, what, dirfd, path, mode));
}

static int
f_close(const struct fs_ops *fs, const char *what, int fd)
{
	struct passage p;

	enter(&p, fs, FAULT_CLOSE, what, fd, NULL);
	/* Linux frees the number also when close fails: a call left out would be a leak of ours. */
	if (p.hit.kind == FAULT_FAIL)
		p.hit.kind = FAULT_FAIL_AFTER;
	return (int)leave(&p, fs_real.close(&fs_real, what, fd));
}

static const struct fs_ops fault_ops = {
	.openat = f_openat,
	.read = f_read,
	.pread = f_pread,
	.write = f_write,
	.fsync = f_fsync,
	.ftruncate = f_ftruncate,
	.fstat = f_fstat,
	.fstatat = f_fstatat,
	.renameat2 = f_renameat2,
	.unlinkat = f_unlinkat,
	.mkdirat = f_mkdirat,
	.close = f_close,
};

struct fault_fs *
fault_fs_new(void)
{
	struct fault_fs *f = mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t attr;

	if (f == MAP_FAILED)
		abort();
	f->ops = fault_ops;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&f->lock, &attr);
	pthread_mutexattr_destroy(&attr);
	return f;
}

void
fault_fs_free(struct fault_fs *f)
{
	if (f == NULL)
		return;
	pthread_mutex_destroy(&f->lock);
	munmap(f, sizeof(*f));
}

void
fault_fs_add(struct fault_fs *f, struct fault fault)
{
	pthread_mutex_lock(&f->lock);
	assert(f->nfaults < FAULT_MAX);
	fault.seen = 0;
	fault.fired = false;
	f->faults[f->nfaults++] = fault;
	pthread_mutex_unlock(&f->lock);
}

void
fault_fs_disarm(struct fault_fs *f)
{
	pthread_mutex_lock(&f->lock);
	f->nfaults = 0;
	pthread_mutex_unlock(&f->lock);
}

void
fault_fs_reset(struct fault_fs *f)
{
	pthread_mutex_lock(&f->lock);
	f->nfaults = 0;
	f->nseams = 0;
	f->total = 0;
	pthread_mutex_unlock(&f->lock);
}

bool
fault_fs_fired(const struct fault_fs *f)
{
	unsigned i;

	for (i = 0; i < f->nfaults; i++)
		if (f->faults[i].fired)
			return true;
	return false;
}

unsigned
fault_fs_calls(const struct fault_fs *f, const char *seam)
{
	const struct fault_seam *s = find_seam(f, seam);

	return s != NULL ? s->calls : 0;
}

size_t
fault_fs_bytes(const struct fault_fs *f, const char *seam)
{
	const struct fault_seam *s = find_seam(f, seam);

	return s != NULL ? s->bytes : 0;
}

void
fault_fs_sequence(const struct fault_fs *f, struct buf *to)
{
	unsigned i;

	for (i = 0; i < f->total && i < FAULT_CALLS; i++)
		buf_printf(to, "%s %s\n", op_names[f->calls[i].op], f->calls[i].what);
}
