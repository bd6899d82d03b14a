/*
 * The line that a single member or element costs, as it stands in the journal: at most 256 bytes
 * more than entry, value and pointer together; and the nodes copied on the way to it: a few for each
 * level of the tree, whatever the container's size.
 */
#include "ckpt_workload.h"

#include <stdio.h>

/* The longest number that a record can have, so the longest line. */
static const uint64_t last_sequence = INT64_MAX - 1;

/* Where something is added: a pointer from the context to a container, and a place in it. */
struct place {
	const char *path[4];  /* names of members, ended by NULL */
	const char *name;     /* of the new member; NULL: an array, and `at` counts */
	size_t at;	      /* SIZE_MAX: behind the last */
	const char *pointer; /* as it must stand in the patch, quotes and escapes included */
};

static const struct place places[] = {
	{{NULL}, "new", 0, "\"/new\""},
	{{NULL}, "", 0, "\"/\""},
	{{NULL}, "a/b~c", 0, "\"/a~1b~0c\""},
	{{NULL}, "-", 0, "\"/-\""},
	{{NULL}, "\xc3\xa9\"\\\x01", 0, "\"/\\u00e9\\\"\\\\\\u0001\""},
	{{NULL}, "\xf0\x9f\x98\x80", 0, "\"/\\ud83d\\ude00\""},
	{{"list", NULL}, NULL, SIZE_MAX, "\"/list/-\""},
	{{"list", NULL}, NULL, 0, "\"/list/0\""},
	{{"list", NULL}, NULL, 700, "\"/list/700\""},
	{{"map", NULL}, "new", 0, "\"/map/new\""},
	{{"map", NULL}, "k7/~", 0, "\"/map/k7~1~0\""},
	{{"deep", "x/y", "", NULL}, "z", 0, "\"/deep/x~1y//z\""},
	{{"deep", "x/y", "list", NULL}, NULL, SIZE_MAX, "\"/deep/x~1y/list/-\""},
	{{"deep", "x/y", "list", NULL}, NULL, 500, "\"/deep/x~1y/list/500\""},
};

static const char *const values[] = {
	"null", "true", "0", "-12345678901234567890123", "1.5e300", "''", "'x'", "'\\u20ac \\n\\\"'", "[]", "{}",
	"[[[1]]]", "{'a':{'b':[1,2,{'c':null}]}}",
};

static const char *const entries[] = {
	"{'agent_id':'op-0','status':'completed','response':null}",
	"{'node_id':'n','status':'completed','response':'\\u20ac','result_digest':'blake2b:00'}",
	"{'node_id':'n','status':'pending','response':null,'context':{'deep':[1,2,3]},'x-extra':1.0}",
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static struct json *
list_of(unsigned n)
{
	struct json *list = json_array();
	unsigned i;

	for (i = 0; i < n; i++)
		list = json_append(list, json_int(1000000 + i));
	return list;
}

static struct json *
map_of(unsigned n)
{
	struct json *map = json_object();
	char name[16];
	unsigned i;

	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "k%u", i);
		map = json_set(map, name, json_int(i));
	}
	return map;
}

static struct json *
context_of(unsigned n)
{
	struct json *context = json_set(json_object(), "list", list_of(n)), *deep;

	deep = json_set(json_set(json_object(), "", json_object()), "list", list_of(n));
	context = json_set(context, "map", map_of(n));
	return json_set(context, "deep", json_set(json_object(), "x/y", deep));
}

/* `in` with the value added. Consumes both. */
static struct json *
added(struct json *in, const char *const *path, const struct place *p, struct json *value)
{
	struct json *below;

	if (*path != NULL) {
		below = added(json_ref(json_get(in, *path)), path + 1, p, value);
		return json_set(in, *path, below);
	}
	if (p->name != NULL)
		return json_set(in, p->name, value);
	return p->at == SIZE_MAX ? json_append(in, value) : json_insert(in, p->at, value);
}

struct bench {
	struct fixture fx;
	struct ckpt_writer *w;
	struct json *context;
};

static void
bench_open(struct bench *b, unsigned n)
{
	struct json *state = json_set(fixture_state(1), "flow_context", context_of(n));
	struct ckpt_options o;
	struct err e = {0};

	fixture_make(&b->fx);
	b->context = json_ref(json_get(state, "flow_context"));
	o = fixture_options(&b->fx, NULL);
	o.first_sequence = last_sequence;
	assert_works(ckpt_writer_open(&o, state, &b->w, &e), e);
	json_unref(state);
}

static void
bench_close(struct bench *b)
{
	struct err e = {0};

	assert_works(ckpt_writer_close(b->w, false, &e), e);
	json_unref(b->context);
	fixture_remove(&b->fx);
}

/* Admits the entry with the context that has one value more, and waits; returns nodes copied. */
static uint64_t
add_one(struct bench *b, const struct place *p, const struct json *entry, const struct json *value)
{
	const enum ckpt_kind kind = json_get(entry, "node_id") != NULL ? CKPT_SPAWNED : CKPT_OP;
	const uint64_t before = json_counters().nodes_made;
	struct json *next = added(json_ref(b->context), p->path, p, json_ref(value));
	struct err e = {0};

	assert_non_null(next);
	assert_works(ckpt_admit(b->w, kind, json_ref(entry), json_ref(next), NULL, &e), e);
	assert_works(ckpt_flush(b->w, &e), e);
	json_unref(next);
	return json_counters().nodes_made - before;
}

static void
check_line(const struct bench *b, const struct place *p, const struct json *entry,
    const struct json *value)
{
	const size_t most = json_encoded_length(entry) + json_encoded_length(value) + strlen(p->pointer) + 256;
	char *line = test_file_read(b->fx.run_fd, CKPT_JOURNAL);
	const char *end = strchr(line, '\n');

	assert_non_null(end);
	assert_int_equal(end[1], '\0');
	if (strstr(line, p->pointer) == NULL)
		fail_msg("%s is not in %.300s", p->pointer, line);
	if (strlen(line) > most)
		fail_msg("%zu bytes, not %zu: %.300s", strlen(line), most, line);
	free(line);
}

/* Each kind of place, value and entry, in the longest record that can be. */
static void
test_ckpt_bound__every_single_addition(void **state)
{
	size_t i, k, m;

	(void)state;
	for (i = 0; i < COUNT(places); i++)
		for (k = 0; k < COUNT(values); k++)
			for (m = 0; m < COUNT(entries); m += k % 4 == 0 ? 1 : COUNT(entries)) {
				struct json *value = fixture_json(values[k]), *entry = fixture_json(entries[m]);
				struct bench b;

				bench_open(&b, 1000);
				add_one(&b, &places[i], entry, value);
				check_line(&b, &places[i], entry, value);
				bench_close(&b);
				json_unref(value);
				json_unref(entry);
			}
}

/*
 * 16 children at least in a node: two levels more at most in each tree for a factor of ten, of which
 * an object has two, its index by a key that differs from process to process. Where a full bucket of
 * the index is split, 17 nodes are new at once.
 */
enum { MOST_NODES = 12 + 17, MORE_NODES = 4 };

static void
test_ckpt_bound__nodes_copied_are_logarithmic(void **state)
{
	static const unsigned sizes[] = {1000, 10000, 100000};
	struct json *entry = fixture_json(entries[0]), *value = json_cstr("x");
	size_t i, k;

	(void)state;
	for (i = 0; i < COUNT(places); i++) {
		uint64_t nodes[COUNT(sizes)];

		for (k = 0; k < COUNT(sizes); k++) {
			struct bench b;

			bench_open(&b, sizes[k]);
			nodes[k] = add_one(&b, &places[i], entry, value);
			check_line(&b, &places[i], entry, value);
			bench_close(&b);
		}
		print_message("# %s: %ju %ju %ju nodes for 1,000 10,000 100,000\n", places[i].pointer,
		    (uintmax_t)nodes[0], (uintmax_t)nodes[1], (uintmax_t)nodes[2]);
		for (k = 0; k < COUNT(sizes); k++)
			assert_true(nodes[k] <= MOST_NODES + k * MORE_NODES);
	}
	json_unref(entry);
	json_unref(value);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_ckpt_bound__every_single_addition),
	cmocka_unit_test(test_ckpt_bound__nodes_copied_are_logarithmic),
};

int
main(void)
{
	use_fast_directory();
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("line bound of the checkpoint", tests, NULL, NULL);
}
