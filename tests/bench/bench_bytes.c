/*
 * Bytes that a run really writes, counted at write(2): 200 operations, each with a response of
 * 8,192 bytes and an item of 8,192 bytes appended to a nested list of the context. Without
 * compaction, with the default limits, and as version 2 rewrites it; beside the ideal, which is
 * every response and every item once. Then many small outcomes: how the bytes grow with the run.
 *
 *	bench_bytes [SMALL_OUTCOMES]	(100,000)
 */
#include <sys/stat.h>
#include <unistd.h>

#include "ckpt_workload.h"
#include "figure.h"

enum { OPERATIONS = 200, PAYLOAD = 8192, SMALL = 100000 };

/* Counts what passes to the disk, and leaves out the waiting for it. */
struct counting {
	struct fs_ops ops;
	uint64_t bytes;
};

static ssize_t
c_write(const struct fs_ops *fs, const char *what, int fd, const void *from, size_t len)
{
	ssize_t n = fs_real.write(&fs_real, what, fd, from, len);

	if (n > 0)
		((struct counting *)(uintptr_t)fs)->bytes += (uint64_t)n;
	return n;
}

static int
c_fsync(const struct fs_ops *fs, const char *what, int fd)
{
	(void)fs;
	(void)what;
	(void)fd;
	return 0;
}

static void
counting_init(struct counting *c)
{
	*c = (struct counting){.ops = fs_real};
	c->ops.write = c_write;
	c->ops.fsync = c_fsync;
}

static char *
filler(char first)
{
	static char text[PAYLOAD + 1];
	int i;

	for (i = 0; i < PAYLOAD; i++)
		text[i] = (char)('a' + (first + i) % 26);
	return text;
}

/* The counter must see what a plain write puts into a file. */
static void
positive_control(const struct fixture *fx)
{
	struct counting c;
	struct err e = {0};
	struct stat st;
	int fd = openat(fx->run_fd, "control", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	counting_init(&c);
	if (fd < 0 || fs_write_all(&c.ops, "control", fd, slice_of(filler(1)), &e) != 0 ||
	    fstat(fd, &st) != 0 || (uint64_t)st.st_size != c.bytes || c.bytes != PAYLOAD)
		give_up("bench_bytes", "the counter does not count");
	close(fd);
	unlinkat(fx->run_fd, "control", 0);
}

static struct json *
grown(struct json *context, int i)
{
	struct json *nested = json_ref(json_get(context, "nested"));
	struct json *list = json_ref(json_get(nested, "entries"));

	list = json_append(list, json_cstr(filler((char)i)));
	return json_set(context, "nested", json_set(nested, "entries", list));
}

static void
flush(struct ckpt_writer *w)
{
	struct ckpt_ack ack;
	struct err e = {0};

	if (ckpt_flush(w, &e) != 0)
		give_up("flush", e.msg);
	while (ckpt_take_ack(w, &ack))
		json_unref(ack.identity);
}

/* What is there must be all that was saved: bytes that are spared may not be missing. */
static void
check_saved(const struct fixture *fx, const struct json *context)
{
	struct ckpt_report report;
	struct json *state = NULL;
	struct err e = {0};
	const struct json *ops;
	char id[16];
	int i;

	if (ckpt_load(fx->run_fd, NULL, &state, &report, &e) != 0)
		give_up("load", e.msg);
	ops = json_get(state, "ops");
	if (!json_equal(json_get(state, "flow_context"), context) || json_length(ops) != OPERATIONS)
		give_up("bench_bytes", "the state is not what was saved");
	for (i = 0; i < OPERATIONS; i++) {
		snprintf(id, sizeof(id), "op-%d", i);
		if (!slice_is(json_text(json_get(json_get(ops, id), "response")), filler((char)-i)))
			give_up("bench_bytes", "a response is not what was saved");
	}
	json_unref(state);
}

static uint64_t
run_large(struct fixture *fx, int version, bool compacting)
{
	struct counting c;
	struct ckpt_options o;
	struct ckpt_writer *w = NULL;
	struct json *state = fixture_state(OPERATIONS);
	struct json *context = fixture_json("{'nested':{'entries':[]}}");
	struct err e = {0};
	char id[16];
	int i;

	fixture_again(fx);
	counting_init(&c);
	o = fixture_options(fx, &c.ops);
	o.version = version;
	if (!compacting) {
		o.compact_records = o.compact_bytes = UINT64_MAX / 4;
		o.literal_limits = true;
	}
	state = json_set(state, "flow_context", json_ref(context));
	if (ckpt_writer_open(&o, state, &w, &e) != 0)
		give_up("open", e.msg);
	for (i = 0; i < OPERATIONS; i++) {
		snprintf(id, sizeof(id), "op-%d", i);
		context = grown(context, i);
		if (ckpt_admit(w, CKPT_OP, fixture_entry(id, filler((char)-i)), json_ref(context), NULL,
		    &e) != 0)
			give_up("admit", e.msg);
		flush(w);
	}
	if (ckpt_writer_close(w, false, &e) != 0)
		give_up("close", e.msg);
	check_saved(fx, context);
	json_unref(context);
	json_unref(state);
	return c.bytes;
}

/* What a delta cannot do without: the entry, the item, and the pointer to where it goes. */
static uint64_t
ideal(void)
{
	struct json *entry = fixture_entry("op-100", filler(0));
	uint64_t each = json_encoded_length(entry) + PAYLOAD + 2 + strlen("\"/nested/entries/-\"");

	json_unref(entry);
	return each * OPERATIONS;
}

static struct json *
small_entry(unsigned i)
{
	char digest[CKPT_DIGEST_TEXT], id[16];
	struct json *entry, *response = json_cstr("ok\n");
	struct err e = {0};

	snprintf(id, sizeof(id), "op-%u", i);
	if (ckpt_digest(response, digest, &e) != 0)
		give_up("digest", e.msg);
	entry = json_set(fixture_entry(id, "ok\n"), "response", response);
	entry = json_set(entry, "result_digest", json_cstr(digest));
	entry = json_set(entry, "attempts", json_int(1));
	entry = json_set(entry, "started_at", json_real(1795947000.25 + i));
	return json_set(entry, "ended_at", json_real(1795947001.25 + i));
}

/* One at a time: no batch spares anything. *journal: bytes of all records. */
static uint64_t
run_small(struct fixture *fx, unsigned outcomes, uint64_t *journal)
{
	struct counting c;
	struct ckpt_options o;
	struct ckpt_writer *w = NULL;
	struct json *state = fixture_state(0);
	struct err e = {0};
	unsigned i;

	fixture_again(fx);
	counting_init(&c);
	o = fixture_options(fx, &c.ops);
	if (ckpt_writer_open(&o, state, &w, &e) != 0)
		give_up("open", e.msg);
	for (i = 0; i < outcomes; i++) {
		if (ckpt_admit(w, CKPT_OP, small_entry(i), NULL, NULL, &e) != 0)
			give_up("admit", e.msg);
		flush(w);
	}
	*journal = ckpt_progress(w).journal_bytes;
	if (ckpt_writer_close(w, false, &e) != 0)
		give_up("close", e.msg);
	json_unref(state);
	return c.bytes;
}

int
main(int argc, char **argv)
{
	unsigned small = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : SMALL;
	struct fixture fx;
	char peer[64], bound[64];
	uint64_t n, journal, total;

	use_fast_directory();
	fixture_make(&fx);
	positive_control(&fx);
	n = run_large(&fx, 2, true);
	snprintf(peer, sizeof(peer), "version 2: %llu", (unsigned long long)n);
	snprintf(bound, sizeof(bound), "<10000000, goal <=%.0f", 1.05 * (double)ideal());
	figure("bytes.nocompact", (double)run_large(&fx, 3, false), "bytes", bound, peer);
	figure("bytes.default", (double)run_large(&fx, 3, true), "bytes", "<10000000, goal <=6000000",
	    peer);
	total = run_small(&fx, small, &journal);
	snprintf(peer, sizeof(peer), "%u outcomes, journal %llu", small, (unsigned long long)journal);
	figure("bytes.linear", (double)total / (double)journal, "x journal", "<=3", peer);
	fixture_remove(&fx);
	return 0;
}
