/* From records, exit status and errors to what came of it. */
#include <stdarg.h>
#include <stdlib.h>

#include "flowsup/proc.h"
#include "provider_private.h"

enum { MESSAGE_MOST = 400 };

/* Why it is no success, in the order of what tells most. */
enum verdict { GOOD, ERROR_RECORD, BAD_EXIT, NO_TERMINAL, NO_ANSWER };

static bool
rule_fits(const struct provider_reading *r, size_t i, const struct provider_end *end,
    const char *error, const char *errors)
{
	const struct failure_rule *rule = &r->p->rules->failures[i];
	struct json_iter it = json_iterate(rule->exit);
	const struct json *item;
	int64_t code;
	bool fits = rule->exit == NULL;

	while (json_next(&it, NULL, &item))
		if (!end->signaled && json_int64(item, &code) && code == end->code)
			fits = true;
	if (!fits || (condition_given(&rule->where) && !r->rule_held[i]))
		return false;
	if (rule->error != NULL && !text_fits(rule->error, slice_of(error)))
		return false;
	return rule->errors == NULL || text_fits(rule->errors, slice_of(errors));
}

static const char *
class_of(const struct provider_reading *r, const struct provider_end *end, enum verdict verdict,
    const char *error, const char *errors)
{
	size_t i;

	for (i = 0; i < r->p->rules->nfailures; i++)
		if (rule_fits(r, i, end, error, errors))
			return r->p->rules->failures[i].class;
	return verdict == BAD_EXIT ? "" : "agent_error";
}

static enum verdict
judge(const struct provider_reading *r, const struct provider_end *end, bool any_answer)
{
	bool left_well = end->hung || (end->known && !end->signaled && end->code == 0);

	if (r->failed)
		return ERROR_RECORD;
	if (!left_well)
		return BAD_EXIT;
	if (r->p->exit_0_reliable)
		return GOOD;
	if (r->p->has_terminal && !r->p->terminal_optional && !r->ended)
		return NO_TERMINAL;
	return any_answer ? GOOD : NO_ANSWER;
}

/* ---- Texts ---- */

bool
provider_is_chatter(struct slice line)
{
	static const char *const starts[] = {"hint: ", "flowsup: spawn accepted: ", "flowsup: escalate accepted: "};
	size_t i;

	for (i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		if (line.len >= strlen(starts[i]) && memcmp(line.data, starts[i], strlen(starts[i])) == 0)
			return true;
	return false;
}

/* The last line that says something, for a message. */
static struct slice
last_line(const char *text)
{
	size_t end = strlen(text), from;
	struct slice line;

	do {
		while (end > 0 && strchr(" \t\r\n", text[end - 1]) != NULL)
			end--;
		for (from = end; from > 0 && text[from - 1] != '\n'; from--)
			;
		line = (struct slice){text + from, end - from};
		end = from;
	} while (provider_is_chatter(line));
	return line;
}

static struct slice
first_line(const char *text)
{
	return (struct slice){text, strcspn(text, "\r\n")};
}

/* A message is for a line of a terminal; the whole stands in the output. */
static struct slice
cut(struct slice s)
{
	if (s.len <= MESSAGE_MOST)
		return s;
	for (s.len = MESSAGE_MOST; s.len > 0 && ((unsigned char)s.data[s.len] & 0xc0) == 0x80; s.len--)
		;
	return s;
}

static void
describe(const struct provider_reading *r, enum verdict verdict, const char *class,
    const struct provider_end *end, const char *error, const char *errors, struct buf *to)
{
	struct slice last = cut(last_line(errors)), first = cut(first_line(error));

	if (verdict == BAD_EXIT && end->signaled)
		buf_printf(to, "ended by %s%s", proc_signal_name(end->code), end->dumped ? " (core dumped)" : "");
	else if (verdict == BAD_EXIT)
		buf_printf(to, "exit status %d", end->code);
	else if (r->whole.cut)
		buf_puts(to, "its JSON is cut off");
	else if (verdict == NO_TERMINAL)
		buf_puts(to, "it ended without its final record");
	else if (verdict == NO_ANSWER)
		buf_puts(to, "it gave no answer");
	if (r->too_large)
		buf_printf(to, "%sits output has more than %zu MiB", to->len > 0 ? "; " : "",
		    PROVIDER_MAX_DOCUMENT >> 20);
	if (r->long_lines > 0)
		buf_printf(to, "%s%llu line%s of more than %zu MiB %s passed over",
		    to->len > 0 ? "; " : "", (unsigned long long)r->long_lines,
		    r->long_lines == 1 ? "" : "s", PROVIDER_MAX_LINE >> 20,
		    r->long_lines == 1 ? "was" : "were");
	if (first.len > 0)
		buf_printf(to, "%s%.*s", to->len > 0 ? ": " : "", (int)first.len, first.data);
	else if (last.len > 0)
		buf_printf(to, "%s%.*s", to->len > 0 ? ": " : "", (int)last.len, last.data);
	if (to->len == 0)
		buf_puts(to, strcmp(class, "denied") == 0 ? "it was refused a permission" : "it says that it failed");
}

/* At most PROVIDER_MAX_ERROR bytes of text, without what would end it early for a pattern. */
static int
bounded(struct slice text, bool last, struct buf *to, struct err *e)
{
	struct ansi_filter f = {0};
	size_t skip = text.len > PROVIDER_MAX_ERROR ? text.len - PROVIDER_MAX_ERROR : 0, i;
	size_t from = to->len;

	if (last)
		text.data += skip;
	text.len -= skip;
	ansi_strip(&f, text, to);
	for (i = from; !to->failed && i < to->len; i++)
		if (to->data[i] == '\0')
			to->data[i] = ' ';
	return buf_ok(to, e);
}

static int
error_text(const struct provider_reading *r, struct buf *to, struct err *e)
{
	struct buf whole = {0};
	bool any;
	int rc = selectors_text(&r->p->rules->error, r->error, &whole, &any, e);

	if (rc == 0)
		rc = bounded(buf_view(&whole), false, to, e);
	buf_clear(&whole);
	return rc;
}

static bool
is_blank(struct slice s)
{
	size_t i;

	for (i = 0; i < s.len; i++)
		if (s.data[i] != ' ' && s.data[i] != '\t' && s.data[i] != '\r' && s.data[i] != '\n')
			return false;
	return true;
}

/* The first selector with a find that is not blank; {out} is one of them. */
static int
find_answer(const struct provider_reading *r, const struct provider_end *end, struct buf *to,
    bool *any, struct err *e)
{
	const struct selectors *all = &r->p->rules->answer;
	struct selectors one;
	bool found;
	size_t i;

	for (i = 0; i < all->count; i++) {
		buf_reset(to);
		one = (struct selectors){&all->list[i], 1};
		if (all->list[i].from_file)
			buf_slice(to, end->out);
		else if (selectors_text(&one, &r->answer[i], to, &found, e) != 0)
			return -1;
		if (buf_ok(to, e) != 0)
			return -1;
		if (!is_blank(buf_view(to))) {
			*any = true;
			return 0;
		}
	}
	buf_reset(to);
	return 0;
}

/* ---- What is known about the conversation ---- */

/* One that begins with "-" would be an option to whoever is given it. */
static bool
is_id(struct slice text)
{
	return text.len > 0 && text.len <= PROVIDER_MAX_ID && text.data[0] != '-' &&
	    memchr(text.data, '\0', text.len) == NULL;
}

static int
find_id(const struct provider_reading *r, char **out, struct err *e)
{
	struct buf text = {0};
	bool any;
	int rc = selectors_text(&r->p->rules->id, r->id, &text, &any, e);

	if (rc == 0 && any && is_id(buf_view(&text))) {
		*out = buf_steal(&text);
		rc = *out == NULL ? err_nomem(e) : 0;
	}
	buf_clear(&text);
	return rc;
}

static int
find_usage(const struct provider_reading *r, struct json **out, struct err *e)
{
	const struct provider_rules *rules = r->p->rules;
	struct json *usage = json_object();
	size_t i;

	for (i = 0; i < rules->nusage; i++) {
		if (selectors_any(&rules->usage[i].selectors, r->usage[i]))
			usage = json_set(usage, rules->usage[i].name,
			    selectors_value(&rules->usage[i].selectors, r->usage[i]));
	}
	if (usage == NULL)
		return err_nomem(e);
	if (json_length(usage) > 0)
		*out = usage;
	else
		json_unref(usage);
	return 0;
}

static bool
was_acknowledged(const struct provider_reading *r, enum verdict verdict)
{
	if (condition_given(&r->p->rules->acknowledged))
		return r->acknowledged;
	return verdict == GOOD;
}

static bool
holds_replacement(const struct buf *text)
{
	return text->len > 0 && memmem(text->data, text->len, "\xef\xbf\xbd", 3) != NULL;
}

static int
conclude(struct provider_reading *r, const struct provider_end *end, const char *error,
    const char *errors, struct provider_result *out, struct err *e)
{
	enum verdict verdict;
	struct buf text = {0};
	bool any = r->any_text;

	if (find_answer(r, end, &out->answer, &any, e) != 0 || find_id(r, &out->id, e) != 0 ||
	    find_usage(r, &out->usage, e) != 0)
		return -1;
	out->has_answer = any && r->p->format != PROVIDER_TEXT;
	out->lossy = r->mended && holds_replacement(&out->answer);
	verdict = judge(r, end, any);
	out->acknowledged = was_acknowledged(r, verdict);
	if (verdict == GOOD)
		return 0;
	out->class = class_of(r, end, verdict, error, errors);
	describe(r, verdict, out->class, end, error, errors, &text);
	out->message = buf_steal(&text);
	return out->message == NULL ? err_nomem(e) : 0;
}

int
provider_reading_finish(struct provider_reading *r, const struct provider_end *end,
    struct provider_result *out, struct err *e)
{
	struct buf error = {0}, errors = {0};
	int rc;

	*out = (struct provider_result){0};
	rc = reading_rest(r, e);
	if (rc == 0)
		rc = error_text(r, &error, e);
	if (rc == 0)
		rc = bounded(end->errors, true, &errors, e);
	if (rc == 0)
		rc = conclude(r, end, buf_text(&error), buf_text(&errors), out, e);
	out->records = r->records;
	out->skipped_lines = r->skipped;
	out->long_lines = r->long_lines;
	buf_clear(&error);
	buf_clear(&errors);
	if (rc != 0)
		provider_result_clear(out);
	return rc;
}

void
provider_result_clear(struct provider_result *r)
{
	free(r->message);
	buf_clear(&r->answer);
	free(r->id);
	json_unref(r->usage);
	*r = (struct provider_result){0};
}
