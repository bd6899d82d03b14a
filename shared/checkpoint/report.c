#include <inttypes.h>

#include "flowsup/checkpoint.h"

static const char *const status_names[] = {
	[CKPT_CLEAN] = "clean",
	[CKPT_RECOVERED_PREFIX] = "recovered_prefix",
	[CKPT_REFUSED] = "refused",
};

const char *
ckpt_status_name(enum ckpt_status s)
{
	return status_names[s];
}

static struct json *
number(int64_t n)
{
	return n < 0 ? json_null() : json_int(n);
}

static struct json *
text(const char *s)
{
	return s[0] == '\0' ? json_null() : json_cstr(s);
}

static struct json *
position(const struct ckpt_report *r)
{
	struct json *p;

	if (r->position_file[0] == '\0')
		return json_null();
	p = json_set(json_object(), "file", json_string_lossy(slice_of(r->position_file), NULL));
	p = json_set(p, "line", number(r->position_line));
	return json_set(p, "offset", number(r->position_offset));
}

struct json *
ckpt_report_json(const struct ckpt_report *r)
{
	struct json *o = json_object();

	o = json_set(o, "report_version", json_int(1));
	o = json_set(o, "status", json_cstr(ckpt_status_name(r->status)));
	o = json_set(o, "format", number(r->format));
	o = json_set(o, "generation", text(r->generation));
	o = json_set(o, "base_bytes", number(r->base_bytes));
	o = json_set(o, "journal_bytes", number(r->journal_bytes));
	o = json_set(o, "records_applied", number(r->records_applied));
	o = json_set(o, "last_seq", number(r->last_seq));
	o = json_set(o, "in_progress_bytes", number(r->in_progress_bytes));
	o = json_set(o, "stale_records", number(r->stale_records));
	o = json_set(o, "discarded_tail_bytes", number(r->discarded_tail_bytes));
	o = json_set(o, "coherence_retries", json_int(r->coherence_retries));
	o = json_set(o, "reason", text(r->reason));
	o = json_set(o, "position", position(r));
	return json_set(o, "directory_sync",
	    r->directory_sync < 0 ? json_null() : json_cstr(r->directory_sync ? "supported" :
	    "unsupported"));
}

void
ckpt_report_line(const struct ckpt_report *r, struct buf *to)
{
	buf_printf(to, "checkpoint %s", ckpt_status_name(r->status));
	if (r->reason[0] != '\0')
		buf_printf(to, ": %s", r->reason);
	if (r->position_file[0] != '\0')
		buf_printf(to, " in %s", r->position_file);
	if (r->position_line >= 0)
		buf_printf(to, " line %" PRId64, r->position_line);
	if (r->position_offset >= 0)
		buf_printf(to, " offset %" PRId64, r->position_offset);
	if (r->records_applied >= 0)
		buf_printf(to, "; %" PRId64 " record%s of the journal %s good", r->records_applied,
		    r->records_applied == 1 ? "" : "s", r->records_applied == 1 ? "is" : "are");
	if (r->discarded_tail_bytes > 0)
		buf_printf(to, "; %" PRId64 " bytes of an unfinished line left out",
		    r->discarded_tail_bytes);
	if (r->stale_records > 0)
		buf_printf(to, "; %" PRId64 " record%s of another generation skipped",
		    r->stale_records, r->stale_records == 1 ? "" : "s");
}
