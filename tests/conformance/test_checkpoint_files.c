/* What a reader of a checkpoint finds at its names that is none, or too much; and that what it takes can be
 * written again. */
#include "ckpt_text.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Depth ---- */

/* `levels` arrays, one in another. */
static const char *
arrays(unsigned levels)
{
	static char text[2 * JSON_MAX_DEPTH + 3];

	assert_in_range(levels, 1, JSON_MAX_DEPTH + 1);
	memset(text, '[', levels);
	memset(text + levels, ']', levels);
	text[2 * levels] = '\0';
	return text;
}

enum { AS_RESPONSE, AS_CONTEXT, AS_REPLACED_CONTEXT, AS_BASE_RESPONSE, AS_BASE_CONTEXT, AS_UNKNOWN,
	AS_TAKEN, PLACES };

/* The text with the value in place of its @, if it has one. */
static char *
with_value(const char *text, const char *value)
{
	const char *at = strchr(text, '@');
	struct buf b = {0};

	buf_puts(&b, text);
	if (at != NULL) {
		b.len = (size_t)(at - text);
		buf_puts(&b, value);
		buf_puts(&b, at + 1);
	}
	return buf_steal(&b);
}

static void
put_nested(int run_fd, unsigned place, unsigned levels)
{
	static const char *const bases[PLACES] = {BASE, BASE_WITH("3", PLAN,
		    "{'b':{'c':{'d':{'e':{'f':{}}}}}}", "{}", "[]"), BASE,
		BASE_WITH("3", PLAN, "{}", "{'op-0':{'agent_id':'op-0','status':'completed','response':@}}",
		    "[]"),
		BASE_WITH("3", PLAN, "{'a':@}", "{}", "[]"),
		V2_WITH("'version':2,", V2_PLAN, "[]", ",'extra':@"),
		"{'version':2,'plan':[],'flow_context':{},'ops':{},'config':{'v2_members':@}}"};
	static const char *const lines[PLACES] = {
		R("1", "{'agent_id':'op-0','status':'completed','response':@}", "null"),
		R("1", OP("op-0"), PATCH("{'op':'add','path':'/b/c/d/e/f/g','value':@}")),
		R("1", OP("op-0"), PATCH("{'op':'replace','path':'','value':{'a':@}}")), "", "", "", ""};
	char *base = with_value(bases[place], arrays(levels)), *line = with_value(lines[place], arrays(levels));

	put(run_fd, base, line);
	free(base);
	free(line);
}

static bool
can_be_written(const struct fixture *fx, struct json *state, int format)
{
	struct ckpt_report r;
	struct err e = {0};
	int result;

	state = ckpt_migrate(state, format, &e);
	assert_non_null(state);
	fixture_again((struct fixture *)(uintptr_t)fx);
	result = ckpt_write_new(NULL, fx->run_fd, CKPT_BASE, 3, state, &e);
	json_unref(state);
	if (result == 0)
		result = ckpt_load(fx->run_fd, NULL, &state, &r, &e);
	if (result == 0)
		json_unref(state);
	return result == 0;
}

/* Reader and writer have one limit, wherever a value stands; and it is where the format has it. */
static void
test_checkpoint_files__what_is_read_can_be_written(void **unused)
{
	static const unsigned most[PLACES] = {JSON_MAX_DEPTH - 3, JSON_MAX_DEPTH - 7,
		JSON_MAX_DEPTH - 5 /* a line's own */, JSON_MAX_DEPTH - 3, JSON_MAX_DEPTH - 2, JSON_MAX_DEPTH - 3,
		JSON_MAX_DEPTH - 4};
	struct fixture fx;
	unsigned place, levels;

	(void)unused;
	fixture_make(&fx);
	for (place = 0; place < PLACES; place++)
		for (levels = most[place] - 3; levels <= JSON_MAX_DEPTH - 1; levels++) {
			struct json *state = NULL;
			struct ckpt_report r;
			struct err e = {0};
			bool read;

			fixture_again(&fx);
			put_nested(fx.run_fd, place, levels);
			read = ckpt_load(fx.run_fd, NULL, &state, &r, &e) == 0;
			if (read != (levels <= most[place]) ||
			    (!read && strcmp(r.reason, "too_deep") != 0))
				fail_msg("place %u, %u levels: read %d, '%s' %s", place, levels, read,
				    r.reason, e.msg);
			if (!read)
				json_unref(state);
			else if (!can_be_written(&fx, state, r.format))
				fail_msg("place %u, %u levels: read, and cannot be written", place, levels);
		}
	fixture_remove(&fx);
}

/* ---- What stands at the names ---- */

static void
plant(int run_fd, const char *name, const char *kind)
{
	assert_int_equal(renameat(run_fd, name, run_fd, "aside"), 0);
	if (strcmp(kind, "symlink") == 0)
		assert_int_equal(symlinkat("aside", run_fd, name), 0);
	else if (strcmp(kind, "fifo") == 0)
		assert_int_equal(mkfifoat(run_fd, name, 0600), 0);
	else if (strcmp(kind, "directory") == 0)
		assert_int_equal(mkdirat(run_fd, name, 0700), 0);
	else if (strcmp(kind, "socket") == 0)
		assert_int_equal(mknodat(run_fd, name, S_IFSOCK | 0600, 0), 0);
	else if (strcmp(kind, "link") == 0)
		assert_int_equal(linkat(run_fd, "aside", run_fd, name, 0), 0);
	else {
		assert_int_equal(renameat(run_fd, "aside", run_fd, name), 0);
		assert_int_equal(fchmodat(run_fd, name, 0622, 0), 0);
	}
}

static void
test_checkpoint_files__planted_objects_are_refused(void **unused)
{
	static const char *const names[] = {CKPT_BASE, CKPT_JOURNAL};
	static const char *const cases[][2] = {
		{"symlink", "not_regular"}, {"fifo", "not_regular"}, {"directory", "not_regular"},
		{"socket", "not_regular"}, {"link", "many_links"}, {"writable", "wrong_mode"},
	};
	struct fixture fx;
	size_t i, n;

	(void)unused;
	fixture_make(&fx);
	for (n = 0; n < 2; n++)
		for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			struct ckpt_report r;
			struct json *state = NULL;
			struct err e = {0};

			fixture_again(&fx);
			put(fx.run_fd, BASE, FIRST);
			plant(fx.run_fd, names[n], cases[i][0]);
			assert_fails(ckpt_load(fx.run_fd, NULL, &state, &r, &e), ERR_CHECKPOINT, e);
			assert_string_equal(r.reason, cases[i][1]);
			assert_string_equal(r.position_file, names[n]);
			assert_null(state);
		}
	fixture_remove(&fx);
}

static int
fstat_of_another(const struct fs_ops *fs, const char *what, int fd, struct stat *st)
{
	int rc = fs_real.fstat(fs, what, fd, st);

	st->st_uid++;
	return rc;
}

/* Each time a reader comes back to the base there is a new one. */
static int
openat_of_changing(const struct fs_ops *fs, const char *what, int dirfd, const char *path, int flags,
    mode_t mode)
{
	if (strcmp(what, "ckpt.load.reopen_base") == 0)
		put(dirfd, BASE, FIRST);
	return fs_real.openat(fs, what, dirfd, path, flags, mode);
}

static void
test_checkpoint_files__what_cannot_be_believed(void **unused)
{
	struct fs_ops others = fs_real, changing = fs_real;
	const struct {
		const struct fs_ops *fs;
		const char *reason;
		bool tried_again;
	} cases[] = {{&others, "wrong_owner", false}, {&changing, "incoherent", true}};
	struct json *state = NULL;
	struct ckpt_report r;
	struct err e = {0};
	struct fixture fx;
	size_t i;

	(void)unused;
	others.fstat = fstat_of_another;
	changing.openat = openat_of_changing;
	fixture_make(&fx);
	put(fx.run_fd, BASE, FIRST);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_fails(ckpt_load(fx.run_fd, &(struct ckpt_load_options){.fs = cases[i].fs}, &state, &r,
		    &e), ERR_CHECKPOINT, e);
		assert_string_equal(r.reason, cases[i].reason);
		assert_int_equal(r.coherence_retries, cases[i].tried_again ? 10 : 0);
		assert_null(state);
	}
	fixture_remove(&fx);
}

/* A pair under another name is reported by that name. */
static void
test_checkpoint_files__report_names_the_file_that_was_read(void **unused)
{
	static const struct {
		const char *base, *journal, *file;
	} cases[] = {
		{BASE "x", FIRST, "copy"}, {BASE, NULL, "copy.journal"}, {BASE, "x\n", "copy.journal"},
		{BASE, FIRST "x", "copy.journal"},
	};
	const struct ckpt_load_options named = {.base_name = "copy"};
	struct fixture fx;
	size_t i;

	(void)unused;
	fixture_make(&fx);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ckpt_report r;
		struct json *state = NULL;
		struct err e = {0};

		fixture_again(&fx);
		put(fx.run_fd, cases[i].base, cases[i].journal);
		assert_int_equal(renameat(fx.run_fd, CKPT_BASE, fx.run_fd, "copy"), 0);
		if (cases[i].journal != NULL)
			assert_int_equal(renameat(fx.run_fd, CKPT_JOURNAL, fx.run_fd, "copy.journal"), 0);
		(void)ckpt_load(fx.run_fd, &named, &state, &r, &e);
		assert_string_equal(r.position_file, cases[i].file);
		assert_null(strstr(e.msg, CKPT_BASE));
		json_unref(state);
	}
	fixture_remove(&fx);
}

static void
test_checkpoint_files__nothing_there(void **unused)
{
	struct fixture fx;
	struct ckpt_report r;
	struct json *state = NULL;
	struct err e = {0};

	(void)unused;
	fixture_make(&fx);
	assert_fails(ckpt_load(fx.run_fd, NULL, &state, &r, &e), ERR_NOTFOUND, e);
	put(fx.run_fd, NULL, "");
	assert_fails(ckpt_load(fx.run_fd, NULL, &state, &r, &e), ERR_NOTFOUND, e);
	assert_null(state);
	fixture_remove(&fx);
}

static void
test_checkpoint_files__size_limit(void **unused)
{
	const struct ckpt_load_options small = {.max_bytes = 100};
	struct fixture fx;
	struct ckpt_report r;
	struct json *state = NULL;
	struct err e = {0};

	(void)unused;
	fixture_make(&fx);
	put(fx.run_fd, BASE, FIRST);
	assert_fails(ckpt_load(fx.run_fd, &small, &state, &r, &e), ERR_CHECKPOINT, e);
	assert_string_equal(r.reason, "too_large");
	fixture_remove(&fx);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_checkpoint_files__what_is_read_can_be_written),
	cmocka_unit_test(test_checkpoint_files__planted_objects_are_refused),
	cmocka_unit_test(test_checkpoint_files__what_cannot_be_believed),
	cmocka_unit_test(test_checkpoint_files__report_names_the_file_that_was_read),
	cmocka_unit_test(test_checkpoint_files__nothing_there),
	cmocka_unit_test(test_checkpoint_files__size_limit),
};

TEST_MAIN("what stands for checkpoints", tests)
