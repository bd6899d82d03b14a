/*
 * Every call that the checkpoint's code makes on files: each errno once and from then on, an error
 * after the effect, short and torn writes, and SIGKILL before and after. After each, what a new
 * process loads must hold everything that was acknowledged, and nothing that was not admitted.
 *
 * Calls that only trouble leads to are reached through scenarios: a first fault, after which the
 * calls that no scenario before had are exercised in the same way by a second one.
 */
#include "ckpt_workload.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TRIES = 2, MAX_EXERCISED = 256 };

static struct {
	const char *what[MAX_EXERCISED];
	bool failed[MAX_EXERCISED], killed[MAX_EXERCISED];
	unsigned count;
	unsigned long cases;
} done;

static unsigned
slot(const char *what)
{
	unsigned i;

	for (i = 0; i < done.count; i++)
		if (strcmp(done.what[i], what) == 0)
			return i;
	assert_true(done.count < MAX_EXERCISED);
	done.what[done.count] = what;
	return done.count++;
}

static bool
is_done(const char *what)
{
	unsigned i;

	for (i = 0; i < done.count; i++)
		if (strcmp(done.what[i], what) == 0)
			return done.failed[i] && done.killed[i];
	return false;
}

/* ---- What can go wrong with a call ---- */

static const int errnos[FAULT_OPS][8] = {
	[FAULT_OPENAT] = {EIO, ENOSPC, EDQUOT, EMFILE, EACCES, ELOOP},
	[FAULT_READ] = {EIO, EINTR},
	[FAULT_PREAD] = {EIO, EINTR},
	[FAULT_WRITE] = {EIO, ENOSPC, EDQUOT, EFBIG, EINTR},
	[FAULT_FSYNC] = {EIO, ENOSPC, EDQUOT, EINVAL},
	[FAULT_FTRUNCATE] = {EIO, EPERM},
	[FAULT_FSTAT] = {EIO, EOVERFLOW},
	[FAULT_FSTATAT] = {EIO, ENOENT, EACCES},
	[FAULT_RENAMEAT2] = {EIO, ENOSPC, ENOENT, EEXIST, EINVAL, ENOSYS},
	[FAULT_UNLINKAT] = {EIO, ENOENT, EPERM},
	[FAULT_MKDIRAT] = {EIO, ENOSPC, EROFS},
	[FAULT_CLOSE] = {EIO, EINTR, ENOSPC},
};

/* ---- Scenarios ---- */

struct world {
	int version;
	struct fixture fx;
	struct fault_fs *fs;
	struct outcome *out;
};

/* Puts a stranger in the place of what the call is about to move or has moved. */
static void
swap_published(void *arg, const struct fault_call *call)
{
	const struct world *s = arg;
	const char *name = strstr(call->what, "journal") != NULL ? CKPT_JOURNAL : CKPT_BASE;

	renameat(s->fx.run_fd, name, s->fx.run_fd, "stolen");
	test_file_write(s->fx.run_fd, name, "STRANGER");
}

static struct ckpt_options
world_options(const struct world *s)
{
	struct ckpt_options o = workload_options(&s->fx, &s->fs->ops);

	o.version = s->version;
	return o;
}

static void
no_fault(struct world *s)
{
	(void)s;
}

static void
fail_at(struct world *s, const char *seam, unsigned call, int sys)
{
	fault_fs_add(s->fs, (struct fault){.kind = FAULT_FAIL, .seam = seam, .call = call, .sys = sys});
}

static void
torn_append(struct world *s)
{
	fault_fs_add(s->fs, (struct fault){.kind = FAULT_SHORT, .seam = "ckpt.append.write", .call = 2,
	    .bytes = 50});
	fail_at(s, "ckpt.append.write", 3, ENOSPC);
}

static void
base_not_synced(struct world *s)
{
	fail_at(s, "ckpt.base.sync", 2, EIO);
}

static void
journal_not_synced(struct world *s)
{
	fail_at(s, "ckpt.journal.sync", 2, EIO);
}

static void
first_base_not_synced(struct world *s)
{
	fail_at(s, "ckpt.base.sync", 1, EIO);
}

static void
first_pair_not_found(struct world *s)
{
	fail_at(s, "ckpt.rotate.run", 1, EIO);
}

static void
leftover_journal(struct world *s)
{
	test_file_write(s->fx.run_fd, CKPT_JOURNAL, "");
}

static void
no_exchange(struct world *s)
{
	fault_fs_add(s->fs, (struct fault){.kind = FAULT_FAIL, .seam = "ckpt.base.install",
	    .persistent = false, .sys = EINVAL});
}

static void
hook_at(struct world *s, const char *seam, enum fault_kind kind)
{
	fault_fs_add(s->fs, (struct fault){.kind = kind, .seam = seam, .hook = swap_published,
	    .arg = s});
}

static void
base_swapped(struct world *s)
{
	hook_at(s, "ckpt.base.install", FAULT_HOOK_BEFORE);
}

static void
journal_swapped(struct world *s)
{
	hook_at(s, "ckpt.journal.install", FAULT_HOOK_BEFORE);
}

#define TAKEN ".taken"

/* The names lead to nothing any more. */
static void
take_published(void *arg, const struct fault_call *call)
{
	const struct world *s = arg;

	if (strstr(call->what, "journal") != NULL)
		renameat(s->fx.run_fd, CKPT_JOURNAL, s->fx.run_fd, CKPT_JOURNAL TAKEN);
	else
		renameat(s->fx.run_fd, CKPT_BASE, s->fx.run_fd, CKPT_BASE TAKEN);
}

static void
gone_at(struct world *s, const char *seam, unsigned call)
{
	fault_fs_add(s->fs, (struct fault){.kind = FAULT_HOOK_BEFORE, .seam = seam, .call = call,
	    .hook = take_published, .arg = s});
}

static void
base_gone(struct world *s)
{
	gone_at(s, "ckpt.append.before_base", 2);
}

static void
journal_gone(struct world *s)
{
	gone_at(s, "ckpt.append.before_journal", 2);
}

static void
both_gone(struct world *s)
{
	base_gone(s);
	gone_at(s, "ckpt.mend.journal", 1);
}

static void
remove_staging(void *arg, const struct fault_call *call)
{
	const struct world *s = arg;

	(void)call;
	unlinkat(s->fx.run_fd, CKPT_STAGING, AT_REMOVEDIR);
}

static void
staging_gone(struct world *s)
{
	fault_fs_add(s->fs, (struct fault){.kind = FAULT_HOOK_BEFORE, .seam = "ckpt.staging.look", .call = 1,
	    .hook = remove_staging, .arg = s});
}

static void
staging_gone_late(struct world *s)
{
	fault_fs_add(s->fs, (struct fault){.kind = FAULT_HOOK_BEFORE, .seam = "ckpt.base.create", .call = 2,
	    .hook = remove_staging, .arg = s});
}

static const struct scenario {
	const char *name;
	void (*prepare)(struct world *s);
	bool stranger; /* stands at a published name in the end: the loader refuses */
} scenarios[] = {
	{"nothing", no_fault, false},
	{"torn append", torn_append, false},
	{"base not synced", base_not_synced, false},
	{"journal not synced", journal_not_synced, false},
	{"first base not synced", first_base_not_synced, false},
	{"first pair not found", first_pair_not_found, false},
	{"leftover journal", leftover_journal, false},
	{"no exchange", no_exchange, false},
	{"base swapped", base_swapped, true},
	{"journal swapped", journal_swapped, true},
	{"base gone", base_gone, false},
	{"journal gone", journal_gone, false},
	{"both gone", both_gone, false},
	{"staging gone", staging_gone, false},
	{"staging gone late", staging_gone_late, false},
};
enum { SCENARIOS = sizeof(scenarios) / sizeof(scenarios[0]) };

static void
world_ready(struct world *s, const struct scenario *sc)
{
	fixture_again(&s->fx);
	fault_fs_reset(s->fs);
	sc->prepare(s);
}

/* ---- One case ---- */

/* The stranger's bytes are whole; then our own object goes back, so that it can be judged. */
static void
put_back(struct world *s)
{
	static const char *const names[] = {CKPT_BASE, CKPT_JOURNAL};
	struct stat st;
	size_t i;

	if (fstatat(s->fx.run_fd, "stolen", &st, AT_SYMLINK_NOFOLLOW) != 0)
		return;
	for (i = 0; i < 2; i++) {
		char *text;

		if (fstatat(s->fx.run_fd, names[i], &st, AT_SYMLINK_NOFOLLOW) != 0 || st.st_size != 8)
			continue;
		text = test_file_read(s->fx.run_fd, names[i]);
		if (strcmp(text, "STRANGER") == 0)
			renameat(s->fx.run_fd, "stolen", s->fx.run_fd, names[i]);
		free(text);
	}
}

/* Deletion behind an acknowledgement is not promised anything until the writer has seen it. */
static void
put_back_taken(struct world *s)
{
	renameat2(s->fx.run_fd, CKPT_BASE TAKEN, s->fx.run_fd, CKPT_BASE, RENAME_NOREPLACE);
	renameat2(s->fx.run_fd, CKPT_JOURNAL TAKEN, s->fx.run_fd, CKPT_JOURNAL, RENAME_NOREPLACE);
}

static void
judge(struct world *s, const struct scenario *sc, const struct fault_call *call, const char *how)
{
	char text[512] = "";

	if (!s->out->ended || s->out->code != ERR_NONE)
		put_back_taken(s);
	if (sc->stranger)
		put_back(s);
	if (workload_judge_apart(&s->fx, s->out, sc->stranger, text) == -1)
		fail_msg("%s, %s at %s: %s (opened %d, acked %u, %s)", sc->name, how, call->what, text,
		    s->out->opened, s->out->acked, s->out->msg);
	done.cases++;
}

static bool
is_typed(enum err_code code)
{
	return code == ERR_NONE || code == ERR_IO || code == ERR_NOSPACE || code == ERR_UNCERTAIN ||
	    code == ERR_IDENTITY || code == ERR_REFUSED || code == ERR_CREATE;
}

/* In this process, so that leaks of descriptors and memory are seen. */
static void
run_failing(struct world *s, const struct scenario *sc, const struct fault_call *call,
    struct fault fault)
{
	struct ckpt_options o;
	char how[64];
	int before;

	world_ready(s, sc);
	fault_fs_add(s->fs, fault);
	o = world_options(s);
	before = test_count_fds();
	workload_run(&o, TRIES, s->out);
	assert_int_equal(test_count_fds(), before);
	snprintf(how, sizeof(how), "kind %d errno %d%s", (int)fault.kind, fault.sys,
	    fault.persistent ? " from then on" : "");
	if (!is_typed(s->out->code))
		fail_msg("%s, %s at %s: %s", sc->name, how, call->what, s->out->msg);
	/* A single failure is got over, unless a name was said to lead elsewhere. */
	if (s->out->opened && !fault.persistent && !sc->stranger && s->out->code != ERR_NONE &&
	    s->out->code != ERR_IDENTITY && s->out->code != ERR_REFUSED)
		fail_msg("%s, %s at %s: not got over: %s", sc->name, how, call->what, s->out->msg);
	judge(s, sc, call, how);
	done.failed[slot(call->what)] = true;
}

static void
run_killed(struct world *s, const struct scenario *sc, const struct fault_call *call,
    struct fault fault, bool certain)
{
	struct ckpt_options o;
	int status;

	world_ready(s, sc);
	fault_fs_add(s->fs, fault);
	o = world_options(s);
	status = workload_fork(&o, TRIES, s->out);
	if (certain && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL))
		fail_msg("%s: not killed at %s", sc->name, call->what);
	judge(s, sc, call, "killed");
	done.killed[slot(call->what)] = true;
}

static void
exercise_errors(struct world *s, const struct scenario *sc, const struct fault_call *call,
    unsigned nth)
{
	struct fault f = {.seam = call->what, .call = nth};
	const int *sys;

	for (sys = errnos[call->op]; *sys != 0; sys++) {
		f.sys = *sys;
		f.kind = FAULT_FAIL;
		f.persistent = false;
		run_failing(s, sc, call, f);
		f.kind = FAULT_FAIL_AFTER;
		/* A descriptor that was opened and not told would be the test's leak. */
		if (*sys != EINTR && call->op != FAULT_OPENAT)
			run_failing(s, sc, call, f);
		f.kind = FAULT_FAIL;
		f.persistent = true;
		if (*sys != EINTR)
			run_failing(s, sc, call, f);
	}
}

static void
exercise_writes(struct world *s, const struct scenario *sc, const struct fault_call *call,
    unsigned nth)
{
	const size_t len = call->result > 0 ? (size_t)call->result : 0;
	const size_t parts[] = {0, 1, len / 2, len > 0 ? len - 1 : 0, len};
	struct fault f = {.seam = call->what, .call = nth};
	size_t i;

	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		f.bytes = parts[i];
		f.sys = ENOSPC;
		f.kind = FAULT_TEAR;
		run_killed(s, sc, call, f, true);
		f.kind = FAULT_SPACE;
		f.persistent = true;
		run_failing(s, sc, call, f);
		f.persistent = false;
		f.kind = FAULT_SHORT;
		if (parts[i] > 0)
			run_failing(s, sc, call, f);
	}
}

static void
exercise(struct world *s, const struct scenario *sc, const struct fault_call *call, unsigned nth)
{
	struct fault f = {.seam = call->what, .call = nth};

	exercise_errors(s, sc, call, nth);
	if (call->op == FAULT_WRITE)
		exercise_writes(s, sc, call, nth);
	f.kind = FAULT_KILL_BEFORE;
	run_killed(s, sc, call, f, true);
	f.kind = FAULT_KILL_AFTER;
	run_killed(s, sc, call, f, true);
}

/* How many calls at this seam there were up to and with index i. */
static unsigned
nth_at(const struct fault_call *calls, unsigned i)
{
	unsigned n = 0, j;

	for (j = 0; j <= i; j++)
		if (strcmp(calls[j].what, calls[i].what) == 0)
			n++;
	return n;
}

static void
run_scenario(struct world *s, const struct scenario *sc)
{
	struct fault_call calls[512];
	bool fresh[512];
	unsigned total, i;
	struct ckpt_options o;

	world_ready(s, sc);
	o = world_options(s);
	workload_run(&o, TRIES, s->out);
	total = s->fs->total;
	assert_in_range(total, 1, 512);
	memcpy(calls, s->fs->calls, total * sizeof(calls[0]));
	for (i = 0; i < total; i++)
		fresh[i] = sc == &scenarios[0] || !is_done(calls[i].what);
	for (i = 0; i < total; i++)
		if (fresh[i])
			exercise(s, sc, &calls[i], nth_at(calls, i));
}

/* All scenarios, or the first ones. */
static void
run_scenarios(int version, unsigned count)
{
	struct world s = {.version = version};
	unsigned i;

	fixture_make(&s.fx);
	s.fs = fault_fs_new();
	s.out = outcome_shared();
	for (i = 0; i < count; i++)
		run_scenario(&s, &scenarios[i]);
	fault_fs_free(s.fs);
	workload_free();
	fixture_remove(&s.fx);
}

static void
test_seams__writer(void **unused)
{
	(void)unused;
	run_scenarios(3, SCENARIOS);
}

/* The same transitions with the whole file each time: ended at the same places it keeps the same. */
static void
test_seams__writer_of_version_2(void **unused)
{
	(void)unused;
	run_scenarios(2, 1);
}

/* ---- The loader ---- */

static void
load_with(struct world *s, const struct json *want, const struct fault_call *call,
    struct fault fault)
{
	struct ckpt_load_options o = {.fs = &s->fs->ops};
	struct ckpt_report report;
	struct json *state = NULL;
	struct err e = {0};
	int before = test_count_fds(), result;

	fault_fs_reset(s->fs);
	fault_fs_add(s->fs, fault);
	result = ckpt_load(s->fx.run_fd, &o, &state, &report, &e);
	if (result == 0 && (!json_equal(state, want) || report.status != CKPT_CLEAN))
		fail_msg("errno %d at %s: a wrong state", fault.sys, call->what);
	if (result != 0 && state != NULL)
		fail_msg("errno %d at %s: a state beside an error", fault.sys, call->what);
	assert_int_equal(report.status, result == 0 ? CKPT_CLEAN : CKPT_REFUSED);
	json_unref(state);
	assert_int_equal(test_count_fds(), before);
	done.cases++;
	done.failed[slot(call->what)] = true;
	/* A reader that dies changes nothing; its end needs no case of its own. */
	done.killed[slot(call->what)] = true;
}

static void
load_all(struct world *s, const struct json *want)
{
	struct ckpt_load_options o = {.fs = &s->fs->ops};
	struct fault_call calls[64];
	struct ckpt_report report;
	struct json *state = NULL;
	struct err e = {0};
	unsigned total, i;
	const int *sys;

	fault_fs_reset(s->fs);
	assert_works(ckpt_load(s->fx.run_fd, &o, &state, &report, &e), e);
	json_unref(state);
	total = s->fs->total;
	assert_in_range(total, 1, 64);
	memcpy(calls, s->fs->calls, total * sizeof(calls[0]));
	for (i = 0; i < total; i++) {
		struct fault f = {.kind = FAULT_FAIL, .seam = calls[i].what, .call = nth_at(calls, i)};

		for (sys = errnos[calls[i].op]; *sys != 0; sys++) {
			f.sys = *sys;
			f.persistent = false;
			load_with(s, want, &calls[i], f);
			f.persistent = *sys != EINTR;
			load_with(s, want, &calls[i], f);
		}
		if (calls[i].op == FAULT_PREAD) {
			f = (struct fault){.kind = FAULT_SHORT, .seam = calls[i].what, .persistent = true,
			    .bytes = 1};
			load_with(s, want, &calls[i], f);
		}
	}
}

static void
test_seams__loader(void **unused)
{
	struct world s;
	struct ckpt_options o;

	(void)unused;
	fixture_make(&s.fx);
	s.fs = fault_fs_new();
	s.out = outcome_shared();
	o = workload_options(&s.fx, NULL);
	workload_run(&o, 0, s.out);
	assert_int_equal(s.out->acked, WORKLOAD_STEPS);
	load_all(&s, workload_models()[WORKLOAD_STEPS]);
	fault_fs_free(s.fs);
	workload_free();
	fixture_remove(&s.fx);
}

/* ---- A new pair, and compaction of a finished run ---- */

struct task {
	struct world *s;
	bool compact;
};

static int
run_task(const struct task *t, struct err *e)
{
	struct ckpt_options o = workload_options(&t->s->fx, &t->s->fs->ops);
	struct ckpt_report report;

	o.sweep = true;
	if (t->compact)
		return ckpt_compact(&o, &report, e);
	return ckpt_write_new(&t->s->fs->ops, t->s->fx.run_fd, CKPT_BASE, 3,
	    workload_models()[WORKLOAD_STEPS], e);
}

static void
task_ready(const struct task *t)
{
	struct ckpt_options o;

	fixture_again(&t->s->fx);
	fault_fs_reset(t->s->fs);
	if (!t->compact)
		return;
	o = workload_options(&t->s->fx, NULL);
	workload_run(&o, 0, t->s->out);
	/* As a writer that was killed leaves it. */
	test_file_write(t->s->fx.run_fd, CKPT_STAGING "/0123456789abcdef0123456789abcdef", "left");
}

/* A compacted checkpoint is always whole; a new one is whole or not there. */
static void
task_judge(const struct task *t, const struct fault_call *call, int result)
{
	struct ckpt_report report;
	struct json *state = NULL;
	struct err e = {0};
	int loaded = ckpt_load(t->s->fx.run_fd, NULL, &state, &report, &e);

	if (loaded != 0 && (t->compact || result == 0 || e.code != ERR_NOTFOUND))
		fail_msg("%s: %s", call->what, e.msg);
	if (loaded == 0 && !json_equal(state, workload_models()[WORKLOAD_STEPS]))
		fail_msg("%s: a wrong state", call->what);
	json_unref(state);
	done.cases++;
}

static void
task_fail(const struct task *t, const struct fault_call *call, struct fault f)
{
	struct err e = {0};
	int before, result;

	task_ready(t);
	fault_fs_add(t->s->fs, f);
	before = test_count_fds();
	result = run_task(t, &e);
	assert_int_equal(test_count_fds(), before);
	task_judge(t, call, result);
	done.failed[slot(call->what)] = true;
}

static void
task_kill(const struct task *t, const struct fault_call *call, struct fault f)
{
	struct err e = {0};
	pid_t pid;
	int status;

	task_ready(t);
	fault_fs_add(t->s->fs, f);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		run_task(t, &e);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	task_judge(t, call, -1);
	done.killed[slot(call->what)] = true;
}

static void
task_exercise(const struct task *t, void (*prepare)(struct world *))
{
	struct fault_call calls[256];
	struct err e = {0};
	unsigned total, i;
	const int *sys;

	task_ready(t);
	if (prepare != NULL)
		prepare(t->s);
	run_task(t, &e);
	total = t->s->fs->total;
	assert_in_range(total, 1, 256);
	memcpy(calls, t->s->fs->calls, total * sizeof(calls[0]));
	for (i = 0; i < total; i++) {
		struct fault f = {.seam = calls[i].what, .call = nth_at(calls, i)};

		for (sys = errnos[calls[i].op]; *sys != 0; sys++) {
			f.kind = FAULT_FAIL;
			f.sys = *sys;
			f.persistent = false;
			task_fail(t, &calls[i], f);
			f.persistent = *sys != EINTR;
			task_fail(t, &calls[i], f);
		}
		if (prepare != NULL)
			continue;
		f.kind = FAULT_KILL_BEFORE;
		task_kill(t, &calls[i], f);
		f.kind = FAULT_KILL_AFTER;
		task_kill(t, &calls[i], f);
	}
}

/* The calls that take a half-made pair away again, and those for file systems that know no
 * RENAME_NOREPLACE, ended at each as well. */
static void
exercise_undo(const struct task *t, const char *first, int sys, const char *const *seams)
{
	for (; *seams != NULL; seams++) {
		const struct fault_call call = {.what = *seams};
		enum fault_kind kind;

		for (kind = FAULT_KILL_BEFORE; kind <= FAULT_KILL_AFTER; kind++) {
			struct fault f = {.kind = kind, .seam = *seams};
			pid_t pid;
			int status;

			task_ready(t);
			fail_at(t->s, first, 1, sys);
			fault_fs_add(t->s->fs, f);
			fflush(NULL);
			pid = fork();
			assert_true(pid >= 0);
			if (pid == 0) {
				struct err e = {0};

				run_task(t, &e);
				_exit(0);
			}
			assert_int_equal(waitpid(pid, &status, 0), pid);
			assert_true(WIFSIGNALED(status));
			task_judge(t, &call, -1);
		}
		task_ready(t);
		fail_at(t->s, first, 1, sys);
		fault_fs_add(t->s->fs, (struct fault){.kind = FAULT_FAIL, .seam = *seams, .sys = EIO});
		{
			struct err e = {0};

			task_judge(t, &call, run_task(t, &e));
		}
		done.failed[slot(*seams)] = done.killed[slot(*seams)] = true;
	}
}

static void
test_seams__new_pairs_and_compaction(void **unused)
{
	static const char *const undo[] = {"ckpt.new.find", "ckpt.new.unlink", "ckpt.new.close", NULL};
	static const char *const plain[] = {"ckpt.new.look", NULL};
	struct world s;
	struct task t = {.s = &s};

	(void)unused;
	fixture_make(&s.fx);
	s.fs = fault_fs_new();
	s.out = outcome_shared();
	task_exercise(&t, NULL);
	exercise_undo(&t, "ckpt.new.sync_dir", EIO, undo);
	exercise_undo(&t, "ckpt.new.install", EINVAL, plain);
	t.compact = true;
	task_exercise(&t, NULL);
	fault_fs_free(s.fs);
	workload_free();
	fixture_remove(&s.fx);
}

/* ---- None is left out ---- */

/* ---- Readers of a live run ---- */

/* Whoever looks while the lock is held finds nothing to recover, at whatever moment. */
static void
look_as_reader(void *arg, const struct fault_call *call)
{
	const struct world *s = arg;
	const struct ckpt_load_options live = {.lock_held = true};
	struct ckpt_report report;
	struct json *state = NULL;
	struct err e = {0};

	if (ckpt_load(s->fx.run_fd, &live, &state, &report, &e) != 0 || report.status != CKPT_CLEAN ||
	    !json_equal(state, workload_models()[WORKLOAD_STEPS]))
		fail_msg("at %s: %s, %s %s", call->what, ckpt_status_name(report.status), report.reason, e.msg);
	json_unref(state);
	done.cases++;
}

static void
test_seams__compaction_under_a_reader(void **unused)
{
	static const enum fault_kind when[] = {FAULT_HOOK_BEFORE, FAULT_HOOK_AFTER};
	struct world s;
	const struct task t = {&s, true};
	struct err e = {0};
	unsigned i;

	(void)unused;
	fixture_make(&s.fx);
	s.fs = fault_fs_new();
	s.out = outcome_shared();
	for (i = 0; i < 2; i++) {
		task_ready(&t);
		fault_fs_add(s.fs, (struct fault){.kind = when[i], .persistent = true,
		    .hook = look_as_reader, .arg = &s});
		assert_works(run_task(&t, &e), e);
		assert_true(fault_fs_calls(s.fs, "ckpt.journal.install") > 0);
	}
	fault_fs_free(s.fs);
	workload_free();
	fixture_remove(&s.fx);
}

static void
test_seams__all_that_exist_were_exercised(void **unused)
{
	size_t i, missing = 0;

	(void)unused;
	for (i = 0; i < ckpt_nseams; i++)
		if (!is_done(ckpt_seams[i])) {
			print_message("# not exercised: %s\n", ckpt_seams[i]);
			missing++;
		}
	print_message("# %zu seams exist, %zu exercised, %lu cases\n", ckpt_nseams,
	    ckpt_nseams - missing, done.cases);
	assert_int_equal(missing, 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_seams__writer),
	cmocka_unit_test(test_seams__writer_of_version_2),
	cmocka_unit_test(test_seams__loader),
	cmocka_unit_test(test_seams__new_pairs_and_compaction),
	cmocka_unit_test(test_seams__compaction_under_a_reader),
	cmocka_unit_test(test_seams__all_that_exist_were_exercised),
};

int
main(void)
{
	use_fast_directory();
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("seams of the checkpoint", tests, NULL, NULL);
}
