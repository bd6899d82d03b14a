/* The files of the configuration directory: read as those read them that use them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "flowsup/config.h"
#include "flowsup/flow.h"
#include "flowsup/log.h"
#include "flowsup/places.h"
#include "flowsup/provider.h"
#include "playbooks.h"
#include "policy.h"
#include "roles.h"

/* Each of its problems; e is the first one, or why it cannot be read. */
static void
say_problems(struct doctor *d, const char *path, const struct flow_diagnostics *problems, struct err *e)
{
	const struct flow_diagnostic *p;
	size_t i;

	doctor_say_error(d, GRADE_BROKEN, "config", e);
	for (i = 1; i < problems->count; i++) {
		p = &problems->items[i];
		err_set(e, ERR_DOCUMENT, "%s:%u:%u: %s", path, p->where.line, p->where.column, p->message);
		if (p->hint[0] != '\0')
			(void)(p->command ? err_hint(e, "%s", p->hint) : err_advice(e, "%s", p->hint));
		doctor_say_error(d, GRADE_BROKEN, "config", e);
	}
}

static void
check_file(struct doctor *d)
{
	struct flow_diagnostics problems = {0};
	struct config config;
	struct err e = {0};
	int r = config_read_all(NULL, &config, &problems, &e);

	if (r != 0)
		say_problems(d, config.path, &problems, &e);
	flow_diagnostics_clear(&problems);
	if (r != 0) {
		config_clear(&config);
		return;
	}
	/* It goes into every run: without it none starts. */
	if (policy_check_notify(config.notify, getenv("PATH"), &e) != 0) {
		err_wrap(&e, "%s", config.path);
		doctor_say_error(d, GRADE_BROKEN, "config", &e);
	} else if (config.path == NULL) {
		doctor_say(d, GRADE_NOTE, "config", NULL, "no directory for it is known: the defaults hold");
	} else {
		doctor_say(d, GRADE_OK, "config", NULL, "%s%s", config.path,
		    config.found ? "" : " is not there: the defaults hold");
	}
	config_clear(&config);
}

/* ---- Roles ---- */

/* A document that has nothing else; NULL when memory runs out. */
static struct json *
document_of(const struct json *name, const struct json *role)
{
	struct json *op = json_set(json_set(json_object(), "id", json_cstr("x")), "run", json_cstr("true"));
	struct json *roles = json_set(json_object(), json_cstr_of(name), json_ref(role));
	struct json *doc = json_set(json_object(), "plan", json_append(json_array(), op));

	return json_set(doc, "roles", roles);
}

/* The position in that document says nothing to anybody: the words of the problem name the role. */
static bool
check_role(struct doctor *d, const char *directory, const struct json *name, const struct json *role)
{
	struct json *doc = document_of(name, role);
	struct flow_diagnostics problems = {0};
	struct flow *f = NULL;
	struct err e = {0};
	struct buf text = {0};
	bool good = false;

	if (doc == NULL || (json_write(&text, doc), text.failed))
		err_nomem(&e);
	else
		good = flow_read(&(struct flow_source){.text = buf_view(&text), .json = true}, &f, &problems,
			   &e) == 0;
	if (!good)
		doctor_say(d, GRADE_BROKEN, "roles", NULL, "%s: %s", directory,
		    problems.count > 0 ? problems.items[0].message : e.msg);
	flow_free(f);
	flow_diagnostics_clear(&problems);
	buf_clear(&text);
	json_unref(doc);
	return good;
}

static void
check_roles(struct doctor *d)
{
	struct json *all = NULL;
	char *directory = NULL;
	const struct json *one;
	struct err e = {0};
	struct json_iter it;
	size_t good = 0;

	if (place_config(NULL, "roles", &directory, &e) != 0 || roles_all(&all, &e) != 0) {
		doctor_say_error(d, GRADE_BROKEN, "roles", &e);
		free(directory);
		return;
	}
	it = json_iterate(all);
	while (json_next(&it, NULL, &one))
		good += check_role(d, directory, json_iter_name(&it), one);
	if (good > 0 && good == json_length(all))
		doctor_say(d, GRADE_OK, "roles", NULL, "%zu in %s", good, directory);
	free(directory);
	json_unref(all);
}

/* ---- Playbooks ---- */

static bool
check_playbook(struct doctor *d, const struct playbook *p)
{
	char word[SHELL_WORD_TEXT], hint[SHELL_WORD_TEXT + 16];
	struct flow *f = NULL;
	struct err e = {0};

	/* The second of two would say the same. */
	if (p->rival != NULL && !p->hidden) {
		if (strcmp(p->path, p->rival) < 0) {
			playbook_refuse(p, &e);
			doctor_say_error(d, GRADE_WARNING, "playbook", &e);
		}
		return false;
	}
	if (flow_read_file(p->path, &f, NULL, &e) == 0)
		(void)flow_check(f, p->path, NULL, &e);
	flow_free(f);
	if (e.code == ERR_NONE)
		return true;
	snprintf(hint, sizeof(hint), "flowsup check %s", shell_word(word, p->path));
	doctor_say(d, GRADE_WARNING, "playbook", hint, "%s", e.msg);
	return false;
}

static void
check_playbooks(struct doctor *d)
{
	struct playbooks all;
	struct err e = {0};
	size_t i, good = 0;

	if (playbooks_find(&all, &e) != 0) {
		doctor_say_error(d, GRADE_WARNING, "playbook", &e);
		return;
	}
	for (i = 0; i < all.count; i++)
		good += check_playbook(d, &all.list[i]);
	if (good == all.count)
		doctor_say(d, GRADE_OK, "playbooks", NULL, "%zu", good);
	playbooks_clear(&all);
}

void
doctor_config(struct doctor *d)
{
	check_file(d);
	check_roles(d);
	check_playbooks(d);
}
