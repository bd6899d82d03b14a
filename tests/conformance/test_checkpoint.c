/*
 * Readings of checkpoints: every refusal, every recovery, and their neighbours that are fine. The
 * files are written as in flowsup-checkpoint(5); ' stands for ".
 */
#include "ckpt_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define G "0123456789abcdef0123456789abcdef"
#define OTHER "fedcba9876543210fedcba9876543210"
#define PLAN "[{'agent_id':'op-0','dep_indices':[],'run':'true','node_id':'" G "'}]"
#define BASE_WITH(version, plan, context, ops, spawned)                                            \
	"{'version':" version ",'generation':'" G "','journal_seq':0,'session_id':'s','prompt':'p',"   \
	"'plan':" plan ",'config':{'unknown':1},'flow_context':" context ",'ops':" ops ",'spawned':"   \
	spawned "}\n"
#define BASE BASE_WITH("3", PLAN, "{'k':[1]}", "{}", "[]")
#define OP(id) "{'agent_id':'" id "','status':'completed','response':'r'}"
#define NODE(id) "{'node_id':'" id "','status':'completed','response':'r'}"
#define PENDING(id) "{'node_id':'" id "','status':'pending','response':null}"
#define RECORD(generation, seq, kind, entry, context)                                              \
	"{'version':3,'generation':'" generation "','seq':" seq ",'kind':'" kind "','entry':" entry    \
	",'flow_context':" context "}\n"
#define R(seq, entry, context) RECORD(G, seq, "op", entry, context)
#define FIRST R("1", OP("op-0"), "null")
#define PATCH(text) "{'patch':[" text "]}"
#define V2_WITH(version, plan, spawned, more)                                                      \
	"{" version "'session_id':'s','prompt':'p','plan':" plan ",'flow_context':{'k':1},'ops':{'op-0':"  \
	OP("op-0") "},'spawned':" spawned ",'config':{'model_spec':'m','max_ops':0},'max_spawn':20" more "}"
#define V2_PLAN                                                                                    \
	"[{'task':'t','assignee':'a','inputs':[],'exit_criteria':null,'depends_on':[],'modes':[],"     \
	"'agent_id':'op-0','dep_indices':[]}]"

static char *
quoted(const char *text)
{
	char *copy = text != NULL ? strdup(text) : NULL;
	char *p;

	for (p = copy; p != NULL && *p != '\0'; p++)
		if (*p == '\'')
			*p = '"';
	return copy;
}

static void
put(int run_fd, const char *base, const char *journal)
{
	char *b = quoted(base), *j = quoted(journal);

	put_pair(run_fd, b, j);
	free(b);
	free(j);
}

/* ---- Refusals ---- */

struct refused {
	const char *name, *base, *journal, *reason;
	int prefix; /* records applied before; -1: the base was refused */
};

#define BAD_BASE(name, base, reason) {name, base, "", reason, -1}
#define ENTRY_WITH(name, member, reason)                                                           \
	BAD_LINE(name, R("2", "{'agent_id':'op-0','status':'completed','response':1," member "}", "null"), \
	    reason)
#define BAD_LINE(name, line, reason) {name, BASE, FIRST line, reason, 1}

static const struct refused refusals[] = {
	BAD_BASE("empty base", "", "empty"),
	BAD_BASE("blank base", " \n", "empty"),
	BAD_BASE("cut base", "{'version':3,", "truncated"),
	BAD_BASE("not an object", "[]", "wrong_type"),
	BAD_BASE("text behind", BASE "x", "trailing_text"),
	BAD_BASE("second value behind", BASE "{}", "trailing_text"),
	BAD_BASE("trailing comma", "{'version':3,}", "syntax"),
	BAD_BASE("real version", BASE_WITH("3.0", PLAN, "{}", "{}", "[]"), "unknown_version"),
	BAD_BASE("string version", BASE_WITH("'3'", PLAN, "{}", "{}", "[]"), "unknown_version"),
	BAD_BASE("true version", BASE_WITH("true", PLAN, "{}", "{}", "[]"), "unknown_version"),
	BAD_BASE("null version", BASE_WITH("null", PLAN, "{}", "{}", "[]"), "unknown_version"),
	BAD_BASE("version 4", BASE_WITH("4", PLAN, "{}", "{}", "[]"), "unknown_version"),
	BAD_BASE("version 0", BASE_WITH("0", PLAN, "{}", "{}", "[]"), "unknown_version"),
	BAD_BASE("huge version", BASE_WITH("99999999999999999999999", PLAN, "{}", "{}", "[]"),
	    "unknown_version"),
	BAD_BASE("base as version 2", BASE_WITH("2", PLAN, "{}", "{}", "[]"), "disguised_base"),
	BAD_BASE("base as version 1", BASE_WITH("1", PLAN, "{}", "{}", "[]"), "disguised_base"),
	BAD_BASE("base with renamed version", "{'Version':3,'generation':'" G "','journal_seq':0,"
	    "'plan':[],'flow_context':{},'ops':{}}", "disguised_base"),
	BAD_BASE("two versions", "{'version':3,'version':2}", "duplicate_member"),
	BAD_BASE("two versions, equal after unescaping", "{'version':3,'versi\\u006fn':2}",
	    "duplicate_member"),
	BAD_BASE("version 2 with two versions", V2_WITH("'version':2,'version':2,", V2_PLAN, "[]", ""),
	    "duplicate_member"),
	BAD_BASE("version 2 with an escaped second version",
	    V2_WITH("'version':2,'\\u0076ersion':2,", V2_PLAN, "[]", ""), "duplicate_member"),
	BAD_BASE("duplicate deep in a base", BASE_WITH("3", PLAN, "{'a':{'b':1,'b':2}}", "{}", "[]"),
	    "duplicate_member"),
	BAD_BASE("duplicate operation", BASE_WITH("3", PLAN, "{}", "{'op-0':" OP("op-0")
	    ",'op-\\u0030':" OP("op-0") "}", "[]"), "duplicate_member"),
	BAD_BASE("unknown top member", "{'version':3,'generation':'" G "','journal_seq':0,"
	    "'session_id':'s','prompt':'p','plan':[],'config':{},'flow_context':{},'ops':{},"
	    "'spawned':[],'extra':1}", "unknown_member"),
	BAD_BASE("missing config", "{'version':3,'generation':'" G "','journal_seq':0,"
	    "'session_id':'s','prompt':'p','plan':[],'flow_context':{},'ops':{},'spawned':[]}",
	    "missing_member"),
	BAD_BASE("short generation", "{'version':3,'generation':'abc','journal_seq':0,"
	    "'session_id':'s','prompt':'p','plan':[],'config':{},'flow_context':{},'ops':{},"
	    "'spawned':[]}", "bad_generation"),
	BAD_BASE("capital generation", "{'version':3,'generation':'0123456789ABCDEF0123456789abcdef',"
	    "'journal_seq':0,'session_id':'s','prompt':'p','plan':[],'config':{},'flow_context':{},"
	    "'ops':{},'spawned':[]}", "bad_generation"),
	BAD_BASE("journal_seq not 0", "{'version':3,'generation':'" G "','journal_seq':1,"
	    "'session_id':'s','prompt':'p','plan':[],'config':{},'flow_context':{},'ops':{},"
	    "'spawned':[]}", "bad_journal_seq"),
	BAD_BASE("context is an array", BASE_WITH("3", PLAN, "[]", "{}", "[]"), "wrong_type"),
	BAD_BASE("ops is an array", BASE_WITH("3", PLAN, "{}", "[]", "[]"), "wrong_type"),
	BAD_BASE("spawned is an object", BASE_WITH("3", PLAN, "{}", "{}", "{}"), "wrong_type"),
	BAD_BASE("plan is null", BASE_WITH("3", "null", "{}", "{}", "[]"), "wrong_type"),
	BAD_BASE("plan entry is text", BASE_WITH("3", "['x']", "{}", "{}", "[]"), "wrong_type"),
	BAD_BASE("plan entry with an unknown member", BASE_WITH("3",
	    "[{'agent_id':'a','dep_indices':[],'future':1}]", "{}", "{}", "[]"), "unknown_plan_member"),
	BAD_BASE("version 2 plan entry with an unknown member", V2_WITH("'version':2,",
	    "[{'agent_id':'a','dep_indices':[],'future':1}]", "[]", ""), "unknown_plan_member"),
	BAD_BASE("dep_indices of reals", BASE_WITH("3", "[{'agent_id':'a','dep_indices':[1.0]}]", "{}",
	    "{}", "[]"), "wrong_type"),
	BAD_BASE("op under another name", BASE_WITH("3", PLAN, "{}", "{'x':" OP("op-0") "}", "[]"),
	    "misplaced_entry"),
	BAD_BASE("spawned entry in ops", BASE_WITH("3", PLAN, "{}", "{'n':" NODE("n") "}", "[]"),
	    "foreign_identity"),
	BAD_BASE("op in spawned", BASE_WITH("3", PLAN, "{}", "{}", "[" OP("op-0") "]"),
	    "foreign_identity"),
	BAD_BASE("two spawned entries of one node", BASE_WITH("3", PLAN, "{}", "{}", "[" NODE("n") ","
	    NODE("n") "]"), "repeated_identity"),
	BAD_BASE("number that is not finite", BASE_WITH("3", PLAN, "{'a':1e999}", "{}", "[]"),
	    "not_finite"),
	BAD_BASE("invalid UTF-8", BASE_WITH("3", PLAN, "{'a':'\xff'}", "{}", "[]"), "invalid_utf8"),
	BAD_BASE("unguarded splice", V2_WITH("'version':2,", V2_PLAN,
	    "[{'node_id':'n','status':'failed','response':null,'escalated_from':'m'}]", ""),
	    "unguarded_splice"),
	{"missing journal", BASE, NULL, "missing_journal", -1},
	BAD_LINE("blank line", "\n", "empty"),
	BAD_LINE("not JSON", "nonsense\n", "syntax"),
	BAD_LINE("cut but terminated", "{'version':3,\n", "truncated"),
	BAD_LINE("damaged in the middle", "{'version':3\001\n" R("3", OP("op-0"), "null"), "syntax"),
	BAD_LINE("damaged, and torn behind it", "nonsense\n" "{'version':", "syntax"),
	BAD_LINE("two values on a line", R("2", OP("op-0"), "null,"), "syntax"),
	BAD_LINE("not an object", "[]\n", "wrong_type"),
	BAD_LINE("record of version 2", "{'version':2,'generation':'" G "','seq':2,'kind':'op','entry':"
	    OP("op-0") ",'flow_context':null}\n", "unknown_version"),
	BAD_LINE("record of version 3.0", "{'version':3.0,'generation':'" G "','seq':2,'kind':'op',"
	    "'entry':" OP("op-0") ",'flow_context':null}\n", "unknown_version"),
	BAD_LINE("no version", "{'generation':'" G "','seq':2,'kind':'op','entry':" OP("op-0")
	    ",'flow_context':null}\n", "missing_member"),
	BAD_LINE("no context", "{'version':3,'generation':'" G "','seq':2,'kind':'op','entry':"
	    OP("op-0") "}\n", "missing_member"),
	BAD_LINE("a seventh member", "{'version':3,'generation':'" G "','seq':2,'kind':'op','entry':"
	    OP("op-0") ",'flow_context':null,'time':0}\n", "unknown_member"),
	BAD_LINE("duplicate in the record", "{'version':3,'version':3,'generation':'" G "','seq':2,"
	    "'kind':'op','entry':" OP("op-0") ",'flow_context':null}\n", "duplicate_member"),
	BAD_LINE("duplicate in the entry", R("2", "{'agent_id':'op-0','status':'completed',"
	    "'response':1,'resp\\u006fnse':2}", "null"), "duplicate_member"),
	BAD_LINE("duplicate in the value", R("2", "{'agent_id':'op-0','status':'completed',"
	    "'response':{'a':1,'\\u0061':2}}", "null"), "duplicate_member"),
	BAD_LINE("duplicate in an operation", R("2", OP("op-0"),
	    PATCH("{'op':'add','op':'add','path':'/x','value':1}")), "duplicate_member"),
	BAD_LINE("duplicate in a patch value", R("2", OP("op-0"),
	    PATCH("{'op':'add','path':'/x','value':{'a':1,'a':1}}")), "duplicate_member"),
	BAD_LINE("gap", R("3", OP("op-0"), "null"), "sequence_gap"),
	BAD_LINE("repeat", R("1", OP("op-0"), "null"), "sequence_repeat"),
	BAD_LINE("number 0", R("0", OP("op-0"), "null"), "bad_sequence"),
	BAD_LINE("negative number", R("-1", OP("op-0"), "null"), "bad_sequence"),
	BAD_LINE("number above 2^63-1", R("9223372036854775808", OP("op-0"), "null"), "bad_sequence"),
	BAD_LINE("real number", R("2.0", OP("op-0"), "null"), "wrong_type"),
	BAD_LINE("bad generation", RECORD("zz", "2", "op", OP("op-0"), "null"), "bad_generation"),
	BAD_LINE("unknown kind", RECORD(G, "2", "context", OP("op-0"), "null"), "unknown_kind"),
	BAD_LINE("op record with a node", RECORD(G, "2", "op", NODE("n"), "null"), "foreign_identity"),
	BAD_LINE("spawned record with an op", RECORD(G, "2", "spawned", OP("op-0"), "null"),
	    "foreign_identity"),
	BAD_LINE("entry is text", R("2", "'x'", "null"), "wrong_type"),
	BAD_LINE("no identity", R("2", "{'status':'completed','response':1}", "null"),
	    "missing_identity"),
	BAD_LINE("no identity of what was added", RECORD(G, "2", "spawned", "{'status':'completed','response':1}",
	    "null"), "missing_identity"),
	BAD_LINE("empty identity", R("2", "{'agent_id':'','status':'completed','response':1}", "null"),
	    "missing_identity"),
	BAD_LINE("identity is a number", R("2", "{'agent_id':1,'status':'completed','response':1}",
	    "null"), "wrong_type"),
	BAD_LINE("no response", R("2", "{'agent_id':'op-0','status':'completed'}", "null"),
	    "missing_member"),
	BAD_LINE("no status", R("2", "{'agent_id':'op-0','response':1}", "null"), "missing_member"),
	BAD_LINE("unknown status", R("2", "{'agent_id':'op-0','status':'done','response':1}", "null"),
	    "unknown_status"),
	BAD_LINE("pending op", R("2", "{'agent_id':'op-0','status':'pending','response':null}", "null"),
	    "unknown_status"),
	BAD_LINE("pending with a response", RECORD(G, "2", "spawned",
	    "{'node_id':'n','status':'pending','response':''}", "null"), "pending_response"),
	BAD_LINE("attempts is a real", R("2", "{'agent_id':'op-0','status':'completed','response':1,"
	    "'attempts':1.0}", "null"), "wrong_type"),
	BAD_LINE("digest is a number", R("2", "{'agent_id':'op-0','status':'completed','response':1,"
	    "'result_digest':1}", "null"), "wrong_type"),
	ENTRY_WITH("lossy is text", "'response_lossy':'yes'", "wrong_type"),
	ENTRY_WITH("literal is text", "'response_literal':'yes'", "wrong_type"),
	ENTRY_WITH("turns is text", "'turns':'2'", "wrong_type"),
	ENTRY_WITH("turns below 0", "'turns':-1", "out_of_range"),
	ENTRY_WITH("attempts below 0", "'attempts':-1", "out_of_range"),
	ENTRY_WITH("attempts above 2^63-1", "'attempts':9223372036854775808", "out_of_range"),
	ENTRY_WITH("attempt_path is a number", "'attempt_path':1", "wrong_type"),
	ENTRY_WITH("attempt_path leads out", "'attempt_path':'ops/../../x'", "bad_path"),
	ENTRY_WITH("artifacts of texts", "'artifacts':['made.txt']", "wrong_type"),
	ENTRY_WITH("artifact without a path", "'artifacts':[{'size':1}]", "missing_member"),
	ENTRY_WITH("artifact of a negative size", "'artifacts':[{'path':'a','size':-1}]", "out_of_range"),
	ENTRY_WITH("artifact with a digest that is a number", "'artifacts':[{'path':'a','digest':1}]",
	    "wrong_type"),
	ENTRY_WITH("artifact that leads out", "'artifacts':[{'path':'../a'}]", "bad_path"),
	ENTRY_WITH("artifact with an absolute path", "'artifacts':[{'path':'/a'}]", "bad_path"),
	ENTRY_WITH("output_as is another word", "'output_as':'x'", "unknown_output"),
	ENTRY_WITH("output_as is empty", "'output_as':{}", "missing_member"),
	ENTRY_WITH("output_as without a digest", "'output_as':{'file':'ops/a.1.out','size':1}",
	    "missing_member"),
	ENTRY_WITH("output_as of a negative size", "'output_as':{'file':'a','size':-1,'digest':'d'}",
	    "out_of_range"),
	ENTRY_WITH("output_as with a file that is a number", "'output_as':{'file':1,'size':1,'digest':'d'}",
	    "wrong_type"),
	ENTRY_WITH("output_as that leads out", "'output_as':{'file':'../a','size':1,'digest':'d'}",
	    "bad_path"),
	ENTRY_WITH("output_as that leads out further on",
	    "'output_as':{'file':'ops/../../a','size':1,'digest':'d'}", "bad_path"),
	ENTRY_WITH("output_as without a name", "'output_as':{'file':'','size':1,'digest':'d'}", "bad_path"),
	ENTRY_WITH("output_as with a NUL", "'output_as':{'file':'a\\u0000','size':1,'digest':'d'}",
	    "bad_path"),
	BAD_LINE("expected artifacts are numbers", RECORD(G, "2", "spawned", "{'node_id':'n',"
	    "'status':'pending','response':null,'artifacts_expected':[1]}", "null"), "wrong_type"),
	BAD_LINE("expected artifact leads out", RECORD(G, "2", "spawned", "{'node_id':'n',"
	    "'status':'pending','response':null,'artifacts_expected':['../x']}", "null"), "bad_path"),
	BAD_LINE("context is an array", R("2", OP("op-0"), "[]"), "wrong_type"),
	BAD_LINE("context without patch", R("2", OP("op-0"), "{}"), "missing_member"),
	BAD_LINE("context with more than a patch", R("2", OP("op-0"), "{'patch':[],'full':{}}"),
	    "unknown_member"),
	BAD_LINE("patch is an object", R("2", OP("op-0"), "{'patch':{}}"), "wrong_type"),
	BAD_LINE("operation test", R("2", OP("op-0"), PATCH("{'op':'test','path':'/k','value':1}")),
	    "bad_patch"),
	BAD_LINE("operation move", R("2", OP("op-0"), PATCH("{'op':'move','path':'/a','from':'/k'}")),
	    "bad_patch"),
	BAD_LINE("operation with a stray member", R("2", OP("op-0"),
	    PATCH("{'op':'remove','path':'/k','value':1}")), "bad_patch"),
	BAD_LINE("operation without value", R("2", OP("op-0"), PATCH("{'op':'add','path':'/x'}")),
	    "bad_patch"),
	BAD_LINE("pointer without slash", R("2", OP("op-0"),
	    PATCH("{'op':'add','path':'x','value':1}")), "bad_patch"),
	BAD_LINE("pointer with a bad tilde", R("2", OP("op-0"),
	    PATCH("{'op':'add','path':'/~2','value':1}")), "bad_patch"),
	BAD_LINE("add of an existing member", R("2", OP("op-0"),
	    PATCH("{'op':'add','path':'/k','value':1}")), "inapplicable_patch"),
	BAD_LINE("remove of a missing member", R("2", OP("op-0"), PATCH("{'op':'remove','path':'/x'}")),
	    "inapplicable_patch"),
	BAD_LINE("replace of a missing member", R("2", OP("op-0"),
	    PATCH("{'op':'replace','path':'/x','value':1}")), "inapplicable_patch"),
	BAD_LINE("index behind the end", R("2", OP("op-0"),
	    PATCH("{'op':'add','path':'/k/2','value':1}")), "inapplicable_patch"),
	BAD_LINE("good operation, then a bad one", R("2", OP("late"),
	    PATCH("{'op':'add','path':'/x','value':1},{'op':'remove','path':'/y'}")),
	    "inapplicable_patch"),
	{"malformed stale record", BASE, RECORD(OTHER, "1", "op", "{'agent_id':'a'}", "null"),
	    "missing_member", 0},
};

/* The prefix is what the base and the one good record make. */
static void
check_prefix(const struct refused *c, const struct json *state)
{
	if (c->prefix < 0) {
		assert_null(state);
		return;
	}
	assert_non_null(state);
	assert_int_equal(json_length(json_get(state, "ops")), c->prefix);
	assert_null(json_get(json_get(state, "ops"), "late"));
	assert_null(json_get(json_get(state, "flow_context"), "x"));
}

static void
test_checkpoint__refusals(void **unused)
{
	struct fixture fx;
	size_t i;

	(void)unused;
	fixture_make(&fx);
	for (i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		const struct refused *c = &refusals[i];
		struct ckpt_report r;
		struct json *state = NULL;
		struct err e = {0};

		put(fx.run_fd, c->base, c->journal);
		if (ckpt_load(fx.run_fd, NULL, &state, &r, &e) != -1 || e.code != ERR_CHECKPOINT ||
		    r.status != CKPT_REFUSED || strcmp(r.reason, c->reason) != 0)
			fail_msg("%s: status %s, reason '%s', wanted '%s'; %s", c->name,
			    ckpt_status_name(r.status), r.reason, c->reason, e.msg);
		assert_string_equal(r.position_file, c->prefix >= 0 || c->journal == NULL ?
		    CKPT_JOURNAL : CKPT_BASE);
		if (c->prefix == 1 && (r.position_line != 2 || r.position_offset < 1))
			fail_msg("%s: line %d", c->name, (int)r.position_line);
		assert_int_equal(r.records_applied, c->prefix < 0 ? -1 : c->prefix);
		/* Nobody looked behind what was refused, so nothing is said of a tail. */
		assert_int_equal(r.discarded_tail_bytes, -1);
		assert_int_equal(r.in_progress_bytes, -1);
		check_prefix(c, state);
		json_unref(state);
	}
	print_message("# %zu refusals\n", i);
	fixture_remove(&fx);
}

/* ---- Fine, or recovered ---- */

struct accepted {
	const char *name, *base, *journal, *reason;
	enum ckpt_status status;
	int applied, stale, tail;
	const char *state; /* NULL: not compared */
};

#define STATE_WITH(context, ops, spawned)                                                          \
	"{'session_id':'s','prompt':'p','plan':" PLAN ",'config':{'unknown':1},'flow_context':" context \
	",'ops':" ops ",'spawned':" spawned "}"

static const struct accepted acceptances[] = {
	{"base alone", BASE, "", "", CKPT_CLEAN, 0, 0, 0, STATE_WITH("{'k':[1]}", "{}", "[]")},
	{"one record", BASE, FIRST, "", CKPT_CLEAN, 1, 0, 0,
	    STATE_WITH("{'k':[1]}", "{'op-0':" OP("op-0") "}", "[]")},
	{"record with other order and spacing", BASE,
	    "{ 'seq' : 1, 'kind':'op','flow_context':{'patch': []},'generation':'" G "',\t'version':3,"
	    "'entry':" OP("op-0") "} \r\n", "", CKPT_CLEAN, 1, 0, 0,
	    STATE_WITH("{'k':[1]}", "{'op-0':" OP("op-0") "}", "[]")},
	{"names that only look alike", BASE, R("1", "{'agent_id':'op-0','status':'completed',"
	    "'response':{'a':1,'A':2,'a ':3,'\\u00e0':4,'a\\u0300':5}}", "null"), "", CKPT_CLEAN, 1, 0,
	    0, NULL},
	{"patches", BASE, R("1", OP("op-0"), PATCH("{'op':'add','path':'/k/-','value':2},"
	    "{'op':'add','path':'/k/0','value':0},{'op':'add','path':'/~1~0','value':{}},"
	    "{'op':'add','path':'/~1~0/','value':null}")) R("2", OP("op-0"),
	    PATCH("{'op':'replace','path':'/k/1','value':1.0},{'op':'remove','path':'/k/0'}")), "",
	    CKPT_CLEAN, 2, 0, 0,
	    STATE_WITH("{'k':[1.0,2],'/~':{'':null}}", "{'op-0':" OP("op-0") "}", "[]")},
	{"root replaced", BASE, R("1", OP("op-0"), PATCH("{'op':'replace','path':'','value':{'z':1}}")),
	    "", CKPT_CLEAN, 1, 0, 0, STATE_WITH("{'z':1}", "{'op-0':" OP("op-0") "}", "[]")},
	{"repeated identity keeps its place", BASE,
	    RECORD(G, "1", "spawned", "{'node_id':'n','status':'pending','response':null}", "null")
	    RECORD(G, "2", "spawned", NODE("m"), "null") RECORD(G, "3", "spawned", NODE("n"), "null"),
	    "", CKPT_CLEAN, 3, 0, 0, STATE_WITH("{'k':[1]}", "{}", "[" NODE("n") "," NODE("m") "]")},
	{"torn before LF", BASE, FIRST "{'version':3,'gene", "torn_tail", CKPT_RECOVERED_PREFIX, 1, 0,
	    18, STATE_WITH("{'k':[1]}", "{'op-0':" OP("op-0") "}", "[]")},
	{"whole but for its LF", BASE, FIRST "{'version':3,'generation':'" G "','seq':2,'kind':'op',"
	    "'entry':" OP("op-1") ",'flow_context':null}", "torn_tail", CKPT_RECOVERED_PREFIX, 1, 0,
	    165, STATE_WITH("{'k':[1]}", "{'op-0':" OP("op-0") "}", "[]")},
	{"interrupted reset", BASE, RECORD(OTHER, "1", "op", OP("op-0"), "null")
	    RECORD(OTHER, "2", "op", OP("op-1"), PATCH("{'op':'remove','path':'/gone'}")),
	    "stale_records", CKPT_RECOVERED_PREFIX, 0, 2, 0, STATE_WITH("{'k':[1]}", "{}", "[]")},
	{"stale and good", BASE, RECORD(OTHER, "7", "op", OP("op-1"), "null") FIRST, "stale_records",
	    CKPT_RECOVERED_PREFIX, 1, 1, 0,
	    STATE_WITH("{'k':[1]}", "{'op-0':" OP("op-0") "}", "[]")},
	{"version 2", V2_WITH("'version':2,", V2_PLAN, "[]", ",'extra':{'a':[1.0]}"), NULL, "",
	    CKPT_CLEAN, -1, -1, -1, V2_WITH("", V2_PLAN, "[]", ",'extra':{'a':[1.0]}")},
	{"version 2 beside a stray journal", V2_WITH("'version':2,", V2_PLAN, "[]", ""), "junk\n", "",
	    CKPT_CLEAN, -1, -1, -1, V2_WITH("", V2_PLAN, "[]", "")},
	{"version 2, last one wins", V2_WITH("'version':2,'prompt':'old',", V2_PLAN, "[]",
	    ",'x':{'a':1,'a':2}"), NULL, "", CKPT_CLEAN, -1, -1, -1,
	    V2_WITH("", V2_PLAN, "[]", ",'x':{'a':2}")},
	{"version 2 with generation as a stranger's member", V2_WITH("'version':2,", V2_PLAN, "[]",
	    ",'generation':7"), NULL, "", CKPT_CLEAN, -1, -1, -1,
	    V2_WITH("", V2_PLAN, "[]", ",'generation':7")},
	{"guarded splice", V2_WITH("'version':2,", V2_PLAN, "[{'node_id':'n','status':'failed',"
	    "'response':null,'escalated_from':'m'},{'node_id':'o','status':'pending','response':null}]",
	    ""), NULL, "", CKPT_CLEAN, -1, -1, -1, NULL},
	{"version 1", V2_WITH("'version':1,", V2_PLAN, "[]", ""), NULL, "", CKPT_CLEAN, -1, -1, -1,
	    V2_WITH("", V2_PLAN, "[]", "")},
	{"no version", V2_WITH("", V2_PLAN, "[]", ""), NULL, "", CKPT_CLEAN, -1, -1, -1,
	    V2_WITH("", V2_PLAN, "[]", "")},
	{"no version, no config, nothing spawned", "{'plan':[],'flow_context':{},'ops':{}}", NULL, "",
	    CKPT_CLEAN, -1, -1, -1, "{'plan':[],'flow_context':{},'ops':{}}"},
	{"lone surrogate", V2_WITH("'version':2,", V2_PLAN, "[]", ",'x':'\\ud800'"), NULL, "",
	    CKPT_CLEAN, -1, -1, -1, V2_WITH("", V2_PLAN, "[]", ",'x':'\\ud800'")},
};

static void
compare_state(const struct accepted *c, const struct json *state)
{
	struct json *want;

	if (c->state == NULL)
		return;
	want = fixture_json(c->state);
	if (!json_equal(state, want)) {
		struct buf b = {0};

		json_write(&b, state);
		fail_msg("%s: loaded %s", c->name, buf_text(&b));
	}
	json_unref(want);
}

static void
test_checkpoint__acceptances(void **unused)
{
	struct fixture fx;
	size_t i;

	(void)unused;
	fixture_make(&fx);
	for (i = 0; i < sizeof(acceptances) / sizeof(acceptances[0]); i++) {
		const struct accepted *c = &acceptances[i];
		struct ckpt_report r;
		struct json *state = NULL;
		struct err e = {0};

		put(fx.run_fd, c->base, c->journal);
		if (ckpt_load(fx.run_fd, NULL, &state, &r, &e) != 0)
			fail_msg("%s: %s", c->name, e.msg);
		if (r.status != c->status || strcmp(r.reason, c->reason) != 0)
			fail_msg("%s: %s '%s'", c->name, ckpt_status_name(r.status), r.reason);
		if (r.records_applied != c->applied || r.stale_records != c->stale ||
		    r.discarded_tail_bytes != c->tail)
			fail_msg("%s: applied %d stale %d tail %d", c->name, (int)r.records_applied,
			    (int)r.stale_records, (int)r.discarded_tail_bytes);
		compare_state(c, state);
		json_unref(state);
	}
	print_message("# %zu acceptances\n", i);
	fixture_remove(&fx);
}

/* While a worker lives it may stand between a new base and its empty journal. */
static void
test_checkpoint__reset_in_progress(void **unused)
{
	static const char old[] = RECORD(OTHER, "1", "op", OP("op-0"), "null");
	static const struct {
		const char *journal;
		bool live;
		enum ckpt_status status;
		int stale;
	} cases[] = {
		{old, true, CKPT_CLEAN, 1}, {old, false, CKPT_RECOVERED_PREFIX, 1},
		/* With a record of its own behind it, no live writer left that. */
		{RECORD(OTHER, "1", "op", OP("op-0"), "null") FIRST, true, CKPT_RECOVERED_PREFIX, 1},
		{FIRST, true, CKPT_CLEAN, 0},
	};
	struct fixture fx;
	size_t i;

	(void)unused;
	fixture_make(&fx);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct ckpt_load_options o = {.lock_held = cases[i].live};
		struct ckpt_report r;
		struct json *state = NULL;
		struct err e = {0};

		put(fx.run_fd, BASE, cases[i].journal);
		assert_works(ckpt_load(fx.run_fd, &o, &state, &r, &e), e);
		assert_int_equal(r.status, cases[i].status);
		assert_string_equal(r.reason, cases[i].status == CKPT_CLEAN ? "" : "stale_records");
		assert_int_equal(r.stale_records, cases[i].stale);
		json_unref(state);
	}
	fixture_remove(&fx);
}

/* While a worker lives an unterminated last line is an append in progress. */
static void
test_checkpoint__append_in_progress(void **unused)
{
	const struct ckpt_load_options live = {.lock_held = true};
	struct fixture fx;
	struct ckpt_report r;
	struct json *state = NULL;
	struct err e = {0};

	(void)unused;
	fixture_make(&fx);
	put(fx.run_fd, BASE, FIRST "{'ver");
	assert_works(ckpt_load(fx.run_fd, &live, &state, &r, &e), e);
	assert_int_equal(r.status, CKPT_CLEAN);
	assert_int_equal(r.in_progress_bytes, 5);
	assert_int_equal(r.discarded_tail_bytes, 0);
	assert_string_equal(r.reason, "");
	json_unref(state);
	fixture_remove(&fx);
}

/* ---- Depth ---- */

/* `levels` arrays, one in another. */
static const char *
arrays(unsigned levels)
{
	static char text[2 * JSON_MAX_DEPTH + 3];

	assert_in_range(levels, 1, JSON_MAX_DEPTH + 1);
	memset(text, '[', levels);
	memset(text + levels, ']', levels);
	text[2 * levels] = '\0';
	return text;
}

enum { AS_RESPONSE, AS_CONTEXT, AS_REPLACED_CONTEXT, AS_BASE_RESPONSE, AS_BASE_CONTEXT, AS_UNKNOWN,
	AS_TAKEN, PLACES };

/* The text with the value in place of its @, if it has one. */
static char *
with_value(const char *text, const char *value)
{
	const char *at = strchr(text, '@');
	struct buf b = {0};

	buf_puts(&b, text);
	if (at != NULL) {
		b.len = (size_t)(at - text);
		buf_puts(&b, value);
		buf_puts(&b, at + 1);
	}
	return buf_steal(&b);
}

static void
put_nested(int run_fd, unsigned place, unsigned levels)
{
	static const char *const bases[PLACES] = {BASE, BASE_WITH("3", PLAN,
		    "{'b':{'c':{'d':{'e':{'f':{}}}}}}", "{}", "[]"), BASE,
		BASE_WITH("3", PLAN, "{}", "{'op-0':{'agent_id':'op-0','status':'completed','response':@}}",
		    "[]"),
		BASE_WITH("3", PLAN, "{'a':@}", "{}", "[]"),
		V2_WITH("'version':2,", V2_PLAN, "[]", ",'extra':@"),
		"{'version':2,'plan':[],'flow_context':{},'ops':{},'config':{'v2_members':@}}"};
	static const char *const lines[PLACES] = {
		R("1", "{'agent_id':'op-0','status':'completed','response':@}", "null"),
		R("1", OP("op-0"), PATCH("{'op':'add','path':'/b/c/d/e/f/g','value':@}")),
		R("1", OP("op-0"), PATCH("{'op':'replace','path':'','value':{'a':@}}")), "", "", "", ""};
	char *base = with_value(bases[place], arrays(levels)), *line = with_value(lines[place], arrays(levels));

	put(run_fd, base, line);
	free(base);
	free(line);
}

static bool
can_be_written(const struct fixture *fx, struct json *state, int format)
{
	struct ckpt_report r;
	struct err e = {0};
	int result;

	state = ckpt_migrate(state, format, &e);
	assert_non_null(state);
	fixture_again((struct fixture *)(uintptr_t)fx);
	result = ckpt_write_new(NULL, fx->run_fd, CKPT_BASE, 3, state, &e);
	json_unref(state);
	if (result == 0)
		result = ckpt_load(fx->run_fd, NULL, &state, &r, &e);
	if (result == 0)
		json_unref(state);
	return result == 0;
}

/* Reader and writer have one limit, wherever a value stands; and it is where the format has it. */
static void
test_checkpoint__what_is_read_can_be_written(void **unused)
{
	static const unsigned most[PLACES] = {JSON_MAX_DEPTH - 3, JSON_MAX_DEPTH - 7,
		JSON_MAX_DEPTH - 5 /* a line's own */, JSON_MAX_DEPTH - 3, JSON_MAX_DEPTH - 2, JSON_MAX_DEPTH - 3,
		JSON_MAX_DEPTH - 4};
	struct fixture fx;
	unsigned place, levels;

	(void)unused;
	fixture_make(&fx);
	for (place = 0; place < PLACES; place++)
		for (levels = most[place] - 3; levels <= JSON_MAX_DEPTH - 1; levels++) {
			struct json *state = NULL;
			struct ckpt_report r;
			struct err e = {0};
			bool read;

			fixture_again(&fx);
			put_nested(fx.run_fd, place, levels);
			read = ckpt_load(fx.run_fd, NULL, &state, &r, &e) == 0;
			if (read != (levels <= most[place]) ||
			    (!read && strcmp(r.reason, "too_deep") != 0))
				fail_msg("place %u, %u levels: read %d, '%s' %s", place, levels, read,
				    r.reason, e.msg);
			if (!read)
				json_unref(state);
			else if (!can_be_written(&fx, state, r.format))
				fail_msg("place %u, %u levels: read, and cannot be written", place, levels);
		}
	fixture_remove(&fx);
}

/* ---- What stands at the names ---- */

static void
plant(int run_fd, const char *name, const char *kind)
{
	assert_int_equal(renameat(run_fd, name, run_fd, "aside"), 0);
	if (strcmp(kind, "symlink") == 0)
		assert_int_equal(symlinkat("aside", run_fd, name), 0);
	else if (strcmp(kind, "fifo") == 0)
		assert_int_equal(mkfifoat(run_fd, name, 0600), 0);
	else if (strcmp(kind, "directory") == 0)
		assert_int_equal(mkdirat(run_fd, name, 0700), 0);
	else if (strcmp(kind, "socket") == 0)
		assert_int_equal(mknodat(run_fd, name, S_IFSOCK | 0600, 0), 0);
	else if (strcmp(kind, "link") == 0)
		assert_int_equal(linkat(run_fd, "aside", run_fd, name, 0), 0);
	else {
		assert_int_equal(renameat(run_fd, "aside", run_fd, name), 0);
		assert_int_equal(fchmodat(run_fd, name, 0622, 0), 0);
	}
}

static void
test_checkpoint__planted_objects_are_refused(void **unused)
{
	static const char *const names[] = {CKPT_BASE, CKPT_JOURNAL};
	static const char *const cases[][2] = {
		{"symlink", "not_regular"}, {"fifo", "not_regular"}, {"directory", "not_regular"},
		{"socket", "not_regular"}, {"link", "many_links"}, {"writable", "wrong_mode"},
	};
	struct fixture fx;
	size_t i, n;

	(void)unused;
	fixture_make(&fx);
	for (n = 0; n < 2; n++)
		for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			struct ckpt_report r;
			struct json *state = NULL;
			struct err e = {0};

			fixture_again(&fx);
			put(fx.run_fd, BASE, FIRST);
			plant(fx.run_fd, names[n], cases[i][0]);
			assert_fails(ckpt_load(fx.run_fd, NULL, &state, &r, &e), ERR_CHECKPOINT, e);
			assert_string_equal(r.reason, cases[i][1]);
			assert_string_equal(r.position_file, names[n]);
			assert_null(state);
		}
	fixture_remove(&fx);
}

static int
fstat_of_another(const struct fs_ops *fs, const char *what, int fd, struct stat *st)
{
	int rc = fs_real.fstat(fs, what, fd, st);

	st->st_uid++;
	return rc;
}

/* Each time a reader comes back to the base there is a new one. */
static int
openat_of_changing(const struct fs_ops *fs, const char *what, int dirfd, const char *path, int flags,
    mode_t mode)
{
	if (strcmp(what, "ckpt.load.reopen_base") == 0)
		put(dirfd, BASE, FIRST);
	return fs_real.openat(fs, what, dirfd, path, flags, mode);
}

static void
test_checkpoint__what_cannot_be_believed(void **unused)
{
	struct fs_ops others = fs_real, changing = fs_real;
	const struct {
		const struct fs_ops *fs;
		const char *reason;
		bool tried_again;
	} cases[] = {{&others, "wrong_owner", false}, {&changing, "incoherent", true}};
	struct json *state = NULL;
	struct ckpt_report r;
	struct err e = {0};
	struct fixture fx;
	size_t i;

	(void)unused;
	others.fstat = fstat_of_another;
	changing.openat = openat_of_changing;
	fixture_make(&fx);
	put(fx.run_fd, BASE, FIRST);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_fails(ckpt_load(fx.run_fd, &(struct ckpt_load_options){.fs = cases[i].fs}, &state, &r,
		    &e), ERR_CHECKPOINT, e);
		assert_string_equal(r.reason, cases[i].reason);
		assert_int_equal(r.coherence_retries, cases[i].tried_again ? 10 : 0);
		assert_null(state);
	}
	fixture_remove(&fx);
}

/* A pair under another name is reported by that name. */
static void
test_checkpoint__report_names_the_file_that_was_read(void **unused)
{
	static const struct {
		const char *base, *journal, *file;
	} cases[] = {
		{BASE "x", FIRST, "copy"}, {BASE, NULL, "copy.journal"}, {BASE, "x\n", "copy.journal"},
		{BASE, FIRST "x", "copy.journal"},
	};
	const struct ckpt_load_options named = {.base_name = "copy"};
	struct fixture fx;
	size_t i;

	(void)unused;
	fixture_make(&fx);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ckpt_report r;
		struct json *state = NULL;
		struct err e = {0};

		fixture_again(&fx);
		put(fx.run_fd, cases[i].base, cases[i].journal);
		assert_int_equal(renameat(fx.run_fd, CKPT_BASE, fx.run_fd, "copy"), 0);
		if (cases[i].journal != NULL)
			assert_int_equal(renameat(fx.run_fd, CKPT_JOURNAL, fx.run_fd, "copy.journal"), 0);
		(void)ckpt_load(fx.run_fd, &named, &state, &r, &e);
		assert_string_equal(r.position_file, cases[i].file);
		assert_null(strstr(e.msg, CKPT_BASE));
		json_unref(state);
	}
	fixture_remove(&fx);
}

static void
test_checkpoint__nothing_there(void **unused)
{
	struct fixture fx;
	struct ckpt_report r;
	struct json *state = NULL;
	struct err e = {0};

	(void)unused;
	fixture_make(&fx);
	assert_fails(ckpt_load(fx.run_fd, NULL, &state, &r, &e), ERR_NOTFOUND, e);
	put(fx.run_fd, NULL, "");
	assert_fails(ckpt_load(fx.run_fd, NULL, &state, &r, &e), ERR_NOTFOUND, e);
	assert_null(state);
	fixture_remove(&fx);
}

static void
test_checkpoint__size_limit(void **unused)
{
	const struct ckpt_load_options small = {.max_bytes = 100};
	struct fixture fx;
	struct ckpt_report r;
	struct json *state = NULL;
	struct err e = {0};

	(void)unused;
	fixture_make(&fx);
	put(fx.run_fd, BASE, FIRST);
	assert_fails(ckpt_load(fx.run_fd, &small, &state, &r, &e), ERR_CHECKPOINT, e);
	assert_string_equal(r.reason, "too_large");
	fixture_remove(&fx);
}

/* ---- The report ---- */

/* No word of prompt, response or context may reach a report or its error. */
static void
test_checkpoint__reports_hold_no_payload(void **unused)
{
	static const char *const journals[] = {
		R("1", "{'agent_id':'SECRET','status':'SECRET','response':'SECRET'}", "null"),
		R("1", "{'agent_id':'a','status':'completed','response':'SECRET','SECRET':1,'SECRET':1}",
		    "null"),
		R("1", OP("a"), PATCH("{'op':'SECRET','path':'SECRET','value':'SECRET'}")),
		R("1", OP("a"), PATCH("{'op':'remove','path':'/SECRET'}")),
		"SECRET\n", "'SECRET", FIRST "{'SECRET':\n",
	};
	struct fixture fx;
	size_t i;

	(void)unused;
	fixture_make(&fx);
	for (i = 0; i < sizeof(journals) / sizeof(journals[0]); i++) {
		struct ckpt_report r;
		struct json *state = NULL, *report;
		struct buf text = {0};
		struct err e = {0};

		put(fx.run_fd, BASE, journals[i]);
		ckpt_load(fx.run_fd, NULL, &state, &r, &e);
		report = ckpt_report_json(&r);
		json_write(&text, report);
		ckpt_report_line(&r, &text);
		buf_puts(&text, e.msg);
		if (strstr(buf_text(&text), "SECRET") != NULL)
			fail_msg("case %zu: %s", i, buf_text(&text));
		json_unref(report);
		json_unref(state);
		buf_clear(&text);
	}
	fixture_remove(&fx);
}

static void
test_checkpoint__report_has_every_member(void **unused)
{
	static const char *const members[] = {"report_version", "status", "format", "generation",
	    "base_bytes", "journal_bytes", "records_applied", "last_seq", "in_progress_bytes",
	    "stale_records", "discarded_tail_bytes", "coherence_retries", "reason", "position",
	    "directory_sync"};
	struct fixture fx;
	struct ckpt_report r;
	struct json *state = NULL, *report;
	struct err e = {0};
	size_t i;

	(void)unused;
	fixture_make(&fx);
	put(fx.run_fd, BASE, FIRST "{");
	assert_works(ckpt_load(fx.run_fd, NULL, &state, &r, &e), e);
	report = ckpt_report_json(&r);
	for (i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (json_get(report, members[i]) == NULL)
			fail_msg("`%s` is missing", members[i]);
	assert_int_equal(json_length(report), i);
	assert_int_equal(json_type(json_get(report, "directory_sync")), JSON_NULL);
	assert_string_equal(json_cstr_of(json_get(report, "generation")), G);
	json_unref(report);
	json_unref(state);
	fixture_remove(&fx);
}

/* ---- Migration ---- */

static void
test_checkpoint__version_2_migrates_without_loss(void **unused)
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
test_checkpoint__version_2_comes_back_whole(void **unused)
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
test_checkpoint__version_2_is_no_base_in_disguise(void **unused)
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
test_checkpoint__new_pairs_never_replace(void **unused)
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

static void
test_checkpoint__compaction_keeps_the_state(void **unused)
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
test_checkpoint__compaction_keeps_what_only_the_journal_has(void **unused)
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
test_checkpoint__compaction_keeps_contexts_that_only_the_journal_has(void **unused)
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

static void
test_checkpoint__digests(void **unused)
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
	cmocka_unit_test(test_checkpoint__refusals),
	cmocka_unit_test(test_checkpoint__acceptances),
	cmocka_unit_test(test_checkpoint__append_in_progress),
	cmocka_unit_test(test_checkpoint__reset_in_progress),
	cmocka_unit_test(test_checkpoint__what_is_read_can_be_written),
	cmocka_unit_test(test_checkpoint__report_names_the_file_that_was_read),
	cmocka_unit_test(test_checkpoint__planted_objects_are_refused),
	cmocka_unit_test(test_checkpoint__what_cannot_be_believed),
	cmocka_unit_test(test_checkpoint__nothing_there),
	cmocka_unit_test(test_checkpoint__size_limit),
	cmocka_unit_test(test_checkpoint__reports_hold_no_payload),
	cmocka_unit_test(test_checkpoint__report_has_every_member),
	cmocka_unit_test(test_checkpoint__version_2_migrates_without_loss),
	cmocka_unit_test(test_checkpoint__version_2_comes_back_whole),
	cmocka_unit_test(test_checkpoint__version_2_is_no_base_in_disguise),
	cmocka_unit_test(test_checkpoint__new_pairs_never_replace),
	cmocka_unit_test(test_checkpoint__compaction_keeps_the_state),
	cmocka_unit_test(test_checkpoint__compaction_keeps_what_only_the_journal_has),
	cmocka_unit_test(test_checkpoint__compaction_keeps_contexts_that_only_the_journal_has),
	cmocka_unit_test(test_checkpoint__digests),
};

TEST_MAIN("checkpoint files", tests)
