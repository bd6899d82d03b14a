/* flowsup-worker: executes one run. */
#include "worker.h"

#include "end.h"
#include "keep.h"

#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/log.h"
#include "notify.h"
#include "plan.h"

enum { EXIT_OK = 0, EXIT_USAGE = 2, EXIT_INTERNAL = 70 };

static const char usage[] = "usage: flowsup-worker --home DIR --run RUN_ID\n"
			    "       flowsup-worker --home DIR --report RUN_ID\n"
			    "       flowsup-worker --home DIR --end RUN_ID --class CLASS "
			    "[--operation OP] [--lock-fd N]\n"
			    "       flowsup-worker --keep\n"
			    "       flowsup-worker --home DIR --notify RUN_ID -- COMMAND...\n";

struct arguments {
	const char *home, *run, *report, *end, *class, *op, *notify;
	int lock_fd;
	char **command; /* behind --notify */
};

static const struct option options[] = {
    {"home", required_argument, NULL, 'h'},
    {"run", required_argument, NULL, 'r'},
    {"report", required_argument, NULL, 'p'},
    {"end", required_argument, NULL, 'e'},
    {"class", required_argument, NULL, 'c'},
    {"operation", required_argument, NULL, 'o'},
    {"lock-fd", required_argument, NULL, 'l'},
    {"notify", required_argument, NULL, 'n'},
    {NULL, 0, NULL, 0},
};

static bool
read_descriptor(const char *text, int *out)
{
	char *end;
	long n = strtol(text, &end, 10);

	*out = (int)n;
	return end != text && *end == '\0' && n > STDERR_FILENO && n <= INT_MAX;
}

static int
read_arguments(int argc, char **argv, struct arguments *out)
{
	int c, kinds;

	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		if (c == 'h')
			out->home = optarg;
		else if (c == 'r')
			out->run = optarg;
		else if (c == 'p')
			out->report = optarg;
		else if (c == 'e')
			out->end = optarg;
		else if (c == 'c')
			out->class = optarg;
		else if (c == 'o')
			out->op = optarg;
		else if (c == 'l' && read_descriptor(optarg, &out->lock_fd))
			;
		else if (c == 'n')
			out->notify = optarg;
		else
			return -1;
	}
	out->command = argv + optind;
	if ((optind < argc) != (out->notify != NULL) || (out->end != NULL) != (out->class != NULL))
		return -1;
	kinds = (out->run != NULL) + (out->report != NULL) + (out->end != NULL) +
	    (out->notify != NULL);
	return kinds == 1 ? 0 : -1;
}

void
worker_error(struct worker *w, const struct err *e)
{
	if (w->closed & CLOSED_ERROR)
		return;
	log_line(LOG_ERROR, "%s; no more operations are started", e->msg);
	admission_close(w, CLOSED_ERROR);
	w->trouble = *e;
	w->loop.again = true;
}

/* SIGCHLD and the requests to leave are read from a descriptor; a closed pipe is an error code. */
static void
prepare_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGQUIT);
	sigprocmask(SIG_SETMASK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	/* What means nothing to it must not end a run. */
	signal(SIGHUP, SIG_IGN);
	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	signal(SIGALRM, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
}

/* What handlers have noted takes effect here, in this order: an exit frees a slot before the next
 * start, and outcomes count before readiness is decided. */
static void
after_handlers(struct worker *w)
{
	struct err e = {0};
	bool failing;

	w->counts.turns++;
	if ((w->closed & CLOSED_ERROR) && w->waits != NULL)
		flow_context_abandon(w); /* nothing is promised any more; they hold slots */
	ending_children(w);
	turns_decide(w);
	settle_release(w);
	admission_start(w);
	settle_hurry(w);
	settle_tell(w);
	approval_tell(w);
	reactive_tell(w);
	reactive_tell_room(w);
	plan_tell(w);
	if (io_log_trouble(w->io, &failing, &e))
		log_line(failing ? LOG_ERROR : LOG_INFO, "%s",
		    failing ? e.msg : "events are written again");
	events_flush(w);
}

static int
run(struct worker *w)
{
	struct err e = {0};

	for (;;) {
		after_handlers(w);
		storage_turn(w);
		if (worker_is_idle(w) && worker_finish(w))
			break;
		if (poller_turn(&w->loop, &e) != 0) {
			log_line(LOG_ERROR, "%s", e.msg);
			return EXIT_INTERNAL;
		}
	}
	return w->stored || w->disowned ? EXIT_OK : EXIT_INTERNAL;
}

static int
run_worker(const struct arguments *args)
{
	struct worker *w = calloc(1, sizeof(*w));
	struct err e = {0};
	int status;

	if (w == NULL) {
		log_line(LOG_ERROR, "not enough memory");
		return EXIT_INTERNAL;
	}
	if (worker_begin(w, args->home, args->run, &e) == 0)
		status = run(w);
	else if (w->disowned)
		status = EXIT_OK;
	else
		status = worker_abandon(w, &e) == 0 ? EXIT_OK : EXIT_INTERNAL;
	worker_clear(w);
	free(w);
	return status;
}

int
main(int argc, char **argv)
{
	struct arguments args = {.lock_fd = -1};

	umask(077);
	/* A file above the limit is a failed write, also of a keeper, and not a sudden end. What is
	 * started gets the default action back (proc_start). */
	signal(SIGXFSZ, SIG_IGN);
	log_init(STDERR_FILENO, "worker", LOG_INFO);
	if (argc == 2 && strcmp(argv[1], "--keep") == 0)
		return keep_main();
	if (read_arguments(argc, argv, &args) != 0) {
		if (write(STDERR_FILENO, usage, sizeof(usage) - 1) < 0)
			return EXIT_INTERNAL;
		return EXIT_USAGE;
	}
	if (args.report != NULL)
		return report_main(args.home, args.report);
	if (args.end != NULL)
		return end_main(&(struct end_arguments){args.home, args.end, args.op, args.class, args.lock_fd});
	if (args.notify != NULL)
		return notify_main(args.home, args.notify, args.command);
	prepare_signals();
	return run_worker(&args);
}
