/* How attempts end without their worker: records, the kernel's word, policies, members of start lines. */
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/exits.h"
#include "flowsup/flow.h"
#include "flowsup/home.h"
#include "worker/changes.h"

static struct test_dir dir;

static int
setup(void **state)
{
	(void)state;
	test_dir_make(&dir);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	test_dir_remove(&dir);
	return 0;
}

static const struct proc_id first = {123, 4567}, reused = {123, 4568};

static void
test_exits__what_is_written_is_read(void **state)
{
	struct exit_record r = {.id = first, .time = 12.5, .by = "keeper"}, got;
	struct err e = {0};
	size_t i;
	static const struct {
		bool signaled, dumped;
		int code;
	} cases[] = {{false, false, 0}, {false, false, 255}, {true, false, SIGTERM}, {true, true, SIGSEGV}};

	(void)state;
	r.end.usage.ru_utime.tv_sec = 3;
	r.end.usage.ru_stime.tv_usec = 500000;
	r.end.usage.ru_maxrss = 2048;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		r.end.known = true;
		r.end.signaled = cases[i].signaled;
		r.end.dumped = cases[i].dumped;
		r.end.code = cases[i].code;
		assert_works(exit_record_write(dir.fd, "a.1", &r, &e), e);
		assert_works(exit_record_read(dir.fd, "a.1", first, &got, &e), e);
		assert_true(got.end.known);
		assert_int_equal(got.end.signaled, cases[i].signaled);
		assert_int_equal(got.end.dumped, cases[i].dumped);
		assert_int_equal(got.end.code, cases[i].code);
		assert_string_equal(got.by, "keeper");
		assert_true(got.time == 12.5 && got.end.usage.ru_utime.tv_sec == 3);
		assert_int_equal(got.end.usage.ru_stime.tv_usec, 500000);
		assert_int_equal(got.end.usage.ru_maxrss, 2048);
	}
}

static void
assert_none(struct proc_id id)
{
	struct exit_record got;
	struct err e = {0};

	assert_int_equal(exit_record_read(dir.fd, "a.1", id, &got, &e), -1);
	assert_int_equal(e.code, ERR_NOTFOUND);
}

static void
test_exits__only_a_whole_record_of_this_process(void **state)
{
	static const char *const bad[] = {"", "{", "{\"pid\":123,\"start\":4567", "[]",
	    "{\"pid\":123,\"start\":4567}", "{\"pid\":\"123\",\"start\":4567,\"code\":0}"};
	struct exit_record r = {.id = first, .end = {.known = true}};
	struct err e = {0};
	int fd;
	size_t i;

	(void)state;
	assert_none(first);
	assert_works(exit_record_write(dir.fd, "a.1", &r, &e), e);
	assert_none(reused);
	fd = openat(dir.fd, "a.1", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		test_file_write(fd, EXIT_RECORD, bad[i]);
		assert_int_equal(fchmodat(fd, EXIT_RECORD, 0600, 0), 0);
		assert_none(first);
	}
	close(fd);
}

static void
test_exits__the_first_stop_stays(void **state)
{
	char class[STOP_CLASS_TEXT];
	struct err e = {0};

	(void)state;
	assert_int_equal(stop_record_read(dir.fd, "a.1", first, class, NULL, &e), -1);
	assert_works(stop_record_write(dir.fd, "a.1", first, "timeout", &e), e);
	assert_works(stop_record_write(dir.fd, "a.1", first, "cancelled", &e), e);
	assert_works(stop_record_read(dir.fd, "a.1", first, class, NULL, &e), e);
	assert_string_equal(class, "timeout");
	assert_int_equal(stop_record_read(dir.fd, "a.1", reused, class, NULL, &e), -1);
	assert_works(stop_record_write(dir.fd, "a.1", reused, "silence", &e), e);
	assert_works(stop_record_read(dir.fd, "a.1", reused, class, NULL, &e), e);
	assert_string_equal(class, "silence");
}

/* Whether this kernel tells at all is looked for by one that exits with 0. */
static bool
reap(int status, bool by_signal, struct proc_end *end)
{
	struct proc_id id;
	struct err e = {0};
	pid_t pid = fork();
	int pidfd, told;

	assert_true(pid >= 0);
	if (pid == 0) {
		pause();
		_exit(0);
	}
	assert_works(proc_identify(pid, &id, &e), e);
	pidfd = proc_open(id, &e);
	assert_true(pidfd >= 0);
	assert_int_equal(proc_end_of_reaped(pidfd, end), 0); /* it lives */
	kill(pid, by_signal ? status : SIGKILL);
	waitpid(pid, NULL, 0);
	told = proc_end_of_reaped(pidfd, end);
	close(pidfd);
	return told == 1;
}

static void
test_exits__the_kernel_tells_of_what_was_reaped(void **state)
{
	struct proc_end end = {0};

	(void)state;
	if (!reap(SIGKILL, true, &end))
		skip(); /* before Linux 6.15 */
	assert_true(end.known && end.signaled && end.code == SIGKILL);
	assert_true(reap(SIGTERM, true, &end));
	assert_true(end.signaled && end.code == SIGTERM);
}

static void
test_exits__orphans(void **state)
{
	static const struct {
		const char *json;
		int64_t ns;
	} cases[] = {
	    {"\"end\"", 0},
	    {"\"keep\"", FLOW_ORPHANS_KEPT},
	    {"{\"keep\":\"90s\"}", 90 * NS_PER_S},
	    {"{\"keep\":2}", 2 * NS_PER_S},
	};
	struct json *v;
	struct err e = {0};
	size_t i;

	(void)state;
	assert_true(flow_orphans_ns(NULL) == FLOW_ORPHANS_S * NS_PER_S);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		v = NULL;
		assert_works(json_parse(slice_of(cases[i].json), NULL, &v, NULL, &e), e);
		assert_true(flow_orphans_ns(v) == cases[i].ns);
		json_unref(v);
	}
}

static void
test_exits__members_of_a_start_line(void **state)
{
	static const char head[] = "{\"kind\":\"start\",\"op\":\"a\",\"attempt\":1,\"pid\":11,\"start\":5";
	static const struct {
		const char *rest, *run;
		pid_t reaper;
		size_t open;
	} cases[] = {
	    {"}\n", NULL, 0, 1},
	    {",\"reaper\":7,\"reaper_start\":8}\n", NULL, 7, 1},
	    {",\"reaper\":7}\n", NULL, 0, 1},
	    {",\"run\":\"20261129T000000-aaaaaa\"}\n", "20261129T000000-aaaaaa", 0, 1},
	    {",\"run\":\"../elsewhere\"}\n", NULL, 0, 0},
	};
	struct attempts a;
	struct buf text = {0};
	struct err e = {0};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		buf_reset(&text);
		buf_printf(&text, "%s%s", head, cases[i].rest);
		test_file_write(dir.fd, RUN_ATTEMPTS, buf_text(&text));
		assert_int_equal(fchmodat(dir.fd, RUN_ATTEMPTS, 0600, 0), 0);
		assert_works(attempts_read(dir.fd, &a, &e), e);
		assert_int_equal(a.nopen, cases[i].open);
		if (a.nopen > 0) {
			assert_int_equal(a.open[0].reaper.pid, cases[i].reaper);
			assert_true((a.open[0].run == NULL) == (cases[i].run == NULL));
			if (cases[i].run != NULL)
				assert_string_equal(a.open[0].run, cases[i].run);
		}
		attempts_clear(&a);
	}
	buf_clear(&text);
}

/* Which of ten messages a start has rendered, as its line says it, and back. */
static void
test_exits__ranges_of_messages(void **state)
{
	static const struct {
		const char *marked; /* x: for the operation */
		const char *ranges;
	} cases[] = {
	    {"..........", ""},
	    {"x.........", "[[0,0]]"},
	    {"xxx.......", "[[0,2]]"},
	    {".x.xx....x", "[[1,1],[3,4],[9,9]]"},
	    {"xxxxxxxxxx", "[[0,9]]"},
	    {".o.oxo....", "[[4,4]]"},
	};
	size_t i, k, marked, wanted;
	struct err e = {0};

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct json *m = json_array(), *plain = json_array(), *one, *ranges = NULL;
		struct buf text = {0};

		for (k = wanted = 0; k < 10; k++) {
			one = json_set(json_object(), "text", json_cstr("t"));
			plain = json_append(plain, json_ref(one));
			if (cases[i].marked[k] != '.')
				one = json_set(one, "rendered_into_op",
				    json_cstr(cases[i].marked[k] == 'x' ? "a" : "b"));
			wanted += cases[i].marked[k] == 'x';
			m = json_append(m, one);
		}
		messages_ranges(m, "a", &text);
		assert_string_equal(buf_text(&text), cases[i].ranges);
		if (text.len > 0)
			assert_works(json_parse(buf_view(&text), NULL, &ranges, NULL, &e), e);
		plain = messages_mark_ranges(plain, ranges, "a", &marked);
		assert_int_equal(marked, wanted);
		buf_reset(&text);
		messages_ranges(plain, "a", &text);
		assert_string_equal(buf_text(&text), cases[i].ranges);
		m = messages_mark_ranges(m, ranges, "a", &marked);
		assert_int_equal(marked, 0);
		json_unref(m);
		json_unref(plain);
		json_unref(ranges);
		buf_clear(&text);
	}
}

static const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    CASE(test_exits__what_is_written_is_read),
    CASE(test_exits__only_a_whole_record_of_this_process),
    CASE(test_exits__the_first_stop_stays),
    CASE(test_exits__the_kernel_tells_of_what_was_reaped),
    CASE(test_exits__orphans),
    CASE(test_exits__members_of_a_start_line),
    CASE(test_exits__ranges_of_messages),
};

TEST_MAIN("exits", tests)
