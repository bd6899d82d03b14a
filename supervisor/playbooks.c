#include "playbooks.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "flowsup/log.h"
#include "flowsup/places.h"

static const char *const endings[] = {".yaml", ".json", NULL};

/* ---- Places ---- */

static int
find_places(struct playbooks *p, struct err *e)
{
	p->places[0] = strdup(".flowsup/playbooks");
	if (p->places[0] == NULL)
		return err_nomem(e);
	if (place_config(NULL, "playbooks", &p->places[1], e) != 0)
		return -1;
	return place_data("playbooks", &p->places[2], e);
}

static int
add(struct playbooks *p, const char *directory, const char *file, struct err *e)
{
	struct playbook *list = reallocarray(p->list, p->count + 1, sizeof(*list));
	struct playbook *one;

	if (list == NULL)
		return err_nomem(e);
	p->list = list;
	one = &list[p->count];
	*one = (struct playbook){.name = strndup(file, place_stem(file, endings))};
	if (one->name == NULL || asprintf(&one->path, "%s/%s", directory, file) < 0) {
		free(one->name);
		return err_nomem(e);
	}
	p->count++;
	return 0;
}

/* A directory that is not there holds none. */
static int
look_into(struct playbooks *p, const char *directory, struct err *e)
{
	DIR *dir = opendir(directory);
	const struct dirent *entry;
	int r = 0;

	if (dir == NULL && errno != ENOENT && errno != ENOTDIR)
		return err_sys(e, ERR_IO, errno, "cannot read %s", directory);
	if (dir == NULL)
		return 0;
	while (r == 0 && (entry = readdir(dir)) != NULL)
		if (place_stem(entry->d_name, endings) > 0)
			r = add(p, directory, entry->d_name, e);
	closedir(dir);
	return r;
}

static int
compare(const void *a, const void *b)
{
	const struct playbook *x = a, *y = b;
	int c = strcmp(x->name, y->name);

	return c != 0 ? c : strcmp(x->path, y->path);
}

/* Sorts what one place has, and marks what it has twice, and what an earlier place has by the same name. */
static void
settle_place(struct playbooks *p, size_t from)
{
	size_t i, k;

	if (p->count <= from)
		return;
	qsort(p->list + from, p->count - from, sizeof(*p->list), compare);
	for (i = from; i < p->count; i++)
		for (k = 0; k < from; k++)
			if (strcmp(p->list[k].name, p->list[i].name) == 0)
				p->list[i].hidden = true;
	for (i = from + 1; i < p->count; i++)
		if (strcmp(p->list[i - 1].name, p->list[i].name) == 0) {
			p->list[i - 1].rival = p->list[i].path;
			p->list[i].rival = p->list[i - 1].path;
		}
}

int
playbooks_find(struct playbooks *out, struct err *e)
{
	struct playbooks p = {0};
	size_t i, from;
	int r = find_places(&p, e);

	for (i = 0; r == 0 && i < PLAYBOOK_PLACES; i++) {
		from = p.count;
		if (p.places[i] == NULL)
			continue;
		r = look_into(&p, p.places[i], e);
		settle_place(&p, from);
	}
	if (r != 0)
		playbooks_clear(&p);
	else
		*out = p;
	return r;
}

void
playbooks_clear(struct playbooks *p)
{
	size_t i;

	for (i = 0; i < p->count; i++) {
		free(p->list[i].name);
		free(p->list[i].path);
	}
	free(p->list);
	for (i = 0; i < PLAYBOOK_PLACES; i++)
		free(p->places[i]);
	*p = (struct playbooks){0};
}

/* ---- One of them ---- */

/* The call as it was given, with a document by its path; what was only to be shown is not started. */
static int
hint_start(const struct cli *c, const char *path, struct err *e)
{
	const char *dry = strcmp(c->command->name, "play show") == 0 ? "show" : NULL;
	bool found = false;
	struct buf line = {0};
	char *const *at;

	buf_puts(&line, "flowsup");
	for (at = c->argv + 1; *at != NULL; at++) {
		if (!found && strcmp(*at, "play") == 0) {
			found = true;
			buf_puts(&line, " start");
		} else if (found && dry != NULL && strcmp(*at, dry) == 0) {
			dry = NULL;
			buf_puts(&line, " --dry-run");
		} else {
			buf_putc(&line, ' ');
			text_shell_word(&line, *at == c->operands[0] ? path : *at);
		}
	}
	cli_hint_whole(c, &line, e);
	buf_clear(&line);
	return -1;
}

static const char *const words[] = {"list", "show"};
enum { WORDS = sizeof(words) / sizeof(words[0]) };

bool
playbook_is_command(const char *name)
{
	size_t i;

	for (i = 0; i < WORDS; i++)
		if (strcmp(name, words[i]) == 0)
			return true;
	return false;
}

/* What stands in a playbook's place may be a second word of play as well. */
static int
hint_nearest(const struct playbooks *p, const struct cli *c, const char *name, struct err *e)
{
	const size_t nwords = strcmp(c->command->name, "play") == 0 ? WORDS : 0;
	const char **names = calloc(p->count + WORDS, sizeof(*names)), *nearest;
	size_t i;

	if (names == NULL)
		return err_nomem(e);
	for (i = 0; i < nwords; i++)
		names[i] = words[i];
	for (i = 0; i < p->count; i++)
		names[nwords + i] = p->list[i].name;
	nearest = text_nearest(name, names, p->count + nwords);
	if (nearest != NULL)
		cli_hint_instead(c, name, strlen(name), nearest, e);
	free(names);
	return -1;
}

static int
not_found(const struct playbooks *p, const struct cli *c, const char *name, struct err *e)
{
	const char *place = p->places[1];
	char word[SHELL_WORD_TEXT];

	err_set(e, ERR_NOTFOUND, "there is no playbook \"%.80s\"", name);
	if (c == NULL)
		return -1;
	if (strchr(name, '/') != NULL && access(name, F_OK) == 0)
		return hint_start(c, name, e);
	hint_nearest(p, c, name, e);
	if (err_has_hint(e))
		return -1;
	if (p->count > 0 || place == NULL)
		return err_hint(e, "flowsup play list");
	return err_hint(e, "mkdir -p %s   # NAME.yaml goes there", shell_word(word, place));
}

int
playbook_refuse(const struct playbook *p, struct err *e)
{
	char word[SHELL_WORD_TEXT];

	err_set(e, ERR_AMBIGUOUS, "two files could be the playbook \"%s\": %s and %s", p->name, p->path, p->rival);
	return err_hint(e, "flowsup start %s   # one of them", shell_word(word, p->path));
}

static int
refuse_call(const struct playbook *p, const struct cli *c, struct err *e)
{
	playbook_refuse(p, e);
	return c != NULL ? hint_start(c, p->path, e) : -1;
}

int
playbook_path(const struct cli *c, const char *name, char **out, struct err *e)
{
	const struct playbook *found = NULL;
	struct playbooks p;
	size_t i;
	int r = playbooks_find(&p, e);

	if (r != 0)
		return -1;
	for (i = 0; found == NULL && i < p.count; i++)
		if (!p.list[i].hidden && strcmp(p.list[i].name, name) == 0)
			found = &p.list[i];
	if (found == NULL)
		r = not_found(&p, c, name, e);
	else if (found->rival != NULL)
		r = refuse_call(found, c, e);
	else if (r == 0 && (*out = strdup(found->path)) == NULL)
		r = err_nomem(e);
	playbooks_clear(&p);
	return r;
}
