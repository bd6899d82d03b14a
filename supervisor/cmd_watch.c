#include "cli.h"
#include "flowsup/fs.h"
#include "follow.h"
#include "output.h"
#include "target.h"

static const char *const examples[] = {
    "flowsup watch                   # the latest run, live",
    "flowsup watch RUN --json        # its events, one object a line",
    "flowsup watch RUN --events 3 3>events.jsonl",
    NULL};

static const struct cli_option options[] = {
    {.name = "events", .kind = CLI_STRING, .value = "FD|FILE",
	.help = "also write each event there, a line", .complete = "file"},
    CLI_END};

static int
watch(struct cli *c, struct target *t, int events_fd, struct err *e)
{
	struct follow f = {
	    .home = &t->home,
	    .store = t->store,
	    .cli = c,
	    .home_option = c->home,
	    .show = follow_how(c->out, c->json),
	    .out = c->out,
	    .events_fd = events_fd,
	    .utc = c->utc,
	};

	return follow_run(&f, t->session.run_id, e);
}

static int
run(struct cli *c, struct err *e)
{
	struct target t;
	bool owned = false;
	int fd = -1, r;

	if (cli_flag(c, "events") &&
	    follow_open_events(cli_text(c, "events", ""), &fd, &owned, e) != 0)
		return -1;
	r = target_of(c, c->operands[0], true, &t, e);
	if (r == 0) {
		r = watch(c, &t, fd, e);
		target_close(&t);
	}
	if (owned)
		fd_close(&fd);
	return r;
}

const struct command cmd_watch = {
    .name = "watch",
    .group = CLI_GROUP_LOOK,
    .synopsis = "[RUN] [--events FD|FILE]",
    .summary = "watch a run to its end",
    .examples = examples,
    .options = options,
    .details = "Ctrl-C leaves the display; the run goes on. Exits by the run's outcome.",
    .max_operands = 1,
    .operands = "live",
    .json = true,
    .this_run = true,
    .run = run,
};
