/* What a run writes grows with what its operations say, not with who needs it. */
#include "run_fixture.h"

enum { LAYERS = 20, WIDTH = 50, RESPONSE = 8192, PRINTED = LAYERS * WIDTH * RESPONSE };

static void
add_layer(struct buf *text, const char *file, int layer)
{
	int i, n;

	for (i = 0; i < WIDTH; i++) {
		buf_printf(text, "  - {id: l%d.%d, exec: [/bin/cat, '%s']", layer, i, file);
		for (n = 0; layer > 0 && n < WIDTH; n++)
			buf_printf(text, "%sl%d.%d", n == 0 ? ", needs: [" : ", ", layer - 1, n);
		buf_puts(text, layer > 0 ? "]}\n" : "}\n");
	}
}

/* Every operation of a layer gets the responses of all of the layer before. The worker's count
 * (wchar of proc(5)) has its threads and the processes that it has waited for; an operation that
 * follows asks for that of its parent, and what the operations have printed is taken off. What stays
 * is what the worker itself has written: journal, bases, logs. */
static void
test_bytes__all_to_all(void **state)
{
	char said[RESPONSE + 1], file[600];
	struct buf text = {0};
	struct test_dir dir;
	struct run_fixture r;
	const char *answer;
	int64_t written;
	int layer, i;

	(void)state;
	test_dir_make(&dir);
	memset(said, 'x', RESPONSE);
	said[RESPONSE] = '\0';
	test_file_write(dir.fd, "said", said);
	snprintf(file, sizeof(file), "%s/said", dir.path);
	buf_printf(&text, "concurrency: 4\nmax_ops: %d\nplan:\n", LAYERS * WIDTH + 1);
	for (layer = 0; layer < LAYERS; layer++)
		add_layer(&text, file, layer);
	buf_puts(&text, "  - {id: written, run: 'sed -n \"s/^wchar: //p\" /proc/$PPID/io', needs: [");
	for (i = 0; i < WIDTH; i++)
		buf_printf(&text, "%sl%d.%d", i == 0 ? "" : ", ", LAYERS - 1, i);
	buf_puts(&text, "]}\n");
	run_whole(&r, buf_text(&text), STATUS_COMPLETED, "run.completed.all");
	run_assert_response(&r, "l19.49", said);
	answer = json_cstr_of(json_get(run_entry(&r, "written"), "response"));
	assert_non_null(answer);
	written = strtoll(answer, NULL, 10) - PRINTED;
	print_message("# the worker has written %.2f times the responses\n",
	    (double)written / PRINTED);
	/* Once as outcome at least: else it is not what was meant to be counted. */
	assert_in_range(written, PRINTED, 3 * PRINTED);
	run_clear(&r);
	test_dir_remove(&dir);
	buf_clear(&text);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_bytes__all_to_all),
};

TEST_MAIN("worker_bytes", tests)
