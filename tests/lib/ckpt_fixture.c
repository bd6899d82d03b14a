#include "ckpt_fixture.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const ckpt_seams[] = {
#include "ckpt_seams.inc"
};
const size_t ckpt_nseams = sizeof(ckpt_seams) / sizeof(ckpt_seams[0]);

static void
open_run(struct fixture *f)
{
	if (mkdirat(f->home.fd, FIXTURE_RUN, 0700) != 0)
		abort();
	f->run_fd = openat(f->home.fd, FIXTURE_RUN, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->run_fd < 0)
		abort();
}

void
fixture_make(struct fixture *f)
{
	umask(077);
	test_dir_make(&f->home);
	open_run(f);
}

void
fixture_remove(struct fixture *f)
{
	fd_close(&f->run_fd);
	test_dir_remove(&f->home);
}

void
fixture_again(struct fixture *f)
{
	struct err e = {0};

	fd_close(&f->run_fd);
	assert_works(fs_remove_tree(f->home.fd, FIXTURE_RUN, &e), e);
	open_run(f);
}

struct ckpt_options
fixture_options(const struct fixture *f, const struct fs_ops *fs)
{
	return (struct ckpt_options){
		.fs = fs,
		.runs_fd = f->home.fd,
		.run_fd = f->run_fd,
		.run_id = FIXTURE_RUN,
		.version = 3,
		.compact_records = CKPT_COMPACT_RECORDS,
		.compact_bytes = CKPT_COMPACT_BYTES,
		.first_sequence = 1,
	};
}

struct json *
fixture_json(const char *text)
{
	struct buf b = {0};
	struct json *v = NULL;
	struct err e = {0};
	const char *p;

	for (p = text; *p != '\0'; p++)
		buf_putc(&b, *p == '\'' ? '"' : *p);
	if (json_parse(buf_view(&b), NULL, &v, NULL, &e) != 0) {
		fprintf(stderr, "# fixture: %s: %s\n", e.msg, text);
		abort();
	}
	buf_clear(&b);
	return v;
}

struct json *
fixture_state(unsigned operations)
{
	struct json *state, *plan = json_array(), *entry;
	unsigned i;

	for (i = 0; i < operations; i++) {
		entry = json_set(json_object(), "agent_id", json_printf("op-%u", i));
		entry = json_set(entry, "dep_indices", json_array());
		entry = json_set(entry, "assignee", json_null());
		entry = json_set(entry, "node_id", json_printf("%032x", i));
		plan = json_append(plan, json_set(entry, "run", json_cstr("true")));
	}
	state = json_set(json_object(), "session_id", json_cstr("0123456789abcdef0123456789abcdef"));
	state = json_set(state, "prompt", json_cstr("do it"));
	state = json_set(state, "plan", plan);
	state = json_set(state, "config", fixture_json("{'artifact_root':'artifacts','timeout':null}"));
	state = json_set(state, "max_spawn", json_int(20));
	state = json_set(state, "flow_context", json_object());
	state = json_set(state, "ops", json_object());
	return json_set(state, "spawned", json_array());
}

struct json *
fixture_entry(const char *agent_id, const char *response)
{
	struct json *entry = json_set(json_object(), "agent_id", json_cstr(agent_id));

	entry = json_set(entry, "status", json_cstr("completed"));
	return json_set(entry, "response", json_cstr(response));
}

struct json *
fixture_spawned(const char *node_id, const char *status, const char *response)
{
	struct json *entry = json_set(json_object(), "node_id", json_cstr(node_id));

	entry = json_set(entry, "status", json_cstr(status));
	entry = json_set(entry, "response", response != NULL ? json_cstr(response) : json_null());
	return json_set(entry, "operation", json_cstr("run"));
}

static struct json *
model_spawned(const struct json *spawned, const struct json *entry)
{
	struct json_iter it = json_iterate(spawned);
	struct json *out = json_array();
	const struct json *old;
	bool replaced = false;

	while (json_next(&it, NULL, &old)) {
		const bool same = json_equal(json_get(old, "node_id"), json_get(entry, "node_id"));

		out = json_append(out, json_ref(same ? entry : old));
		replaced = replaced || same;
	}
	return replaced ? out : json_append(out, json_ref(entry));
}

struct json *
model_apply(struct json *state, enum ckpt_kind kind, const struct json *entry,
    const struct json *context)
{
	struct json *ops;

	if (kind == CKPT_OP) {
		ops = json_setn(json_ref(json_get(state, "ops")), json_text(json_get(entry, "agent_id")),
		    json_ref(entry));
		state = json_set(state, "ops", ops);
	} else if (kind == CKPT_SPAWNED)
		state = json_set(state, "spawned", model_spawned(json_get(state, "spawned"), entry));
	if (context != NULL)
		state = json_set(state, "flow_context", json_ref(context));
	return state;
}

bool
state_equals(const struct json *a, const struct json *b)
{
	return a != NULL && b != NULL && json_equal(a, b);
}

static void
print_value(const char *what, const struct json *v)
{
	struct buf b = {0};

	if (v != NULL)
		json_write(&b, v);
	print_message("# %s: %.2000s\n", what, buf_text(&b));
	buf_clear(&b);
}

void
assert_loads(int run_fd, const struct json *expected, enum ckpt_status status)
{
	struct ckpt_report report;
	struct json *state = NULL;
	struct err e = {0};

	assert_works(ckpt_load(run_fd, NULL, &state, &report, &e), e);
	if (!state_equals(state, expected)) {
		print_value("loaded", state);
		print_value("expected", expected);
		fail_msg("the loaded state is not the expected one");
	}
	assert_string_equal(ckpt_status_name(report.status), ckpt_status_name(status));
	json_unref(state);
}

void
put_pair(int run_fd, const char *base, const char *journal)
{
	unlinkat(run_fd, CKPT_BASE, 0);
	unlinkat(run_fd, CKPT_JOURNAL, 0);
	if (base != NULL)
		test_file_write(run_fd, CKPT_BASE, base);
	if (journal != NULL)
		test_file_write(run_fd, CKPT_JOURNAL, journal);
}
