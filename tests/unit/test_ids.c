#include "test.h"

#include "flowsup/home.h"

static void
test_ids__have_their_forms(void **state)
{
	char run[RUN_ID_TEXT], uuid[UUID_TEXT], invocation[INVOCATION_ID_TEXT];
	struct err e = {0};
	int i;

	(void)state;
	for (i = 0; i < 1000; i++) {
		assert_works(run_id_make(run, &e), e);
		assert_true(run_id_is_valid(run));
		assert_works(uuid_make(uuid, &e), e);
		assert_int_equal(strlen(uuid), UUID_TEXT - 1);
		assert_int_equal(strspn(uuid, "0123456789abcdef"), UUID_TEXT - 1);
		assert_int_equal(uuid[12], '4');
		assert_non_null(strchr("89ab", uuid[16]));
		assert_works(invocation_id_make(invocation, &e), e);
		assert_int_equal(strspn(invocation, "0123456789abcdef"), INVOCATION_ID_TEXT - 1);
		/* No id of one space can be taken for a whole one of another. */
		assert_false(run_id_is_valid(uuid));
	}
}

static int
compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void
test_ids__do_not_repeat(void **state)
{
	static char ids[2000][UUID_TEXT];
	struct err e = {0};
	size_t i;

	(void)state;
	for (i = 0; i < 2000; i++)
		assert_works(uuid_make(ids[i], &e), e);
	qsort(ids, 2000, sizeof(ids[0]), compare);
	for (i = 1; i < 2000; i++)
		assert_string_not_equal(ids[i - 1], ids[i]);
}

static void
test_ids__valid_run_ids(void **state)
{
	static const struct {
		const char *text;
		bool valid;
	} cases[] = {
	    {"20261129T101500-ab12cd", true},
	    {"20261129T101500-000000", true},
	    {"20261129T101500-AB12CD", false},
	    {"20261129T101500-ab12c", false},
	    {"20261129T101500-ab12cdd", false},
	    {"20261129t101500-ab12cd", false},
	    {"2026112xT101500-ab12cd", false},
	    {"20261129T101500_ab12cd", false},
	    {"20261129T101500-ab12cg", false},
	    {"../../../../../../../a", false},
	    {"", false},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(run_id_is_valid(cases[i].text), cases[i].valid);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_ids__have_their_forms),
    cmocka_unit_test(test_ids__do_not_repeat),
    cmocka_unit_test(test_ids__valid_run_ids),
};

TEST_MAIN("ids", tests)
