/*
 * Files that a state names by their absolute path below a run's directory: of its own run, or of one that it
 * has gone on from. They are recorded by where that directory was; the state directory may have been moved
 * since, or be a copy, which has copies of its own of them.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "flowsup/checkpoint.h"
#include "flowsup/home.h"

struct moving {
	const char *run_path; /* of the run whose state it is */
	const char *run_id;   /* or NULL */
	const struct home *home; /* or NULL */
	const struct json *left; /* of config.run_directories: which the run has left */
	bool failed;	      /* memory ran out */
};

/* Where the name of the last run in a path stands; NULL: it leads through no run's directory. */
static const char *
run_in(const char *path)
{
	const char *found = NULL, *name;
	char id[RUN_ID_TEXT];
	size_t len;

	for (name = strchr(path, '/'); name != NULL; name = strchr(name, '/')) {
		name++;
		len = strcspn(name, "/");
		if (len != RUN_ID_TEXT - 1)
			continue;
		memcpy(id, name, len);
		id[len] = '\0';
		if (run_id_is_valid(id))
			found = name;
	}
	return found;
}

enum { PLACE_ITSELF, PLACE_BESIDE, PLACE_HOME, PLACES };

/* The directory of the run that `name` begins with, were it there; false: that is no place for it. */
static bool
place_of(const struct moving *m, int place, const char *name, struct buf *to)
{
	const char *slash = strrchr(m->run_path, '/');
	const int len = RUN_ID_TEXT - 1;

	if (place == PLACE_ITSELF && m->run_id != NULL && strncmp(m->run_id, name, (size_t)len) == 0)
		buf_puts(to, m->run_path);
	else if (place == PLACE_BESIDE && slash != NULL)
		buf_printf(to, "%.*s/%.*s", (int)(slash - m->run_path), m->run_path, len, name);
	else if (place == PLACE_HOME && m->home != NULL)
		buf_printf(to, "%s/" HOME_RUNS "/%.*s", m->home->path, len, name);
	return to->len > 0;
}

/* ---- Runs that were resumed from a directory that was not in its place ---- */

static bool
is_of_run(const char *directory, const char *run_id)
{
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct launch_read l;
	bool is = false;

	if (fd < 0)
		return false;
	/* An export has no record. */
	if (launch_read(fd, &l, NULL) == 0) {
		is = slice_is(json_text(json_get(l.object, "run_id")), run_id);
		launch_read_clear(&l);
	} else {
		is = faccessat(fd, RUN_LAUNCH, F_OK, AT_SYMLINK_NOFOLLOW) != 0;
	}
	fd_close(&fd);
	return is;
}

/* Those of them that are not of their run any more. NULL: memory ran out. */
static struct json *
places_left(const struct json *directories)
{
	struct json_iter it = json_iterate(directories);
	const struct json *run_id;
	struct json *left = json_object();
	struct slice place;
	const char *id;

	while (json_next(&it, &place, &run_id)) {
		id = json_cstr_of(run_id);
		if (id != NULL && run_id_is_valid(id) && !is_of_run(place.data, id))
			left = json_setn(left, place, json_ref(run_id));
	}
	return left;
}

/* A path below one of them as if it led through the run's own directory; false: it is below none. */
static bool
in_own_run(struct moving *m, const char *path, struct buf *to)
{
	struct json_iter it = json_iterate(m->left);
	const struct json *run_id;
	struct slice place;

	while (json_next(&it, &place, &run_id)) {
		if (strncmp(path, place.data, place.len) == 0 && (path[place.len] == '/' || path[place.len] == '\0')) {
			buf_printf(to, "/%s%s", json_cstr_of(run_id), path + place.len);
			m->failed = m->failed || to->failed;
			return !to->failed;
		}
	}
	return false;
}

/* Whatever is in its old place now is not its: it is missed where it would be. */
static void
where_it_would_be(struct moving *m, const char *name, struct buf *to)
{
	if (place_of(m, PLACE_HOME, name, to) || place_of(m, PLACE_BESIDE, name, to))
		buf_puts(to, name + RUN_ID_TEXT - 1);
}

static bool
is_there(struct moving *m, const char *path, const char *rest, const char *ending)
{
	struct buf full = {0};
	bool there;

	buf_printf(&full, "%s%s%s", path, rest, ending);
	m->failed = m->failed || full.failed;
	there = !full.failed && faccessat(AT_FDCWD, buf_text(&full), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	buf_clear(&full);
	return there;
}

/* The directory that the run has now; that has the file, unless `lost`. */
static bool
find_run(struct moving *m, const char *name, const char *ending, bool lost, struct buf *to)
{
	const char *rest = name + RUN_ID_TEXT - 1;
	int place;

	for (place = 0; place < PLACES; place++) {
		if (place_of(m, place, name, to) &&
		    is_there(m, buf_text(to), lost ? "" : rest, lost ? "" : ending))
			return true;
		m->failed = m->failed || to->failed;
		buf_reset(to);
	}
	return false;
}

/* A name below the run's directory, of which this one, an export or a copy, may have come without the files. */
static struct json *
followed_relative(struct moving *m, const char *path, const char *ending)
{
	struct buf place = {0}, rest = {0};
	struct json *now = NULL;

	buf_printf(&rest, "/%s", path);
	m->failed = m->failed || rest.failed;
	if (!m->failed && m->run_id != NULL && !is_there(m, m->run_path, buf_text(&rest), ending) &&
	    place_of(m, PLACE_HOME, m->run_id, &place) && is_there(m, buf_text(&place), buf_text(&rest), ending)) {
		now = json_printf("%s%s", buf_text(&place), buf_text(&rest));
		m->failed = m->failed || now == NULL;
	}
	m->failed = m->failed || place.failed;
	buf_clear(&place);
	buf_clear(&rest);
	return now;
}

/*
 * Where it is now, or NULL where it is where it was, or nowhere. What was lost is missed where its run is.
 * `ending` makes a file's name of it.
 */
static struct json *
moved_path(struct moving *m, const struct json *recorded, const char *ending)
{
	const char *path = json_cstr_of(recorded), *name;
	struct buf own = {0}, here = {0};
	struct json *now = NULL;
	bool left;

	if (path != NULL && path[0] != '/')
		return followed_relative(m, path, ending);
	left = path != NULL && in_own_run(m, path, &own);
	name = path != NULL ? run_in(left ? buf_text(&own) : path) : NULL;
	if (name != NULL && (find_run(m, name, ending, false, &here) ||
		((left || !is_there(m, path, "", ending)) && find_run(m, name, ending, true, &here))))
		buf_puts(&here, name + RUN_ID_TEXT - 1);
	else if (left && is_there(m, path, "", ending))
		where_it_would_be(m, name, &here);
	m->failed = m->failed || here.failed;
	if (here.len > 0 && !here.failed && strcmp(buf_text(&here), path) != 0) {
		now = json_cstr(buf_text(&here));
		m->failed = m->failed || now == NULL;
	}
	buf_clear(&own);
	buf_clear(&here);
	return now;
}

/* A member of an object of an entry; consumes entry. */
static struct json *
with_moved(struct moving *m, struct json *entry, const char *object, const char *member)
{
	struct json *now = moved_path(m, json_get(json_get(entry, object), member), "");

	return now == NULL ? entry
			   : json_set(entry, object, json_set(json_ref(json_get(entry, object)), member, now));
}

/* With another name the response is another value: its digest is made anew where it was right. */
static struct json *
with_moved_response(struct moving *m, struct json *entry)
{
	const char *digest = json_cstr_of(json_get(entry, "result_digest"));
	char now[CKPT_DIGEST_TEXT];
	struct json *moved;

	if (!ckpt_is_file(entry))
		return entry;
	if (digest != NULL && ckpt_digest(json_get(entry, "response"), now, NULL) == 0 && strcmp(digest, now) != 0)
		return entry;
	moved = with_moved(m, json_ref(entry), "response", "file");
	if (moved != NULL && moved != entry && digest != NULL)
		moved = ckpt_digest(json_get(moved, "response"), now, NULL) == 0
		    ? json_set(moved, "result_digest", json_cstr(now)) : NULL;
	json_unref(entry);
	return moved;
}

/* As it is now; itself where nothing is to be changed. */
static struct json *
moved_entry(struct moving *m, const struct json *recorded)
{
	struct json *entry = with_moved_response(m, json_ref(recorded)), *now;

	entry = with_moved(m, entry, CKPT_OUTPUT, "file");
	entry = with_moved(m, entry, "conversation", "store");
	entry = with_moved(m, entry, "conversation", "chat");
	now = moved_path(m, json_get(entry, CKPT_ATTEMPT_PATH), ".out");
	return now != NULL ? json_set(entry, CKPT_ATTEMPT_PATH, now) : entry;
}

/* Most stay as they are, and share their memory with what was recorded. Consumes state. */
static struct json *
with_moved_ops(struct moving *m, struct json *state)
{
	struct json_iter it = json_iterate(json_get(state, "ops"));
	struct json *ops = json_ref(json_get(state, "ops")), *now;
	const struct json *one;
	struct slice id;

	if (ops == NULL)
		return state;
	while (json_next(&it, &id, &one)) {
		now = moved_entry(m, one);
		if (now == one)
			json_unref(now);
		else
			ops = json_setn(ops, id, now);
	}
	return json_set(state, "ops", ops);
}

static struct json *
with_moved_spawned(struct moving *m, struct json *state)
{
	struct json_iter it = json_iterate(json_get(state, "spawned"));
	struct json *spawned = json_ref(json_get(state, "spawned")), *now;
	const struct json *one;
	size_t i;

	if (spawned == NULL)
		return state;
	for (i = 0; json_next(&it, NULL, &one); i++) {
		now = moved_entry(m, one);
		if (now == one)
			json_unref(now);
		else
			spawned = json_put(spawned, i, now);
	}
	return json_set(state, "spawned", spawned);
}

struct json *
rundir_follow_move(struct json *state, const char *run_path, const char *run_id, const struct home *h,
    struct err *e)
{
	struct moving m = {.run_path = run_path, .run_id = run_id, .home = h};
	struct json *left = places_left(json_get(json_get(state, "config"), CONFIG_RUN_DIRECTORIES));

	m.left = left;
	m.failed = left == NULL;
	state = with_moved(&m, state, "config", "artifact_root");
	state = with_moved_ops(&m, state);
	state = with_moved_spawned(&m, state);
	json_unref(left);
	if (state != NULL && !m.failed)
		return state;
	json_unref(state);
	err_nomem(e);
	return NULL;
}
