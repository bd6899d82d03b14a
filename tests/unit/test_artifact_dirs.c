/* Directories of artifacts: there while an operation runs, empty, its own; and few. */
#include "run_fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

enum { CHAIN = 30 };

/* How many directories are left below artifacts/. */
static unsigned
count_left(struct run_fixture *r)
{
	int fd = openat(r->run_fd, "artifacts", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *entry;
	unsigned n = 0;
	DIR *dir;

	assert_true(fd >= 0);
	dir = fdopendir(fd);
	assert_non_null(dir);
	while ((entry = readdir(dir)) != NULL)
		n += entry->d_name[0] != '.';
	closedir(dir);
	return n;
}

static void
test_artifact_dirs__empty_ones_are_used_again(void **state)
{
	struct buf text = {0};
	struct run_fixture r;
	char name[16], wanted[16];
	int i;

	(void)state;
	buf_puts(&text, "concurrency: 1\nplan:\n");
	for (i = 0; i < CHAIN; i++) {
		buf_printf(&text, "  - {id: o%d, ", i);
		if (i > 0)
			buf_printf(&text, "needs: [o%d], ", i - 1);
		buf_puts(&text, "run: 'cd \"$FLOWSUP_ARTIFACTS\" && pwd | sed s:.*/:: && ls -A'}\n");
	}
	run_whole(&r, buf_text(&text), STATUS_COMPLETED, "run.completed.all");
	for (i = 0; i < CHAIN; i++) {
		snprintf(name, sizeof(name), "o%d", i);
		snprintf(wanted, sizeof(wanted), "o%d\n", i);
		run_assert_response(&r, name, wanted);
	}
	assert_int_equal(count_left(&r), 1);
	run_clear(&r);
	buf_clear(&text);
}

static void
test_artifact_dirs__what_is_not_empty_stays(void **state)
{
	struct run_fixture r;

	(void)state;
	run_whole(&r,
	    "concurrency: 1\n"
	    "plan:\n"
	    "  - {id: file, run: 'echo one >\"$FLOWSUP_ARTIFACTS/x\"'}\n"
	    "  - {id: hidden, needs: [file], run: 'echo two >\"$FLOWSUP_ARTIFACTS/.y\"'}\n"
	    "  - {id: directory, needs: [hidden], run: 'mkdir \"$FLOWSUP_ARTIFACTS/z\"'}\n"
	    "  - {id: none, needs: [directory], run: 'ls -A \"$FLOWSUP_ARTIFACTS\"'}\n"
	    "  - {id: last, needs: [none], run: 'ls -A \"$FLOWSUP_ARTIFACTS\"'}\n",
	    STATUS_COMPLETED, "run.completed.all");
	assert_true(run_has_file(&r, "artifacts/file/x"));
	assert_true(run_has_file(&r, "artifacts/hidden/.y"));
	assert_true(run_has_file(&r, "artifacts/directory/z"));
	run_assert_response(&r, "none", "");
	run_assert_response(&r, "last", "");
	assert_false(run_has_file(&r, "artifacts/none"));
	assert_true(run_has_file(&r, "artifacts/last"));
	run_clear(&r);
}

/* Whoever is told the name of a directory finds it, and nothing of another operation in it. */
static void
test_artifact_dirs__a_named_one_stays(void **state)
{
	struct run_fixture r;

	(void)state;
	run_whole(&r,
	    "concurrency: 1\n"
	    "plan:\n"
	    "  - {id: a, run: ':'}\n"
	    "  - {id: b, needs: [a], run: ':'}\n"
	    "  - {id: c, needs: [b], exec: [ls, -d, '{{artifacts.a}}', '{{artifacts.b}}']}\n"
	    "  - {id: d, needs: [c], run: 'echo d >\"$FLOWSUP_ARTIFACTS/d\"'}\n"
	    "  - {id: e, needs: [d], exec: [ls, -A, '{{artifacts.b}}']}\n",
	    STATUS_COMPLETED, "run.completed.all");
	run_assert_response(&r, "e", "");
	assert_true(run_has_file(&r, "artifacts/a"));
	assert_true(run_has_file(&r, "artifacts/b"));
	assert_true(run_has_file(&r, "artifacts/d/d"));
	run_clear(&r);
}

/* Late writers of an operation that is over must not be able to make another one's contract. */
static void
test_artifact_dirs__declared_ones_are_new(void **state)
{
	struct run_fixture r;

	(void)state;
	run_whole(&r,
	    "concurrency: 1\n"
	    "plan:\n"
	    "  - {id: a, run: ':'}\n"
	    "  - {id: b, needs: [a], artifacts: [x], run: 'echo x >\"$FLOWSUP_ARTIFACTS/x\"'}\n",
	    STATUS_COMPLETED, "run.completed.all");
	assert_true(run_has_file(&r, "artifacts/a"));
	assert_true(run_has_file(&r, "artifacts/b/x"));
	run_clear(&r);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_artifact_dirs__empty_ones_are_used_again),
    cmocka_unit_test(test_artifact_dirs__what_is_not_empty_stays),
    cmocka_unit_test(test_artifact_dirs__a_named_one_stays),
    cmocka_unit_test(test_artifact_dirs__declared_ones_are_new),
};

TEST_MAIN("artifact_dirs", tests)
