#include "test.h"

#include <errno.h>

static void
test_err__every_code_has_a_type_that_leads_back(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < ERR_CODES; i++) {
		assert_non_null(err_type((enum err_code)i));
		assert_int_equal(err_from_type(err_type((enum err_code)i)), i);
	}
	assert_int_equal(err_from_type("NoSuchError"), ERR_INTERNAL);
	assert_string_equal(err_type(ERR_CODES), err_type(ERR_INTERNAL));
	assert_int_equal(err_exit_status(ERR_CODES), 70);
}

static void
test_err__statuses_are_those_of_the_manual(void **state)
{
	static const struct {
		enum err_code code;
		int status;
	} cases[] = {{ERR_NONE, 0}, {ERR_RUN_FAILED, 1}, {ERR_USAGE, 2}, {ERR_RUNNING, 3},
	    {ERR_CHECKPOINT, 4}, {ERR_BUSY, 5}, {ERR_INTERNAL, 70}, {ERR_CREATE, 73}, {ERR_IO, 74},
	    {ERR_ENVIRONMENT, 78}, {ERR_INTERRUPTED, 130}};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(err_exit_status(cases[i].code), cases[i].status);
}

static void
test_err__set_and_wrap_and_hint(void **state)
{
	struct err e = {0};

	(void)state;
	assert_int_equal(err_set(&e, ERR_SYNTAX, "line %d", 3), -1);
	assert_int_equal(err_hint(&e, "flowsup check %s", "x.yaml"), -1);
	assert_int_equal(err_wrap(&e, "%s", "x.yaml"), -1);
	assert_string_equal(e.msg, "x.yaml: line 3");
	assert_string_equal(e.hint, "flowsup check x.yaml");
	assert_int_equal(e.code, ERR_SYNTAX);
	err_set(&e, ERR_IO, "new");
	assert_string_equal(e.hint, "");
	err_clear(&e);
	assert_int_equal(e.code, ERR_NONE);
	assert_string_equal(e.msg, "");
}

static void
test_err__errno_chooses_the_code_of_io_only(void **state)
{
	static const struct {
		enum err_code asked;
		int sys;
		enum err_code got;
	} cases[] = {{ERR_IO, EIO, ERR_IO}, {ERR_IO, ENOSPC, ERR_NOSPACE}, {ERR_IO, EDQUOT, ERR_NOSPACE},
	    {ERR_IO, ENOMEM, ERR_NOMEM}, {ERR_CREATE, ENOSPC, ERR_CREATE}};
	struct err e = {0};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		err_sys(&e, cases[i].asked, cases[i].sys, "file");
		assert_int_equal(e.code, cases[i].got);
		assert_int_equal(e.sys, cases[i].sys);
	}
	err_sys(&e, ERR_IO, ENOENT, "file");
	assert_string_equal(e.msg, "file: No such file or directory");
}

static void
test_err__long_texts_are_cut(void **state)
{
	char text[2 * sizeof(((struct err *)0)->msg)];
	struct err e = {0};
	int i;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	err_set(&e, ERR_IO, "%s", text);
	assert_int_equal(strlen(e.msg), sizeof(e.msg) - 1);
	for (i = 0; i < 3; i++) {
		err_wrap(&e, "part %d", i);
		assert_int_equal(strlen(e.msg), sizeof(e.msg) - 1);
	}
	assert_memory_equal(e.msg, "part 2: part 1: part 0: xxx", 27);
	err_sys(&e, ERR_IO, EIO, "%s", text);
	assert_int_equal(strlen(e.msg), sizeof(e.msg) - 1);
	err_wrap(&e, "%s", text);
	assert_int_equal(strlen(e.msg), sizeof(e.msg) - 1);
	err_advice(&e, "%s", text);
	assert_int_equal(strlen(e.hint), sizeof(e.hint) - 1);
	/* The beginning of a command is another command. */
	err_hint(&e, "%s", text);
	assert_string_equal(e.hint, "");
	assert_false(e.advice);
}

static void
test_err__borrowed_hints(void **state)
{
	static const char command[] = "flowsup start";
	struct err e = {0}, other = {0};

	(void)state;
	assert_false(err_has_hint(&e));
	err_set(&e, ERR_USAGE, "x");
	err_advice(&e, "a sentence");
	assert_string_equal(err_hint_text(&e), "a sentence");
	err_hint_borrow(&e, command);
	assert_ptr_equal(err_hint_text(&e), command);
	assert_false(e.advice);
	err_hint_of(&other, &e);
	assert_ptr_equal(err_hint_text(&other), command);
	err_wrap(&e, "y");
	assert_true(err_has_hint(&e));
	err_hint(&e, "short");
	assert_string_equal(err_hint_text(&e), "short");
	err_set(&other, ERR_IO, "x");
	assert_false(err_has_hint(&other));
	err_hint_borrow(&other, command);
	err_clear(&other);
	assert_false(err_has_hint(&other));
}

static void
test_err__nobody_wants_it(void **state)
{
	(void)state;
	assert_int_equal(err_set(NULL, ERR_IO, "x"), -1);
	assert_int_equal(err_sys(NULL, ERR_IO, EIO, "x"), -1);
	assert_int_equal(err_wrap(NULL, "x"), -1);
	assert_int_equal(err_hint(NULL, "x"), -1);
	err_clear(NULL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_err__every_code_has_a_type_that_leads_back),
    cmocka_unit_test(test_err__statuses_are_those_of_the_manual),
    cmocka_unit_test(test_err__set_and_wrap_and_hint),
    cmocka_unit_test(test_err__errno_chooses_the_code_of_io_only),
    cmocka_unit_test(test_err__long_texts_are_cut),
    cmocka_unit_test(test_err__borrowed_hints),
    cmocka_unit_test(test_err__nobody_wants_it),
};
TEST_MAIN("err", tests)
