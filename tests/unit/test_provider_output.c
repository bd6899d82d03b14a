/* Output of agents, in the shapes that are known of each provider, and what comes of it. */
#include "test.h"

#include "flowsup/provider.h"

struct sample {
	const char *name, *provider, *output, *errors, *out_file;
	int code; /* of the exit; below 0: a signal */
	bool hung;
	const char *class; /* NULL: success */
	const char *answer, *id, *message; /* message: a part; NULL: not looked at */
	bool acknowledged;
	const char *usage;
};

#define CLAUDE_INIT "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s-1\",\"tools\":[]}\n"
#define CLAUDE_TALK                                                                                \
	"{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"…\"}]},"  \
	"\"session_id\":\"s-1\"}\n"
#define CLAUDE_RESULT                                                                              \
	"{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"num_turns\":2,"         \
	"\"result\":\"All is well.\",\"session_id\":\"s-1\",\"total_cost_usd\":0.5,"               \
	"\"usage\":{\"input_tokens\":7,\"output_tokens\":3}}\n"
#define CLAUDE_USAGE "{\"input_tokens\":7,\"output_tokens\":3,\"cost_usd\":0.5,\"turns\":2}"
#define CODEX_START "{\"type\":\"thread.started\",\"thread_id\":\"th-9\"}\n{\"type\":\"turn.started\"}\n"
#define CODEX_SAYS(text)                                                                           \
	"{\"type\":\"item.completed\",\"item\":{\"id\":\"i\",\"type\":\"agent_message\",\"text\":\"" text \
	"\"}}\n"
#define CODEX_END                                                                                  \
	"{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":5,\"cached_input_tokens\":1,"    \
	"\"output_tokens\":2}}\n"
#define CODEX_USAGE "{\"input_tokens\":5,\"cached_input_tokens\":1,\"output_tokens\":2}"
#define GEMINI_INIT "{\"type\":\"init\",\"session_id\":\"g-1\",\"model\":\"auto\"}\n"
#define GEMINI_SAYS(text)                                                                          \
	"{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"" text "\",\"delta\":true}\n"
#define GEMINI_END                                                                                 \
	"{\"type\":\"result\",\"status\":\"success\",\"stats\":{\"total_tokens\":15,"              \
	"\"input_tokens\":10,\"output_tokens\":5,\"cached\":0}}\n"
#define GEMINI_USAGE "{\"input_tokens\":10,\"output_tokens\":5,\"cached_input_tokens\":0}"
#define OPENCODE(type, rest)                                                                       \
	"{\"type\":\"" type "\",\"timestamp\":1,\"sessionID\":\"ses_1\"" rest "}\n"

static const struct sample samples[] = {
    {"claude answers", "claude", CLAUDE_INIT CLAUDE_TALK CLAUDE_RESULT, "", "", 0, false, NULL,
	"All is well.", "s-1", NULL, true, CLAUDE_USAGE},
    {"escape codes stand before the records", "claude",
	"\033[?25l\033[2K" CLAUDE_INIT "\033]0;claude\007" CLAUDE_RESULT "\033[?25h", "", "", 0, false,
	NULL, "All is well.", "s-1", NULL, true, CLAUDE_USAGE},
    {"lines that are no JSON are passed over", "claude",
	"warning: a\n{not json}\n\n" CLAUDE_RESULT "bye\n", "", "", 0, false, NULL, "All is well.",
	"s-1", NULL, true, CLAUDE_USAGE},
    {"exit 0 with an error record is a failure", "claude",
	CLAUDE_INIT "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,"
		    "\"result\":\"API Error: 429 rate_limit_error\",\"session_id\":\"s-1\"}\n",
	"", "", 0, false, "rate_limited", "API Error: 429 rate_limit_error", "s-1", "429", false, NULL},
    {"a number within another word says nothing", "claude",
	CLAUDE_INIT "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,"
		    "\"result\":\"it broke (req_01401abc, 4290 bytes)\",\"session_id\":\"s-1\"}\n",
	"", "", 0, false, "agent_error", "it broke (req_01401abc, 4290 bytes)", "s-1", "broke", false, NULL},
    {"forbidden", "claude",
	"{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,\"api_error_status\":403,"
	"\"result\":\"no\",\"session_id\":\"s-1\"}\n",
	"", "", 0, false, "auth", "no", "s-1", "no", false, NULL},
    {"any other error record", "claude",
	"{\"type\":\"result\",\"subtype\":\"error_during_execution\",\"is_error\":true,"
	"\"errors\":[\"it broke\"],\"session_id\":\"s-1\"}\n",
	"", "", 0, false, "agent_error", NULL, "s-1", "it broke", false, NULL},
    {"too many turns", "claude",
	"{\"type\":\"result\",\"subtype\":\"error_max_turns\",\"is_error\":true,\"session_id\":\"s-1\"}\n",
	"", "", 1, false, "limit", NULL, "s-1", "error_max_turns", false, NULL},
    {"an id that would be an option", "claude",
	"{\"type\":\"result\",\"subtype\":\"error_max_turns\",\"is_error\":true,\"session_id\":\"--evil\"}\n",
	"", "", 1, false, "limit", NULL, NULL, "error_max_turns", false, NULL},
    {"the conversation is lost", "claude",
	"{\"type\":\"result\",\"subtype\":\"error_during_execution\",\"is_error\":true,"
	"\"errors\":[\"No conversation found with session ID: s-0\"],\"session_id\":\"s-2\"}\n",
	"", "", 1, false, "session_lost", NULL, "s-2", "No conversation found", false, NULL},
    {"no final record", "claude", CLAUDE_INIT CLAUDE_TALK, "", "", 0, false, "agent_error", NULL,
	"s-1", "without its final record", false, NULL},
    {"nothing at all", "claude", "", "", "", 0, false, "agent_error", NULL, NULL,
	"without its final record", false, NULL},
    {"an empty answer", "claude",
	"{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\" \\n\"}\n", "", "",
	0, false, "agent_error", NULL, NULL, "gave no answer", true, NULL},
    {"exit status 1 without a word", "claude", CLAUDE_INIT, "", "", 1, false, "", NULL, "s-1",
	"exit status 1", false, NULL},
    {"what standard error says last", "claude", "", "a\n\033[31mpanic: b\033[0m\n", "", 3, false, "",
	NULL, NULL, "exit status 3: panic: b", false, NULL},
    {"ended by a signal in spite of its record", "claude", CLAUDE_RESULT, "", "", -9, false, "",
	"All is well.", "s-1", "ended by SIGKILL", true, CLAUDE_USAGE},
    {"a record, then it hangs and is ended by us", "claude", CLAUDE_RESULT, "", "", -15, true, NULL,
	"All is well.", "s-1", NULL, true, CLAUDE_USAGE},
    {"a last line without its end", "claude",
	"{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"ok\"}", "", "", 0,
	false, NULL, "ok", NULL, NULL, true, NULL},
    {"a record that was cut", "claude", CLAUDE_INIT "{\"type\":\"result\",\"subtype\":\"suc", "", "", 0,
	false, "agent_error", NULL, "s-1", "without its final record", false, NULL},

    {"codex writes its answer to a file", "codex", CODEX_START CODEX_SAYS("first") CODEX_END, "",
	"from the file\n", 0, false, NULL, "from the file\n", "th-9", NULL, true, CODEX_USAGE},
    {"codex without the file", "codex",
	CODEX_START CODEX_SAYS("first") CODEX_SAYS("second") CODEX_END, "", "", 0, false, NULL, "second",
	"th-9", NULL, true, CODEX_USAGE},
    {"a failed turn", "codex",
	CODEX_START "{\"type\":\"turn.failed\",\"error\":{\"message\":\"stream closed\"}}\n", "", "", 1,
	false, "agent_error", NULL, "th-9", "stream closed", false, NULL},
    {"an old launcher hides a SIGTERM behind exit 0", "codex", CODEX_START, "", "", 0, false,
	"agent_error", NULL, "th-9", "without its final record", false, NULL},
    {"no rollout", "codex", "", "Error: no rollout found for thread id th-0\n", "", 1, false,
	"session_lost", NULL, NULL, "no rollout", false, NULL},
    {"an error that passed is none", "codex",
	CODEX_START "{\"type\":\"error\",\"message\":\"Reconnecting 1/5\"}\n" CODEX_SAYS("done") CODEX_END,
	"", "", 0, false, NULL, "done", "th-9", NULL, true, CODEX_USAGE},

    {"gemini's deltas after its last tool", "gemini",
	GEMINI_INIT GEMINI_SAYS("let me look") "{\"type\":\"tool_use\"}\n{\"type\":\"tool_result\"}\n"
	GEMINI_SAYS("It is ") GEMINI_SAYS("Paris.") GEMINI_END,
	"", "", 0, false, NULL, "It is Paris.", "g-1", NULL, true, GEMINI_USAGE},
    {"what the user said is no answer", "gemini",
	GEMINI_INIT "{\"type\":\"message\",\"role\":\"user\",\"content\":\"q\"}\n" GEMINI_END, "", "", 0,
	false, "agent_error", NULL, "g-1", "gave no answer", true, GEMINI_USAGE},
    {"gemini leaves with 0 when it is told to stop", "gemini", GEMINI_INIT GEMINI_SAYS("half"), "", "",
	0, false, "agent_error", "half", "g-1", "final record", false, NULL},
    {"no key", "gemini", "", "[ERROR] {\"error\":{\"code\":41}}\n", "", 41, false, "auth", NULL, NULL,
	"exit status 41", false, NULL},
    {"a session that is not there", "gemini", "",
	"Error resuming session: Invalid session identifier \"x\".\n  Use --list-sessions\n", "", 42,
	false, "session_lost", NULL, NULL, "exit status 42", false, NULL},
    {"turns are used up", "gemini", GEMINI_INIT, "", "", 53, false, "limit", NULL, "g-1",
	"exit status 53", false, NULL},
    {"a number within another word", "gemini",
	GEMINI_INIT "{\"type\":\"result\",\"status\":\"error\",\"error\":{\"message\":\"req_01401abc 14290\"}}\n",
	"", "", 1, false, "agent_error", NULL, "g-1", "req_01401abc", false, NULL},
    {"an error in the result", "gemini",
	GEMINI_INIT "{\"type\":\"result\",\"status\":\"error\",\"error\":{\"message\":\"429 "
		    "RESOURCE_EXHAUSTED\"}}\n",
	"", "", 1, false, "rate_limited", NULL, "g-1", "RESOURCE_EXHAUSTED", false, NULL},

    {"opencode", "opencode",
	OPENCODE("step_start", "") OPENCODE("text", ",\"part\":{\"text\":\"thinking\"}")
	OPENCODE("tool_use", "") OPENCODE("text", ",\"part\":{\"text\":\"one\"}")
	OPENCODE("text", ",\"part\":{\"text\":\"two\"}")
	OPENCODE("step_finish", ",\"part\":{\"tokens\":{\"input\":3,\"output\":1},\"cost\":0.25}")
	OPENCODE("step_finish", ",\"part\":{\"tokens\":{\"input\":4,\"output\":1},\"cost\":0.5}"),
	"", "", 0, false, NULL, "one\ntwo", "ses_1", NULL, true,
	"{\"input_tokens\":7,\"output_tokens\":2,\"cost_usd\":0.75}"},
    {"a rejected permission leaves with 0 and says nothing", "opencode",
	OPENCODE("step_start", "") OPENCODE("done", ",\"reason\":\"idle\",\"rejected\":[\"bash\"]"), "",
	"", 0, false, "denied", NULL, "ses_1", "refused a permission", false, NULL},
    {"what it said before it was refused one is no success", "opencode",
	OPENCODE("text", ",\"part\":{\"text\":\"let me look\"}") OPENCODE("step_finish", "")
	OPENCODE("done", ",\"reason\":\"idle\",\"rejected\":[\"bash\"]"), "",
	"", 0, false, "denied", "let me look", "ses_1", "refused a permission", true, NULL},
    {"an error of the session", "opencode",
	OPENCODE("error", ",\"error\":{\"name\":\"X\",\"data\":{\"message\":\"Session not found\"}}"), "",
	"", 1, false, "session_lost", NULL, "ses_1", "Session not found", false, NULL},

    {"llm's array, printed over many lines", "llm",
	"loading\n[\n  {\"response\": \"a\", \"conversation_id\": \"c0\"},\n  {\"response\": \"b\",\n"
	"   \"conversation_id\": \"c1\", \"input_tokens\": 2, \"output_tokens\": 1}\n]\n",
	"", "", 0, false, NULL, "b", "c1", NULL, true, "{\"input_tokens\":2,\"output_tokens\":1}"},
    {"llm's message", "llm", "", "Error: No key found - add one\n", "", 1, false, "auth", NULL, NULL,
	"No key found", false, NULL},
    {"llm's array that was cut", "llm", "[{\"response\":\"a\"", "", "", 0, false, "agent_error", NULL,
	NULL, "its JSON is cut off", false, NULL},
    {"what cannot begin an array hides none", "llm", "[not JSON\n[\n[{\"response\":\"a\"}]\n", "", "", 0, false,
	NULL, "a", NULL, NULL, true, NULL},
    {"a bracket that nothing closes hides none", "llm", "[\n[{\"response\":\"a]\\\"]\"}] bye", "", "", 0, false,
	NULL, "a]\"]", NULL, NULL, true, NULL},
    {"bytes that are no UTF-8", "claude",
	"{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"a\xff z\"}\n", "", "", 0,
	false, NULL, "a\xef\xbf\xbd z", NULL, NULL, true, NULL},
    {"the same in an array", "llm", "[{\"response\":\"\xed\xa0\x80\"}]", "", "", 0, false, NULL,
	"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", NULL, NULL, true, NULL},
};

static struct provider *
load(const char *name)
{
	struct provider_search s;
	struct provider *p = NULL;
	struct err e = {0};
	char *envp[] = {NULL};

	assert_works(provider_search_init(&s, envp, &e), e);
	free(s.config);
	s.config = NULL;
	assert_works(provider_load(&s, name, &p, &e), e);
	provider_search_clear(&s);
	return p;
}

static void
assert_text(const char *what, const char *name, const char *got, const char *wanted)
{
	if ((got == NULL) != (wanted == NULL) || (got != NULL && strcmp(got, wanted) != 0))
		fail_msg("%s: %s is \"%s\", not \"%s\"", name, what, got, wanted);
}

static void
assert_usage(const struct sample *s, const struct json *usage)
{
	struct buf text = {0};

	if (usage != NULL)
		json_write(&text, usage);
	assert_text("usage", s->name, usage == NULL ? NULL : buf_text(&text), s->usage);
	buf_clear(&text);
}

static void
assert_result(const struct sample *s, const struct provider_result *r)
{
	assert_text("class", s->name, r->class, s->class);
	assert_text("answer", s->name, r->has_answer ? buf_text(&r->answer) : NULL, s->answer);
	assert_text("id", s->name, r->id, s->id);
	if (s->message != NULL && (r->message == NULL || strstr(r->message, s->message) == NULL))
		fail_msg("%s: message is \"%s\"", s->name, r->message);
	if (r->acknowledged != s->acknowledged)
		fail_msg("%s: acknowledged is %d", s->name, r->acknowledged);
	if (s->usage != NULL)
		assert_usage(s, r->usage);
}

/* step: how many bytes are fed at once. */
static void
run_sample(const struct sample *s, size_t step)
{
	struct provider *p = load(s->provider);
	struct provider_end end = {.known = true, .hung = s->hung};
	struct provider_reading *r = NULL;
	struct provider_result result;
	struct slice left = slice_of(s->output), piece;
	struct err e = {0};

	end.signaled = s->code < 0;
	end.code = s->code < 0 ? -s->code : s->code;
	end.errors = slice_of(s->errors);
	end.out = slice_of(s->out_file);
	assert_works(provider_reading_new(p, NULL, NULL, &r, &e), e);
	for (; left.len > 0; left.data += piece.len, left.len -= piece.len) {
		piece = (struct slice){left.data, left.len < step ? left.len : step};
		assert_works(provider_reading_feed(r, piece, &e), e);
	}
	assert_works(provider_reading_finish(r, &end, &result, &e), e);
	assert_result(s, &result);
	provider_result_clear(&result);
	provider_reading_free(r);
	provider_free(p);
}

static void
test_provider_output__samples(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
		run_sample(&samples[i], SIZE_MAX);
}

static void
test_provider_output__in_pieces(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		run_sample(&samples[i], 1);
		run_sample(&samples[i], 7);
	}
}

/* ---- Huge output ---- */

static void
feed_long_line(struct provider_reading *r, size_t size)
{
	static char piece[64 << 10];
	struct err e = {0};
	size_t fed;

	memset(piece, 'x', sizeof(piece));
	assert_works(provider_reading_feed(r, slice_of("{\"type\":\"tool\",\"text\":\""), &e), e);
	for (fed = 0; fed < size; fed += sizeof(piece))
		assert_works(provider_reading_feed(r, (struct slice){piece, sizeof(piece)}, &e), e);
	assert_works(provider_reading_feed(r, slice_of("\"}\n"), &e), e);
}

static void
test_provider_output__long_line_is_passed_over(void **state)
{
	struct provider *p = load("claude");
	struct provider_end end = {.known = true};
	struct provider_reading *r = NULL;
	struct provider_result result;
	struct err e = {0};

	(void)state;
	assert_works(provider_reading_new(p, NULL, NULL, &r, &e), e);
	feed_long_line(r, (size_t)100 << 20);
	assert_false(provider_reading_ended(r));
	assert_works(provider_reading_feed(r, slice_of(CLAUDE_RESULT), &e), e);
	assert_true(provider_reading_ended(r));
	assert_works(provider_reading_finish(r, &end, &result, &e), e);
	assert_null(result.class);
	assert_int_equal(result.long_lines, 1);
	assert_int_equal(result.records, 1);
	provider_result_clear(&result);
	provider_reading_free(r);
	provider_free(p);
}

static void
test_provider_output__long_result_is_a_failure_that_says_so(void **state)
{
	struct provider *p = load("claude");
	struct provider_end end = {.known = true};
	struct provider_reading *r = NULL;
	struct provider_result result;
	struct err e = {0};

	(void)state;
	assert_works(provider_reading_new(p, NULL, NULL, &r, &e), e);
	feed_long_line(r, PROVIDER_MAX_LINE);
	assert_works(provider_reading_finish(r, &end, &result, &e), e);
	assert_string_equal(result.class, "agent_error");
	assert_non_null(strstr(result.message, "1 line of more than 8 MiB was passed over"));
	provider_result_clear(&result);
	provider_reading_free(r);
	provider_free(p);
}

static void
test_provider_output__large_document_is_refused(void **state)
{
	struct provider *p = load("llm");
	struct provider_end end = {.known = true};
	struct provider_reading *r = NULL;
	struct provider_result result;
	struct err e = {0};

	(void)state;
	assert_works(provider_reading_new(p, NULL, NULL, &r, &e), e);
	feed_long_line(r, PROVIDER_MAX_DOCUMENT);
	assert_works(provider_reading_finish(r, &end, &result, &e), e);
	assert_string_equal(result.class, "agent_error");
	assert_non_null(strstr(result.message, "more than 32 MiB"));
	provider_result_clear(&result);
	provider_reading_free(r);
	provider_free(p);
}

/* ---- The final record, while the process stays ---- */

static struct provider *
with_format(const char *format)
{
	char file[1024];
	struct provider *p = NULL;
	struct err e = {0};

	snprintf(file, sizeof(file),
	    "{\"provider\":1,\"name\":\"t\",\"verified\":null,\"reads_user_settings\":false,"
	    "\"exit_0_reliable\":false,\"prompt\":\"stdin\",\"start\":{\"new\":[\"t\"]},"
	    "\"conversation\":{\"id\":\"none\"},\"output\":{\"format\":\"%s\",\"terminal\":{\"/t\":\"end\"},"
	    "\"answer\":{\"path\":\"/v\"}}}", format);
	assert_works(provider_read("t", "t", slice_of(file), &p, &e), e);
	return p;
}

/* Fed byte by byte: whether the final record was seen at the end of each text, and what came of all. */
static void
assert_ends(const char *format, const char *before, const char *closing, const char *after, bool still,
    const char *answer)
{
	struct provider *p = with_format(format);
	struct provider_end end = {.known = true, .hung = true};
	struct provider_reading *r = NULL;
	struct provider_result result;
	struct slice rest = slice_of(after);
	struct err e = {0};

	assert_works(provider_reading_new(p, NULL, NULL, &r, &e), e);
	for (; *before != '\0'; before++) {
		assert_works(provider_reading_feed(r, (struct slice){before, 1}, &e), e);
		assert_false(provider_reading_ended(r));
	}
	assert_works(provider_reading_feed(r, slice_of(closing), &e), e);
	assert_true(provider_reading_ended(r));
	for (; rest.len > 0; rest.data++, rest.len--)
		assert_works(provider_reading_feed(r, (struct slice){rest.data, 1}, &e), e);
	assert_int_equal(provider_reading_ended(r), still);
	assert_works(provider_reading_finish(r, &end, &result, &e), e);
	assert_text("answer", format, result.has_answer ? buf_text(&result.answer) : NULL, answer);
	provider_result_clear(&result);
	provider_reading_free(r);
	provider_free(p);
}

static void
test_provider_output__final_record_of_each_format(void **state)
{
	(void)state;
	assert_ends("json", "{\"t\":\"end\",\"v\":\"}\\\"x\"", "}", "\nbye {\n", true, "}\"x");
	assert_ends("json", "hello\n{no}\n{\n \"t\":\"end\",\n \"v\":{\"a\":[1]}\n", "}", "", true, "{\"a\":[1]}");
	assert_ends("json-array", "[{\"v\":1},\n{\"t\":\"end\"}", "]", "[]", true, "1");
	assert_ends("jsonl", "{\"v\":1}\n{\"t\":\"end\",\"v\":2", "}", " \n", true, "2");
	assert_ends("jsonl", "{\"v\":1}\n {\"t\":\"end\",\"v\":2", "}", "", true, "2");
	assert_ends("jsonl", "{\"v\":1}\n{\"t\":\"end\",\"v\":2", "} ", "is what I say\n", false, "1");
	assert_ends("jsonl", "{\"v\":1}\n{\"t\":\"end\",\"v\":2", "}", "}", false, "1");
}

/* ---- Text ---- */

static int
collect(void *arg, struct slice text, struct err *e)
{
	buf_slice(arg, text);
	return buf_ok(arg, e);
}

static void
test_provider_output__text_goes_to_the_sink(void **state)
{
	struct provider *p = NULL;
	struct provider_reading *r = NULL;
	struct provider_result result;
	struct provider_end end = {.known = true};
	struct buf text = {0};
	struct err e = {0};
	static const char file[] =
	    "{\"provider\":1,\"name\":\"t\",\"verified\":null,\"reads_user_settings\":false,"
	    "\"exit_0_reliable\":false,\"prompt\":\"stdin\",\"start\":{\"new\":[\"t\"]},"
	    "\"conversation\":{\"id\":\"none\"},\"output\":{\"format\":\"text\"}}";

	(void)state;
	assert_works(provider_read("t", "t", slice_of(file), &p, &e), e);
	assert_works(provider_reading_new(p, collect, &text, &r, &e), e);
	assert_works(provider_reading_feed(r, slice_of("\033[1mbold\033"), &e), e);
	assert_works(provider_reading_feed(r, slice_of("[0m\n"), &e), e);
	assert_works(provider_reading_finish(r, &end, &result, &e), e);
	assert_null(result.class);
	assert_string_equal(buf_text(&text), "bold\n");
	provider_result_clear(&result);
	provider_reading_free(r);
	assert_works(provider_reading_new(p, collect, &text, &r, &e), e);
	assert_works(provider_reading_feed(r, slice_of(" \n"), &e), e);
	assert_works(provider_reading_finish(r, &end, &result, &e), e);
	assert_string_equal(result.class, "agent_error");
	provider_result_clear(&result);
	provider_reading_free(r);
	buf_clear(&text);
	provider_free(p);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_provider_output__samples),
    cmocka_unit_test(test_provider_output__in_pieces),
    cmocka_unit_test(test_provider_output__long_line_is_passed_over),
    cmocka_unit_test(test_provider_output__long_result_is_a_failure_that_says_so),
    cmocka_unit_test(test_provider_output__large_document_is_refused),
    cmocka_unit_test(test_provider_output__final_record_of_each_format),
    cmocka_unit_test(test_provider_output__text_goes_to_the_sink),
};
TEST_MAIN("provider_output", tests)
