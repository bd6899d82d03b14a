/* Asks the programs of providers for their versions, all at once, and waits so long and no longer. */
#include "providers.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "flowsup/proc.h"

/* What it says is kept in memory. The files that it writes beside that are small, too. */
enum { LINE_MOST = 200, FILE_MOST = 64 << 20 };

extern char **environ;

/* ---- Which there are ---- */

static int
add_one(void *arg, const char *name)
{
	struct provider_states *s = arg;
	struct provider_state *list = reallocarray(s->list, s->count + 1, sizeof(*list));

	if (list == NULL)
		return -1;
	s->list = list;
	list[s->count] = (struct provider_state){.name = strdup(name), .pidfd = -1, .out_fd = -1};
	return list[s->count++].name == NULL ? -1 : 0;
}

static int
find_program(struct provider_state *p, struct err *e)
{
	const char *program = json_cstr_of(json_at(p->provider->starts[PROVIDER_NEW], 0));
	struct buf path = {0};
	struct err none = {0};

	if (proc_find_program(program, getenv("PATH"), &path, &none) == 0)
		p->program = buf_steal(&path);
	buf_clear(&path);
	return none.code == ERR_NOMEM ? err_nomem(e) : 0;
}

static int
load_all(struct provider_states *s, struct err *e)
{
	struct provider_search search;
	int rc = provider_search_init(&search, NULL, e);
	size_t i;

	if (rc == 0 && provider_list(&search, add_one, s, e) != 0)
		rc = err_nomem(e);
	for (i = 0; rc == 0 && i < s->count; i++) {
		if (provider_load(&search, s->list[i].name, &s->list[i].provider,
			&s->list[i].why) != 0)
			s->list[i].provider = NULL;
		else
			rc = find_program(&s->list[i], e);
	}
	provider_search_clear(&search);
	return rc;
}

/* ---- Versions ---- */

static bool
is_replaced(const struct provider *p, const char *entry)
{
	struct slice name = {entry, strcspn(entry, "=")};
	struct json_iter it = json_iterate(p->unset);
	const struct json *value;

	while (json_next(&it, NULL, &value))
		if (slice_eq(json_text(value), name))
			return true;
	return json_getn(p->set, name) != NULL;
}

/* This process's environment as the provider wants it. Texts of its own are kept in `own`. */
static char **
environment(const struct provider *p, struct buf *own)
{
	struct json_iter it = json_iterate(p->set);
	const struct json *value;
	struct slice name;
	size_t n = 0, kept = 0;
	char **list, *at;

	while (json_next(&it, &name, &value)) {
		buf_slice(own, name);
		buf_putc(own, '=');
		buf_add(own, json_text(value).data, json_text(value).len + 1);
	}
	while (environ[n] != NULL)
		n++;
	list = own->failed ? NULL : calloc(n + json_length(p->set) + 1, sizeof(*list));
	for (n = 0; list != NULL && environ[n] != NULL; n++)
		if (!is_replaced(p, environ[n]))
			list[kept++] = environ[n];
	for (at = own->data; list != NULL && at != NULL && at < own->data + own->len;
	     at += strlen(at) + 1)
		list[kept++] = at;
	return list;
}

/* Whoever cannot be asked has no version; that is all that is wrong then. */
static void
ask(struct provider_state *p)
{
	struct proc_spawn s = PROC_SPAWN_INIT;
	struct provider_values values = {0};
	struct provider_words words = {0};
	struct proc_child child;
	struct err e = {0};
	char **argv = NULL, **envp = NULL;
	struct buf own = {0};

	if (p->program == NULL || p->provider->version == NULL ||
	    provider_words(p->provider, p->provider->version, &values, &words, &e) != 0)
		return;
	argv = provider_words_list(&words);
	envp = environment(p->provider, &own);
	p->out_fd = memfd_create("version", MFD_CLOEXEC);
	if (argv == NULL || envp == NULL || p->out_fd < 0)
		goto out;
	s.path = argv[0];
	s.search_path = getenv("PATH");
	s.argv = argv;
	s.envp = envp;
	s.new_session = true;
	s.die_with = getpid();
	s.fds[0] = (struct proc_fd){.from = p->out_fd, .to = STDOUT_FILENO};
	s.nfds = 1;
	proc_spawn_limit_files(&s, FILE_MOST);
	if (proc_start(&s, &child, NULL, &e) == 0) {
		p->pid = child.id.pid;
		p->pidfd = child.pidfd;
	}
out:
	free(argv);
	free(envp);
	buf_clear(&own);
	provider_words_clear(&words);
}

static void
take_line(struct provider_state *p)
{
	char line[LINE_MOST + 1];
	struct buf clean = {0};
	ssize_t n = pread(p->out_fd, line, LINE_MOST, 0);

	line[n > 0 ? n : 0] = '\0';
	line[strcspn(line, "\r\n")] = '\0';
	text_neutralise(&clean, slice_of(line), false);
	p->version = buf_steal(&clean);
	buf_clear(&clean);
}

/* It has ended, or has had its time: its whole group goes. */
static void
finish(struct provider_state *p)
{
	struct proc_end end = {0};
	struct err e = {0};

	if (p->pidfd < 0)
		return;
	p->ended = proc_wait(p->pidfd, true, &end, &e) == 1;
	p->end = end;
	if (p->ended && !end.signaled && end.code == 0)
		take_line(p);
	proc_signal_group(p->pid, SIGKILL, &e);
	proc_wait(p->pidfd, false, &end, &e);
	fd_close(&p->pidfd);
}

static size_t
wait_for_some(struct provider_states *s, struct pollfd *fds, int64_t until)
{
	int64_t left = (until - clock_monotonic_ns()) / NS_PER_MS;
	size_t i, running = 0;

	for (i = 0; i < s->count; i++) {
		fds[i] = (struct pollfd){.fd = s->list[i].pidfd, .events = POLLIN};
		running += s->list[i].pidfd >= 0;
	}
	if (running == 0 || left <= 0 || (poll(fds, s->count, (int)left + 1) < 0 && errno != EINTR))
		return 0;
	for (i = 0; i < s->count; i++)
		if (fds[i].fd >= 0 && fds[i].revents != 0)
			finish(&s->list[i]);
	return running;
}

int
providers_look(struct provider_states *out, struct err *e)
{
	int64_t until = clock_monotonic_ns() + PROVIDERS_S * NS_PER_S;
	struct pollfd *fds;
	size_t i;

	*out = (struct provider_states){0};
	if (load_all(out, e) != 0)
		goto fail;
	fds = calloc(out->count + 1, sizeof(*fds));
	if (fds == NULL) {
		err_nomem(e);
		goto fail;
	}
	for (i = 0; i < out->count; i++)
		if (out->list[i].provider != NULL)
			ask(&out->list[i]);
	while (wait_for_some(out, fds, until) > 0)
		;
	for (i = 0; i < out->count; i++)
		finish(&out->list[i]);
	free(fds);
	return 0;
fail:
	providers_clear(out);
	return -1;
}

void
providers_clear(struct provider_states *s)
{
	size_t i;

	for (i = 0; i < s->count; i++) {
		provider_free(s->list[i].provider);
		fd_close(&s->list[i].pidfd);
		fd_close(&s->list[i].out_fd);
		free(s->list[i].name);
		free(s->list[i].program);
		free(s->list[i].version);
	}
	free(s->list);
	*s = (struct provider_states){0};
}
