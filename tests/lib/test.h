/* What unit tests share. Include it first; it brings cmocka with all that cmocka wants before. */
#ifndef FLOWSUP_TEST_H
#define FLOWSUP_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "flowsup/buf.h"
#include "flowsup/err.h"
#include "flowsup/json.h"

/* main() of a program that runs `tests` (an array of struct CMUnitTest) and speaks TAP. */
#define TEST_MAIN(name, tests)                                                                     \
	int main(void)                                                                             \
	{                                                                                          \
		cmocka_set_message_output(CM_OUTPUT_TAP);                                          \
		return cmocka_run_group_tests_name(name, tests, NULL, NULL);                       \
	}

/* A directory of our own below $TMPDIR or /tmp, mode 0700, opened. */
struct test_dir {
	char path[512];
	int fd;
};
/* Each ends the test on failure. With FLOWSUP_TEST_KEEP in the environment nothing is removed: the
 * benchmarks do so together at their end. */
void test_dir_make(struct test_dir *dir);
void test_dir_remove(struct test_dir *dir);
void test_file_write(int dirfd, const char *name, const char *text);
/* The file's content, NUL-terminated, to be freed. */
char *test_file_read(int dirfd, const char *name);

/* Waits until the condition holds, for a minute at most: true, or false when it never did. */
bool test_wait_for(bool (*condition)(void *), void *arg);

/* The value of a JSON text, which is asserted to be one; NULL for NULL. */
struct json *test_json(const char *text);

/* How many descriptors are open: equal before and after, nothing has leaked. */
int test_count_fds(void);

/* Asserts that result is -1 and e has this code; shows the message when not. */
#define assert_fails(result, code_wanted, e)                                                       \
	do {                                                                                       \
		assert_int_equal((result), -1);                                                    \
		if ((e).code != (code_wanted))                                                     \
			print_message("# got %s: %s\n", err_type((e).code), (e).msg);              \
		assert_int_equal((e).code, (code_wanted));                                         \
	} while (0)
/* Asserts success; shows the message when not. */
#define assert_works(result, e)                                                                    \
	do {                                                                                       \
		if ((result) < 0) {                                                                \
			print_message("# got %s: %s\n", err_type((e).code), (e).msg);              \
			fail();                                                                    \
		}                                                                                  \
	} while (0)

#endif
