#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "autostart.h"
#include "cli.h"
#include "client.h"
#include "daemon.h"
#include "doctor.h"
#include "flowsup/checkpoint.h"
#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/home.h"
#include "flowsup/log.h"
#include "flowsup/proc.h"
#include "flowsup/store.h"
#include "gc.h"
#include "output.h"
#include "paste.h"
#include "providers.h"
#include "seek.h"
#include "target.h"
#include "view.h"

enum { EXIT_BROKEN = 78, BUSY_MS = 1000, NAMES_MOST = 5 };
#define SPACE_LOW (UINT64_C(256) << 20)

static const char *const examples[] = {
    "flowsup doctor            # is everything as it must be, and what to do if not",
    "flowsup doctor --json     # one object a line: check, state, text, hint",
    NULL};

static const struct {
	const char *word;
	enum out_style style;
} grades[] = {
    [GRADE_OK] = {"ok", OUT_GOOD},
    [GRADE_NOTE] = {"note", OUT_DIM},
    [GRADE_WARNING] = {"warning", OUT_WARN},
    [GRADE_BROKEN] = {"broken", OUT_BAD},
};

enum { TEXT_INDENT = 22 };

/* A command, and behind # what it is for; where it is too wide it stays one that can be pasted. */
static void
say_hint(struct output *out, const char *text)
{
	struct buf whole = {0};
	const char *hint = (cli_hint_text(&whole, text), buf_text(&whole));
	const char *what = strstr(hint, "   # ");
	struct slice command = {hint, what != NULL ? (size_t)(what - hint) : strlen(hint)};
	const int indent = out_go_on(out, TEXT_INDENT);
	struct buf clean = {0}, b = {0};

	text_neutralise(&clean, slice_of(hint), false);
	if (indent + text_width(buf_view(&clean)) > out->width && out->width > 0) {
		buf_reset(&clean);
		text_neutralise(&clean, command, false);
		paste_wrap(&b, buf_view(&clean), indent, indent, out->width);
		if (what != NULL)
			paste_comment(&b, slice_of(what + strlen("   # ")), indent, out->width);
	} else {
		buf_slice(&b, buf_view(&clean));
	}
	out_printf(out, "%*s", indent, "hint: ");
	out_text(out, buf_view(&b), true);
	out_puts(out, "\n");
	buf_clear(&whole);
	buf_clear(&clean);
	buf_clear(&b);
}

static void
say_text(struct doctor *d, enum grade g, const char *check, const char *hint, struct slice text)
{
	struct output *out = d->c->out;
	const int indent = out_go_on(out, TEXT_INDENT);
	size_t from = out->pending.len;

	out_printf(out, "%s%-8s%s ", out_style(out, grades[g].style), grades[g].word, out_style(out, OUT_PLAIN));
	out_printf(out, indent < TEXT_INDENT ? "%s: " : "%-12s ", check);
	out_text(out, text, false);
	out_puts(out, "\n");
	out_wrap_prose(out, from, indent);
	if (hint != NULL)
		say_hint(out, hint);
}

void
doctor_say(struct doctor *d, enum grade g, const char *check, const char *hint, const char *fmt, ...)
{
	struct buf b = {0}, whole = {0};
	struct json *o;
	va_list ap;

	d->worst = g > d->worst ? g : d->worst;
	va_start(ap, fmt);
	buf_vprintf(&b, fmt, ap);
	va_end(ap);
	if (d->c->json) {
		o = json_set(json_object(), "check", json_cstr(check));
		o = json_set(o, "state", json_cstr(grades[g].word));
		o = json_set(o, "text", json_string_lossy(buf_view(&b), NULL));
		if (hint != NULL)
			cli_hint_text(&whole, hint);
		o = json_set(o, "hint", json_text_or_null(buf_text(&whole)));
		out_json(d->c->out, o);
	} else {
		say_text(d, g, check, hint, buf_view(&b));
	}
	buf_clear(&whole);
	buf_clear(&b);
}

void
doctor_say_error(struct doctor *d, enum grade g, const char *check, const struct err *e)
{
	bool advice = e->advice && err_has_hint(e);

	doctor_say(d, g, check, !advice && err_has_hint(e) ? err_hint_text(e) : NULL, "%s%s%s", e->msg,
	    advice ? "; " : "", advice ? err_hint_text(e) : "");
}

/* ---- The installation ---- */

static void
check_program(struct doctor *d)
{
	struct utsname u;
	struct buf path = {0};
	struct err e = {0};

	doctor_say(d, GRADE_OK, "version", NULL, "flowsup " FLOWSUP_VERSION "%s%s", uname(&u) == 0 ? ", Linux " : "",
	    uname(&u) == 0 ? u.release : "");
	if (proc_relative_to_self(AUTOSTART_WORKER, &path, &e) != 0)
		doctor_say_error(d, GRADE_BROKEN, "worker", &e);
	else if (access(buf_text(&path), X_OK) != 0)
		doctor_say(d, GRADE_BROKEN, "worker", NULL, "'%s': %s; install flowsup again, whole",
		    buf_text(&path), strerror(errno));
	else
		doctor_say(d, GRADE_OK, "worker", NULL, "%s", buf_text(&path));
	buf_clear(&path);
}

static void
check_kernel(struct doctor *d)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	if (fd < 0)
		doctor_say(d, GRADE_BROKEN, "kernel", NULL,
		    "no process descriptors: %s; Linux 5.4 or newer is needed", strerror(errno));
	else
		doctor_say(d, GRADE_OK, "kernel", NULL, "process descriptors");
	fd_close(&fd);
	if (access("/proc/self/stat", R_OK) != 0)
		doctor_say(d, GRADE_BROKEN, "proc", "mount -t proc proc /proc", "/proc is not mounted");
}

static void
check_environment(struct doctor *d)
{
	const char *home = getenv("HOME");

	if (getenv("PATH") == NULL)
		doctor_say(d, GRADE_NOTE, "PATH", NULL, "not set; programs are found in the system's default");
	if ((home == NULL || home[0] != '/') && getenv("FLOWSUP_HOME") == NULL && d->c->home == NULL)
		doctor_say(d, GRADE_NOTE, "HOME", NULL, "names no directory; the account's home directory is taken");
}

static void
say_open_files(struct doctor *d, const char *whose, uint64_t limit)
{
	static const char hint[] = "ulimit -Hn   # where it is higher: flowsup supervisor stop; flowsup supervisor";

	if (limit < DAEMON_FILES_LEAST)
		doctor_say(d, GRADE_BROKEN, "open files", hint, "%s may open %llu files, and %d are needed",
		    whose, (unsigned long long)limit, DAEMON_FILES_LEAST);
	else if (limit < DAEMON_FILES_FEW)
		doctor_say(d, GRADE_WARNING, "open files", hint,
		    "%s may open %llu files: runs wait for one another", whose, (unsigned long long)limit);
}

/* A supervisor that is started from here has the hard limit. */
static void
check_open_files(struct doctor *d)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		say_open_files(d, "a supervisor that is started here", limit.rlim_max);
}

/* ---- The state directory ---- */

/* The file systems on which the fault tests of checkpoints have passed; flowsup-checkpoint(5) has the
 * same list. */
static bool
is_proven(const char *file_system)
{
	static const char *const proven[] = {"ext4", "xfs", "btrfs", "overlay", "tmpfs"};
	size_t i;

	for (i = 0; i < sizeof(proven) / sizeof(proven[0]); i++)
		if (strcmp(file_system, proven[i]) == 0)
			return true;
	return false;
}

/* Of a directory on it. */
static void
check_file_system(struct doctor *d, int fd)
{
	const char *name = "";
	bool remote = false;
	struct err e = {0};

	if (fs_kind(fd, &name, &remote, &e) != 0)
		doctor_say_error(d, GRADE_BROKEN, "file system", &e);
	else if (remote)
		doctor_say(d, GRADE_BROKEN, "file system",
		    "export FLOWSUP_HOME=/var/tmp/flowsup-$(id -u)   # or another local directory",
		    "%s is remote: locks cannot be trusted", name);
	else if (!is_proven(name))
		doctor_say(d, GRADE_NOTE, "file system", "man 5 flowsup-checkpoint",
		    "%s: the fault tests of checkpoints have not been run on it", name);
	else
		doctor_say(d, GRADE_OK, "file system", NULL, "%s", name);
}

static void
check_space(struct doctor *d, int fd)
{
	char text[DURATION_TEXT];
	struct statvfs v;
	uint64_t left;

	if (fstatvfs(fd, &v) != 0)
		return;
	left = (uint64_t)v.f_bavail * v.f_frsize;
	doctor_say(d, left < SPACE_LOW ? GRADE_WARNING : GRADE_OK, "space",
	    left < SPACE_LOW ? "flowsup gc --dry-run   # what of the old runs can go" : NULL, "%s free",
	    size_format(left, text));
	/* Some file systems have no number of files. */
	if (v.f_files > 0 && v.f_favail == 0)
		doctor_say(d, GRADE_BROKEN, "files", "flowsup gc --keep-days 7   # or remove other files there",
		    "no file can be made: the file system has no inodes left");
}

/* Who may write was looked at when it was opened. */
static void
check_modes(struct doctor *d)
{
	char word[SHELL_WORD_TEXT], hint[SHELL_WORD_TEXT + 16];
	struct stat st;

	if (fstat(d->home.fd, &st) != 0 || (st.st_mode & 077) == 0)
		return;
	snprintf(hint, sizeof(hint), "chmod 700 %s", shell_word(word, d->home.path));
	doctor_say(d, GRADE_WARNING, "mode", hint, "others may look into it: its mode is %04o",
	    (unsigned)st.st_mode & 07777);
}

static void
check_there(struct doctor *d)
{
	bool supported = false;
	struct err e = {0};

	check_modes(d);
	check_file_system(d, d->home.fd);
	if (fs_sync_dir(&fs_real, "doctor.sync", d->home.runs_fd, &supported, &e) != 0)
		doctor_say_error(d, GRADE_BROKEN, "fsync", &e);
	else
		doctor_say(d, supported ? GRADE_OK : GRADE_WARNING, "fsync", NULL, "%s",
		    supported ? "directories can be synced"
			      : "directories cannot be synced: a power loss may take a new run away");
	check_space(d, d->home.fd);
	if (faccessat(d->home.fd, ".", W_OK, AT_EACCESS) != 0) {
		err_sys(&e, ERR_PERMISSION, errno, "'%s' cannot be written to", d->home.path);
		home_hint(d->home.path, &e);
		doctor_say_error(d, GRADE_BROKEN, "writable", &e);
	}
}

/* It is made below this directory. */
static void
check_to_be_made(struct doctor *d, const char *below)
{
	int fd = open(below, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return;
	check_file_system(d, fd);
	check_space(d, fd);
	fd_close(&fd);
}

static void
check_home(struct doctor *d)
{
	struct buf path = {0}, below = {0};
	struct err e = {0};

	if (home_open(d->c->home, false, &d->home, &e) == 0) {
		d->has_home = true;
		doctor_say(d, GRADE_OK, "state", NULL, "%s", d->home.path);
		check_there(d);
	} else if (e.code == ERR_NOTFOUND && home_may_be_made(d->c->home, &path, &below, &e) == 0) {
		doctor_say(d, GRADE_NOTE, "state", NULL, strcmp(buf_text(&path), buf_text(&below)) != 0
		    ? "%s is not there yet; the first start makes it"
		    : "%s has no runs yet; the first start makes what is needed there", buf_text(&path));
		check_to_be_made(d, buf_text(&below));
	} else {
		doctor_say_error(d, GRADE_BROKEN, "state", &e);
	}
	buf_clear(&path);
	buf_clear(&below);
}

/* ---- Leftovers ---- */

/* Names in runs/, and which of them have a row. */
struct names {
	char **items;
	size_t n, cap;
};

static int
add_name(struct names *names, const char *name)
{
	char **grown;

	if (names->n == names->cap) {
		grown = reallocarray(names->items, names->cap * 2 + 64, sizeof(*grown));
		if (grown == NULL)
			return -1;
		names->items = grown;
		names->cap = names->cap * 2 + 64;
	}
	names->items[names->n] = strdup(name);
	return names->items[names->n++] == NULL ? -1 : 0;
}

static void
names_clear(struct names *names)
{
	while (names->n > 0)
		free(names->items[--names->n]);
	free(names->items);
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int
read_names(const struct home *h, struct names *all)
{
	int fd = openat(h->runs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	struct dirent *entry;
	DIR *dir;

	dir = fd < 0 ? NULL : fdopendir(fd);
	if (dir == NULL) {
		fd_close(&fd);
		return -1;
	}
	while (r == 0 && (entry = readdir(dir)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = add_name(all, entry->d_name);
	closedir(dir);
	if (r == 0 && all->n > 0)
		qsort(all->items, all->n, sizeof(*all->items), compare_names);
	return r;
}

struct rows {
	struct doctor *doctor;
	struct names *directories;
	bool *has_row; /* by index in directories */
	size_t without_directory, damaged; /* damaged: what stands in its place is none that we use */
	size_t processes; /* that no start line names */
	size_t made_elsewhere, owned_elsewhere; /* runs of the home that this one is a copy of; those that are its own still */
	char copy_of[HOME_MAX_PATH + 1];
};

/* One that nobody here can say of whether it lives: it waits for a person. */
static void
say_lost(struct doctor *d, const struct session *s)
{
	struct buf text = {0}, hint = {0};

	if (target_is_lost(&d->home, s, &text)) {
		target_lost_hint(d->c->home, s, &hint);
		doctor_say(d, GRADE_WARNING, "elsewhere", buf_text(&hint), "%s", buf_text(&text));
	}
	buf_clear(&text);
	buf_clear(&hint);
}

static void
count_copy(struct rows *rows, const struct session *s)
{
	const struct home *h = &rows->doctor->home;
	const char *of;

	if (session_home(s, h, &of) != SESSION_HOME_OTHER)
		return;
	rows->made_elsewhere++;
	rows->owned_elsewhere += session_owner(s, h) != NULL;
	snprintf(rows->copy_of, sizeof(rows->copy_of), "%s", of);
}

static void
say_processes(struct rows *rows)
{
	doctor_unproved_processes(rows->doctor, &rows->processes);
	if (rows->processes == 0)
		doctor_say(rows->doctor, GRADE_OK, "processes", NULL, "none that dead workers left unknown");
}

/* What every command that needs its files is refused for, and gc sets aside. */
static void
check_directory(struct rows *rows, const struct session *s)
{
	char word[SHELL_WORD_TEXT];
	struct buf path = {0};
	struct err e = {0};
	int fd = rundir_open(&rows->doctor->home, s->run_id, &e);

	if (fd < 0 && e.code != ERR_NOTFOUND && rows->damaged++ < NAMES_MOST) {
		buf_printf(&path, "%s/" HOME_RUNS "/%s", rows->doctor->home.path, s->run_id);
		if (!err_has_hint(&e))
			err_hint(&e, "ls -ld %s", shell_word(word, buf_text(&path)));
		doctor_say_error(rows->doctor, GRADE_WARNING, "runs", &e);
		buf_clear(&path);
	}
	fd_close(&fd);
}

static int
match_row(void *arg, const struct session *s)
{
	struct rows *rows = arg;
	const char *id = s->run_id;
	char **found = rows->directories->n == 0 ? NULL
						 : bsearch(&id, rows->directories->items,
	    rows->directories->n, sizeof(*rows->directories->items), compare_names);

	if (found == NULL)
		rows->without_directory++;
	else
		rows->has_row[found - rows->directories->items] = true;
	if (found != NULL)
		check_directory(rows, s);
	count_copy(rows, s);
	say_lost(rows->doctor, s);
	doctor_strays(rows->doctor, s, &rows->processes);
	return 0;
}

/* Only with the original gone they are this one's. */
static void
say_copy(struct doctor *d, const struct rows *rows)
{
	const size_t n = rows->made_elsewhere, open = rows->owned_elsewhere;
	struct buf hint = {0};

	if (n == 0)
		return;
	buf_puts(&hint, "flowsup list --home ");
	text_shell_word(&hint, rows->copy_of);
	doctor_say(d, open > 0 ? GRADE_WARNING : GRADE_NOTE, "copy", buf_text(&hint),
	    "it is a copy of '%s', where %zu of its runs %s made; %zu of them can go on and be steered there alone, until that "
	    "directory is moved away or removed", rows->copy_of, n, n == 1 ? "was" : "were", open);
	buf_clear(&hint);
}

static void
add_path(const struct doctor *d, const char *name, struct buf *to)
{
	text_shell_word(to, d->home.path);
	buf_puts(to, "/" HOME_RUNS "/");
	text_shell_word(to, name);
}

static bool
is_leftover(const struct doctor *d, const char *name)
{
	return strncmp(name, GC_GONE, strlen(GC_GONE)) == 0 ||
	    rundir_stage(&d->home, name) == RUNDIR_CUT_OFF;
}

/* Its row was lost with the database. */
static bool
was_run(const struct doctor *d, const char *name)
{
	return run_id_is_valid(name) && rundir_stage(&d->home, name) == RUNDIR_BORN;
}

/* Without one nothing can be resumed from the directory. */
static bool
has_checkpoint(const struct doctor *d, const char *name)
{
	struct err ignored = {0};
	int fd = rundir_open(&d->home, name, &ignored);
	struct stat st;
	bool has = fd >= 0 && fstatat(fd, CKPT_BASE, &st, AT_SYMLINK_NOFOLLOW) == 0;

	fd_close(&fd);
	return has;
}

/* A run that the database does not know: its worker may live all the same. */
static void
say_unknown_run(struct doctor *d, const char *name)
{
	struct buf hint = {0};
	struct proc_id id = {0};

	if (seek_worker(&d->home, name, &id, NULL) == 1) {
		buf_printf(&hint, "kill %d && flowsup resume ", (int)id.pid);
		add_path(d, name, &hint);
		doctor_say(d, GRADE_WARNING, "runs", buf_text(&hint),
		    "%s is not in the database, but its worker %d lives", name, (int)id.pid);
	} else if (!has_checkpoint(d, name)) {
		doctor_say(d, GRADE_WARNING, "runs", NULL, "%s is not in the database, and has no checkpoint", name);
	} else {
		buf_puts(&hint, "flowsup resume ");
		add_path(d, name, &hint);
		doctor_say(d, GRADE_WARNING, "runs", buf_text(&hint), "%s is not in the database", name);
	}
	buf_clear(&hint);
}

static void
say_unknown_runs(struct doctor *d, const struct rows *rows)
{
	const struct names *names = rows->directories;
	size_t i, n = 0;

	for (i = 0; i < names->n; i++)
		if (!rows->has_row[i] && was_run(d, names->items[i]) && n++ < NAMES_MOST)
			say_unknown_run(d, names->items[i]);
	if (n > NAMES_MOST)
		doctor_say(d, GRADE_WARNING, "runs", NULL, "and %zu more are not in the database",
		    n - NAMES_MOST);
}

static void
say_leftovers(struct doctor *d, const struct rows *rows)
{
	const struct names *names = rows->directories;
	size_t i, n = 0;

	for (i = 0; i < names->n; i++)
		n += !rows->has_row[i] && is_leftover(d, names->items[i]);
	if (n > 0)
		doctor_say(d, GRADE_WARNING, "leftovers", "flowsup gc",
		    "%zu director%s of starts or removals that were cut off", n, n == 1 ? "y" : "ies");
	else
		doctor_say(d, GRADE_OK, "leftovers", NULL, "none");
	if (rows->damaged > NAMES_MOST)
		doctor_say(d, GRADE_WARNING, "runs", NULL, "and %zu more directories that cannot be used",
		    rows->damaged - NAMES_MOST);
	if (rows->without_directory > 0)
		doctor_say(d, GRADE_WARNING, "runs", "flowsup list", "%zu of the database have no directory",
		    rows->without_directory);
}

static void
check_runs(struct doctor *d, struct store *s)
{
	static const struct session_filter all = {0};
	struct names names = {0};
	struct rows rows = {.doctor = d, .directories = &names};
	struct err e = {0};

	if (read_names(&d->home, &names) != 0) {
		doctor_say(d, GRADE_BROKEN, "runs", NULL, "the run directories cannot be listed");
		goto out;
	}
	rows.has_row = calloc(names.n + 1, sizeof(*rows.has_row));
	if (rows.has_row == NULL || (s != NULL && session_list(s, &all, match_row, &rows, &e) != 0)) {
		doctor_say(d, GRADE_BROKEN, "runs", NULL, "%s", e.code != ERR_NONE ? e.msg : "out of memory");
	} else {
		say_copy(d, &rows);
		say_leftovers(d, &rows);
		say_processes(&rows);
		say_unknown_runs(d, &rows);
	}
	free(rows.has_row);
out:
	names_clear(&names);
}

static void
check_schema(struct doctor *d, struct store *s)
{
	struct err e = {0};
	int unknown = 0;

	if (store_verify(s, &e) != 0 || store_steps_unknown(s, &unknown, &e) != 0) {
		doctor_say_error(d, GRADE_BROKEN, "database", &e);
		return;
	}
	doctor_say(d, GRADE_OK, "database", NULL, "schema %d", STORE_SCHEMA_VERSION);
	if (unknown > 0)
		doctor_say(d, GRADE_NOTE, "database", NULL,
		    "%d step%s of a newer flowsup in the schema, which change nothing for this one", unknown,
		    unknown == 1 ? "" : "s");
}

static void
check_database(struct doctor *d)
{
	struct store *s = NULL;
	struct err e = {0};

	if (store_open(&d->home, STORE_COMMAND, false, BUSY_MS, &s, &e) == 0) {
		check_schema(d, s);
		if (store_steps_waiting(s) > 0)
			doctor_say(d, GRADE_NOTE, "database", NULL,
			    "%d step%s of the schema wait for the live runs to end", store_steps_waiting(s),
			    store_steps_waiting(s) == 1 ? "" : "s");
		check_runs(d, s);
		if (unwatched_count(&d->home, s, &d->unwatched, &e) != 0)
			doctor_say_error(d, GRADE_BROKEN, "runs", &e);
	} else if (e.code == ERR_NOTFOUND && target_lost_database(&d->home, &e)) {
		doctor_say(d, GRADE_BROKEN, "database", NULL,
		    "%s; restore it from a copy, or resume what is named below", e.msg);
		check_runs(d, NULL);
	} else if (e.code == ERR_NOTFOUND) {
		doctor_say(d, GRADE_NOTE, "database", NULL, "none yet");
	} else {
		doctor_say_error(d, GRADE_BROKEN, "database", &e);
	}
	store_close(s);
}

/* ---- The supervisor ---- */

/* 1 held, 0 free, -1 no such file. */
static int
lock_state(const struct home *h)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = openat(h->fd, HOME_LOCK, O_RDWR | O_NOFOLLOW | O_CLOEXEC), held = -1;

	if (fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0)
		held = lock.l_type != F_UNLCK;
	fd_close(&fd);
	return held;
}

/* What stands where a supervisor makes its lock and its socket, and is none that it takes or replaces. */
static bool
say_in_the_way(struct doctor *d)
{
	static const char *const names[] = {HOME_LOCK, HOME_SOCKET};
	char word[SHELL_WORD_TEXT];
	struct buf path = {0}, hint = {0};
	struct stat st;
	bool any = false;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]) && !any; i++) {
		if (fstatat(d->home.fd, names[i], &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    (i == 0 ? S_ISREG(st.st_mode) : !S_ISDIR(st.st_mode)))
			continue;
		any = true;
		buf_printf(&path, "%s/%s", d->home.path, names[i]);
		buf_printf(&hint, "mv %s /var/tmp/", shell_word(word, buf_text(&path)));
		doctor_say(d, GRADE_BROKEN, "supervisor", buf_text(&hint), "none runs, and none can: '%s' is %s", buf_text(&path),
		    S_ISDIR(st.st_mode) ? "a directory" : "no regular file");
	}
	buf_clear(&path);
	buf_clear(&hint);
	return any;
}

static void
say_unwatched(struct doctor *d)
{
	struct buf text = {0};

	unwatched_text(&d->unwatched, &text);
	doctor_say(d, GRADE_WARNING, "supervisor", "flowsup supervisor", "none runs: %s", buf_text(&text));
	buf_clear(&text);
}

static void
check_supervisor(struct doctor *d)
{
	struct json *status = NULL;
	struct err e = {0};
	struct stat st;
	int64_t pid = 0;
	int lock = lock_state(&d->home);
	struct rlimit limit;

	if (client_status(&d->home, CLIENT_ANSWER_MS, &status, &e) == 0) {
		(void)json_int64(json_get(status, "pid"), &pid);
		if (json_is_true(json_get(status, "database_lost")))
			doctor_say(d, GRADE_WARNING, "supervisor", "flowsup supervisor",
			    "pid %lld leaves: its database was removed or replaced", (long long)pid);
		else
			doctor_say(d, GRADE_OK, "supervisor", NULL, "pid %lld", (long long)pid);
		if (pid > 0 && prlimit((pid_t)pid, RLIMIT_NOFILE, NULL, &limit) == 0)
			say_open_files(d, "the supervisor", limit.rlim_cur);
	} else if (lock == 1 && client_say_silent(&d->home, &e)) {
		doctor_say_error(d, GRADE_BROKEN, "supervisor", &e);
	} else if (lock == 1) {
		doctor_say(d, GRADE_BROKEN, "supervisor", "flowsup supervisor restart",
		    "one holds the lock but does not answer; it may be stopped");
	} else if (say_in_the_way(d)) {
		/* nothing else matters before it is away */
	} else if (d->unwatched.ops > 0) {
		say_unwatched(d);
	} else if (fstatat(d->home.fd, HOME_SOCKET, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		doctor_say(d, GRADE_NOTE, "supervisor", NULL,
		    "none runs; it left a socket behind, which the next one replaces");
	} else {
		doctor_say(d, GRADE_OK, "supervisor", NULL, "none runs; commands start one when they need it");
	}
	json_unref(status);
}

/* ---- Providers ---- */

/* With the command that was to print it. */
static void
say_no_version(struct doctor *d, const struct provider_state *p, const char *unverified)
{
	struct json_iter it = json_iterate(p->provider->version);
	struct buf command = {0}, why = {0};
	const struct json *word;

	while (json_next(&it, NULL, &word)) {
		buf_puts(&command, command.len > 0 ? " " : "");
		text_shell_word(&command, json_cstr_of(word));
	}
	if (!p->ended)
		buf_printf(&why, " within %d s", PROVIDERS_S);
	else if (p->end.signaled)
		buf_printf(&why, ", it was ended by %s", proc_signal_name(p->end.code));
	else if (p->end.code != 0)
		buf_printf(&why, ", exit status %d", p->end.code);
	doctor_say(d, GRADE_WARNING, "provider", buf_text(&command), "%s: says no version%s%s (%s)", p->name,
	    buf_text(&why), unverified, p->program);
	buf_clear(&command);
	buf_clear(&why);
}

/* What is not installed is no fault: nobody has all of them. */
static void
say_provider(struct doctor *d, const struct provider_state *p)
{
	const char *unverified;
	struct err why;

	if (p->provider == NULL) {
		why = p->why;
		err_wrap(&why, "%s", p->name);
		doctor_say_error(d, GRADE_WARNING, "provider", &why);
		return;
	}
	unverified = p->provider->verified == NULL ? ", unverified" : "";
	if (p->program == NULL)
		doctor_say(d, GRADE_NOTE, "provider", NULL, "%s: not installed%s", p->name, unverified);
	else if (p->version != NULL && p->version[0] != '\0')
		doctor_say(d, GRADE_OK, "provider", NULL, "%s: %s%s (%s)", p->name, p->version, unverified,
		    p->program);
	else if (p->provider->version != NULL)
		say_no_version(d, p, unverified);
	else
		doctor_say(d, GRADE_OK, "provider", NULL, "%s%s (%s)", p->name, unverified, p->program);
}

static void
check_providers(struct doctor *d)
{
	struct provider_states all;
	struct err e = {0};
	size_t i;

	if (providers_look(&all, &e) != 0) {
		doctor_say_error(d, GRADE_BROKEN, "provider", &e);
		return;
	}
	for (i = 0; i < all.count; i++)
		say_provider(d, &all.list[i]);
	providers_clear(&all);
}

static int
run(struct cli *c, struct err *e)
{
	struct doctor d = {.c = c};

	(void)e;
	check_program(&d);
	check_kernel(&d);
	check_environment(&d);
	check_open_files(&d);
	doctor_config(&d);
	check_home(&d);
	if (d.has_home) {
		check_database(&d);
		check_supervisor(&d);
		doctor_boot(&d);
		home_close(&d.home);
	}
	check_providers(&d);
	return d.worst == GRADE_BROKEN ? EXIT_BROKEN : 0;
}

const struct command cmd_doctor = {
    .name = "doctor",
    .group = CLI_GROUP_SYSTEM,
    .synopsis = "",
    .summary = "check installation, configuration and state directory",
    .examples = examples,
    .details = "Exits 78 when something is broken.",
    .operands = "",
    .json = true,
    .run = run,
};
