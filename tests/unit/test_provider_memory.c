/* Memory that runs out while a provider is read, its words are made and its output is judged. */
#include "test.h"

#include "fault_alloc.h"
#include "flowsup/provider.h"

static const char file[] =
    "{\"provider\":1,\"name\":\"t\",\"verified\":null,\"reads_user_settings\":false,"
    "\"exit_0_reliable\":false,\"prompt\":\"stdin\",\"version\":[\"t\",\"-V\"],"
    "\"start\":{\"new\":[\"t\",[\"-m\",\"{model}\"],\"{args}\"],\"resume\":[\"t\",\"{old}\"]},"
    "\"conversation\":{\"id\":\"found\"},\"output\":{\"format\":\"jsonl\","
    "\"terminal\":{\"/t\":\"end\"},\"failed\":[{\"/e\":{\"matches\":\"x+\"}},{\"/t\":[\"a\",\"b\"]}],"
    "\"answer\":[{\"where\":{\"/t\":\"end\"},\"path\":\"/r\"},"
    "{\"path\":\"/d\",\"take\":\"concat\",\"separator\":\",\"}],"
    "\"conversation\":{\"path\":\"/id\"},\"error\":{\"path\":\"/e\"},"
    "\"usage\":{\"n\":{\"path\":\"/n\",\"take\":\"sum\"},\"l\":{\"path\":\"/n\"}}},"
    "\"failures\":[{\"class\":\"auth\",\"error\":\"a|b\",\"stderr\":\"c\"}]}";

static const char good[] = "noise\n{\"id\":\"c1\",\"n\":1}\n{\"t\":\"end\",\"r\":\"yes\",\"n\":2}\n";
static const char bad[] = "{\"id\":\"c1\",\"d\":\"one\"}\n{\"d\":\"two\",\"e\":\"xx\"}\n";

/* Fails each allocation of `work` in turn; every failure must be ERR_NOMEM and leave nothing. */
typedef int work(struct provider *p, struct err *e);

static void
fail_each(work *what, struct provider *p)
{
	struct err e;
	unsigned long n;
	int rc;

	for (n = 1;; n++) {
		e = (struct err){0};
		fault_alloc_arm(n, false);
		rc = what(p, &e);
		if (!fault_alloc_disarm())
			break;
		/* The compiler of patterns has allocations of its own that it can do without. */
		if (rc != 0 && e.code != ERR_NOMEM && strstr(e.msg, "regular expression") == NULL)
			fail_msg("allocation %lu: %s", n, e.msg);
	}
	assert_int_equal(rc, 0);
	assert_true(n > 10);
}

static int
read_and_free(struct provider *unused, struct err *e)
{
	struct provider *p = NULL;
	int rc = provider_read("t.json", "t", slice_of(file), &p, e);

	(void)unused;
	if (rc == 0)
		provider_free(p);
	return rc;
}

static int
judge(struct provider *p, const char *output, const char *errors, int code, const char *class,
    struct err *e)
{
	struct provider_end end = {.known = true, .code = code, .errors = slice_of(errors)};
	struct provider_reading *r = NULL;
	struct provider_result result;
	int rc;

	if (provider_reading_new(p, NULL, NULL, &r, e) != 0)
		return -1;
	rc = provider_reading_feed(r, slice_of(output), e);
	if (rc == 0)
		rc = provider_reading_finish(r, &end, &result, e);
	provider_reading_free(r);
	if (rc != 0)
		return -1;
	/* Whatever failed before: a verdict that is given is the right one. */
	if (class == NULL)
		assert_null(result.class);
	else
		assert_string_equal(result.class, class);
	assert_string_equal(result.id, "c1");
	provider_result_clear(&result);
	return 0;
}

static int
judge_good(struct provider *p, struct err *e)
{
	return judge(p, good, "", 0, NULL, e);
}

static int
judge_bad(struct provider *p, struct err *e)
{
	return judge(p, bad, "\033[1mno\033[0m\n", 1, "agent_error", e);
}

static struct provider *
whole(void)
{
	struct provider *p = NULL;
	struct err e = {0};

	assert_works(provider_read("t.json", "t", slice_of(file), &p, &e), e);
	return p;
}

static void
test_provider_memory__reading(void **state)
{
	(void)state;
	fail_each(read_and_free, NULL);
}

static void
test_provider_memory__judging(void **state)
{
	struct provider *p = whole();

	(void)state;
	fail_each(judge_good, p);
	fail_each(judge_bad, p);
	provider_free(p);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_provider_memory__reading),
    cmocka_unit_test(test_provider_memory__judging),
};
TEST_MAIN("provider_memory", tests)
