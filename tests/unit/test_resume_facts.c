/* What a resume sees for itself: artifacts, files of responses, marks of a start. */
#include "test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/resume.h"

static const struct json *
fact(const struct json *facts, const char *op, const char *name)
{
	return json_get(json_get(facts, op), name);
}

#define STATE_TEXT \
	    "{\"plan\":[{\"agent_id\":\"good\",\"artifacts\":[\"x\"]}," \
	    "{\"agent_id\":\"plain\",\"artifacts\":[\"x\"]},{\"agent_id\":\"gone\",\"artifacts\":" \
	    "[\"x\"]},{\"agent_id\":\"empty\",\"artifacts\":[\"x\"]},{\"agent_id\":\"changed\"," \
	    "\"artifacts\":[\"x\"]},{\"agent_id\":\"odd\",\"artifacts\":\"x\"}," \
	    "{\"agent_id\":\"failed\",\"artifacts\":[\"x\"]},{\"agent_id\":\"pending\"," \
	    "\"artifacts\":[\"x\"]},{\"agent_id\":\"file\"},{\"agent_id\":\"lost\"}]," \
	    "\"config\":{\"artifact_root\":\"artifacts\"},\"ops\":{" \
	    "\"good\":{\"status\":\"completed\",\"artifacts\":[{\"path\":\"x\",\"size\":3," \
	    "\"digest\":\"%s\"}]},\"plain\":{\"status\":\"completed\"}," \
	    "\"gone\":{\"status\":\"completed\"},\"empty\":{\"status\":\"completed\"}," \
	    "\"changed\":{\"status\":\"completed\",\"artifacts\":[{\"path\":\"x\",\"size\":3," \
	    "\"digest\":\"%s\"}]},\"odd\":{\"status\":\"completed\"}," \
	    "\"failed\":{\"status\":\"failed\"}," \
	    "\"file\":{\"status\":\"completed\",\"response\":{\"file\":\"out\",\"size\":3," \
	    "\"digest\":\"%s\"}},\"lost\":{\"status\":\"completed\",\"response\":{\"file\":\"no\"," \
	    "\"size\":3,\"digest\":\"%s\"}}}}"

static void
test_resume_facts__of_operations(void **state)
{
	static const char *const dirs[] = {"artifacts", "artifacts/good", "artifacts/plain",
	    "artifacts/empty", "artifacts/changed", "ops", "ops/once.2", "ops/other.1"};
	char digest[CKPT_DIGEST_TEXT], *problem = NULL;
	struct json *value, *facts = NULL;
	struct test_dir dir;
	struct buf full = {0};
	struct err e = {0};
	uint64_t size;
	size_t i;
	int fd;

	(void)state;
	test_dir_make(&dir);
	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		assert_int_equal(mkdirat(dir.fd, dirs[i], 0700), 0);
	test_file_write(dir.fd, "artifacts/good/x", "abc");
	test_file_write(dir.fd, "artifacts/plain/x", "abc");
	test_file_write(dir.fd, "artifacts/empty/x", "");
	test_file_write(dir.fd, "artifacts/changed/x", "abd");
	test_file_write(dir.fd, "out", "abc");
	test_file_write(dir.fd, "ops/once.2/started", "started\n");
	fd = openat(dir.fd, "out", O_RDONLY | O_CLOEXEC);
	assert_works(ckpt_digest_file(fd, digest, &size, &e), e);
	close(fd);
	buf_printf(&full, STATE_TEXT, digest, digest, digest, digest);
	value = test_json(buf_text(&full));
	buf_clear(&full);

	assert_works(resume_facts(dir.fd, value, false, &facts, &problem, &e), e);
	assert_null(problem);
	assert_null(json_get(facts, "good"));
	assert_null(fact(facts, "plain", "artifacts"));
	assert_non_null(fact(facts, "plain", "unverified"));
	assert_non_null(fact(facts, "gone", "artifacts"));
	assert_non_null(strstr(json_cstr_of(fact(facts, "empty", "artifacts")), "empty"));
	assert_non_null(strstr(json_cstr_of(fact(facts, "changed", "artifacts")), "changed"));
	assert_non_null(fact(facts, "odd", "artifacts"));
	assert_null(json_get(facts, "failed"));
	assert_null(json_get(facts, "pending"));
	assert_null(json_get(facts, "file"));
	assert_non_null(fact(facts, "lost", "response"));
	assert_true(json_is_true(fact(facts, "once", "started")));
	assert_null(json_get(facts, "other"));
	json_unref(facts);

	assert_int_equal(renameat(dir.fd, "artifacts", dir.fd, "elsewhere"), 0);
	assert_works(resume_facts(dir.fd, value, false, &facts, &problem, &e), e);
	assert_non_null(problem);
	assert_non_null(fact(facts, "good", "artifacts"));
	json_unref(facts);
	free(problem);
	json_unref(value);
	test_dir_remove(&dir);
}

/* Whatever is recorded: an entry may be missing. */
static void
test_resume_facts__marks_of_what_was_started(void **state)
{
	static const char *const states[] = {
	    "{\"plan\":[{\"agent_id\":\"a\"}],\"ops\":{\"a\":{\"status\":\"completed\"}}}",
	    "{\"plan\":[{\"agent_id\":\"a\"},{\"agent_id\":\"b\"}],\"ops\":{\"a\":{\"status\":\"completed\"}}}",
	    "{\"plan\":[{\"agent_id\":\"a\"}],\"ops\":{\"a\":{\"status\":\"completed\"}},"
	    "\"spawned\":[{\"spawn_id\":\"a.s1\",\"status\":\"pending\"}]}",
	    "null",
	};
	struct json *value, *facts;
	struct test_dir dir;
	struct err e = {0};
	char *problem;
	size_t i;

	(void)state;
	test_dir_make(&dir);
	assert_int_equal(mkdirat(dir.fd, "ops", 0700), 0);
	assert_int_equal(mkdirat(dir.fd, "ops/b.1", 0700), 0);
	test_file_write(dir.fd, "ops/b.1/started", "started\n");
	for (i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		value = test_json(states[i]);
		assert_works(resume_facts(dir.fd, json_type(value) == JSON_NULL ? NULL : value, false, &facts,
				 &problem, &e), e);
		if (!json_is_true(fact(facts, "b", "started")))
			fail_msg("%s", states[i]);
		json_unref(facts);
		json_unref(value);
	}
	test_dir_remove(&dir);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_resume_facts__of_operations),
    cmocka_unit_test(test_resume_facts__marks_of_what_was_started),
};

TEST_MAIN("resume_facts", tests)
