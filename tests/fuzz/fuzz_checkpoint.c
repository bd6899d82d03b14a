/*
 * Base and journal. The input's first line is the base, the rest the journal. Whatever they hold,
 * the loader ends with a state or a refusal; the report fits the result; what was accepted stays
 * the same when it is loaded again, and a journal cut anywhere still gives a prefix.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flowsup/checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A table of calls that serves two files from memory. */
struct memory {
	struct fs_ops ops;
	struct slice base, journal;
	int base_fd, journal_fd;
};

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static struct memory *
memory_of(const struct fs_ops *fs)
{
	return (struct memory *)(uintptr_t)fs;
}

static int
m_openat(const struct fs_ops *fs, const char *what, int dirfd, const char *path, int flags,
    mode_t mode)
{
	struct memory *m = memory_of(fs);
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)what;
	(void)dirfd;
	(void)flags;
	(void)mode;
	must(fd >= 0);
	*(strcmp(path, CKPT_BASE) == 0 ? &m->base_fd : &m->journal_fd) = fd;
	return fd;
}

static ssize_t
m_pread(const struct fs_ops *fs, const char *what, int fd, void *to, size_t len, off_t at)
{
	const struct memory *m = memory_of(fs);
	const struct slice s = fd == m->journal_fd ? m->journal : m->base;

	(void)what;
	if ((size_t)at >= s.len)
		return 0;
	if (len > s.len - (size_t)at)
		len = s.len - (size_t)at;
	memcpy(to, s.data + at, len);
	return (ssize_t)len;
}

static int
m_fstat(const struct fs_ops *fs, const char *what, int fd, struct stat *st)
{
	const struct memory *m = memory_of(fs);

	(void)what;
	*st = (struct stat){.st_mode = S_IFREG | 0600, .st_nlink = 1, .st_uid = geteuid(),
	    .st_ino = fd == m->journal_fd ? 2 : 1};
	return 0;
}

static int
load(struct memory *m, struct json **state, struct ckpt_report *report)
{
	const struct ckpt_load_options o = {.fs = &m->ops};
	struct err e = {0};
	int result;

	m->journal_fd = -1;
	result = ckpt_load(-1, &o, state, report, &e);
	must(result == 0 || e.code == ERR_CHECKPOINT);
	must((result == 0) == (report->status != CKPT_REFUSED));
	must(result != 0 || *state != NULL);
	must(result == 0 || report->reason[0] != '\0');
	json_unref(ckpt_report_json(report));
	return result;
}

static void
check_prefix(struct memory *m, size_t cut, int64_t most)
{
	struct ckpt_report report;
	struct json *state = NULL;

	m->journal.len = cut;
	must(load(m, &state, &report) == 0);
	must(report.records_applied <= most);
	json_unref(state);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	const char *lf = size > 0 ? memchr(text, '\n', size) : NULL;
	const size_t split = lf != NULL ? (size_t)(lf - text) + 1 : size;
	struct memory m = {.ops = fs_real, .base = {text, split}, .journal = {text + split, size - split}};
	struct ckpt_report report, second;
	struct json *state = NULL, *again = NULL;
	struct err e = {0};

	m.ops.openat = m_openat;
	m.ops.pread = m_pread;
	m.ops.fstat = m_fstat;
	if (load(&m, &state, &report) == 0) {
		must(load(&m, &again, &second) == 0);
		must(json_equal(state, again));
		again = ckpt_migrate(again, report.format, &e);
		must(again != NULL || e.code == ERR_REFUSED);
		if (report.format == 3 && size > split)
			check_prefix(&m, (size - split) / 2, report.records_applied);
	}
	json_unref(state);
	json_unref(again);
	return 0;
}
