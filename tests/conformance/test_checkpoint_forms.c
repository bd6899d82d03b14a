/* Other forms of a checkpoint: migrated, written as version 2, anew, compacted; and digests. */
#include "ckpt_text.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Migration ---- */

static void
test_checkpoint_forms__version_2_migrates_without_loss(void **unused)
{
	struct fixture fx;
	struct ckpt_report r;
	struct json *state = NULL, *again = NULL, *want;
	struct err e = {0};

	(void)unused;
	fixture_make(&fx);
	put(fx.run_fd, V2_WITH("'version':2,", V2_PLAN, "[{'node_id':'n','status':'pending',"
	    "'response':null,'operation':'x','spawn_id':3,'context':{'a':1.0},'strange':[]}]",
	    ",'extra':{'a':[1.0]},'zz':null"), NULL);
	assert_works(ckpt_load(fx.run_fd, NULL, &state, &r, &e), e);
	assert_int_equal(r.format, 2);
	state = ckpt_migrate(state, r.format, &e);
	assert_non_null(state);
	want = fixture_json("{'session_id':'s','prompt':'p','plan':" V2_PLAN ",'flow_context':{'k':1},"
	    "'ops':{'op-0':" OP("op-0") "},'spawned':[{'node_id':'n','status':'pending',"
	    "'response':null,'operation':'x','spawn_id':3,'context':{'a':1.0},'strange':[]}],"
	    "'config':{'model_spec':'m','max_ops':0,'v2_members':{'extra':{'a':[1.0]},'zz':null}},"
	    "'max_spawn':20}");
	assert_true(json_equal(state, want));
	fixture_again(&fx);
	assert_works(ckpt_write_new(NULL, fx.run_fd, CKPT_BASE, 3, state, &e), e);
	assert_works(ckpt_load(fx.run_fd, NULL, &again, &r, &e), e);
	assert_int_equal(r.format, 3);
	assert_true(json_equal(again, want));
	/* A second migration has nothing left to move. */
	again = ckpt_migrate(again, 3, &e);
	assert_true(json_equal(again, want));
	json_unref(again);
	json_unref(state);
	json_unref(want);
	fixture_remove(&fx);
}

/* Through version 3 and back: every member is again where it was. */
static void
test_checkpoint_forms__version_2_comes_back_whole(void **unused)
{
	static const char *const files[] = {
		V2_WITH("'version':2,", V2_PLAN, "[]", ""),
		V2_WITH("'version':2,", V2_PLAN, "[]", ",'extra':{'a':[1.0]},'zz':null"),
		V2_WITH("'version':2,", V2_PLAN, "[]", ",'v2_members':{'x':1}"),
		V2_WITH("'version':2,", V2_PLAN, "[]", ",'generation':'g'"),
		V2_WITH("'version':2,", V2_PLAN, "[]", ",'journal_seq':0,'plans':[],'configs':{}"),
		V2_WITH("'version':2,", PLAN, "[]", ",'x':1"), /* node ids that guard nothing */
		V2_WITH("'version':2,", PLAN, "[" NODE("n") "]", ""),
		V2_WITH("'version':2,", PLAN, "[{'node_id':'n','status':'failed','response':null,"
		    "'parent_id':'" G "','escalated_from':'m'}]", ",'x':1"),
		"{'version':2,'session_id':'s','prompt':null,'plan':" V2_PLAN ",'flow_context':{},'ops':{},"
		    "'spawned':[],'config':{'v2_members':{'a':1}}}",
		"{'version':2,'session_id':'s','prompt':null,'plan':" V2_PLAN ",'flow_context':{},'ops':{},"
		    "'spawned':[],'config':{'v2_members':{'a':1}},'b':2}",
		"{'version':2,'session_id':'s','prompt':null,'plan':" V2_PLAN ",'flow_context':{},'ops':{},"
		    "'spawned':[],'config':{'v2_members':{'config':{'v2_members':7},'plan':'node_id','a':1}},"
		    "'v2_members':3,'b':2}",
		"{'version':2,'session_id':'s','prompt':null,'plan':" PLAN ",'flow_context':{},'ops':{},"
		    "'spawned':[],'config':{'v2_members':null,'timeout':'1s'}}",
	};
	struct json *first = NULL, *state = NULL, *last = NULL;
	struct ckpt_report r;
	struct err e = {0};
	struct fixture fx;
	size_t i;

	(void)unused;
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		print_message("# %s\n", files[i]);
		fixture_make(&fx);
		put(fx.run_fd, files[i], NULL);
		assert_works(ckpt_load(fx.run_fd, NULL, &first, &r, &e), e);
		state = ckpt_migrate(json_ref(first), r.format, &e);
		assert_non_null(state);
		fixture_again(&fx);
		assert_works(ckpt_write_new(NULL, fx.run_fd, CKPT_BASE, 3, state, &e), e);
		json_unref(state);
		assert_works(ckpt_load(fx.run_fd, NULL, &state, &r, &e), e);
		fixture_again(&fx);
		assert_works(ckpt_write_new(NULL, fx.run_fd, CKPT_BASE, 2, state, &e), e);
		assert_works(ckpt_load(fx.run_fd, NULL, &last, &r, &e), e);
		assert_int_equal(r.format, 2);
		assert_true(json_equal(first, last));
		json_unref(first);
		json_unref(state);
		json_unref(last);
		fixture_remove(&fx);
	}
}

/* What config holds makes no file that is taken for something else, or that its reader refuses. */
static void
test_checkpoint_forms__version_2_is_no_base_in_disguise(void **unused)
{
	static const char *const states[] = {
		"{'session_id':'s','prompt':'p','plan':[],'config':{'v2_members':{'generation':'" G "',"
		    "'journal_seq':0}},'flow_context':{},'ops':{},'spawned':[]}",
		"{'session_id':'s','prompt':'p','plan':" V2_PLAN ",'config':{},'flow_context':{},'ops':{},"
		    "'spawned':[{'node_id':'n','status':'failed','response':null,'escalated_from':'m'}]}",
	};
	struct err e = {0};
	struct fixture fx;
	struct stat st;
	struct json *state;
	size_t i;

	(void)unused;
	fixture_make(&fx);
	for (i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		state = fixture_json(states[i]);
		assert_fails(ckpt_write_new(NULL, fx.run_fd, CKPT_BASE, 2, state, &e), ERR_CHECKPOINT, e);
		assert_int_equal(fstatat(fx.run_fd, CKPT_BASE, &st, 0), -1);
		json_unref(state);
	}
	state = fixture_json("{'session_id':'s','prompt':'p','plan':[],'config':{'v2_members':{'version':3}},"
	    "'flow_context':{},'ops':{},'spawned':[]}");
	assert_works(ckpt_write_new(NULL, fx.run_fd, CKPT_BASE, 2, state, &e), e);
	json_unref(state);
	assert_works(ckpt_load(fx.run_fd, NULL, &state, &(struct ckpt_report){0}, &e), e);
	json_unref(state);
	fixture_remove(&fx);
}

static void
test_checkpoint_forms__new_pairs_never_replace(void **unused)
{
	struct fixture fx;
	struct json *state = fixture_state(1);
	struct err e = {0};
	struct stat st;

	(void)unused;
	fixture_make(&fx);
	assert_works(ckpt_write_new(NULL, fx.run_fd, "x.json", 2, state, &e), e);
	assert_fails(ckpt_write_new(NULL, fx.run_fd, "x.json", 3, state, &e), ERR_CREATE, e);
	assert_int_equal(fstatat(fx.run_fd, "x.json.journal", &st, 0), -1);
	assert_int_equal(unlinkat(fx.run_fd, "x.json", 0), 0);
	assert_works(ckpt_write_new(NULL, fx.run_fd, "x.json", 3, state, &e), e);
	assert_fails(ckpt_write_new(NULL, fx.run_fd, "x.json", 3, state, &e), ERR_CREATE, e);
	json_unref(state);
	fixture_remove(&fx);
}

/* ---- Compaction ---- */

static void
test_checkpoint_forms__compaction_keeps_the_state(void **unused)
{
	struct fixture fx;
	struct ckpt_options o;
	struct ckpt_report r;
	struct json *before = NULL;
	struct err e = {0};

	(void)unused;
	fixture_make(&fx);
	put(fx.run_fd, BASE_WITH("3", PLAN, "{}", "{'x':" OP("x") "}", "[" NODE("n") "]"),
	    RECORD(OTHER, "1", "op", OP("x"), "null") RECORD(OTHER, "2", "spawned", PENDING("n"), "null")
	    FIRST "{'torn");
	assert_works(ckpt_load(fx.run_fd, NULL, &before, &r, &e), e);
	o = fixture_options(&fx, NULL);
	assert_works(ckpt_compact(&o, &r, &e), e);
	assert_int_equal(r.status, CKPT_RECOVERED_PREFIX);
	assert_loads(fx.run_fd, before, CKPT_CLEAN);
	json_unref(before);
	/* What is refused stays as it is. */
	put(fx.run_fd, BASE, "x\n");
	assert_fails(ckpt_compact(&o, &r, &e), ERR_CHECKPOINT, e);
	put(fx.run_fd, V2_WITH("", V2_PLAN, "[]", ""), NULL);
	assert_fails(ckpt_compact(&o, &r, &e), ERR_REFUSED, e);
	fixture_remove(&fx);
}

/* Records that the base does not hold are nowhere else, whoever's they are. */
static void
test_checkpoint_forms__compaction_keeps_what_only_the_journal_has(void **unused)
{
	static const char *const journals[] = {
		RECORD(OTHER, "1", "op", OP("op-1"), "null"),
		RECORD(OTHER, "1", "op", "{'agent_id':'op-0','status':'completed','response':'else'}", "null"),
		RECORD(OTHER, "1", "op", OP("op-0"), "null") RECORD(OTHER, "2", "spawned", NODE("m"), "null"),
		RECORD(OTHER, "1", "spawned", PENDING("m"), "null"),
		RECORD(OTHER, "1", "spawned", "{'node_id':'n','status':'failed','response':null}", "null"),
		RECORD(OTHER, "1", "op", OP("op-1"), "null") FIRST,
	};
	struct fixture fx;
	struct ckpt_options o;
	struct ckpt_report r;
	struct json *before = NULL;
	struct err e = {0};
	struct stat st;
	size_t i;

	(void)unused;
	fixture_make(&fx);
	o = fixture_options(&fx, NULL);
	for (i = 0; i < sizeof(journals) / sizeof(journals[0]); i++) {
		put(fx.run_fd, BASE_WITH("3", PLAN, "{}", "{'op-0':" OP("op-0") "}", "[" NODE("n") "]"),
		    journals[i]);
		assert_works(ckpt_load(fx.run_fd, NULL, &before, &r, &e), e);
		assert_fails(ckpt_compact(&o, &r, &e), ERR_REFUSED, e);
		assert_loads(fx.run_fd, before, CKPT_RECOVERED_PREFIX);
		assert_int_equal(fstatat(fx.run_fd, CKPT_JOURNAL, &st, 0), 0);
		assert_int_equal(st.st_size, strlen(journals[i]));
		json_unref(before);
	}
	fixture_remove(&fx);
}

#define STALE(seq, text) RECORD(OTHER, seq, "op", OP("op-0"), PATCH(text))
#define AT(id, second) "{'agent_id':'" id "','status':'completed','response':'r','ended_at':" second "}"

static const struct {
	const char *context, *op, *journal;
	bool held;
} stale_contexts[] = {
	{"{'a':1}", OP("op-0"), STALE("1", "{'op':'add','path':'/a','value':1}"), true},
	{"{'a':2}", OP("op-0"), STALE("1", "{'op':'add','path':'/a','value':1}"), false},
	{"{}", OP("op-0"), STALE("1", "{'op':'add','path':'/a','value':1}"), false},
	{"{}", OP("op-0"), STALE("1", "{'op':'add','path':'/a','value':1}")
	    STALE("2", "{'op':'remove','path':'/a'}"), true},
	{"{'a':{'x':2,'y':3}}", OP("op-0"), STALE("1", "{'op':'add','path':'/a','value':{'x':1}}")
	    STALE("2", "{'op':'replace','path':'/a/x','value':2},{'op':'add','path':'/a/y','value':3}"), true},
	{"{'a':{'x':2,'y':3}}", OP("op-0"), STALE("1", "{'op':'add','path':'/a','value':{'x':1,'z':0}}")
	    STALE("2", "{'op':'replace','path':'/a/x','value':2},{'op':'add','path':'/a/y','value':3}"), false},
	{"{'l':[0,1,2,3]}", OP("op-0"), STALE("1", "{'op':'add','path':'/l/-','value':1}")
	    STALE("2", "{'op':'add','path':'/l/-','value':3},{'op':'add','path':'/l/2','value':2}"), true},
	{"{'l':[0,1,3]}", OP("op-0"), STALE("1", "{'op':'add','path':'/l/-','value':1}")
	    STALE("2", "{'op':'add','path':'/l/-','value':3},{'op':'add','path':'/l/2','value':2}"), false},
	{"{'l':[5]}", OP("op-0"), STALE("1", "{'op':'add','path':'/l/1','value':7}")
	    STALE("2", "{'op':'remove','path':'/l/1'},{'op':'replace','path':'/l/0','value':5}"), true},
	{"{'l':['a','b']}", OP("op-0"), STALE("1", "{'op':'add','path':'/l','value':['a']}")
	    STALE("2", "{'op':'add','path':'/l/-','value':'b'}"), true},
	{"{'l':['a','c']}", OP("op-0"), STALE("1", "{'op':'add','path':'/l','value':['a']}")
	    STALE("2", "{'op':'add','path':'/l/-','value':'b'}"), false},
	{"{'whole':1}", OP("op-0"), STALE("1", "{'op':'add','path':'/a/b','value':7}")
	    STALE("2", "{'op':'replace','path':'','value':{'whole':1}}"), true},
	{"{'whole':2}", OP("op-0"), STALE("1", "{'op':'replace','path':'','value':{'whole':1}}"), false},
	{"{'a':1}", OP("op-0"), STALE("1", "{'op':'remove','path':'/a'}"), false},
	{"{'a':1}", OP("op-0"), STALE("1", "{'op':'move','path':'/a','from':'/b'}"), false},
	{"{'a':1}", OP("op-0"), STALE("1", ""), true},
	/* What the base holds besides, and no journal does, may have changed it since. */
	{"{'a':2}", AT("op-0", "1.5") ",'x':" AT("x", "2"),
	    RECORD(OTHER, "1", "op", AT("op-0", "1.5"), PATCH("{'op':'add','path':'/a','value':1}")), true},
	{"{'a':2}", AT("op-0", "1.5") ",'x':" AT("x", "1"),
	    RECORD(OTHER, "1", "op", AT("op-0", "1.5"), PATCH("{'op':'add','path':'/a','value':1}")), false},
};

/* A change of the context is as little to be destroyed as an outcome. */
static void
test_checkpoint_forms__compaction_keeps_contexts_that_only_the_journal_has(void **unused)
{
	struct fixture fx;
	struct ckpt_options o;
	struct ckpt_report r;
	struct json *before = NULL;
	struct err e = {0};
	char base[2048];
	size_t i;

	(void)unused;
	fixture_make(&fx);
	o = fixture_options(&fx, NULL);
	for (i = 0; i < sizeof(stale_contexts) / sizeof(stale_contexts[0]); i++) {
		snprintf(base, sizeof(base), "{'version':3,'generation':'" G "','journal_seq':0,'session_id':null,"
		    "'prompt':null,'plan':" PLAN ",'config':{},'flow_context':%s,'ops':{'op-0':%s},'spawned':[]}",
		    stale_contexts[i].context, stale_contexts[i].op);
		put(fx.run_fd, base, stale_contexts[i].journal);
		assert_works(ckpt_load(fx.run_fd, NULL, &before, &r, &e), e);
		if (stale_contexts[i].held) {
			assert_works(ckpt_compact(&o, &r, &e), e);
			assert_loads(fx.run_fd, before, CKPT_CLEAN);
		} else {
			assert_fails(ckpt_compact(&o, &r, &e), ERR_REFUSED, e);
			assert_loads(fx.run_fd, before, CKPT_RECOVERED_PREFIX);
		}
		json_unref(before);
	}
	fixture_remove(&fx);
}

/* ---- Digests ---- */

static void
test_checkpoint_forms__digests(void **unused)
{
	struct json *v = fixture_json("'abc'");
	char a[CKPT_DIGEST_TEXT], b[CKPT_DIGEST_TEXT];
	struct fixture fx;
	struct err e = {0};
	uint64_t size = 0;
	int fd;

	(void)unused;
	fixture_make(&fx);
	test_file_write(fx.run_fd, "f", "abc");
	fd = openat(fx.run_fd, "f", O_RDONLY | O_CLOEXEC);
	assert_works(ckpt_digest_file(fd, b, &size, &e), e);
	/* RFC 7693, appendix A: BLAKE2b-512 of "abc". */
	assert_string_equal(b, "blake2b:ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1"
	    "7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923");
	assert_int_equal(size, 3);
	fd_close(&fd);
	test_file_write(fx.run_fd, "f", "\"abc\"");
	fd = openat(fx.run_fd, "f", O_RDONLY | O_CLOEXEC);
	assert_works(ckpt_digest_file(fd, b, &size, &e), e);
	assert_works(ckpt_digest(v, a, &e), e);
	assert_string_equal(a, b);
	fd_close(&fd);
	json_unref(v);
	fixture_remove(&fx);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_checkpoint_forms__version_2_migrates_without_loss),
	cmocka_unit_test(test_checkpoint_forms__version_2_comes_back_whole),
	cmocka_unit_test(test_checkpoint_forms__version_2_is_no_base_in_disguise),
	cmocka_unit_test(test_checkpoint_forms__new_pairs_never_replace),
	cmocka_unit_test(test_checkpoint_forms__compaction_keeps_the_state),
	cmocka_unit_test(test_checkpoint_forms__compaction_keeps_what_only_the_journal_has),
	cmocka_unit_test(test_checkpoint_forms__compaction_keeps_contexts_that_only_the_journal_has),
	cmocka_unit_test(test_checkpoint_forms__digests),
};

TEST_MAIN("forms of checkpoints", tests)
