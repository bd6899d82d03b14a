/* resume: whether this environment can run what is to run: check 10, its directory and programs. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/fs.h"
#include "flowsup/proc.h"
#include "flowsup/provider.h"
#include "resume_private.h"

static bool
is_to_run(const struct examining *x, size_t i)
{
	const struct resume_row *row = &x->plan->rows[i];

	return row->action == RESUME_RUN || (row->action == RESUME_REPLAY && row->turn != 0);
}

static const char *
recorded(const struct examining *x, const char *name)
{
	size_t len = strlen(name);
	char *const *one;

	for (one = x->in->recorded_environment; one != NULL && *one != NULL; one++)
		if (strncmp(*one, name, len) == 0 && (*one)[len] == '=')
			return *one + len + 1;
	return NULL;
}

/* A relative one lies in the run's. */
static bool
is_elsewhere(const char *cwd)
{
	return cwd != NULL && (cwd[0] == '/' || flow_is_home_path(cwd));
}

/* ---- The run's directory ---- */

/* Each run has one, and nothing in it makes it anew. */
static void
check_directory(struct examining *x)
{
	const char *path = x->in->directory;
	struct stat st;
	int why = 0;

	if (stat(path, &st) != 0)
		why = errno;
	else if (!S_ISDIR(st.st_mode))
		why = ENOTDIR;
	else if (access(path, X_OK) != 0)
		why = errno;
	if (why == 0)
		return;
	resume_fail(x->plan, 10, NULL, NULL, "it was started in '%s': %s", path, strerror(why));
	resume_fail_with(x->plan, why == ENOENT ? "directory" : "needed", path);
}

/* ---- Programs ---- */

/* Where a program is looked for; NULL with *known false: only its start tells. */
static const char *
search_path(const struct examining *x, const struct flow_how *how, const struct json *set, bool *known)
{
	const char *path = json_cstr_of(json_get(set, "PATH"));
	size_t i = how->nenv;

	*known = true;
	while (i-- > 0)
		if (strcmp(how->env[i].name, "PATH") == 0 && how->env[i].value != NULL) {
			*known = !flow_has_template(how->env[i].value) && how->env[i].value[0] != '~';
			return how->env[i].value;
		}
	return path != NULL ? path : recorded(x, "PATH");
}

/* The directory that it starts in, or -1: it is made while the run goes, or only its start tells. */
static int
open_directory(const struct examining *x, const struct flow_how *how)
{
	struct buf path = {0};
	int fd = -1;

	if (!is_elsewhere(how->cwd))
		buf_printf(&path, "%s/", x->in->directory);
	if ((how->cwd == NULL || (!flow_has_template(how->cwd) &&
				     flow_home_path(how->cwd, recorded(x, "HOME"), &path, NULL) == 0)) &&
	    !path.failed)
		fd = open(buf_text(&path), O_PATH | O_DIRECTORY | O_CLOEXEC);
	buf_clear(&path);
	return fd;
}

static void
look_for(struct examining *x, const struct flow_how *how, const char *name, const struct json *set, struct err *why)
{
	struct buf found = {0};
	bool known;
	const char *path = search_path(x, how, set, &known);
	int fd = known ? open_directory(x, how) : -1;

	/* A search path seldom has a relative part. */
	if (fd < 0 && known && strchr(name, '/') == NULL)
		fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && proc_find_at(fd, name, path, &found, why) != 0 && why->code == ERR_NOMEM)
		x->failed = true;
	fd_close(&fd);
	buf_clear(&found);
}

/* One that is not there, or damaged, was told of by check 2. */
static void
look_for_agent(struct examining *x, const struct flow_how *how, struct buf *name, struct err *why)
{
	struct provider_search search;
	struct provider *p = NULL;
	const char *program;
	struct err ignored = {0};

	if (how->role == NULL || how->role->provider == NULL || provider_search_init(&search, NULL, &ignored) != 0)
		return;
	if (provider_load(&search, how->role->provider, &p, &ignored) == 0) {
		program = json_cstr_of(json_at(p->starts[PROVIDER_NEW], 0));
		if (program != NULL) {
			buf_puts(name, program);
			look_for(x, how, program, p->set, why);
		}
		provider_free(p);
	}
	provider_search_clear(&search);
}

/* The items of a foreach share all of it, and are asked about once. */
static void
look_for_program(struct examining *x, const struct flow_op *op)
{
	struct programs *last = &x->programs;
	const char *program = op->kind == FLOW_EXEC ? op->argv[0] : NULL;

	if (last->how == op->how && last->kind == op->kind &&
	    (program == NULL || strcmp(program, buf_text(&last->name)) == 0))
		return;
	last->how = op->how;
	last->kind = op->kind;
	last->why = (struct err){0};
	buf_reset(&last->name);
	if (op->kind == FLOW_INSTRUCTION) {
		look_for_agent(x, op->how, &last->name, &last->why);
	} else if (program != NULL) {
		buf_puts(&last->name, program);
		/* A template is known only when the operation starts. */
		if (!flow_has_template(program))
			look_for(x, op->how, program, NULL, &last->why);
	}
	x->failed = x->failed || last->name.failed;
}

/* Whether something that it needs is still to run, and may make its program. */
static bool
waits(const struct examining *x, size_t i)
{
	const struct flow_op *op = &x->in->flow->ops[i];
	enum resume_action before;
	uint32_t n;

	for (n = 0; n < op->nneeds; n++) {
		before = x->plan->rows[op->needs[n].op].action;
		if (before == RESUME_RUN || before == RESUME_TAKE_OVER || before == RESUME_REFUSED)
			return true;
	}
	return false;
}

static void
check_program(struct examining *x, size_t i)
{
	struct buf text = {0};

	look_for_program(x, &x->in->flow->ops[i]);
	if (x->programs.why.code == ERR_NONE)
		return;
	buf_puts(&text, x->programs.why.msg);
	resume_refuse(x, i, 10, NULL, buf_text(&text));
	resume_fail_with(x->plan, "needed", buf_text(&x->programs.name));
	buf_clear(&text);
}

void
resume_check_programs(struct examining *x)
{
	bool asked = false;
	size_t i, at;

	if (x->in->directory == NULL)
		return;
	for (i = 0; i < x->plan->nrows && !asked; i++)
		if (is_to_run(x, i) && !is_elsewhere(x->in->flow->ops[i].how->cwd)) {
			check_directory(x);
			asked = true;
		}
	/* Those behind first: what is refused here was to run. */
	for (i = x->plan->nrows; i-- > 0;) {
		at = x->in->flow->order[i];
		if (is_to_run(x, at) && !waits(x, at))
			check_program(x, at);
	}
	buf_clear(&x->programs.name);
}
