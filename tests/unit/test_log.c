#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "flowsup/fs.h"
#include "flowsup/log.h"

static struct test_dir dir;
static int fd = -1;

static int
set_up(void **state)
{
	(void)state;
	test_dir_make(&dir);
	fd = openat(dir.fd, "log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	log_init(fd, "worker\nx", LOG_INFO);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	log_init(STDERR_FILENO, "test", LOG_INFO);
	fd_close(&fd);
	test_dir_remove(&dir);
	return 0;
}

static void
test_log__a_record_is_one_line(void **state)
{
	char *text;

	(void)state;
	errno = EDOM;
	log_line(LOG_WARNING, "run %s ended\nroot logged in\x1b[2J", "r1");
	assert_int_equal(errno, EDOM);
	text = test_file_read(dir.fd, "log");
	assert_int_equal(text[19], 'Z');
	assert_string_equal(text + 20,
	    " worker\\nx warning: run r1 ended\\nroot logged in\\x1b[2J\n");
	free(text);
}

static void
test_log__what_is_too_fine_is_left_out(void **state)
{
	char *text;

	(void)state;
	log_line(LOG_DEBUG, "not this");
	text = test_file_read(dir.fd, "log");
	assert_string_equal(text, "");
	free(text);
	log_init(fd, "w", LOG_DEBUG);
	log_line(LOG_DEBUG, "but this");
	text = test_file_read(dir.fd, "log");
	assert_non_null(strstr(text, "w debug: but this\n"));
	free(text);
}

static void
test_log__for_people_there_is_no_time(void **state)
{
	char *text;

	(void)state;
	log_init(fd, NULL, LOG_WARNING);
	log_line(LOG_INFO, "not this");
	log_line(LOG_WARNING, "the\nworker");
	text = test_file_read(dir.fd, "log");
	assert_string_equal(text, "flowsup: the\\nworker\n");
	free(text);
}

static void
test_log__long_records_are_cut(void **state)
{
	static char long_text[10000];
	char *text;

	(void)state;
	memset(long_text, '\x1b', sizeof(long_text) - 1);
	log_line(LOG_ERROR, "%s", long_text);
	memset(long_text, 'x', sizeof(long_text) - 1);
	log_line(LOG_ERROR, "%s", long_text);
	text = test_file_read(dir.fd, "log");
	assert_true(strchr(text, '\n') - text < 4096);
	assert_true(strlen(text) <= 2 * 4096);
	assert_int_equal(strlen(strchr(text, '\n') + 1), 4096);
	assert_int_equal(text[strlen(text) - 1], '\n');
	free(text);
}

static void
test_log__a_log_that_cannot_be_written_harms_nobody(void **state)
{
	int closed = dup(fd);

	(void)state;
	close(closed);
	log_init(closed, "w", LOG_INFO);
	errno = EDOM;
	log_line(LOG_ERROR, "x");
	assert_int_equal(errno, EDOM);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
static const struct CMUnitTest tests[] = {
    TEST(test_log__a_record_is_one_line),
    TEST(test_log__what_is_too_fine_is_left_out),
    TEST(test_log__for_people_there_is_no_time),
    TEST(test_log__long_records_are_cut),
    TEST(test_log__a_log_that_cannot_be_written_harms_nobody),
};
TEST_MAIN("log", tests)
