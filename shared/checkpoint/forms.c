/* Other forms of a checkpoint: migrated, written anew, compacted. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base.h"
#include "capture.h"
#include "files.h"
#include "stale.h"

static bool
is_known(struct slice name)
{
	const char *const *known;

	for (known = base_member_order(); *known != NULL; known++)
		if (slice_is(name, *known))
			return true;
	return false;
}

/* Members that only the older file knew, as an object; empty when there are none. */
static struct json *
unknown_members(const struct json *state)
{
	struct json_iter it = json_iterate(state);
	struct json *found = json_object();
	const struct json *value;
	struct slice name;

	while (json_next(&it, &name, &value))
		if (!is_known(name))
			found = json_setn(found, name, json_ref(value));
	return found;
}

static struct json *
value_or(const struct json *v, struct json *otherwise)
{
	if (v == NULL)
		return otherwise;
	json_unref(otherwise);
	return json_ref(v);
}

/*
 * What version 3 has no place for, as an object: the unknown members, and under the names of known ones,
 * which no unknown one can have, what else is to be put back in a file of version 2. See version_2_form().
 */
static struct json *
v2_members(const struct json *state)
{
	const struct json *config = json_get(state, "config");
	const struct json *taken = json_get(config, CKPT_V2_MEMBERS);
	struct json *found = unknown_members(state);

	if (taken != NULL)
		found = json_set(found, "config", json_set(json_object(), CKPT_V2_MEMBERS, json_ref(taken)));
	if (plan_has_nodes(json_get(state, "plan")) &&
	    !plan_needs_nodes(config, json_get(state, "spawned")))
		found = json_set(found, "plan", json_cstr("node_id"));
	return found;
}

static struct json *
migrated_config(const struct json *state)
{
	struct json *config = value_or(json_get(state, "config"), json_object());
	struct json *found = v2_members(state);

	if (found != NULL && json_length(found) == 0) {
		json_unref(found);
		return config;
	}
	return json_set(config, CKPT_V2_MEMBERS, found);
}

struct json *
ckpt_migrate(struct json *state, int from_version, struct err *e)
{
	struct json *made = json_object();
	const char *const *name;
	const struct json *value;

	if (from_version == 3) {
		json_unref(made);
		return state;
	}
	for (name = base_member_order(); *name != NULL; name++) {
		value = json_get(state, *name);
		if (strcmp(*name, "config") == 0)
			made = json_set(made, *name, migrated_config(state));
		else if (strcmp(*name, "spawned") == 0)
			made = json_set(made, *name, value_or(value, json_array()));
		else if (strcmp(*name, "session_id") == 0 || strcmp(*name, "prompt") == 0)
			made = json_set(made, *name, value_or(value, json_null()));
		else if (value != NULL)
			made = json_set(made, *name, json_ref(value));
	}
	json_unref(state);
	if (made == NULL)
		err_nomem(e);
	return made;
}

/* ---- A new pair, or a new single file ---- */

/* A new object on its way: whole under a name of its own, before it gets the one it is for. */
struct fresh {
	const struct fs_ops *fs;
	int dirfd;
	const char *name;
	char temp[STAGING_NAME + 1];
	struct pin pin;
	bool named;
};

static void
fresh_init(struct fresh *f, const struct fs_ops *fs, int dirfd, const char *name)
{
	*f = (struct fresh){.fs = fs, .dirfd = dirfd, .name = name, .pin = {.fd = -1}};
}

static int
fresh_write(struct fresh *f, struct slice bytes, struct err *e)
{
	const struct fs_ops *fs = f->fs;
	struct stat st;

	f->temp[0] = '.';
	if (generation_make(f->temp + 1, e) != 0)
		return -1;
	f->pin.fd = fs->openat(fs, "ckpt.new.create", f->dirfd, f->temp,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (f->pin.fd < 0)
		return err_sys(e, ERR_CREATE, errno, "cannot create '%s'", f->name);
	if (fs->fstat(fs, "ckpt.new.inspect", f->pin.fd, &st) != 0)
		return err_sys(e, ERR_IO, errno, "cannot inspect '%s'", f->name);
	f->pin.id = fs_identity_of(&st);
	if (fs_write_all(fs, "ckpt.new.write", f->pin.fd, bytes, e) != 0)
		return err_wrap(e, "'%s'", f->name);
	if (fs->fsync(fs, "ckpt.new.sync", f->pin.fd) != 0)
		return err_sys(e, ERR_IO, errno, "fsync of '%s'", f->name);
	return 0;
}

/* File systems without RENAME_NOREPLACE get a look and a plain rename. */
static int
fresh_name(struct fresh *f, struct err *e)
{
	const struct fs_ops *fs = f->fs;
	struct stat st;
	int done;

	done = fs->renameat2(fs, "ckpt.new.install", f->dirfd, f->temp, f->dirfd, f->name,
	    RENAME_NOREPLACE);
	if (done != 0 && (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP)) {
		errno = EEXIST;
		if (fs->fstatat(fs, "ckpt.new.look", f->dirfd, f->name, &st,
		    AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
			done = fs->renameat2(fs, "ckpt.new.install", f->dirfd, f->temp, f->dirfd,
			    f->name, 0);
	}
	if (done != 0)
		return err_sys(e, ERR_CREATE, errno, "cannot create '%s'", f->name);
	f->named = true;
	return 0;
}

/* Takes back what was made, while its name still leads there; whether nothing of it is left. */
static bool
fresh_undo(struct fresh *f)
{
	const struct fs_ops *fs = f->fs;
	const char *name = f->named ? f->name : f->temp;
	struct stat st;

	if (f->pin.fd < 0)
		return true;
	if (fs->fstatat(fs, "ckpt.new.find", f->dirfd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT;
	if (!fs_same(fs_identity_of(&st), f->pin.id))
		return true;
	return fs->unlinkat(fs, "ckpt.new.unlink", f->dirfd, name, 0) == 0;
}

static void
fresh_close(struct fresh *f)
{
	if (f->pin.fd >= 0)
		(void)fs_close(f->fs, "ckpt.new.close", &f->pin.fd, NULL);
}

/*
 * The state as version 2 had it, or would have: what v2_members() put away is where it was, in config
 * stays what is no such thing. *nodes: the plan keeps its node ids though nothing needs them.
 */
static struct json *
version_2_form(const struct json *state, bool *nodes)
{
	const struct json *config = json_get(state, "config");
	const struct json *away = json_get(config, CKPT_V2_MEMBERS), *value;
	const struct json *taken = json_get(json_get(away, "config"), CKPT_V2_MEMBERS);
	struct json *root = json_ref(state), *cleared;
	struct json_iter it = json_iterate(away);
	struct slice name;

	*nodes = slice_is(json_text(json_get(away, "plan")), "node_id");
	if (json_type(away) != JSON_OBJECT)
		return root;
	while (json_next(&it, &name, &value))
		if (!is_known(name) && !slice_is(name, "version"))
			root = json_setn(root, name, json_ref(value));
	cleared = json_remove(json_ref(config), slice_of(CKPT_V2_MEMBERS));
	if (taken != NULL)
		cleared = json_set(cleared, CKPT_V2_MEMBERS, json_ref(taken));
	return json_set(root, "config", cleared);
}

/* Checked as a reader will check it: whatever stood in config, no base may come of it. */
static int
encode_version_2(struct sink *to, const struct json *state, struct err *e)
{
	struct json *root;
	struct state s;
	bool nodes;
	int result = -1, version;

	root = version_2_form(state, &nodes);
	if (root == NULL)
		return err_nomem(e);
	if (base_version(root, &version, NULL, e) == 0 && base_check(root, 2, NULL, e) == 0 &&
	    state_init(&s, root, e) == 0) {
		result = snapshot_encode(to, &s, nodes, e);
		state_clear(&s);
	}
	json_unref(root);
	return result;
}

static int
encode_new(struct sink *to, int version, const struct json *state, struct err *e)
{
	char generation[CKPT_GENERATION_TEXT];
	struct state s;
	int result;

	if (state_check(state, NULL, e) != 0)
		return -1;
	if (version == 2)
		return encode_version_2(to, state, e);
	if (generation_make(generation, e) != 0 || state_init(&s, state, e) != 0)
		return -1;
	result = base_encode(to, generation, &s, e);
	state_clear(&s);
	return result;
}

int
ckpt_write_new(const struct fs_ops *fs, int dirfd, const char *base_name, int version,
    const struct json *state, struct err *e)
{
	struct buf name = {0};
	struct sink whole = {0};
	struct fresh base, journal;
	int result = -1;

	if (fs == NULL)
		fs = &fs_real;
	buf_printf(&name, "%s.journal", base_name);
	fresh_init(&base, fs, dirfd, base_name);
	fresh_init(&journal, fs, dirfd, buf_text(&name));
	if (buf_ok(&name, e) != 0 || encode_new(&whole, version, state, e) != 0)
		goto out;
	if (fresh_write(&base, buf_view(&whole.b), e) != 0 ||
	    (version == 3 && fresh_write(&journal, (struct slice){"", 0}, e) != 0))
		goto out;
	/* The journal first, so that no crash leaves a base without one. */
	if ((version == 3 && fresh_name(&journal, e) != 0) || fresh_name(&base, e) != 0 ||
	    fs_sync_dir(fs, "ckpt.new.sync_dir", dirfd, NULL, e) != 0)
		goto out;
	result = 0;
out:
	/* A base that cannot be taken back keeps its journal: together they are whole. */
	if (result != 0 && fresh_undo(&base))
		fresh_undo(&journal);
	fresh_close(&base);
	fresh_close(&journal);
	sink_clear(&whole);
	buf_clear(&name);
	return result;
}

/* ---- Compaction of a finished run ---- */

static int
compact_captured(struct capture *c, const struct ckpt_options *o, const struct json *state,
    int64_t stale, struct err *e)
{
	struct state s;
	struct files f;
	bool covered;
	int result;

	if (state_init(&s, state, e) != 0)
		return -1;
	if (stale > 0 && stale_check(c, &s, e) != 0) {
		state_clear(&s);
		return -1;
	}
	result = files_adopt(&f, o, c->base, c->journal, e);
	if (result == 0) {
		c->base.fd = c->journal.fd = -1;
		result = files_rotate(&f, &s, &covered, e);
		if (result == 0 && o->sweep)
			place_sweep(&f.place);
		files_close(&f);
	}
	state_clear(&s);
	return result;
}

int
ckpt_compact(const struct ckpt_options *options, struct ckpt_report *report, struct err *e)
{
	struct ckpt_options o = *options;
	struct ckpt_load_options how = {.fs = options->fs};
	struct json *state = NULL;
	struct capture c;
	int result;

	if (o.fs == NULL)
		o.fs = &fs_real;
	result = load_captured(&c, o.run_fd, &how, &state, report, e);
	if (result == 0 && c.version != 3)
		result = err_set(e, ERR_REFUSED, "a checkpoint of version %d has no journal to compact",
		    c.version);
	if (result == 0)
		result = compact_captured(&c, &o, state, report->stale_records, e);
	capture_clear(&c);
	json_unref(state);
	return result;
}
