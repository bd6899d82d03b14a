/* Readings of checkpoints: every refusal, every recovery, and their neighbours that are fine; and what a
 * report says of them. */
#include "ckpt_text.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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
	BAD_BASE("two plan entries of one node", BASE_WITH("3", "[{'agent_id':'a','dep_indices':[],"
	    "'node_id':'n'},{'agent_id':'b','dep_indices':[],'node_id':'n'}]", "{}", "{}", "[]"),
	    "repeated_identity"),
	BAD_BASE("two plan entries of one node in version 2", V2_WITH("'version':2,",
	    "[{'agent_id':'a','dep_indices':[],'node_id':'n'},{'agent_id':'b','dep_indices':[],"
	    "'node_id':'n'}]", "[]", ""), "repeated_identity"),
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

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_checkpoint__refusals),
	cmocka_unit_test(test_checkpoint__acceptances),
	cmocka_unit_test(test_checkpoint__reset_in_progress),
	cmocka_unit_test(test_checkpoint__append_in_progress),
	cmocka_unit_test(test_checkpoint__reports_hold_no_payload),
	cmocka_unit_test(test_checkpoint__report_has_every_member),
};

TEST_MAIN("checkpoint files", tests)
