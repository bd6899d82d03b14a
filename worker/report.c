/*
 * `--report`: what the supervisor wants to know about a dead run, found out in a process of its own
 * with limits on memory and time, so that the supervisor parses no run file. One packet on standard
 * output: {"checkpoint_recovery":{…}|null,"saved":{"done":N,"total":N,"growth":{…}|null,"plan_cut":…,
 * "plan_empty":…}|null,"orphans_s":N|null,"running_operations":[…],"ended_operations":[…]}. saved counts the
 * operations that are settled by what the checkpoint holds (before the first one by what the run starts from),
 * all of them, and what was added, and has what it says of a planner's plan; orphans_s is for how long
 * operations are kept (null: for any time); the lists hold the start
 * lines without an end: of those that run, and of those whose end nobody has written down. What is
 * too large for a packet goes beside it as a memfd.
 */
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/endops.h"
#include "flowsup/exits.h"
#include "flowsup/fs.h"
#include "flowsup/ipc.h"
#include "flowsup/log.h"
#include "flowsup/store.h"

enum { REPORT_CPU_S = 20, REPORT_FAILED = 74 };
#define REPORT_MEMORY ((rlim_t)2 << 30)

/* A sanitizer reserves terabytes of addresses that it never uses. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { LIMIT_ADDRESSES = 0 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { LIMIT_ADDRESSES = 0 };
#else
enum { LIMIT_ADDRESSES = 1 };
#endif
#else
enum { LIMIT_ADDRESSES = 1 };
#endif

static int
limit(int resource, rlim_t value, struct err *e)
{
	struct rlimit l = {.rlim_cur = value, .rlim_max = value};

	return setrlimit((__rlimit_resource_t)resource, &l) == 0 ? 0 : err_sys(e, ERR_IO, errno, "cannot set a limit");
}

/* null where it cannot be counted. */
static struct json *
progress_of(int run_fd, const struct json *state)
{
	struct json *saved = NULL;
	struct err e = {0};

	if (state == NULL || flow_progress(run_fd, state, &saved, &e) != 0)
		return json_null();
	saved = json_set(saved, META_PLAN_CUT, flow_recorded_cut(state));
	return json_set(saved, META_PLAN_EMPTY, flow_recorded_empty_lists(state));
}

static struct json *
orphans_of(const struct json *state)
{
	int64_t ns = flow_orphans_ns(json_get(json_get(state, "config"), "orphans"));

	return ns == FLOW_ORPHANS_KEPT ? json_null() : json_int(ns / NS_PER_S);
}

/* The report on the checkpoint, *saved and *orphans. */
static struct json *
recovery(int run_fd, struct json **saved, struct json **orphans, struct err *e)
{
	struct ckpt_load_options o = {0};
	struct ckpt_report report = {0};
	struct json *state = NULL, *v;
	struct err ignored = {0};
	int rc = ckpt_load(run_fd, &o, &state, &report, e);

	/* A resumed run that died before its first checkpoint has what it was to start from. */
	if (rc != 0 && (e->code != ERR_NOTFOUND || rundir_read_json(run_fd, RUN_CARRY, &state, &ignored) != 0))
		state = NULL;
	*saved = progress_of(run_fd, state);
	*orphans = orphans_of(state);
	json_unref(state);
	v = rc != 0 && e->code == ERR_NOTFOUND ? json_null() : ckpt_report_json(&report);
	err_clear(e);
	return v;
}

/* Its start line, but for what only a worker needs. */
static struct json *
described(const struct attempt *a)
{
	static const char *const left_out[] = {"kind", "token", "messages", "more"};
	struct json *v = json_ref(a->line);
	size_t i;

	for (i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++)
		if (json_get(v, left_out[i]) != NULL)
			v = json_remove(v, slice_of(left_out[i]));
	return v;
}

static bool
has_exit_record(const struct home *h, const char *run_id, const struct attempt *a)
{
	char dir[ATTEMPT_DIR_TEXT];
	struct exit_record r;
	int run_fd = rundir_open(h, a->run != NULL ? a->run : run_id, NULL), ops_fd;
	bool has;

	if (run_fd < 0)
		return false;
	ops_fd = openat(run_fd, RUN_OPS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	has = ops_fd >= 0 &&
	    exit_record_read(ops_fd, attempt_dir(a->op, a->attempt, dir), a->id, &r, NULL) == 0;
	fd_close(&ops_fd);
	fd_close(&run_fd);
	return has;
}

/* Of another boot or place nothing is known to run, and nobody here saw it end. */
static bool
is_from_here(const struct attempts *attempts)
{
	bool here, other_boot;

	return endops_is_here(attempts, &here, &other_boot, NULL) == 0 && here && !other_boot;
}

static struct json *
add_operations(struct json *report, const struct home *h, const char *run_id,
    const struct attempts *attempts)
{
	struct json *running = json_array(), *ended = json_array();
	bool here = is_from_here(attempts);
	size_t i;

	for (i = 0; here && i < attempts->nopen; i++) {
		const struct attempt *a = &attempts->open[i];

		if (proc_is_alive(a->id))
			running = json_append(running, described(a));
		else if (!has_exit_record(h, run_id, a))
			ended = json_append(ended, described(a));
	}
	report = json_set(report, "running_operations", running);
	return json_set(report, "ended_operations", ended);
}

static int
write_beside(struct slice text, struct err *e)
{
	int fd = ipc_memfd("flowsup-report", text, e), rc;

	if (fd < 0)
		return -1;
	rc = ipc_send(STDOUT_FILENO, slice_of("{}"), fd, e);
	fd_close(&fd);
	return rc == 0 ? 0 : -1;
}

static int
write_report(const struct json *report, struct err *e)
{
	struct buf text = {0};
	int rc;

	if (report == NULL)
		return err_nomem(e);
	json_write(&text, report);
	rc = buf_ok(&text, e);
	if (rc == 0 && text.len > IPC_MAX_PACKET)
		rc = write_beside(buf_view(&text), e);
	else if (rc == 0)
		rc = fs_write_all(&fs_real, "report.write", STDOUT_FILENO, buf_view(&text), e);
	buf_clear(&text);
	return rc;
}

static int
make_report(const struct home *h, const char *run_id, struct err *e)
{
	struct attempts attempts = {0};
	struct json *report, *saved = NULL, *orphans = NULL;
	int run_fd = rundir_open(h, run_id, e), rc;

	if (run_fd < 0)
		return -1;
	report = json_set(json_object(), "checkpoint_recovery", recovery(run_fd, &saved, &orphans, e));
	report = json_set(report, "saved", saved);
	report = json_set(report, "orphans_s", orphans);
	rc = attempts_read(run_fd, &attempts, e);
	fd_close(&run_fd);
	if (rc == 0)
		report = add_operations(report, h, run_id, &attempts);
	if (rc == 0)
		rc = write_report(report, e);
	attempts_clear(&attempts);
	json_unref(report);
	return rc;
}

int
report_main(const char *home, const char *run_id)
{
	struct home h = {.fd = -1, .runs_fd = -1};
	struct err e = {0};
	int rc;

	rc = LIMIT_ADDRESSES ? limit(RLIMIT_AS, REPORT_MEMORY, &e) : 0;
	if (rc == 0)
		rc = limit(RLIMIT_CPU, REPORT_CPU_S, &e);
	if (rc == 0)
		rc = home_open(home, false, &h, &e);
	if (rc == 0)
		rc = make_report(&h, run_id, &e);
	home_close(&h);
	if (rc != 0)
		log_line(LOG_ERROR, "report of %s: %s", run_id, e.msg);
	return rc == 0 ? 0 : REPORT_FAILED;
}
