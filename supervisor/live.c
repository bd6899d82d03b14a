#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/provider.h"
#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/home.h"
#include "flowsup/log.h"
#include "live.h"
#include "paste.h"
#include "render.h"

/* ROWS_KEPT: lines of the terminal that are left alone. */
enum { TAIL_BYTES = 4096, BAR_LEAST = 6, BAR_MOST = 40, ROWS_KEPT = 2, LEAST_DONE_FOR_ESTIMATE = 2,
	INDENT = 4, ROWS_LEAST = 2, ROWS_FOR_NAME = 4 };
#define FIRST_AFTER_NS (300 * NS_PER_MS)

static double
now_seconds(void)
{
	return (double)clock_wall_ns() / (double)NS_PER_S;
}

/* ---- The last line of a file ---- */

/* The last line that is not blank; a carriage return begins a line anew, as progress bars do. */
static struct slice
last_line(struct slice text, bool of_cause)
{
	size_t end = text.len, start;
	struct slice line;

	do {
		while (end > 0 && strchr("\r\n \t", text.data[end - 1]) != NULL)
			end--;
		start = end;
		while (start > 0 && text.data[start - 1] != '\n' && text.data[start - 1] != '\r')
			start--;
		line = (struct slice){text.data + start, end - start};
		end = start;
	} while (of_cause && provider_is_chatter(line));
	return line;
}

static void
blank_tabs(struct buf *b)
{
	size_t i;

	for (i = 0; i < b->len; i++)
		if (b->data[i] == '\t')
			b->data[i] = ' ';
}

void
live_last_line(int run_fd, const char *op, int64_t attempt, const char *ending, struct buf *to)
{
	char text[TAIL_BYTES];
	struct buf name = {0}, plain = {0};
	struct stat st;
	ssize_t n = 0;
	off_t at;
	int fd;

	buf_printf(&name, RUN_OPS "/%s.%lld.%s", op, (long long)attempt, ending);
	fd = openat(run_fd, buf_text(&name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	buf_clear(&name);
	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		at = st.st_size > TAIL_BYTES ? st.st_size - TAIL_BYTES : 0;
		n = pread(fd, text, sizeof(text), at);
	}
	if (n > 0)
		text_drop_colours(&plain, (struct slice){text, (size_t)n});
	blank_tabs(&plain);
	text_neutralise(to, last_line(buf_view(&plain), strcmp(ending, "err") == 0), false);
	buf_clear(&plain);
	fd_close(&fd);
}

/* ---- Lines ---- */

static size_t
most_rows(const struct live *l)
{
	int rows = l->out->height - ROWS_KEPT;

	return rows < 1 ? 1 : rows > LIVE_ROWS_MOST ? LIVE_ROWS_MOST : (size_t)rows;
}

static size_t
rows_left(const struct live *l)
{
	return most_rows(l) - (size_t)l->drawn;
}

/* One line of ours, cut to the width so that it never wraps. */
static void
put_line(struct live *l, struct slice text, enum out_style style)
{
	struct buf b = {0};

	if (rows_left(l) == 0)
		return;
	text_fit(&b, text, l->out->width - 1, l->out->unicode);
	out_printf(l->out, "%s%s%s\033[K\n", out_style(l->out, style), buf_text(&b),
	    out_style(l->out, OUT_PLAIN));
	l->drawn++;
	buf_clear(&b);
}

/* A line made of pieces: one for which there is no room begins the next line. */
struct pieces {
	struct live *live;
	struct buf line;
	enum out_style style;
};

static void
pieces_end(struct pieces *p)
{
	if (p->line.len > 0)
		put_line(p->live, buf_view(&p->line), p->style);
	buf_clear(&p->line);
}

static void
pieces_add(struct pieces *p, const struct buf *piece)
{
	int used = text_width(buf_view(&p->line));

	if (used > 0 && used + 2 + text_width(buf_view(piece)) > p->live->out->width - 1)
		pieces_end(p);
	buf_printf(&p->line, "%s%s", p->line.len > 0 || p->live->drawn > 0 ? "  " : "", buf_text(piece));
}

__attribute__((format(printf, 2, 3))) static void
pieces_printf(struct pieces *p, const char *fmt, ...)
{
	struct buf b = {0};
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&b, fmt, ap);
	va_end(ap);
	pieces_add(p, &b);
	buf_clear(&b);
}

/* ---- The run ---- */

/* Not in a terminal of so few lines that nothing else would stand below it. */
static void
draw_name(struct live *l, const struct session *s)
{
	struct buf b = {0};

	if (most_rows(l) < ROWS_FOR_NAME)
		return;
	buf_printf(&b, "run %s", s->run_id);
	if (s->name != NULL && s->name[0] != '\0') {
		buf_puts(&b, "  ");
		text_neutralise(&b, slice_of(s->name), false);
	}
	put_line(l, buf_view(&b), OUT_PLAIN);
	buf_clear(&b);
}

static void
draw_bar(struct pieces *p, const struct session *s)
{
	const struct output *out = p->live->out;
	int64_t width = out->width / 4, i, filled;
	struct buf b = {0};

	width = width < BAR_LEAST ? BAR_LEAST : width > BAR_MOST ? BAR_MOST : width;
	filled = s->total > 0 ? s->done * width / s->total : 0;
	buf_putc(&b, '[');
	for (i = 0; i < width; i++)
		buf_puts(&b, i < filled ? (out->unicode ? "█" : "#") : (out->unicode ? "░" : "."));
	buf_putc(&b, ']');
	if (s->total > 0)
		buf_printf(&b, " %lld/%lld", (long long)s->done, (long long)s->total);
	pieces_add(p, &b);
	buf_clear(&b);
}

/*
 * From the pace of what this run has done itself: what a resume took over took no time. None while
 * something waits for a person, whose pace nobody knows, nor where not all will be done.
 */
static void
draw_estimate(struct pieces *p, const struct session *s, bool stopping, const struct tally *t)
{
	double took = now_seconds() - s->started_at;
	char text[DURATION_TEXT];

	if (s->started_at <= 0 || took < 0)
		return;
	pieces_printf(p, "%s", render_seconds(took, text));
	if (t->executed >= LEAST_DONE_FOR_ESTIMATE && s->done < s->total && s->status == STATUS_RUNNING && !stopping &&
	    json_length(json_get(s->metadata, "waiting")) == 0)
		pieces_printf(p, "about %s left",
		    render_seconds(took / (double)t->executed * (double)(s->total - s->done), text));
}

static size_t
count_running(const struct tally *t)
{
	size_t i, n = 0;

	for (i = 0; i < t->nrunning; i++)
		n += t->running[i].ended <= 0;
	return n;
}

static void
draw_head(struct live *l, const struct session *s, bool stopping, const struct tally *t)
{
	struct pieces p = {.live = l, .style = t->failed > 0 ? OUT_BAD : OUT_BOLD};
	size_t waiting = json_length(json_get(s->metadata, "waiting")), running = count_running(t);

	draw_bar(&p, s);
	pieces_printf(&p, "%s", status_word(s->status));
	draw_estimate(&p, s, stopping, t);
	if (running > 0)
		pieces_printf(&p, "%zu running", running);
	if (t->nrunning > running)
		pieces_printf(&p, "%zu being read", t->nrunning - running);
	if (t->executed > t->saved)
		pieces_printf(&p, "%zu not yet saved", t->executed - t->saved);
	if (t->failed > 0)
		pieces_printf(&p, "%zu failed", t->failed);
	if (waiting > 0)
		pieces_printf(&p, "%zu waiting for you", waiting);
	pieces_end(&p);
}

/* ---- What waits for a person ---- */

static void
put_lines(struct live *l, struct slice text, enum out_style style)
{
	const char *lf;

	while ((lf = memchr(text.data, '\n', text.len)) != NULL) {
		put_line(l, (struct slice){text.data, (size_t)(lf - text.data)}, style);
		text.len -= (size_t)(lf + 1 - text.data);
		text.data = lf + 1;
	}
	put_line(l, text, style);
}

static void
draw_command(struct live *l, const struct session *s, const char *verb, const char *op)
{
	struct buf b = {0}, command = {0};

	paste_command(&command, verb, l->home_option, s->run_id, op);
	buf_printf(&b, "%*s", INDENT, "");
	paste_wrap(&b, buf_view(&command), INDENT, INDENT, l->out->width - 1);
	put_lines(l, buf_view(&b), OUT_PLAIN);
	buf_clear(&command);
	buf_clear(&b);
}

/* A sentence of ours below the head, broken at its words. */
static void
draw_prose(struct live *l, struct slice text)
{
	struct output wrapped = {.fd = -1, .width = l->out->width - 1};

	buf_printf(&wrapped.pending, "%*s", INDENT, "");
	text_neutralise(&wrapped.pending, text, false);
	out_wrap_prose(&wrapped, 0, INDENT);
	put_lines(l, buf_view(&wrapped.pending), OUT_WARN);
	buf_clear(&wrapped.pending);
}

/* Why nothing goes on, where that is known. */
static void
draw_reason(struct live *l, const struct session *s, const char *waits)
{
	bool held = s->status == STATUS_QUEUED || s->status == STATUS_PAUSED ||
	    (s->reason_code != NULL && strcmp(s->reason_code, "run.running.storage") == 0);
	const char *why = waits[0] != '\0' || s->reason == NULL ? waits : s->reason;

	if (!held || why[0] == '\0')
		return;
	draw_prose(l, slice_of(why));
	if (s->status == STATUS_PAUSED)
		draw_command(l, s, "ctl resume", NULL);
}

/* What runs may end; the command does not wait for that. */
static void
draw_ending(struct live *l, const struct session *s, const struct json *ending, struct slice why)
{
	draw_prose(l, why);
	if (strcmp(render_member(json_get(ending, "stopping"), "mode"), "now") != 0)
		draw_command(l, s, "stop --now", NULL);
}

static void
draw_gate(struct live *l, const struct session *s, const struct json *gate)
{
	const char *op = render_member(gate, "op");
	struct buf b = {0};
	char text[DURATION_TEXT];

	buf_puts(&b, "  ");
	text_neutralise(&b, slice_of(op), false);
	buf_printf(&b, " waits for approval  %s", render_seconds(render_age(gate, "since"), text));
	put_line(l, buf_view(&b), OUT_WARN);
	draw_command(l, s, "approve", op);
	buf_clear(&b);
}

static void
put_more(struct live *l, size_t n, const char *what)
{
	struct buf b = {0};

	buf_printf(&b, "  and %zu more %s", n, what);
	put_line(l, buf_view(&b), OUT_DIM);
	buf_clear(&b);
}

/* At most half of the screen: the list of all is `flowsup waiting`. */
static void
draw_gates(struct live *l, const struct session *s)
{
	const struct json *all = json_get(s->metadata, "waiting");
	size_t n = json_length(all), most = most_rows(l) / 2, i;

	if (s->status != STATUS_RUNNING && s->status != STATUS_PAUSED)
		return;
	for (i = 0; i < n && (size_t)l->drawn < most; i++)
		draw_gate(l, s, json_at(all, i));
	if (i < n)
		put_more(l, n - i, "waiting: flowsup waiting");
}

/* ---- What runs ---- */

static void
draw_operation(struct live *l, const struct running *r, int name_width)
{
	char text[DURATION_TEXT];
	struct buf b = {0}, name = {0}, clean = {0}, progress = {0};
	int pad;

	text_neutralise(&clean, slice_of(r->op), false);
	text_fit_id(&name, buf_view(&clean), name_width, l->out->unicode);
	pad = name_width - text_width(buf_view(&name));
	buf_printf(&b, "  %s%*s %8s  ", buf_text(&name), pad > 0 ? pad : 0, "",
	    render_seconds((r->ended > 0 ? r->ended : now_seconds()) - r->since, text));
	if (r->ended > 0)
		buf_puts(&b, "has ended; what it left is read  ");
	else if (r->progress >= 0) {
		render_percent(r->progress, r->text, &progress);
		text_neutralise(&b, buf_view(&progress), false);
		buf_puts(&b, "  ");
	}
	live_last_line(l->run_fd, r->op, r->attempt, "out", &b);
	put_line(l, buf_view(&b), OUT_PLAIN);
	buf_clear(&b);
	buf_clear(&name);
	buf_clear(&clean);
	buf_clear(&progress);
}

static int
name_width(const struct live *l, const struct tally *t, size_t shown)
{
	int w = 4, most = l->out->width / 3, own;
	size_t i;

	for (i = 0; i < shown; i++) {
		own = text_width(slice_of(t->running[i].op));
		w = own > w ? own : w;
	}
	return w > most ? most : w;
}

static void
draw_running(struct live *l, const struct tally *t)
{
	size_t room = rows_left(l), i;
	size_t shown = t->nrunning <= room ? t->nrunning : room > 0 ? room - 1 : 0;
	int width = name_width(l, t, shown);

	for (i = 0; i < shown; i++)
		draw_operation(l, &t->running[i], width);
	if (t->nrunning > shown)
		put_more(l, t->nrunning - shown, "running");
}

/* ---- The screen ---- */

/*
 * The display has the terminal's second screen to itself and is drawn from its top. On the first one a
 * terminal that has become narrower breaks every line anew and pushes what then finds no room above the
 * screen, where nothing can take it back. Terminals without a second screen cut lines that have become
 * too wide: there the display is drawn below what stands there, and the way back up counts lines.
 */
static bool
has_second_screen(void)
{
	const char *term = getenv("TERM");

	if (getenv("TMUX") != NULL)
		return true;
	return getenv("STY") == NULL && (term == NULL || strncmp(term, "linux", strlen("linux")) != 0);
}

/* To where the display begins. Lines that are too wide for a size that is not yet told are cut. */
static void
go_to_top(struct live *l)
{
	if (!l->shown && has_second_screen()) {
		out_puts(l->out, "\033[?1049h");
		l->second_screen = true;
	}
	out_puts(l->out, "\033[?7l");
	if (l->second_screen)
		out_puts(l->out, "\033[H");
	else if (l->drawn > 0)
		out_printf(l->out, "\033[%dA\r", l->drawn);
	l->drawn = 0;
	l->shown = true;
}

static void
clear_below(struct live *l)
{
	out_puts(l->out, "\033[J\033[?7h");
}

/* Whoever is stopped or in the background must not draw over what the shell shows. */
static bool
has_terminal(const struct live *l)
{
	pid_t group = tcgetpgrp(l->out->fd);

	return group < 0 || group == getpgrp();
}

/* What is typed would move the cursor, from which the way back up is counted. */
static void
silence(struct live *l)
{
	struct termios quiet;

	if (l->silent || tcgetattr(l->out->fd, &l->echoing) != 0)
		return;
	quiet = l->echoing;
	quiet.c_lflag &= ~(tcflag_t)(ECHO | ECHONL);
	l->silent = tcsetattr(l->out->fd, TCSANOW, &quiet) == 0;
}

static void
unsilence(struct live *l)
{
	if (l->silent && has_terminal(l))
		(void)tcsetattr(l->out->fd, TCSANOW, &l->echoing);
	l->silent = false;
}

/* What is drawn in the only line scrolls away, where nothing takes it back. */
static bool
has_room(const struct live *l)
{
	return l->out->height == 0 || l->out->height >= ROWS_LEAST;
}

/* What is over at once needs no display. */
static bool
is_time(struct live *l)
{
	int64_t now = clock_monotonic_ns();

	if (l->first_ns == 0)
		l->first_ns = now + FIRST_AFTER_NS;
	return l->shown || now >= l->first_ns;
}

void
live_draw(struct live *l, const struct session *s, const char *waits, const struct json *ending,
    const struct tally *t)
{
	struct buf stopping = {0};

	if (!is_time(l) || !has_terminal(l))
		return;
	out_resize(l->out);
	silence(l);
	go_to_top(l);
	render_stopping(ending, &stopping);
	if (has_room(l)) {
		draw_name(l, s);
		draw_head(l, s, stopping.len > 0, t);
		if (stopping.len > 0)
			draw_ending(l, s, ending, buf_view(&stopping));
		else
			draw_reason(l, s, waits);
		draw_gates(l, s);
		draw_running(l, t);
	}
	clear_below(l);
	out_flush(l->out);
	buf_clear(&stopping);
}

void
live_erase(struct live *l)
{
	unsilence(l);
	if (!l->shown || !has_terminal(l))
		return;
	go_to_top(l);
	clear_below(l);
	if (l->second_screen)
		out_puts(l->out, "\033[?1049l");
	out_flush(l->out);
	l->second_screen = l->shown = false;
}

void
live_forget(struct live *l)
{
	l->drawn = 0;
	l->second_screen = l->shown = false;
}
