/* YAML as the core schema of YAML 1.2 reads it, with positions in bytes; files. */
#include "test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "flowsup/flow.h"
#include "shared/flow/document.h"

static const struct {
	const char *yaml, *json;
} values[] = {
    {"~", "null"}, {"null", "null"}, {"NULL", "null"}, {"''", "\"\""}, {"nil", "\"nil\""},
    {"true", "true"}, {"FALSE", "false"}, {"yes", "\"yes\""}, {"off", "\"off\""}, {"tRue", "\"tRue\""},
    {"12", "12"}, {"+12", "12"}, {"-12", "-12"}, {"012", "12"}, {"-0", "0"}, {"000", "0"},
    {"0o17", "15"}, {"0x1F", "31"}, {"0b1", "\"0b1\""}, {"1_000", "\"1_000\""}, {"-0x1", "\"-0x1\""},
    {"123456789012345678901234567890", "123456789012345678901234567890"},
    {"18446744073709551615", "18446744073709551615"},
    {"1.5", "1.5"}, {"1.", "1.0"}, {".5", "0.5"}, {"-.5", "-0.5"}, {"1e3", "1000.0"}, {"+1.5E-2", "0.015"},
    {"00.5", "0.5"}, {".", "\".\""}, {"1e", "\"1e\""}, {"1.2.3", "\"1.2.3\""}, {"-", "[null]"},
    {"2026-11-29", "\"2026-11-29\""}, {"1:30", "\"1:30\""}, {"\"12\"", "\"12\""}, {"'true'", "\"true\""},
    {"!!str 12", "\"12\""}, {"!!int \"12\"", "12"}, {"! 12", "\"12\""}, {"!!float 1.5", "1.5"},
    {"!!null ''", "null"}, {"!!bool 'true'", "true"}, {"!!seq [1]", "[1]"}, {"!!map {a: 1}", "{\"a\":1}"},
    {"!<tag:yaml.org,2002:str> 1", "\"1\""},
    {"|\n a\n  b\n", "\"a\\n b\\n\""}, {">-\n a\n b\n", "\"a b\""}, {"\"\\u00e4\\x41\"", "\"\\u00e4A\""},
    {"{a: &x [1, 2], b: *x, c: *x}", "{\"a\":[1,2],\"b\":[1,2],\"c\":[1,2]}"},
    {"{a: &x 1, b: &x 2, c: *x}", "{\"a\":1,\"b\":2,\"c\":2}"},
    {"{a: , b: }", "{\"a\":null,\"b\":null}"}, {"{? a : b}", "{\"a\":\"b\"}"}, {"[a, [b], {c: d}]",
	"[\"a\",[\"b\"],{\"c\":\"d\"}]"}, {"{\"a\":1}", "{\"a\":1}"}, {"<<", "\"<<\""},
    {"%YAML 1.2\n---\na\n...\n", "\"a\""}, {"\xef\xbb\xbf" "a: 1", "{\"a\":1}"},
    {"# c\na: 1 # d\n", "{\"a\":1}"}, {"a: 1\r\nb: 2\r\n", "{\"a\":1,\"b\":2}"},
};

static void
test_flow_yaml__values(void **state)
{
	struct flow_source source = {.name = "f"};
	struct json_where where;
	struct json *v;
	struct buf b = {0};
	struct err e = {0};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		source.text = slice_of(values[i].yaml);
		assert_works(document_read(&source, &v, &where, &e), e);
		buf_reset(&b);
		json_write(&b, v);
		if (strcmp(buf_text(&b), values[i].json) != 0)
			print_message("# %s\n", values[i].yaml);
		assert_string_equal(buf_text(&b), values[i].json);
		json_unref(v);
	}
	buf_clear(&b);
}

static void
assert_position(const struct json *v, unsigned line, unsigned column)
{
	struct json_where where = {0};

	assert_true(json_position(v, &where));
	assert_int_equal(where.line, line);
	assert_int_equal(where.column, column);
}

static void
test_flow_yaml__positions(void **state)
{
	struct flow_source source = {"f", slice_of("\xc3\xa4: 'x'\r\nb:\n  - {c: \xc3\xb6, d: [1,\n       2]}\n"),
	    false};
	struct json_where where;
	struct json *v = NULL;
	struct json_iter it;
	const struct json *value;
	struct err e = {0};

	(void)state;
	assert_works(document_read(&source, &v, &where, &e), e);
	assert_position(v, 1, 1);
	it = json_iterate(v);
	assert_true(json_next(&it, NULL, &value));
	assert_position(json_iter_name(&it), 1, 1);
	assert_position(value, 1, 5);
	assert_true(json_next(&it, NULL, &value));
	assert_position(json_iter_name(&it), 2, 1);
	assert_position(json_at(value, 0), 3, 5);
	assert_position(json_get(json_at(value, 0), "d"), 3, 16);
	assert_position(json_at(json_get(json_at(value, 0), "d"), 1), 4, 8);
	json_unref(v);
}

/* ---- Depth ---- */

static int
read_repeated(const char *before, const char *part, unsigned times, const char *after,
    struct json_where *where, struct err *e)
{
	struct flow_source source = {.name = "f"};
	struct buf text = {0};
	struct json *v = NULL;
	unsigned i;
	int r;

	buf_puts(&text, before);
	for (i = 0; i < times; i++)
		buf_puts(&text, part);
	for (i = 0; i < times && after != NULL && after[0] != '\0'; i++)
		buf_puts(&text, after);
	assert_false(text.failed);
	source.text = buf_view(&text);
	r = document_read(&source, &v, where, e);
	json_unref(v);
	buf_clear(&text);
	return r;
}

static void
test_flow_yaml__depth(void **state)
{
	static const struct {
		const char *before, *part, *after;
		unsigned times, line, column; /* of the error; 0: none */
	} cases[] = {
	    {"", "[", "]", 512, 0, 0},
	    {"", "[", "]", 513, 1, 513},
	    {"", "[", "", 2000000, 1, 513},
	    {"", "[\n", "", 500000, 513, 1},
	    {"plan: ", "[", "]", 500000, 1, 518},
	    {"a: 1\nb: ", "{a: ", "", 500000, 2, 4 + 4 * 511},
	    {"", "[{a: ", "}]", 300000, 1, 5 * 256 + 1},
	    {"# [\n- |\n  [[\n- ", "[", "", 500000, 4, 514},
	    {"a: |\n ", "[", "", 500000, 0, 0},
	    {"a: b", "[", "", 50000, 0, 0},
	    {"a: b #", "{[", "", 50000, 0, 0},
	    {"- ", "{a: [ '[[[[' ]}\n- ", "", 2000, 0, 0},
	};
	struct json_where where;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err e = {0};
		int r = read_repeated(cases[i].before, cases[i].part, cases[i].times, cases[i].after,
		    &where, &e);

		if (cases[i].line == 0) {
			assert_works(r, e);
			continue;
		}
		assert_fails(r, ERR_LIMIT, e);
		assert_string_equal(e.msg, "nested more than 512 deep");
		assert_int_equal(where.line, cases[i].line);
		assert_int_equal(where.column, cases[i].column);
	}
}

/* ---- Files ---- */

static void
check_file(const struct test_dir *dir, const char *name, enum err_code code, const char *message)
{
	char path[600];
	struct flow *f = NULL;
	struct err e = {0};
	int before = test_count_fds();

	snprintf(path, sizeof(path), "%s/%s", dir->path, name);
	if (code == ERR_NONE) {
		assert_works(flow_read_file(path, &f, NULL, &e), e);
		flow_free(f);
	} else {
		assert_fails(flow_read_file(path, &f, NULL, &e), code, e);
		assert_non_null(strstr(e.msg, message));
	}
	assert_int_equal(test_count_fds(), before);
}

static void
write_fifo(const struct test_dir *dir, const char *text)
{
	int fd = openat(dir->fd, "fifo", O_WRONLY | O_CLOEXEC);

	_exit(fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text));
}

/* Whoever comes first, writer or reader, waits for the other. */
static void
check_fifo(const struct test_dir *dir)
{
	static const char *const texts[] = {"plan: [{id: a, run: x}]\n", ""};
	int status;
	size_t i;

	for (i = 0; i < 2; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0)
			write_fifo(dir, texts[i]);
		check_file(dir, "fifo", i == 0 ? ERR_NONE : ERR_DOCUMENT, "the document is empty");
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

static void
test_flow_yaml__files(void **state)
{
	struct test_dir dir;
	int fd;

	(void)state;
	test_dir_make(&dir);
	test_file_write(dir.fd, "good.yaml", "plan: [{id: a, run: x}]\n");
	test_file_write(dir.fd, "good.json", "{\"plan\": [{\"id\": \"a\", \"run\": \"x\"}]}");
	test_file_write(dir.fd, "json", " {\"plan\": [{\"id\": \"a\", \"run\": \"x\"}]}");
	test_file_write(dir.fd, "braces.yaml", "{plan: [{id: a, run: x}]}\n");
	test_file_write(dir.fd, "yaml.json", "plan: [{id: a, run: x}]\n");
	test_file_write(dir.fd, "empty", "");
	assert_int_equal(mkdirat(dir.fd, "directory", 0700), 0);
	assert_int_equal(mkfifoat(dir.fd, "fifo", 0600), 0);
	fd = openat(dir.fd, "large", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 100 << 20), 0);
	assert_int_equal(close(fd), 0);
	check_file(&dir, "good.yaml", ERR_NONE, NULL);
	check_file(&dir, "good.json", ERR_NONE, NULL);
	check_file(&dir, "json", ERR_NONE, NULL);
	check_file(&dir, "braces.yaml", ERR_NONE, NULL);
	check_file(&dir, "yaml.json", ERR_SYNTAX, "yaml.json:1:1: ");
	check_file(&dir, "empty", ERR_DOCUMENT, "empty: the document is empty");
	check_fifo(&dir);
	check_file(&dir, "directory", ERR_USAGE, "is a directory");
	check_file(&dir, "large", ERR_LIMIT, "larger than 16 MiB");
	check_file(&dir, "missing.yaml", ERR_NOTFOUND, "there is no file");
	test_dir_remove(&dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_flow_yaml__values),
	    cmocka_unit_test(test_flow_yaml__positions),
	    cmocka_unit_test(test_flow_yaml__depth),
	    cmocka_unit_test(test_flow_yaml__files),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
