#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/fs.h"

enum { FILE_MOST = 64 << 20, WAIT_MOST_S = 60 };
#define WAIT_STEP_NS (2 * NS_PER_MS)

void
test_dir_make(struct test_dir *dir)
{
	const char *above = getenv("TMPDIR");

	if (above == NULL || above[0] == '\0')
		above = "/tmp";
	snprintf(dir->path, sizeof(dir->path), "%s/flowsup-test-XXXXXX", above);
	assert_non_null(mkdtemp(dir->path));
	dir->fd = open(dir->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir->fd >= 0);
}

void
test_dir_remove(struct test_dir *dir)
{
	struct err e = {0};

	fd_close(&dir->fd);
	if (getenv("FLOWSUP_TEST_KEEP") == NULL)
		assert_works(fs_remove_tree(AT_FDCWD, dir->path, &e), e);
}

void
test_file_write(int dirfd, const char *name, const char *text)
{
	int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct err e = {0};

	assert_true(fd >= 0);
	assert_works(fs_write_all(&fs_real, "test", fd, slice_of(text), &e), e);
	fd_close(&fd);
}

char *
test_file_read(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
	struct buf content = {0};
	struct err e = {0};
	char *text;

	assert_true(fd >= 0);
	assert_works(fs_read_all(&fs_real, "test", fd, FILE_MOST, &content, &e), e);
	fd_close(&fd);
	text = buf_steal(&content);
	assert_non_null(text);
	return text;
}

/* As LIMIT of the process tests: a slow machine, or a build that is slow itself, is no failure. */
static int64_t
wait_most_ns(void)
{
	const char *given = getenv("FLOWSUP_TEST_LIMIT");
	int seconds = given != NULL ? atoi(given) : 0;

	return (seconds > 0 ? seconds : WAIT_MOST_S) * NS_PER_S;
}

bool
test_wait_for(bool (*condition)(void *), void *arg)
{
	const struct timespec step = {.tv_nsec = WAIT_STEP_NS};
	int64_t end = clock_monotonic_ns() + wait_most_ns();

	while (!condition(arg)) {
		if (clock_monotonic_ns() > end)
			return false;
		nanosleep(&step, NULL);
	}
	return true;
}

struct json *
test_json(const char *text)
{
	struct json *v = NULL;
	struct err e = {0};

	if (text != NULL && json_parse(slice_of(text), NULL, &v, NULL, &e) != 0)
		fail_msg("%s: %s", text, e.msg);
	return v;
}

int
test_count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	assert_non_null(dir);
	while (readdir(dir) != NULL)
		count++;
	closedir(dir);
	return count;
}
