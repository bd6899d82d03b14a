/* Output of every size and kind; and that its size costs the worker no memory. */
#include "run_fixture.h"

#include <unistd.h>

#define HEAD "name: t\nconcurrency: 2\nplan:\n"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { PEAK_KIB = 128 << 10 };
#else
enum { PEAK_KIB = 8 << 10 };
#endif

static void
completes(struct run_fixture *r, const char *yaml)
{
	run_whole(r, yaml, STATUS_COMPLETED, "run.completed.all");
}

static void
assert_by_reference(struct run_fixture *r, const char *op, int64_t wanted)
{
	const struct json *v = json_get(run_entry(r, op), "response");
	int64_t size;

	assert_non_null(json_cstr_of(json_get(v, "file")));
	assert_non_null(json_cstr_of(json_get(v, "digest")));
	assert_true(json_int64(json_get(v, "size"), &size));
	assert_int_equal(size, wanted);
	assert_int_equal(json_text(json_get(v, "head")).len, 4096);
	assert_int_equal(json_text(json_get(v, "tail")).len, 4096);
}

/* The worker's highest resident memory, as an operation that follows sees it: its parent. */
#define PEAK "sed -n \"s/^VmHWM:[^0-9]*\\\\([0-9]*\\\\).*/\\\\1/p\" /proc/$PPID/status"

static void
assert_peak(struct run_fixture *r, const char *op, long most_kib)
{
	const char *text = json_cstr_of(json_get(run_entry(r, op), "response"));
	long peak;

	assert_non_null(text);
	peak = atol(text);
	print_message("# highest resident memory %ld KiB\n", peak);
	assert_in_range(peak, 1, most_kib);
}

static void
test_output__three_hundred_megabytes(void **state)
{
	struct run_fixture *r = *state;

	completes(r, HEAD "  - {id: a, run: 'dd if=/dev/zero bs=1M count=300 2>/dev/null'}\n"
			  "  - {id: peak, needs: [a], run: '" PEAK "'}\n");
	assert_by_reference(r, "a", INT64_C(300) << 20);
	assert_peak(r, "peak", PEAK_KIB);
}

static void
test_output__a_hole_of_a_gigabyte(void **state)
{
	struct run_fixture *r = *state;

	completes(r, HEAD "  - {id: a, run: 'truncate -s 1G /proc/self/fd/1'}\n"
			  "  - {id: size, needs: [a], run: 'stat -c %s \"$FLOWSUP_DEP_a\"'}\n"
			  "  - {id: peak, needs: [a], run: '" PEAK "'}\n");
	assert_by_reference(r, "a", INT64_C(1) << 30);
	run_assert_response(r, "size", "1073741824\n");
	assert_peak(r, "peak", PEAK_KIB);
}

/* Of lines that stay in their file only some are held at a time, however many there are; what must be
 * held has a limit. */
static void
test_output__millions_of_values(void **state)
{
	struct run_fixture *r = *state;
	const struct json *error;

	run_whole(r, HEAD
	    "  - {id: a, response: jsonl, schema: {type: array}, run: 'yes \"[1]\" | head -n 1500000'}\n"
	    "  - {id: peak, needs: [a], run: '" PEAK "'}\n"
	    "  - {id: bad, response: jsonl, schema: {type: array}, run: 'yes \"[1]\" | head -n 700000; echo 2'}\n"
	    "  - {id: b, response: json, run: 'echo \"[\"; yes 1, | head -n 1000000; echo \"1]\"'}\n",
	    STATUS_FAILED, "run.failed.operation");
	assert_by_reference(r, "a", 6000000);
	assert_peak(r, "peak", 5 * PEAK_KIB);
	error = json_get(run_entry(r, "bad"), "error");
	assert_non_null(strstr(json_cstr_of(json_get(error, "message")), "at \"/700000\": is an integer"));
	error = json_get(run_entry(r, "b"), "error");
	assert_non_null(strstr(json_cstr_of(json_get(error, "message")), "may have 1000000 values"));
}

static void
test_output__64_kib_without_a_newline(void **state)
{
	struct run_fixture *r = *state;

	completes(r, HEAD "  - {id: a, run: 'head -c 65536 /dev/zero | tr \"\\0\" x'}\n"
			  "  - {id: b, run: 'head -c 65537 /dev/zero | tr \"\\0\" y'}\n"
			  "  - {id: c, needs: [a, b], run: 'cat \"$FLOWSUP_DEP_a\" \"$FLOWSUP_DEP_b\" | wc'}\n");
	assert_int_equal(json_text(json_get(run_entry(r, "a"), "response")).len, 65536);
	assert_int_equal(json_text(json_get(run_entry(r, "b"), "response")).len, 65537);
	run_assert_response(r, "c", "      0       1  131073\n");
}

/* Every byte value: the response is flagged, and the bytes stand in the file. */
static void
test_output__binary(void **state)
{
	struct run_fixture *r = *state;

	completes(r, HEAD "  - {id: a, run: 'i=0; while test $i -lt 256; do "
			  "printf \"\\\\$(printf %o $i)\"; i=$((i+1)); done'}\n"
			  "  - {id: sum, needs: [a], run: 'cksum < \"$FLOWSUP_DEP_a\"'}\n");
	assert_true(json_is_true(json_get(run_entry(r, "a"), "response_lossy")));
	run_assert_response(r, "sum", "1313719201 256\n");
}

#define T(name) cmocka_unit_test_setup_teardown(name, run_setup, run_teardown)
static const struct CMUnitTest tests[] = {
    T(test_output__three_hundred_megabytes),
    T(test_output__a_hole_of_a_gigabyte),
    T(test_output__64_kib_without_a_newline),
    T(test_output__millions_of_values),
    T(test_output__binary),
};

TEST_MAIN("worker_output", tests)
