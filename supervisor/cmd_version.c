#include <sys/utsname.h>

#include "autostart.h"
#include "cli.h"
#include "flowsup/proc.h"
#include "flowsup/protocol.h"
#include "flowsup/store.h"
#include "output.h"

#ifndef FLOWSUP_VERSION
#error "the Makefile names the version"
#endif

/* clang says its name in __VERSION__, gcc does not. */
#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

static const char *const examples[] = {
    "flowsup version --json    # with the facts that a report of a fault needs",
    NULL};

static struct json *
kernel_json(void)
{
	struct utsname u;

	if (uname(&u) != 0)
		return json_null();
	return json_printf("%s %s %s", u.sysname, u.release, u.machine);
}

static struct json *
worker_json(struct err *e)
{
	struct buf path = {0};
	struct json *v;

	if (proc_relative_to_self(AUTOSTART_WORKER, &path, e) != 0)
		v = json_null();
	else
		v = json_string_lossy(buf_view(&path), NULL);
	buf_clear(&path);
	return v;
}

static int
run(struct cli *c, struct err *e)
{
	struct json *o;

	if (!c->json) {
		out_puts(c->out, "flowsup " FLOWSUP_VERSION "\n");
		return 0;
	}
	o = json_set(json_object(), "version", json_cstr(FLOWSUP_VERSION));
	o = json_set(o, "protocol", json_printf("%d.%d", PROTOCOL_MAJOR, PROTOCOL_MINOR));
	o = json_set(o, "schema", json_int(STORE_SCHEMA_VERSION));
	o = json_set(o, "checkpoint_format", json_int(3));
	o = json_set(o, "compiler", json_cstr(COMPILER));
	o = json_set(o, "optimised",
#ifdef __OPTIMIZE__
	    json_bool(true));
#else
	    json_bool(false));
#endif
	o = json_set(o, "kernel", kernel_json());
	o = json_set(o, "worker", worker_json(e));
	out_json(c->out, o);
	return 0;
}

const struct command cmd_version = {
    .name = "version",
    .group = CLI_GROUP_SYSTEM,
    .synopsis = "",
    .summary = "print the version",
    .examples = examples,
    .operands = "",
    .json = true,
    .run = run,
};
