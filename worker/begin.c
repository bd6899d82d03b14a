/* From a run directory to a worker that can take its first turn. Everything here may block. */
#include "agent.h"

#include "keeper.h"
#include "taken.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "plan.h"

/* Descriptors that are open whatever runs, and those of one operation. */
enum { FDS_FIXED = 80, FDS_PER_OPERATION = 5, DEFAULT_CPUS = 1 };

/* ---- What was handed over ---- */

static int
own_fd(int fd)
{
	return fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 ? fd : -1;
}

/* Whoever handed its end of a channel over gets what we leave, as a subreaper. */
static void
find_parent(struct worker *w)
{
	if (w->inherited_fd >= 0 && proc_identify(getppid(), &w->parent, NULL) != 0)
		w->parent.pid = 0;
}

static bool
is_lock_of(int fd, int run_fd)
{
	struct stat have, want;

	return fd >= 0 && fstat(fd, &have) == 0 &&
	    fstatat(run_fd, RUN_LOCK, &want, AT_SYMLINK_NOFOLLOW) == 0 &&
	    fs_same(fs_identity_of(&have), fs_identity_of(&want));
}

/* The supervisor took the lock before it forked; started by hand the worker takes it itself. */
static int
take_lock(struct worker *w, struct err *e)
{
	bool held;

	if (is_lock_of(w->lock_fd, w->run_fd)) {
		if (run_lock_held(w->run_fd, &held, e) != 0)
			return -1;
		return held ? 0 : err_set(e, ERR_INTERNAL, "the run's lock was handed over open");
	}
	w->lock_fd = run_lock_take(w->run_fd, 1000, e);
	return w->lock_fd >= 0 ? 0 : err_wrap(e, "the run has a worker");
}

/*
 * The supervisor writes that the run starts while this process is loaded: until then nothing of the run may
 * be touched. It ends, or closes the pipe: then that was not written, and the run still waits. One that was
 * started by hand has no such pipe.
 */
static int
wait_at_gate(struct worker *w, struct err *e)
{
	int gate = own_fd(WORKER_GATE_FD);
	struct stat st;
	ssize_t n = 1;
	char go;

	if (w->inherited_fd >= 0 && gate >= 0 && fstat(gate, &st) == 0 && S_ISFIFO(st.st_mode))
		do
			n = read(gate, &go, 1);
		while (n < 0 && errno == EINTR);
	fd_close(&gate);
	if (n == 1)
		return 0;
	w->disowned = true;
	return err_set(e, ERR_REFUSED, "the run still waits");
}

static int
open_dir(int at, const char *name, int *fd, struct err *e)
{
	if (mkdirat(at, name, 0700) != 0 && errno != EEXIST)
		return err_sys(e, ERR_IO, errno, "cannot create '%s'", name);
	*fd = fs_open_private_dir(at, name, e);
	return *fd >= 0 ? 0 : -1;
}

static int
open_paths(struct worker *w, const char *run_id, struct err *e)
{
	if (asprintf(&w->run_path, "%s/" HOME_RUNS "/%s", w->home.path, run_id) < 0 ||
	    asprintf(&w->ops_path, "%s/" RUN_OPS, w->run_path) < 0)
		return err_nomem(e);
	w->null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (w->null_fd < 0)
		return err_sys(e, ERR_IO, errno, "cannot open /dev/null");
	w->attempts_fd = openat(w->run_fd, RUN_ATTEMPTS,
	    O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (w->attempts_fd < 0)
		return err_sys(e, ERR_IO, errno, "cannot open '%s'", RUN_ATTEMPTS);
	return open_dir(w->run_fd, RUN_OPS, &w->ops_fd, e);
}

/* The session that began the chain of resumes; keys of idempotence are made from it. */
static int
find_origin(struct worker *w, struct err *e)
{
	struct session s = {0};
	struct store *store;
	int rc;

	snprintf(w->origin, sizeof(w->origin), "%s", w->session_id);
	if (w->launch.resumed_from == NULL)
		return 0;
	if (store_open(&w->home, STORE_WORKER, false, STORE_BUSY_MS, &store, e) != 0)
		return -1;
	rc = session_read(store, w->run_id, &s, e);
	if (rc == 0 && s.origin[0] != '\0')
		snprintf(w->origin, sizeof(w->origin), "%s", s.origin);
	session_clear(&s);
	store_close(store);
	return rc;
}

static int
open_run(struct worker *w, const char *home, const char *run_id, struct err *e)
{
	if (!run_id_is_valid(run_id))
		return err_set(e, ERR_USAGE, "\"%s\" is no run id", run_id);
	snprintf(w->run_id, sizeof(w->run_id), "%s", run_id);
	if (home_open(home, false, &w->home, e) != 0)
		return -1;
	w->run_fd = rundir_open(&w->home, run_id, e);
	if (w->run_fd < 0 || take_lock(w, e) != 0 || open_paths(w, run_id, e) != 0 ||
	    launch_read(w->run_fd, &w->launch, e) != 0)
		return -1;
	snprintf(w->session_id, sizeof(w->session_id), "%s", w->launch.session_id);
	return find_origin(w, e);
}

/* ---- The state to go on from ---- */

/* config of the state: what the flow says and what was decided at the start of this run. */
static struct json *
make_config(const struct worker *w)
{
	const struct json *durability = json_get(w->launch.options, "durability");
	struct json *config = flow_config(w->flow);

	config = json_set(config, "artifact_root", json_cstr(RUN_ARTIFACTS));
	config = json_set(config, "durability",
	    durability != NULL ? json_ref(durability) : json_cstr("full"));
	if (w->launch.resumed_from != NULL)
		config = json_set(config, "resumed_from", json_cstr(w->launch.resumed_from));
	return config;
}

static int
new_state(struct worker *w, struct err *e)
{
	struct json *doc = NULL, *s;
	int rc;

	if (rundir_read_json(w->run_fd, RUN_FLOW, &doc, e) != 0)
		return -1;
	rc = flow_from_document(doc, &w->flow, e);
	json_unref(doc);
	if (rc != 0)
		return -1;
	s = json_set(json_object(), "session_id", json_cstr(w->session_id));
	s = json_set(s, "prompt", json_cstr(w->flow->prompt));
	s = json_set(s, "plan", plan_entries(w->flow, 0));
	s = json_set(s, "config", make_config(w));
	if (flow_may_grow(w->flow))
		s = json_set(s, "max_spawn", json_uint(flow_max_spawn(w->flow)));
	s = json_set(s, "flow_context", json_object());
	s = json_set(s, "ops", json_object());
	s = json_set(s, "spawned", json_array());
	w->state = s;
	return s != NULL ? 0 : err_nomem(e);
}

/* A response by reference names its file below the run that wrote it. */
static struct json *
absolute_file(const struct worker *w, const struct json *entry)
{
	const struct json *response = json_get(entry, "response");
	const char *file = json_cstr_of(json_get(response, "file"));

	if (!ckpt_is_file(entry) || file[0] == '/' || w->launch.resumed_from == NULL)
		return json_ref(entry);
	return json_set(json_ref(entry), "response",
	    json_set(json_ref(response), "file",
		json_printf("%s/" HOME_RUNS "/%s/%s", w->home.path, w->launch.resumed_from, file)));
}

static int
carried_state(struct worker *w, struct json *carry, struct err *e)
{
	const struct json *entry;
	struct json *s = carry, *ops = json_ref(json_get(carry, "ops")), *moved;
	struct json_iter it;
	const char *origin;
	struct slice id;

	it = json_iterate(json_get(carry, "ops"));
	while (json_next(&it, &id, &entry)) {
		moved = absolute_file(w, entry);
		if (moved == entry)
			json_unref(moved);
		else
			ops = json_setn(ops, id, moved);
	}
	s = json_set(s, "ops", ops);
	/* The row knows the chain of this home alone. */
	origin = json_cstr_of(json_get(json_get(s, "config"), CONFIG_ORIGIN));
	if (origin != NULL && strlen(origin) == UUID_TEXT - 1)
		snprintf(w->origin, sizeof(w->origin), "%s", origin);
	s = json_set(s, "session_id", json_cstr(w->session_id));
	w->state = s;
	if (s == NULL)
		return err_nomem(e);
	return flow_from_state(s, &w->flow, e);
}

/* A resume by the run's policy goes on under the deadline that the run has; one by a person has taken it away. */
static int
keep_deadline(struct worker *w, struct err *e)
{
	struct json *config = json_ref(json_get(w->state, "config"));
	int64_t ms = 0;

	if (w->flow->timeout_ns > 0 && (!json_int64(json_get(config, CONFIG_DEADLINE), &ms) || ms <= 0 ||
	    ms > INT64_MAX / NS_PER_MS)) {
		ms = (clock_wall_ns() + w->flow->timeout_ns) / NS_PER_MS;
		config = json_set(config, CONFIG_DEADLINE, json_int(ms));
	}
	w->deadline_wall_ns = w->flow->timeout_ns > 0 ? ms * NS_PER_MS : 0;
	w->state = json_set(w->state, "config", config);
	return w->state != NULL ? 0 : err_nomem(e);
}

static int
load_state(struct worker *w, struct err *e)
{
	struct json *carry = NULL;
	struct err none = {0};

	int rc = rundir_read_json(w->run_fd, RUN_CARRY, &carry, &none);

	if (rc != 0 && none.code != ERR_NOTFOUND) {
		*e = none;
		return -1;
	}
	/* It may have waited in the queue of a home that was moved meanwhile. */
	if (rc == 0)
		carry = rundir_follow_move(carry, w->run_path, w->run_id, &w->home, e);
	rc = rc == 0 ? (carry != NULL ? carried_state(w, carry, e) : -1) : new_state(w, e);
	if (rc == 0)
		rc = keep_deadline(w, e);
	if (rc == 0)
		rc = plan_of_state(w, e);
	/* Plan and flow are made from it; what comes next needs its memory. */
	if (rc == 0 && !w->flow->unplanned)
		flow_drop_document(w->flow);
	return rc;
}

static int
open_artifacts(struct worker *w, struct err *e)
{
	const char *root = json_cstr_of(json_get(json_get(w->state, "config"), "artifact_root"));

	if (root != NULL && root[0] == '/') {
		w->artifacts_path = strdup(root);
		if (w->artifacts_path == NULL)
			return err_nomem(e);
		w->artifacts_fd = fs_open_private_dir(AT_FDCWD, root, e);
		return w->artifacts_fd >= 0 ? 0 : err_wrap(e, "artifact root");
	}
	if (asprintf(&w->artifacts_path, "%s/" RUN_ARTIFACTS, w->run_path) < 0)
		return err_nomem(e);
	return open_dir(w->run_fd, RUN_ARTIFACTS, &w->artifacts_fd, e);
}

/* ---- Options of the launch ---- */

static uint64_t
option_uint(const struct worker *w, const char *name, uint64_t otherwise)
{
	uint64_t value;

	return json_uint64(json_get(w->launch.options, name), &value) && value > 0 ? value : otherwise;
}

static void
read_options(struct worker *w)
{
	const struct json *durability = json_get(json_get(w->state, "config"), "durability");

	w->relaxed = slice_is(json_text(durability), "relaxed");
	w->inline_limit = option_uint(w, "inline_limit", WORKER_INLINE_LIMIT);
	w->storage_timeout_ns = (int64_t)option_uint(w, "storage_timeout_ns", 0);
	w->args = w->flow->arguments != NULL ? json_ref(w->flow->arguments) : NULL;
}

static unsigned
count_cpus(void)
{
	cpu_set_t set;
	int n;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return DEFAULT_CPUS;
	n = CPU_COUNT(&set);
	return n > 0 ? (unsigned)n : DEFAULT_CPUS;
}

static void
set_slots(struct worker *w)
{
	struct rlimit fds;
	rlim_t most = 1;

	w->slots = w->flow->concurrency > 0 ? w->flow->concurrency : count_cpus();
	if (getrlimit(RLIMIT_NOFILE, &fds) != 0)
		return;
	if (fds.rlim_cur > FDS_FIXED + FDS_PER_OPERATION)
		most = (fds.rlim_cur - FDS_FIXED) / FDS_PER_OPERATION;
	if (w->slots > most) {
		log_line(LOG_WARNING, "the limit of open files allows %u operation%s at once",
		    (unsigned)most, most == 1 ? "" : "s");
		w->slots = (unsigned)most;
	}
}

static int
open_writer(struct worker *w, struct err *e)
{
	struct ckpt_options o = {.fs = &fs_real,
	    .runs_fd = w->home.runs_fd,
	    .run_fd = w->run_fd,
	    .run_id = w->run_id,
	    .version = (int)option_uint(w, "checkpoint_format", 3),
	    .compact_records = option_uint(w, "compact_records", CKPT_COMPACT_RECORDS),
	    .compact_bytes = option_uint(w, "compact_bytes", CKPT_COMPACT_BYTES),
	    .gather_ms = w->relaxed ? WORKER_GATHER_RELAXED_MS : WORKER_GATHER_MS,
	    .first_sequence = 1};

	o.literal_limits = json_get(w->launch.options, "compact_records") != NULL ||
	    json_get(w->launch.options, "compact_bytes") != NULL;
	return ckpt_writer_open(&o, w->state, &w->writer, e);
}

/* ---- Operations ---- */

/* The entry with its outcome, or NULL. */
static const struct json *
recorded(const struct worker *w, const struct json *ops, uint32_t i)
{
	const struct json *entry = reactive_entry(w, i);

	if (entry == NULL)
		return json_get(ops, w->flow->ops[i].id);
	return slice_is(json_text(json_get(entry, "status")), "pending") ? NULL : entry;
}

static int
make_operations(struct worker *w, struct err *e)
{
	const struct json *ops = json_get(w->state, "ops"), *entry;
	const struct json *attempts = json_get(json_get(w->state, "config"), "attempts");
	uint32_t i, n = (uint32_t)w->flow->nops;
	int64_t made;

	w->ops = calloc(reactive_most(w) + 1, sizeof(*w->ops));
	if (w->ops == NULL)
		return err_nomem(e);
	op_count_predecessors(w->ops, w->flow);
	for (i = 0; i < n; i++) {
		entry = recorded(w, ops, i);
		if (!turns_restore(w, i, entry) && entry != NULL)
			settle_replayed(w, i, entry);
		/* Attempts of the runs before this one count: a retry is not given anew by a crash. */
		else if (json_int64(json_get(attempts, w->flow->ops[i].id), &made) && made > 0 &&
		    made < INT32_MAX)
			w->ops[i].attempts = (uint32_t)made;
	}
	reactive_go_on(w);
	anew_begin(w);
	if (taken_begin(w, e) != 0)
		return -1;
	for (i = 0; i < n; i++)
		if (w->ops[i].unmet == 0)
			admission_met(w, i);
	return 0;
}

/* On the disk before there is a base: without this line nothing tells where the run's processes were, and
 * it is not resumed. The lines that follow may be lost with the power: with it their processes are. */
static int
write_worker_line(struct worker *w, struct err *e)
{
	struct proc_id me;
	struct buf line = {0};
	int rc;

	if (proc_place_here(&w->place, e) != 0 || proc_identify(getpid(), &me, e) != 0)
		return -1;
	buf_puts(&line, "{\"kind\":\"worker\",\"host\":");
	json_write_string(&line, slice_of(w->place.host));
	buf_printf(&line, ",\"boot_id\":\"%s\",\"pid_namespace\":%llu,\"pid\":%d,\"start\":%llu}\n",
	    w->place.boot_id, (unsigned long long)w->place.pid_namespace, (int)me.pid,
	    (unsigned long long)me.start_ticks);
	rc = buf_ok(&line, e);
	if (rc == 0)
		rc = fs_write_all(&fs_real, "attempts.worker", w->attempts_fd, buf_view(&line), e);
	if (rc == 0 && fsync(w->attempts_fd) != 0)
		rc = err_sys(e, ERR_IO, errno, "fsync '%s'", RUN_ATTEMPTS);
	buf_clear(&line);
	return rc;
}

/* ---- The loop's sources ---- */

static void
signals_ready(void *arg, short revents)
{
	struct worker *w = arg;
	struct signalfd_siginfo info[4]; /* more than there are kinds: one read takes all */
	ssize_t n = read(w->signal_fd, info, sizeof(info));
	size_t i;

	(void)revents;
	for (i = 0; n > 0 && i < (size_t)n / sizeof(*info); i++) {
		if (info[i].ssi_signo == SIGCHLD)
			w->children_changed = true;
		else
			worker_leave(w, (int)info[i].ssi_signo);
	}
}

static void
io_ready(void *arg, short revents)
{
	struct worker *w = arg;

	(void)revents;
	io_take(w->io, w);
}

static void
acks_ready(void *arg, short revents)
{
	(void)revents;
	settle_acks(arg);
}

static int
open_signals(struct worker *w, struct err *e)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGQUIT);
	w->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return w->signal_fd >= 0 ? 0 : err_sys(e, ERR_IO, errno, "cannot watch signals");
}

int
worker_fit(struct worker *w, struct err *e)
{
	size_t most = reactive_most(w), at_once = w->slots < most ? w->slots : most, i;

	for (i = 0; i < w->flow->nops; i++)
		w->any_leaves |= w->flow->ops[i].how->leave;
	/* A process that runs must be watched, whatever memory there is by then. */
	return poller_reserve(&w->loop, at_once + FDS_FIXED, e);
}

static int
watch_all(struct worker *w, struct err *e)
{
	struct poller *l = &w->loop;

	if (worker_fit(w, e) != 0 || open_signals(w, e) != 0 ||
	    poller_watch(l, &w->signals, w->signal_fd, POLLIN, signals_ready, w, e) != 0 ||
	    poller_watch(l, &w->io_events, io_event_fd(w->io), POLLIN, io_ready, w, e) != 0 ||
	    poller_watch(l, &w->acks, ckpt_event_fd(w->writer), POLLIN, acks_ready, w, e) != 0)
		return -1;
	return admission_deadline_set(w, e);
}

static void
clear_fds(struct worker *w)
{
	size_t i;

	w->home.fd = w->home.runs_fd = -1;
	w->run_fd = w->ops_fd = w->artifacts_fd = w->attempts_fd = w->null_fd = w->signal_fd = -1;
	w->deadline_fd = w->listen_fd = w->supervisor.fd = -1;
	w->supervisor.w = w;
	for (i = 0; i < WORKER_MAX_PEERS; i++)
		w->peers[i] = (struct link){.fd = -1, .w = w};
	w->lock_fd = own_fd(WORKER_LOCK_FD);
	w->inherited_fd = own_fd(WORKER_SUPERVISOR_FD);
	w->heartbeat_fd = own_fd(WORKER_HEARTBEAT_FD);
	w->values_fd = own_fd(WORKER_VALUES_FD);
}

int
worker_begin(struct worker *w, const char *home, const char *run_id, struct err *e)
{
	*w = (struct worker){.begun_ns = clock_monotonic_ns()};
	clear_fds(w);
	find_parent(w);
	op_list_init(&w->ready);
	op_list_init(&w->paused);
	op_list_init(&w->gated);
	status_begin(w);
	op_list_init(&w->settled);
	w->first_failed = w->synthesis_held = OP_NO_INDEX;
	if (poller_init(&w->loop, e) != 0 || wait_at_gate(w, e) != 0 || open_run(w, home, run_id, e) != 0 ||
	    context_init(w, e) != 0 || load_state(w, e) != 0 || taken_read(w, e) != 0 ||
	    reactive_begin(w, e) != 0 || open_artifacts(w, e) != 0 ||
	    write_worker_line(w, e) != 0)
		return -1;
	read_options(w);
	set_slots(w);
	if (agents_init(w, e) != 0 || turns_init(w, e) != 0 || flow_context_begin(w, e) != 0)
		return -1;
	/* The thread opens the database while the first checkpoint is published here. */
	if (io_open(&w->home, w->run_fd, w->ops_fd, w->run_id, &w->io, e) != 0 || open_writer(w, e) != 0 ||
	    proc_set_subreaper(e) != 0 || watch_all(w, e) != 0 || link_begin(w, e) != 0)
		return -1;
	control_first(w);
	control_status(w, STATUS_RUNNING, "run.running.started", NULL);
	event_begin(w, "RunStarted");
	event_int(w, "operations", (int64_t)w->flow->nops);
	w->total_stored = w->flow->nops;
	event_end(w);
	limits_fit(w);
	if (make_operations(w, e) != 0)
		return -1;
	/* The writer has the state: its source would only cost memory. */
	if (w->flow->unplanned)
		w->planning.before = json_ref(json_get(w->state, "plan"));
	json_unref(w->state);
	w->state = NULL;
	malloc_trim(0); /* the C library would keep it, for the whole life of the run */
	return control_begin(w, e);
}

void
worker_clear(struct worker *w)
{
	size_t i;

	while (w->live != NULL)
		attempt_free(w->live);
	keepers_clear(w);
	json_unref(w->taken);
	json_unref(w->interrupted);
	json_unref(w->outputs);
	json_unref(w->answers);
	strays_clear(w);
	storage_clear(w);
	control_clear_all(w);
	status_clear(w);
	flow_context_clear(w);
	telling_clear(w, &w->waiting_told);
	telling_clear(w, &w->failures_told);
	telling_clear(w, &w->lost_told);
	telling_clear(w, &w->loses_told);
	telling_clear(w, &w->growth.told);
	telling_clear(w, &w->growth.room_told);
	telling_clear(w, &w->growth.fork_told);
	json_unref(w->growth.without_list);
	json_unref(w->growth.without_room);
	for (i = 0; w->ops != NULL && i < w->flow->nops; i++)
		json_unref(w->ops[i].response);
	free(w->ops);
	free(w->unsaved);
	turns_clear(w);
	agents_clear(w);
	reactive_clear(w);
	link_clear(w);
	context_clear(w);
	flow_free(w->flow);
	json_unref(w->state);
	json_unref(w->args);
	plan_clear(w);
	launch_read_clear(&w->launch);
	buf_clear(&w->events);
	buf_clear(&w->attempts);
	poller_clear(&w->loop);
	fd_close(&w->deadline_fd);
	fd_close(&w->signal_fd);
	fd_close(&w->null_fd);
	fd_close(&w->attempts_fd);
	fd_close(&w->artifacts_fd);
	fd_close(&w->ops_fd);
	fd_close(&w->run_fd);
	free(w->run_path);
	free(w->ops_path);
	free(w->artifacts_path);
	free(w->reason);
	fd_close(&w->inherited_fd);
	fd_close(&w->heartbeat_fd);
	fd_close(&w->values_fd);
	home_close(&w->home);
	/* The lock last: whoever gets it may rely on everything above being over. */
	fd_close(&w->lock_fd);
}
