/*
 * How fast JSON is read and written: MB/s of processor time, for a journal of 64 KiB records, for
 * one object of many small records, and for nothing but numbers. Argument: MB of text (8).
 */
#include <stdio.h>
#include <stdlib.h>

#include "figure.h"
#include "flowsup/json.h"

enum { MB = 1000 * 1000, ROUNDS = 5 };

static double
cpu_seconds(void)
{
	return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

static void
die(const char *why)
{
	give_up("bench_json", why);
}

static void
rate(const char *what, const char *name, size_t bytes, double seconds)
{
	char text[64];

	snprintf(text, sizeof(text), "json.%s.%s", what, name);
	figure(text, ROUNDS * (double)bytes / MB / seconds, "MB/s", "-", "of processor time");
}

static void
add_prose(struct buf *b, size_t n)
{
	static const char words[] = "The tests of the second part went well; \\\"file.c\\\" has 3 notes.\\n";
	size_t i;

	for (i = 0; i < n; i += sizeof(words) - 1)
		buf_puts(b, words);
}

static void
make_journal(struct buf *b, size_t bytes)
{
	unsigned seq;

	buf_puts(b, "[");
	for (seq = 1; b->len < bytes; seq++) {
		buf_printf(b, "%s{\"version\":3,\"seq\":%u,\"kind\":\"op\",\"entry\":{\"agent_id\":\"op-%u\","
			      "\"status\":\"completed\",\"response\":\"", seq > 1 ? ",\n" : "", seq, seq);
		add_prose(b, 65536);
		buf_puts(b, "\"},\"flow_context\":null}");
	}
	buf_puts(b, "]");
}

static void
make_records(struct buf *b, size_t bytes)
{
	unsigned i;

	buf_puts(b, "{");
	for (i = 0; b->len < bytes; i++) {
		buf_printf(b, "%s\"op-%u\":{\"agent_id\":\"op-%u\",\"status\":\"completed\",\"attempts\":%u,"
			      "\"started_at\":%u.25,\"response\":\"", i > 0 ? "," : "", i, i, i % 3,
		    1700000000 + i);
		add_prose(b, 300);
		buf_puts(b, "\",\"artifacts\":[]}");
	}
	buf_puts(b, "}");
}

static void
make_numbers(struct buf *b, size_t bytes)
{
	unsigned i;

	buf_puts(b, "[0");
	for (i = 0; b->len < bytes; i++)
		buf_printf(b, ",%u", i * 7919u);
	buf_puts(b, "]");
}

static const struct {
	const char *name;
	void (*make)(struct buf *, size_t);
} texts[] = {{"journal", make_journal}, {"records", make_records}, {"numbers", make_numbers}};

static void
measure(const char *name, struct slice text)
{
	struct json_options o = {.max_bytes = JSON_MAX_PROGRAM};
	double read = 0, written = 0, freed = 0, from;
	struct buf out = {0};
	struct json *v;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		from = cpu_seconds();
		if (json_parse(text, &o, &v, NULL, NULL) == -1)
			die("cannot read what it made");
		read += cpu_seconds() - from;
		buf_reset(&out);
		from = cpu_seconds();
		json_write(&out, v);
		written += cpu_seconds() - from;
		from = cpu_seconds();
		json_unref(v);
		freed += cpu_seconds() - from;
	}
	rate("read", name, text.len, read);
	rate("write", name, text.len, written);
	rate("free", name, text.len, freed);
	buf_clear(&out);
}

int
main(int argc, char **argv)
{
	size_t bytes = (size_t)(argc > 1 ? atoi(argv[1]) : 8) * MB, i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct buf b = {0};

		texts[i].make(&b, bytes);
		if (buf_ok(&b, NULL) == -1)
			die("out of memory");
		measure(texts[i].name, buf_view(&b));
		buf_clear(&b);
	}
	return 0;
}
