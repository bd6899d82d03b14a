/* The writer: what is recovered, in which order it is acknowledged, when a base is published. */
#include "ckpt_fixture.h"
#include "fault_fs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/statvfs.h>
#include <unistd.h>

struct world {
	struct fixture fx;
	struct fault_fs *fs;
	struct ckpt_options o;
	struct ckpt_writer *w;
	struct json *model;
};

static void
world_make(struct world *s)
{
	fixture_make(&s->fx);
	s->fs = fault_fs_new();
	s->o = fixture_options(&s->fx, &s->fs->ops);
	s->w = NULL;
	s->model = fixture_state(3);
}

static void
world_open(struct world *s)
{
	struct err e = {0};

	assert_works(ckpt_writer_open(&s->o, s->model, &s->w, &e), e);
}

static void
world_end(struct world *s)
{
	struct err e = {0};

	if (s->w != NULL)
		assert_works(ckpt_writer_close(s->w, false, &e), e);
	json_unref(s->model);
	fault_fs_free(s->fs);
	fixture_remove(&s->fx);
}

/* Admits and keeps the model in step; does not wait. */
static uint64_t
admit(struct world *s, enum ckpt_kind kind, struct json *entry, struct json *context)
{
	struct err e = {0};
	uint64_t ticket = 0;

	s->model = model_apply(s->model, kind, entry, context);
	assert_works(ckpt_admit(s->w, kind, entry, context, &ticket, &e), e);
	return ticket;
}

static void
flush(struct world *s)
{
	struct err e = {0};

	assert_works(ckpt_flush(s->w, &e), e);
}

static bool
all_acked(void *writer)
{
	struct ckpt_progress p = ckpt_progress(writer);

	return p.acked == p.admitted;
}

static void
check(struct world *s)
{
	flush(s);
	assert_loads(s->fx.run_fd, s->model, CKPT_CLEAN);
}

static const char *const contexts[] = {
	"{'a':1}",
	"{'a':1.0}",
	"{'a':true}",
	"{'a':null,'b':{'c':[]}}",
	"{'b':{'c':[1,2,3]}}",
	"{'b':{'c':[1,9,8,2,3,4]}}",
	"{'b':{'c':[3]}}",
	"{'':{'/':{'~':1,'~1':2,'-':[{'x':'\\u00e9\\ud800'}]}}}",
	"{'':{'/':{'~':1.5,'-':[{'x':'\\u00e9','y':null},0]}}}",
	"{}",
	"{'version':2,'generation':'g','ops':{},'flow_context':{'patch':[]}}",
};

static void
test_writer__every_context_is_recovered(void **unused)
{
	struct world s;
	size_t i;

	(void)unused;
	world_make(&s);
	world_open(&s);
	check(&s);
	for (i = 0; i < sizeof(contexts) / sizeof(contexts[0]); i++) {
		admit(&s, CKPT_OP, fixture_entry("op-0", contexts[i]), fixture_json(contexts[i]));
		check(&s);
		admit(&s, CKPT_SPAWNED, fixture_spawned(i % 2 ? "n1" : "n2", "completed", "x"), NULL);
		check(&s);
	}
	world_end(&s);
}

static void
test_writer__unchanged_context_is_an_empty_patch(void **unused)
{
	struct world s;
	char *text;

	(void)unused;
	world_make(&s);
	world_open(&s);
	admit(&s, CKPT_OP, fixture_entry("op-0", "x"), json_object());
	check(&s);
	text = test_file_read(s.fx.run_fd, CKPT_JOURNAL);
	assert_non_null(strstr(text, "\"flow_context\":{\"patch\":[]}}\n"));
	free(text);
	admit(&s, CKPT_OP, fixture_entry("op-1", "x"), NULL);
	check(&s);
	text = test_file_read(s.fx.run_fd, CKPT_JOURNAL);
	assert_non_null(strstr(text, "\"flow_context\":null}\n"));
	free(text);
	world_end(&s);
}

/* The record as flowsup-checkpoint(5) shows it, byte for byte. */
static void
test_writer__line_is_the_documented_one(void **unused)
{
	struct world s;
	struct ckpt_progress p;
	struct buf want = {0};
	char *text;

	(void)unused;
	world_make(&s);
	s.model = json_set(s.model, "flow_context", fixture_json("{'nested':{'entries':['w']}}"));
	world_open(&s);
	admit(&s, CKPT_OP, fixture_entry("op-0", "ok"),
	    fixture_json("{'nested':{'entries':['w','x']}}"));
	flush(&s);
	p = ckpt_progress(s.w);
	buf_printf(&want, "{\"version\":3,\"generation\":\"%s\",\"seq\":1,\"kind\":\"op\",\"entry\":"
	    "{\"agent_id\":\"op-0\",\"status\":\"completed\",\"response\":\"ok\"},\"flow_context\":"
	    "{\"patch\":[{\"op\":\"add\",\"path\":\"/nested/entries/-\",\"value\":\"x\"}]}}\n",
	    p.generation);
	text = test_file_read(s.fx.run_fd, CKPT_JOURNAL);
	assert_string_equal(text, buf_text(&want));
	free(text);
	buf_clear(&want);
	world_end(&s);
}

static void
test_writer__unknown_members_of_entries_are_kept(void **unused)
{
	struct world s;

	(void)unused;
	world_make(&s);
	s.o.compact_records = 1;
	s.o.literal_limits = true;
	world_open(&s);
	admit(&s, CKPT_SPAWNED, fixture_json("{'node_id':'n','status':'pending','response':null,"
	    "'operation':'run','escalated_from':null,'later':{'x':[1.0]},'independent':true}"), NULL);
	check(&s);
	admit(&s, CKPT_OP, fixture_json("{'agent_id':'op-1','status':'failed','response':null,"
	    "'error':{'class':'exit','message':'m','code':3},'strange':[]}"), NULL);
	check(&s);
	world_end(&s);
}

/* ---- Admission ---- */

static void
test_writer__what_cannot_be_admitted(void **unused)
{
	static const struct {
		enum ckpt_kind kind;
		const char *entry, *context;
	} cases[] = {
		{CKPT_OP, NULL, NULL},
		{CKPT_OP, "[]", NULL},
		{CKPT_OP, "{'status':'completed','response':1}", NULL},
		{CKPT_OP, "{'agent_id':'','status':'completed','response':1}", NULL},
		{CKPT_OP, "{'agent_id':3,'status':'completed','response':1}", NULL},
		{CKPT_OP, "{'agent_id':'a','status':'pending','response':null}", NULL},
		{CKPT_OP, "{'agent_id':'a','status':'completed'}", NULL},
		{CKPT_OP, "{'agent_id':'a','status':'completed','response':1,'attempts':1.0}", NULL},
		{CKPT_OP, "{'agent_id':'a','node_id':'n','status':'completed','response':1}", NULL},
		{CKPT_OP, "{'agent_id':'a','status':'completed','response':1}", "[]"},
		{CKPT_SPAWNED, "{'agent_id':'a','status':'completed','response':1}", NULL},
		{CKPT_SPAWNED, "{'node_id':'a','status':'pending','response':1}", NULL},
		{CKPT_SPAWNED, "{'node_id':'a','status':'done','response':1}", NULL},
		{CKPT_PLAN, NULL, NULL},
		{CKPT_PLAN, "{'agent_id':'a'}", NULL},
		{CKPT_PLAN, "[3]", NULL},
		{CKPT_PLAN, "[{'agent_id':'a','strange':1}]", NULL},
		{CKPT_CONTEXT, NULL, NULL},
		{CKPT_CONTEXT, NULL, "3"},
		{CKPT_CONTEXT, "{'agent_id':'a','status':'completed','response':1}", "{}"},
	};
	struct world s;
	struct err e = {0};
	uint64_t ticket = 77;
	size_t i;

	(void)unused;
	world_make(&s);
	world_open(&s);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_fails(ckpt_admit(s.w, cases[i].kind,
		    cases[i].entry != NULL ? fixture_json(cases[i].entry) : NULL,
		    cases[i].context != NULL ? fixture_json(cases[i].context) : NULL, &ticket, &e),
		    ERR_DOCUMENT, e);
		assert_int_equal(ticket, 77);
	}
	/* A number that is not finite is no value at all. */
	assert_null(json_real(1e308 * 10));
	check(&s);
	assert_int_equal(ckpt_progress(s.w).admitted, 0);
	world_end(&s);
}

/* What a planner adds: at the end of the plan, by a base, and everything else stays. */
static void
test_writer__a_plan_grows(void **unused)
{
	static const char more[] = "[{'agent_id':'p','dep_indices':[0],'instruction':'x'},"
				   "{'agent_id':'q','dep_indices':[3],'instruction':'y'}]";
	struct world s;
	struct err e = {0};
	struct json *plan, *added;
	uint64_t ticket;

	(void)unused;
	world_make(&s);
	world_open(&s);
	admit(&s, CKPT_OP, fixture_entry("op-0", "r"), fixture_json("{'a':1}"));
	flush(&s);
	assert_works(ckpt_admit(s.w, CKPT_PLAN, fixture_json(more), NULL, &ticket, &e), e);
	plan = json_ref(json_get(s.model, "plan"));
	added = fixture_json(more);
	plan = json_append(plan, json_ref(json_at(added, 0)));
	plan = json_append(plan, json_ref(json_at(added, 1)));
	json_unref(added);
	s.model = json_set(s.model, "plan", plan);
	check(&s);
	assert_int_equal(ckpt_progress(s.w).bases, 2);
	admit(&s, CKPT_OP, fixture_entry("p", "r"), NULL);
	check(&s);
	world_end(&s);
}

static bool
readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static void
test_writer__acknowledgements_come_in_order(void **unused)
{
	struct world s;
	struct ckpt_ack ack;
	uint64_t n = 0;
	char name[16];
	int i;

	(void)unused;
	world_make(&s);
	s.o.compact_records = 4;
	s.o.literal_limits = true;
	world_open(&s);
	for (i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "x%d", i);
		if (i % 3 == 1)
			admit(&s, CKPT_SPAWNED, fixture_spawned(name, "completed", "r"), NULL);
		else if (i % 7 == 6)
			admit(&s, CKPT_CONTEXT, NULL, fixture_json("{'k':[1]}"));
		else
			admit(&s, CKPT_OP, fixture_entry(name, "r"), NULL);
		if (i % 5 == 0)
			flush(&s);
	}
	check(&s);
	assert_true(readable(ckpt_event_fd(s.w)));
	while (ckpt_take_ack(s.w, &ack)) {
		assert_int_equal(ack.ticket, ++n);
		assert_int_equal(strlen(ack.generation), 32);
		snprintf(name, sizeof(name), "x%d", (int)n - 1);
		if (ack.kind == CKPT_CONTEXT)
			assert_null(ack.identity);
		else
			assert_string_equal(json_cstr_of(ack.identity), name);
		json_unref(ack.identity);
	}
	assert_int_equal(n, 20);
	assert_false(readable(ckpt_event_fd(s.w)));
	world_end(&s);
}

/* ---- When a base is published ---- */

static uint64_t
bases(struct world *s)
{
	return ckpt_progress(s->w).bases;
}

static void
test_writer__base_after_so_many_records(void **unused)
{
	struct world s;
	struct ckpt_ack ack;
	uint64_t last = 0;
	int i;

	(void)unused;
	world_make(&s);
	world_open(&s);
	for (i = 0; i < 129; i++) {
		admit(&s, CKPT_OP, fixture_entry("op-0", "r"), NULL);
		flush(&s);
		assert_int_equal(bases(&s), i < 128 ? 1 : 2);
		while (ckpt_take_ack(s.w, &ack)) {
			assert_int_equal(ack.seq, i < 128 ? last + 1 : 0);
			last = ack.seq;
			json_unref(ack.identity);
		}
	}
	assert_int_equal(ckpt_progress(s.w).records, 128);
	admit(&s, CKPT_OP, fixture_entry("op-1", "r"), NULL);
	check(&s);
	assert_true(ckpt_take_ack(s.w, &ack));
	assert_int_equal(ack.seq, 1);
	json_unref(ack.identity);
	world_end(&s);
}

static struct json *
long_entry(const char *id, size_t len)
{
	char *text = malloc(len + 1);
	struct json *entry;

	assert_non_null(text);
	memset(text, 'a', len);
	text[len] = '\0';
	entry = fixture_entry(id, text);
	free(text);
	return entry;
}

static void
test_writer__base_before_the_journal_passes_its_bytes(void **unused)
{
	struct world s;
	struct stat st;
	int i;

	(void)unused;
	world_make(&s);
	s.o.compact_bytes = 4096;
	s.o.literal_limits = true;
	world_open(&s);
	for (i = 0; i < 20; i++) {
		admit(&s, CKPT_OP, long_entry("op-0", 1000), NULL);
		flush(&s);
		assert_int_equal(fstatat(s.fx.run_fd, CKPT_JOURNAL, &st, 0), 0);
		assert_true(st.st_size <= 4096);
	}
	assert_int_equal(bases(&s), 1 + 20 / 4);
	check(&s);
	world_end(&s);
}

static void
test_writer__oversized_transition_goes_into_a_base(void **unused)
{
	struct world s;

	(void)unused;
	world_make(&s);
	s.o.compact_bytes = 4096;
	world_open(&s);
	admit(&s, CKPT_OP, long_entry("op-0", 5000), fixture_json("{'a':1}"));
	check(&s);
	assert_int_equal(bases(&s), 2);
	assert_int_equal(ckpt_progress(s.w).records, 0);
	world_end(&s);
}

static void
test_writer__journal_of_a_large_base_grows_as_long(void **unused)
{
	struct world s;
	struct stat base, journal;
	uint64_t before;
	int i;

	(void)unused;
	world_make(&s);
	s.o.compact_records = 2;
	world_open(&s);
	admit(&s, CKPT_OP, long_entry("op-0", 2 << 20), NULL);
	flush(&s);
	admit(&s, CKPT_CONTEXT, NULL, json_object());
	flush(&s);
	before = bases(&s);
	for (i = 0; i < 60; i++) {
		assert_int_equal(fstatat(s.fx.run_fd, CKPT_BASE, &base, 0), 0);
		assert_int_equal(fstatat(s.fx.run_fd, CKPT_JOURNAL, &journal, 0), 0);
		admit(&s, CKPT_OP, long_entry("op-1", 60000), NULL);
		flush(&s);
		if (bases(&s) != before) {
			assert_true(journal.st_size >= base.st_size);
			break;
		}
	}
	assert_in_range(i, 30, 40);
	check(&s);
	world_end(&s);
}

/* Text with everything that is escaped, so that no cut between pieces may fall into it unseen. */
static struct json *
awkward_entry(const char *id, const char *node_id, size_t len)
{
	static const char unit[] = "{[\"\\\\\"}]\xe2\x82\xac,\n";
	struct buf b = {0};
	struct json *entry;

	while (b.len < len)
		buf_puts(&b, unit);
	entry = node_id != NULL ? fixture_spawned(node_id, "completed", buf_text(&b)) :
				  fixture_entry(id, buf_text(&b));
	buf_clear(&b);
	return entry;
}

/* A base is put together from encodings that were kept, from values, and in pieces: of a plan and of
 * entries below and above what makes a difference, each of them replaced once. */
static void
test_writer__bases_made_of_pieces(void **unused)
{
	static const size_t sizes[] = {0, 100, 4000, 4200, 260000, 600000};
	const size_t n = sizeof(sizes) / sizeof(sizes[0]);
	struct world s;
	char id[16];
	size_t i;

	(void)unused;
	world_make(&s);
	json_unref(s.model);
	s.model = fixture_state(4000); /* a plan of half a megabyte */
	s.o.compact_records = 3;
	s.o.literal_limits = true;
	world_open(&s);
	check(&s);
	for (i = 0; i < 2 * n; i++) {
		snprintf(id, sizeof(id), "op-%zu", i % n);
		admit(&s, CKPT_OP, awkward_entry(id, NULL, sizes[i / 2]), NULL);
		snprintf(id, sizeof(id), "n%zu", i % n);
		admit(&s, CKPT_SPAWNED, awkward_entry(NULL, id, sizes[(i + 3) % n]),
		    i % 4 == 0 ? awkward_entry("c", NULL, sizes[i / 2]) : NULL);
		check(&s);
	}
	assert_true(bases(&s) > 4);
	/* and a writer that goes on from such a state keeps it */
	assert_int_equal(ckpt_writer_close(s.w, false, NULL), 0);
	fixture_again(&s.fx);
	s.o.run_fd = s.fx.run_fd;
	world_open(&s);
	check(&s);
	admit(&s, CKPT_CONTEXT, NULL, json_object());
	check(&s);
	world_end(&s);
}

static void
test_writer__context_alone_is_committed_by_a_base(void **unused)
{
	struct world s;
	struct ckpt_ack ack;

	(void)unused;
	world_make(&s);
	world_open(&s);
	admit(&s, CKPT_OP, fixture_entry("op-0", "r"), fixture_json("{'a':[1]}"));
	admit(&s, CKPT_CONTEXT, NULL, fixture_json("{'a':[1,2]}"));
	check(&s);
	assert_int_equal(bases(&s), 2);
	admit(&s, CKPT_OP, fixture_entry("op-1", "r"), fixture_json("{'a':[1,2,3]}"));
	check(&s);
	assert_int_equal(bases(&s), 2);
	while (ckpt_take_ack(s.w, &ack)) {
		assert_int_equal(ack.seq, ack.ticket == 3 ? 1 : ack.ticket == 2 ? 0 : ack.seq);
		json_unref(ack.identity);
	}
	world_end(&s);
}

static void
test_writer__sequence_numbers_end_with_a_new_base(void **unused)
{
	struct world s;
	struct ckpt_ack ack;
	const uint64_t want[] = {INT64_MAX - 2, INT64_MAX - 1, 0, 1};
	size_t i;

	(void)unused;
	world_make(&s);
	s.o.first_sequence = INT64_MAX - 2;
	world_open(&s);
	for (i = 0; i < 4; i++) {
		admit(&s, CKPT_OP, fixture_entry("op-0", i % 2 ? "a" : "b"), NULL);
		flush(&s);
		assert_true(ckpt_take_ack(s.w, &ack));
		assert_int_equal(ack.seq, want[i]);
		json_unref(ack.identity);
	}
	check(&s);
	world_end(&s);
}

/* ---- Together ---- */

/* Holds the writer's thread at a step until let go. */
struct gate {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	bool reached, open;
};

static void
gate_hook(void *arg, const struct fault_call *call)
{
	struct gate *g = arg;

	(void)call;
	pthread_mutex_lock(&g->mutex);
	g->reached = true;
	pthread_cond_broadcast(&g->cond);
	while (!g->open)
		pthread_cond_wait(&g->cond, &g->mutex);
	pthread_mutex_unlock(&g->mutex);
}

static void
gate_wait(struct gate *g)
{
	pthread_mutex_lock(&g->mutex);
	while (!g->reached)
		pthread_cond_wait(&g->cond, &g->mutex);
	pthread_mutex_unlock(&g->mutex);
}

static void
gate_open(struct gate *g)
{
	pthread_mutex_lock(&g->mutex);
	g->open = true;
	pthread_cond_broadcast(&g->cond);
	pthread_mutex_unlock(&g->mutex);
}

static void
test_writer__what_waits_together_shares_one_fsync(void **unused)
{
	struct gate g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false};
	struct world s;
	int i;

	(void)unused;
	world_make(&s);
	world_open(&s);
	fault_fs_add(s.fs, (struct fault){.kind = FAULT_HOOK_BEFORE, .seam = "ckpt.append.sync",
	    .hook = gate_hook, .arg = &g});
	admit(&s, CKPT_OP, fixture_entry("op-0", "r"), NULL);
	gate_wait(&g);
	for (i = 0; i < 50; i++)
		admit(&s, CKPT_OP, fixture_entry("op-1", "r"), fixture_json("{'a':1}"));
	/* Nothing is acknowledged while the fsync that would cover it has not ended. */
	assert_int_equal(ckpt_progress(s.w).acked, 0);
	gate_open(&g);
	check(&s);
	assert_int_equal(ckpt_progress(s.w).acked, 51);
	assert_int_equal(fault_fs_calls(s.fs, "ckpt.append.sync"), 2);
	assert_int_equal(fault_fs_calls(s.fs, "ckpt.append.write"), 2);
	world_end(&s);
}

/* A context that is changed further while it is being saved: each admission keeps its version. */
/* For longer than the test may take, so that only what is tested ends the gathering. */
static void
test_writer__outcomes_gather_until_somebody_waits(void **unused)
{
	struct world s;
	int i;

	(void)unused;
	world_make(&s);
	s.o.gather_ms = 600000;
	world_open(&s);
	for (i = 0; i < 20; i++)
		admit(&s, CKPT_OP, fixture_entry("op-0", "r"), NULL);
	assert_int_equal(ckpt_progress(s.w).acked, 0);
	check(&s);
	assert_int_equal(ckpt_progress(s.w).acked, 20);
	assert_int_equal(fault_fs_calls(s.fs, "ckpt.append.sync"), 1);
	/* A change of the context is what somebody waits for: it takes along what came before. */
	admit(&s, CKPT_OP, fixture_entry("op-1", "r"), NULL);
	admit(&s, CKPT_CONTEXT, NULL, fixture_json("{'a':1}"));
	assert_true(test_wait_for(all_acked, s.w));
	assert_loads(s.fx.run_fd, s.model, CKPT_CLEAN);
	/* The end too. */
	admit(&s, CKPT_OP, fixture_entry("op-2", "r"), NULL);
	world_end(&s);
}

static void
test_writer__outcomes_do_not_gather_for_ever(void **unused)
{
	struct world s;

	(void)unused;
	world_make(&s);
	s.o.gather_ms = 1;
	world_open(&s);
	admit(&s, CKPT_OP, fixture_entry("op-0", "r"), NULL);
	assert_true(test_wait_for(all_acked, s.w));
	world_end(&s);
}

static void
test_writer__later_versions_do_not_reach_into_earlier_ones(void **unused)
{
	struct gate g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false};
	struct world s;
	struct json *context = json_object();
	int i;

	(void)unused;
	world_make(&s);
	world_open(&s);
	fault_fs_add(s.fs, (struct fault){.kind = FAULT_HOOK_BEFORE, .seam = "ckpt.append.write",
	    .hook = gate_hook, .arg = &g});
	for (i = 0; i < 40; i++) {
		context = json_set(context, "n", json_int(i));
		context = json_set(context, i % 2 ? "odd" : "even", json_int(i));
		admit(&s, CKPT_OP, fixture_entry("op-0", "r"), json_ref(context));
		if (i == 0)
			gate_wait(&g);
	}
	context = json_set(context, "n", json_cstr("never admitted"));
	gate_open(&g);
	check(&s);
	json_unref(context);
	world_end(&s);
}

static void
test_writer__abandoned_outcomes_are_reported(void **unused)
{
	struct gate g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false};
	struct world s;
	struct err e = {0};

	(void)unused;
	world_make(&s);
	world_open(&s);
	fault_fs_add(s.fs, (struct fault){.kind = FAULT_FAIL, .persistent = true, .sys = ENOSPC});
	admit(&s, CKPT_OP, fixture_entry("op-0", "r"), NULL);
	assert_fails(ckpt_flush(s.w, &e), ERR_NOSPACE, e);
	assert_int_equal(ckpt_progress(s.w).health, CKPT_STORAGE);
	assert_fails(ckpt_writer_close(s.w, true, &e), ERR_NOSPACE, e);
	assert_non_null(strstr(e.msg, "1 outcome was not saved"));
	s.w = NULL;
	gate_open(&g);
	world_end(&s);
}

static void
test_writer__storage_comes_back(void **unused)
{
	struct world s;
	struct err e = {0};

	(void)unused;
	world_make(&s);
	world_open(&s);
	fault_fs_add(s.fs, (struct fault){.kind = FAULT_FAIL, .persistent = true, .sys = ENOSPC});
	admit(&s, CKPT_OP, fixture_entry("op-0", "r"), fixture_json("{'a':1}"));
	assert_fails(ckpt_flush(s.w, &e), ERR_NOSPACE, e);
	assert_true(readable(ckpt_event_fd(s.w)));
	admit(&s, CKPT_OP, fixture_entry("op-1", "r"), fixture_json("{'a':2}"));
	assert_int_equal(ckpt_progress(s.w).acked, 0);
	fault_fs_disarm(s.fs);
	ckpt_retry_now(s.w);
	while (ckpt_flush(s.w, &e) != 0)
		usleep(1000);
	assert_int_equal(ckpt_progress(s.w).health, CKPT_HEALTHY);
	assert_int_equal(ckpt_progress(s.w).acked, 2);
	check(&s);
	admit(&s, CKPT_OP, fixture_entry("op-2", "r"), NULL);
	check(&s);
	world_end(&s);
}

/* The room that the writer sees, instead of that of the file system which others use as well. */
static atomic_int free_blocks = 100;

int
fstatvfs(int fd, struct statvfs *to)
{
	(void)fd;
	*to = (struct statvfs){.f_bfree = (fsblkcnt_t)atomic_load(&free_blocks), .f_ffree = 1};
	return 0;
}

/* Asks for tries until the pause before the next one has grown to its most. */
static void
make_pause_long(struct world *s)
{
	uint64_t number;
	int n;

	for (n = 0; n < 8; n++) {
		number = ckpt_retry_now(s->w);
		while (ckpt_progress(s->w).answered < number)
			usleep(1000);
	}
}

static void
test_writer__more_room_makes_a_try(void **unused)
{
	struct world s;
	struct timespec from, to;
	struct err e = {0};

	(void)unused;
	world_make(&s);
	world_open(&s);
	fault_fs_add(s.fs, (struct fault){.kind = FAULT_FAIL, .persistent = true, .sys = ENOSPC});
	admit(&s, CKPT_OP, fixture_entry("op-0", "r"), NULL);
	assert_fails(ckpt_flush(s.w, &e), ERR_NOSPACE, e);
	make_pause_long(&s);
	fault_fs_disarm(s.fs);
	clock_gettime(CLOCK_MONOTONIC, &from);
	atomic_fetch_add(&free_blocks, 1);
	while (ckpt_flush(s.w, &e) != 0)
		usleep(1000);
	clock_gettime(CLOCK_MONOTONIC, &to);
	/* The timer alone would have taken a minute. */
	assert_true(to.tv_sec - from.tv_sec < 30);
	assert_int_equal(ckpt_progress(s.w).acked, 1);
	check(&s);
	world_end(&s);
}

/* More room is no remedy for what was not for want of it. */
static void
test_writer__room_does_not_mend_other_errors(void **unused)
{
	struct world s;
	struct err e = {0};
	uint64_t calls;

	(void)unused;
	world_make(&s);
	world_open(&s);
	fault_fs_add(s.fs, (struct fault){.kind = FAULT_FAIL, .persistent = true, .sys = EIO});
	admit(&s, CKPT_OP, fixture_entry("op-0", "r"), NULL);
	assert_fails(ckpt_flush(s.w, &e), ERR_IO, e);
	make_pause_long(&s);
	fault_fs_disarm(s.fs);
	calls = ckpt_progress(s.w).bases;
	atomic_fetch_add(&free_blocks, 1);
	usleep(1500000); /* longer than from one look to the next */
	assert_int_equal(ckpt_progress(s.w).bases, calls);
	assert_int_equal(ckpt_progress(s.w).health, CKPT_STORAGE);
	ckpt_retry_now(s.w);
	while (ckpt_flush(s.w, &e) != 0)
		usleep(1000);
	check(&s);
	world_end(&s);
}

static struct json *
nested(unsigned levels)
{
	struct json *v = json_object();

	while (--levels > 0)
		v = json_set(json_object(), "x", v);
	return v;
}

/* What could not be read again is refused before it gets a place, and nothing else is harmed. */
static void
test_writer__nesting_has_a_limit(void **unused)
{
	struct world s;
	struct json *entry;
	struct err e = {0};
	uint64_t ticket;

	(void)unused;
	world_make(&s);
	world_open(&s);
	entry = json_set(fixture_entry("op-0", "r"), "response", nested(CKPT_MAX_RESPONSE_DEPTH + 1));
	assert_fails(ckpt_admit(s.w, CKPT_OP, entry, NULL, &ticket, &e), ERR_LIMIT, e);
	assert_non_null(strstr(e.msg, "CKPT_MAX_ENTRY_DEPTH"));
	assert_fails(ckpt_admit(s.w, CKPT_CONTEXT, NULL, nested(CKPT_MAX_CONTEXT_DEPTH + 1), &ticket,
			 &e), ERR_LIMIT, e);
	assert_non_null(strstr(e.msg, "CKPT_MAX_CONTEXT_DEPTH"));
	assert_int_equal(ckpt_progress(s.w).admitted, 0);
	entry = json_set(fixture_entry("op-0", "r"), "response", nested(CKPT_MAX_RESPONSE_DEPTH));
	admit(&s, CKPT_OP, entry, nested(CKPT_MAX_CONTEXT_DEPTH));
	admit(&s, CKPT_CONTEXT, NULL, nested(CKPT_MAX_CONTEXT_DEPTH));
	check(&s);
	world_end(&s);
}

/* The pages of a failed fsync may be gone, and no load on this machine would show it. */
/* Each write takes seven bytes, and every fourth one is interrupted: all is there once. */
static void
test_writer__partial_writes_are_counted(void **unused)
{
	struct world s;
	unsigned i;

	(void)unused;
	world_make(&s);
	world_open(&s);
	fault_fs_add(s.fs, (struct fault){.kind = FAULT_SHORT, .seam = "ckpt.append.write", .persistent = true,
	    .bytes = 7});
	for (i = 0; i < 3; i++)
		fault_fs_add(s.fs, (struct fault){.kind = FAULT_FAIL, .seam = "ckpt.append.write",
		    .call = 4 + 9 * i, .sys = EINTR});
	for (i = 0; i < 5; i++)
		admit(&s, CKPT_OP, fixture_entry("op-0", "some text of an outcome"), fixture_json("{'a':1}"));
	check(&s);
	assert_int_equal(fault_fs_bytes(s.fs, "ckpt.append.write"), ckpt_progress(s.w).journal_bytes);
	assert_true(fault_fs_calls(s.fs, "ckpt.append.write") >= ckpt_progress(s.w).journal_bytes / 7);
	assert_int_equal(ckpt_progress(s.w).records, 5);
	world_end(&s);
}

static void
test_writer__failed_fsync_is_never_believed(void **unused)
{
	static const int errors[] = {EIO, ENOSPC, EINVAL};
	struct world s;
	struct ckpt_ack ack;
	struct err e = {0};
	size_t i;

	(void)unused;
	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		world_make(&s);
		world_open(&s);
		fault_fs_add(s.fs, (struct fault){.kind = FAULT_FAIL, .seam = "ckpt.append.sync",
		    .sys = errors[i]});
		admit(&s, CKPT_OP, fixture_entry("op-0", "r"), NULL);
		assert_int_equal(ckpt_flush(s.w, &e), -1);
		assert_int_equal(ckpt_progress(s.w).acked, 0);
		assert_false(ckpt_take_ack(s.w, &ack));
		ckpt_retry_now(s.w);
		while (ckpt_flush(s.w, &e) != 0)
			usleep(1000);
		/* A fresh base holds it; the journal's handle saw no second fsync. */
		assert_true(ckpt_take_ack(s.w, &ack));
		assert_int_equal(ack.seq, 0);
		json_unref(ack.identity);
		assert_int_equal(bases(&s), 2);
		assert_int_equal(fault_fs_calls(s.fs, "ckpt.append.sync"), 1);
		check(&s);
		world_end(&s);
	}
}

/* ---- Start ---- */

static void
test_writer__start_over_something_is_refused(void **unused)
{
	struct world s;
	struct err e = {0};
	char *text;

	(void)unused;
	world_make(&s);
	put_pair(s.fx.run_fd, "{}", NULL);
	assert_fails(ckpt_writer_open(&s.o, s.model, &s.w, &e), ERR_IDENTITY, e);
	text = test_file_read(s.fx.run_fd, CKPT_BASE);
	assert_string_equal(text, "{}");
	free(text);
	put_pair(s.fx.run_fd, NULL, "x\n");
	assert_fails(ckpt_writer_open(&s.o, s.model, &s.w, &e), ERR_IDENTITY, e);
	/* What a worker left that died before its base existed is no obstacle. */
	put_pair(s.fx.run_fd, NULL, "");
	world_open(&s);
	check(&s);
	world_end(&s);
}

static void
test_writer__bad_initial_state(void **unused)
{
	struct world s;
	struct err e = {0};

	(void)unused;
	world_make(&s);
	s.model = json_set(s.model, "ops", json_array());
	assert_fails(ckpt_writer_open(&s.o, s.model, &s.w, &e), ERR_DOCUMENT, e);
	s.model = json_set(s.model, "ops", json_object());
	s.model = json_set(s.model, "stray", json_object());
	assert_fails(ckpt_writer_open(&s.o, s.model, &s.w, &e), ERR_DOCUMENT, e);
	world_end(&s);
}

/* ---- Version 2 ---- */

static struct json *
v2_of(struct json *model)
{
	struct json *plan = json_array();
	struct json_iter it = json_iterate(json_get(model, "plan"));
	const struct json *entry;

	while (json_next(&it, NULL, &entry))
		plan = json_append(plan, json_remove(json_ref(entry), slice_of("node_id")));
	return json_set(json_ref(model), "plan", plan);
}

static void
test_writer__version_2_is_the_whole_state_each_time(void **unused)
{
	struct world s;
	struct json *want;
	struct stat st;
	int i;

	(void)unused;
	world_make(&s);
	s.o.version = 2;
	world_open(&s);
	for (i = 0; i < 5; i++) {
		admit(&s, CKPT_OP, fixture_entry(i % 2 ? "op-0" : "op-1", "r"),
		    fixture_json(contexts[i]));
		flush(&s);
		want = v2_of(s.model);
		assert_loads(s.fx.run_fd, want, CKPT_CLEAN);
		json_unref(want);
	}
	assert_int_equal(fstatat(s.fx.run_fd, CKPT_JOURNAL, &st, 0), -1);
	assert_int_equal(bases(&s), 6);
	/* An entry with a parent can only be read with the plan's node ids: now they are there. */
	admit(&s, CKPT_SPAWNED, json_set(fixture_spawned("n", "completed", "r"), "parent_id",
	    json_printf("%032x", 0)), NULL);
	flush(&s);
	assert_loads(s.fx.run_fd, s.model, CKPT_CLEAN);
	world_end(&s);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_writer__every_context_is_recovered),
	cmocka_unit_test(test_writer__a_plan_grows),
	cmocka_unit_test(test_writer__unchanged_context_is_an_empty_patch),
	cmocka_unit_test(test_writer__line_is_the_documented_one),
	cmocka_unit_test(test_writer__unknown_members_of_entries_are_kept),
	cmocka_unit_test(test_writer__what_cannot_be_admitted),
	cmocka_unit_test(test_writer__acknowledgements_come_in_order),
	cmocka_unit_test(test_writer__base_after_so_many_records),
	cmocka_unit_test(test_writer__base_before_the_journal_passes_its_bytes),
	cmocka_unit_test(test_writer__oversized_transition_goes_into_a_base),
	cmocka_unit_test(test_writer__journal_of_a_large_base_grows_as_long),
	cmocka_unit_test(test_writer__bases_made_of_pieces),
	cmocka_unit_test(test_writer__context_alone_is_committed_by_a_base),
	cmocka_unit_test(test_writer__sequence_numbers_end_with_a_new_base),
	cmocka_unit_test(test_writer__what_waits_together_shares_one_fsync),
	cmocka_unit_test(test_writer__outcomes_gather_until_somebody_waits),
	cmocka_unit_test(test_writer__outcomes_do_not_gather_for_ever),
	cmocka_unit_test(test_writer__later_versions_do_not_reach_into_earlier_ones),
	cmocka_unit_test(test_writer__abandoned_outcomes_are_reported),
	cmocka_unit_test(test_writer__storage_comes_back),
	cmocka_unit_test(test_writer__more_room_makes_a_try),
	cmocka_unit_test(test_writer__room_does_not_mend_other_errors),
	cmocka_unit_test(test_writer__nesting_has_a_limit),
	cmocka_unit_test(test_writer__partial_writes_are_counted),
	cmocka_unit_test(test_writer__failed_fsync_is_never_believed),
	cmocka_unit_test(test_writer__start_over_something_is_refused),
	cmocka_unit_test(test_writer__bad_initial_state),
	cmocka_unit_test(test_writer__version_2_is_the_whole_state_each_time),
};

TEST_MAIN("checkpoint writer", tests)
