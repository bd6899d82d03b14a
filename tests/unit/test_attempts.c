#include "test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/home.h"

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

static void
write_log(const char *text)
{
	test_file_write(dir.fd, RUN_ATTEMPTS, text);
	assert_int_equal(fchmodat(dir.fd, RUN_ATTEMPTS, 0600, 0), 0);
}

#define WORKER                                                                                     \
	"{\"kind\":\"worker\",\"host\":\"h\",\"boot_id\":\"b\",\"pid_namespace\":7,\"pid\":10,"     \
	"\"start\":100}\n"
#define START(op, n, pid)                                                                          \
	"{\"kind\":\"start\",\"op\":\"" op "\",\"attempt\":" n ",\"pid\":" pid ",\"start\":5}\n"
#define END(op, n)                                                                                 \
	"{\"kind\":\"end\",\"op\":\"" op "\",\"attempt\":" n ",\"class\":\"completed\",\"code\":0}\n"

static void
test_attempts__open_ones(void **state)
{
	static const struct {
		const char *text;
		const char *open; /* "op.attempt/pid " of each */
		size_t lines, damaged;
		bool torn;
	} cases[] = {
	    {"", "", 0, 0, false},
	    {WORKER, "", 1, 0, false},
	    {WORKER START("a", "1", "11"), "a.1/11 ", 2, 0, false},
	    {WORKER START("a", "1", "11") END("a", "1"), "", 3, 0, false},
	    {START("a", "1", "11") START("b", "1", "12") END("a", "1") START("a", "2", "13"),
		"b.1/12 a.2/13 ", 4, 0, false},
	    /* The end of one attempt is not the end of another. */
	    {START("a", "2", "11") END("a", "1"), "a.2/11 ", 2, 0, false},
	    {END("a", "1") START("a", "1", "11"), "a.1/11 ", 2, 0, false},
	    /* Started twice under one number: the first is looked for as well. */
	    {START("a", "1", "11") START("a", "1", "12") END("a", "1"), "a.1/11 ", 3, 0, false},
	    /* A line without its end is no line. */
	    {START("a", "1", "11") "{\"kind\":\"end\",\"op\":\"a\",\"attempt\":1}", "a.1/11 ", 1, 0,
		true},
	    {"x", "", 0, 0, true},
	    /* What is damaged is set aside, the others count. */
	    {"x\n" START("a", "1", "11"), "a.1/11 ", 1, 1, false},
	    /* An empty line ends one that may have been cut. */
	    {"\n" START("a", "1", "11"), "a.1/11 ", 1, 0, false},
	    {"[]\n{}\n1\n{\"kind\":1}\n" START("a", "1", "11"), "a.1/11 ", 1, 4, false},
	    {START("a", "0", "11") START("a", "1", "0") START("a", "1", "\"x\""), "", 0, 3, false},
	    {START("a", "1", "99999999999") START("a", "1.0", "11"), "", 0, 2, false},
	    {"{\"kind\":\"worker\"}\n", "", 0, 1, false},
	    {"{\"kind\":\"later\",\"x\":1}\n", "", 1, 0, false},
	    /* Any form of JSON is one, whoever wrote it. */
	    {" { \"pid\" : 11 , \"kind\":\"st\\u0061rt\",\"op\":\"\\u00e9\\/\",\"attempt\":1,\"start\":5}\n"
	     "{\"kind\":\"start\",\"op\":\"b\",\"attempt\":1,\"pid\":12,\"start\":18446744073709551615}\n"
	     "{\"kind\":\"start\",\"op\":\"c\",\"attempt\":1,\"pid\":13,\"start\":5,\"signals\":[[2,3]]}\n",
		"\303\251/.1/11 b.1/12 c.1/13 ", 3, 0, false},
	    {"{\"kind\":\"start\",\"op\":\"a\",\"attempt\":01,\"pid\":1,\"start\":1}\n"
	     "{\"kind\":\"start\",\"op\":\"a\",\"attempt\":1,\"pid\":1,\"start\":1}}\n"
	     "{\"kind\":\"start\",\"op\":\"a\",\"attempt\":1,\"pid\":1,\"start\":-1}\n"
	     "{\"kind\":\"end\",\"op\":\"a\\u0000\",\"attempt\":1}\n"
	     "{\"kind\":\"end\",\"op\":\"a\",\"attempt\":1,}\n",
		"", 0, 5, false},
	    {"{\"kind\":\"start\",\"op\":\"a\",\"op\":\"b\",\"attempt\":1,\"pid\":1,\"start\":1}\n", "",
		0, 1, false},
	};
	struct attempts a;
	struct err e = {0};
	char open[256];
	size_t i, k;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		write_log(cases[i].text);
		assert_works(attempts_read(dir.fd, &a, &e), e);
		open[0] = '\0';
		for (k = 0; k < a.nopen; k++)
			snprintf(open + strlen(open), sizeof(open) - strlen(open), "%s.%u/%d ",
			    a.open[k].op, a.open[k].attempt, (int)a.open[k].id.pid);
		assert_string_equal(open, cases[i].open);
		assert_int_equal(a.nlines, cases[i].lines);
		assert_int_equal(a.damaged, cases[i].damaged);
		assert_int_equal(a.torn, cases[i].torn);
		attempts_clear(&a);
	}
}

static void
test_attempts__the_latest_worker_line_counts(void **state)
{
	struct attempts a;
	struct err e = {0};

	(void)state;
	write_log(WORKER "{\"kind\":\"worker\",\"host\":\"i\",\"boot_id\":\"c\","
			 "\"pid_namespace\":8,\"pid\":20,\"start\":200}\n");
	assert_works(attempts_read(dir.fd, &a, &e), e);
	assert_true(a.has_place);
	assert_string_equal(a.place.host, "i");
	assert_string_equal(a.place.boot_id, "c");
	assert_int_equal(a.place.pid_namespace, 8);
	assert_int_equal(a.worker.pid, 20);
	assert_int_equal(a.worker.start_ticks, 200);
	attempts_clear(&a);
	assert_works(attempts_read_place(dir.fd, &a, &e), e);
	assert_true(a.has_place);
	assert_string_equal(a.place.host, "i");
	assert_int_equal(a.worker.pid, 20);
	attempts_clear(&a);
}

static void
test_attempts__strays(void **state)
{
	struct buf line = {0};
	struct attempts a;
	struct err e = {0};

	(void)state;
	attempts_stray_line((struct proc_id){30, 300}, &line);
	assert_string_equal(buf_text(&line), "{\"kind\":\"stray\",\"pid\":30,\"start\":300}\n");
	write_log(WORKER "\n{\"kind\":\"stray\",\"pid\":30,\"start\":300}\n{\"kind\":\"stray\",\"pid\":0,\"start\":3}\n");
	assert_works(attempts_read(dir.fd, &a, &e), e);
	assert_int_equal(a.nstrays, 1);
	assert_int_equal(a.strays[0].pid, 30);
	assert_int_equal(a.strays[0].start_ticks, 300);
	assert_int_equal(a.damaged, 1);
	assert_false(attempts_stray_lives(&a, 0));
	attempts_clear(&a);
	buf_clear(&line);
}

static void
test_attempts__no_file_means_nothing_started(void **state)
{
	struct attempts a;
	struct err e = {0};

	(void)state;
	assert_works(attempts_read(dir.fd, &a, &e), e);
	assert_int_equal(a.nopen, 0);
	assert_false(a.has_place || a.torn);
	attempts_clear(&a);
}

static void
test_attempts__a_planted_fifo_does_not_hang(void **state)
{
	struct attempts a;
	struct err e = {0};

	(void)state;
	assert_int_equal(mkfifoat(dir.fd, RUN_ATTEMPTS, 0600), 0);
	assert_fails(attempts_read(dir.fd, &a, &e), ERR_IDENTITY, e);
}

/* Many starts and ends, in an order that would make scans quadratic. */
static void
test_attempts__many(void **state)
{
	struct attempts a;
	struct buf text = {0};
	struct err e = {0};
	uint64_t made;
	int i;

	(void)state;
	for (i = 0; i < 50000; i++)
		buf_printf(&text,
		    "{\"kind\":\"start\",\"op\":\"op-%d\",\"attempt\":1,\"pid\":%d,\"start\":5}\n", i,
		    i + 1);
	for (i = 0; i < 49999; i++)
		buf_printf(&text, "{\"kind\":\"end\",\"op\":\"op-%d\",\"attempt\":1}\n", i);
	write_log(buf_text(&text));
	buf_clear(&text);
	made = json_counters().values_made;
	assert_works(attempts_read(dir.fd, &a, &e), e);
	/* Of all these only the one that is open was made a value. */
	assert_in_range(json_counters().values_made - made, 1, 20);
	assert_int_equal(a.nopen, 1);
	assert_string_equal(a.open[0].op, "op-49999");
	attempts_clear(&a);
}

static const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    CASE(test_attempts__open_ones),
    CASE(test_attempts__the_latest_worker_line_counts),
    CASE(test_attempts__strays),
    CASE(test_attempts__no_file_means_nothing_started),
    CASE(test_attempts__a_planted_fifo_does_not_hang),
    CASE(test_attempts__many),
};

TEST_MAIN("attempts", tests)
