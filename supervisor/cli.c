#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "flowsup/clock.h"
#include "flowsup/log.h"

const struct cli_option cli_common[] = {
    {.name = "home", .kind = CLI_STRING, .value = "DIR", .help = "the state directory",
	.complete = "file"},
    {.name = "json", .kind = CLI_FLAG, .help = "one JSON object a line"},
    {.name = "utc", .kind = CLI_FLAG, .help = "times in UTC"},
    {.name = "this-run", .kind = CLI_FLAG, .help = "this run, not the latest of its chain"},
    {.name = "help", .letter = 'h', .kind = CLI_FLAG, .help = "this text"},
    CLI_END};

bool
cli_takes(const struct command *cmd, const struct cli_option *common)
{
	if (strcmp(common->name, "json") == 0)
		return cmd->json;
	if (strcmp(common->name, "this-run") == 0)
		return cmd->this_run;
	return true;
}

/* ---- Values ---- */

static size_t
count_options(const struct cli_option *options)
{
	size_t n = 0;

	while (options != NULL && options[n].name != NULL)
		n++;
	return n;
}

static const struct cli_value *
find_value(const struct cli *c, const char *name)
{
	/* Where a line is completed there is none yet. */
	size_t i, n = c->command != NULL ? count_options(c->command->options) : 0;

	for (i = 0; i < n; i++)
		if (strcmp(c->command->options[i].name, name) == 0)
			return &c->values[i];
	return NULL;
}

static const struct cli_value *
value_of(const struct cli *c, const char *name)
{
	const struct cli_value *v = find_value(c, name);

	assert(v != NULL && "the option is in the table of its command");
	if (v == NULL)
		abort();
	return v;
}

bool
cli_flag(const struct cli *c, const char *name)
{
	return value_of(c, name)->given;
}

bool
cli_dry_run(const struct cli *c)
{
	const struct cli_value *v = find_value(c, "dry-run");

	return v != NULL && v->given;
}

int64_t
cli_int(const struct cli *c, const char *name, int64_t otherwise)
{
	const struct cli_value *v = value_of(c, name);

	return v->given && v->ntexts > 0 ? v->number : otherwise;
}

const char *
cli_text(const struct cli *c, const char *name, const char *otherwise)
{
	const struct cli_value *v = value_of(c, name);

	return v->ntexts > 0 ? v->texts[v->ntexts - 1] : otherwise;
}

size_t
cli_count(const struct cli *c, const char *name)
{
	return value_of(c, name)->ntexts;
}

const char *
cli_nth(const struct cli *c, const char *name, size_t i)
{
	const struct cli_value *v = value_of(c, name);

	assert(i < v->ntexts);
	return v->texts[i];
}

int
cli_prepend(struct cli *c, const char *name, const char *text, struct err *e)
{
	struct cli_value *v = &c->values[value_of(c, name) - c->values];
	const char **grown = reallocarray(v->texts, v->ntexts + 1, sizeof(*grown));

	if (grown == NULL)
		return err_nomem(e);
	memmove(grown + 1, grown, v->ntexts * sizeof(*grown));
	grown[0] = text;
	v->texts = grown;
	v->ntexts++;
	v->given = true;
	return 0;
}

int
cli_pairs(const struct cli *c, const char *name, struct json **out, struct err *e)
{
	struct json *o = json_object();
	const char *pair, *equals;
	size_t i;

	*out = NULL;
	for (i = 0; o != NULL && i < cli_count(c, name); i++) {
		pair = cli_nth(c, name, i);
		equals = strchr(pair, '=');
		o = json_setn(o, (struct slice){pair, (size_t)(equals - pair)},
		    json_string(slice_of(equals + 1)));
		if (o == NULL)
			return err_set(e, ERR_USAGE, "--%s: \"%s\" is not UTF-8", name, pair);
	}
	if (o == NULL)
		return err_nomem(e);
	if (i > 0)
		*out = o;
	else
		json_unref(o);
	return 0;
}

/* ---- One value ---- */

static int
read_int(const struct cli_option *o, const char *text, int64_t *out, struct err *e)
{
	char *end;
	long long n;

	errno = 0;
	n = strtoll(text, &end, 10);
	/* strtoll takes leading blanks and a plus sign; a person who writes them meant something else. */
	if (*end != '\0' || end == text || errno == ERANGE || !strchr("-0123456789", text[0]))
		return err_set(e, ERR_USAGE, "--%s: \"%s\" is not a whole number", o->name, text);
	if (o->most > o->least && (n < o->least || n > o->most))
		return err_set(e, ERR_USAGE, "--%s: %s is not between %lld and %lld", o->name, text,
		    (long long)o->least, (long long)o->most);
	*out = n;
	return 0;
}

static int
read_duration(const struct cli_option *o, const char *text, int64_t *out, struct err *e)
{
	if (duration_parse(slice_of(text), out, e) != 0) {
		e->code = ERR_USAGE;
		err_wrap(e, "--%s", o->name);
		return err_advice(e, "durations look like 90s, 2h30m, 250ms");
	}
	if (*out < o->least) {
		err_set(e, ERR_USAGE, "--%s: \"%s\" is no time at all", o->name, text);
		return err_advice(e, "without --%s there is no limit", o->name);
	}
	return 0;
}

static int
read_size(const struct cli_option *o, const char *text, int64_t *out, struct err *e)
{
	uint64_t bytes;

	if (size_parse(slice_of(text), &bytes, e) != 0) {
		e->code = ERR_USAGE;
		err_wrap(e, "--%s", o->name);
		return err_advice(e, "sizes look like 512k, 64M, 1.5G");
	}
	if (bytes > INT64_MAX || (o->most > 0 && bytes > (uint64_t)o->most) ||
	    (o->least > 0 && bytes < (uint64_t)o->least))
		return err_set(e, ERR_USAGE, "--%s: %s is out of range", o->name, text);
	*out = (int64_t)bytes;
	return 0;
}

enum { WORDS_MOST = 8, WORDS_TEXT = 64 };

static int
no_choice(const struct cli *c, const struct cli_option *o, const char *text, struct err *e)
{
	char words[WORDS_TEXT], *rest = words;
	const char *names[WORDS_MOST], *near;
	size_t n = 0;

	strlcpy(words, o->value, sizeof(words));
	while (n < WORDS_MOST && (names[n] = strsep(&rest, "|")) != NULL)
		n++;
	near = text_nearest(text, names, n);
	err_set(e, ERR_USAGE, "--%s: \"%s\" is none of %s", o->name, text, o->value);
	return near != NULL ? cli_hint_instead(c, text, strlen(text), near, e) : -1;
}

static int
read_choice(const struct cli *c, const struct cli_option *o, const char *text, int64_t *out,
    struct err *e)
{
	const char *word = o->value, *end;
	int64_t index = 0;

	for (;; word = end + 1, index++) {
		end = strchrnul(word, '|');
		if ((size_t)(end - word) == strlen(text) && strncmp(word, text, strlen(text)) == 0) {
			*out = index;
			return 0;
		}
		if (*end == '\0')
			return no_choice(c, o, text, e);
	}
}

static int
check_pair(const struct cli_option *o, const char *text, struct err *e)
{
	const char *equals = strchr(text, '=');

	if (equals == NULL || equals == text)
		return err_set(e, ERR_USAGE, "--%s: \"%s\" is not %s", o->name, text, o->value);
	return 0;
}

static int
read_value(const struct cli *c, const struct cli_option *o, const char *text, int64_t *out, struct err *e)
{
	switch (o->kind) {
	case CLI_INT:
		return read_int(o, text, out, e);
	case CLI_DURATION:
		return read_duration(o, text, out, e);
	case CLI_SIZE:
		return read_size(o, text, out, e);
	case CLI_CHOICE:
		return read_choice(c, o, text, out, e);
	case CLI_PAIR:
		return check_pair(o, text, e);
	case CLI_FLAG:
	case CLI_STRING:
	case CLI_LIST:
		return 0;
	}
	return 0;
}

static int
store_value(const struct cli *c, struct cli_value *v, const struct cli_option *o, const char *text,
    struct err *e)
{
	const char **grown;

	v->given = true;
	if (text == NULL)
		return 0;
	if (read_value(c, o, text, &v->number, e) != 0)
		return -1;
	grown = reallocarray(v->texts, v->ntexts + 1, sizeof(*grown));
	if (grown == NULL)
		return err_nomem(e);
	v->texts = grown;
	v->texts[v->ntexts++] = text;
	return 0;
}

/* ---- Options ---- */

struct parser {
	struct cli *c;
	char **argv;
	size_t at;
	size_t word1, word2; /* indices of the command's words; 0: none */
	bool family; /* the help of one is what --help asks for */
	char **operands;
};

static const struct cli_option *
find_long(const struct cli_option *options, const char *name, size_t len)
{
	for (; options != NULL && options->name != NULL; options++)
		if (strlen(options->name) == len && strncmp(options->name, name, len) == 0)
			return options;
	return NULL;
}

static const struct cli_option *
find_letter(const struct cli_option *options, char letter)
{
	for (; options != NULL && options->name != NULL; options++)
		if (options->letter == letter)
			return options;
	return NULL;
}

enum { MAX_NAMES = 64 };

static size_t
list_names(const struct command *cmd, const char *names[MAX_NAMES])
{
	const struct cli_option *o;
	size_t n = 0;

	for (o = cmd->options; o != NULL && o->name != NULL && n < MAX_NAMES; o++)
		names[n++] = o->name;
	for (o = cli_common; o->name != NULL && n < MAX_NAMES; o++)
		if (cli_takes(cmd, o))
			names[n++] = o->name;
	return n;
}

/* The name, of which `text` may be NULL, stands at `at` in the word that is its option. */
struct unknown {
	const char *shown, *text, *at;
	size_t len;
};

/* Whether it stands anywhere before `--`; also is another way to write it, or NULL. */
static bool
has_option(char **argv, const char *option, const char *also)
{
	for (argv++; *argv != NULL && strcmp(*argv, "--") != 0; argv++)
		if (strcmp(*argv, option) == 0 || (also != NULL && strcmp(*argv, also) == 0))
			return true;
	return false;
}

/* Once is enough of one without a value. */
static bool
is_had(const struct parser *p, const char *name, const char *option)
{
	const struct cli_option *o = find_long(p->c->command->options, name, strlen(name));

	return (o == NULL || o->kind == CLI_FLAG) && has_option(p->argv, option, NULL);
}

static bool
is_alone(const struct parser *p, const char *name)
{
	const struct cli_option *o = find_long(p->c->command->options, name, strlen(name));

	return o != NULL && o->alone;
}

/* Those of the names that begin with text, or with it as a word of theirs; how many they are. */
static size_t
list_beginning(const char *text, const char *const *names, size_t n, bool word, struct buf *to)
{
	size_t len = strlen(text), found = 0, i;

	for (i = 0; i < n; i++)
		if (strncmp(names[i], text, len) == 0 && (!word || names[i][len] == '-'))
			buf_printf(to, "%s--%s", found++ > 0 ? ", " : "", names[i]);
	return found;
}

/* Which one of several is meant nobody knows: what one does the other may destroy. */
static bool
begins_several(const char *text, const char *const *names, size_t n, struct buf *which)
{
	size_t found = list_beginning(text, names, n, true, which);

	if (found == 0)
		found = list_beginning(text, names, n, false, which);
	return found > 1 && !which->failed;
}

/* The option whose letter was written as a name; or NULL. */
static const struct cli_option *
by_letter(const struct command *cmd, const char *text)
{
	return text != NULL && text[0] != '\0' && text[1] == '\0' ? find_letter(cmd->options, text[0]) : NULL;
}

static int
unknown_option(const struct parser *p, const struct unknown *u, struct err *e)
{
	const struct command *cmd = p->c->command;
	const struct cli_option *letter = by_letter(cmd, u->text);
	const char *names[MAX_NAMES], *near;
	size_t n = list_names(cmd, names);
	struct buf option = {0}, several = {0};

	err_set(e, ERR_USAGE, "%s: unknown option %s", cmd->name, u->shown);
	near = u->text == NULL ? NULL : text_nearest(u->text, names, n);
	if (letter != NULL) {
		cli_hint_instead(p->c, u->at, u->len, (const char[]){'-', letter->letter, '\0'}, e);
	} else if (near != NULL && begins_several(u->text, names, n, &several)) {
		err_set(e, ERR_USAGE, "%s: option %s may be %s", cmd->name, u->shown, buf_text(&several));
	} else if (near != NULL) {
		buf_printf(&option, "--%s", near);
		if (is_alone(p, near))
			cli_hint_alone(p->c, u->at, is_had(p, near, buf_text(&option)) ? NULL : buf_text(&option), e);
		else
			cli_hint_instead(p->c, u->at, u->len, is_had(p, near, buf_text(&option)) ? NULL : buf_text(&option), e);
		buf_clear(&option);
	}
	buf_clear(&several);
	return err_has_hint(e) ? -1 : err_hint(e, "flowsup %s --help", cmd->name);
}

static void
set_common(struct cli *c, const struct cli_option *o, const char *text)
{
	switch (o - cli_common) {
	case 0:
		c->home = text;
		break;
	case 1:
		c->json = true;
		break;
	case 2:
		c->utc = true;
		break;
	case 3:
		c->this_run = true;
		break;
	default:
		c->help = true;
	}
}

static int
take_option(struct parser *p, const struct cli_option *o, bool common, const char *text,
    struct err *e)
{
	struct cli *c = p->c;

	if (o->kind != CLI_FLAG && text == NULL && !o->optional_value) {
		text = p->argv[p->at + 1];
		if (text == NULL) {
			err_set(e, ERR_USAGE, "%s: --%s needs a value (%s)", c->command->name,
			    o->name, o->value);
			return err_hint(e, "flowsup %s --help", c->command->name);
		}
		p->at++;
	}
	if (!common) {
		if (store_value(c, &c->values[o - c->command->options], o, text, e) == 0)
			return 0;
		return err_has_hint(e) ? -1 : err_hint(e, "flowsup %s --help", c->command->name);
	}
	if (strcmp(o->name, "home") == 0 && text != NULL && text[0] == '\0')
		return err_set(e, ERR_USAGE, "--home: the name of a directory is missing");
	set_common(c, o, text);
	return 0;
}

static int
parse_long(struct parser *p, const char *arg, struct err *e)
{
	const struct command *cmd = p->c->command;
	const char *name = arg + 2, *equals = strchrnul(name, '='), *text;
	size_t len = (size_t)(equals - name);
	const struct cli_option *o = find_long(cmd->options, name, len);
	bool common = o == NULL;
	char plain[64];

	if (common)
		o = find_long(cli_common, name, len);
	if (o == NULL || (common && !cli_takes(cmd, o))) {
		len = len < sizeof(plain) ? len : sizeof(plain) - 1;
		memcpy(plain, name, len);
		plain[len] = '\0';
		return unknown_option(p, &(struct unknown){arg, plain, arg, len + 2}, e);
	}
	text = *equals == '=' ? equals + 1 : NULL;
	if (o->kind == CLI_FLAG && text != NULL)
		return err_set(e, ERR_USAGE, "%s: --%s takes no value", cmd->name, o->name);
	return take_option(p, o, common, text, e);
}

static int
parse_short(struct parser *p, const char *arg, struct err *e)
{
	const struct command *cmd = p->c->command;
	const struct cli_option *o;
	const char *at;
	char shown[3] = "-";
	bool common;

	for (at = arg + 1; *at != '\0'; at++) {
		o = find_letter(cmd->options, *at);
		common = o == NULL;
		if (common)
			o = find_letter(cli_common, *at);
		if (o == NULL) {
			shown[1] = *at;
			return unknown_option(p,
			    &(struct unknown){at == arg + 1 && at[1] == '\0' ? arg : shown,
				strlen(arg) > 2 ? arg + 1 : NULL, arg, strlen(arg)}, e);
		}
		if (o->kind != CLI_FLAG && at[1] != '\0')
			return take_option(p, o, common, at[1] == '=' ? at + 2 : at + 1, e);
		if (take_option(p, o, common, NULL, e) != 0)
			return -1;
	}
	return 0;
}

static bool
is_option(const char *arg)
{
	return arg[0] == '-' && arg[1] != '\0';
}

/* "-5" is a number where no option of the command has that digit for its letter. */
static bool
is_number(const struct command *cmd, const char *arg)
{
	return arg[0] == '-' && arg[1] >= '0' && arg[1] <= '9' &&
	    find_letter(cmd->options, arg[1]) == NULL;
}

static int
parse_arguments(struct parser *p, struct err *e)
{
	struct cli *c = p->c;
	const char *arg;
	int r;

	c->tail = SIZE_MAX;
	for (p->at = 1; (arg = p->argv[p->at]) != NULL; p->at++) {
		if (p->at == p->word1 || p->at == p->word2)
			continue;
		if (c->has_tail || !is_option(arg) || is_number(c->command, arg)) {
			p->operands[c->noperands++] = p->argv[p->at];
			continue;
		}
		if (strcmp(arg, "--") == 0) {
			c->has_tail = true;
			c->tail = c->noperands;
			continue;
		}
		r = arg[1] == '-' ? parse_long(p, arg, e) : parse_short(p, arg, e);
		if (r != 0)
			return -1;
	}
	if (!c->has_tail)
		c->tail = c->noperands;
	return 0;
}

/* ---- Commands ---- */

const struct command *
cli_find(const struct command *const *commands, const char *name)
{
	for (; *commands != NULL; commands++)
		if (strcmp((*commands)->name, name) == 0 ||
		    ((*commands)->also != NULL && strcmp((*commands)->also, name) == 0))
			return *commands;
	return NULL;
}

static bool
is_two(const char *name, const char *one, const char *two)
{
	size_t len = strlen(one);

	return name != NULL && strncmp(name, one, len) == 0 && name[len] == ' ' &&
	    strcmp(name + len + 1, two) == 0;
}

static const struct command *
find_two(const struct command *const *commands, const char *one, const char *two)
{
	for (; *commands != NULL; commands++)
		if (is_two((*commands)->name, one, two) || is_two((*commands)->also, one, two))
			return *commands;
	return NULL;
}

static bool
is_help(const char *arg)
{
	return strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0;
}

/* An option that may stand before a command, in one word. */
static bool
is_everywhere(const char *arg)
{
	return strncmp(arg, "--home=", 7) == 0 || strcmp(arg, "--json") == 0 || strcmp(arg, "--utc") == 0 ||
	    strcmp(arg, "--this-run") == 0 || is_help(arg);
}

/*
 * The next word from `at` on that is no common option or its value; 0 when there is none. Options
 * of a command cannot be skipped here: whether they take a value is not known yet.
 */
static size_t
next_word(char **argv, size_t at)
{
	for (; argv[at] != NULL; at++) {
		if (!is_option(argv[at]))
			return at;
		if (strcmp(argv[at], "--home") == 0 && argv[at + 1] != NULL)
			at++;
		else if (!is_everywhere(argv[at]))
			return 0;
	}
	return 0;
}

bool
cli_is_family(const struct command *const *commands, const char *name)
{
	size_t len = strlen(name);

	for (; *commands != NULL; commands++)
		if (strncmp((*commands)->name, name, len) == 0 && (*commands)->name[len] == ' ')
			return true;
	return false;
}

/* What other programs call it; NULL: no command is called so anywhere. */
static const char *
by_another_name(const char *name)
{
	static const struct {
		const char *words; /* each between blanks */
		const char *instead;
	} others[] = {
	    {" run exec launch submit create new ", "start"},
	    {" ls ps runs jobs history top ", "list"},
	    {" status info describe inspect get ", "show"},
	    {" restart again redo ", "rerun"},
	    {" retry ", "resume --retry-failed"},
	    {" continue unpause ", "resume"},
	    {" cancel abort terminate end ", "stop"},
	    {" rm remove delete prune clean cleanup purge ", "gc --dry-run"},
	    {" tail ", "logs -f"},
	    {" follow attach monitor ", "watch"},
	    {" validate lint verify test ", "check"},
	    {" send tell say message ", "msg"},
	    {" accept allow ", "approve"},
	    {" reject refuse ", "deny"},
	    {" suspend hold ", "pause"},
	    {" daemon server serve ", "supervisor"},
	    {" playbook playbooks recipe ", "play"},
	};
	struct buf word = {0};
	const char *found = NULL;
	size_t i;

	buf_printf(&word, " %s ", name);
	for (i = 0; found == NULL && !word.failed && i < sizeof(others) / sizeof(others[0]); i++)
		if (strstr(others[i].words, buf_text(&word)) != NULL)
			found = others[i].instead;
	buf_clear(&word);
	return found;
}

static size_t
list_seconds(const struct command *const *commands, const char *one, const char *names[MAX_NAMES * 2])
{
	size_t n = 0, len = strlen(one);

	for (; *commands != NULL && n + 1 < MAX_NAMES * 2; commands++) {
		if (strncmp((*commands)->name, one, len) == 0 && (*commands)->name[len] == ' ')
			names[n++] = (*commands)->name + len + 1;
		if ((*commands)->also != NULL && strncmp((*commands)->also, one, len) == 0 &&
		    (*commands)->also[len] == ' ')
			names[n++] = (*commands)->also + len + 1;
	}
	return n;
}

const char *
cli_nearest_second(const struct command *const *commands, const char *one, const char *two)
{
	const char *names[MAX_NAMES * 2];
	const char *other = by_another_name(two);
	size_t n = list_seconds(commands, one, names), i;

	for (i = 0; other != NULL && i < n; i++)
		if (strcmp(names[i], other) == 0)
			return other;
	return text_nearest(two, names, n);
}

/* A family is known, its second word is not: the nearest one of the family is. */
static int
unknown_second(const struct parser *p, const char *one, const char *two, struct err *e)
{
	const char *near, *names[MAX_NAMES * 2];
	struct buf words = {0};
	size_t n, i;

	if (two == NULL) {
		n = list_seconds(p->c->commands, one, names);
		for (i = 0; i < n; i++)
			buf_printf(&words, "%s%s", i > 0 ? ", " : "", names[i]);
		err_set(e, ERR_USAGE, "%s: a second word is missing: %s", one, buf_text(&words));
		buf_clear(&words);
		return err_hint(e, "flowsup help %s", one);
	}
	err_set(e, ERR_USAGE, "%s: unknown second word \"%s\"", one, two);
	near = cli_nearest_second(p->c->commands, one, two);
	if (near != NULL)
		cli_hint_instead(p->c, two, strlen(two), near, e);
	return err_has_hint(e) ? -1 : err_hint(e, "flowsup help %s", one);
}

const char *
cli_unknown(const struct command *const *commands, const char *name, struct err *e)
{
	const char *names[MAX_NAMES * 2], *other;
	char small[WORDS_TEXT]; /* one that does not fit is near nothing */
	size_t n = 0, i;

	strlcpy(small, name, sizeof(small));
	for (i = 0; small[i] != '\0'; i++)
		small[i] = (char)tolower((unsigned char)small[i]);
	other = strchr(name, ' ') == NULL ? by_another_name(small) : NULL;
	if (other != NULL) {
		err_set(e, ERR_USAGE, "unknown command \"%s\"", name);
		return other;
	}
	for (; *commands != NULL && n < MAX_NAMES * 2; commands++)
		names[n++] = (*commands)->name;
	err_set(e, ERR_USAGE, "unknown command \"%s\"", name);
	return strlen(name) < sizeof(small) ? text_nearest(small, names, n) : NULL;
}

/* name: with options. One that takes none is told without what was given. */
static bool
takes_operands(const struct parser *p, const char *name)
{
	const struct command *const *cmd = p->c->commands;
	size_t len = strcspn(name, " ");

	for (; *cmd != NULL; cmd++)
		if (strncmp((*cmd)->name, name, len) == 0 && (*cmd)->name[len] == '\0')
			return (*cmd)->max_operands > 0;
	return true;
}

static int
unknown_command(const struct parser *p, const char *name, struct err *e)
{
	const char *near = cli_unknown(p->c->commands, name, e);

	if (near != NULL && strstr(near, " --") != NULL && !takes_operands(p, near))
		return err_hint(e, "flowsup %s", near);
	if (near != NULL)
		cli_hint_command(p->c, name, near, e);
	return err_has_hint(e) ? -1 : err_hint(e, "flowsup help");
}

/* `flowsup --help` and `flowsup --version` are written by habit: they stand for the command. */
static bool
find_by_habit(struct parser *p)
{
	const struct command *const *commands = p->c->commands;
	size_t i;

	if (next_word(p->argv, 1) != 0)
		return false;
	for (i = 1; p->argv[i] != NULL && p->c->command == NULL; i++) {
		p->word1 = i;
		if (strcmp(p->argv[i], "--version") == 0 || strcmp(p->argv[i], "-V") == 0)
			p->c->command = cli_find(commands, "version");
		else if (is_help(p->argv[i]))
			p->c->command = cli_find(commands, "help");
	}
	return p->c->command != NULL;
}

/* Why there is no command: an option stands in its place that is none of all commands. */
static int
no_command(char **argv, struct err *e)
{
	static const char *const names[] = {"home", "json", "utc", "this-run", "help", "version"};
	const char *arg = NULL, *near;
	size_t i;

	for (i = 1; argv[i] != NULL && arg == NULL; i++)
		if (strcmp(argv[i], "--home") == 0 && argv[i + 1] == NULL) {
			err_set(e, ERR_USAGE, "--home needs a value (DIR)");
			return err_hint(e, "flowsup list --home .   # for example");
		} else if (strcmp(argv[i], "--home") == 0) {
			i++;
		} else if (!is_everywhere(argv[i])) {
			arg = argv[i];
		}
	if (arg == NULL || strcmp(arg, "--") == 0) {
		err_set(e, ERR_USAGE, "no command was given");
		return err_hint(e, "flowsup help");
	}
	near = arg[1] != '-' ? NULL : text_nearest(arg + 2, names, sizeof(names) / sizeof(names[0]));
	err_set(e, ERR_USAGE, "unknown option %s before a command", arg);
	return near == NULL ? err_hint(e, "flowsup help") : err_hint(e, "flowsup help   # did you mean --%s?", near);
}

static int
find_command(struct parser *p, struct err *e)
{
	const struct command *const *commands = p->c->commands;
	struct cli *c = p->c;
	const char *one, *two;

	p->word1 = next_word(p->argv, 1);
	if (p->word1 == 0)
		return no_command(p->argv, e);
	one = p->argv[p->word1];
	p->word2 = next_word(p->argv, p->word1 + 1);
	if (p->word2 != 0)
		c->command = find_two(commands, one, p->argv[p->word2]);
	if (c->command != NULL)
		return 0;
	two = p->word2 != 0 ? p->argv[p->word2] : NULL;
	p->word2 = 0;
	c->command = cli_find(commands, one);
	if (c->command != NULL)
		return 0;
	if (!cli_is_family(commands, one))
		return unknown_command(p, one, e);
	if (two != NULL || !has_option(p->argv, "--help", "-h"))
		return unknown_second(p, one, two, e);
	/* "flowsup ctl --help" is "flowsup help ctl". */
	p->word1 = 0;
	p->family = true;
	c->command = cli_find(commands, "help");
	return 0;
}

static int
check_operands(const struct cli *c, struct err *e)
{
	const struct command *cmd = c->command;
	int first = (int)strcspn(cmd->synopsis, "\n");
	const char *near;

	if (c->noperands >= cmd->min_operands && c->noperands <= cmd->max_operands)
		return 0;
	if (c->noperands < cmd->min_operands)
		err_set(e, ERR_USAGE, "%s: an operand is missing; usage: flowsup %s %.*s", cmd->name,
		    cmd->name, first, cmd->synopsis);
	else
		err_set(e, ERR_USAGE, "%s: unexpected operand \"%s\"", cmd->name,
		    c->operands[cmd->max_operands]);
	near = c->operands[0] == NULL ? NULL : cli_nearest_second(c->commands, cmd->name, c->operands[0]);
	if (near != NULL)
		cli_hint_instead(c, c->operands[0], strlen(c->operands[0]), near, e);
	else if (c->noperands > cmd->max_operands)
		cli_hint_joined(c, NULL, e);
	return err_has_hint(e) ? -1 : err_hint(e, "flowsup help %s", cmd->name);
}

static size_t
count_words(char **argv)
{
	size_t n = 0;

	while (argv[n] != NULL)
		n++;
	return n;
}

static int
parse(struct cli *c, const struct command *const *commands, char **argv, struct err *e)
{
	struct parser p = {.c = c, .argv = argv};

	*c = (struct cli){.commands = commands, .argv = argv};
	if (cli_hints_init(c, e) != 0)
		return -1;
	if (!find_by_habit(&p) && find_command(&p, e) != 0)
		return -1;
	p.operands = calloc(count_words(argv) + 1, sizeof(*p.operands));
	c->operands = p.operands;
	c->values = calloc(count_options(c->command->options) + 1, sizeof(*c->values));
	if (c->operands == NULL || c->values == NULL)
		return err_nomem(e);
	if (parse_arguments(&p, e) != 0) {
		if (c->noperands > 0 && c->command->misread != NULL)
			c->command->misread(c, e);
		return -1;
	}
	c->help = c->help && !p.family;
	return c->help ? 0 : check_operands(c, e);
}

int
cli_parse(struct cli *c, const struct command *const *commands, char **argv, struct err *e)
{
	int r = parse(c, commands, argv, e);

	/* What is refused was not read to its end, and says so as it was asked for all the same. */
	if (r != 0)
		c->json = has_option(argv, "--json", NULL);
	return r;
}

void
cli_clear(struct cli *c)
{
	size_t i, n = c->command == NULL ? 0 : count_options(c->command->options);

	for (i = 0; c->values != NULL && i < n; i++)
		free(c->values[i].texts);
	free(c->values);
	free((char **)(uintptr_t)c->operands);
	json_unref(c->problems);
	json_unref(c->warnings);
	cli_hints_clear(c);
	*c = (struct cli){0};
}
