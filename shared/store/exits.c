#include "flowsup/exits.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/json.h"

enum { RECORD_MOST = 4096 };

const char *
attempt_dir(const char *op, unsigned attempt, char to[ATTEMPT_DIR_TEXT])
{
	snprintf(to, ATTEMPT_DIR_TEXT, "%s.%u", op, attempt);
	return to;
}

/* ---- Files ---- */

static int
open_attempt(int ops_fd, const char *dir, struct err *e)
{
	bool made = mkdirat(ops_fd, dir, 0700) == 0;
	int fd;

	if (!made && errno != EEXIST)
		return err_sys(e, ERR_IO, errno, "cannot create ops/%s", dir);
	fd = fs_open_private_dir(ops_fd, dir, e);
	if (fd >= 0 && made && fs_sync_dir(&fs_real, "exits.ops", ops_fd, NULL, e) != 0)
		fd_close(&fd);
	return fd;
}

/* Consumes record. */
static int
write_record(int ops_fd, const char *dir, const char *name, struct json *record, struct err *e)
{
	struct buf text = {0};
	int fd, rc;

	if (record == NULL)
		return err_nomem(e);
	json_write(&text, record);
	buf_putc(&text, '\n');
	json_unref(record);
	rc = buf_ok(&text, e);
	fd = rc == 0 ? open_attempt(ops_fd, dir, e) : -1;
	rc = fd < 0 ? -1 : fs_replace_file(fd, name, buf_view(&text), e);
	fd_close(&fd);
	buf_clear(&text);
	return rc;
}

static bool
is_of(const struct json *record, struct proc_id id)
{
	int64_t pid;
	uint64_t start;

	return json_int64(json_get(record, "pid"), &pid) && pid == id.pid &&
	    json_uint64(json_get(record, "start"), &start) && start == id.start_ticks;
}

/* Nothing but a whole record of this process is one. */
static struct json *
read_record(int ops_fd, const char *dir, const char *name, struct proc_id id, struct err *e)
{
	const struct json_options o = {.max_bytes = RECORD_MOST};
	struct json *record = NULL;
	struct buf text = {0};
	int fd = openat(ops_fd, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0) {
		err_sys(e, errno == ENOENT ? ERR_NOTFOUND : ERR_IO, errno, "ops/%s", dir);
		return NULL;
	}
	if (fs_read_private_file(fd, name, RECORD_MOST, &text, e) == 0 &&
	    (json_parse(buf_view(&text), &o, &record, NULL, e) != 0 || !is_of(record, id))) {
		json_unref(record);
		record = NULL;
		err_set(e, ERR_NOTFOUND, "ops/%s/%s is not of this process", dir, name);
	}
	fd_close(&fd);
	buf_clear(&text);
	return record;
}

/* ---- exit.json ---- */

static struct json *
base_record(struct proc_id id)
{
	struct json *o = json_set(json_object(), "pid", json_int(id.pid));

	return json_set(o, "start", json_uint(id.start_ticks));
}

static double
seconds(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

int
exit_record_write(int ops_fd, const char *dir, const struct exit_record *r, struct err *e)
{
	struct json *o = base_record(r->id);

	o = json_set(o, r->end.signaled ? "signal" : "code", json_int(r->end.code));
	if (r->end.dumped)
		o = json_set(o, "dumped", json_bool(true));
	o = json_set(o, "user_s", json_real(seconds(&r->end.usage.ru_utime)));
	o = json_set(o, "system_s", json_real(seconds(&r->end.usage.ru_stime)));
	o = json_set(o, "max_rss_kib", json_int(r->end.usage.ru_maxrss));
	o = json_set(o, "time", json_real(r->time));
	o = json_set(o, "by", json_cstr(r->by));
	return write_record(ops_fd, dir, EXIT_RECORD, o, e);
}

static struct timeval
timeval_of(const struct json *v)
{
	struct timeval t = {0};
	double s;

	if (json_double(v, &s) && s >= 0 && s < 1e12) {
		t.tv_sec = (time_t)s;
		t.tv_usec = (suseconds_t)((s - (double)t.tv_sec) * 1e6);
	}
	return t;
}

int
exit_record_read(int ops_fd, const char *dir, struct proc_id id, struct exit_record *out,
    struct err *e)
{
	struct json *o = read_record(ops_fd, dir, EXIT_RECORD, id, e);
	struct exit_record r = {.id = id};
	int64_t value = 0;

	if (o == NULL)
		return -1;
	r.end.signaled = json_int64(json_get(o, "signal"), &value);
	r.end.known = r.end.signaled || json_int64(json_get(o, "code"), &value);
	r.end.code = (int)value;
	r.end.dumped = json_is_true(json_get(o, "dumped"));
	r.end.usage.ru_utime = timeval_of(json_get(o, "user_s"));
	r.end.usage.ru_stime = timeval_of(json_get(o, "system_s"));
	if (json_int64(json_get(o, "max_rss_kib"), &value))
		r.end.usage.ru_maxrss = (long)value;
	if (!json_double(json_get(o, "time"), &r.time))
		r.time = 0;
	snprintf(r.by, sizeof(r.by), "%.15s",
	    json_cstr_of(json_get(o, "by")) != NULL ? json_cstr_of(json_get(o, "by")) : "");
	json_unref(o);
	if (!r.end.known)
		return err_set(e, ERR_NOTFOUND, "ops/%s/" EXIT_RECORD " tells no end", dir);
	*out = r;
	return 0;
}

/* ---- stopped.json ---- */

int
stop_record_write(int ops_fd, const char *dir, struct proc_id id, const char *class, struct err *e)
{
	char before[STOP_CLASS_TEXT];
	struct json *o;

	if (stop_record_read(ops_fd, dir, id, before, NULL, &(struct err){0}) == 0)
		return 0;
	o = json_set(base_record(id), "class", json_cstr(class));
	o = json_set(o, "time", json_real((double)clock_wall_ns() / (double)NS_PER_S));
	return write_record(ops_fd, dir, STOP_RECORD, o, e);
}

int
stop_record_read(int ops_fd, const char *dir, struct proc_id id, char class[STOP_CLASS_TEXT],
    double *time, struct err *e)
{
	struct json *o = read_record(ops_fd, dir, STOP_RECORD, id, e);
	const char *word = json_cstr_of(json_get(o, "class"));

	if (o == NULL)
		return -1;
	if (word != NULL)
		snprintf(class, STOP_CLASS_TEXT, "%.15s", word);
	if (time != NULL && !json_double(json_get(o, "time"), time))
		*time = 0;
	json_unref(o);
	return word != NULL ? 0 : err_set(e, ERR_NOTFOUND, "ops/%s/" STOP_RECORD " has no class", dir);
}
