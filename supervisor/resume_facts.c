/* What a resume must see for itself: artifacts, files of responses and outputs, durable marks of a start. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/fs.h"
#include "evidence.h"
#include "resume.h"

struct gathering {
	int run_fd;
	struct evidence_root root;
	struct json *facts;
};

static void
set_fact(struct gathering *g, const char *op, const char *name, struct json *value)
{
	const struct json *old = json_get(g->facts, op);
	struct json *of_op = old != NULL ? json_ref(old) : json_object();

	g->facts = json_set(g->facts, op, json_set(of_op, name, value));
}

/* ---- Artifacts: check 4 ---- */

struct artifacts {
	struct gathering *g;
	const char *op;
	const struct json *entry;
	struct buf problem; /* of the first that fails */
	int64_t unverified;
	struct err *e;
};

static int
look_at_artifact(void *arg, const char *path)
{
	struct artifacts *a = arg;
	enum evidence found = EVIDENCE_WRONG;
	struct buf why = {0};
	int rc = 0;

	if (path != NULL)
		rc = evidence_of_artifact(&a->g->root, a->op, path, a->entry, &found, &why, a->e);
	a->unverified += rc == 0 && found == EVIDENCE_UNRECORDED;
	if (rc == 0 && found >= EVIDENCE_ABSENT && a->problem.len == 0 && path != NULL)
		buf_printf(&a->problem, "its artifact \"%s\" %s", path, buf_text(&why));
	else if (rc == 0 && found >= EVIDENCE_ABSENT && a->problem.len == 0)
		buf_puts(&a->problem, "its recorded list of artifacts cannot be read");
	buf_clear(&why);
	return rc;
}

/* Those of the contract, and those that the operation told of itself: they stand in its outcome alone. */
static int
look_at_artifacts(struct gathering *g, const char *op, const struct json *contract,
    const struct json *entry, struct err *e)
{
	struct artifacts a = {.g = g, .op = op, .entry = entry, .e = e};
	int rc = evidence_each_artifact(contract, entry, look_at_artifact, &a);

	if (a.problem.len > 0)
		set_fact(g, op, "artifacts", json_string_lossy(buf_view(&a.problem), NULL));
	if (a.unverified > 0)
		set_fact(g, op, "unverified", json_int(a.unverified));
	buf_clear(&a.problem);
	return rc;
}

/* ---- Responses that lie in a file, and outputs that their responses do not say byte for byte ---- */

static int
look_at_file(struct gathering *g, const char *op, const struct json *recorded, const char *fact,
    const char *what, struct err *e)
{
	enum evidence found;
	struct buf why = {0};
	int rc = evidence_of_file(g->run_fd, recorded, &found, &why, e);

	if (rc == 0 && found >= EVIDENCE_ABSENT)
		set_fact(g, op, fact, json_printf("%s (%s) %s", what, json_cstr_of(json_get(recorded, "file")),
		    buf_text(&why)));
	buf_clear(&why);
	return rc;
}

static int
look_at_response(struct gathering *g, const char *op, const struct json *entry, struct err *e)
{
	return ckpt_is_file(entry) ? look_at_file(g, op, json_get(entry, "response"), "response",
	    "the file of its response", e) : 0;
}

static int
look_at_output(struct gathering *g, const char *op, const struct json *entry, struct err *e)
{
	const struct json *output = json_get(entry, CKPT_OUTPUT);

	return json_type(output) == JSON_OBJECT ? look_at_file(g, op, output, "output", "its output", e) : 0;
}

/* ---- Marks: ops/<op>.<n>/started ---- */

static void
look_at_mark(struct gathering *g, int ops_fd, char *name)
{
	char path[NAME_MAX + sizeof("/started")];
	char *dot = strrchr(name, '.');
	struct stat st;

	snprintf(path, sizeof(path), "%s/started", name);
	if (dot == NULL || dot == name || fstatat(ops_fd, path, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return;
	*dot = '\0';
	set_fact(g, name, "started", json_bool(true));
}

static int
look_for_marks(struct gathering *g, struct err *e)
{
	int fd = openat(g->run_fd, RUN_OPS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct dirent *entry;
	DIR *dir;
	int rc;

	if (fd < 0 && errno == ENOENT) /* nothing was started, or it came without */
		return 0;
	if (fd < 0)
		return err_sys(e, ERR_IO, errno, "'%s'", RUN_OPS);
	dir = fdopendir(fd);
	if (dir == NULL) {
		fd_close(&fd);
		return err_sys(e, ERR_IO, errno, "'%s'", RUN_OPS);
	}
	while (errno = 0, (entry = readdir(dir)) != NULL)
		if (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN)
			look_at_mark(g, fd, entry->d_name);
	rc = errno != 0 ? err_sys(e, ERR_IO, errno, "'%s'", RUN_OPS) : 0;
	closedir(dir);
	return rc;
}

/* ---- Conversations: check 11 ---- */

static const char *
missing_place(const struct json *conversation)
{
	static const char *const members[] = {"home", "cwd", "store", "chat"};
	const char *path;
	size_t i;

	for (i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		path = json_cstr_of(json_get(conversation, members[i]));
		if (path != NULL && access(path, F_OK) != 0)
			return path;
	}
	return NULL;
}

static void
look_at_conversation(struct gathering *g, const char *op, const struct json *entry)
{
	const char *missing = missing_place(json_get(entry, "conversation"));

	if (missing != NULL)
		set_fact(g, op, "conversation",
		    json_printf("it is bound to '%s', which is not there", missing));
}

/* ---- All of it ---- */

char *
resume_artifact_root(const struct json *state, const char *run_path)
{
	const char *root = json_cstr_of(json_get(json_get(state, "config"), "artifact_root"));
	struct buf path = {0};

	if (root == NULL || root[0] != '/')
		buf_printf(&path, "%s/", run_path);
	buf_puts(&path, root != NULL ? root : RUN_ARTIFACTS);
	return buf_steal(&path);
}

/* Why it cannot be used, and what mends that; NULL: out of memory. errno is that of opening it where `unfit` is
 * NULL. */
static char *
root_problem(int run_fd, const char *root, const struct err *unfit)
{
	int opening = errno;
	size_t named = strlen(root);
	struct buf text = {0};
	struct stat st;

	buf_printf(&text, "the artifact root '%s' ", root);
	if (unfit != NULL && (strncmp(unfit->msg, root, named) != 0 || strncmp(unfit->msg + named, ": ", 2) != 0))
		named = 0;
	if (unfit != NULL)
		buf_printf(&text, "cannot be used: %s%s%s", unfit->msg + (named > 0 ? named + 2 : 0), err_has_hint(unfit) ? "; mended by: " : "",
		    err_hint_text(unfit));
	else if (fstatat(run_fd, root, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
		buf_puts(&text, "is a symbolic link");
	else
		buf_printf(&text, "cannot be opened: %s", strerror(opening));
	return buf_steal(&text);
}

/* Relative to the run directory, or absolute; where it is written to it must be as the worker wants it. -1
 * when it is not there, with the reason in *problem unless none was recorded; e says when memory ran out. */
static int
open_root(int run_fd, const struct json *state, bool read_only, bool *absent, char **problem, struct err *e)
{
	const char *recorded = json_cstr_of(json_get(json_get(state, "config"), "artifact_root"));
	const char *root = recorded != NULL ? recorded : RUN_ARTIFACTS;
	int fd = openat(run_fd, root, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (read_only ? 0 : O_NOFOLLOW));
	struct err why = {0};

	*problem = NULL;
	*absent = fd < 0 && errno == ENOENT;
	/* None was recorded and none is there: whether one is missed shows at each operation. */
	if (*absent && recorded == NULL)
		return -1;
	if (fd < 0) {
		*problem = root_problem(run_fd, root, NULL);
	} else if (!read_only) {
		fd_close(&fd);
		fd = fs_open_private_dir(run_fd, root, &why);
		if (fd < 0)
			*problem = root_problem(run_fd, root, &why);
	}
	if (fd < 0 && *problem == NULL)
		err_nomem(e);
	return fd;
}

static int
look_at_entry(struct gathering *g, const char *op, const struct json *contract,
    const struct json *entry, struct err *e)
{
	if (op == NULL || entry == NULL)
		return 0;
	if (look_at_response(g, op, entry, e) != 0 || look_at_output(g, op, entry, e) != 0)
		return -1;
	look_at_conversation(g, op, entry);
	if (!slice_is(json_text(json_get(entry, "status")), "completed"))
		return 0;
	return look_at_artifacts(g, op, contract, entry, e);
}

static int
look_at_operations(struct gathering *g, const struct json *state, struct err *e)
{
	const struct json *entries = json_get(state, "ops"), *planned;
	struct json_iter it = json_iterate(json_get(state, "plan"));

	while (json_next(&it, NULL, &planned)) {
		const char *op = json_cstr_of(json_get(planned, "agent_id"));
		const struct json *entry = op != NULL ? json_get(entries, op) : NULL;

		if (look_at_entry(g, op, json_get(planned, "artifacts"), entry, e) != 0)
			return -1;
	}
	return 0;
}

/* Added ones keep their contract in their entry, and their artifacts under their spawn_id. */
static int
look_at_added(struct gathering *g, const struct json *state, struct err *e)
{
	struct json_iter it = json_iterate(json_get(state, "spawned"));
	const struct json *entry;

	while (json_next(&it, NULL, &entry)) {
		if (look_at_entry(g, json_cstr_of(json_get(entry, "spawn_id")),
			json_get(entry, "artifacts_expected"), entry, e) != 0)
			return -1;
	}
	return 0;
}

int
resume_facts(int run_fd, const struct json *state, bool read_only, struct json **out, char **problem_of_root,
    struct err *e)
{
	struct gathering g = {.run_fd = run_fd, .root = {.fd = -1}, .facts = json_object()};
	char *problem = NULL;
	struct err why = {0};
	int rc = 0;

	if (state != NULL) {
		g.root.fd = open_root(run_fd, state, read_only, &g.root.absent, &problem, &why);
		if (why.code != ERR_NONE) {
			rc = -1;
			*e = why;
		}
		if (rc == 0)
			rc = look_at_operations(&g, state, e);
		if (rc == 0)
			rc = look_at_added(&g, state, e);
	}
	/* A mark says that something was started, also of what may be missing from the state. */
	if (rc == 0)
		rc = look_for_marks(&g, e);
	if (rc == 0 && g.facts == NULL)
		rc = err_nomem(e);
	fd_close(&g.root.fd);
	if (rc == 0) {
		*out = g.facts;
		*problem_of_root = problem;
	} else {
		json_unref(g.facts);
		free(problem);
	}
	return rc;
}
