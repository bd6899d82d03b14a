#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli.h"
#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "known_op.h"
#include "logs.h"
#include "output.h"
#include "paste.h"
#include "seek.h"
#include "target.h"
#include "view.h"
#include "waits.h"

enum {
	INTERRUPTED = 130,
	LOOK_MS = 200,
	ROW_LOOKS = 2,	   /* the row is read at each second look */
	ATTEMPT_MOST = 1000000,
	TAIL_MOST = 1000000000
};

static const char *const examples[] = {
    "flowsup logs                      # of the latest run, all operations",
    "flowsup logs RUN build            # of one operation, byte for byte",
    "flowsup logs RUN build --stderr   # what it wrote on standard error",
    "flowsup logs -f                   # as it comes, until the run's end",
    NULL};

static const struct cli_option options[] = {
    {.name = "follow", .letter = 'f', .kind = CLI_FLAG, .help = "go on until the run is at its end"},
    {.name = "stderr", .letter = 'e', .kind = CLI_FLAG, .help = "standard error instead of output"},
    {.name = "attempt", .letter = 'a', .kind = CLI_INT, .value = "N",
	.help = "of this attempt (default: the last)", .least = 1, .most = ATTEMPT_MOST},
    {.name = "tail", .letter = 'n', .kind = CLI_INT, .value = "N",
	.help = "the last N lines of each, then what follows", .least = 0, .most = TAIL_MOST},
    CLI_END};

/* ---- Once ---- */

static int
print_once(struct logs *l, struct err *e)
{
	size_t i;

	l->prefixes = l->n > 1;
	logs_measure_prefixes(l);
	for (i = 0; i < l->n && out_open(l->c->out); i++) {
		if (logs_pump(l, &l->sources[i], e) != 0)
			return -1;
		logs_put_rest(l, &l->sources[i]);
		fd_close(&l->sources[i].fd);
	}
	out_flush(l->c->out);
	logs_tell_silence(l);
	return logs_unread(l, e);
}

/* ---- Following ---- */

static int
take_start(void *arg, struct slice text, struct err *e)
{
	struct logs *l = arg;
	struct json *line = NULL;
	struct err ignored = {0};
	struct logs_line taken = {.attempt = 1};
	struct slice kind;
	int r;

	if (json_parse(text, NULL, &line, NULL, &ignored) != 0)
		return 0;
	kind = json_text(json_get(line, "kind"));
	(void)json_int64(json_get(line, "attempt"), &taken.attempt);
	taken.op = json_cstr_of(json_get(line, "op"));
	taken.origin = json_cstr_of(json_get(line, "run"));
	taken.kind = slice_is(kind, "start") ? ATTEMPT_LINE_START : slice_is(kind, "end") ? ATTEMPT_LINE_END : ATTEMPT_LINE_OTHER;
	r = logs_take_line(l, l->t->session.run_id, &taken, true, e);
	json_unref(line);
	return r;
}

/* The end is looked for before the files are read: what was written before it is then seen. */
static int
pump_all(struct logs *l, struct err *e)
{
	struct logs_source *s;
	bool ended, all_done = true;
	size_t i;

	for (i = l->first; i < l->n; i++) {
		s = &l->sources[i];
		ended = s->ended;
		if (!s->done && logs_pump(l, s, e) != 0)
			return -1;
		if (ended && !s->done) {
			logs_put_rest(l, s);
			fd_close(&s->fd);
			s->done = true;
		}
		all_done = all_done && s->done;
		if (all_done)
			l->first = i + 1;
	}
	out_flush(l->c->out);
	return 0;
}

static int
finish(struct logs *l, struct err *e)
{
	size_t i;

	if (tail_read(&l->starts, take_start, l, e) != 0)
		return -1;
	logs_measure_prefixes(l);
	for (i = l->first; i < l->n; i++)
		l->sources[i].ended = true;
	return pump_all(l, e);
}

static void
tell_restart(const struct logs *l)
{
	const struct session *s = &l->t->session;
	struct buf b = {0};

	cli_note("run %s crashed (%s); its restart policy resumes it", s->run_id,
	    s->reason != NULL ? s->reason : "no reason is recorded");
	paste_command(&b, "logs -f", l->c->home, s->run_id, NULL);
	paste_hint("its output then", buf_view(&b));
	buf_clear(&b);
}

/* Completed output speaks for itself; why there is no more of another run's is said. */
static int
tell_end(const struct logs *l)
{
	const struct session *s = &l->t->session;

	if (session_is_restarting(s)) {
		tell_restart(l);
	} else if (s->status != STATUS_COMPLETED) {
		cli_note("run %s %s: %s, %lld of %lld done", s->run_id, status_word(s->status),
		    s->reason != NULL ? s->reason : "no reason is recorded", (long long)s->done,
		    (long long)s->total);
		paste_end_hint(&l->t->home, l->c->home, s);
	}
	return status_exit(s->status, s->reason_code);
}

static int
begin_run(struct logs *l, struct err *e)
{
	l->run_fd = seek_rundir(&l->t->home, &l->t->session, e);
	if (l->run_fd < 0)
		return -1;
	tail_init(&l->starts, l->run_fd, RUN_ATTEMPTS);
	return 0;
}

static void
leave_run(struct logs *l)
{
	tail_close(&l->starts);
	fd_close(&l->run_fd);
}

/* What still runs of the run before is taken over, or its operation starts again: until then its output
 * is looked at as before. */
static int
go_on_with_successor(struct logs *l, struct err *e)
{
	char before[RUN_ID_TEXT], next[RUN_ID_TEXT];

	memcpy(before, l->t->session.run_id, sizeof(before));
	memcpy(next, l->t->session.resumed_as_run, sizeof(next));
	if (tail_read(&l->starts, take_start, l, e) != 0)
		return -1;
	logs_measure_prefixes(l);
	if (pump_all(l, e) != 0)
		return -1;
	leave_run(l);
	l->restarting = l->waits_told = false;
	if (target_find(l->t, next, e) != 0)
		return -1;
	cli_note("run %s was resumed by its restart policy, as run %s", before, next);
	return begin_run(l, e);
}

/* The run is at its end. True while the job is not: its restart policy answers, or has answered. */
static bool
goes_on(struct logs *l)
{
	const struct session *s = &l->t->session;

	if (l->c->this_run)
		return false;
	if (!session_is_restarting(s))
		return s->resumed_as_run[0] != '\0' &&
		    (l->restarting || follow_was_restarted(l->t->store, s));
	if (!l->restarting)
		cli_note("run %s crashed (%s); its restart policy resumes it", s->run_id,
		    s->reason != NULL ? s->reason : "no reason is recorded");
	l->restarting = true;
	return true;
}

/* A run in the queue writes nothing: who waits for its output is told once why. */
static void
tell_waits(struct logs *l)
{
	struct waits *waits;
	struct buf why = {0};

	if (l->waits_told || !waits_are_known(&l->t->session))
		return;
	l->waits_told = true;
	waits = waits_new(&l->t->home, l->t->store);
	waits_reason(waits, &l->t->session, &why);
	waits_free(waits);
	cli_note("run %s is queued: %s", l->t->session.run_id, buf_text(&why));
	buf_clear(&why);
}

/* With what was asked for. */
static void
say_interrupted(const struct logs *l)
{
	struct buf again = {0};

	buf_puts(&again, "logs -f");
	if (cli_flag(l->c, "stderr"))
		buf_puts(&again, " --stderr");
	if (l->attempt > 0)
		buf_printf(&again, " --attempt %lld", (long long)l->attempt);
	follow_say_interrupted(l->c->home, l->t->session.run_id, buf_text(&again), l->only);
	buf_clear(&again);
}

/* The exit status; 0 also when nobody reads any more. */
static int
follow(struct logs *l, struct err *e)
{
	struct pollfd interrupt = {.fd = l->interrupts, .events = POLLIN};
	unsigned looks;

	for (looks = 0; out_open(l->c->out); looks++) {
		if (looks % ROW_LOOKS == 0 && target_reload(l->t, e) != 0)
			return -1;
		tell_waits(l);
		if (status_is_terminal(l->t->session.status) && !goes_on(l))
			return finish(l, e) == 0 && logs_unread(l, e) == 0 ? tell_end(l) : -1;
		if (status_is_terminal(l->t->session.status) &&
		    l->t->session.resumed_as_run[0] != '\0' && go_on_with_successor(l, e) != 0)
			return -1;
		if (tail_read(&l->starts, take_start, l, e) != 0)
			return -1;
		logs_measure_prefixes(l);
		if (pump_all(l, e) != 0)
			return -1;
		/* Nobody here will ever say how a copy's goes on. */
		if (target_check_own(l->c, &l->t->home, &l->t->session, e) != 0)
			return -1;
		l->tail = LOGS_ALL; /* what comes from now on is given whole */
		out_look(l->c->out);
		if (poll(&interrupt, 1, LOOK_MS) > 0) {
			say_interrupted(l);
			return INTERRUPTED;
		}
		if (looks % (ROW_LOOKS * 8) == 0)
			target_wake(l->t);
	}
	return 0;
}

static int
catch_interrupts(struct logs *l, struct err *e)
{
	sigset_t set;

	follow_leaving(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	l->interrupts = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return l->interrupts >= 0 ? 0 : err_sys(e, ERR_INTERNAL, errno, "signalfd");
}

static int
follow_run_output(struct logs *l, struct err *e)
{
	int r;

	if (catch_interrupts(l, e) != 0 || begin_run(l, e) != 0)
		return -1;
	l->prefixes = l->only == NULL && l->t->session.total != 1;
	r = logs_take_carried(l, e);
	if (r == 0)
		r = follow(l, e);
	leave_run(l);
	return r;
}

/* ---- The command ---- */

static int
no_output(struct logs *l, struct err *e)
{
	struct run_files f;
	int r = 0;

	if (run_files_open(&l->t->home, &l->t->session, false, &f, e) != 0)
		return -1;
	if (f.flow == NULL) {
		*e = f.flow_error;
		r = seek_damaged(&l->t->session, e);
	} else {
		r = known_op_check(&l->t->home, &l->t->session, l->only, l->c, e);
		if (r == 0 && l->unstarted > 0) {
			cli_note("attempt %lld of operation \"%s\" could not be started", (long long)l->unstarted,
			    l->only);
			logs_tell_record(l);
		} else if (r == 0) {
			cli_note("operation \"%s\" has not started", l->only);
		}
	}
	run_files_close(&f);
	return r;
}

static int
print_logs(struct logs *l, struct err *e)
{
	if (cli_flag(l->c, "follow"))
		return follow_run_output(l, e);
	if (logs_take_chain(l, e) != 0)
		return -1;
	if (l->n == 0 && l->only != NULL && l->attempt == 0)
		return no_output(l, e);
	if (l->n == 0 && l->attempt > 0)
		return err_set(e, ERR_NOTFOUND, "there was no attempt %lld", (long long)l->attempt);
	if (l->n == 0)
		cli_note("no operation of run %s has started", l->t->session.run_id);
	return print_once(l, e);
}

static int
run(struct cli *c, struct err *e)
{
	struct target t;
	struct logs l = {
	    .c = c,
	    .t = &t,
	    .only = c->noperands > 1 ? c->operands[1] : NULL,
	    .attempt = cli_int(c, "attempt", 0),
	    .tail = cli_int(c, "tail", LOGS_ALL),
	    .run_fd = -1,
	    .interrupts = -1,
	};
	int r;

	if (target_of(c, c->operands[0], cli_flag(c, "follow"), &t, e) != 0)
		return -1;
	r = print_logs(&l, e);
	while (l.n > 0)
		logs_source_clear(&l.sources[--l.n]);
	free(l.sources);
	json_unref(l.merged);
	fd_close(&l.interrupts);
	target_close(&t);
	return r;
}

const struct command cmd_logs = {
    .name = "logs",
    .group = CLI_GROUP_LOOK,
    .synopsis = "[RUN [OP]] [-f] [--stderr] [--attempt N] [-n N]",
    .summary = "print the output of operations",
    .examples = examples,
    .options = options,
    .details = "Several operations: each line begins with the operation's name. With -f it exits\n"
	       "by the run's outcome, as watch does.",
    .max_operands = 2,
    .operands = "run op",
    .json = true,
    .this_run = true,
    .run = run,
};
