/* The examination of a resume: each check, each flag, and what follows for other operations. */
#include "test.h"

#include "supervisor/resume.h"

#define START(op, n) "{\"kind\":\"start\",\"op\":\"" op "\",\"attempt\":" n ",\"pid\":9,\"start\":1}\n"
#define END(op, n, class) "{\"kind\":\"end\",\"op\":\"" op "\",\"attempt\":" n ",\"class\":\"" class "\",\"code\":1}\n"
/* a -> b -> c, and d behind b by failure, e alone */
#define CHAIN                                                                                      \
	"{\"agent_id\":\"a\",\"dep_indices\":[],\"run\":\"x\"},"                                   \
	"{\"agent_id\":\"b\",\"dep_indices\":[0],\"run\":\"x\"},"                                  \
	"{\"agent_id\":\"c\",\"dep_indices\":[1],\"run\":\"x\"},"                                  \
	"{\"agent_id\":\"d\",\"dep_indices\":[1],\"needs\":[{\"op\":\"b\",\"on\":\"failure\"}],"   \
	"\"run\":\"x\"},"                                                                          \
	"{\"agent_id\":\"e\",\"dep_indices\":[],\"run\":\"x\"}"
#define ONCE                                                                                       \
	"{\"agent_id\":\"a\",\"dep_indices\":[],\"run\":\"x\"},"                                   \
	"{\"agent_id\":\"b\",\"dep_indices\":[0],\"run\":\"x\",\"idempotent\":false}"
#define RETRIED                                                                                    \
	"{\"agent_id\":\"a\",\"dep_indices\":[],\"run\":\"x\",\"idempotent\":false,"               \
	"\"retry\":{\"attempts\":3}}"
#define NEEDS_NAME                                                                                 \
	"{\"agent_id\":\"a\",\"dep_indices\":[],\"run\":\"x\",\"env\":{\"NEEDED\":"                \
	"{\"required\":true}}}"
#define DONE(op) "\"" op "\":{\"agent_id\":\"" op "\",\"status\":\"completed\",\"response\":\"r\"}"
#define FAILED(op)                                                                                 \
	"\"" op "\":{\"agent_id\":\"" op "\",\"status\":\"failed\",\"response\":null,"             \
	"\"error\":{\"class\":\"exit\",\"message\":\"exit status 3\",\"code\":3}}"

enum { RETRY = 1, KEEP = 2, IN_FLIGHT = 4, ARTIFACTS = 8 };

static const struct {
	const char *name, *plan, *ops, *log, *facts;
	unsigned flags;
	const char *actions; /* a letter each: r run, R runs again, p replayed, k kept, s skipped, x refused */
	const char *checks;  /* numbers of the failures, in order, each followed by a space */
} cases[] = {
    {"nothing was saved", CHAIN, "", "", "{}", 0, "rrrrr", ""},
    {"what completed is replayed", CHAIN, DONE("a") "," DONE("e"), START("b", "1"), "{}", 0,
	"prrrp", ""},
    {"a failure is refused", CHAIN, DONE("a") "," FAILED("b"), "", "{}", 0, "pxrrr", "3 "},
    {"a failure runs again", CHAIN, DONE("a") "," FAILED("b"), "", "{}", RETRY, "pRrrr", ""},
    {"a failure is kept", CHAIN, DONE("a") "," FAILED("b"), "", "{}", KEEP, "pksrr", ""},
    {"what ran because of a failure runs again with it", CHAIN,
	DONE("a") "," FAILED("b") "," DONE("d"), "", "{}", RETRY, "pRrRr", ""},
    {"what ran because of a kept failure stays", CHAIN, DONE("a") "," FAILED("b") "," DONE("d"), "",
	"{}", KEEP, "pkspr", ""},
    {"a success closes the way for failures", CHAIN, DONE("a") "," DONE("b"), "", "{}", 0, "pprsr",
	""},
    {"artifacts are gone", CHAIN, DONE("a") "," DONE("b"), "",
	"{\"a\":{\"artifacts\":\"its artifact \\\"x\\\" is not there\"}}", 0, "xprsr", "4 "},
    {"artifacts are gone, with leave", CHAIN, DONE("a") "," DONE("b") "," DONE("e"), "",
	"{\"a\":{\"artifacts\":\"its artifact \\\"x\\\" is not there\"}}", ARTIFACTS, "RRrrp", ""},
    {"a response file is gone", CHAIN, DONE("a"), "", "{\"a\":{\"response\":\"gone\"}}",
	RETRY | IN_FLIGHT, "xrrrr", "4 "},
    {"a response file is gone, with leave", CHAIN, DONE("a") "," DONE("b"), "", "{\"a\":{\"response\":\"gone\"}}",
	ARTIFACTS, "RRrrr", ""},
    {"a kept failure's response file is gone", CHAIN, FAILED("a"), "", "{\"a\":{\"response\":\"gone\"}}",
	KEEP, "xrrrr", "4 "},
    {"a kept failure's response file is gone, with leave", CHAIN, FAILED("a"), "",
	"{\"a\":{\"response\":\"gone\"}}", KEEP | ARTIFACTS, "Rrrrr", ""},
    {"a response was edited", CHAIN,
	"\"a\":{\"agent_id\":\"a\",\"status\":\"completed\",\"response\":\"r\",\"result_digest\":"
	"\"blake2b:00\"}",
	"", "{}", RETRY, "xrrrr", "5 "},
    {"a digest that is no text", CHAIN,
	"\"a\":{\"agent_id\":\"a\",\"status\":\"completed\",\"response\":\"r\",\"result_digest\":1}",
	"", "{}", 0, "xrrrr", "5 "},
    {"a kept failure's response was edited", CHAIN,
	"\"a\":{\"agent_id\":\"a\",\"status\":\"failed\",\"response\":\"r\",\"result_digest\":"
	"\"blake2b:00\"}",
	"", "{}", KEEP, "xrrrr", "5 "},
    {"an outcome without an operation", CHAIN, DONE("z"), "", "{}", 0, "rrrrr", "2 "},
    {"not repeatable and not started", ONCE, DONE("a"), "", "{}", 0, "pr", ""},
    {"not repeatable, in flight", ONCE, DONE("a"), START("b", "1"), "{}", 0, "px", "7 "},
    {"not repeatable, in flight, with leave", ONCE, DONE("a"), START("b", "1"), "{}", IN_FLIGHT, "pr",
	""},
    {"not repeatable, only its mark is there", ONCE, DONE("a"), "", "{\"b\":{\"started\":true}}", 0,
	"px", "7 "},
    {"not repeatable, executed, not saved", ONCE, DONE("a"), START("b", "1") END("b", "1", "completed"),
	"{}", 0, "px", "7 "},
    {"not repeatable, ended by a stop", ONCE, DONE("a"), START("b", "1") END("b", "1", "cancelled"),
	"{}", 0, "px", "7 "},
    {"not repeatable, and the log is damaged", ONCE, DONE("a"), "x\n", "{}", 0, "px", "7 "},
    {"not repeatable, and the log is torn", ONCE, DONE("a"), "x", "{}", 0, "px", "7 "},
    {"not repeatable, a retry was due, and the log is torn", RETRIED, "",
	START("a", "1") END("a", "1", "exit") "x", "{}", 0, "x", "7 "},
    {"not repeatable, saved", ONCE, DONE("a") "," DONE("b"), START("b", "1"), "{}", 0, "pp", ""},
    {"not repeatable, behind what runs again", ONCE, DONE("a") "," DONE("b"), "",
	"{\"a\":{\"artifacts\":\"gone\"}}", ARTIFACTS, "Rx", "7 "},
    {"not repeatable, behind what runs again, with leave", ONCE, DONE("a") "," DONE("b"), "",
	"{\"a\":{\"artifacts\":\"gone\"}}", ARTIFACTS | IN_FLIGHT, "RR", ""},
    {"a retry was due", RETRIED, "", START("a", "1") END("a", "1", "exit"), "{}", 0, "r", ""},
    {"the second try was in flight", RETRIED, "",
	START("a", "1") END("a", "1", "exit") START("a", "2"), "{}", 0, "x", "7 "},
    {"all tries were used up, not saved", RETRIED, "",
	START("a", "1") END("a", "1", "exit") START("a", "2") END("a", "2", "exit") START("a", "3")
	    END("a", "3", "exit"),
	"{}", 0, "x", "7 "},
    {"a required name is missing", NEEDS_NAME, "", "", "{}", 0, "x", "10 "},
    {"a required name of what is done already", NEEDS_NAME, DONE("a"), "", "{}", 0, "p", ""},
    {"every reason is listed", CHAIN, FAILED("a") "," DONE("z") "," FAILED("e"), "", "{}", 0, "xrrrx",
	"2 3 3 "},
};

/* ---- Making an input of texts ---- */

struct made {
	struct test_dir dir;
	struct json *state, *facts;
	struct flow *flow;
	struct attempts attempts;
	struct ckpt_report report;
	struct resume_input in;
};

static struct resume_flags
flags_of(unsigned bits)
{
	return (struct resume_flags){.retry_failed = bits & RETRY,
	    .keep_failed = bits & KEEP,
	    .rerun_in_flight = bits & IN_FLIGHT,
	    .accept_missing_artifacts = bits & ARTIFACTS};
}

static char *const no_environment[] = {NULL};

static void
make(struct made *m, const char *plan, const char *ops, const char *log, const char *facts,
    unsigned flags)
{
	struct buf text = {0};
	struct err e = {0};

	*m = (struct made){0};
	test_dir_make(&m->dir);
	test_file_write(m->dir.fd, RUN_ATTEMPTS, log);
	assert_int_equal(fchmodat(m->dir.fd, RUN_ATTEMPTS, 0600, 0), 0);
	assert_works(attempts_read(m->dir.fd, &m->attempts, &e), e);
	buf_printf(&text,
	    "{\"session_id\":\"s\",\"prompt\":\"\",\"plan\":[%s],\"config\":{\"name\":\"t\"},"
	    "\"flow_context\":{},\"ops\":{%s},\"spawned\":[]}",
	    plan, ops);
	m->state = test_json(buf_text(&text));
	buf_clear(&text);
	m->facts = test_json(facts);
	assert_works(flow_from_state(m->state, &m->flow, &e), e);
	m->report.format = 3;
	m->in = (struct resume_input){.state = m->state,
	    .report = &m->report,
	    .flow = m->flow,
	    .attempts = &m->attempts,
	    .facts = m->facts,
	    .recorded_environment = no_environment,
	    .current_environment = no_environment,
	    .flags = flags_of(flags)};
}

static void
clear(struct made *m)
{
	flow_free(m->flow);
	json_unref(m->state);
	json_unref(m->facts);
	attempts_clear(&m->attempts);
	test_dir_remove(&m->dir);
}

static void
actions_of(const struct resume_plan *p, char to[16])
{
	static const char letters[] = {[RESUME_RUN] = 'r', [RESUME_REPLAY] = 'p',
	    [RESUME_KEEP_FAILED] = 'k', [RESUME_SKIP] = 's', [RESUME_REFUSED] = 'x'};
	size_t i;

	for (i = 0; i < p->nrows && i < 15; i++)
		to[i] = p->rows[i].rerun ? 'R' : letters[p->rows[i].action];
	to[i] = '\0';
}

static void
checks_of(const struct resume_plan *p, char to[64])
{
	struct json_iter it = json_iterate(p->failures);
	const struct json *one;
	int64_t n = 0;

	to[0] = '\0';
	while (json_next(&it, NULL, &one)) {
		assert_true(json_int64(json_get(one, "check"), &n));
		assert_true(json_text(json_get(one, "message")).len > 0);
		snprintf(to + strlen(to), 64 - strlen(to), "%d ", (int)n);
	}
}

static void
test_resume__cases(void **state)
{
	char actions[16], checks[64];
	struct resume_plan p;
	struct err e = {0};
	struct made m;
	size_t i, k;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		print_message("# %s\n", cases[i].name);
		make(&m, cases[i].plan, cases[i].ops, cases[i].log, cases[i].facts, cases[i].flags);
		assert_works(resume_examine(&m.in, &p, &e), e);
		actions_of(&p, actions);
		checks_of(&p, checks);
		assert_string_equal(actions, cases[i].actions);
		assert_string_equal(checks, cases[i].checks);
		assert_int_equal(resume_is_accepted(&p), checks[0] == '\0');
		for (k = 0; k < p.nrows; k++)
			assert_true(p.rows[k].reason != NULL && p.rows[k].reason[0] != '\0');
		resume_plan_clear(&p);
		clear(&m);
	}
}

/* Each flag that a refusal names must lift it. */
static void
test_resume__named_flags_lift(void **state)
{
	static const struct {
		const char *name;
		unsigned bit;
	} names[] = {{"retry-failed|keep-failed", KEEP}, {"rerun-in-flight", IN_FLIGHT},
	    {"accept-missing-artifacts", ARTIFACTS}};
	struct resume_plan p;
	struct err e = {0};
	struct made m;
	size_t i, k;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct json_iter it;
		const struct json *one;
		bool all = true;
		unsigned flags = cases[i].flags;

		make(&m, cases[i].plan, cases[i].ops, cases[i].log, cases[i].facts, flags);
		assert_works(resume_examine(&m.in, &p, &e), e);
		it = json_iterate(p.failures);
		while (json_next(&it, NULL, &one)) {
			const char *flag = json_cstr_of(json_get(one, "flag"));

			all = all && flag != NULL;
			for (k = 0; flag != NULL && k < 3; k++)
				if (strcmp(flag, names[k].name) == 0)
					flags |= names[k].bit;
		}
		resume_plan_clear(&p);
		if (all) {
			m.in.flags = flags_of(flags);
			assert_works(resume_examine(&m.in, &p, &e), e);
			assert_true(resume_is_accepted(&p));
			resume_plan_clear(&p);
		}
		clear(&m);
	}
}

/* ---- The run as a whole ---- */

static void
expect_whole(struct made *m, const char *checks, const char *says)
{
	char got[64];
	struct resume_plan p;
	struct err e = {0};

	assert_works(resume_examine(&m->in, &p, &e), e);
	checks_of(&p, got);
	assert_string_equal(got, checks);
	if (says != NULL)
		assert_non_null(
		    strstr(json_cstr_of(json_get(json_at(p.failures, 0), "message")), says));
	resume_plan_clear(&p);
}

static void
test_resume__the_whole_run(void **state)
{
	struct err damaged = {.code = ERR_CHECKPOINT, .msg = "sequence gap"};
	struct json *spawned, *misfits;
	struct made m;

	(void)state;
	make(&m, CHAIN, "", "", "{}", 0);
	m.in.load_error = &damaged;
	m.in.state = NULL;
	expect_whole(&m, "1 ", "sequence gap");
	m.in.load_error = NULL;
	m.in.report = NULL;
	expect_whole(&m, "", NULL); /* no checkpoint, nothing started */
	m.in.report = &m.report;
	m.in.state = m.state;
	m.report.format = 2; /* migrated by whoever loads it */
	expect_whole(&m, "", NULL);
	m.report.format = 1;
	expect_whole(&m, "", NULL);
	m.report.format = 3;
	m.in.state = NULL;
	m.in.flow = NULL;
	m.in.flow_error = &damaged;
	expect_whole(&m, "2 ", "sequence gap");
	clear(&m);

	make(&m, CHAIN, "", "", "{}", 0);
	spawned = json_append(json_array(), json_set(json_object(), "spawn_id", json_cstr("a.s1")));
	m.state = json_set(m.state, "spawned", spawned);
	m.in.state = m.state;
	misfits = json_append(json_array(), json_set(json_set(json_object(), "entry", json_ref(json_at(spawned, 0))),
	    "message", json_cstr("has no \"operation\"")));
	m.in.misfits = misfits;
	expect_whole(&m, "8 ", "operation");
	m.report.format = 1;
	expect_whole(&m, "8 ", "version 1");
	clear(&m);
	json_unref(misfits);

	make(&m, "{\"agent_id\":\"a\",\"dep_indices\":[],\"task\":\"x\",\"assignee\":\"researcher\","
		 "\"inputs\":[],\"exit_criteria\":null,\"depends_on\":[],\"modes\":[]}", "", "", "{}", 0);
	expect_whole(&m, "2 ", "\"researcher\"");
	clear(&m);

	make(&m, "{\"agent_id\":\"a\",\"dep_indices\":[],\"instruction\":\"x\",\"assignee\":\"r\"}", "",
	    "", "{}", 0);
	expect_whole(&m, "2 ", "the role \"r\" is not known");
	clear(&m);

	make(&m, CHAIN, "", "", "{}", 0);
	m.in.artifact_root_problem = "it is gone";
	expect_whole(&m, "4 ", "gone");
	m.in.flags.accept_missing_artifacts = true;
	expect_whole(&m, "", NULL);
	clear(&m);
}

static void
test_resume__names_of_the_environment(void **state)
{
	char *const has[] = {(char[]){"NEEDED=1"}, NULL};
	char *const other[] = {(char[]){"NEEDED_NOT=1"}, (char[]){"NEEDED"}, NULL};
	struct resume_plan p;
	struct err e = {0};
	struct made m;

	(void)state;
	make(&m, NEEDS_NAME, "", "", "{}", 0);
	m.in.recorded_environment = has;
	expect_whole(&m, "", NULL);
	m.in.recorded_environment = other;
	m.in.current_environment = other;
	expect_whole(&m, "10 ", "NEEDED");
	m.in.current_environment = has;
	assert_works(resume_examine(&m.in, &p, &e), e);
	assert_true(resume_is_accepted(&p));
	assert_int_equal(json_length(p.added), 1);
	resume_plan_clear(&p);
	clear(&m);
}

/* ---- What the new run starts from ---- */

/* The recorded plan, where each operation has a node id of its own now. */
static void
expect_plan_with_nodes(const struct json *carry, const struct json *recorded)
{
	struct json_iter it = json_iterate(json_get(carry, "plan"));
	const struct json *entry;
	struct json *bare;
	size_t i;

	for (i = 0; json_next(&it, NULL, &entry); i++) {
		assert_int_equal(json_text(json_get(entry, "node_id")).len, UUID_TEXT - 1);
		bare = json_remove(json_ref(entry), slice_of("node_id"));
		assert_true(json_equal(bare, json_at(json_get(recorded, "plan"), i)));
		json_unref(bare);
	}
	assert_int_equal(i, json_length(json_get(recorded, "plan")));
}

static void
test_resume__carries_what_counts(void **state)
{
	struct resume_plan p;
	struct json *carry;
	struct err e = {0};
	struct made m;
	int64_t n = 0;

	(void)state;
	make(&m, CHAIN, DONE("a") "," FAILED("b") "," DONE("d"),
	    START("b", "1") START("e", "1") END("e", "1", "signal") START("e", "2"), "{}", RETRY);
	m.state = json_set(m.state, "flow_context", json_set(json_object(), "k", json_int(1)));
	m.in.state = m.state;
	assert_works(resume_examine(&m.in, &p, &e), e);
	carry = resume_carry(&m.in, &p, "20260101T000000-00000a", "/old", "/old/artifacts", &e);
	assert_non_null(carry);
	assert_int_equal(json_length(json_get(carry, "ops")), 1);
	assert_non_null(json_get(json_get(carry, "ops"), "a"));
	expect_plan_with_nodes(carry, m.state);
	assert_true(json_equal(json_get(carry, "flow_context"), json_get(m.state, "flow_context")));
	assert_string_equal(json_cstr_of(json_get(json_get(carry, "config"), "artifact_root")),
	    "/old/artifacts");
	assert_string_equal(json_cstr_of(json_get(json_get(carry, "config"), "resumed_from")),
	    "20260101T000000-00000a");
	/* e goes on after its second attempt; b was asked for anew. */
	assert_int_equal(json_length(json_get(json_get(carry, "config"), "attempts")), 1);
	assert_true(json_int64(
	    json_get(json_get(json_get(carry, "config"), "attempts"), "e"), &n));
	assert_int_equal(n, 2);
	json_unref(carry);
	resume_plan_clear(&p);
	clear(&m);
}

static struct json *
carry_of(struct made *m)
{
	struct resume_plan p;
	struct json *carry;
	struct err e = {0};

	assert_works(resume_examine(&m->in, &p, &e), e);
	assert_true(resume_is_accepted(&p));
	carry = resume_carry(&m->in, &p, "20260101T000000-00000a", "/old", NULL, &e);
	assert_non_null(carry);
	resume_plan_clear(&p);
	return carry;
}

/* n operations that have completed, with their lines in the log. */
static void
make_completed(struct made *m, int n)
{
	struct buf plan = {0}, ops = {0}, log = {0};
	const char *comma = "";
	int i;

	for (i = 0; i < n; i++, comma = ",") {
		buf_printf(&plan, "%s{\"agent_id\":\"o%d\",\"node_id\":\"%032d\",\"dep_indices\":[],\"run\":\"x\"}",
		    comma, i, i);
		buf_printf(&ops, "%s\"o%d\":{\"agent_id\":\"o%d\",\"status\":\"completed\",\"response\":\"r\"}",
		    comma, i, i);
		buf_printf(&log, "{\"kind\":\"start\",\"op\":\"o%d\",\"attempt\":1,\"pid\":9,\"start\":1}\n"
			"{\"kind\":\"end\",\"op\":\"o%d\",\"attempt\":1,\"class\":\"completed\"}\n", i, i);
	}
	make(m, buf_text(&plan), buf_text(&ops), buf_text(&log), "{}", 0);
	buf_clear(&plan);
	buf_clear(&ops);
	buf_clear(&log);
}

static uint64_t
made_so_far(void)
{
	const struct json_counters c = json_counters();

	return c.nodes_made + c.values_made;
}

/* However many operations there are, what is carried over is shared with what was recorded. */
static void
test_resume__what_completed_is_not_copied(void **state)
{
	struct json *carry;
	uint64_t before;
	struct made m;

	(void)state;
	make_completed(&m, 2000);
	before = made_so_far();
	carry = carry_of(&m);
	assert_in_range(made_so_far() - before, 1, 40);
	assert_ptr_equal(json_get(carry, "ops"), json_get(m.state, "ops"));
	json_unref(carry);
	clear(&m);
}

/* Goes on with what an earlier resume has carried. */
static struct json *
carry_again(struct made *m, const char *state)
{
	make(m, CHAIN, "", "", "{}", 0);
	json_unref(m->state);
	m->in.state = m->state = test_json(state);
	return carry_of(m);
}

/* What was carried once is carried again as it is: node ids, files of responses, counts. */
static void
test_resume__a_second_time_is_the_same(void **state)
{
	struct json *first, *second;
	struct buf text = {0};
	struct made m;

	(void)state;
	make(&m, CHAIN,
	    "\"a\":{\"agent_id\":\"a\",\"status\":\"completed\",\"response\":{\"file\":\"ops/a.1.out\","
	    "\"size\":3,\"digest\":\"blake2b:00\"},\"more\":[1]}",
	    START("b", "1") START("b", "2"), "{}", 0);
	m.in.state = m.state = json_set(m.state, "max_spawn", json_int(20));
	first = carry_of(&m);
	clear(&m);
	assert_string_equal(json_cstr_of(json_get(json_get(json_get(json_get(first, "ops"), "a"),
	    "response"), "file")), "/old/ops/a.1.out");
	assert_non_null(json_get(json_get(json_get(first, "ops"), "a"), "more"));
	assert_non_null(json_get(first, "max_spawn"));
	json_write(&text, first);
	second = carry_again(&m, buf_text(&text));
	assert_true(json_equal(first, second));
	clear(&m);
	buf_clear(&text);
	json_unref(first);
	json_unref(second);
}

/* A moved response is another value: its digest fits it, or the next resume would refuse it. */
static void
test_resume__digest_of_a_moved_response(void **state)
{
	static const char response[] =
	    "{\"file\":\"ops/a.1.out\",\"size\":3,\"digest\":\"blake2b:00\"}";
	char digest[CKPT_DIGEST_TEXT];
	struct json *value = test_json(response), *first, *second;
	struct buf text = {0};
	struct err e = {0};
	struct made m;

	(void)state;
	assert_works(ckpt_digest(value, digest, &e), e);
	json_unref(value);
	buf_printf(&text, "\"a\":{\"agent_id\":\"a\",\"status\":\"completed\",\"response\":%s,"
	    "\"result_digest\":\"%s\"}", response, digest);
	make(&m, CHAIN, buf_text(&text), "", "{}", 0);
	first = carry_of(&m);
	clear(&m);
	buf_reset(&text);
	json_write(&text, first);
	second = carry_again(&m, buf_text(&text));
	assert_true(json_equal(first, second));
	clear(&m);
	buf_clear(&text);
	json_unref(first);
	json_unref(second);
}

/* ---- What each flag allows, and nothing else ---- */

static const char *
option_of(unsigned bit)
{
	return bit == RETRY ? "retry-failed"
	    : bit == KEEP ? "keep-failed"
	    : bit == IN_FLIGHT ? "rerun-in-flight" : "accept-missing-artifacts";
}

static size_t
failures_lifted(const struct resume_plan *p, unsigned bit)
{
	struct json_iter it = json_iterate(p->failures);
	const struct json *one;
	size_t n = 0;

	while (json_next(&it, NULL, &one)) {
		const char *flag = json_cstr_of(json_get(one, "flag"));

		n += flag != NULL && strstr(flag, option_of(bit)) != NULL;
	}
	return n;
}

static bool
names_a_loss(const struct resume_plan *p, unsigned bit)
{
	size_t i;

	for (i = 0; i < p->nrows; i++)
		if (p->rows[i].lifted != NULL && strcmp(p->rows[i].lifted, option_of(bit)) == 0)
			return true;
	return false;
}

/* Four operations, each refused for a reason of its own; the last one by nothing that lifts it. */
#define EVERY                                                                                      \
	"{\"agent_id\":\"failed\",\"dep_indices\":[],\"run\":\"x\"},"                                 \
	"{\"agent_id\":\"lost\",\"dep_indices\":[],\"run\":\"x\"},"                                   \
	"{\"agent_id\":\"once\",\"dep_indices\":[],\"run\":\"x\",\"idempotent\":false},"              \
	"{\"agent_id\":\"edited\",\"dep_indices\":[],\"run\":\"x\"}"

static void
test_resume__a_flag_lifts_its_check_only(void **state)
{
	static const unsigned bits[] = {RETRY, KEEP, IN_FLIGHT, ARTIFACTS};
	struct resume_plan without, with;
	struct err e = {0};
	struct made m;
	size_t i, n;

	(void)state;
	make(&m, EVERY, FAILED("failed") "," DONE("lost") ",\"edited\":{\"agent_id\":\"edited\","
	    "\"status\":\"completed\",\"response\":1,\"result_digest\":\"blake2b:00\"}",
	    START("once", "1"), "{\"lost\":{\"artifacts\":\"gone\"}}", 0);
	assert_works(resume_examine(&m.in, &without, &e), e);
	assert_int_equal(json_length(without.failures), 4);
	for (i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
		assert_false(names_a_loss(&without, bits[i]));
		m.in.flags = flags_of(bits[i]);
		assert_works(resume_examine(&m.in, &with, &e), e);
		n = failures_lifted(&without, bits[i]);
		assert_int_equal(n, 1);
		assert_int_equal(json_length(with.failures), 4 - n);
		assert_int_equal(failures_lifted(&with, bits[i]), 0);
		assert_true(names_a_loss(&with, bits[i]));
		resume_plan_clear(&with);
	}
	resume_plan_clear(&without);
	clear(&m);
}

/* What runs again by request: each state that it may have been left in. */
static void
test_resume__again_by_request(void **state)
{
	static const char lifts[] = "{\"a\":{\"why\":\"so\",\"flag\":\"from\"}}",
			  once[] = "{\"b\":{\"why\":\"so\",\"flag\":\"from\"}}",
			  bad[] = "{\"b\":{\"why\":\"so\",\"flag\":\"from\",\"problem\":\"no\"}}";
	static const struct {
		const char *name, *plan, *ops, *log, *again;
		unsigned flags;
		const char *actions, *checks;
	} rows[] = {
	    {"completed, and all behind it", CHAIN, DONE("a") "," DONE("b") "," DONE("e"), "", lifts, 0,
		"RRrrp", ""},
	    {"failed", CHAIN, FAILED("a"), "", lifts, 0, "Rrrrr", ""},
	    {"a failure behind it", CHAIN, DONE("a") "," FAILED("b"), "", lifts, 0, "RRrrr", ""},
	    {"a kept failure behind it", CHAIN, DONE("a") "," FAILED("b"), "", lifts, KEEP, "RRrrr", ""},
	    {"a failure beside it", CHAIN, DONE("a") "," FAILED("e"), "", lifts, 0, "Rrrrx", "3 "},
	    {"in flight", CHAIN, "", START("a", "1"), lifts, 0, "Rrrrr", ""},
	    {"not started", CHAIN, "", "", lifts, 0, "rrrrr", ""},
	    {"not repeatable, completed", ONCE, DONE("a") "," DONE("b"), "", once, 0, "px", "7 "},
	    {"not repeatable, completed, with leave", ONCE, DONE("a") "," DONE("b"), "", once, IN_FLIGHT,
		"pR", ""},
	    {"not repeatable, failed", ONCE, DONE("a") "," FAILED("b"), "", once, 0, "pR", ""},
	    {"not repeatable, in flight", ONCE, DONE("a"), START("b", "1"), once, 0, "px", "7 "},
	    {"not repeatable, not started", ONCE, DONE("a"), "", once, 0, "pr", ""},
	    {"not repeatable, failed behind it", ONCE, DONE("a") "," FAILED("b"), "", lifts, 0, "Rx", "7 "},
	    {"what cannot", ONCE, DONE("a") "," DONE("b"), "", bad, IN_FLIGHT, "px", "2 "},
	};
	char actions[16], checks[64];
	struct resume_plan p;
	struct json *again;
	struct err e = {0};
	struct made m;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		print_message("# %s\n", rows[i].name);
		make(&m, rows[i].plan, rows[i].ops, rows[i].log, "{}", rows[i].flags);
		m.in.again = again = test_json(rows[i].again);
		assert_works(resume_examine(&m.in, &p, &e), e);
		actions_of(&p, actions);
		checks_of(&p, checks);
		assert_string_equal(actions, rows[i].actions);
		assert_string_equal(checks, rows[i].checks);
		resume_plan_clear(&p);
		json_unref(again);
		clear(&m);
	}
}

/* From elsewhere, without attempts.log, nobody knows what was started. */
static void
test_resume__nothing_known_of_starts(void **state)
{
	struct made m;

	(void)state;
	make(&m, ONCE, DONE("a"), "", "{}", 0);
	m.in.no_attempts = true;
	expect_whole(&m, "7 ", RUN_ATTEMPTS);
	m.in.flags = flags_of(IN_FLIGHT);
	expect_whole(&m, "", NULL);
	clear(&m);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_resume__cases),
    cmocka_unit_test(test_resume__named_flags_lift),
    cmocka_unit_test(test_resume__the_whole_run),
    cmocka_unit_test(test_resume__names_of_the_environment),
    cmocka_unit_test(test_resume__carries_what_counts),
    cmocka_unit_test(test_resume__what_completed_is_not_copied),
    cmocka_unit_test(test_resume__a_second_time_is_the_same),
    cmocka_unit_test(test_resume__digest_of_a_moved_response),
    cmocka_unit_test(test_resume__a_flag_lifts_its_check_only),
    cmocka_unit_test(test_resume__again_by_request),
    cmocka_unit_test(test_resume__nothing_known_of_starts),
};

TEST_MAIN("resume", tests)
