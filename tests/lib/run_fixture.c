/* A run and its worker, without supervisor and commands. */
#include "run_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "flowsup/checkpoint.h"
#include "flowsup/flow.h"
#include "flowsup/fs.h"
#include "flowsup/ipc.h"
#include "flowsup/proc.h"

enum { MOST_VARIABLES = 32, MOST_TEXT = 64 << 20 };

/* ---- Making ---- */

static struct flow *
read_flow(const char *text)
{
	struct flow_source source = {.name = "test", .text = slice_of(text)};
	struct flow *flow = NULL;
	struct err e = {0};

	assert_works(flow_read(&source, &flow, NULL, &e), e);
	return flow;
}

static void
insert_row(struct run_fixture *r, size_t nops)
{
	struct session_new n = {.run_id = r->run_id,
	    .session_id = r->session_id,
	    .invocation_id = "0123456789ab",
	    .kind = "flow",
	    .name = "test",
	    .total = (int64_t)nops};
	struct err e = {0};
	bool moved;

	assert_works(session_insert(r->store, &n, &e), e);
	assert_works(session_transition(r->store, r->run_id, STATUS_STARTING, "run.starting.forked",
			 NULL, 0, &moved, &e), e);
	assert_true(moved);
}

static void
make_directory(struct run_fixture *r, const struct flow *flow, const char *options,
    const char *const *more)
{
	char *argv[] = {(char[]){"flowsup"}, NULL};
	char path[600], *envp[MOST_VARIABLES] = {(char[]){"PATH=/usr/bin:/bin"}, path};
	struct launch l = {.run_id = r->run_id,
	    .session_id = r->session_id,
	    .invocation_id = "0123456789ab",
	    .kind = "flow",
	    .name = "test",
	    .argv = argv,
	    .cwd = r->dir.path,
	    .umask = 022,
	    .environment = envp,
	    .flow = flow->document};
	struct json *parsed = NULL;
	struct err e = {0};
	size_t n = 2;
	int making;

	snprintf(path, sizeof(path), "TEST_DIR=%s", r->dir.path);
	for (; more != NULL && *more != NULL && n < MOST_VARIABLES - 1; more++)
		envp[n++] = strdup(*more);
	if (options != NULL)
		assert_works(json_parse(slice_of(options), NULL, &parsed, NULL, &e), e);
	l.options = parsed;
	assert_works(rundir_create(&r->home, &l, &making, &e), e);
	rundir_born(&r->home, l.run_id, &making);
	json_unref(parsed);
	while (n > 2)
		free(envp[--n]);
}

void
run_make_flow(struct run_fixture *r, struct flow *flow, const char *options,
    const char *const *more)
{
	struct err e = {0};
	char path[600];

	*r = (struct run_fixture){.run_fd = -1, .link = -1};
	test_dir_make(&r->dir);
	snprintf(path, sizeof(path), "%s/home", r->dir.path);
	assert_works(home_open(path, true, &r->home, &e), e);
	assert_works(store_open(&r->home, STORE_COMMAND, true, STORE_BUSY_MS, &r->store, &e), e);
	assert_works(run_id_make(r->run_id, &e), e);
	assert_works(uuid_make(r->session_id, &e), e);
	make_directory(r, flow, options, more);
	insert_row(r, flow->nops);
	r->run_fd = rundir_open(&r->home, r->run_id, &e);
	assert_works(r->run_fd, e);
	flow_free(flow);
}

void
run_make(struct run_fixture *r, const char *flow_yaml, const char *options,
    const char *const *more)
{
	run_make_flow(r, read_flow(flow_yaml), options, more);
}

/* ---- The worker ---- */

/* "NAME=value" from our environment, to be freed, or NULL. */
static char *
variable(const char *name)
{
	const char *value = getenv("JITTER") != NULL ? getenv(name) : NULL;
	char *text = NULL;

	if (value != NULL)
		assert_true(asprintf(&text, "%s=%s", name, value) > 0);
	return text;
}

void
run_start(struct run_fixture *r)
{
	struct proc_spawn s = PROC_SPAWN_INIT;
	struct proc_child child;
	struct buf worker = {0};
	struct err e = {0};
	int pair[2], lock, log, beat, null;
	char *envp[] = {(char[]){"PATH=/usr/bin:/bin"}, NULL, NULL, NULL};
	char *argv[] = {(char[]){"flowsup-worker"}, (char[]){"--home"}, r->home.path, (char[]){"--run"},
	    r->run_id, NULL};

	assert_works(proc_relative_to_self("../../libexec/flowsup/flowsup-worker", &worker, &e), e);
	assert_works(ipc_pair(pair, &e), e);
	/* tests/preload/jitter.c: with JITTER and LD_PRELOAD in the environment of the tests. */
	envp[1] = variable("LD_PRELOAD");
	envp[2] = envp[1] != NULL ? variable("JITTER") : NULL;
	lock = run_lock_take(r->run_fd, 1000, &e);
	assert_works(lock, e);
	log = openat(r->run_fd, "worker.log", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	beat = memfd_create("heartbeat", MFD_CLOEXEC);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_true(log >= 0 && beat >= 0 && null >= 0);
	s.path = buf_text(&worker);
	s.argv = argv;
	s.envp = envp;
	s.new_session = true;
	s.fds[0] = (struct proc_fd){null, 0};
	s.fds[1] = (struct proc_fd){log, 1};
	s.fds[2] = (struct proc_fd){log, 2};
	s.fds[3] = (struct proc_fd){lock, 3};
	s.fds[4] = (struct proc_fd){pair[1], 4};
	s.fds[5] = (struct proc_fd){beat, 5};
	s.nfds = 6;
	assert_works(proc_start(&s, &child, NULL, &e), e);
	r->worker = child.id.pid;
	r->link = pair[0];
	fd_close(&child.pidfd);
	fd_close(&pair[1]);
	fd_close(&lock);
	fd_close(&log);
	fd_close(&beat);
	fd_close(&null);
	free(envp[1]);
	free(envp[2]);
	buf_clear(&worker);
}

/* Reads what the worker says, so that its queue never fills. */
static void
drain_link(struct run_fixture *r)
{
	struct message m;
	struct err e = {0};

	while (r->link >= 0 && message_recv(r->link, FROM_WORKER, &m, NULL, &e) == 1)
		message_clear(&m);
}

static bool
has_ended(void *arg)
{
	struct run_fixture *r = arg;

	drain_link(r);
	if (r->worker != 0 && waitpid(r->worker, &r->status, WNOHANG) == r->worker)
		r->worker = 0;
	return r->worker == 0;
}

static void
show_log(struct run_fixture *r)
{
	char *log = run_has_file(r, "worker.log") ? run_file(r, "worker.log") : NULL;

	if (log != NULL && log[0] != '\0')
		print_message("# worker.log: %s\n", log);
	free(log);
}

void
run_expect(struct run_fixture *r, enum run_status status, const char *reason_code)
{
	struct session s = {0};
	struct err e = {0};

	if (!test_wait_for(has_ended, r)) {
		show_log(r);
		fail_msg("the worker did not end");
	}
	if (!WIFEXITED(r->status) || WEXITSTATUS(r->status) != 0) {
		show_log(r);
		fail_msg("the worker's wait status is 0x%x", (unsigned)r->status);
	}
	assert_works(session_read(r->store, r->run_id, &s, &e), e);
	if (s.status != status || strcmp(s.reason_code, reason_code) != 0) {
		print_message("# %s %s: %s\n", status_word(s.status), s.reason_code, s.reason);
		show_log(r);
	}
	assert_string_equal(status_word(s.status), status_word(status));
	assert_string_equal(s.reason_code, reason_code);
	session_clear(&s);
}

void
run_whole(struct run_fixture *r, const char *flow_yaml, enum run_status status,
    const char *reason_code)
{
	run_make(r, flow_yaml, NULL, NULL);
	run_start(r);
	run_expect(r, status, reason_code);
}

void
run_clear(struct run_fixture *r)
{
	if (r->dir.path[0] == '\0')
		return;
	if (r->worker != 0) {
		kill(r->worker, SIGKILL);
		waitpid(r->worker, NULL, 0);
	}
	json_unref(r->state);
	free(r->events);
	fd_close(&r->link);
	fd_close(&r->run_fd);
	store_close(r->store);
	home_close(&r->home);
	test_dir_remove(&r->dir);
	memset(r, 0, sizeof(*r));
}

/* ---- Files ---- */

bool
run_has_file(struct run_fixture *r, const char *name)
{
	return faccessat(r->run_fd, name, F_OK, 0) == 0;
}

char *
run_file(struct run_fixture *r, const char *name)
{
	return test_file_read(r->run_fd, name);
}

char *
run_test_file(struct run_fixture *r, const char *name)
{
	return test_file_read(r->dir.fd, name);
}

struct expected_text {
	struct run_fixture *r;
	const char *name, *text;
};

static bool
has_text(void *arg)
{
	const struct expected_text *x = arg;
	char *text;
	bool found;

	drain_link(x->r);
	if (!run_has_file(x->r, x->name))
		return false;
	text = run_file(x->r, x->name);
	found = strstr(text, x->text) != NULL;
	free(text);
	return found;
}

void
run_wait_text(struct run_fixture *r, const char *name, const char *text)
{
	struct expected_text x = {r, name, text};

	if (!test_wait_for(has_text, &x)) {
		show_log(r);
		fail_msg("%s never held \"%s\"", name, text);
	}
}

void
run_wait_file(struct run_fixture *r, const char *name)
{
	run_wait_text(r, name, "");
}

/* ---- What was recorded ---- */

const struct json *
run_entry(struct run_fixture *r, const char *op)
{
	struct ckpt_load_options o = {0};
	struct ckpt_report report;
	struct err e = {0};

	if (r->state == NULL) {
		assert_works(ckpt_load(r->run_fd, &o, &r->state, &report, &e), e);
		assert_int_equal(report.status, CKPT_CLEAN);
	}
	return json_get(json_get(r->state, "ops"), op);
}

static void
assert_text(const struct json *v, const char *wanted)
{
	char *have = strndup(json_text(v).data != NULL ? json_text(v).data : "(no string)",
	    json_text(v).data != NULL ? json_text(v).len : 11);

	assert_non_null(have);
	assert_string_equal(have, wanted);
	free(have);
}

void
run_assert_entry(struct run_fixture *r, const char *op, const char *status)
{
	const struct json *entry = run_entry(r, op);

	if (entry == NULL)
		fail_msg("%s has no entry", op);
	assert_text(json_get(entry, "status"), status);
}

void
run_assert_response(struct run_fixture *r, const char *op, const char *text)
{
	run_assert_entry(r, op, "completed");
	assert_text(json_get(run_entry(r, op), "response"), text);
}

void
run_assert_failure(struct run_fixture *r, const char *op, const char *class, const char *part)
{
	const struct json *error;
	const char *message;

	run_assert_entry(r, op, "failed");
	error = json_get(run_entry(r, op), "error");
	assert_text(json_get(error, "class"), class);
	message = json_cstr_of(json_get(error, "message"));
	assert_non_null(message);
	if (part != NULL && strstr(message, part) == NULL)
		fail_msg("\"%s\" does not hold \"%s\"", message, part);
}

static bool
is_event(const struct json *line, const char *name, const char *op)
{
	return slice_is(json_text(json_get(line, "event")), name) &&
	    (op == NULL || slice_is(json_text(json_get(line, "op")), op));
}

/* The n-th such event, or NULL; *count is how many there are. */
static struct json *
find_event(struct run_fixture *r, const char *name, const char *op, size_t *count)
{
	struct json *found = NULL, *line;
	const char *at, *lf;
	struct err e = {0};

	if (r->events == NULL)
		r->events = run_file(r, RUN_EVENTS);
	*count = 0;
	for (at = r->events; (lf = strchr(at, '\n')) != NULL; at = lf + 1) {
		assert_works(json_parse((struct slice){at, (size_t)(lf - at)}, NULL, &line, NULL, &e), e);
		if (is_event(line, name, op) && (*count)++ == 0)
			found = json_ref(line);
		json_unref(line);
	}
	return found;
}

size_t
run_count_events(struct run_fixture *r, const char *name, const char *op)
{
	size_t count;

	json_unref(find_event(r, name, op, &count));
	return count;
}

struct json *
run_event(struct run_fixture *r, const char *name, const char *op)
{
	size_t count;

	return find_event(r, name, op, &count);
}

/* ---- Controls ---- */

void
run_poke(struct run_fixture *r)
{
	struct json *body = json_set(json_object(), "run", json_cstr(r->run_id));
	struct err e = {0};

	drain_link(r);
	assert_works(message_send(r->link, MSG_POKE, body, -1, &e), e);
}

struct wanted_control {
	struct run_fixture *r;
	const char *id;
	char *result;
};

static int
look_at_control(void *arg, const struct control *c)
{
	struct wanted_control *x = arg;

	if (strcmp(c->id, x->id) == 0 && c->applied_at > 0 && c->result != NULL)
		x->result = strdup(c->result);
	return 0;
}

static bool
has_result(void *arg)
{
	struct wanted_control *x = arg;
	struct err e = {0};

	drain_link(x->r);
	assert_works(control_list(x->r->store, x->r->run_id, false, look_at_control, x, &e), e);
	return x->result != NULL;
}

char *
run_control(struct run_fixture *r, const char *verb, const char *payload)
{
	struct wanted_control x = {.r = r};
	struct json *object = NULL;
	char id[UUID_TEXT];
	struct err e = {0};

	if (payload != NULL)
		assert_works(json_parse(slice_of(payload), NULL, &object, NULL, &e), e);
	assert_works(control_insert(r->store, r->run_id, verb, object, id, &e), e);
	x.id = id;
	run_poke(r);
	if (!test_wait_for(has_result, &x)) {
		show_log(r);
		fail_msg("%s never had a result", verb);
	}
	return x.result;
}

int
run_setup(void **state)
{
	*state = calloc(1, sizeof(struct run_fixture));
	return *state == NULL;
}

int
run_teardown(void **state)
{
	run_clear(*state);
	free(*state);
	return 0;
}
