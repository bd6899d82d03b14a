#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client.h"
#include "flowsup/checkpoint.h"
#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "mailbox.h"
#include "paste.h"
#include "seek.h"
#include "view.h"
#include "view_ops.h"
#include "waits.h"

void
view_init(struct view *v, const struct home *h, struct store *s, const char *home_option)
{
	struct err e = {0};

	*v = (struct view){.home = h, .store = s, .home_option = home_option};
	/* Without its answer counts are those of the row, older than what was told a moment ago. */
	if (client_is_up(h) && client_status(h, CLIENT_ANSWER_MS, &v->supervisor, &e) != 0)
		v->supervisor = NULL;
	v->has_here = proc_place_here(&v->here, &e) == 0;
	v->left = leftovers_new(h);
	v->dirs = rundirs_new(h);
	v->waits = waits_new(h, s);
}

void
view_clear(struct view *v)
{
	json_unref(v->supervisor);
	leftovers_free(v->left);
	rundirs_free(v->dirs);
	waits_free(v->waits);
	*v = (struct view){0};
}

/* ---- Small pieces ---- */

struct json *
view_time(double at)
{
	return at > 0 ? json_real(at) : json_null();
}

static struct json *
copy_or_null(const struct json *v)
{
	return v == NULL ? json_null() : json_ref(v);
}

double
view_process_age(uint64_t start_ticks)
{
	long hz = sysconf(_SC_CLK_TCK);
	double now = (double)clock_boottime_ns() / (double)NS_PER_S;
	double age;

	if (hz <= 0)
		return 0;
	age = now - (double)start_ticks / (double)hz;
	return age > 0 ? age : 0;
}

bool
view_is_resumable(const struct session *s)
{
	return status_is_terminal(s->status) && s->resumed_as_run[0] == '\0' &&
	    s->reason_code != NULL && reason_is_resumable(s->reason_code);
}

unsigned
view_survivors(const struct attempts *a)
{
	struct proc_place here;
	unsigned n = 0;
	size_t i;

	/* A pid means something only where it was given. */
	if (!a->has_place || proc_place_here(&here, NULL) != 0 ||
	    strcmp(here.boot_id, a->place.boot_id) != 0 ||
	    here.pid_namespace != a->place.pid_namespace)
		return 0;
	for (i = 0; i < a->nopen; i++)
		n += proc_is_alive(a->open[i].id);
	return n;
}

/* ---- One run ---- */

/* What the attempts say of a run: marks that are no statuses. */
struct facts {
	unsigned survivors;
	bool elsewhere, stalled, damaged;
	bool take_over; /* nothing of it lives, as far as can be known here: only a person knows the rest */
	bool lost_log;	/* what was started is not known: a resume needs leave to repeat it, and no more */
	bool no_worker; /* the row says that one runs, and the lock says that none does */
	const char *copy_of; /* the home that it is a copy from, where that matters; or NULL */
	const char *missing; /* a file it needs, or NULL */
	int64_t worker_pid;  /* 0: none */
	int64_t done, total; /* as the supervisor was told: the row says it once a second; 0: nothing */
	struct control_standing asked; /* of one that is not at its end */
};

static bool
is_elsewhere(const struct view *v, const struct attempts *a)
{
	bool other_boot;

	return v->has_here && a->has_place && !proc_place_is(&a->place, &v->here, &other_boot);
}

/* Where the log lacks it the row knows the place. */
static bool
is_of_this_boot(const struct view *v, const struct session *s, const struct attempts *a)
{
	struct proc_place there = a->place;
	bool other_boot = true;

	return v->has_here && (a->has_place || proc_place_parse(s->place, &there)) &&
	    proc_place_is(&there, &v->here, &other_boot) && !other_boot;
}

/* Where none of the processes runs any more that are known by number: what else it left. Only of this boot,
 * so that old runs have nobody look through all processes. */
static unsigned
leftovers(const struct view *v, const struct session *s, int run_fd, const struct attempts *a)
{
	int n = 0;

	if (v->left != NULL && s->status == STATUS_CRASHED && is_of_this_boot(v, s, a))
		n = leftovers_count(v->left, s->run_id, run_fd, a, &(struct err){0});
	return n > 0 ? (unsigned)n : 0;
}

static void
facts_from_attempts(const struct view *v, const struct session *s, int run_fd, const struct attempts *a,
    bool lock_held, struct facts *f)
{
	bool live = !status_is_terminal(s->status);

	bool elsewhere = is_elsewhere(v, a);

	f->elsewhere = live && elsewhere;
	f->take_over = elsewhere && !lock_held && (live || s->status == STATUS_CRASHED);
	/* Until its own worker has written its line, a run that takes something over has that of the one before. */
	if (live && lock_held && a->has_place && (elsewhere || proc_is_alive(a->worker)))
		f->worker_pid = a->worker.pid;
	f->lost_log = !live && run_fd >= 0 && seek_lacks_attempts(seek_has_started(run_fd, s->started_at), a);
	if ((f->missing == NULL || strcmp(f->missing, RUN_ATTEMPTS) == 0) &&
	    seek_lacks_checkpoint(run_fd, s->started_at > 0, a))
		f->missing = CKPT_BASE;
	if (!live && s->resumed_as_run[0] == '\0')
		f->survivors = view_survivors(a);
	if (!live && s->resumed_as_run[0] == '\0' && f->survivors == 0)
		f->survivors = leftovers(v, s, run_fd, a);
}

/* Its own home alone knows what becomes of it, and of what it left. The last of all facts. */
static void
facts_from_home(const struct view *v, const struct session *s, struct facts *f)
{
	f->copy_of = session_owner(s, v->home);
	if (f->copy_of == NULL)
		return;
	f->elsewhere = f->stalled = f->no_worker = false;
	f->survivors = 0;
	f->worker_pid = 0;
	f->asked = (struct control_standing){0};
}

/* After the attempts: of a run of another place the lock says nothing here. */
static void
facts_from_lock(const struct session *s, bool lock_free, struct facts *f)
{
	f->no_worker = lock_free && !f->elsewhere && !status_is_terminal(s->status) &&
	    s->status != STATUS_QUEUED;
}

static void
facts_from_supervisor(const struct view *v, const struct session *s, struct facts *f)
{
	const struct json *worker = json_get(json_get(v->supervisor, "workers"), s->run_id);

	/* It may not have seen the worker leave that wrote the end. */
	if (status_is_terminal(s->status))
		return;
	if (f->worker_pid == 0)
		(void)json_int64(json_get(worker, "pid"), &f->worker_pid);
	f->stalled = json_is_true(json_get(worker, "stalled"));
	if (!json_int64(json_get(worker, "done"), &f->done) ||
	    !json_int64(json_get(worker, "total"), &f->total))
		f->done = f->total = 0;
}

/* A run is shown also when this cannot be read. */
static struct control_standing
asked_of(struct store *store, const struct session *s)
{
	struct control_standing asked = {0};
	struct err e = {0};

	if (s->status == STATUS_QUEUED || status_is_terminal(s->status) ||
	    control_standing(store, s->run_id, &asked, &e) != 0)
		asked = (struct control_standing){0};
	return asked;
}

bool
view_has_directory(const struct view *v, const struct session *s)
{
	return v->dirs == NULL || rundirs_has(v->dirs, s->run_id);
}

static const char *
missing_of(const struct view *v, const struct session *s, int run_fd)
{
	if (run_fd >= 0)
		return seek_missing(run_fd, seek_has_started(run_fd, s->started_at));
	return view_has_directory(v, s) ? NULL : "directory";
}

/* A run of version 2 has no journal: the loader knows. */
static bool
lacks_journal(const struct view *v, const struct session *s)
{
	char path[RUN_ID_TEXT + sizeof("/" CKPT_JOURNAL)];
	struct ckpt_report report;
	struct json *state = NULL;
	struct err e = {0};
	struct stat st;
	bool lacks;
	int fd;

	snprintf(path, sizeof(path), "%s/" CKPT_JOURNAL, s->run_id);
	if (fstatat(v->home->runs_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 ? S_ISREG(st.st_mode) : errno != ENOENT)
		return false;
	fd = rundir_open(v->home, s->run_id, &e);
	lacks = fd >= 0 && ckpt_load(fd, NULL, &state, &report, &e) != 0 && e.code == ERR_CHECKPOINT;
	json_unref(state);
	fd_close(&fd);
	return lacks;
}

/* Of a run that could be resumed if nothing lacks; one look at each name where nothing does. */
static const char *
lost_checkpoint(const struct view *v, const struct session *s)
{
	char path[RUN_ID_TEXT + sizeof("/" CKPT_BASE)];
	struct attempts a;
	struct err e = {0};
	struct stat st;
	bool lacks = false;
	int fd;

	snprintf(path, sizeof(path), "%s/" CKPT_BASE, s->run_id);
	if (fstatat(v->home->runs_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return lacks_journal(v, s) ? CKPT_JOURNAL : NULL;
	if (errno != ENOENT)
		return NULL;
	fd = rundir_open(v->home, s->run_id, &e);
	if (fd >= 0 && attempts_read(fd, &a, &e) == 0) {
		lacks = seek_lacks_checkpoint(fd, s->started_at > 0, &a);
		attempts_clear(&a);
	}
	fd_close(&fd);
	return lacks ? CKPT_BASE : NULL;
}

/* Only of runs that may have processes more is looked at than whether they are there: a list of thousands
 * of old runs opens no files. */
static void
facts_find(const struct view *v, const struct session *s, struct facts *f)
{
	struct attempts a;
	struct err e = {0};
	bool held = false, known;
	int fd;

	if (status_is_terminal(s->status) &&
	    (s->status != STATUS_CRASHED || s->resumed_as_run[0] != '\0')) {
		f->missing = missing_of(v, s, -1);
		if (f->missing == NULL && view_is_resumable(s))
			f->missing = lost_checkpoint(v, s);
		return;
	}
	fd = rundir_open(v->home, s->run_id, &e);
	f->missing = missing_of(v, s, fd);
	if (fd < 0 || s->status == STATUS_QUEUED) {
		fd_close(&fd);
		return;
	}
	known = run_lock_held(fd, &held, &e) == 0;
	held = known && held;
	if (attempts_read(fd, &a, &e) == 0) {
		facts_from_attempts(v, s, fd, &a, held, f);
		attempts_clear(&a);
		facts_from_lock(s, known && !held, f);
	}
	fd_close(&fd);
}

static bool
is_stopping(const struct facts *f)
{
	return f->asked.stop_at > 0;
}

/* The command that answers what waits longest for a person, or null. */
static struct json *
answer_command(const struct view *v, const struct session *s, const struct facts *f)
{
	const char *op = json_cstr_of(json_get(json_at(json_get(s->metadata, "waiting"), 0), "op"));
	struct buf b = {0};
	struct json *text;

	if (op == NULL || f->copy_of != NULL || (s->status != STATUS_RUNNING && s->status != STATUS_PAUSED) ||
	    f->asked.stopped || session_is_draining(s))
		return json_null();
	paste_command(&b, "approve", v->home_option, s->run_id, op);
	text = b.failed ? NULL : json_string_lossy(buf_view(&b), NULL);
	buf_clear(&b);
	return text;
}

/* Nothing more is started once it was applied; until then it waits for the worker. */
static struct json *
stopping_json(const struct control_standing *asked)
{
	struct json *o;

	if (asked->stop_at <= 0)
		return json_null();
	o = json_set(json_object(), "since", view_time(asked->stop_at));
	o = json_set(o, "mode", json_cstr(asked->stopped_now || asked->stop_asked_now ? "now" : "drain"));
	return json_set(o, "applied", json_bool(asked->stopped));
}

static int
keep_time(void *arg, const struct transition *t)
{
	double *at = arg;

	if (*at <= 0 && t->reason_code != NULL && strcmp(t->reason_code, REASON_DEADLINE) == 0)
		*at = t->at;
	return 0;
}

/* Behind its deadline, while what runs may end. */
static struct json *
draining_json(struct store *store, const struct session *s)
{
	struct err e = {0};
	double at = 0;

	if (!session_is_draining(s))
		return json_null();
	if (session_transitions(store, s->run_id, keep_time, &at, &e) != 0)
		at = 0;
	return json_set(json_object(), "since", view_time(at));
}

struct json *
view_ending(struct store *store, const struct session *s)
{
	struct control_standing asked = asked_of(store, s);

	return json_set(json_set(json_object(), "stopping", stopping_json(&asked)), "draining",
	    draining_json(store, s));
}

bool
view_given_up(const struct session *s, struct buf *to)
{
	const char *why = json_cstr_of(json_get(s->metadata, META_NOT_RESTARTED));
	long long made = (long long)s->restarts_done;

	if (s->status != STATUS_CRASHED)
		return false;
	if (why != NULL)
		buf_printf(to, "not resumed by itself: %s", why);
	/* What a resume left behind has none left either. */
	else if (made > 0 && s->restarts_left == 0 && s->resumed_as_run[0] == '\0')
		buf_printf(to, "not resumed by itself: its policy resumed it %lld time%s, and no resume is left", made,
		    made == 1 ? "" : "s");
	else
		return false;
	return true;
}

/* Whoever counts on the policy sees that it has ended; a resume makes that past. */
static bool
is_given_up(const struct session *s)
{
	struct buf why = {0};
	bool is = s->resumed_as_run[0] == '\0' && view_given_up(s, &why);

	buf_clear(&why);
	return is;
}

static struct json *
marks_json(const struct session *s, const struct facts *f)
{
	struct json *marks = json_array();

	if (f->copy_of != NULL)
		marks = json_append(marks, json_printf("copy of %s", f->copy_of));
	if (f->elsewhere)
		marks = json_append(marks, json_cstr("elsewhere"));
	if (f->stalled)
		marks = json_append(marks, json_cstr("stalled"));
	if (f->no_worker)
		marks = json_append(marks, json_cstr(MARK_NO_WORKER));
	if (is_stopping(f))
		marks = json_append(marks, json_cstr("stopping"));
	if (session_is_draining(s))
		marks = json_append(marks, json_cstr("deadline passed"));
	if (session_is_restarting(s) && f->copy_of == NULL)
		marks = json_append(marks, json_cstr("restarting"));
	if (is_given_up(s) && f->copy_of == NULL)
		marks = json_append(marks, json_cstr("given up"));
	if (f->survivors > 0)
		marks = json_append(marks, json_printf("%u running", f->survivors));
	if (f->missing != NULL)
		marks = json_append(marks, json_printf("no %s", f->missing));
	else if (f->lost_log)
		marks = json_append(marks, json_cstr("damaged " RUN_ATTEMPTS));
	return marks;
}

void
view_reason(const struct session *s, struct buf *to)
{
	struct buf given_up = {0};

	if (s->reason != NULL && s->reason[0] != '\0')
		buf_puts(to, s->reason);
	else if (s->reason_code != NULL)
		buf_puts(to, reason_text(s->reason_code));
	if (view_given_up(s, &given_up))
		buf_printf(to, "; %s", buf_text(&given_up));
	buf_clear(&given_up);
}

static const char *
behind(const char *text, const char *word)
{
	const char *colon = strncmp(text, word, strlen(word)) == 0 ? strstr(text, ": ") : NULL;

	return colon != NULL ? colon + strlen(": ") : text;
}

/* What keeps the supervisor from writing to the database, or NULL. It names the run and the status that it
 * tried last. */
static const char *
unwritten_why(const struct view *v)
{
	const char *why = json_cstr_of(json_get(v->supervisor, "unwritten_why"));

	return why != NULL && why[0] != '\0' ? behind(behind(why, "run "), "status ") : NULL;
}

static struct json *
reason_json(const struct view *v, const struct session *s, const struct facts *f)
{
	const char *why = unwritten_why(v);
	struct buf b = {0};
	struct json *text;

	if (f->copy_of != NULL && !status_is_terminal(s->status))
		return json_printf("it belongs to the state directory '%s'", f->copy_of);
	if (f->no_worker)
		return json_printf("its worker is gone; this could not be recorded yet%s%s", why != NULL ? ": " : "",
		    why != NULL ? why : "");
	if (why != NULL && s->reason_code != NULL && strcmp(s->reason_code, "run.queued.new") == 0)
		return json_printf("the supervisor cannot record its start: %s", why);
	waits_reason(v->waits, s, &b);
	text = b.failed ? NULL : b.len == 0 ? json_null() : json_string_lossy(buf_view(&b), NULL);
	buf_clear(&b);
	return text;
}

double
view_duration(const struct session *s)
{
	double end;

	if (s->started_at <= 0)
		return -1;
	end = s->ended_at > 0 ? s->ended_at : (double)clock_wall_ns() / (double)NS_PER_S;
	return end > s->started_at ? end - s->started_at : 0;
}

static struct json *
duration_json(const struct session *s)
{
	double duration = view_duration(s);

	return duration < 0 ? json_null() : json_real(duration);
}

/* A paused run goes on by a control, as long as there is a worker that takes it. */
static struct json *
resume_command(const struct view *v, const struct session *s, const struct facts *f)
{
	struct buf b = {0};
	struct json *text;

	if (f->copy_of != NULL)
		paste_command(&b, "show", f->copy_of, s->run_id, NULL);
	else if (s->status == STATUS_PAUSED && !f->no_worker && !f->take_over)
		paste_command(&b, "ctl resume", v->home_option, s->run_id, NULL);
	else
		paste_resume(&b, v->home, v->home_option, s);
	if (f->take_over && f->copy_of == NULL && !paste_is_elsewhere(s))
		buf_puts(&b, " --take-over");
	text = b.failed ? NULL : json_string_lossy(buf_view(&b), NULL);
	buf_clear(&b);
	return text;
}

static bool
can_be_resumed(const struct session *s, const struct facts *f)
{
	bool whole = f->missing == NULL || (f->lost_log && strcmp(f->missing, RUN_ATTEMPTS) == 0);

	return view_is_resumable(s) && whole && !f->damaged && f->copy_of == NULL;
}

static struct json *
keep_command(const struct view *v, const struct session *s, const struct facts *f)
{
	struct buf b = {0};
	struct json *text = json_null();

	if (can_be_resumed(s, f) && !f->take_over && paste_keep(&b, v->home, v->home_option, s))
		text = b.failed ? NULL : json_string_lossy(buf_view(&b), NULL);
	buf_clear(&b);
	return text;
}

/* Both of one moment: a run that grows is not told as done with more than it had, or with all. */
static struct json *
counts_json(struct json *o, const struct session *s, const struct facts *f)
{
	bool newer = f->done >= s->done && f->total >= s->total && f->total > 0;

	o = json_set(o, "done", json_int(newer ? f->done : s->done));
	return json_set(o, "total", json_int(newer ? f->total : s->total));
}

/* Whether there is a command with which somebody goes on. */
static bool
has_next(const struct session *s, const struct facts *f)
{
	return can_be_resumed(s, f) || f->copy_of != NULL || f->no_worker || f->take_over ||
	    s->status == STATUS_PAUSED;
}

static struct json *
brief_json(const struct view *v, const struct session *s, const struct facts *f)
{
	bool resumable = can_be_resumed(s, f);
	struct json *o = json_set(json_object(), "id", json_cstr(s->run_id));

	o = json_set(o, "name", json_text_or_null(s->name));
	o = json_set(o, "status", json_cstr(status_word(s->status)));
	if (!status_is_terminal(s->status)) {
		o = json_set(o, "reason", json_text_or_null(s->reason_code));
		o = json_set(o, "reason_text", reason_json(v, s, f));
	}
	if (f->copy_of != NULL || f->elsewhere || f->stalled || f->no_worker || f->survivors > 0 || f->missing != NULL || f->lost_log ||
	    is_stopping(f) || session_is_draining(s) || session_is_restarting(s) || is_given_up(s))
		o = json_set(o, "marks", marks_json(s, f));
	if (is_stopping(f))
		o = json_set(o, "stopping", stopping_json(&f->asked));
	if (session_is_draining(s))
		o = json_set(o, "draining", draining_json(v->store, s));
	o = counts_json(o, s, f);
	o = json_set(o, "created_at", view_time(s->created_at));
	o = json_set(o, "duration", duration_json(s));
	o = json_set(o, "answer_command", answer_command(v, s, f));
	if (s->resumed_as_run[0] != '\0')
		o = json_set(o, "resumed_as", json_cstr(s->resumed_as_run));
	if (resumable)
		o = json_set(o, "resumable", json_bool(true));
	if (has_next(s, f))
		o = json_set(o, "resume_command", resume_command(v, s, f));
	return o;
}

static struct json *
run_json(const struct view *v, const struct session *s, const struct facts *f)
{
	struct json *o = json_object();
	bool resumable = can_be_resumed(s, f);

	o = json_set(o, "id", json_cstr(s->run_id));
	o = json_set(o, "session_id", json_cstr(s->session_id));
	o = json_set(o, "invocation_id", json_text_or_null(s->invocation_id));
	o = json_set(o, "kind", json_text_or_null(s->kind));
	o = json_set(o, "name", json_text_or_null(s->name));
	o = json_set(o, "status", json_cstr(status_word(s->status)));
	o = json_set(o, "reason", json_text_or_null(s->reason_code));
	o = json_set(o, "reason_text", reason_json(v, s, f));
	o = json_set(o, "error_type", s->status == STATUS_TIMED_OUT ? json_cstr("FlowTimeoutError")
	    : s->status == STATUS_FAILED ? json_cstr(err_type(ERR_RUN_FAILED)) : json_null());
	o = json_set(o, "marks", marks_json(s, f));
	o = json_set(o, "stopping", stopping_json(&f->asked));
	o = json_set(o, "draining", draining_json(v->store, s));
	o = json_set(o, "exit_status", status_is_terminal(s->status)
		? json_int(status_exit(s->status, s->reason_code))
		: json_null());
	o = counts_json(o, s, f);
	o = json_set(o, "created_at", view_time(s->created_at));
	o = json_set(o, "started_at", view_time(s->started_at));
	o = json_set(o, "ended_at", view_time(s->ended_at));
	o = json_set(o, "duration", duration_json(s));
	o = json_set(o, "worker_pid", f->worker_pid > 0 ? json_int(f->worker_pid) : json_null());
	o = json_set(o, "running_operations", json_int(f->survivors));
	o = json_set(o, META_GROWTH, copy_or_null(json_get(s->metadata, META_GROWTH)));
	o = json_set(o, META_PLAN_CUT, copy_or_null(json_get(s->metadata, META_PLAN_CUT)));
	o = json_set(o, META_PLAN_EMPTY, copy_or_null(json_get(s->metadata, META_PLAN_EMPTY)));
	o = json_set(o, "resumed_from", json_text_or_null(s->resumed_from_run));
	o = json_set(o, "forked_from", copy_or_null(json_get(s->metadata, "forked_from")));
	o = json_set(o, "resumed_as", json_text_or_null(s->resumed_as_run));
	o = json_set(o, "resumable", json_bool(resumable));
	o = json_set(o, "restarting", json_bool(session_is_restarting(s)));
	o = json_set(o, "restarts_done", json_int(s->restarts_done));
	o = json_set(o, "restarts_left", json_int(s->restarts_left));
	o = json_set(o, "queue", json_text_or_null(s->queue));
	o = json_set(o, "unique", json_text_or_null(s->unique_key));
	o = json_set(o, "waits_for", waits_of(v->waits, s));
	o = json_set(o, "answer_command", answer_command(v, s, f));
	o = json_set(o, "resume_command", has_next(s, f)
		? resume_command(v, s, f)
		: json_null());
	o = json_set(o, "keep_command", keep_command(v, s, f));
	return json_set(o, "labels", s->labels == NULL ? json_object() : json_ref(s->labels));
}

typedef struct json *run_as_json(const struct view *v, const struct session *s,
    const struct facts *f);

static struct json *
with_facts(const struct view *v, const struct session *s, run_as_json *make, struct err *e)
{
	struct facts f = {0};
	struct json *o;

	facts_find(v, s, &f);
	facts_from_supervisor(v, s, &f);
	f.asked = asked_of(v->store, s);
	facts_from_home(v, s, &f);
	o = make(v, s, &f);
	if (o == NULL)
		err_nomem(e);
	/* cppcheck-suppress returnDanglingLifetime ; what is made holds nothing of f */
	return o;
}

struct json *
view_run(const struct view *v, const struct session *s, struct err *e)
{
	return with_facts(v, s, run_json, e);
}

struct json *
view_run_brief(const struct view *v, const struct session *s, struct err *e)
{
	return with_facts(v, s, brief_json, e);
}

bool
view_lacks_worker(const struct json *run)
{
	return json_find(json_get(run, "marks"), NULL, MARK_NO_WORKER) != NULL;
}

int
view_settle(const struct view *v, view_fn *make, int64_t until_ns, struct json **run, struct err *e)
{
	const char *id = json_cstr_of(json_get(*run, "id"));
	struct session s = {0};
	struct json *fresh;
	bool last = false;

	while (view_lacks_worker(*run) && !last) {
		(void)poll(NULL, 0, VIEW_SETTLE_STEP_MS);
		last = clock_monotonic_ns() >= until_ns;
		fresh = session_read(v->store, id, &s, e) == 0 ? make(v, &s, e) : NULL;
		session_clear(&s);
		if (fresh == NULL)
			return -1;
		json_unref(*run);
		*run = fresh;
		id = json_cstr_of(json_get(fresh, "id"));
	}
	return 0;
}

/* ---- What hangs on a row ---- */

struct collect {
	struct json *array;
};

static int
collect_notice(void *arg, const struct notice *n)
{
	struct collect *to = arg;
	struct json *o = json_set(json_object(), "event", json_text_or_null(n->event));

	o = json_set(o, "at", view_time(n->at));
	o = json_set(o, "sent_at", view_time(n->claimed_at));
	o = json_set(o, "ended_at", view_time(n->ended_at));
	o = json_set(o, "outcome", json_text_or_null(n->outcome));
	to->array = json_append(to->array, o);
	return to->array == NULL;
}

static int
collect_transition(void *arg, const struct transition *t)
{
	struct collect *to = arg;
	struct json *o = json_object();

	o = json_set(o, "status", json_cstr(status_word(t->status)));
	o = json_set(o, "reason", json_text_or_null(t->reason_code));
	o = json_set(o, "reason_text", json_text_or_null(t->reason));
	o = json_set(o, "at", view_time(t->at));
	to->array = json_append(to->array, o);
	return to->array == NULL;
}

/* ---- Everything about one run ---- */

static struct json *
checkpoint_json(const struct run_files *f)
{
	struct json *o;

	if (f->report == NULL)
		return json_null();
	o = json_ref(f->report);
	if (f->state_error.code != ERR_NONE)
		o = json_set(o, "message", json_text_or_null(f->state_error.msg));
	return o;
}

/* Messages that were applied, and that no operation has been given. */
static struct json *
unrendered_json(const struct run_files *f)
{
	const struct json *context = json_get(view_state(f), "flow_context"), *one;
	struct json_iter it = json_iterate(json_get(context, "operator_messages"));
	int64_t n = 0;

	while (json_next(&it, NULL, &one))
		n += json_cstr_of(json_get(one, "rendered_into_op")) == NULL;
	return json_int(n);
}

static struct json *
files_json(struct json *o, const struct run_files *f, const struct session *s)
{
	o = json_set(o, "ops", view_operations(f, s));
	o = json_set(o, "checkpoint", checkpoint_json(f));
	o = json_set(o, "checkpoint_recovery", copy_or_null(f->report));
	if (f->flow == NULL)
		o = json_set(o, "flow_error", json_text_or_null(f->flow_error.msg));
	else
		o = json_set(o, "prompt", json_text_or_null(f->flow->prompt));
	o = json_set(o, "messages_unrendered", unrendered_json(f));
	o = json_set(o, "attempts_damaged", json_uint(f->attempts.damaged));
	o = json_set(o, "problems", json_ref(f->problems));
	if (f->trouble.len > 0 && (s->reason_code == NULL || strcmp(s->reason_code, STORAGE_TROUBLE) != 0))
		o = json_set(o, "reason_text", json_printf("checkpoints cannot be written (%s); no operation is started; "
		    "this could not be recorded yet", buf_text(&f->trouble)));
	return o;
}

static struct json *
directory_json(const struct view *v, const struct session *s)
{
	struct buf b = {0};
	struct json *text;

	buf_printf(&b, "%s/%s/%s", v->home->path, HOME_RUNS, s->run_id);
	text = b.failed ? NULL : json_string_lossy(buf_view(&b), NULL);
	buf_clear(&b);
	return text;
}

/* What the database knows is shown also of a run whose directory cannot be opened. */
static int
no_files(struct run_files *f, struct err *e)
{
	if (e->code == ERR_NOMEM)
		return -1;
	*f = (struct run_files){.fd = -1, .flow_error = *e, .problems = json_array()};
	f->problems = json_append(f->problems, seek_problem("", e->msg));
	err_clear(e);
	return f->problems != NULL ? 0 : err_nomem(e);
}

struct json *
view_run_full(const struct view *v, const struct session *s, struct err *e)
{
	struct collect controls = {.array = json_array()};
	struct collect moves = {.array = json_array()};
	struct collect notices = {.array = json_array()};
	struct run_files files;
	struct facts facts = {0};
	struct json *o = NULL;

	if (run_files_open(v->home, s, true, &files, e) != 0 && no_files(&files, e) != 0)
		goto out;
	facts.missing = missing_of(v, s, files.fd);
	facts_from_attempts(v, s, files.fd, &files.attempts, files.lock_held, &facts);
	facts.damaged = json_length(files.problems) > facts.lost_log;
	facts_from_lock(s, files.lock_free, &facts);
	facts_from_supervisor(v, s, &facts);
	facts.asked = asked_of(v->store, s);
	facts_from_home(v, s, &facts);
	files.stopped = facts.asked.stopped;
	if (view_lost_responses(&files, e) != 0 || session_transitions(v->store, s->run_id, collect_transition, &moves, e) != 0 ||
	    mailbox_of_job(v->store, s, v->home_option, true, &controls.array, e) != 0 ||
	    notice_list(v->store, s->run_id, collect_notice, &notices, e) != 0)
		goto close;
	o = run_json(v, s, &facts);
	files.waits = s->status == STATUS_QUEUED ? json_cstr_of(json_get(o, "reason_text")) : NULL;
	o = files_json(o, &files, s);
	o = json_set(o, "transitions", moves.array);
	o = json_set(o, "controls", controls.array);
	o = json_set(o, "notices", notices.array);
	o = json_set(o, "policy", copy_or_null(s->policy));
	moves.array = controls.array = notices.array = NULL;
	o = json_set(o, "metadata", copy_or_null(s->metadata));
	o = json_set(o, "directory", directory_json(v, s));
	if (o == NULL)
		err_nomem(e);
close:
	run_files_close(&files);
out:
	json_unref(moves.array);
	json_unref(notices.array);
	json_unref(controls.array);
	return o;
}
