#include <pwd.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "launch.h"

enum { LAUNCH_ACCOUNT = 16384 };
#define LAUNCH_MAX_BYTES ((size_t)64 << 20)

static const struct {
	const char *name;
	int resource;
} limits[] = {
    {"cpu", RLIMIT_CPU},
    {"fsize", RLIMIT_FSIZE},
    {"data", RLIMIT_DATA},
    {"stack", RLIMIT_STACK},
    {"core", RLIMIT_CORE},
    {"nofile", RLIMIT_NOFILE},
    {"as", RLIMIT_AS},
    {"nproc", RLIMIT_NPROC},
};
enum { LIMITS = sizeof(limits) / sizeof(limits[0]) };
_Static_assert((int)LIMITS <= (int)PROC_MAX_RLIMITS, "a start takes every limit that is recorded");

const char *
launch_limit_name(int resource)
{
	size_t i;

	for (i = 0; i < LIMITS; i++)
		if (limits[i].resource == resource)
			return limits[i].name;
	return "unknown";
}

/* null is "no limit". */
static struct json *
limit_value(rlim_t value)
{
	return value == RLIM_INFINITY ? json_null() : json_uint(value);
}

static struct json *
limits_json(void)
{
	struct json *all = json_object();
	struct rlimit r;
	size_t i;

	for (i = 0; i < LIMITS; i++) {
		if (getrlimit((__rlimit_resource_t)limits[i].resource, &r) != 0)
			continue;
		all = json_set(all, limits[i].name,
		    json_append(json_append(json_array(), limit_value(r.rlim_cur)),
			limit_value(r.rlim_max)));
	}
	return all;
}

static struct json *
account_json(void)
{
	char text[LAUNCH_ACCOUNT];
	struct passwd entry, *found = NULL;

	if (getpwuid_r(getuid(), &entry, text, sizeof(text), &found) != 0 || found == NULL)
		return json_null();
	return json_string_lossy(slice_of(entry.pw_name), NULL);
}

static struct json *
argv_json(char *const *argv)
{
	struct json *all = json_array();

	for (; *argv != NULL; argv++)
		all = json_append(all, json_string_lossy(slice_of(*argv), NULL));
	return all;
}

static struct json *
text_or_null(const char *text)
{
	return text != NULL ? json_cstr(text) : json_null();
}

static struct json *
place_json(struct json *o)
{
	struct proc_place place;

	/* Who asked is told to people; a run is judged by its worker's place, never by this. */
	if (proc_place_here(&place, NULL) != 0)
		return o;
	o = json_set(o, "host", json_string_lossy(slice_of(place.host), NULL));
	return json_set(o, "boot_id", json_string_lossy(slice_of(place.boot_id), NULL));
}

int
launch_json(const struct launch *l, struct json **out, struct err *e)
{
	struct json *cwd = json_cstr(l->cwd);
	struct json *document = l->document != NULL ? json_cstr(l->document) : NULL;
	struct json *o = json_set(json_object(), "launch_version", json_int(LAUNCH_VERSION));

	if (cwd == NULL && o != NULL) {
		json_unref(o);
		json_unref(document);
		return err_set(e, ERR_ENVIRONMENT,
		    "the working directory's name is not UTF-8, so it cannot be recorded exactly");
	}
	o = json_set(o, "run_id", json_cstr(l->run_id));
	o = json_set(o, "session_id", json_cstr(l->session_id));
	o = json_set(o, "invocation_id", json_cstr(l->invocation_id));
	o = json_set(o, "kind", json_cstr(l->kind));
	o = json_set(o, "name", json_string_lossy(slice_of(l->name), NULL));
	o = json_set(o, "argv", argv_json(l->argv));
	o = json_set(o, "cwd", cwd);
	o = json_set(o, "umask", json_uint(l->umask));
	o = json_set(o, "limits", l->limits != NULL ? json_ref(l->limits) : limits_json());
	o = json_set(o, "uid", json_uint(getuid()));
	o = json_set(o, "user", account_json());
	o = json_set(o, "pid", json_int(getpid()));
	o = place_json(o);
	o = json_set(o, "created_at", json_real((double)clock_wall_ns() / (double)NS_PER_S));
	o = json_set(o, "resumed_from", text_or_null(l->resumed_from));
	/* A path that is not UTF-8 cannot be kept exactly; nothing is compared with its document. */
	if (document != NULL)
		o = json_set(o, "document", document);
	if (document != NULL && l->document_digest != NULL)
		o = json_set(o, "document_digest", json_cstr(l->document_digest));
	if (json_length(l->withheld) > 0)
		o = json_set(o, "withheld", json_ref(l->withheld));
	o = json_set(o, "options", l->options != NULL ? json_ref(l->options) : json_object());
	if (o == NULL)
		return err_nomem(e);
	*out = o;
	return 0;
}

static bool
read_limit(const struct json *value, rlim_t *to)
{
	uint64_t number;

	if (value != NULL && json_type(value) == JSON_NULL) {
		*to = RLIM_INFINITY;
		return true;
	}
	if (!json_uint64(value, &number))
		return false;
	*to = (rlim_t)number;
	return true;
}

static bool
read_limits(const struct json *all, struct launch_read *l)
{
	size_t i;

	for (i = 0; i < LIMITS; i++) {
		const struct json *pair = json_get(all, limits[i].name);
		struct proc_rlimit *to = &l->rlimits[l->nrlimits];

		if (pair == NULL)
			continue;
		if (!read_limit(json_at(pair, 0), &to->value.rlim_cur) ||
		    !read_limit(json_at(pair, 1), &to->value.rlim_max))
			return false;
		to->resource = limits[i].resource;
		l->nrlimits++;
	}
	return true;
}

static bool
read_texts(struct launch_read *l)
{
	const struct {
		const char *name;
		const char **to;
		bool must;
	} texts[] = {
	    {"session_id", &l->session_id, true},
	    {"invocation_id", &l->invocation_id, true},
	    {"kind", &l->kind, true},
	    {"name", &l->name, true},
	    {"cwd", &l->cwd, true},
	    {"resumed_from", &l->resumed_from, false},
	    {"document", &l->document, false},
	    {"document_digest", &l->document_digest, false},
	};
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		*texts[i].to = json_cstr_of(json_get(l->object, texts[i].name));
		if (*texts[i].to == NULL && texts[i].must)
			return false;
	}
	return true;
}

static int
read_object(struct launch_read *l, struct err *e)
{
	int64_t version = 0, mask = -1;

	json_int64(json_get(l->object, "launch_version"), &version);
	if (version > LAUNCH_VERSION)
		return err_set(e, ERR_REFUSED, "'%s' has version %lld, this program knows %d",
		    RUN_LAUNCH, (long long)version, LAUNCH_VERSION);
	json_int64(json_get(l->object, "umask"), &mask);
	l->options = json_get(l->object, "options");
	if (version != LAUNCH_VERSION || mask < 0 || mask > 0777 ||
	    l->options == NULL || json_type(l->options) != JSON_OBJECT || !read_texts(l) || l->cwd[0] != '/' ||
	    !read_limits(json_get(l->object, "limits"), l))
		return err_set(e, ERR_IO, "'%s' is damaged", RUN_LAUNCH);
	l->umask = (mode_t)mask;
	l->limits = json_get(l->object, "limits");
	l->withheld = json_get(l->object, "withheld");
	return 0;
}

int
launch_read(int run_fd, struct launch_read *out, struct err *e)
{
	const struct json_options o = {.max_bytes = LAUNCH_MAX_BYTES};
	struct launch_read l = {0};
	struct buf text = {0};
	int rc = -1;

	if (fs_read_private_file(run_fd, RUN_LAUNCH, LAUNCH_MAX_BYTES, &text, e) == 0) {
		if (json_parse(buf_view(&text), &o, &l.object, NULL, e) != 0)
			err_wrap(e, "'%s'", RUN_LAUNCH);
		else
			rc = read_object(&l, e);
	}
	if (rc == 0)
		*out = l;
	else
		launch_read_clear(&l);
	buf_clear(&text);
	return rc;
}

void
launch_read_clear(struct launch_read *l)
{
	json_unref(l->object);
	*l = (struct launch_read){0};
}
