/*
 * emit: an operation talks to its worker. Standard output is the operation's response, so only
 * `context get` writes there. Where the worker is gone and the operation lives on, the request is
 * left in the attempt's directory.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/home.h"
#include "flowsup/ipc.h"
#include "flowsup/protocol.h"
#include "output.h"
#include "stdin.h"

enum {
	ANSWER_MS = 60000, /* the worker is alive and does not answer */
	CONNECT_MS = 30000,
	CONNECT_PAUSE_MS = 20,
	RESENDS = 3,
	INLINE_MOST = 60000, /* of a value in a packet; a larger one goes as a memfd */
	INLINE_DEPTH = 32,   /* and so does one that is nested deeper: packets are shallow */
	DEPTH_MOST = JSON_MAX_DEPTH - 2 /* of a value, which is kept inside of a request */
};

/* What the worker has put into this operation's environment. */
struct place {
	char *dir; /* the run directory */
	const char *token;
	int fd;
};

/* ---- Where ---- */

static int
find_place(struct place *p, struct err *e)
{
	const char *path = getenv("FLOWSUP_SOCK"), *slash = path != NULL ? strrchr(path, '/') : NULL;

	*p = (struct place){.token = getenv("FLOWSUP_TOKEN"), .fd = -1};
	if (path == NULL || path[0] == '\0' || p->token == NULL || p->token[0] == '\0')
		return err_set(e, ERR_USAGE, "emit works inside an operation of a run: %s is not set",
		    path == NULL || path[0] == '\0' ? "FLOWSUP_SOCK" : "FLOWSUP_TOKEN");
	if (slash == NULL || slash == path)
		return err_set(e, ERR_USAGE, "emit works inside an operation of a run: "
		    "FLOWSUP_SOCK is \"%.200s\", which is no socket in a run's directory", path);
	p->dir = strndup(path, (size_t)(slash - path));
	if (p->dir == NULL)
		return err_nomem(e);
	p->fd = fs_open_private_dir(AT_FDCWD, p->dir, e);
	return p->fd >= 0 ? 0 : err_wrap(e, "the run's directory");
}

static void
place_clear(struct place *p)
{
	fd_close(&p->fd);
	free(p->dir);
}

/* ---- Asking ---- */

struct request {
	const char *verb;
	struct json *value;
	int value_fd; /* the value as a memfd, or -1 */
};

static int
connect_to(const struct place *p, struct err *e)
{
	int64_t until = clock_monotonic_ns() + CONNECT_MS * NS_PER_MS;
	int fd;

	for (;;) {
		*e = (struct err){0};
		fd = ipc_connect(p->fd, RUN_SOCKET, e);
		if (fd >= 0 || e->code != ERR_BUSY || clock_monotonic_ns() >= until)
			return fd;
		usleep(CONNECT_PAUSE_MS * 1000);
	}
}

static int
send_request(int fd, const struct place *p, const struct request *r, struct err *e)
{
	struct json *hello = json_set(json_object(), "role", json_cstr("operation")), *body;

	hello = json_set(hello, "major", json_int(PROTOCOL_MAJOR));
	hello = json_set(hello, "minor", json_int(PROTOCOL_MINOR));
	if (message_send(fd, MSG_HELLO, hello, -1, e) != 0)
		return -1;
	body = json_set(json_object(), "token", json_cstr(p->token));
	body = json_set(body, "verb", json_cstr(r->verb));
	if (r->value_fd < 0)
		body = json_set(body, "value", json_ref(r->value));
	return message_send(fd, MSG_REQUEST, body, r->value_fd, e) == 0 ? 0 : -1;
}

static int
receive(int fd, struct message *m, int *passed, struct err *e)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};
	int n;

	do
		n = poll(&wait, 1, ANSWER_MS);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys(e, ERR_IO, errno, "cannot wait for the worker");
	if (n == 0)
		return err_set(e, ERR_TIMEOUT, "the worker does not answer; whether it has accepted "
		    "the request is not known");
	return message_recv(fd, FROM_WORKER_REPLY, m, passed, e) == 1 ? 0 : -1;
}

static int
read_value(int fd, struct json **out, struct err *e)
{
	const struct json_options o = {.max_bytes = JSON_MAX_PROGRAM};
	struct buf text = {0};
	int rc = ipc_memfd_read(fd, JSON_MAX_PROGRAM, &text, e);

	if (rc == 0)
		rc = json_parse(buf_view(&text), &o, out, NULL, e);
	buf_clear(&text);
	return rc;
}

static int
take_answer(struct message *m, int passed, struct json **value, struct err *e)
{
	const char *text;

	if (m->type == MSG_ERROR) {
		err_set(e, err_from_type(json_cstr_of(json_get(m->body, "error"))), "%s",
		    json_cstr_of(json_get(m->body, "message")));
		text = json_cstr_of(json_get(m->body, "advice"));
		if (text != NULL)
			return err_advice(e, "%s", text);
		text = json_cstr_of(json_get(m->body, "hint"));
		return text != NULL ? err_hint(e, "%s", text) : -1;
	}
	if (m->type != MSG_OK)
		return err_set(e, ERR_PROTOCOL, "the worker answers with '%s'", message_word(m->type));
	if (passed >= 0)
		return read_value(passed, value, e);
	if (json_get(m->body, "value") != NULL)
		*value = json_ref(json_get(m->body, "value"));
	return 0;
}

/* 0, or -1; ERR_NOTFOUND: the worker is not there, or went away before it had answered. */
static int
ask_once(const struct place *p, const struct request *r, struct json **value, struct err *e)
{
	struct message m = {0};
	int passed = -1, rc, fd = connect_to(p, e);

	if (fd < 0)
		return -1;
	rc = send_request(fd, p, r, e);
	if (rc == 0)
		rc = receive(fd, &m, &passed, e);
	else if (e->code == ERR_IO)
		e->code = ERR_NOTFOUND;
	if (rc == 0)
		rc = take_answer(&m, passed, value, e);
	message_clear(&m);
	fd_close(&passed);
	fd_close(&fd);
	return rc;
}

/* Sent again with the same id, so that it is taken once however often it comes. */
static int
ask(const struct place *p, const struct request *r, struct json **value, struct err *e)
{
	int n, rc = -1;

	for (n = 0; n < RESENDS && rc != 0; n++) {
		*e = (struct err){0};
		rc = ask_once(p, r, value, e);
		if (rc != 0 && e->code != ERR_NOTFOUND)
			break;
	}
	return rc;
}

/* ---- Without a worker ---- */

/* Nobody listens. The socket of a run that has ended is removed; that of a worker that died stays,
 * until another one takes its operations over, which looks for what was left here meanwhile. */
static bool
worker_has_died(const struct place *p)
{
	struct stat st;

	return fstatat(p->fd, RUN_SOCKET, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int
make_dir(int at, const char *name, struct err *e)
{
	int fd;

	if (mkdirat(at, name, 0700) != 0 && errno != EEXIST)
		return err_sys(e, ERR_IO, errno, "cannot create '%s'", name);
	fd = fs_open_private_dir(at, name, e);
	if (fd >= 0 && fs_sync_dir(&fs_real, "spool.parent", at, NULL, e) != 0)
		fd_close(&fd);
	return fd;
}

static int
write_spool(int dir, const struct request *r, struct err *e)
{
	struct json *line = json_set(json_object(), "verb", json_cstr(r->verb));
	struct buf text = {0};
	char name[64];
	int rc;

	snprintf(name, sizeof(name), "%020lld-%.32s.json", (long long)clock_wall_ns(),
	    json_cstr_of(json_get(r->value, "id")));
	line = json_set(line, "value", json_ref(r->value));
	if (line == NULL)
		return err_nomem(e);
	json_write(&text, line);
	buf_putc(&text, '\n');
	json_unref(line);
	rc = buf_ok(&text, e);
	if (rc == 0)
		rc = fs_replace_file(dir, name, buf_view(&text), e);
	buf_clear(&text);
	return rc;
}

static int
spool(const struct place *p, const struct request *r, struct err *e)
{
	const char *op = getenv("FLOWSUP_OP_ID"), *attempt = getenv("FLOWSUP_ATTEMPT");
	char name[256];
	int ops = -1, dir = -1, spool_dir = -1, rc = -1;

	if (op == NULL || attempt == NULL || strchr(op, '/') != NULL || strchr(attempt, '/') != NULL ||
	    snprintf(name, sizeof(name), "%s.%s", op, attempt) >= (int)sizeof(name))
		return err_set(e, ERR_USAGE, "FLOWSUP_OP_ID or FLOWSUP_ATTEMPT is not set");
	ops = fs_open_private_dir(p->fd, RUN_OPS, e);
	if (ops >= 0)
		dir = make_dir(ops, name, e);
	if (dir >= 0)
		spool_dir = make_dir(dir, "spool", e);
	if (spool_dir >= 0)
		rc = write_spool(spool_dir, r, e);
	fd_close(&spool_dir);
	fd_close(&dir);
	fd_close(&ops);
	if (rc == 0)
		cli_note("the worker is gone: the request is kept in ops/%s/spool", name);
	return rc;
}

/* ---- Verbs ---- */

static int
add_id(struct request *r, struct err *e)
{
	char id[UUID_TEXT];

	if (uuid_make(id, e) != 0)
		return -1;
	r->value = json_set(r->value, "id", json_cstr(id));
	return r->value != NULL ? 0 : err_nomem(e);
}

static int
pack(struct request *r, struct err *e)
{
	struct buf text = {0};
	int rc = 0;

	if (add_id(r, e) != 0)
		return -1;
	json_write(&text, r->value);
	rc = buf_ok(&text, e);
	if (rc == 0 && text.len > JSON_MAX_REQUEST)
		rc = err_set(e, ERR_LIMIT, "a request may have %zu bytes, this one has %zu",
		    JSON_MAX_REQUEST, text.len);
	else if (rc == 0 && json_depth(r->value, DEPTH_MOST + 1) > DEPTH_MOST)
		rc = err_set(e, ERR_LIMIT, "a request may be nested %d deep, this one is deeper", DEPTH_MOST);
	else if (rc == 0 &&
	    (text.len > INLINE_MOST || json_depth(r->value, INLINE_DEPTH + 1) > INLINE_DEPTH)) {
		r->value_fd = ipc_memfd("emit", buf_view(&text), e);
		rc = r->value_fd >= 0 ? 0 : -1;
	}
	buf_clear(&text);
	return rc;
}

/* Consumes value. taken (NULL: nothing more) is called with the answer, not where it was spooled. */
static int
request(struct cli *c, const char *verb, struct json *value,
    void (*taken)(const char *verb, const struct json *answer), struct err *e)
{
	bool wants_value = strcmp(verb, "context.get") == 0;
	struct request r = {.verb = verb, .value = value, .value_fd = -1};
	struct json *answer = NULL;
	struct place p;
	int rc;

	rc = find_place(&p, e);
	if (rc == 0)
		rc = pack(&r, e);
	if (rc == 0) {
		rc = ask(&p, &r, &answer, e);
		if (rc != 0 && e->code == ERR_NOTFOUND && p.fd >= 0 && answer == NULL) {
			if (!wants_value && worker_has_died(&p)) {
				*e = (struct err){0};
				rc = spool(&p, &r, e);
			}
		}
	}
	if (rc == 0 && wants_value)
		out_json(c->out, json_ref(json_get(answer, "value")));
	if (rc == 0 && taken != NULL && answer != NULL)
		taken(verb, answer);
	json_unref(answer);
	json_unref(r.value);
	fd_close(&r.value_fd);
	place_clear(&p);
	return rc;
}

static int
add_text(struct json **value, const char *name, const char *text, struct err *e)
{
	struct json *v = json_cstr(text);

	if (v == NULL)
		return err_set(e, ERR_USAGE, "emit: the %s is not valid UTF-8", name);
	*value = json_set(*value, name, v);
	return *value != NULL ? 0 : err_nomem(e);
}

static int
parse_operand(const char *text, struct json **out, struct err *e)
{
	const struct json_options o = {.max_bytes = JSON_MAX_REQUEST};
	struct buf read = {0};
	int rc = 0;

	if (strcmp(text, "-") == 0)
		rc = stdin_read("a value in JSON", JSON_MAX_REQUEST, &read, e);
	else
		buf_puts(&read, text);
	if (rc == 0)
		rc = buf_ok(&read, e);
	if (rc == 0 && json_parse(buf_view(&read), &o, out, NULL, e) != 0) {
		rc = err_wrap(e, "the value");
		if (e->code == ERR_SYNTAX)
			err_advice(e, "a text is written with its quotes: '\"text\"'");
	}
	buf_clear(&read);
	return rc;
}

/* ---- emit context ---- */

static const struct {
	const char *word, *verb;
	size_t least, most; /* operands behind the word */
} contexts[] = {
    {"get", "context.get", 0, 1},
    {"set", "context.set", 2, 2},
    {"append", "context.append", 2, 2},
    {"remove", "context.remove", 1, 1},
};
enum { CONTEXTS = sizeof(contexts) / sizeof(contexts[0]) };

static int
run_context(struct cli *c, struct err *e)
{
	struct json *value = json_object(), *v = NULL;
	size_t i = 0, given = c->noperands - 1;
	int rc;

	while (i < CONTEXTS && strcmp(contexts[i].word, c->operands[0]) != 0)
		i++;
	if (i == CONTEXTS || given < contexts[i].least || given > contexts[i].most) {
		json_unref(value);
		err_set(e, ERR_USAGE, "emit context: get [POINTER], set POINTER JSON, "
		    "append POINTER JSON, or remove POINTER");
		return err_hint(e, "flowsup emit context --help");
	}
	rc = add_text(&value, "pointer", given > 0 ? c->operands[1] : "", e);
	if (rc == 0 && given > 1)
		rc = parse_operand(c->operands[2], &v, e);
	if (rc != 0) {
		json_unref(value);
		return rc;
	}
	if (v != NULL)
		value = json_set(value, "value", v);
	if (value == NULL)
		return err_nomem(e);
	return request(c, contexts[i].verb, value, NULL, e);
}

/* ---- The others ---- */

static int
run_progress(struct cli *c, struct err *e)
{
	struct json *value = json_object(), *fraction = NULL;
	double d;

	if (parse_operand(c->operands[0], &fraction, e) != 0 || !json_double(fraction, &d)) {
		json_unref(fraction);
		json_unref(value);
		*e = (struct err){0};
		return err_set(e, ERR_USAGE, "emit progress: \"%s\" is no number from 0 to 1",
		    c->operands[0]);
	}
	value = json_set(value, "fraction", fraction);
	if (value == NULL)
		return err_nomem(e);
	if (c->noperands > 1 && add_text(&value, "text", c->operands[1], e) != 0) {
		json_unref(value);
		return -1;
	}
	return request(c, "progress", value, NULL, e);
}

static int
run_artifact(struct cli *c, struct err *e)
{
	struct json *value = json_object();

	if (add_text(&value, "path", c->operands[0], e) == 0)
		return request(c, "artifact", value, NULL, e);
	json_unref(value);
	return -1;
}

/* What is written as JSON on the command line. */
static bool
is_json(const char *option)
{
	return strcmp(option, "exec") == 0 || strcmp(option, "context") == 0;
}

static bool
is_work(const char *option)
{
	return strcmp(option, "run") == 0 || strcmp(option, "instruction") == 0;
}

/* From standard input. */
static int
add_read(struct json **value, const char *name, struct err *e)
{
	struct buf read = {0};
	struct json *v = NULL;
	int rc = stdin_read("what is to be done", JSON_MAX_REQUEST, &read, e);

	if (rc == 0)
		rc = buf_ok(&read, e);
	if (rc == 0 && (v = json_string(buf_view(&read))) == NULL)
		rc = err_set(e, ERR_USAGE, "emit: the %s is not valid UTF-8", name);
	buf_clear(&read);
	if (rc != 0)
		return rc;
	*value = json_set(*value, name, v);
	return *value != NULL ? 0 : err_nomem(e);
}

/* Standard input can be read once. */
static int
check_stdin(struct cli *c, struct err *e)
{
	const struct cli_option *o;
	const char *first = NULL;

	for (o = c->command->options; o->name != NULL; o++) {
		if ((!is_work(o->name) && !is_json(o->name)) || strcmp(cli_text(c, o->name, ""), "-") != 0)
			continue;
		if (first != NULL)
			return err_set(e, ERR_USAGE, "--%s and --%s cannot both read standard input", first, o->name);
		first = o->name;
	}
	return 0;
}

static int
add_option(struct cli *c, const struct cli_option *o, struct json **value, struct err *e)
{
	const char *text = cli_text(c, o->name, "");
	struct json *v = NULL;

	if (o->kind == CLI_FLAG) {
		*value = json_set(*value, o->name, json_bool(true));
		return *value != NULL ? 0 : err_nomem(e);
	}
	if (is_work(o->name) && strcmp(text, "-") == 0)
		return add_read(value, o->name, e);
	if (!is_json(o->name))
		return add_text(value, o->name, text, e);
	if (parse_operand(text, &v, e) != 0)
		return err_wrap(e, "--%s", o->name);
	*value = json_set(*value, o->name, v);
	return *value != NULL ? 0 : err_nomem(e);
}

/* Says on standard error what came of it: standard output is the operation's response. */
static void
tell_accepted(const char *verb, const struct json *answer)
{
	const char *id = json_cstr_of(json_get(json_get(answer, "value"), "id"));

	if (id != NULL)
		cli_note("%s accepted: %s%s", verb, id,
		    json_is_true(json_get(json_get(answer, "value"), "deferred"))
			? ", deferred: the run starts nothing more, a resume will" : "");
}

static int
grow(struct cli *c, const char *verb, struct err *e)
{
	const struct cli_option *o;
	struct json *value;

	if (check_stdin(c, e) != 0)
		return -1;
	value = json_object();
	for (o = c->command->options; o->name != NULL; o++)
		if (cli_flag(c, o->name) && add_option(c, o, &value, e) != 0) {
			json_unref(value);
			return -1;
		}
	return value != NULL ? request(c, verb, value, tell_accepted, e) : err_nomem(e);
}

static int
run_spawn(struct cli *c, struct err *e)
{
	return grow(c, "spawn", e);
}

static int
run_escalate(struct cli *c, struct err *e)
{
	return grow(c, "escalate", e);
}

static const struct cli_option spawn_options[] = {
    {.name = "instruction", .kind = CLI_STRING, .value = "TEXT", .help = "what an agent is to do"},
    {.name = "run", .kind = CLI_STRING, .value = "TEXT", .help = "a shell command"},
    {.name = "exec", .kind = CLI_STRING, .value = "JSON", .help = "a command as a list of words"},
    {.name = "assignee", .kind = CLI_STRING, .value = "ROLE", .help = "else the emitter's own role"},
    {.name = "independent", .kind = CLI_FLAG, .help = "it need not wait for the emitter"},
    {.name = "key", .kind = CLI_STRING, .value = "KEY", .help = "asked for again after a crash, it is made once"},
    {.name = "reason", .kind = CLI_STRING, .value = "TEXT", .help = "why; recorded"},
    {.name = "context", .kind = CLI_STRING, .value = "JSON", .help = "what it is given"},
    CLI_END};

static const struct cli_option escalate_options[] = {
    {.name = "to", .kind = CLI_STRING, .value = "ROLE", .help = "else the one that the role names"},
    {.name = "reason", .kind = CLI_STRING, .value = "TEXT", .help = "why; recorded"},
    CLI_END};

static const char *const context_examples[] = {
    "flowsup emit context get /findings        # without a pointer: all of it",
    "flowsup emit context set /owner '\"kim\"'   # makes or replaces a value",
    "flowsup emit context append /findings - < one.json",
    "flowsup emit context remove /draft",
    NULL};
static const char *const progress_examples[] = {
    "flowsup emit progress 0.4 'four of ten'   # for those who watch", NULL};
static const char *const artifact_examples[] = {
    "flowsup emit artifact report.html   # below $FLOWSUP_ARTIFACTS",
    NULL};
static const char *const spawn_examples[] = {
    "flowsup emit spawn --instruction 'Look for leaks' --assignee reviewer",
    "flowsup emit spawn --run 'make lint' --independent --key lint",
    "flowsup emit spawn --exec '[\"make\", \"test\"]' --context '{\"dir\": \"lib\"}'",
    NULL};
static const char *const escalate_examples[] = {
    "flowsup emit escalate --reason 'beyond me'   # to the role's escalate_to",
    "flowsup emit escalate --to senior", NULL};

const struct command cmd_emit_context = {
    .name = "emit context",
    .group = CLI_GROUP_INSIDE,
    .synopsis = "get [POINTER]\nset|append POINTER JSON|-\nremove POINTER",
    .summary = "read and change the shared context",
    .examples = context_examples,
    .details = "Changes are visible to the operation at once, to others with its outcome; of\n"
	       "an attempt that fails none is kept. `-` reads JSON from standard input.",
    .min_operands = 1,
    .max_operands = 3,
    .operands = "get|set|append|remove",
    .run = run_context,
};

const struct command cmd_emit_progress = {
    .name = "emit progress",
    .group = CLI_GROUP_INSIDE,
    .synopsis = "FRACTION [TEXT]",
    .summary = "tell how far the operation is",
    .examples = progress_examples,
    .min_operands = 1,
    .max_operands = 2,
    .operands = "",
    .run = run_progress,
};

const struct command cmd_emit_artifact = {
    .name = "emit artifact",
    .group = CLI_GROUP_INSIDE,
    .synopsis = "PATH",
    .summary = "tell of a file that the operation has made",
    .examples = artifact_examples,
    .details = "It counts as one that the document declares: at the end of the operation it\n"
	       "must be there and not be empty, and its digest is recorded.",
    .min_operands = 1,
    .max_operands = 1,
    .operands = "file",
    .run = run_artifact,
};

const struct command cmd_emit_spawn = {
    .name = "emit spawn",
    .group = CLI_GROUP_INSIDE,
    .synopsis = "--instruction TEXT | --run TEXT | --exec JSON",
    .summary = "ask for a further operation",
    .examples = spawn_examples,
    .details = "It runs after the operation that asks and sees its response, or at once with\n"
	       "--independent. Returns when it is recorded. Exit 4: rejected, and why. One of\n"
	       "--instruction, --run, --exec and --context may be `-`: read from standard input.",
    .options = spawn_options,
    .max_operands = 0,
    .operands = "",
    .run = run_spawn,
};

const struct command cmd_emit_escalate = {
    .name = "emit escalate",
    .group = CLI_GROUP_INSIDE,
    .synopsis = "[--to ROLE] [--reason TEXT]",
    .summary = "ask for another try by a stronger role",
    .examples = escalate_examples,
    .details = "The operation is done again by that role after it has ended, and what needs it\n"
	       "waits for the last try.",
    .options = escalate_options,
    .max_operands = 0,
    .operands = "",
    .run = run_escalate,
};
