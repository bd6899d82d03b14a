/*
 * Random schedules of planned and spawned outcomes, repeated identities, changes of context alone,
 * compaction, waits given up, and runs abandoned; while another process loads all the time. Every
 * load must be one exact prefix of the admitted order, not shorter than what had been acknowledged
 * before it began, and never older than the load before.
 *
 *	test_ckpt_order [SCHEDULES [SEED]]
 */
#include "ckpt_workload.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 24, SCHEDULES = 1000 };

struct transition {
	enum ckpt_kind kind;
	struct json *entry, *context;
};

struct schedule {
	unsigned length, compact_records;
	bool abandon;
	struct transition steps[MOST];
	bool wait[MOST];
	struct json *models[MOST + 1];
};

/* What writer and reader tell each other. */
struct shared {
	atomic_uint acked, admitted;
	atomic_bool opened, done;
	atomic_ulong loads;
	char fault[512];
};

static uint64_t random_state;

static unsigned
pick(unsigned below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (unsigned)(random_state >> 33) % below;
}

static struct json *
random_value(void)
{
	static const char *const texts[] = {"1", "1.0", "true", "null", "'x'", "[]", "{}", "[1,{'a':[]}]",
	    "{'a':{'b':1}}", "'\\u00e9\\ud83d\\ude00\\ud800'", "-0.0", "1e300", "99999999999999999999"};

	return fixture_json(texts[pick(sizeof(texts) / sizeof(texts[0]))]);
}

static const char *
random_name(void)
{
	static const char *const names[] = {"a", "b", "", "/", "~", "~1", "-", "0", "list", "ops"};

	return names[pick(sizeof(names) / sizeof(names[0]))];
}

static struct json *
random_list(const struct json *old)
{
	struct json *list = old != NULL && json_type(old) == JSON_ARRAY ? json_ref(old) : json_array();
	const size_t n = json_length(list);

	if (n > 0 && pick(3) == 0)
		return json_erase(list, pick((unsigned)n));
	if (n > 0 && pick(3) == 0)
		return json_insert(list, pick((unsigned)n + 1), random_value());
	return json_append(list, random_value());
}

static struct json *
random_context(const struct json *old)
{
	struct json *c = json_ref(old);
	const char *name = random_name();
	struct buf text = {0};
	struct json *foreign = NULL;
	struct err e = {0};

	switch (pick(7)) {
	case 0:
		return json_remove(c, slice_of(name));
	case 1:
		return json_set(c, "list", random_list(json_get(old, "list")));
	case 2: /* the same document from outside: nothing is shared */
		json_write(&text, c);
		if (json_parse(buf_view(&text), NULL, &foreign, NULL, &e) != 0)
			abort();
		buf_clear(&text);
		json_unref(c);
		return foreign;
	case 3:
		if (pick(4) == 0) {
			json_unref(c);
			return json_object();
		}
		return c;
	case 4:
		return json_set(c, name, json_set(json_object(), random_name(), random_value()));
	default:
		return json_set(c, name, random_value());
	}
}

static void
random_step(struct transition *t, const struct json *context)
{
	char id[8];

	snprintf(id, sizeof(id), "x%u", pick(4));
	t->kind = pick(8) == 0 ? CKPT_CONTEXT : pick(2) ? CKPT_OP : CKPT_SPAWNED;
	t->context = t->kind == CKPT_CONTEXT || pick(3) ? random_context(context) : NULL;
	if (t->kind == CKPT_OP)
		t->entry = json_set(fixture_entry(id, "r"), "response", random_value());
	else if (t->kind == CKPT_SPAWNED)
		t->entry = fixture_spawned(id, pick(2) ? "completed" : "pending", NULL);
}

static void
schedule_make(struct schedule *s)
{
	unsigned i;

	*s = (struct schedule){.length = 4 + pick(MOST - 4), .compact_records = 1 + pick(6),
	    .abandon = pick(5) == 0};
	s->models[0] = fixture_state(2);
	for (i = 0; i < s->length; i++) {
		random_step(&s->steps[i], json_get(s->models[i], "flow_context"));
		s->wait[i] = pick(3) == 0;
		s->models[i + 1] = model_apply(json_ref(s->models[i]), s->steps[i].kind,
		    s->steps[i].entry, s->steps[i].context);
	}
}

static void
schedule_free(struct schedule *s)
{
	unsigned i;

	for (i = 0; i <= s->length; i++)
		json_unref(s->models[i]);
	for (i = 0; i < s->length; i++) {
		json_unref(s->steps[i].entry);
		json_unref(s->steps[i].context);
	}
}

/* Whether a state is a prefix of from..to transitions; -1, or the longest that fits. */
static int
find_prefix(const struct schedule *s, const struct json *state, unsigned from, unsigned to)
{
	unsigned i;

	for (i = to + 1; i-- > from;)
		if (json_equal(state, s->models[i]))
			return (int)i;
	return -1;
}

/* ---- The reader, in its own process ---- */

static void
load_once(const struct schedule *s, int run_fd, struct shared *sh, unsigned *latest)
{
	const struct ckpt_load_options o = {.lock_held = true};
	const unsigned from = atomic_load(&sh->acked);
	struct ckpt_report report;
	struct json *state = NULL;
	struct err e = {0};
	unsigned to;
	int found;

	if (ckpt_load(run_fd, &o, &state, &report, &e) != 0) {
		snprintf(sh->fault, sizeof(sh->fault), "load: %.400s", e.msg);
		json_unref(state);
		return;
	}
	to = atomic_load(&sh->admitted);
	found = find_prefix(s, state, from > *latest ? from : *latest, to);
	if (found < 0)
		snprintf(sh->fault, sizeof(sh->fault), "no prefix of %u..%u transitions", from, to);
	else
		/* Different prefixes may be equal: the shortest that fits is what is known. */
		while (*latest < (unsigned)found && !json_equal(state, s->models[*latest]))
			(*latest)++;
	json_unref(state);
	atomic_fetch_add(&sh->loads, 1);
}

static void
reader(const struct schedule *s, int run_fd, struct shared *sh)
{
	unsigned latest = 0;

	while (!atomic_load(&sh->opened))
		continue;
	while (!atomic_load(&sh->done) && sh->fault[0] == '\0')
		load_once(s, run_fd, sh, &latest);
	_exit(0);
}

/* ---- The writer ---- */

static void
collect(struct ckpt_writer *w, struct shared *sh)
{
	struct ckpt_ack ack;

	while (ckpt_take_ack(w, &ack)) {
		assert_int_equal(ack.ticket, atomic_load(&sh->acked) + 1);
		atomic_store(&sh->acked, (unsigned)ack.ticket);
		json_unref(ack.identity);
	}
}

static void
write_schedule(const struct schedule *s, const struct fixture *fx, struct shared *sh)
{
	struct ckpt_options o = fixture_options(fx, NULL);
	struct ckpt_writer *w = NULL;
	struct err e = {0};
	unsigned i;
	int closed;

	o.compact_records = s->compact_records;
	o.literal_limits = true;
	assert_works(ckpt_writer_open(&o, s->models[0], &w, &e), e);
	atomic_store(&sh->opened, true);
	for (i = 0; i < s->length; i++) {
		const struct transition *t = &s->steps[i];

		atomic_store(&sh->admitted, i + 1);
		assert_works(ckpt_admit(w, t->kind, t->entry ? json_ref(t->entry) : NULL,
		    t->context ? json_ref(t->context) : NULL, NULL, &e), e);
		if (s->wait[i])
			assert_works(ckpt_flush(w, &e), e);
		collect(w, sh);
	}
	if (!s->abandon)
		assert_works(ckpt_flush(w, &e), e);
	collect(w, sh);
	closed = ckpt_writer_close(w, s->abandon, &e);
	if (!s->abandon)
		assert_int_equal(closed, 0);
}

static void
run_schedule(struct fixture *fx, struct shared *sh, unsigned long *loads)
{
	struct ckpt_report report;
	struct json *state = NULL;
	struct schedule s;
	struct err e = {0};
	pid_t pid;
	int status;

	schedule_make(&s);
	fixture_again(fx);
	memset(sh, 0, sizeof(*sh));
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		reader(&s, fx->run_fd, sh);
	write_schedule(&s, fx, sh);
	atomic_store(&sh->done, true);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status != 0 || sh->fault[0] != '\0')
		fail_msg("reader: status %d, %s", status, sh->fault);
	assert_works(ckpt_load(fx->run_fd, NULL, &state, &report, &e), e);
	assert_true(find_prefix(&s, state, s.abandon ? atomic_load(&sh->acked) : s.length,
	    s.length) >= 0);
	json_unref(state);
	*loads += atomic_load(&sh->loads);
	schedule_free(&s);
}

static unsigned schedules = SCHEDULES;
static uint64_t seed = 20261129;

static void
test_order__random_schedules(void **unused)
{
	struct shared *sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
	    -1, 0);
	struct fixture fx;
	unsigned long loads = 0;
	unsigned i;

	(void)unused;
	assert_true(sh != MAP_FAILED);
	fixture_make(&fx);
	for (i = 0; i < schedules; i++) {
		random_state = seed * 1000003 + i + 1;
		run_schedule(&fx, sh, &loads);
	}
	print_message("# seed %llu: %u schedules, %lu loads beside them\n", (unsigned long long)seed,
	    schedules, loads);
	assert_true(loads > schedules);
	munmap(sh, sizeof(*sh));
	fixture_remove(&fx);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_order__random_schedules),
};

int
main(int argc, char **argv)
{
	use_fast_directory();
	if (argc > 1)
		schedules = (unsigned)strtoul(argv[1], NULL, 10);
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 10);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}
