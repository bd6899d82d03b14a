/* The output of operations, as it is or line by line, with the operation's name before each. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "logs.h"
#include "output.h"
#include "view.h"

enum {
	CHUNK = 65536,
	LINE_MOST = 65536, /* without a newline: given out in pieces of this size */
	PREFIX_SHARE = 3 /* on a terminal, of its columns */
};

static void
put_prefix(struct logs *l, const struct logs_source *s)
{
	struct output *out = l->c->out;
	struct buf name = {0};
	int pad;

	if (!l->prefixes)
		return;
	text_fit_id(&name, slice_of(s->op), l->prefix_width, out->unicode);
	pad = l->prefix_width - text_width(buf_view(&name));
	out_printf(out, "%s%s%*s | %s", out_style(out, OUT_DIM), buf_text(&name), pad > 0 ? pad : 0, "",
	    out_style(out, OUT_PLAIN));
	buf_clear(&name);
}

/* Without colours, and without the CR that ends the lines of what runs below a terminal. */
static void
put_harmless(struct output *out, struct slice piece)
{
	struct buf b = {0};

	if (piece.len > 0 && piece.data[piece.len - 1] == '\r')
		piece.len--;
	text_drop_colours(&b, piece);
	out_text(out, buf_view(&b), true);
	if (b.failed && out->failed.code == ERR_NONE)
		err_nomem(&out->failed);
	buf_clear(&b);
}

/* "newline": false where the output does not end with one, or a very long line goes on. */
static void
put_object(struct logs *l, const struct logs_source *s, struct slice piece, bool newline)
{
	struct json *o = json_set(json_object(), "run", json_cstr(s->run));

	o = json_set(o, "op", json_cstr(s->op));
	o = json_set(o, "attempt", json_int(s->attempt));
	o = json_set(o, "stderr", json_bool(cli_flag(l->c, "stderr")));
	o = json_set(o, "text", json_string_lossy(piece, NULL));
	out_json(l->c->out, json_set(o, "newline", json_bool(newline)));
}

/* What goes to a terminal cannot steer it; what goes to a program is what the operation wrote. */
static void
put_piece(struct logs *l, const struct logs_source *s, struct slice piece, bool newline)
{
	if (l->c->json) {
		put_object(l, s, piece, newline);
		return;
	}
	put_prefix(l, s);
	if (l->c->out->terminal)
		put_harmless(l->c->out, piece);
	else
		out_bytes(l->c->out, piece);
	if (newline)
		out_puts(l->c->out, "\n");
}

/* Where a long line may be cut without cutting a character. */
static size_t
cut_point(struct slice text)
{
	size_t n = text.len, back = 0;

	while (back < 3 && n > 1 && ((unsigned char)text.data[n - 1] & 0xc0) == 0x80) {
		n--;
		back++;
	}
	return n > 1 && ((unsigned char)text.data[n - 1] & 0xc0) == 0xc0 ? n - 1 : text.len;
}

static void
put_lines(struct logs *l, struct logs_source *s)
{
	const char *start = s->line.data, *end = start + s->line.len, *lf;
	size_t cut;

	while ((lf = memchr(start, '\n', (size_t)(end - start))) != NULL) {
		put_piece(l, s, (struct slice){start, (size_t)(lf - start)}, true);
		start = lf + 1;
	}
	if ((size_t)(end - start) > LINE_MOST) {
		cut = cut_point((struct slice){start, (size_t)(end - start)});
		put_piece(l, s, (struct slice){start, cut}, l->prefixes && !l->c->json);
		start += cut;
	}
	memmove(s->line.data, start, (size_t)(end - start));
	s->line.len = (size_t)(end - start);
}

static int
take_bytes(struct logs *l, struct logs_source *s, const char *bytes, size_t len, struct err *e)
{
	if (!l->prefixes && !l->c->out->terminal && !l->c->json) {
		out_bytes(l->c->out, (struct slice){bytes, len});
		return 0;
	}
	buf_add(&s->line, bytes, len);
	if (buf_ok(&s->line, e) != 0)
		return -1;
	put_lines(l, s);
	return 0;
}

void
logs_put_rest(struct logs *l, struct logs_source *s)
{
	if (s->line.len > 0)
		put_piece(l, s, buf_view(&s->line), !l->c->json);
	buf_reset(&s->line);
}

/* An attempt that a resumed run took over has its file there as well, under another link: what was given
 * out of it is not given again. One that the dead worker's run did not end has ended. */
static void
take_place(struct logs *l, struct logs_source *s)
{
	struct stat mine, its;
	struct logs_source *old;

	for (old = l->sources; old < s; old++) {
		if (old->done || old->attempt != s->attempt || strcmp(old->op, s->op) != 0)
			continue;
		old->ended = true;
		if (old->fd < 0 || fstat(old->fd, &its) != 0 || fstat(s->fd, &mine) != 0 ||
		    !fs_same(fs_identity_of(&its), fs_identity_of(&mine)))
			continue;
		s->at = old->at;
		buf_clear(&s->line);
		s->line = old->line;
		old->line = (struct buf){0};
		fd_close(&old->fd);
		old->done = true;
	}
}

/* Of a chunk that ends at `end`, where the last `*lines` lines begin; -1: further up. */
static off_t
find_lines(const char *bytes, ssize_t n, off_t end, int64_t *lines)
{
	for (; n > 0; n--, end--)
		if (bytes[n - 1] == '\n' && --*lines == 0)
			return end;
	return -1;
}

/* Its last l->tail lines are all that is printed of what is there. */
static int
skip_to_tail(const struct logs *l, struct logs_source *s, struct err *e)
{
	int64_t lines = l->tail;
	off_t at, found = -1;
	char bytes[CHUNK];
	struct stat st;
	ssize_t n;

	if (fstat(s->fd, &st) != 0)
		return err_sys(e, ERR_IO, errno, "output of \"%s\"", s->op);
	if (lines == 0) {
		s->at = st.st_size;
		return 0;
	}
	/* The newline at the end begins no line. */
	for (at = st.st_size - 1; at > 0 && found < 0; at -= n) {
		size_t want = at < CHUNK ? (size_t)at : CHUNK;

		do
			n = pread(s->fd, bytes, want, at - (off_t)want);
		while (n < 0 && errno == EINTR);
		if (n != (ssize_t)want)
			return err_sys(e, ERR_IO, n < 0 ? errno : EIO, "output of \"%s\"", s->op);
		found = find_lines(bytes, n, at, &lines);
	}
	s->at = found < 0 ? 0 : found;
	return 0;
}

/* The operations of a run that have one file for both, as far as its document can be read. */
static struct json *
merged_of(const struct logs *l, const char *run)
{
	struct json *merged = json_object();
	struct err ignored = {0};
	struct session s;
	struct run_files f;
	size_t i;

	if (session_read(l->t->store, run, &s, &ignored) != 0)
		return merged;
	if (run_files_open(&l->t->home, &s, true, &f, &ignored) == 0) {
		for (i = 0; f.flow != NULL && i < f.flow->nops; i++)
			if (f.flow->ops[i].how->output_merged)
				merged = json_set(merged, f.flow->ops[i].id, json_bool(true));
		run_files_close(&f);
	}
	session_clear(&s);
	return merged;
}

static bool
is_merged(struct logs *l, const struct logs_source *s)
{
	if (strcmp(l->merged_run, s->run) != 0) {
		json_unref(l->merged);
		l->merged = merged_of(l, s->run);
		strlcpy(l->merged_run, s->run, sizeof(l->merged_run));
	}
	return json_get(l->merged, s->op) != NULL;
}

/* Every file that it has is there before the line of its start. */
static bool
has_file(struct logs *l, const struct logs_source *s)
{
	return !cli_flag(l->c, "stderr") || !is_merged(l, s);
}

/* -1 with errno. */
static int
open_below(const struct logs *l, const char *run, const char *name)
{
	struct err ignored = {0};
	int run_fd = rundir_open(&l->t->home, run, &ignored), fd, error;

	if (run_fd < 0) {
		errno = ENOENT;
		return -1;
	}
	fd = openat(run_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	error = errno;
	fd_close(&run_fd);
	errno = error;
	return fd;
}

static int
open_source(struct logs *l, struct logs_source *s, struct err *e)
{
	struct buf name = {0};
	struct stat st;
	int run_fd = rundir_open(&l->t->home, s->run, e), error;

	if (run_fd < 0)
		return -1;
	fd_close(&run_fd);
	buf_printf(&name, RUN_OPS "/%s.%lld.%s", s->op, (long long)s->attempt,
	    cli_flag(l->c, "stderr") ? "err" : "out");
	s->fd = open_below(l, s->run, buf_text(&name));
	/* The worker that takes it over links it. */
	if (s->fd < 0 && errno == ENOENT && s->origin != NULL)
		s->fd = open_below(l, s->origin, buf_text(&name));
	error = errno;
	if (s->fd < 0 && (error != ENOENT || has_file(l, s)))
		err_sys(e, ERR_IO, error, "'%s'", buf_text(&name));
	else if (s->fd >= 0 && (fstat(s->fd, &st) != 0 || !S_ISREG(st.st_mode)))
		err_set(e, ERR_IO, "'%s' is not a regular file", buf_text(&name));
	buf_clear(&name);
	if (s->fd < 0 || e->code != ERR_NONE)
		return e->code == ERR_NONE ? 0 : -1;
	take_place(l, s);
	return l->tail != LOGS_ALL ? skip_to_tail(l, s, e) : 0;
}

static int
pump(struct logs *l, struct logs_source *s, struct err *e)
{
	char bytes[CHUNK];
	ssize_t n;

	if (s->fd < 0 && open_source(l, s, e) != 0)
		return -1;
	while (s->fd >= 0 && out_open(l->c->out)) {
		n = pread(s->fd, bytes, sizeof(bytes), s->at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, ERR_IO, errno, "output of \"%s\"", s->op);
		if (n == 0)
			return 0;
		s->at += n;
		if (take_bytes(l, s, bytes, (size_t)n, e) != 0)
			return -1;
	}
	return 0;
}

/* What cannot be read of one is said, and the others are printed all the same. */
static int
pass_over(struct logs *l, struct logs_source *s, struct err *e)
{
	if (e->code == ERR_NOMEM)
		return -1;
	cli_note("%s attempt %lld: %s", s->op, (long long)s->attempt, e->msg);
	err_clear(e);
	fd_close(&s->fd);
	s->done = true;
	l->unread++;
	return 0;
}

int
logs_unread(const struct logs *l, struct err *e)
{
	if (l->unread == 0)
		return 0;
	return err_set(e, ERR_IO, "the output of %zu operation%s could not be read", l->unread,
	    l->unread == 1 ? "" : "s");
}

int
logs_pump(struct logs *l, struct logs_source *s, struct err *e)
{
	return pump(l, s, e) == 0 ? 0 : pass_over(l, s, e);
}

void
logs_measure_prefixes(struct logs *l)
{
	const int most = l->c->out->width > 0 ? l->c->out->width / PREFIX_SHARE : INT_MAX;
	size_t i;
	int w;

	for (i = 0; i < l->n; i++) {
		w = text_width(slice_of(l->sources[i].op));
		if (w > l->prefix_width)
			l->prefix_width = w > most ? most : w;
	}
}
