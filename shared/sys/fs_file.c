/* Small files that belong to us: read, created, replaced. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "flowsup/fs.h"

enum { TEMP_NAME = 32, TEMP_TRIES = 16 };

static enum err_code
code_of_open(int sys)
{
	switch (sys) {
	case ENOENT:
		return ERR_NOTFOUND;
	case EACCES:
	case EPERM:
		return ERR_PERMISSION;
	case ELOOP:
	case ENXIO: /* a socket */
		return ERR_IDENTITY;
	default:
		return ERR_IO;
	}
}

static int
check_private_file(int fd, const char *name, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return err_sys(e, ERR_IO, errno, "%s", name);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_IDENTITY, "%s: not a regular file", name);
	if (st.st_uid != geteuid())
		return err_set(e, ERR_PERMISSION, "%s: belongs to user %ju, not to us", name,
		    (uintmax_t)st.st_uid);
	/* No link at all is fine: a writer has put a newer file in its place since we opened it. */
	if (st.st_nlink > 1)
		return err_set(e, ERR_IDENTITY, "%s: has %ju links", name, (uintmax_t)st.st_nlink);
	return 0;
}

int
fs_read_private_file(int dirfd, const char *name, size_t max_bytes, struct buf *to, struct err *e)
{
	int fd, result = -1;

	fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, code_of_open(errno), errno, "%s", name);
	if (check_private_file(fd, name, e) != 0)
		goto out;
	result = fs_read_all(&fs_real, "private.read", fd, max_bytes, to, e);
	if (result != 0)
		err_wrap(e, "%s", name);
out:
	fd_close(&fd);
	return result;
}

/* Takes `name` away, but only while it leads to the file behind fd. */
static void
unlink_own(int dirfd, const char *name, int fd)
{
	struct stat ours, there;

	if (fstat(fd, &ours) == 0 && fstatat(dirfd, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
	    fs_same(fs_identity_of(&ours), fs_identity_of(&there)))
		unlinkat(dirfd, name, 0);
}

static int
sync_file(int fd, struct err *e)
{
	return fsync(fd) == 0 ? 0 : err_sys(e, ERR_IO, errno, "cannot sync");
}

static int
open_new(int dirfd, const char *name)
{
	return openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

static enum err_code
code_of_create(int sys)
{
	return sys == ENOSPC || sys == EDQUOT ? ERR_NOSPACE : ERR_CREATE;
}

/* Written, not yet synced. */
static int
create_file(int dirfd, const char *name, struct slice bytes, int *out, struct err *e)
{
	int fd = open_new(dirfd, name);

	if (fd < 0)
		return err_sys(e, code_of_create(errno), errno, "cannot create %s", name);
	if (fs_write_all(&fs_real, "file.write", fd, bytes, e) != 0) {
		err_wrap(e, "%s", name);
		unlink_own(dirfd, name, fd);
		fd_close(&fd);
		return -1;
	}
	*out = fd;
	return 0;
}

int
fs_create_file(int dirfd, const char *name, struct slice bytes, struct err *e)
{
	int fd, result;

	if (create_file(dirfd, name, bytes, &fd, e) != 0)
		return -1;
	result = sync_file(fd, e);
	if (result != 0) {
		err_wrap(e, "%s", name);
		unlink_own(dirfd, name, fd);
	}
	fd_close(&fd);
	return result;
}

int
fs_begin_file(int dirfd, const char *name, struct slice bytes, int *out, struct err *e)
{
	if (create_file(dirfd, name, bytes, out, e) != 0)
		return -1;
	/* A beginning: what cannot be begun, or fails, fsync does and tells. */
	(void)sync_file_range(*out, 0, 0, SYNC_FILE_RANGE_WRITE);
	return 0;
}

/* An empty file under a random name, which goes to `name`. */
static int
open_temporary(int dirfd, char name[TEMP_NAME], struct err *e)
{
	uint64_t random;
	int fd, tries;

	for (tries = 0; tries < TEMP_TRIES; tries++) {
		if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
			return err_sys(e, ERR_IO, errno, "cannot get random bytes");
		snprintf(name, TEMP_NAME, ".tmp-%016" PRIx64, random);
		fd = open_new(dirfd, name);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			break;
	}
	return err_sys(e, code_of_create(errno), errno, "cannot create a temporary file");
}

int
fs_replace_file(int dirfd, const char *name, struct slice bytes, struct err *e)
{
	char temp[TEMP_NAME];
	int fd = open_temporary(dirfd, temp, e);
	int result = -1;

	if (fd < 0)
		return err_wrap(e, "%s", name);
	if (fs_write_all(&fs_real, "file.write", fd, bytes, e) != 0 || sync_file(fd, e) != 0)
		goto out;
	if (renameat(dirfd, temp, dirfd, name) != 0) {
		err_sys(e, ERR_IO, errno, "cannot rename");
		goto out;
	}
	/* From here on the new content is in place; only whether it survives a crash is open. */
	if (fs_sync_dir(&fs_real, "file.syncdir", dirfd, NULL, e) != 0) {
		if (e != NULL)
			e->code = ERR_UNCERTAIN;
		goto out;
	}
	result = 0;
out:
	if (result != 0) {
		err_wrap(e, "%s", name);
		unlink_own(dirfd, temp, fd);
	}
	fd_close(&fd);
	return result;
}

/* statfs(2) lists the numbers; those without a macro in <linux/magic.h> stand here by value. */
static const struct {
	unsigned long magic;
	const char *name;
	bool remote;
} kinds[] = {
    {0xEF53, "ext4", false},
    {0x58465342, "xfs", false},
    {0x9123683E, "btrfs", false},
    {0x01021994, "tmpfs", false},
    {0x794C7630, "overlay", false},
    {0xF2F52010, "f2fs", false},
    {0xCA451A4E, "bcachefs", false},
    {0x2FC12FC1, "zfs", false},
    {0x3153464A, "jfs", false},
    {0x4D44, "vfat", false},
    {0x2011BAB0, "exfat", false},
    {0x5346544E, "ntfs", false},
    {0x7366746E, "ntfs3", false},
    {0x858458F6, "ramfs", false},
    {0xF15F, "ecryptfs", false},
    {0x61756673, "aufs", false},
    {0x24051905, "ubifs", false},
    {0x6969, "nfs", true},
    {0xFF534D42, "cifs", true},
    {0xFE534D42, "smb2", true},
    {0x517B, "smb", true},
    {0x01021997, "9p", true},
    {0x5346414F, "afs", true},
    {0x00C36400, "ceph", true},
    {0x0BD00BD0, "lustre", true},
    {0x47504653, "gpfs", true},
    {0x01161970, "gfs2", true},
    {0x7461636F, "ocfs2", true},
    {0x786F4256, "vboxsf", true},
    {0x65735546, "fuse", true}, /* may be local (ntfs-3g), may be sshfs: nobody can tell */
};

int
fs_kind(int fd, const char **name, bool *remote, struct err *e)
{
	struct statfs st;
	size_t i;

	if (fstatfs(fd, &st) != 0)
		return err_sys(e, ERR_IO, errno, "cannot tell the file system");
	*name = "unknown";
	*remote = false;
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		/* f_type is signed on some machines and of 32 bits on others. */
		if (((unsigned long)st.f_type & 0xFFFFFFFFUL) == kinds[i].magic) {
			*name = kinds[i].name;
			*remote = kinds[i].remote;
			break;
		}
	}
	return 0;
}
