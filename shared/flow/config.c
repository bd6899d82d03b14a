/* The configuration file: one table of keys, read by the reader of documents. */
#include "flowsup/config.h"

#include <stdlib.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/places.h"
#include "model.h"

static void
set_defaults(struct config_fields *f)
{
	*f = (struct config_fields){
	    .keep = {CONFIG_KEEP_DAYS, CONFIG_KEEP_RUNS, CONFIG_KEEP_FAILED_DAYS},
	    .inline_limit = CONFIG_INLINE_LIMIT,
	};
}

static void
take_fields(struct config *c, const struct config_fields *f)
{
	c->keep_days = f->keep.days;
	c->keep_runs = f->keep.runs;
	c->keep_failed_days = f->keep.failed_days;
	c->notify = f->notify;
	c->secrets = f->secrets;
	c->durability = f->durability;
	c->inline_limit = f->inline_limit;
	c->watchdog_ns = f->watchdog_ns;
}

static int
read_fields(struct config *c, struct flow_diagnostics *d, struct err *e)
{
	struct flow_owned own = {0};
	struct reader r = {.own = &own, .origin = ORIGIN_PERSON, .d = d};
	struct config_fields fields;
	int rc = 0;

	r.interned.arena = &own.arena;
	set_defaults(&fields);
	read_object(&r, OBJECT_CONFIG, c->object, &fields);
	diagnostics_sort(d);
	if (r.nomem)
		rc = err_nomem(e);
	else if (r.failed)
		rc = diagnostics_error(d, c->path, ERR_DOCUMENT, e);
	else
		take_fields(c, &fields);
	interned_clear(&r.interned);
	arena_clear(&own.arena);
	return rc;
}

int
config_read_all(char *const *envp, struct config *c, struct flow_diagnostics *d, struct err *e)
{
	int rc;

	*c = (struct config){0};
	rc = place_config(envp, "config.yaml", &c->path, e);
	c->found = rc == 0 && c->path != NULL && access(c->path, F_OK) == 0;
	if (c->found)
		rc = flow_read_object(c->path, &c->object, e);
	else if (rc == 0 && (c->object = json_object()) == NULL)
		rc = err_nomem(e);
	if (rc == 0)
		rc = read_fields(c, d, e);
	return rc;
}

int
config_read(char *const *envp, struct config *c, struct err *e)
{
	struct flow_diagnostics d = {0};
	int rc = config_read_all(envp, c, &d, e);

	flow_diagnostics_clear(&d);
	if (rc != 0)
		config_clear(c);
	return rc;
}

void
config_clear(struct config *c)
{
	free(c->path);
	json_unref(c->object);
	*c = (struct config){0};
}

struct json *
config_json(const struct config *c)
{
	struct json *keep = json_set(json_object(), "days", json_int(c->keep_days)), *o;
	char text[DURATION_TEXT];

	keep = json_set(keep, "runs", json_int(c->keep_runs));
	keep = json_set(keep, "failed_days", json_int(c->keep_failed_days));
	o = json_set(json_object(), "keep", keep);
	o = json_set(o, "notify", c->notify != NULL ? json_ref(c->notify) : json_null());
	o = json_set(o, "secrets",
	    json_cstr(c->secrets == CONFIG_SECRETS_STORE ? "store" : "withhold"));
	o = json_set(o, "inline_limit", json_int(c->inline_limit));
	o = json_set(o, "durability", json_cstr(c->durability == 1 ? "relaxed" : "full"));
	return json_set(o, "watchdog", c->watchdog_ns > 0
		? json_cstr(duration_format(c->watchdog_ns, text)) : json_null());
}
