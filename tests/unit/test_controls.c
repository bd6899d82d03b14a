#include "test_home.h"

#include <sys/wait.h>
#include <unistd.h>

/* ---- Helpers ---- */

static struct json *
stop_payload(const char *mode)
{
	return json_set(json_object(), "mode", json_cstr(mode));
}

static struct json *
message_payload(const char *text)
{
	return json_set(json_object(), "text", json_cstr(text));
}

static void
insert(struct test_home *t, const char *run_id, const char *verb, struct json *payload,
    char id[UUID_TEXT])
{
	struct err e = {0};

	assert_works(control_insert(t->store, run_id, verb, payload, id, &e), e);
}

struct listed {
	struct control all[64];
	size_t count;
};

static int
keep(void *arg, const struct control *c)
{
	struct listed *l = arg;

	assert_true(l->count < 64);
	l->all[l->count] = *c;
	l->all[l->count].payload = c->payload != NULL ? json_ref(c->payload) : NULL;
	l->all[l->count].verb = strdup(c->verb);
	l->all[l->count].result = c->result != NULL ? strdup(c->result) : NULL;
	l->count++;
	return 0;
}

static void
list(struct test_home *t, const char *run_id, bool pending, struct listed *l)
{
	struct err e = {0};

	*l = (struct listed){0};
	assert_works(control_list(t->store, run_id, pending, keep, l, &e), e);
}

static void
clear(struct listed *l)
{
	while (l->count > 0)
		control_clear(&l->all[--l->count]);
}

/* Result of the only control of a run; "" for none yet. */
static void
expect_result(struct test_home *t, const char *run_id, const char *result)
{
	struct listed l;

	list(t, run_id, false, &l);
	assert_int_equal(l.count, 1);
	assert_string_equal(l.all[0].result != NULL ? l.all[0].result : "", result);
	clear(&l);
}

/* ---- Writer ---- */

static void
test_controls__come_in_the_order_they_were_queued(void **state)
{
	struct test_home *t = *state;
	struct session run;
	struct listed l;
	char ids[40][UUID_TEXT];
	size_t i;

	test_home_running(t, "flow", &run);
	for (i = 0; i < 40; i++)
		insert(t, run.run_id, i % 2 ? "pause" : "resume", NULL, ids[i]);
	list(t, run.run_id, true, &l);
	assert_int_equal(l.count, 40);
	for (i = 0; i < 40; i++) {
		assert_string_equal(l.all[i].id, ids[i]);
		assert_true(i == 0 || l.all[i].created_at > l.all[i - 1].created_at);
		assert_true(l.all[i].claimed_at == 0 && l.all[i].applied_at == 0);
		assert_null(l.all[i].payload);
	}
	clear(&l);
	session_clear(&run);
}

static void
test_controls__only_a_run_with_a_worker_takes_a_stop(void **state)
{
	static const struct {
		enum run_status status;
		const char *reason;
		bool taken;
	} way[] = {
	    {STATUS_QUEUED, "run.queued.new", false},
	    {STATUS_STARTING, "run.starting.forked", true},
	    {STATUS_RUNNING, "run.running.started", true},
	    {STATUS_PAUSED, "run.paused.control", true},
	    {STATUS_CRASHED, "run.crashed.signal", false},
	};
	struct test_home *t = *state;
	struct session run;
	struct err e = {0};
	char id[UUID_TEXT];
	size_t i;
	int rc;

	test_home_run(t, "flow", NULL, &run);
	for (i = 0; i < sizeof(way) / sizeof(way[0]); i++) {
		if (i > 0)
			test_home_move(t, run.run_id, way[i].status, way[i].reason);
		rc = control_insert(t->store, run.run_id, "stop", stop_payload("now"), id, &e);
		assert_int_equal(rc == 0, way[i].taken);
		if (rc != 0) {
			assert_int_equal(e.code, ERR_REFUSED);
			assert_non_null(strstr(e.msg, status_word(way[i].status)));
		}
	}
	assert_fails(control_insert(t->store, "20260101T000000-00000a", "pause", NULL, id, &e),
	    ERR_NOTFOUND, e);
	session_clear(&run);
}

static void
test_controls__of_a_queued_run_wait_for_its_worker(void **state)
{
	struct test_home *t = *state;
	struct session run, never;
	char id[UUID_TEXT];

	test_home_run(t, "flow", NULL, &run);
	insert(t, run.run_id, "pause", NULL, id);
	test_home_move(t, run.run_id, STATUS_STARTING, "run.starting.forked");
	expect_result(t, run.run_id, "");
	test_home_run(t, "flow", NULL, &never);
	insert(t, never.run_id, "pause", NULL, id);
	test_home_move(t, never.run_id, STATUS_CANCELLED, "run.cancelled.queued");
	expect_result(t, never.run_id,
	    "rejected: run reached terminal status before the control could land");
	session_clear(&run);
	session_clear(&never);
}

static void
test_controls__verbs_kinds_and_payloads(void **state)
{
	static const struct {
		const char *kind, *verb, *payload;
		enum err_code code;
	} cases[] = {
	    {"flow", "pause", NULL, ERR_NONE},
	    {"play", "resume", NULL, ERR_NONE},
	    {"agent", "pause", NULL, ERR_REFUSED},
	    {"agent", "resume", NULL, ERR_REFUSED},
	    {"agent", "message", "{\"text\":\"x\"}", ERR_NONE},
	    {"agent", "stop", "{\"mode\":\"drain\"}", ERR_NONE},
	    {"agent", "approve", "{\"op\":\"x\"}", ERR_NONE},
	    {"flow", "deny", "{\"op\":\"x\",\"note\":\"y\"}", ERR_NONE},
	    {"flow", "deny", "{\"note\":\"y\"}", ERR_USAGE},
	    {"flow", "deny", NULL, ERR_USAGE},
	    {"flow", "pause", "{}", ERR_USAGE},
	    {"flow", "stop", "{\"mode\":\"later\"}", ERR_USAGE},
	    {"flow", "stop", "[]", ERR_USAGE},
	    {"flow", "message", "{\"text\":1}", ERR_USAGE},
	    {"flow", "message", "{\"text\":\"x\",\"to\":\"op\"}", ERR_NONE},
	    {"flow", "explode", NULL, ERR_USAGE},
	    {"flow", "", NULL, ERR_USAGE},
	    {"of a newer version", "pause", NULL, ERR_REFUSED},
	};
	struct test_home *t = *state;
	struct session run;
	struct json *payload;
	struct err e;
	char id[UUID_TEXT];
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		e = (struct err){0};
		payload = NULL;
		test_home_running(t, cases[i].kind, &run);
		if (cases[i].payload != NULL)
			assert_works(
			    json_parse(slice_of(cases[i].payload), NULL, &payload, NULL, &e), e);
		if (cases[i].code == ERR_NONE)
			assert_works(
			    control_insert(t->store, run.run_id, cases[i].verb, payload, id, &e), e);
		else
			assert_fails(
			    control_insert(t->store, run.run_id, cases[i].verb, payload, id, &e),
			    cases[i].code, e);
		session_clear(&run);
	}
}

/* ---- Eight writers at once ---- */

enum { WRITERS = 8, EACH = 125 };

static int
write_many(struct store *s, void *arg)
{
	struct err e = {0};
	char id[UUID_TEXT];
	int i;

	for (i = 0; i < EACH;) {
		e = (struct err){0};
		if (control_insert(s, arg, "pause", NULL, id, &e) == 0) {
			i++;
		} else if (e.code != ERR_BUSY) { /* a slow disk makes a long queue */
			fprintf(stderr, "# %s\n", e.msg);
			return 1;
		}
	}
	return 0;
}

struct order {
	double last;
	size_t count;
};

static int
check_order(void *arg, const struct control *c)
{
	struct order *o = arg;

	assert_true(c->created_at > o->last);
	o->last = c->created_at;
	o->count++;
	return 0;
}

static void
test_controls__eight_writers_keep_one_order(void **state)
{
	struct test_home *t = *state;
	struct order o = {0, 0};
	struct session run;
	struct err e = {0};
	pid_t pids[WRITERS];
	int i;

	test_home_running(t, "flow", &run);
	for (i = 0; i < WRITERS; i++)
		pids[i] = test_home_fork(t, write_many, run.run_id);
	for (i = 0; i < WRITERS; i++)
		assert_int_equal(test_home_join(pids[i]), 0);
	assert_works(control_list(t->store, run.run_id, true, check_order, &o, &e), e);
	assert_int_equal(o.count, WRITERS * EACH);
	session_clear(&run);
}

/* ---- Consumer ---- */

static void
test_controls__claim_once_finish_by_the_claim(void **state)
{
	struct test_home *t = *state;
	struct session run;
	struct listed l;
	struct err e = {0};
	char id[UUID_TEXT], claim[CONTROL_CLAIM_TEXT];
	bool yes;

	test_home_running(t, "flow", &run);
	insert(t, run.run_id, "message", message_payload("x"), id);
	control_claim_text(run.run_id, claim);
	/* Unclaimed: a stamp that names a claim lands nowhere. */
	assert_works(control_finish(t->store, id, claim, "applied", &yes, &e), e);
	assert_false(yes);
	assert_works(control_claim(t->store, id, run.run_id, &yes, &e), e);
	assert_true(yes);
	assert_works(control_claim(t->store, id, run.run_id, &yes, &e), e);
	assert_false(yes);
	/* Claimed: still pending, still visible, and only its claim finishes it. */
	list(t, run.run_id, true, &l);
	assert_int_equal(l.count, 1);
	assert_true(l.all[0].claimed_at > 0 && l.all[0].applied_at == 0);
	assert_string_equal(l.all[0].result, claim);
	assert_string_equal(json_cstr_of(json_get(l.all[0].payload, "text")), "x");
	clear(&l);
	assert_works(control_finish(t->store, id, NULL, "applied", &yes, &e), e);
	assert_false(yes);
	assert_works(
	    control_finish(t->store, id, "applying:20260101T000000-00000a", "applied", &yes, &e), e);
	assert_false(yes);
	assert_works(control_finish(t->store, id, claim, "applied", &yes, &e), e);
	assert_true(yes);
	assert_works(control_finish(t->store, id, claim, "rejected:error:x", &yes, &e), e);
	assert_false(yes);
	expect_result(t, run.run_id, "applied");
	session_clear(&run);
}

static void
test_controls__finish_without_a_claim(void **state)
{
	struct test_home *t = *state;
	struct session run;
	struct err e = {0};
	char id[UUID_TEXT];
	bool yes;

	test_home_running(t, "flow", &run);
	insert(t, run.run_id, "pause", NULL, id);
	assert_works(control_finish(t->store, id, NULL, "applied", &yes, &e), e);
	assert_true(yes);
	assert_works(control_claim(t->store, id, run.run_id, &yes, &e), e);
	assert_false(yes);
	session_clear(&run);
}

static void
test_controls__sweep_leaves_claimed_and_crashed(void **state)
{
	static const char never[] =
	    "rejected: run reached terminal status before the control could land";
	struct test_home *t = *state;
	struct session run, claimed, crashed;
	struct err e = {0};
	char id[UUID_TEXT], claim[CONTROL_CLAIM_TEXT];
	bool yes;

	test_home_running(t, "flow", &run);
	insert(t, run.run_id, "pause", NULL, id);
	assert_works(control_sweep(t->store, run.run_id, &e), e);
	expect_result(t, run.run_id, ""); /* not ended yet: nothing to sweep */
	test_home_move(t, run.run_id, STATUS_COMPLETED, "run.completed.all");
	assert_works(control_sweep(t->store, run.run_id, &e), e);
	expect_result(t, run.run_id, never);

	test_home_running(t, "flow", &claimed);
	insert(t, claimed.run_id, "pause", NULL, id);
	assert_works(control_claim(t->store, id, claimed.run_id, &yes, &e), e);
	control_claim_text(claimed.run_id, claim);
	test_home_move(t, claimed.run_id, STATUS_FAILED, "run.failed.operation");
	assert_works(control_sweep(t->store, claimed.run_id, &e), e);
	expect_result(t, claimed.run_id, claim);

	test_home_running(t, "flow", &crashed);
	insert(t, crashed.run_id, "pause", NULL, id);
	test_home_move(t, crashed.run_id, STATUS_CRASHED, "run.crashed.signal");
	assert_works(control_sweep(t->store, crashed.run_id, &e), e);
	expect_result(t, crashed.run_id, "");
	assert_works(control_end_job(t->store, crashed.run_id, &e), e);
	expect_result(t, crashed.run_id, "rejected: the job ended before the control could land");
	session_clear(&run);
	session_clear(&claimed);
	session_clear(&crashed);
}

static void
test_controls__go_over_to_the_successor(void **state)
{
	struct test_home *t = *state;
	struct session old, new;
	struct listed l;
	struct err e = {0};
	char open[UUID_TEXT], claimed[UUID_TEXT], done[UUID_TEXT];
	bool yes;

	test_home_running(t, "flow", &old);
	insert(t, old.run_id, "message", message_payload("done"), done);
	insert(t, old.run_id, "message", message_payload("claimed"), claimed);
	insert(t, old.run_id, "message", message_payload("open"), open);
	assert_works(control_finish(t->store, done, NULL, "applied", &yes, &e), e);
	assert_works(control_claim(t->store, claimed, old.run_id, &yes, &e), e);
	test_home_move(t, old.run_id, STATUS_CRASHED, "run.crashed.signal");
	test_home_run(t, "flow", old.session_id, &new);
	list(t, new.run_id, false, &l);
	assert_int_equal(l.count, 1);
	assert_string_equal(l.all[0].id, open);
	clear(&l);
	list(t, old.run_id, false, &l);
	assert_int_equal(l.count, 2);
	assert_string_equal(l.all[0].id, done);
	assert_string_equal(l.all[1].id, claimed);
	clear(&l);
	/* A later one queues behind what came over. */
	test_home_move(t, new.run_id, STATUS_STARTING, "run.starting.forked");
	insert(t, new.run_id, "pause", NULL, done);
	list(t, new.run_id, true, &l);
	assert_int_equal(l.count, 2);
	assert_string_equal(l.all[0].id, open);
	clear(&l);
	session_clear(&old);
	session_clear(&new);
}

static void
test_controls__resolve_closes_claimed_ones_only(void **state)
{
	struct test_home *t = *state;
	struct session run, other;
	struct err e = {0};
	char id[UUID_TEXT], text[256];
	bool yes;

	test_home_running(t, "flow", &run);
	insert(t, run.run_id, "message", message_payload("x"), id);
	assert_works(control_resolve(t->store, id, true, "me", &yes, &e), e);
	assert_false(yes);
	assert_works(control_claim(t->store, id, run.run_id, &yes, &e), e);
	assert_works(control_resolve(t->store, id, true, "o'neill", &yes, &e), e);
	assert_true(yes);
	snprintf(text, sizeof(text),
	    "applied: resolved by o'neill after the claim 'applying:%s' was taken and never reported "
	    "back",
	    run.run_id);
	expect_result(t, run.run_id, text);
	assert_works(control_resolve(t->store, id, false, "me", &yes, &e), e);
	assert_false(yes);

	test_home_running(t, "flow", &other);
	insert(t, other.run_id, "message", message_payload("x"), id);
	assert_works(control_claim(t->store, id, other.run_id, &yes, &e), e);
	assert_works(control_resolve(t->store, id, false, "me", &yes, &e), e);
	assert_true(yes);
	snprintf(text, sizeof(text),
	    "abandoned: resolved by me after the claim 'applying:%s' was taken and never reported "
	    "back",
	    other.run_id);
	expect_result(t, other.run_id, text);
	session_clear(&run);
	session_clear(&other);
}

static void
test_controls__are_found_by_a_prefix(void **state)
{
	struct test_home *t = *state;
	struct session run;
	struct err e = {0};
	char id[UUID_TEXT], found[UUID_TEXT], run_id[RUN_ID_TEXT];

	test_home_running(t, "flow", &run);
	assert_fails(control_find(t->store, "0", found, run_id, &e), ERR_NOTFOUND, e);
	insert(t, run.run_id, "pause", NULL, id);
	assert_works(control_find(t->store, id, found, run_id, &e), e);
	assert_string_equal(run_id, run.run_id);
	found[0] = '\0';
	id[6] = '\0';
	assert_works(control_find(t->store, id, found, run_id, &e), e);
	assert_int_equal(strlen(found), UUID_TEXT - 1);
	assert_fails(control_find(t->store, "", found, run_id, &e), ERR_NOTFOUND, e);
	session_clear(&run);
}

static const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, test_home_setup, test_home_teardown)
    CASE(test_controls__come_in_the_order_they_were_queued),
    CASE(test_controls__only_a_run_with_a_worker_takes_a_stop),
    CASE(test_controls__of_a_queued_run_wait_for_its_worker),
    CASE(test_controls__verbs_kinds_and_payloads),
    CASE(test_controls__eight_writers_keep_one_order),
    CASE(test_controls__claim_once_finish_by_the_claim),
    CASE(test_controls__finish_without_a_claim),
    CASE(test_controls__sweep_leaves_claimed_and_crashed),
    CASE(test_controls__go_over_to_the_successor),
    CASE(test_controls__resolve_closes_claimed_ones_only),
    CASE(test_controls__are_found_by_a_prefix),
};

TEST_MAIN("controls", tests)
