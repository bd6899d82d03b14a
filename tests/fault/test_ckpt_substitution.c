/*
 * Files swapped before every call that the writer makes: the base, the journal, the object in
 * staging, the staging directory and the run directory, each replaced by a regular file, a symbolic
 * link, a directory or a FIFO, deleted, or given a second link. No byte of ours may reach a
 * stranger, no stranger may be unlinked, and nothing is acknowledged that cannot be found again by
 * whoever puts our own files back. What has gone, staging too, or got a second link is replaced, and the
 * writer goes on; beside a stranger in the journal's place all that was acknowledged is found as it lies there.
 *
 * Outside the promise: a swap of the name in staging between fstatat and unlinkat, because Linux
 * cannot unlink by identity. Those two calls are counted apart.
 */
#include "ckpt_workload.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum target { BASE, JOURNAL, TEMP, STAGING, RUN, TARGETS };
enum kind { REGULAR, SYMLINK, DIRECTORY, FIFO, DELETED, LINKED, KINDS };

static const char *const target_names[] = {"base", "journal", "temporary", "staging", "run"};
static const char *const kind_names[] = {"file", "symlink", "directory", "fifo", "deletion", "link"};
static const char sentinel_text[] = "SENTINEL";

struct swap {
	struct fixture fx;
	struct fault_fs *fs;
	struct outcome *out;
	enum target target;
	enum kind kind;
	/* What the hook did. */
	bool struck;
	char name[64]; /* below dirfd */
	int dirfd;
	ino_t planted, stolen;
	unsigned acked; /* when it struck */
};

static unsigned long cases, excepted, refused, recovered, strands;

/* ---- Swapping: on the writer's thread, so without assertions ---- */

/* The newest name in staging, or false. */
static bool
find_temp(int staging_fd, char name[64])
{
	int fd = openat(staging_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;
	bool found = false;

	while (d != NULL && (entry = readdir(d)) != NULL)
		if (entry->d_name[0] != '.') {
			snprintf(name, 64, "%.60s", entry->d_name);
			found = true;
		}
	if (d != NULL)
		closedir(d);
	return found;
}

static bool
aim(struct swap *s)
{
	s->dirfd = dup(s->target == RUN ? s->fx.home.fd : s->fx.run_fd);
	if (s->target == TEMP) {
		fd_close(&s->dirfd);
		s->dirfd = openat(s->fx.run_fd, CKPT_STAGING, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		return s->dirfd >= 0 && find_temp(s->dirfd, s->name);
	}
	snprintf(s->name, sizeof(s->name), "%s", s->target == BASE ? CKPT_BASE : s->target == JOURNAL ?
	    CKPT_JOURNAL : s->target == STAGING ? CKPT_STAGING : FIXTURE_RUN);
	return true;
}

static void
plant(struct swap *s)
{
	char outside[600];
	struct stat st;
	int fd;

	snprintf(outside, sizeof(outside), "%s/sentinel", s->fx.home.path);
	switch (s->kind) {
	case REGULAR:
		fd = openat(s->dirfd, s->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0 || write(fd, sentinel_text, 8) != 8)
			abort();
		close(fd);
		break;
	case SYMLINK:
		if (symlinkat(outside, s->dirfd, s->name) != 0)
			abort();
		break;
	case DIRECTORY:
		if (mkdirat(s->dirfd, s->name, 0700) != 0)
			abort();
		break;
	case FIFO:
		if (mkfifoat(s->dirfd, s->name, 0600) != 0)
			abort();
		break;
	case DELETED:
	case LINKED:
	case KINDS:
		return;
	}
	if (fstatat(s->dirfd, s->name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		abort();
	s->planted = st.st_ino;
}

static void
hook(void *arg, const struct fault_call *call)
{
	struct swap *s = arg;
	struct stat st;

	(void)call;
	s->dirfd = -1;
	s->acked = s->out->acked;
	if (!aim(s)) {
		fd_close(&s->dirfd);
		return;
	}
	if (fstatat(s->dirfd, s->name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		s->stolen = st.st_ino;
		if (s->kind == LINKED) {
			s->struck = linkat(s->dirfd, s->name, s->fx.home.fd, "stolen", 0) == 0;
			return;
		}
		if (renameat(s->dirfd, s->name, s->fx.home.fd, "stolen") != 0)
			abort();
	} else if (s->kind == DELETED || s->kind == LINKED)
		return;
	plant(s);
	s->struck = true;
}

/* ---- Judging ---- */

static bool
find_inode(int dirfd, ino_t ino, char name[64])
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;
	struct stat st;
	bool found = false;

	while (d != NULL && !found && (entry = readdir(d)) != NULL)
		if (fstatat(dirfd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == ino &&
		    strcmp(entry->d_name, ".") != 0) {
			snprintf(name, 64, "%.60s", entry->d_name);
			found = true;
		}
	if (d != NULL)
		closedir(d);
	return found;
}

static bool
is_empty_dir(int dirfd, const char *name)
{
	return unlinkat(dirfd, name, AT_REMOVEDIR) == 0;
}

/* The stranger still exists, in its place or moved to staging, and is as it was. */
static const char *
stranger_fault(struct swap *s)
{
	int staging = openat(s->fx.run_fd, CKPT_STAGING, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int at = s->dirfd;
	const char *fault = NULL;
	char name[64], text[16] = "";
	int fd;

	if (s->planted == 0)
		goto out;
	if (!find_inode(at, s->planted, name)) {
		at = s->target == TEMP ? s->fx.run_fd : staging;
		if (at < 0 || !find_inode(at, s->planted, name)) {
			fault = "the stranger is gone";
			goto out;
		}
	}
	if (s->kind == REGULAR) {
		fd = openat(at, name, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || read(fd, text, sizeof(text)) != 8 || memcmp(text, sentinel_text, 8) != 0)
			fault = "the stranger was written to";
		fd_close(&fd);
	}
	if (s->kind == DIRECTORY && !is_empty_dir(at, name))
		fault = "something was put into the strange directory";
	else
		unlinkat(at, name, s->kind == DIRECTORY ? AT_REMOVEDIR : 0);
out:
	fd_close(&staging);
	return fault;
}

static bool
sentinel_is_whole(const struct swap *s)
{
	char *text = test_file_read(s->fx.home.fd, "sentinel");
	bool whole = strcmp(text, sentinel_text) == 0;

	free(text);
	return whole;
}

/*
 * Calls that are still followed by a look at the name within the same transition: what is swapped
 * before them may not be acknowledged by it, nor by any later one.
 */
static const struct {
	const char *what;
	unsigned targets;
} watched[] = {
	{"ckpt.append.before_base", 1u << BASE | 1u << JOURNAL | 1u << RUN},
	{"ckpt.append.before_journal", 1u << BASE | 1u << JOURNAL | 1u << RUN},
	{"ckpt.append.before_run", 1u << BASE | 1u << JOURNAL | 1u << RUN},
	{"ckpt.append.write", 1u << BASE | 1u << JOURNAL | 1u << RUN},
	{"ckpt.append.sync", 1u << BASE | 1u << JOURNAL | 1u << RUN},
	{"ckpt.append.after_base", 1u << BASE | 1u << JOURNAL | 1u << RUN},
	{"ckpt.append.after_journal", 1u << JOURNAL | 1u << RUN},
	{"ckpt.append.after_run", 1u << RUN},
	{"ckpt.staging.look", 1u << BASE | 1u << JOURNAL | 1u << STAGING | 1u << RUN},
	{"ckpt.base.install", 1u << BASE | 1u << JOURNAL | 1u << RUN},
	{"ckpt.rotate.base", 1u << BASE | 1u << JOURNAL | 1u << RUN},
	{"ckpt.rotate.journal", 1u << JOURNAL | 1u << RUN},
	{"ckpt.rotate.run", 1u << RUN},
};

static const char *
acknowledgement_fault(const struct swap *s, const char *what)
{
	size_t i;

	/* A base that got a second link just before it is displaced takes nothing with it. */
	if (s->kind == LINKED && s->target == BASE && strcmp(what, "ckpt.base.install") == 0)
		return NULL;
	/* What is not there any more, or is ours with another name, is replaced first; and a stranger in the
	 * place of the journal is left out: see recovery_fault(). */
	if ((s->target <= JOURNAL || s->target == STAGING) && (s->kind == DELETED || s->kind == LINKED))
		return NULL;
	if (s->target == JOURNAL && s->out->code != ERR_NONE)
		return NULL;
	for (i = 0; i < sizeof(watched) / sizeof(watched[0]); i++)
		if (strcmp(watched[i].what, what) == 0 && (watched[i].targets & 1u << s->target) != 0 &&
		    s->out->opened && s->out->acked > s->acked)
			return "acknowledged behind a swap";
	return NULL;
}

/*
 * Before anything is put back: a pair that lost a file is whole again, and beside a stranger in the place of
 * the journal there is one file that says it all.
 */
static const char *
recovery_fault(const struct swap *s, char text[512])
{
	const bool ours = s->kind == DELETED || s->kind == LINKED;

	if (!s->out->opened || (s->target > JOURNAL && s->target != STAGING))
		return NULL;
	if (ours && s->out->code != ERR_NONE)
		return "no recovery";
	if (ours && s->out->acked != WORKLOAD_STEPS)
		return "not all was acknowledged";
	if (s->target != JOURNAL || s->out->code == ERR_NONE)
		return NULL;
	strands++;
	return workload_judge(s->fx.run_fd, s->out, text) == -1 ? text : NULL;
}

/* What stood at the name before an exchange stands there again after it was undone. */
static const char *
exchange_fault(const struct swap *s, const char *what)
{
	const bool hit = (s->target == BASE && strcmp(what, "ckpt.base.install") == 0) ||
	    (s->target == JOURNAL && strcmp(what, "ckpt.journal.install") == 0);
	struct stat st;

	if (!hit || s->planted == 0)
		return NULL;
	if (fstatat(s->fx.run_fd, s->name, &st, AT_SYMLINK_NOFOLLOW) != 0 || st.st_ino != s->planted)
		return "the exchange was not undone";
	return NULL;
}

static bool
is_missing(const struct swap *s, const char *name)
{
	struct stat st;

	return fstatat(s->fx.run_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0;
}

/*
 * Our own object goes back to where it was taken from, as far as nothing of ours stands there. What
 * was taken from staging may be the one that had just been displaced; then the exchange was undone,
 * and the published name is its place.
 */
static void
put_back(struct swap *s)
{
	if (s->stolen == 0)
		return;
	if (s->kind == LINKED)
		unlinkat(s->fx.home.fd, "stolen", 0);
	else if (s->target == TEMP && is_missing(s, CKPT_BASE))
		renameat(s->fx.home.fd, "stolen", s->fx.run_fd, CKPT_BASE);
	else if (s->target == TEMP && is_missing(s, CKPT_JOURNAL))
		renameat(s->fx.home.fd, "stolen", s->fx.run_fd, CKPT_JOURNAL);
	else
		renameat2(s->fx.home.fd, "stolen", s->dirfd, s->name, RENAME_NOREPLACE);
}

static void
run_case(struct swap *s, const struct fault_call *call, unsigned nth)
{
	struct ckpt_options o;
	char text[512] = "";
	const char *fault;

	fixture_again(&s->fx);
	fault_fs_reset(s->fs);
	unlinkat(s->fx.home.fd, "stolen", 0);
	unlinkat(s->fx.home.fd, "stolen", AT_REMOVEDIR);
	s->struck = false;
	s->planted = s->stolen = 0;
	s->dirfd = -1;
	fault_fs_add(s->fs, (struct fault){.kind = FAULT_HOOK_BEFORE, .seam = call->what, .call = nth,
	    .hook = hook, .arg = s});
	o = workload_options(&s->fx, &s->fs->ops);
	workload_run(&o, 1, s->out);
	if (s->struck) {
		fault = acknowledgement_fault(s, call->what);
		if (fault == NULL)
			fault = exchange_fault(s, call->what);
		if (fault == NULL)
			fault = recovery_fault(s, text);
		if (fault == NULL)
			fault = stranger_fault(s);
		if (fault == NULL && !sentinel_is_whole(s))
			fault = "the sentinel was written to";
		put_back(s);
		if (fault == NULL && s->out->code != ERR_NONE && s->out->code != ERR_IDENTITY &&
		    s->out->code != ERR_REFUSED && s->out->code != ERR_IO)
			fault = "not a typed error";
		/* A start that was refused promised nothing. */
		if (fault == NULL && s->out->opened &&
		    workload_judge(s->fx.run_fd, s->out, text) == -1)
			fault = text;
		if (fault != NULL)
			fail_msg("%s for %s before %s (%u): %s; opened %d, acked %u: %s",
			    kind_names[s->kind], target_names[s->target], call->what, nth, fault,
			    s->out->opened, s->out->acked, s->out->msg);
		cases++;
		*(s->out->code == ERR_NONE ? &recovered : &refused) += 1;
	}
	fd_close(&s->dirfd);
}

static bool
is_excepted(const struct swap *s, const struct fault_call *call)
{
	return s->target == TEMP && call->op == FAULT_UNLINKAT;
}

static void
test_substitution__at_every_call(void **unused)
{
	static struct fault_call calls[512];
	struct swap s = {.dirfd = -1};
	struct ckpt_options o;
	unsigned total, i, j, nth;
	int target, kind;

	(void)unused;
	fixture_make(&s.fx);
	test_file_write(s.fx.home.fd, "sentinel", sentinel_text);
	s.fs = fault_fs_new();
	s.out = outcome_shared();
	o = workload_options(&s.fx, &s.fs->ops);
	workload_run(&o, 0, s.out);
	assert_int_equal(s.out->acked, WORKLOAD_STEPS);
	total = s.fs->total;
	assert_in_range(total, 1, 512);
	memcpy(calls, s.fs->calls, total * sizeof(calls[0]));
	for (i = 0; i < total; i++) {
		for (nth = 0, j = 0; j <= i; j++)
			nth += strcmp(calls[j].what, calls[i].what) == 0;
		for (target = 0; target < TARGETS; target++)
			for (kind = 0; kind < KINDS; kind++) {
				s.target = (enum target)target;
				s.kind = (enum kind)kind;
				if (is_excepted(&s, &calls[i]))
					excepted++;
				else if (kind != LINKED || target <= TEMP)
					run_case(&s, &calls[i], nth);
			}
	}
	print_message("# %lu swaps before %u calls: %lu refused, %lu without consequence; %lu between "
	    "fstatat and unlinkat left out\n", cases, total, refused, recovered, excepted);
	assert_true(refused > 0 && strands > 0 && cases > 1000);
	fault_fs_free(s.fs);
	workload_free();
	fixture_remove(&s.fx);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_substitution__at_every_call),
};

int
main(void)
{
	use_fast_directory();
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("substitution", tests, NULL, NULL);
}
