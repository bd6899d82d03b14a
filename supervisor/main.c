/*
 * flowsup: the command line, and (as `flowsup supervisor --foreground`) the supervisor.
 *
 * To add a command: write cmd_NAME.c that defines `const struct command cmd_NAME` (cli.h says how)
 * and add one line here. The order within a group is the order in the help.
 */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

#define COMMAND_TABLE(X)                                                                           \
	X(start)                                                                                   \
	X(play)                                                                                    \
	X(play_list)                                                                               \
	X(play_show)                                                                               \
	X(resume)                                                                                  \
	X(rerun)                                                                                   \
	X(fork)                                                                                    \
	X(list)                                                                                    \
	X(show)                                                                                    \
	X(logs)                                                                                    \
	X(watch)                                                                                   \
	X(wait)                                                                                    \
	X(pause)                                                                                   \
	X(stop)                                                                                    \
	X(kill)                                                                                    \
	X(ctl_resume)                                                                              \
	X(msg)                                                                                     \
	X(approve)                                                                                 \
	X(deny)                                                                                    \
	X(waiting)                                                                                 \
	X(queue_list)                                                                              \
	X(queue_set)                                                                               \
	X(ctl_status)                                                                              \
	X(ctl_resolve)                                                                             \
	X(emit_context)                                                                            \
	X(emit_progress)                                                                           \
	X(emit_artifact)                                                                           \
	X(emit_spawn)                                                                              \
	X(emit_escalate)                                                                           \
	X(check)                                                                                   \
	X(graph)                                                                                   \
	X(checkpoint_show)                                                                         \
	X(checkpoint_verify)                                                                       \
	X(checkpoint_export)                                                                       \
	X(checkpoint_migrate)                                                                      \
	X(checkpoint_compact)                                                                      \
	X(doctor)                                                                                  \
	X(gc)                                                                                      \
	X(config)                                                                                  \
	X(completion)                                                                              \
	X(supervisor)                                                                              \
	X(supervisor_status)                                                                       \
	X(supervisor_stop)                                                                         \
	X(supervisor_restart)                                                                      \
	X(help)                                                                                    \
	X(version)

#define X(name) extern const struct command cmd_##name;
COMMAND_TABLE(X)
#undef X

static const struct command *const commands[] = {
#define X(name) &cmd_##name,
    COMMAND_TABLE(X)
#undef X
	NULL};

/*
 * A closed 0, 1 or 2 would be given to the next file opened, and prints would go into it. In the place
 * of standard input comes what cannot be read and in that of standard output what cannot be written to,
 * as one that is closed: what was to come from there is not taken for nothing, and what was to be
 * printed is an error and not lost.
 */
static int
open_standard_descriptors(void)
{
	static const int modes[] = {O_WRONLY, O_RDONLY, O_RDWR};
	int fd;

	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", modes[fd]) != fd)
			return -1;
	return 0;
}

/* What a caller left open must not reach a supervisor, which would keep its pipes for days. */
static void
guard_inherited_descriptors(void)
{
	(void)close_range(STDERR_FILENO + 1, UINT_MAX, CLOSE_RANGE_CLOEXEC);
}

int
main(int argc, char **argv)
{
	mode_t caller = umask(077);

	if (open_standard_descriptors() != 0)
		return 78;
	guard_inherited_descriptors();
	/* A file above the caller's limit is a failed write and a message, not a sudden end. What is
	 * started gets the default action back (proc_start). */
	(void)signal(SIGXFSZ, SIG_IGN);
	if (argc < 1) {
		fputs("flowsup: started without a name in argv[0]\n", stderr);
		return 2;
	}
	return cli_main(commands, argv, caller);
}
