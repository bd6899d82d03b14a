#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/buf.h"
#include "flowsup/config.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "flowsup/places.h"
#include "flowsup/proc.h"
#include "flowsup/provider.h"
#include "lacking.h"
#include "policy.h"
#include "problems.h"
#include "roles.h"
#include "start.h"
#include "stdin.h"

enum { ITEMS_MOST_BYTES = 256 << 20, NAME_MOST = 48 };

/* ---- Names ---- */

/* What people see in `list`: the document's name, or its file's without ending, or the command. */
void
start_name(const char *path, struct buf *to)
{
	const char *base = strrchr(path, '/'), *dot;

	base = base == NULL ? path : base + 1;
	dot = strrchr(base, '.');
	if (strcmp(path, "-") == 0 || base[0] == '\0')
		buf_puts(to, "stdin");
	else
		buf_add(to, base, dot == NULL || dot == base ? strlen(base) : (size_t)(dot - base));
}

/* Between characters, never inside one. */
static void
cut_name(struct buf *to)
{
	if (to->len <= NAME_MOST)
		return;
	to->len = NAME_MOST;
	while (to->len > 0 && ((unsigned char)to->data[to->len] & 0xc0) == 0x80)
		to->len--;
	to->data[to->len] = '\0';
}

/* A prompt is no path: its first line, as it stands. */
static void
name_from_prompt(const char *prompt, struct buf *to)
{
	const char *line = prompt + strspn(prompt, " \t\r\n");

	buf_add(to, line, strcspn(line, "\r\n"));
	cut_name(to);
}

static void
name_from_words(char *const *words, struct buf *to)
{
	const char *base = strrchr(words[0], '/');

	buf_puts(to, base == NULL || base[1] == '\0' ? words[0] : base + 1);
	for (words++; *words != NULL && to->len < NAME_MOST; words++)
		buf_printf(to, " %s", *words);
	cut_name(to);
}

/* ---- Documents ---- */

int
start_document(struct cli *c, const char *path, struct flow **out, struct err *e)
{
	struct flow_diagnostics d = {0};
	const char *shown = problems_file(path);
	int r;

	stdin_expect_document(path);
	r = flow_read_file(path, out, &d, e);
	if (r != 0)
		problems_tell(c, shown, &d, "; nothing was started", e);
	else
		problems_warn(c, shown, &d);
	flow_diagnostics_clear(&d);
	return r;
}

static int
check_flow(struct cli *c, const struct flow *f, const char *name, struct err *e)
{
	struct flow_diagnostics d = {0};
	int r = flow_check(f, name, &d, e);

	if (r != 0)
		problems_tell(c, name == NULL ? "the flow" : name, &d, "; nothing was started", e);
	flow_diagnostics_clear(&d);
	return r;
}

/* ---- --each ---- */

/* Empty items are left out: an empty line at the end of a list is no work. */
static int
split_items(struct slice text, char separator, struct slice **items, size_t *count, struct err *e)
{
	const char *end;
	size_t cap = 0, len;
	struct slice *grown;

	*items = NULL;
	*count = 0;
	for (; text.len > 0; text.data += len, text.len -= len) {
		end = memchr(text.data, separator, text.len);
		len = end == NULL ? text.len : (size_t)(end - text.data);
		if (*count == cap && len > 0) {
			cap = cap == 0 ? 64 : cap * 2;
			grown = reallocarray(*items, cap, sizeof(*grown));
			if (grown == NULL)
				return err_nomem(e);
			*items = grown;
		}
		if (len > 0)
			(*items)[(*count)++] = (struct slice){text.data, len};
		len += end != NULL;
	}
	return 0;
}

static int
check_items(const struct slice *items, size_t count, struct err *e)
{
	size_t i;

	if (count > FLOW_MAX_OPERATIONS)
		return err_set(e, ERR_LIMIT, "--each: %zu items are more than %d", count,
		    FLOW_MAX_OPERATIONS);
	for (i = 0; i < count; i++) {
		if (memchr(items[i].data, '\0', items[i].len) == NULL)
			continue;
		err_set(e, ERR_USAGE, "--each: item %zu holds a NUL byte", i + 1);
		return err_advice(e, "with -0 each item ends in NUL");
	}
	return 0;
}

/* Without items there is no flow. */
static int
from_each(const struct cli *c, struct flow **out, struct err *e)
{
	struct flow_each each = {.command = cli_text(c, "each", NULL), .name = "each"};
	struct buf text = {0};
	struct slice *items = NULL;
	int r;

	r = stdin_read(cli_flag(c, "null") ? "items that end in NUL" : "items, one a line,",
	    (size_t)ITEMS_MOST_BYTES, &text, e);
	if (r == 0)
		r = split_items(buf_view(&text), cli_flag(c, "null") ? '\0' : '\n', &items,
		    &each.nitems, e);
	if (r == 0)
		r = check_items(items, each.nitems, e);
	if (r == 0 && each.nitems > 0) {
		each.items = items;
		r = flow_from_each(&each, out, e);
	}
	free(items);
	buf_clear(&text);
	return r;
}

/* ---- --planner ---- */

static int
usage(struct err *e, const char *text)
{
	err_set(e, ERR_USAGE, "start: %s", text);
	return err_hint(e, "flowsup start --help");
}

/* A provider's name is good enough for who has declared no role. */
static int
add_provider_role(const char *name, struct json **roles, struct err *e)
{
	struct provider_search search;
	struct provider *p = NULL;
	struct err why = {0};
	char word[SHELL_WORD_TEXT], *place = NULL;
	int r;

	if (json_get(*roles, name) != NULL)
		return 0;
	if (provider_search_init(&search, NULL, e) != 0)
		return -1;
	r = provider_load(&search, name, &p, &why);
	provider_search_clear(&search);
	provider_free(p);
	if (r != 0 && why.code != ERR_NOTFOUND) {
		*e = why;
		return -1;
	}
	if (r != 0) {
		err_set(e, ERR_USAGE, "--planner: there is no role \"%.64s\", nor a provider", name);
		if (place_config(NULL, "roles", &place, &why) == 0 && place != NULL)
			err_hint(e, "mkdir -p %s   # NAME.yaml goes there", shell_word(word, place));
		free(place);
		return -1;
	}
	*roles = json_set(*roles, name, json_set(json_object(), "provider", json_cstr(name)));
	return *roles != NULL ? 0 : err_nomem(e);
}

/* A task in words is no command. */
static int
refuse_shell(const char *role, const struct json *roles, struct err *e)
{
	const char *name = json_cstr_of(json_get(json_get(roles, role), "provider"));
	struct provider_search search;
	struct provider *p = NULL;
	struct err ignored = {0};
	bool shell;

	if (name == NULL)
		return 0;
	if (provider_search_init(&search, NULL, e) != 0)
		return -1;
	shell = provider_load(&search, name, &p, &ignored) == 0 && p->shell;
	provider_search_clear(&search);
	provider_free(p);
	if (!shell)
		return 0;
	err_set(e, ERR_USAGE, "--planner: provider %.64s runs what it is told as shell text, and cannot plan from a prompt",
	    name);
	return err_hint(e, "man flowsup-flow   # PLANNING: in a document a script may be the planner");
}

static int
from_planner(const struct cli *c, struct flow **out, struct err *e)
{
	const char *role = cli_text(c, "planner", "");
	struct json *roles;
	int r;

	if (c->operands[0][strspn(c->operands[0], " \t\r\n")] == '\0')
		return usage(e, "--planner: the prompt is empty");
	if (roles_all(&roles, e) != 0)
		return -1;
	r = add_provider_role(role, &roles, e);
	if (r == 0)
		r = refuse_shell(role, roles, e);
	if (r == 0)
		r = flow_from_planner(role, c->operands[0], roles, out, e);
	json_unref(roles);
	return r;
}

/* ---- Which of them ---- */

static int
check_usage(const struct cli *c, struct err *e)
{
	bool each = cli_flag(c, "each"), chain = cli_flag(c, "chain");

	if (each && chain)
		return usage(e, "--each and --chain exclude each other");
	if (cli_flag(c, "planner") &&
	    (each || chain || c->has_tail || cli_flag(c, "null") || cli_count(c, "arg") > 0))
		return usage(e, "--planner takes a prompt and nothing else");
	if (cli_flag(c, "planner"))
		return c->noperands == 1 ? 0 : usage(e, "--planner takes one operand, the prompt");
	if (cli_flag(c, "null") && !each)
		return usage(e, "-0 goes with --each");
	if (each && c->noperands > 0)
		return usage(e, "--each takes its items from standard input and no operands");
	if (chain && c->noperands == 0)
		return usage(e, "--chain: the commands are missing");
	if (cli_count(c, "arg") > 0 && (chain || each || c->has_tail))
		return usage(e, "--arg goes with a document, which declares its arguments");
	if (chain || each)
		return 0;
	if (c->has_tail && c->tail > 0)
		return usage(e, "a document and a command exclude each other");
	if (c->has_tail && c->noperands == 0)
		return usage(e, "the command behind -- is missing");
	if (c->noperands == 0)
		return usage(e, "what to start is missing: FILE, -, or -- CMD");
	if (!c->has_tail && c->noperands > 1) {
		err_set(e, ERR_USAGE, "start: unexpected operand \"%s\"", c->operands[1]);
		if (cli_hint_joined(c, NULL, e))
			return -1;
		return access(c->operands[0], F_OK) == 0 ? err_hint(e, "flowsup start --help")
							  : cli_hint_behind_dashes(c, c->operands[0], e);
	}
	return 0;
}

/* A program, or a line for a shell that begins with one, in PATH. */
static bool
is_command(const char *word)
{
	char *program = strndup(word, strcspn(word, SHELL_LINE_CHARACTERS));
	struct buf found = {0};
	bool is = program != NULL && program[0] != '\0' && strchr(program, '/') == NULL &&
	    proc_find_program(program, getenv("PATH"), &found, &(struct err){0}) == 0;

	buf_clear(&found);
	free(program);
	return is;
}

/* A file that may be executed and begins as a script or a program does. */
static bool
is_program_file(const char *path)
{
	static const char script[] = "#!", elf[] = "\177ELF";
	char start[sizeof(elf) - 1] = "";
	struct stat st;
	ssize_t n = -1;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		n = pread(fd, start, sizeof(start), 0);
	fd_close(&fd);
	return access(path, X_OK) == 0 &&
	    ((n >= 2 && memcmp(start, script, 2) == 0) || (n == sizeof(start) && memcmp(start, elf, sizeof(start)) == 0));
}

/* A person who forgot the `--` gets told. */
static void
hint_at_command(const struct cli *c, struct err *e)
{
	const char *path = c->operands[0];
	char word[SHELL_WORD_TEXT];

	if (access(path, F_OK) != 0 && (is_command(path) || (text_is_shell_line(path) && strchr(path, '.') == NULL)))
		cli_hint_behind_dashes(c, path, e);
	else if (is_program_file(path))
		err_hint(e, "flowsup start -- %s%s   # a program, not a document",
		    strchr(path, '/') == NULL ? "./" : "", shell_word(word, path));
}

void
start_misread(const struct cli *c, struct err *e)
{
	if (!c->has_tail && !cli_flag(c, "each") && !cli_flag(c, "chain") && !cli_flag(c, "planner"))
		hint_at_command(c, e);
}

static int
value_instead(const char *option, const char *value, struct err *e)
{
	err_set(e, ERR_USAGE, "start: what to start is missing; %s %s is written %s=%s", option, value, option, value);
	return err_hint(e, "flowsup start --help");
}

static int
make_flow(struct cli *c, struct buf *name, struct flow **out, struct err *e)
{
	const char *option;
	int r;

	if (cli_flag(c, "each")) {
		buf_puts(name, "each");
		return from_each(c, out, e);
	}
	if (cli_flag(c, "planner")) {
		name_from_prompt(c->operands[0], name);
		return from_planner(c, out, e);
	}
	if (cli_flag(c, "chain")) {
		name_from_words(c->operands, name);
		return flow_from_chain(NULL, c->operands, out, e);
	}
	if (c->has_tail) {
		name_from_words(c->operands, name);
		return flow_from_command(NULL, c->operands, out, e);
	}
	start_name(c->operands[0], name);
	r = start_document(c, c->operands[0], out, e);
	option = r != 0 && access(c->operands[0], F_OK) != 0 ? cli_apart(c, c->operands[0]) : NULL;
	if (option != NULL)
		return value_instead(option, c->operands[0], e);
	if (r != 0)
		hint_at_command(c, e);
	return r;
}

static int
read_arguments(struct cli *c, const struct flow *f, struct json **out, struct err *e)
{
	struct flow_diagnostics d = {0};
	struct json *given = NULL;
	int r = cli_pairs(c, "arg", &given, e);
	size_t n;

	*out = NULL;
	if (r == 0 && (f->args != NULL || given != NULL))
		r = flow_arguments(f, given, out, &d, e);
	n = r != 0 && e->code != ERR_NOMEM ? problems_refuse(c, NULL, &d) : 0;
	if (n > 1)
		err_set(e, e->code, "the arguments have %zu problems; nothing was started", n);
	flow_diagnostics_clear(&d);
	json_unref(given);
	return r;
}

int
start_change(struct cli *c, const char *file, struct flow_overrides *o, struct flow **f,
    struct err *e)
{
	struct json *arguments = NULL, *notify = NULL, *restart = NULL;
	struct config config = {0};
	struct flow *was = *f;
	int r;

	o->file = file != NULL ? problems_file(file) : NULL;
	o->concurrency = (unsigned)cli_int(c, "jobs", 0);
	o->timeout_ns = cli_int(c, "timeout", 0);
	o->max_ops = cli_int(c, "max-ops", -1);
	o->fail_fast = cli_flag(c, "fail-fast");
	o->reactive = cli_flag(c, "reactive") ? cli_text(c, "reactive", "all") : NULL;
	o->name = cli_text(c, "name", o->name);
	*f = NULL;
	r = read_arguments(c, was, &arguments, e);
	if (r == 0)
		r = policy_options(c, was->restart, &notify, &restart, e);
	if (r == 0)
		r = problems_config(c, &config, "; nothing was started", e);
	o->arguments = arguments;
	o->notify = notify != NULL || was->notify != NULL ? notify : config.notify;
	o->restart = restart;
	o->watchdog_ns = was->watchdog_ns == 0 ? config.watchdog_ns : 0;
	if (r != 0)
		flow_free(was);
	else
		r = flow_override(was, o, f, e);
	json_unref(arguments);
	json_unref(notify);
	json_unref(restart);
	config_clear(&config);
	if (r == 0 && check_flow(c, *f, file, e) != 0) {
		flow_free(*f);
		*f = NULL;
		r = -1;
	}
	return r;
}

const char *
start_path(const struct cli *c)
{
	return c->noperands == 1 && !c->has_tail && !cli_flag(c, "planner") && !cli_flag(c, "chain")
	    ? c->operands[0] : NULL;
}

int
start_flow(struct cli *c, struct flow **out, struct err *e)
{
	const char *file = start_path(c);
	struct flow_overrides o = {0};
	struct buf name = {0};
	struct flow *f = NULL;
	int r;

	if (check_usage(c, e) != 0)
		return -1;
	r = make_flow(c, &name, &f, e);
	if (r == 0 && buf_ok(&name, e) != 0) {
		flow_free(f);
		r = -1;
	}
	if (r == 0 && f != NULL) {
		o.name = f->name != NULL ? NULL : buf_text(&name);
		r = start_change(c, file, &o, &f, e);
	}
	if (r == 0)
		*out = f;
	buf_clear(&name);
	return r;
}

/* ---- Environment ---- */

static const char *
value_for(const struct flow_how *how, const char *name)
{
	size_t i = how->nenv;

	while (i-- > 0)
		if (strcmp(how->env[i].name, name) == 0 && how->env[i].value != NULL)
			return how->env[i].value;
	return getenv(name);
}

/* What is missing, and what all of it is to be told with. */
struct missing {
	size_t programs;
	struct lacking variables;
	struct err first; /* said at the end when it is the only one */
	struct flow_diagnostics *d;
};

static int
note_missing(struct missing *m, bool is_warning, const struct err *why, struct err *e)
{
	struct flow_diagnostic *p = flow_diagnostics_add(m->d);

	if (p == NULL && m->d->suppressed == 0)
		return err_nomem(e);
	if (p != NULL) {
		p->warning = is_warning;
		strlcpy(p->message, why->msg, sizeof(p->message));
		strlcpy(p->hint, why->hint, sizeof(p->hint));
		p->command = !why->advice;
	}
	if (!is_warning && m->first.code == ERR_NONE)
		m->first = *why;
	return 0;
}

static int
check_variables(const struct flow_op *op, struct missing *m, struct err *e)
{
	const struct flow_how *how = op->how;
	size_t i;

	for (i = 0; i < how->nenv; i++)
		if (how->env[i].required && value_for(how, how->env[i].name) == NULL &&
		    lacking_add(&m->variables, how->env[i].name, op->id, e) != 0)
			return -1;
	return 0;
}

static int
note_variables(struct missing *m, size_t nops, struct err *e)
{
	struct buf text = {0}, command = {0};
	struct err why = {0};
	int rc = 0;
	size_t i;

	for (i = 0; i < m->variables.count && rc == 0; i++) {
		buf_reset(&text);
		buf_reset(&command);
		lacking_text(&m->variables.all[i], nops, &text);
		lacking_command(m->variables.all[i].name, &command);
		err_set(&why, ERR_ENVIRONMENT, "%s", buf_text(&text));
		buf_puts(&command, "   # asks for its value");
		err_hint(&why, "%s", buf_text(&command));
		rc = note_missing(m, false, &why, e);
	}
	buf_clear(&text);
	buf_clear(&command);
	return rc;
}

/* A name with a slash counts from the operation's directory, as execve(2) will see it. */
static int
find_program(const struct flow_op *op, const char *name, struct buf *found, struct err *e)
{
	struct buf path = {0};
	int r = 0;

	if (strchr(name, '/') != NULL && name[0] != '/' && op->how->cwd != NULL) {
		r = flow_home_path(op->how->cwd, getenv("HOME"), &path, e);
		buf_puts(&path, "/");
	}
	buf_puts(&path, name);
	if (r == 0)
		r = buf_ok(&path, e);
	if (r == 0)
		r = proc_find_program(buf_text(&path), value_for(op->how, "PATH"), found, e);
	buf_clear(&path);
	return r;
}

/*
 * What an operation needs may make its program, so only the program of one that needs nothing must be
 * there now. A bare name is seldom made by a flow: that is worth a word.
 */
static int
judge_missing(const struct flow_op *op, const char *name, const struct err *why, struct missing *m,
    struct err *e)
{
	if (op->nneeds > 0)
		return strchr(name, '/') == NULL ? note_missing(m, true, why, e) : 0;
	m->programs++;
	return note_missing(m, false, why, e);
}

static int
look_for(const struct flow_op *op, const char *name, struct missing *m, struct err *e)
{
	struct buf found = {0};
	struct err why = {0};
	int r = find_program(op, name, &found, &why);

	buf_clear(&found);
	if (r == 0)
		return 0;
	if (why.code != ERR_ENVIRONMENT) {
		*e = why;
		return -1;
	}
	err_wrap(&why, "operation \"%s\"", op->id);
	if (!err_has_hint(&why) && text_is_shell_line(name))
		err_advice(&why, "a line for a shell: sh -c LINE, or run: in a document");
	return judge_missing(op, name, &why, m, e);
}

/* The program of the agent whom an instruction is for. Its provider was read before. */
static int
check_agent(const struct flow_op *op, struct missing *m, struct err *e)
{
	struct provider_search search;
	struct provider *p = NULL;
	const char *program;
	int r;

	if (op->how->role == NULL || op->how->role->provider == NULL)
		return 0;
	if (provider_search_init(&search, NULL, e) != 0)
		return -1;
	r = provider_load(&search, op->how->role->provider, &p, e);
	provider_search_clear(&search);
	program = r == 0 ? json_cstr_of(json_at(p->starts[PROVIDER_NEW], 0)) : NULL;
	if (program != NULL)
		r = look_for(op, program, m, e);
	provider_free(p);
	return r;
}

static int
check_program(const struct flow_op *op, struct missing *m, struct err *e)
{
	if (op->kind == FLOW_INSTRUCTION)
		return check_agent(op, m, e);
	/* A template is known only when the operation starts. */
	if (op->kind != FLOW_EXEC || flow_has_template(op->argv[0]))
		return 0;
	return look_for(op, op->argv[0], m, e);
}

/* What an operation needs may make its directory. */
static int
check_directory(const struct flow_op *op, struct missing *m, struct err *e)
{
	struct buf path = {0};
	struct err lacks = {0};
	char word[SHELL_WORD_TEXT];
	struct stat st;
	int why = 0, r = 0;

	if (op->how->cwd == NULL || op->nneeds > 0 || flow_has_template(op->how->cwd))
		return 0;
	if (flow_home_path(op->how->cwd, getenv("HOME"), &path, e) != 0) {
		buf_clear(&path);
		return err_wrap(e, "operation \"%s\": cwd", op->id);
	}
	if (stat(buf_text(&path), &st) != 0)
		why = errno;
	else if (!S_ISDIR(st.st_mode))
		why = ENOTDIR;
	else if (access(buf_text(&path), X_OK) != 0)
		why = errno;
	if (why != 0) {
		err_sys(&lacks, ERR_ENVIRONMENT, why, "operation \"%s\": cwd '%s'", op->id, buf_text(&path));
		if (why == ENOENT)
			err_hint(&lacks, "mkdir -p %s", shell_word(word, buf_text(&path)));
		r = note_missing(m, true, &lacks, e);
	}
	buf_clear(&path);
	return r;
}

/* What is to be told of problems, by the document, this call or the configuration. */
static int
check_notify(const struct flow *f, struct missing *m, struct err *e)
{
	struct err why = {0};

	if (policy_check_notify(f->notify, getenv("PATH"), &why) == 0)
		return 0;
	if (why.code != ERR_ENVIRONMENT) {
		*e = why;
		return -1;
	}
	m->programs++;
	return note_missing(m, false, &why, e);
}

static int
tell_missing(const struct missing *m, struct err *e)
{
	size_t all = m->programs + m->variables.count;

	if (all == 0)
		return 0;
	if (all > 1)
		return err_set(e, ERR_ENVIRONMENT, "%zu %s are missing; nothing was started", all,
		    m->variables.count == 0 ? "programs"
			: m->programs == 0 ? "variables"
					   : "programs and variables");
	*e = m->first;
	return -1;
}

/* Items of one `foreach` share all this; 100,000 of them ask once. */
static bool
asks_the_same(const struct flow_op *before, const struct flow_op *op)
{
	return before != NULL && before->how == op->how && before->kind == op->kind &&
	    (before->nneeds > 0) == (op->nneeds > 0) &&
	    (op->kind != FLOW_EXEC || strcmp(before->argv[0], op->argv[0]) == 0);
}

int
start_check_environment(const struct flow *f, struct flow_diagnostics *d, struct err *e)
{
	const struct flow_op *op, *before = NULL;
	struct missing m = {.d = d};
	int rc = 0;
	size_t i;

	for (i = 0; i < f->nops && rc == 0; i++) {
		op = &f->ops[i];
		rc = check_variables(op, &m, e);
		if (rc != 0 || asks_the_same(before, op))
			continue;
		rc = check_directory(op, &m, e) != 0 ? -1 : check_program(op, &m, e);
		before = op;
	}
	if (rc == 0 && note_variables(&m, f->nops, e) == 0 && check_notify(f, &m, e) == 0)
		rc = tell_missing(&m, e);
	else
		rc = -1;
	lacking_clear(&m.variables);
	return rc;
}
