#include "playbooks.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static int
not_found(const struct playbooks *p, const char *name, struct err *e)
{
	/* What stands in a playbook's place may be a second word of play as well. */
	static const char *const words[] = {"list", "show"};
	const size_t nwords = sizeof(words) / sizeof(words[0]);
	const char **names = calloc(p->count + nwords, sizeof(*names)), *nearest;
	const char *place = p->places[1];
	char word[SHELL_WORD_TEXT];
	size_t i;

	if (names == NULL)
		return err_nomem(e);
	memcpy(names, words, sizeof(words));
	for (i = 0; i < p->count; i++)
		names[nwords + i] = p->list[i].name;
	nearest = text_nearest(name, names, p->count + nwords);
	err_set(e, ERR_NOTFOUND, "there is no playbook \"%.80s\"", name);
	if (strchr(name, '/') != NULL && access(name, F_OK) == 0)
		err_hint(e, "flowsup start %s   # a document by its path", shell_word(word, name));
	else if (nearest != NULL)
		err_hint(e, "flowsup play %s   # did you mean this?", shell_word(word, nearest));
	else if (p->count > 0 || place == NULL)
		err_hint(e, "flowsup play list");
	else
		err_hint(e, "mkdir -p %s   # NAME.yaml goes there", shell_word(word, place));
	free(names);
	return -1;
}

int
playbook_refuse(const struct playbook *p, struct err *e)
{
	char word[SHELL_WORD_TEXT];

	err_set(e, ERR_AMBIGUOUS, "two files could be the playbook \"%s\": %s and %s", p->name, p->path, p->rival);
	return err_hint(e, "flowsup start %s   # one of them", shell_word(word, p->path));
}

int
playbook_path(const char *name, char **out, struct err *e)
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
		r = not_found(&p, name, e);
	else if (found->rival != NULL)
		r = playbook_refuse(found, e);
	else if (r == 0 && (*out = strdup(found->path)) == NULL)
		r = err_nomem(e);
	playbooks_clear(&p);
	return r;
}
