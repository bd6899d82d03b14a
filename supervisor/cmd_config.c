/* flowsup config: prints the configuration that holds, with every default. */
#include "cli.h"
#include "flowsup/config.h"
#include "output.h"
#include "problems.h"

static const char *const examples[] = {
    "flowsup config          # in the form of the file",
    "flowsup config --json   # the same for programs",
    NULL};

static void
print_member(struct output *out, const char *name, const struct json *v)
{
	struct buf b = {0};

	/* JSON is YAML. */
	if (json_cstr_of(v) != NULL)
		buf_puts(&b, json_cstr_of(v));
	else
		json_write(&b, v);
	if (json_type(v) == JSON_NULL)
		out_printf(out, "# %s: none\n", name);
	else
		out_printf(out, "%s: %s\n", name, buf_text(&b));
	buf_clear(&b);
}

static void
print_all(const struct config *c, const struct json *all, struct output *out)
{
	struct json_iter it = json_iterate(all);
	const struct json *v;

	out_puts(out, "# ");
	out_text(out, slice_of(c->path != NULL ? c->path : "no directory for it is known"), false);
	out_puts(out, c->found ? "\n" : " (not there: these are the defaults)\n");
	while (json_next(&it, NULL, &v))
		print_member(out, json_cstr_of(json_iter_name(&it)), v);
}

static int
run(struct cli *c, struct err *e)
{
	struct config config;
	struct json *all;

	if (problems_config(c, &config, "", e) != 0)
		return -1;
	all = config_json(&config);
	if (all == NULL) {
		config_clear(&config);
		return err_nomem(e);
	}
	if (c->json)
		out_json(c->out, json_ref(all));
	else
		print_all(&config, all, c->out);
	json_unref(all);
	config_clear(&config);
	return 0;
}

const struct command cmd_config = {
    .name = "config",
    .group = CLI_GROUP_SYSTEM,
    .synopsis = "[OPTION]...",
    .summary = "print the configuration with defaults",
    .examples = examples,
    .json = true,
    .run = run,
};
