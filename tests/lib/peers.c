/* Other people's programs, given the same work. */
#include "workload.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "flowsup/proc.h"

const struct peer peers[] = {
    {"xargs", "xargs", false, 1},
    {"make", "make", true, 1},
    {"ninja", "ninja", true, 1},
    {"parallel", "parallel", false, 8},
    {"tsp", "tsp", false, 2},
};
const size_t npeers = sizeof(peers) / sizeof(peers[0]);

bool
peer_is_installed(const struct peer *p)
{
	struct buf found = {0};
	struct err e = {0};
	bool there = proc_find_program(p->program, getenv("PATH"), &found, &e) == 0;

	buf_clear(&found);
	return there;
}

/* ---- What it is given ---- */

/* `each` is called for every operation with the range of those it needs. */
typedef void write_one(struct buf *to, unsigned i, unsigned needs, unsigned needs_end);

static void
write_all(const struct workload *w, struct buf *to, write_one *each)
{
	unsigned layer, i, before = 0, at = 0;

	for (layer = 0; layer < w->nlayers; layer++) {
		for (i = 0; i < w->layers[layer]; i++)
			each(to, at + i, before, at);
		before = at;
		at += w->layers[layer];
	}
}

static void
make_rule(struct buf *to, unsigned i, unsigned needs, unsigned needs_end)
{
	buf_printf(to, "all: o%u\no%u:", i, i);
	for (; needs < needs_end; needs++)
		buf_printf(to, " o%u", needs);
	buf_puts(to, "\n\t@/bin/true\n");
}

static void
ninja_rule(struct buf *to, unsigned i, unsigned needs, unsigned needs_end)
{
	buf_printf(to, "build o%u: r", i);
	for (; needs < needs_end; needs++)
		buf_printf(to, " o%u", needs);
	buf_putc(to, '\n');
}

static void
item(struct buf *to, unsigned i, unsigned needs, unsigned needs_end)
{
	(void)needs;
	(void)needs_end;
	buf_printf(to, "%u\n", i);
}

static void
write_file(int dir, const char *name, struct buf *text)
{
	struct err e = {0};

	assert_works(buf_ok(text, &e), e);
	test_file_write(dir, name, buf_text(text));
	buf_clear(text);
}

static void
prepare(const struct workload *w, int dir)
{
	struct buf text = {0};

	buf_puts(&text, "all:\n");
	write_all(w, &text, make_rule);
	write_file(dir, "Makefile", &text);
	buf_puts(&text, "rule r\n  command = /bin/true\n");
	write_all(w, &text, ninja_rule);
	write_file(dir, "build.ninja", &text);
	write_all(w, &text, item);
	write_file(dir, "items", &text);
}

/* ---- How it is called ---- */

static const char *
script_of(const struct peer *p)
{
	static const struct {
		const char *name, *script;
	} scripts[] = {
	    {"xargs", "exec xargs -P $N -n 1 /bin/true <items"},
	    {"make", "exec make -s -r -R -j $N"},
	    {"ninja", "exec ninja -j $N"},
	    {"parallel", "exec parallel --will-cite -j $N --joblog log /bin/true <items"},
	    {"tsp", "tsp -S $N; while read -r i; do tsp /bin/true; done <items; tsp -w; "
		    "while tsp | grep -qE 'queued|running'; do tsp -w; done; tsp -K"},
	};
	size_t i;

	for (i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++)
		if (strcmp(scripts[i].name, p->name) == 0)
			return scripts[i].script;
	fail_msg("%s: no script", p->name);
	return NULL;
}

static int
call(const struct peer *p, const struct workload *w, const struct test_dir *dir)
{
	char n[32], socket[600], home[600], files[600], path[4096];
	char *argv[] = {(char[]){"sh"}, (char[]){"-c"}, strdup(script_of(p)), NULL};
	char *envp[] = {n, socket, home, path, (char[]){"MAKEFLAGS="}, (char[]){"TS_MAXFINISHED=10"},
	    files, NULL};
	struct proc_spawn s = PROC_SPAWN_INIT;
	struct proc_child child;
	struct err e = {0};
	int status, null = open("/dev/null", O_RDWR | O_CLOEXEC);

	snprintf(n, sizeof(n), "N=%u", w->at_once);
	snprintf(socket, sizeof(socket), "TS_SOCKET=%s/tsp", dir->path);
	snprintf(home, sizeof(home), "HOME=%s", dir->path);
	snprintf(files, sizeof(files), "TMPDIR=%s", dir->path);
	snprintf(path, sizeof(path), "PATH=%s", getenv("PATH"));
	assert_true(null >= 0 && argv[2] != NULL);
	s.path = "/bin/sh";
	s.argv = argv;
	s.envp = envp;
	s.cwd = dir->path;
	s.new_session = true;
	s.fds[0] = (struct proc_fd){null, 0};
	s.fds[1] = (struct proc_fd){null, 1};
	s.fds[2] = (struct proc_fd){null, 2};
	s.nfds = 3;
	assert_works(proc_start(&s, &child, NULL, &e), e);
	assert_int_equal(waitpid(child.id.pid, &status, 0), child.id.pid);
	close(child.pidfd);
	close(null);
	free(argv[2]);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct measured
workload_by_peer(const struct workload *w, const struct peer *p)
{
	struct workload part = *w;
	struct stopwatch watch;
	struct measured m;
	struct test_dir dir;
	int status;

	if (!workload_has_edges(w) && part.layers[0] > p->share)
		part.layers[0] /= p->share;
	test_dir_make(&dir);
	prepare(&part, dir.fd);
	watch = stopwatch_start();
	status = call(p, &part, &dir);
	m = stopwatch_stop(watch, workload_size(&part));
	test_dir_remove(&dir);
	if (status != 0) {
		fprintf(stderr, "# %s ended with status %d\n", p->name, status);
		return (struct measured){0};
	}
	return m;
}
