/*
 * Power loss by simulation. A run with compactions records what it does to files; from the record
 * disks are built as a power cut could leave them, and loaded. The model: what was fsynced of a
 * file is there, and so are the entries of a directory as they were at its last fsync. Everything
 * younger may be there or not: of a file any beginning of the bytes written since, of a directory
 * any number of the changes since, in their order, each directory for itself. A rename between two
 * directories is one change in each of them.
 *
 *	test_ckpt_powerloss [STATES [SEED]]
 */
#include "ckpt_workload.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EVENTS = 4096, NAMES = 64, OBJECTS = 512, STATES = 1000, TRANSITIONS = 24 };

enum event_kind { CREATE, APPEND, CUT, SYNC_FILE, SYNC_RUN, SYNC_STAGING, MOVE, UNLINK, ACKED };

struct event {
	enum event_kind kind;
	int object; /* CREATE, APPEND, CUT, SYNC_FILE */
	size_t from, len; /* APPEND: range of the byte store; CUT: length in len */
	char name[40], to[40]; /* MOVE: below staging, below run */
	bool exchange;
	unsigned acked;
};

/* ---- Recording: a table of calls around the real one ---- */

struct recorder {
	struct fs_ops ops;
	struct event events[EVENTS];
	unsigned count;
	struct buf bytes;
	int run_fd;
	ino_t staging, run;
	ino_t inodes[OBJECTS]; /* of objects, by number */
	int objects;
};

static struct recorder *
recorder_of(const struct fs_ops *fs)
{
	return (struct recorder *)(uintptr_t)fs;
}

/* On the writer's thread or before it starts; the two never record at the same time. */
static struct event *
add(struct recorder *r, enum event_kind kind)
{
	if (r->count == EVENTS)
		abort();
	r->events[r->count] = (struct event){.kind = kind, .object = -1};
	return &r->events[r->count++];
}

static ino_t
inode_of(int fd)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		abort();
	return st.st_ino;
}

/* The newest object with this inode: numbers are used again after an unlink. */
static int
object_of(const struct recorder *r, int fd)
{
	const ino_t ino = inode_of(fd);
	int i;

	for (i = r->objects; i-- > 0;)
		if (r->inodes[i] == ino)
			return i;
	return -1;
}

static int
r_openat(const struct fs_ops *fs, const char *what, int dirfd, const char *path, int flags,
    mode_t mode)
{
	struct recorder *r = recorder_of(fs);
	int fd = fs_real.openat(&fs_real, what, dirfd, path, flags, mode);
	struct event *ev;

	if (fd >= 0 && (flags & O_CREAT) != 0) {
		if (r->objects == OBJECTS)
			abort();
		ev = add(r, CREATE);
		ev->object = r->objects;
		r->inodes[r->objects++] = inode_of(fd);
		snprintf(ev->name, sizeof(ev->name), "%.39s", path);
	}
	return fd;
}

static ssize_t
r_write(const struct fs_ops *fs, const char *what, int fd, const void *from, size_t len)
{
	struct recorder *r = recorder_of(fs);
	ssize_t n = fs_real.write(&fs_real, what, fd, from, len);
	struct event *ev;

	if (n > 0) {
		ev = add(r, APPEND);
		ev->object = object_of(r, fd);
		ev->from = r->bytes.len;
		ev->len = (size_t)n;
		buf_add(&r->bytes, from, (size_t)n);
	}
	return n;
}

static int
r_fsync(const struct fs_ops *fs, const char *what, int fd)
{
	struct recorder *r = recorder_of(fs);
	const ino_t ino = inode_of(fd);
	int result = fs_real.fsync(&fs_real, what, fd);

	if (ino == r->run)
		add(r, SYNC_RUN);
	else if (strstr(what, "sync_staging") != NULL)
		add(r, SYNC_STAGING);
	else
		add(r, SYNC_FILE)->object = object_of(r, fd);
	return result;
}

static int
r_ftruncate(const struct fs_ops *fs, const char *what, int fd, off_t len)
{
	struct recorder *r = recorder_of(fs);
	int result = fs_real.ftruncate(&fs_real, what, fd, len);
	struct event *ev = add(r, CUT);

	ev->object = object_of(r, fd);
	ev->len = (size_t)len;
	return result;
}

static int
r_renameat2(const struct fs_ops *fs, const char *what, int fromfd, const char *from, int tofd,
    const char *to, unsigned flags)
{
	struct recorder *r = recorder_of(fs);
	int result = fs_real.renameat2(&fs_real, what, fromfd, from, tofd, to, flags);
	struct event *ev;

	if (result == 0) {
		ev = add(r, MOVE);
		snprintf(ev->name, sizeof(ev->name), "%.39s", from);
		snprintf(ev->to, sizeof(ev->to), "%.39s", to);
		ev->exchange = (flags & RENAME_EXCHANGE) != 0;
	}
	return result;
}

static int
r_unlinkat(const struct fs_ops *fs, const char *what, int dirfd, const char *path, int flags)
{
	struct recorder *r = recorder_of(fs);
	int result = fs_real.unlinkat(&fs_real, what, dirfd, path, flags);

	if (result == 0)
		snprintf(add(r, UNLINK)->name, 40, "%.39s", path);
	return result;
}

/* ---- The run ---- */

static struct json *models[TRANSITIONS + 1];

static struct json *
nth_entry(int i)
{
	return i % 3 == 1 ? fixture_spawned(i % 2 ? "n" : "m", "completed", "response")
			  : fixture_entry(i % 4 ? "op-0" : "op-1", i % 5 ? "short" : "a longer response");
}

static void
record_run(struct recorder *r, const struct fixture *fx)
{
	struct ckpt_options o = fixture_options(fx, &r->ops);
	struct json *context = json_object();
	struct ckpt_writer *w = NULL;
	struct err e = {0};
	int i;

	o.compact_records = 5;
	o.literal_limits = true;
	models[0] = fixture_state(2);
	assert_works(ckpt_writer_open(&o, models[0], &w, &e), e);
	add(r, ACKED)->acked = 0;
	for (i = 0; i < TRANSITIONS; i++) {
		const enum ckpt_kind kind = i % 11 == 7 ? CKPT_CONTEXT : i % 3 == 1 ? CKPT_SPAWNED : CKPT_OP;
		struct json *entry = kind == CKPT_CONTEXT ? NULL : nth_entry(i);

		context = json_set(context, i % 2 ? "a" : "b", json_int(i));
		models[i + 1] = model_apply(json_ref(models[i]), kind, entry, context);
		assert_works(ckpt_admit(w, kind, entry, json_ref(context), NULL, &e), e);
		/* Some are waited for together, so that batches occur too. */
		if (i % 4 == 3) {
			assert_works(ckpt_flush(w, &e), e);
			add(r, ACKED)->acked = (unsigned)i + 1;
		}
	}
	assert_works(ckpt_writer_close(w, false, &e), e);
	add(r, ACKED)->acked = TRANSITIONS;
	json_unref(context);
}

/* ---- Disks ---- */

struct content {
	size_t from[64], len[64]; /* pieces of the byte store */
	unsigned pieces;
	size_t size;
};

/* A directory: names and the objects they lead to. */
struct directory {
	char names[NAMES][40];
	int objects[NAMES];
	unsigned count;
};

/* One directory as it was at its last fsync, and what happened to it since. */
struct journalled {
	struct directory durable, now;
	struct directory states[NAMES * 4]; /* after each change since */
	unsigned changes;
};

static int *
entry_of(struct directory *d, const char *name)
{
	unsigned i;

	for (i = 0; i < d->count; i++)
		if (strcmp(d->names[i], name) == 0)
			return &d->objects[i];
	return NULL;
}

static int
lookup(struct directory *d, const char *name)
{
	int *object = entry_of(d, name);

	return object != NULL ? *object : -1;
}

static void
set_entry(struct directory *d, const char *name, int object)
{
	int *place = entry_of(d, name);
	unsigned at;

	if (place != NULL && object >= 0)
		*place = object;
	else if (place != NULL) {
		at = (unsigned)(place - d->objects);
		d->count--;
		d->objects[at] = d->objects[d->count];
		memcpy(d->names[at], d->names[d->count], sizeof(d->names[at]));
	} else if (object >= 0) {
		assert_true(d->count < NAMES);
		snprintf(d->names[d->count], sizeof(d->names[0]), "%s", name);
		d->objects[d->count++] = object;
	}
}

static void
changed(struct journalled *j)
{
	assert_true(j->changes < NAMES * 4);
	j->states[j->changes++] = j->now;
}

static void
synced(struct journalled *j)
{
	j->durable = j->now;
	j->changes = 0;
}

/* All that is known when the power goes after `cut` events. */
struct disk {
	struct content now[OBJECTS];
	size_t durable[OBJECTS]; /* bytes that an fsync has covered */
	bool shortened[OBJECTS]; /* a cut that no fsync has covered yet */
	struct journalled run, staging;
	unsigned acked;
	bool started;
};

static void
disk_move(struct disk *d, const struct event *ev)
{
	const int made = lookup(&d->staging.now, ev->name), old = lookup(&d->run.now, ev->to);

	set_entry(&d->run.now, ev->to, made);
	set_entry(&d->staging.now, ev->name, ev->exchange ? old : -1);
	changed(&d->run);
	changed(&d->staging);
}

static void
disk_append(struct content *c, const struct event *ev)
{
	assert_true(c->pieces < 64);
	c->from[c->pieces] = ev->from;
	c->len[c->pieces++] = ev->len;
	c->size += ev->len;
}

static void
disk_event(struct disk *d, const struct event *ev)
{
	switch (ev->kind) {
	case CREATE:
		set_entry(&d->staging.now, ev->name, ev->object);
		changed(&d->staging);
		break;
	case APPEND:
		disk_append(&d->now[ev->object], ev);
		break;
	case CUT: /* not in this run: its writes do not fail */
		fail();
		break;
	case SYNC_FILE:
		d->durable[ev->object] = d->now[ev->object].size;
		break;
	case SYNC_RUN:
		synced(&d->run);
		break;
	case SYNC_STAGING:
		synced(&d->staging);
		break;
	case MOVE:
		disk_move(d, ev);
		break;
	case UNLINK:
		set_entry(&d->staging.now, ev->name, -1);
		changed(&d->staging);
		break;
	case ACKED:
		d->acked = ev->acked;
		d->started = true;
		break;
	}
}

/* How a cut chooses among what may or may not have reached the disk. */
enum choice { NOTHING, EVERYTHING, RANDOM };

static uint64_t random_state = 1;

static size_t
choose(enum choice how, size_t least, size_t most)
{
	if (how != RANDOM)
		return how == NOTHING ? least : most;
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return least + (size_t)(random_state >> 20) % (most - least + 1);
}

static void
write_object(int dirfd, const char *name, const struct content *c, size_t size, const char *store)
{
	int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct err e = {0};
	unsigned i;
	size_t n;

	assert_true(fd >= 0);
	for (i = 0; i < c->pieces && size > 0; i++, size -= n) {
		n = c->len[i] < size ? c->len[i] : size;
		assert_works(fs_write_all(&fs_real, "test", fd,
		    (struct slice){store + c->from[i], n}, &e), e);
	}
	fd_close(&fd);
}

/* Builds the run directory of a disk after the cut. */
static void
disk_build(const struct disk *d, enum choice how, int run_fd, const char *store)
{
	static const char *const names[] = {CKPT_BASE, CKPT_JOURNAL};
	const size_t state = choose(how, 0, d->run.changes);
	struct directory dir = state == 0 ? d->run.durable : d->run.states[state - 1];
	int i, object;

	for (i = 0; i < 2; i++) {
		object = lookup(&dir, names[i]);
		unlinkat(run_fd, names[i], 0);
		if (object >= 0)
			write_object(run_fd, names[i], &d->now[object],
			    choose(how, d->durable[object], d->now[object].size), store);
	}
}

static void
judge(const struct disk *d, int run_fd, unsigned cut, enum choice how)
{
	struct ckpt_report report;
	struct json *state = NULL;
	struct err e = {0};
	int i, found = -1;

	if (ckpt_load(run_fd, NULL, &state, &report, &e) != 0) {
		if (d->started || e.code != ERR_NOTFOUND)
			fail_msg("cut after %u events (choice %d), %u acknowledged: %s", cut, (int)how,
			    d->acked, e.msg);
		json_unref(state);
		return;
	}
	for (i = TRANSITIONS; i >= 0 && found < 0; i--)
		if (json_equal(state, models[i]))
			found = i;
	json_unref(state);
	if (found < (int)d->acked)
		fail_msg("cut after %u events (choice %d): %u acknowledged, %d there", cut, (int)how,
		    d->acked, found);
}

static unsigned states = STATES;
static uint64_t seed = 20261129;

static void
replay_to(struct disk *d, const struct recorder *r, unsigned cut)
{
	unsigned i;

	memset(d, 0, sizeof(*d));
	for (i = 0; i < cut; i++)
		disk_event(d, &r->events[i]);
}

static void
test_powerloss__every_boundary_and_samples(void **unused)
{
	static struct recorder r;
	static struct disk d;
	struct fixture fx;
	unsigned cut, i, built = 0, moves = 0;
	enum choice how;

	(void)unused;
	fixture_make(&fx);
	r.ops = fs_real;
	r.ops.openat = r_openat;
	r.ops.write = r_write;
	r.ops.fsync = r_fsync;
	r.ops.ftruncate = r_ftruncate;
	r.ops.renameat2 = r_renameat2;
	r.ops.unlinkat = r_unlinkat;
	r.run_fd = fx.run_fd;
	r.run = inode_of(fx.run_fd);
	record_run(&r, &fx);
	for (i = 0; i < r.count; i++)
		moves += r.events[i].kind == MOVE && r.events[i].exchange;
	assert_true(moves >= 4);
	/* The positive control: with everything on the disk, the last state is there. */
	replay_to(&d, &r, r.count);
	disk_build(&d, EVERYTHING, fx.run_fd, r.bytes.data);
	assert_loads(fx.run_fd, models[TRANSITIONS], CKPT_CLEAN);
	for (cut = 0; cut <= r.count; cut++) {
		replay_to(&d, &r, cut);
		for (how = NOTHING; how <= EVERYTHING; how++, built++) {
			disk_build(&d, how, fx.run_fd, r.bytes.data);
			judge(&d, fx.run_fd, cut, how);
		}
	}
	random_state = seed;
	for (i = 0; i < states; i++, built++) {
		cut = (unsigned)choose(RANDOM, 0, r.count);
		replay_to(&d, &r, cut);
		disk_build(&d, RANDOM, fx.run_fd, r.bytes.data);
		judge(&d, fx.run_fd, cut, RANDOM);
	}
	print_message("# %u events with %u exchanges, %u disks built, seed %llu\n", r.count, moves, built,
	    (unsigned long long)seed);
	for (i = 0; i <= TRANSITIONS; i++)
		json_unref(models[i]);
	buf_clear(&r.bytes);
	fixture_remove(&fx);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_powerloss__every_boundary_and_samples),
};

int
main(int argc, char **argv)
{
	use_fast_directory();
	if (argc > 1)
		states = (unsigned)strtoul(argv[1], NULL, 10);
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 10);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("power loss", tests, NULL, NULL);
}
