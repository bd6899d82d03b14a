/* Files of providers: finding and refusing them, words of commands, escape sequences. */
#include "test.h"

#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/proc.h"
#include "flowsup/provider.h"

/* A whole file but for what a test puts in. */
#define HEAD                                                                                       \
	"{\"provider\":1,\"name\":\"t\",\"verified\":null,\"reads_user_settings\":false,"         \
	"\"exit_0_reliable\":false,"
#define PROMPT "\"prompt\":\"stdin\","
#define START "\"start\":{\"new\":[\"t\"]},"
#define CONVERSATION "\"conversation\":{\"id\":\"none\"},"
#define OUTPUT "\"output\":{\"format\":\"text\"}"

static struct provider *
from_text(const char *text)
{
	struct provider *p = NULL;
	struct err e = {0};

	assert_works(provider_read("t.json", "t", slice_of(text), &p, &e), e);
	return p;
}

/* ---- Refusals ---- */

static const struct {
	const char *text, *message, *hint;
} refusals[] = {
    {"[]", "t.json:1:1: a provider must be an object, not array", ""},
    {HEAD PROMPT START CONVERSATION "\"outptu\":{}}",
	"t.json:1:162: a provider has no key \"outptu\"", "did you mean \"output\"?"},
    {HEAD PROMPT START CONVERSATION "\"title\":\"x\"}",
	"t.json:1:1: a provider needs the key \"output\"", ""},
    {"{\"provider\":2}", "\"provider\" 2 is not known; this version reads 1", ""},
    {HEAD "\"prompt\":\"stdn\"}", "\"prompt\" cannot be \"stdn\"", "did you mean \"stdin\"?"},
    {HEAD PROMPT "\"instruction\":{\"most\":0}," START CONVERSATION OUTPUT "}",
	"\"most\" must be a number of bytes", ""},
    {HEAD PROMPT "\"start\":{\"new\":[\"t\",\"{modle}\"]}," CONVERSATION OUTPUT "}",
	"\"{modle}\" holds a place that is not known",
	"places are {model} {args} {sid} {old} {old8} {cwd} {home} {out} {prompt} {store} {chat}"},
    {HEAD PROMPT "\"start\":{\"new\":[\"t\",\"--x={args}\"]}," CONVERSATION OUTPUT "}",
	"{args} is a word of its own", ""},
    {HEAD PROMPT "\"start\":{\"new\":[\"t\",\"{prompt}\"]}," CONVERSATION OUTPUT "}",
	"the prompt comes on standard input: {prompt} stands for nothing", ""},
    {HEAD "\"prompt\":\"argument\"," START CONVERSATION OUTPUT "}",
	"the prompt comes as {prompt}, which is not there", ""},
    {HEAD PROMPT "\"start\":{\"new\":[\"t\",\"{old}\"]}," CONVERSATION OUTPUT "}",
	"a new conversation has no {old}", ""},
    {HEAD PROMPT "\"start\":{\"new\":[\"t\"],\"resume\":[\"t\"]}," CONVERSATION OUTPUT "}",
	"says nowhere which conversation: {old}, {chat} or {store}", ""},
    {HEAD PROMPT "\"start\":{\"new\":[\"t\",[\"{chat}\"]]}," CONVERSATION OUTPUT "}",
	"{chat} needs \"chat\" in \"conversation\"", ""},
    {HEAD PROMPT "\"start\":{\"new\":[\"t\",\"{sid}\"]}," CONVERSATION OUTPUT "}",
	"{sid} needs an id that is minted or comes from a command", ""},
    {HEAD PROMPT "\"start\":{\"new\":[\"t\"],\"resume\":[\"t\",\"{old}\"]},\"conversation\":{\"id\":\"none\"}," OUTPUT "}",
	"{old} needs an id, and \"id\" of \"conversation\" is none", ""},
    {HEAD PROMPT START CONVERSATION "\"environment\":{\"set\":{\"A\":\"1\",\"FLOWSUP_RUN_ID\":\"x\"}}," OUTPUT "}",
	"names that begin with FLOWSUP_ are flowsup's own", ""},
    {HEAD PROMPT START "\"conversation\":{\"id\":\"command\"}," OUTPUT "}",
	"\"mint\" and \"id\": \"command\" go together", ""},
    {HEAD PROMPT START "\"conversation\":{\"id\":\"none\",\"store\":\"a/b\"}," OUTPUT "}",
	"\"store\" is the name of a file, without a directory", ""},
    {HEAD PROMPT START CONVERSATION "\"output\":{\"format\":\"jsonl\"}}",
	"\"output\" needs the key \"answer\"", ""},
    {HEAD PROMPT START CONVERSATION "\"output\":{\"format\":\"text\",\"failed\":{\"/a\":1}}}",
	"output of the format text has no records to ask", ""},
    {HEAD PROMPT START CONVERSATION
	"\"output\":{\"format\":\"jsonl\",\"answer\":{\"path\":\"a\"}}}",
	"", ""},
    {HEAD PROMPT START CONVERSATION
	"\"output\":{\"format\":\"jsonl\",\"answer\":{\"where\":{}, \"path\":\"/a\"}}}",
	"a condition is an object of pointers and values, not empty", ""},
    {HEAD PROMPT START CONVERSATION
	"\"output\":{\"format\":\"jsonl\",\"answer\":{\"path\":\"/a\",\"take\":\"lst\"}}}",
	"\"take\" cannot be \"lst\"", "did you mean \"last\"?"},
    {HEAD PROMPT START CONVERSATION
	"\"output\":{\"format\":\"jsonl\",\"answer\":{\"where\":{\"/a\":{\"matchs\":\"x\"}},\"path\":\"/a\"}}}",
	"no comparison is called \"matchs\"", "did you mean \"matches\"?"},
    {HEAD PROMPT START CONVERSATION
	"\"output\":{\"format\":\"jsonl\",\"answer\":{\"where\":{\"/a\":{\"matches\":\"(\"}},\"path\":\"/a\"}}}",
	"is no extended regular expression", ""},
    {HEAD PROMPT START CONVERSATION OUTPUT ",\"failures\":[{\"class\":\"rate_limit\",\"exit\":[1]}]}",
	"\"class\" cannot be \"rate_limit\"", "did you mean \"rate_limited\"?"},
    {HEAD PROMPT START CONVERSATION OUTPUT ",\"failures\":[{\"class\":\"auth\"}]}",
	"a failure needs where, exit, error or stderr", ""},
    {HEAD PROMPT START CONVERSATION OUTPUT ",\"failures\":[{\"class\":\"auth\",\"exit\":[0]}]}",
	"an exit code of a failure is from 1 to 255", ""},
    {HEAD PROMPT START CONVERSATION OUTPUT ",\"stop\":[{\"signal\":\"KILL\",\"wait\":\"1s\"}]}",
	"\"signal\" cannot be \"KILL\"", ""},
    {HEAD PROMPT START CONVERSATION OUTPUT ",\"stop\":[1,2,3,4,5]}",
	"\"stop\" has 5 steps, and may have at most 4", ""},
    {HEAD PROMPT START CONVERSATION OUTPUT ",\"stop\":{}}", "\"stop\" must be a list of steps, not object", ""},
    {HEAD PROMPT START CONVERSATION OUTPUT ",\"version\":[]}", "\"version\" has no words", ""},
    {HEAD PROMPT "\"start\":{\"new\":[]}," CONVERSATION OUTPUT "}", "\"new\" has no words", ""},
    {HEAD PROMPT START CONVERSATION OUTPUT ",\"drain\":\"soon\"}", "\"drain\": ", ""},
    {HEAD PROMPT START CONVERSATION OUTPUT ",\"drain\":\"0s\"}",
	"\"drain\": a process needs some time to leave by itself", "such as \"1s\"; without the key it has 10 s"},
    {HEAD PROMPT START "\"conversation\":{\"id\":\"minted\"}," OUTPUT "}",
	"an id is made for the conversation, and no command has {sid}",
	"{sid} among the words of \"new\", or \"id\": \"found\" or \"none\""},
    {HEAD PROMPT START "\"conversation\":{\"id\":\"command\",\"mint\":[\"t\"]}," OUTPUT "}",
	"an id is made for the conversation, and no command has {sid}",
	"{sid} among the words of \"new\", or \"id\": \"found\" or \"none\""},
    {HEAD PROMPT START CONVERSATION "\"output\":{\"format\":\"jsonl\",\"answer\":[{\"file\":true},{\"path\":\"/a\"}]}}",
	"the answer is read from a file, and no command has {out}",
	"{out} among the words of \"new\", behind the option that names such a file"},
    {HEAD PROMPT START CONVERSATION OUTPUT ",\"environment\":{\"unset\":[\"A=B\"]}}",
	"\"unset\" holds names of variables", ""},
    {HEAD PROMPT START CONVERSATION OUTPUT ",\"title\":\"a\",\"title\":\"b\"}", "t.json", ""},
    {"{\"provider\":1,\"name\":\"u\",\"verified\":null,\"reads_user_settings\":false,"
     "\"exit_0_reliable\":false," PROMPT START CONVERSATION OUTPUT "}",
	"the file of \"t\" is called \"u\"", ""},
};

static void
test_provider__refusals(void **state)
{
	struct provider *p;
	struct err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		e = (struct err){0};
		p = NULL;
		assert_int_equal(provider_read("t.json", "t", slice_of(refusals[i].text), &p, &e), -1);
		assert_null(p);
		if (strncmp(e.msg, "t.json", 6) != 0 || strstr(e.msg, refusals[i].message) == NULL)
			fail_msg("%zu: %s", i, e.msg);
		if (strcmp(e.hint, refusals[i].hint) != 0)
			fail_msg("%zu: hint %s", i, e.hint);
	}
}

/* ---- Words ---- */

static void
assert_words(const struct provider *p, const struct provider_values *v, const char *wanted)
{
	struct provider_words words;
	struct err e = {0};
	struct buf text = {0};
	size_t i;
	const char *at;

	assert_works(provider_words(p, p->starts[PROVIDER_NEW], v, &words, &e), e);
	at = buf_text(&words.text);
	for (i = 0; i < words.count; i++) {
		buf_printf(&text, "%s%s", i > 0 ? "|" : "", at);
		at += strlen(at) + 1;
	}
	assert_string_equal(buf_text(&text), wanted);
	buf_clear(&text);
	provider_words_clear(&words);
}

static void
test_provider__words(void **state)
{
	struct provider *p = from_text(HEAD PROMPT
	    "\"start\":{\"new\":[\"t\",[\"-m\",\"{model}\"],\"{args}\",\"-C{cwd}/{x y}\","
	    "\"{\\\"a\\\":{}}\",\"a{3}{0}{1x}\"]}," CONVERSATION OUTPUT "}");
	struct provider_values v = {0};
	struct json *args = json_append(json_append(json_array(), json_cstr("{model}")), json_cstr(""));

	(void)state;
	v.at[PLACE_CWD] = "/w";
	assert_words(p, &v, "t|-C/w/{x y}|{\"a\":{}}|a{3}{0}{1x}");
	v.at[PLACE_MODEL] = "big";
	v.args = args;
	/* What a role gives is no template. */
	assert_words(p, &v, "t|-m|big|{model}||-C/w/{x y}|{\"a\":{}}|a{3}{0}{1x}");
	json_unref(args);
	provider_free(p);
}

static void
test_provider__word_too_long(void **state)
{
	struct provider *p = from_text(HEAD "\"prompt\":\"argument\","
	    "\"start\":{\"new\":[\"t\",\"{prompt}\"]}," CONVERSATION OUTPUT "}");
	char *text = malloc(PROVIDER_MAX_ARGUMENT + 2);
	struct provider_values v = {0};
	struct provider_words words;
	struct err e = {0};

	(void)state;
	assert_non_null(text);
	memset(text, 'x', PROVIDER_MAX_ARGUMENT + 1);
	text[PROVIDER_MAX_ARGUMENT + 1] = '\0';
	v.at[PLACE_PROMPT] = text;
	assert_fails(provider_words(p, p->starts[PROVIDER_NEW], &v, &words, &e), ERR_LIMIT, e);
	text[PROVIDER_MAX_ARGUMENT] = '\0';
	assert_works(provider_words(p, p->starts[PROVIDER_NEW], &v, &words, &e), e);
	provider_words_clear(&words);
	v.at[PLACE_PROMPT] = NULL;
	e = (struct err){0};
	assert_fails(provider_words(p, p->starts[PROVIDER_NEW], &v, &words, &e), ERR_DOCUMENT, e);
	free(text);
	provider_free(p);
}

/* ---- Finding ---- */

static void
test_provider__own_file_wins(void **state)
{
	struct test_dir dir;
	struct provider_search s;
	struct provider *p = NULL;
	struct err e = {0};
	char config[600];
	char *envp[] = {config, NULL};

	(void)state;
	test_dir_make(&dir);
	snprintf(config, sizeof(config), "XDG_CONFIG_HOME=%s", dir.path);
	assert_works(provider_search_init(&s, envp, &e), e);
	free(s.data);
	s.data = strdup(dir.path);
	test_file_write(dir.fd, "t.json", HEAD PROMPT START CONVERSATION OUTPUT "}");
	assert_works(provider_load(&s, "t", &p, &e), e);
	assert_string_equal(p->title, "t");
	provider_free(p);
	assert_int_equal(mkdirat(dir.fd, "flowsup", 0700), 0);
	assert_int_equal(mkdirat(dir.fd, "flowsup/providers", 0700), 0);
	test_file_write(dir.fd, "flowsup/providers/t.json",
	    HEAD PROMPT START CONVERSATION OUTPUT ",\"title\":\"mine\"}");
	assert_works(provider_load(&s, "t", &p, &e), e);
	assert_string_equal(p->title, "mine");
	provider_free(p);
	/* A file of one's own that is broken is an error, never passed over. */
	test_file_write(dir.fd, "flowsup/providers/t.json", "{");
	assert_fails(provider_load(&s, "t", &p, &e), ERR_SYNTAX, e);
	assert_non_null(strstr(e.msg, "flowsup/providers/t.json"));
	provider_search_clear(&s);
	test_dir_remove(&dir);
}

static void
test_provider__unknown_name(void **state)
{
	struct provider_search s;
	struct provider *p = NULL;
	struct err e = {0};
	char *envp[] = {NULL};

	(void)state;
	assert_works(provider_search_init(&s, envp, &e), e);
	assert_fails(provider_load(&s, "cluade", &p, &e), ERR_NOTFOUND, e);
	assert_string_equal(e.msg, "there is no provider \"cluade\"");
	assert_string_equal(e.hint, "did you mean \"claude\"?");
	e = (struct err){0};
	assert_fails(provider_load(&s, "../claude", &p, &e), ERR_NOTFOUND, e);
	e = (struct err){0};
	assert_fails(provider_load(&s, "", &p, &e), ERR_NOTFOUND, e);
	provider_search_clear(&s);
	/* No place for files of one's own is named where there is none. */
	e = (struct err){0};
	assert_fails(provider_load(&s, "cluade", &p, &e), ERR_NOTFOUND, e);
	assert_string_equal(e.hint, "flowsup doctor   # lists providers");
}

/* ---- Shipped files ---- */

static int
load_one(void *arg, const char *name)
{
	struct provider *p = NULL;
	struct err e = {0};

	assert_works(provider_load(arg, name, &p, &e), e);
	assert_string_equal(p->name, name);
	if (strcmp(name, "sh") != 0)
		assert_non_null(p->version);
	provider_free(p);
	return 0;
}

static void
test_provider__shipped(void **state)
{
	struct provider_search s;
	struct err e = {0};
	char *envp[] = {NULL};

	(void)state;
	assert_works(provider_search_init(&s, envp, &e), e);
	free(s.config);
	s.config = NULL;
	assert_works(provider_list(&s, load_one, &s, &e), e);
	provider_search_clear(&s);
}

static void
test_provider__examples_are_unverified(void **state)
{
	static const char *const names[] = {"aider", "cursor", "goose", "ollama"};
	struct provider_search s = {.config = strdup("examples/providers")};
	struct provider *p = NULL;
	struct err e = {0};
	size_t i;

	(void)state;
	if (access("examples/providers", R_OK) != 0)
		skip();
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_works(provider_load(&s, names[i], &p, &e), e);
		assert_null(p->verified);
		provider_free(p);
	}
	provider_search_clear(&s);
}

/* ---- Escape sequences ---- */

static const struct {
	const char *in, *out;
} sequences[] = {
    {"plain", "plain"},
    {"\033[31mred\033[0m", "red"},
    {"\033[?25l\033[2K{\"a\":1}\033[?25h", "{\"a\":1}"},
    {"\033]0;title\007{}", "{}"},
    {"\033]8;;http://x\033\\link\033]8;;\033\\", "link"},
    {"\033(Btext\033=", "text"},
    {"\033P1$r\033\\x", "x"},
    {"\033[12\nline", "\nline"},
    {"\033]0;never ended\nline", "\nline"},
    {"end\033", "end"},
};

static void
test_ansi__strip(void **state)
{
	struct ansi_filter f;
	struct buf out = {0};
	size_t i, n;

	(void)state;
	for (i = 0; i < sizeof(sequences) / sizeof(sequences[0]); i++) {
		f = (struct ansi_filter){0};
		buf_reset(&out);
		ansi_strip(&f, slice_of(sequences[i].in), &out);
		assert_string_equal(buf_text(&out), sequences[i].out);
		/* Cut after every byte it is the same. */
		f = (struct ansi_filter){0};
		buf_reset(&out);
		for (n = 0; n < strlen(sequences[i].in); n++)
			ansi_strip(&f, (struct slice){sequences[i].in + n, 1}, &out);
		assert_string_equal(buf_text(&out), sequences[i].out);
	}
	buf_clear(&out);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_provider__refusals),
    cmocka_unit_test(test_provider__words),
    cmocka_unit_test(test_provider__word_too_long),
    cmocka_unit_test(test_provider__own_file_wins),
    cmocka_unit_test(test_provider__unknown_name),
    cmocka_unit_test(test_provider__shipped),
    cmocka_unit_test(test_provider__examples_are_unverified),
    cmocka_unit_test(test_ansi__strip),
};
TEST_MAIN("provider", tests)
