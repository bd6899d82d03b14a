#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "in_flight.h"
#include "output.h"
#include "paste.h"
#include "policy.h"
#include "view.h"

enum { HINT_INDENT = 6, NOTE_COLUMNS = 5 };

void
paste_command(struct buf *to, const char *verb, const char *home_option, const char *run_id,
    const char *op)
{
	buf_printf(to, "flowsup %s ", verb);
	if (home_option != NULL) {
		buf_puts(to, "--home ");
		text_shell_word(to, home_option);
		buf_putc(to, ' ');
	}
	buf_puts(to, run_id);
	if (op == NULL)
		return;
	buf_putc(to, ' ');
	text_shell_word(to, op);
}

static bool
has_failures(const struct session *s)
{
	return (s->status == STATUS_FAILED && s->reason_code != NULL &&
		   strcmp(s->reason_code, "run.failed.operation") == 0) ||
	    json_is_true(json_get(s->metadata, META_FAILURES));
}

static void
add_retry(struct buf *to, const struct session *s)
{
	if (has_failures(s) && !json_is_true(json_get(s->policy, POLICY_RETRIES_FAILED)))
		buf_puts(to, " --retry-failed");
}

bool
paste_is_elsewhere(const struct session *s)
{
	struct proc_place there, here;
	bool other_boot;

	return s->status == STATUS_CRASHED && s->place != NULL && proc_place_parse(s->place, &there) &&
	    proc_place_here(&here, NULL) == 0 && !proc_place_is(&there, &here, &other_boot);
}

/* Nothing that ran elsewhere can be taken over. Who reads no files does not know whether it was in flight; where it
 * was not, the leave changes nothing. */
static bool
asks_by_row(const struct session *s)
{
	return paste_is_elsewhere(s) && json_is_true(json_get(s->policy, POLICY_UNREPEATABLE));
}

/* What would have it refused otherwise. from: of a fork, where it begins; else NULL. */
static void
add_lifts(struct buf *to, const struct home *h, const struct session *s, const struct json *from)
{
	struct in_flight of;

	in_flight_look(h, s, has_failures(s), from, &of);
	add_retry(to, s);
	if (of.asks || (h == NULL && asks_by_row(s)))
		buf_puts(to, " --rerun-in-flight");
	if (of.drops)
		buf_puts(to, " --drop-respawned");
	if (has_failures(s) && json_is_true(json_get(s->metadata, META_LOST_CONTEXT)))
		buf_puts(to, " --allow-degraded-context");
}

static bool
paste_fork(struct buf *to, const struct home *h, const char *home_option, const struct session *s)
{
	const struct json *from = json_get(s->metadata, META_FORK_FROM), *op;
	struct json_iter it = json_iterate(from);
	size_t n = 0;

	while (json_next(&it, NULL, &op)) {
		if (json_cstr_of(op) == NULL)
			continue;
		if (n++ == 0)
			paste_command(to, "fork", home_option, s->run_id, NULL);
		buf_puts(to, " --from ");
		text_shell_word(to, json_cstr_of(op));
	}
	if (n > 0)
		add_lifts(to, h, s, from);
	return n > 0;
}

bool
paste_with_room(struct buf *to, const struct home *h, const char *home_option, const struct session *s)
{
	uint64_t wanted;

	if (!status_is_terminal(s->status) || !has_failures(s))
		return false;
	if (!json_uint64(json_get(s->metadata, META_MAX_OPS), &wanted))
		return paste_fork(to, h, home_option, s);
	paste_command(to, "rerun", home_option, s->run_id, NULL);
	buf_printf(to, " --max-ops %llu", (unsigned long long)wanted);
	return true;
}

void
paste_resume(struct buf *to, const struct home *h, const char *home_option, const struct session *s)
{
	if (paste_with_room(to, h, home_option, s))
		return;
	paste_command(to, "resume", home_option, s->run_id, NULL);
	add_lifts(to, h, s, NULL);
	if (paste_is_elsewhere(s))
		buf_puts(to, " --take-over");
}

bool
paste_keep(struct buf *to, const struct home *h, const char *home_option, const struct session *s)
{
	struct in_flight of;

	if (!status_is_terminal(s->status) || !has_failures(s) || s->done >= s->total)
		return false;
	in_flight_look(h, s, false, NULL, &of);
	paste_command(to, "resume", home_option, s->run_id, NULL);
	buf_puts(to, " --keep-failed");
	if (of.asks)
		buf_puts(to, " --rerun-in-flight");
	return true;
}

/* Length of the first word; blanks between quotes are part of one. */
static size_t
word_length(struct slice text)
{
	bool quoted = false;
	size_t i;

	for (i = 0; i < text.len && (quoted || text.data[i] != ' '); i++)
		if (text.data[i] == '\'')
			quoted = !quoted;
	return i;
}

/* A line that goes on ends in `end`, and the next one begins with `start`. */
static void
wrap(struct buf *to, struct slice text, int used, int indent, int width, const char *end,
    const char *start)
{
	const int room = width - text_width(slice_of(end));
	struct slice word;
	bool first = true;
	int columns;

	while (text.len > 0) {
		word = (struct slice){text.data, word_length(text)};
		columns = text_width(word);
		if (!first && width > 0 && used + 1 + columns > room) {
			buf_printf(to, "%s\n%*s%s", end, indent, "", start);
			used = indent + text_width(slice_of(start));
		} else if (!first) {
			buf_putc(to, ' ');
			used++;
		}
		buf_slice(to, word);
		used += columns;
		first = false;
		text.data += word.len;
		text.len -= word.len;
		for (; text.len > 0 && text.data[0] == ' '; text.len--)
			text.data++;
	}
}

void
paste_wrap(struct buf *to, struct slice command, int used, int indent, int width)
{
	wrap(to, command, used, indent, width, " \\", "");
}

void
paste_comment(struct buf *to, struct slice text, int indent, int width)
{
	static const char start[] = "# ";

	buf_printf(to, "\n%*s%s", indent, "", start);
	wrap(to, text, indent + (int)strlen(start), indent, width, "", start);
}

void
paste_hint(const char *what, struct slice command)
{
	struct buf b = {0}, clean = {0};
	struct output err;

	out_init(&err, STDERR_FILENO);
	text_neutralise(&clean, command, false);
	buf_puts(&b, "hint: ");
	paste_wrap(&b, buf_view(&clean), HINT_INDENT, HINT_INDENT, err.width);
	if (what[0] != '\0' && err.width > 0 &&
	    HINT_INDENT + text_width(buf_view(&clean)) + text_width(slice_of(what)) + NOTE_COLUMNS > err.width)
		buf_printf(&b, "\n%*s# %s", HINT_INDENT, "", what);
	else if (what[0] != '\0')
		buf_printf(&b, "   # %s", what);
	buf_putc(&b, '\n');
	(void)fs_write_all(&fs_real, "stderr", STDERR_FILENO, buf_view(&b), NULL);
	buf_clear(&clean);
	buf_clear(&b);
}

void
paste_end_hint(const struct home *h, const char *home_option, const struct session *s)
{
	bool failed = s->status == STATUS_FAILED;
	struct buf b = {0};

	if (failed) {
		paste_command(&b, "show", home_option, s->run_id, NULL);
		paste_hint("to see why", buf_view(&b));
		buf_reset(&b);
	}
	if (s->reason_code != NULL && reason_is_resumable(s->reason_code) && s->resumed_as_run[0] == '\0') {
		if (paste_with_room(&b, h, home_option, s))
			paste_hint(json_get(s->metadata, META_MAX_OPS) != NULL ? "anew, with room for all"
				: "with a new answer of what the list comes from", buf_view(&b));
		else {
			paste_resume(&b, h, home_option, s);
			paste_hint(failed ? "to go on" : "", buf_view(&b));
		}
		buf_reset(&b);
		if (paste_keep(&b, h, home_option, s))
			paste_hint("to leave what failed", buf_view(&b));
	}
	buf_clear(&b);
}
