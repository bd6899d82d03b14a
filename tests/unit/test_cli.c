#include "test.h"

#include "flowsup/clock.h"
#include "supervisor/cli.h"
#include "supervisor/output.h"

/* ---- A small program with commands of every kind ---- */

static const struct cli_option run_options[] = {
    {.name = "force", .letter = 'f', .kind = CLI_FLAG, .help = "x"},
    {.name = "name", .kind = CLI_STRING, .value = "NAME", .help = "x"},
    {.name = "jobs", .letter = 'j', .kind = CLI_INT, .value = "N", .help = "x", .least = 1, .most = 64},
    {.name = "timeout", .letter = 't', .kind = CLI_DURATION, .value = "TIME", .help = "x"},
    {.name = "room", .kind = CLI_SIZE, .value = "SIZE", .help = "x", .least = 1, .most = 1 << 30},
    {.name = "mode", .kind = CLI_CHOICE, .value = "fast|safe", .help = "x"},
    {.name = "label", .letter = 'l', .kind = CLI_PAIR, .value = "KEY=VALUE", .help = "x"},
    {.name = "also", .kind = CLI_LIST, .value = "WORD", .help = "x"},
    {.name = "wait", .kind = CLI_DURATION, .value = "TIME", .help = "x", .optional_value = true},
    CLI_END};

static const struct command run_command = {
    .name = "run",
    .synopsis = "FILE...",
    .summary = "x",
    .options = run_options,
    .min_operands = 1,
    .max_operands = 3,
    .json = true,
};
static const struct command look = {.name = "look", .synopsis = "", .summary = "x"};
static const struct command ctl_stop = {
    .name = "stop", .also = "ctl stop", .synopsis = "[RUN]", .summary = "x", .max_operands = 1};
static const struct command ctl_status = {
    .name = "ctl status", .synopsis = "[RUN]", .summary = "x", .max_operands = 1, .this_run = true};
static const struct command help = {
    .name = "help", .synopsis = "", .summary = "x", .max_operands = CLI_ANY};
static const struct command *const commands[] = {
    &run_command, &look, &ctl_stop, &ctl_status, &help, NULL};

enum { WORDS = 12 };
struct words {
	const char *word[WORDS];
};

static int
parse(struct cli *c, const struct words *w, struct err *e)
{
	char *argv[WORDS + 2] = {(char *)(uintptr_t)"flowsup"};
	size_t i;

	for (i = 0; w->word[i] != NULL; i++)
		argv[i + 1] = (char *)(uintptr_t)w->word[i];
	return cli_parse(c, commands, argv, e);
}

#define PARSE(c, e, ...) parse(c, &(const struct words){{__VA_ARGS__}}, e)

static void
test_cli__options_before_and_after_operands(void **state)
{
	static const struct words forms[] = {
	    {{"run", "-f", "-j", "4", "a", "b"}},
	    {{"run", "a", "b", "-fj4"}},
	    {{"run", "a", "--jobs=4", "b", "--force"}},
	    {{"run", "-j=4", "a", "-f", "--", "b"}},
	    {{"--json", "run", "a", "--jobs", "4", "b", "-f"}},
	};
	struct cli c;
	struct err e = {0};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		assert_works(parse(&c, &forms[i], &e), e);
		assert_ptr_equal(c.command, &run_command);
		assert_true(cli_flag(&c, "force"));
		assert_int_equal(cli_int(&c, "jobs", 1), 4);
		assert_int_equal(c.noperands, 2);
		assert_string_equal(c.operands[0], "a");
		assert_string_equal(c.operands[1], "b");
		assert_null(c.operands[2]);
		cli_clear(&c);
	}
}

static void
test_cli__values_of_each_kind(void **state)
{
	struct cli c;
	struct err e = {0};
	struct json *labels;

	(void)state;
	assert_works(PARSE(&c, &e, "run", "x", "--name=", "-t2h30m", "--room", "64M", "--mode", "safe"), e);
	assert_string_equal(cli_text(&c, "name", "other"), "");
	assert_true(cli_int(&c, "timeout", 0) == 9000 * NS_PER_S);
	assert_true(cli_int(&c, "room", 0) == INT64_C(64) << 20);
	assert_int_equal(cli_int(&c, "mode", 0), 1);
	assert_string_equal(cli_text(&c, "mode", ""), "safe");
	assert_int_equal(cli_int(&c, "jobs", 7), 7);
	assert_string_equal(cli_text(&c, "also", "none"), "none");
	assert_false(cli_flag(&c, "wait"));
	cli_clear(&c);
	assert_works(PARSE(&c, &e, "run", "x", "-la=1", "--label", "b=c=d", "-l", "a=2", "--also", "p",
	    "--also=q"), e);
	assert_int_equal(cli_count(&c, "also"), 2);
	assert_string_equal(cli_nth(&c, "also", 1), "q");
	assert_works(cli_pairs(&c, "label", &labels, &e), e);
	assert_int_equal(json_length(labels), 2);
	assert_string_equal(json_cstr_of(json_get(labels, "a")), "2");
	assert_string_equal(json_cstr_of(json_get(labels, "b")), "c=d");
	json_unref(labels);
	cli_clear(&c);
	assert_works(PARSE(&c, &e, "run", "x"), e);
	assert_works(cli_pairs(&c, "label", &labels, &e), e);
	assert_null(labels);
	cli_clear(&c);
}

static void
test_cli__a_value_that_may_lack_takes_no_operand(void **state)
{
	struct cli c;
	struct err e = {0};

	(void)state;
	assert_works(PARSE(&c, &e, "run", "--wait", "5s"), e);
	assert_true(cli_flag(&c, "wait"));
	assert_int_equal(cli_int(&c, "wait", 0), 0);
	assert_string_equal(c.operands[0], "5s");
	cli_clear(&c);
	assert_works(PARSE(&c, &e, "run", "x", "--wait=5s"), e);
	assert_true(cli_int(&c, "wait", 0) == 5 * NS_PER_S);
	cli_clear(&c);
}

static void
test_cli__two_dashes_end_options(void **state)
{
	struct cli c;
	struct err e = {0};

	(void)state;
	assert_works(PARSE(&c, &e, "run", "-f", "--", "-j", "--", "--json"), e);
	assert_int_equal(c.noperands, 3);
	assert_string_equal(c.operands[0], "-j");
	assert_string_equal(c.operands[1], "--");
	assert_true(c.has_tail);
	assert_int_equal(c.tail, 0);
	assert_false(c.json);
	cli_clear(&c);
	assert_works(PARSE(&c, &e, "run", "a", "--", "b"), e);
	assert_int_equal(c.tail, 1);
	cli_clear(&c);
	assert_works(PARSE(&c, &e, "run", "-"), e);
	assert_string_equal(c.operands[0], "-");
	assert_false(c.has_tail);
	assert_int_equal(c.tail, c.noperands);
	cli_clear(&c);
}

static void
test_cli__commands_of_two_words_and_other_names(void **state)
{
	struct cli c;
	struct err e = {0};

	(void)state;
	assert_works(PARSE(&c, &e, "ctl", "status", "r", "--this-run"), e);
	assert_ptr_equal(c.command, &ctl_status);
	assert_true(c.this_run);
	assert_string_equal(c.operands[0], "r");
	cli_clear(&c);
	assert_works(PARSE(&c, &e, "ctl", "--home", "/h", "status"), e);
	assert_ptr_equal(c.command, &ctl_status);
	assert_string_equal(c.home, "/h");
	cli_clear(&c);
	assert_works(PARSE(&c, &e, "ctl", "stop"), e);
	assert_ptr_equal(c.command, &ctl_stop);
	cli_clear(&c);
	assert_works(PARSE(&c, &e, "stop", "status"), e);
	assert_ptr_equal(c.command, &ctl_stop);
	assert_string_equal(c.operands[0], "status");
	cli_clear(&c);
	assert_works(PARSE(&c, &e, "--home", "run", "look"), e);
	assert_ptr_equal(c.command, &look);
	assert_string_equal(c.home, "run");
	cli_clear(&c);
	assert_works(PARSE(&c, &e, "--help"), e);
	assert_ptr_equal(c.command, &help);
	cli_clear(&c);
}

static void
test_cli__help_needs_no_operands(void **state)
{
	struct cli c;
	struct err e = {0};

	(void)state;
	assert_works(PARSE(&c, &e, "run", "--help"), e);
	assert_true(c.help);
	cli_clear(&c);
	assert_works(PARSE(&c, &e, "run", "-fh"), e);
	assert_true(c.help);
	cli_clear(&c);
}

static void
test_cli__wrong_usage_is_told_with_what_is_nearest(void **state)
{
	static const struct {
		struct words words;
		const char *message, *hint; /* parts */
	} cases[] = {
	    {{{"rn", "x"}}, "unknown command \"rn\"", "flowsup run"},
	    {{{"zzzzzzzz"}}, "unknown command", "flowsup help"},
	    {{{NULL}}, "no command", "flowsup help"},
	    {{{"ctl"}}, "a second word is missing: stop, status", "flowsup help ctl"},
	    {{{"ctl", "zzzzzzz"}}, "second word", "flowsup help ctl"},
	    {{{"ctl", "staus"}}, "second word", "flowsup ctl status"},
	    {{{"run", "x", "--froce"}}, "unknown option --froce", "flowsup run x --force"},
	    {{{"run", "x", "--jsno"}}, "unknown option --jsno", "flowsup run x --json"},
	    {{{"run", "x", "--qqqqqqqqqq"}}, "unknown option", "flowsup run --help"},
	    {{{"run", "x", "-z"}}, "unknown option -z", "flowsup run --help"},
	    {{{"run", "x", "-fz"}}, "unknown option -z", "flowsup run --help"},
	    {{{"run", "x", "-force"}}, "unknown option -o", "flowsup run x --force"},
	    {{{"run", "--force", "--forc", "x"}}, "unknown option --forc", "flowsup run --force x"},
	    {{{"run", "--jobs=3", "--job", "4", "x"}}, "unknown option --job", "flowsup run --jobs=3 --jobs 4 x"},
	    {{{"run", "--j", "4", "x"}}, "unknown option --j", "flowsup run -j 4 x"},
	    {{{"look", "--json"}}, "unknown option --json", ""},
	    {{{"look", "--this-run"}}, "unknown option --this-run", ""},
	    {{{"run", "x", "--jobs"}}, "--jobs needs a value (N)", ""},
	    {{{"run", "x", "--jobs="}}, "\"\" is not a whole number", ""},
	    {{{"run", "x", "--jobs", "4x"}}, "\"4x\" is not a whole number", ""},
	    {{{"run", "x", "--jobs", " 4"}}, "\" 4\" is not a whole number", ""},
	    {{{"run", "x", "--jobs", "0"}}, "0 is not between 1 and 64", ""},
	    {{{"run", "x", "--jobs", "99999999999999999999"}}, "not a whole number", ""},
	    {{{"run", "x", "--timeout", "soon"}}, "--timeout", "90s"},
	    {{{"run", "x", "--room", "much"}}, "--room", "64M"},
	    {{{"run", "x", "--room", "2G"}}, "out of range", ""},
	    {{{"run", "x", "--room", "0"}}, "out of range", ""},
	    {{{"run", "x", "--mode", "saf"}}, "none of fast|safe", "flowsup run x --mode safe"},
	    {{{"run", "a b", "--mode=saf"}}, "none of fast|safe", "flowsup run 'a b' --mode=safe"},
	    {{{"run", "x", "--mode", ""}}, "none of fast|safe", ""},
	    {{{"run", "x", "--label", "b"}}, "not KEY=VALUE", ""},
	    {{{"run", "x", "--label", "=b"}}, "not KEY=VALUE", ""},
	    {{{"run", "x", "--force=yes"}}, "--force takes no value", ""},
	    {{{"run", "x", "--home="}}, "--home", ""},
	    {{{"run"}}, "operand is missing; usage: flowsup run FILE...", "flowsup help run"},
	    {{{"run", "a", "b", "c", "d"}}, "unexpected operand \"d\"", ""},
	    {{{"look", "d"}}, "unexpected operand \"d\"", ""},
	};
	struct cli c;
	struct err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		err_clear(&e);
		assert_fails(parse(&c, &cases[i].words, &e), ERR_USAGE, e);
		if (strstr(e.msg, cases[i].message) == NULL || strstr(e.hint, cases[i].hint) == NULL)
			print_message("# case %zu: %s / %s\n", i, e.msg, e.hint);
		assert_non_null(strstr(e.msg, cases[i].message));
		assert_non_null(strstr(e.hint, cases[i].hint));
		cli_clear(&c);
	}
}

/* The whole command or none: its beginning, or a general one, would be another. */
static void
test_cli__hints_are_of_any_length(void **state)
{
	static char word[5000];
	struct words words = {{"run", word, "--mode", "saf"}};
	struct cli c;
	struct err e = {0}, copy;

	(void)state;
	memset(word, 'x', sizeof(word) - 1);
	assert_fails(parse(&c, &words, &e), ERR_USAGE, e);
	copy = e;
	assert_int_equal(strncmp(err_hint_text(&copy), "flowsup run xxx", 15), 0);
	assert_int_equal(strlen(err_hint_text(&copy)), strlen("flowsup run  --mode safe") + sizeof(word) - 1);
	cli_clear(&c);
	words = (struct words){{"run", word, "--forse"}};
	assert_fails(parse(&c, &words, &e), ERR_USAGE, e);
	assert_non_null(strstr(err_hint_text(&e), "x --force"));
	cli_clear(&c);
}

static void
test_cli__help_is_made_of_the_table(void **state)
{
	const struct cli_option *o;
	struct output out = {.fd = -1};
	char name[64];

	(void)state;
	cli_help(&out, NULL, &run_command, true);
	for (o = run_options; o->name != NULL; o++) {
		snprintf(name, sizeof(name), "--%s", o->name);
		assert_non_null(strstr(buf_text(&out.pending), name));
	}
	assert_non_null(strstr(buf_text(&out.pending), "--wait[=TIME]"));
	assert_non_null(strstr(buf_text(&out.pending), "usage: flowsup run FILE..."));
	buf_clear(&out.pending);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_cli__options_before_and_after_operands),
    cmocka_unit_test(test_cli__values_of_each_kind),
    cmocka_unit_test(test_cli__a_value_that_may_lack_takes_no_operand),
    cmocka_unit_test(test_cli__two_dashes_end_options),
    cmocka_unit_test(test_cli__commands_of_two_words_and_other_names),
    cmocka_unit_test(test_cli__help_needs_no_operands),
    cmocka_unit_test(test_cli__wrong_usage_is_told_with_what_is_nearest),
    cmocka_unit_test(test_cli__hints_are_of_any_length),
    cmocka_unit_test(test_cli__help_is_made_of_the_table),
};

TEST_MAIN("cli", tests)
