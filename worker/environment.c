/* The environment that all operations share, sorted by name, and the list made from it for one. */
#include "given.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flowsup/fs.h"
#include "flowsup/ipc.h"

static size_t
name_length(const char *entry)
{
	return strcspn(entry, "=");
}

static int
compare_names(const char *a, size_t alen, const char *b, size_t blen)
{
	int c = memcmp(a, b, alen < blen ? alen : blen);

	return c != 0 ? c : (alen > blen) - (alen < blen);
}

static int
compare_entries(const void *left, const void *right)
{
	const char *a = *(const char *const *)left, *b = *(const char *const *)right;

	return compare_names(a, name_length(a), b, name_length(b));
}

size_t
given_find_shared(const struct worker *w, const char *name, size_t len)
{
	size_t low = 0, high = w->environment_count, mid;
	int c;

	while (low < high) {
		mid = low + (high - low) / 2;
		c = compare_names(name, len, w->environment[mid], name_length(w->environment[mid]));
		if (c == 0)
			return mid;
		if (c < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return SIZE_MAX;
}

const char *
given_shared_value(const struct worker *w, const char *name)
{
	size_t i = given_find_shared(w, name, strlen(name));

	return i == SIZE_MAX ? NULL : w->environment[i] + strlen(name) + 1;
}

/* ---- The shared part ---- */

enum { OWN_NAMES = 4, VALUES_BYTES = 1 << 20 };

static bool
is_ours(const char *entry)
{
	return strncmp(entry, "FLOWSUP_", 8) == 0;
}

static int
add_own(struct worker *w, const char *name, const char *value, struct err *e)
{
	char *entry;

	if (asprintf(&entry, "%s=%s", name, value) < 0)
		return err_nomem(e);
	w->environment[w->environment_count++] = entry;
	return 0;
}

static int
add_socket(struct worker *w, struct err *e)
{
	struct buf path = {0};
	int rc;

	buf_printf(&path, "%s/" RUN_SOCKET, w->run_path);
	rc = buf_ok(&path, e);
	if (rc == 0)
		rc = add_own(w, "FLOWSUP_SOCK", buf_text(&path), e);
	buf_clear(&path);
	return rc;
}

/* ---- Values that no file holds ---- */

/* The descriptor is shared with the supervisor, which gives it to the next worker of the job. */
static int
read_values(struct worker *w, struct err *e)
{
	struct buf text = {0};

	if (json_length(w->launch.withheld) == 0)
		return 0;
	if (w->values_fd < 0) {
		err_set(e, ERR_ENVIRONMENT, "the withheld environment values are not at hand");
		return err_hint(e, "flowsup resume %s", w->run_id);
	}
	if (lseek(w->values_fd, 0, SEEK_SET) != 0)
		return err_sys(e, ERR_IO, errno, "withheld environment values");
	if (ipc_memfd_read(w->values_fd, VALUES_BYTES, &text, e) != 0) {
		buf_clear(&text);
		return err_wrap(e, "withheld environment values");
	}
	fd_close(&w->values_fd);
	w->values_len = text.len;
	w->values_block = buf_steal(&text);
	return w->values_block != NULL ? 0 : err_nomem(e);
}

static int
add_values(struct worker *w, size_t *kept, struct err *e)
{
	size_t n = 0, at;
	char **envp;

	for (at = 0; at < w->values_len; at++)
		n += w->values_block[at] == '\0';
	envp = reallocarray(w->environment, *kept + n + 1, sizeof(*envp));
	if (envp == NULL)
		return err_nomem(e);
	w->environment = envp;
	/* The last entry ends, in NUL or with the block, which does. */
	for (at = 0; at < w->values_len; at += strlen(w->values_block + at) + 1)
		if (!is_ours(w->values_block + at) && strchr(w->values_block + at, '=') != NULL &&
		    n-- > 0)
			w->environment[(*kept)++] = w->values_block + at;
	return 0;
}

int
context_init(struct worker *w, struct err *e)
{
	size_t n, given = 0, kept = 0;
	char **envp;

	if (environ_read(w->run_fd, &w->environ_block, &w->environment, e) != 0 ||
	    read_values(w, e) != 0)
		return -1;
	while (w->environment[given] != NULL)
		given++;
	for (n = 0; n < given; n++)
		if (!is_ours(w->environment[n]) && strchr(w->environment[n], '=') != NULL)
			w->environment[kept++] = w->environment[n];
	if (add_values(w, &kept, e) != 0)
		return -1;
	envp = reallocarray(w->environment, kept + OWN_NAMES + 1, sizeof(*envp));
	if (envp == NULL)
		return err_nomem(e);
	w->environment = envp;
	w->environment_count = kept;
	if (add_own(w, "FLOWSUP_HOME", w->home.path, e) != 0 ||
	    add_own(w, "FLOWSUP_RUN_ID", w->run_id, e) != 0 ||
	    add_own(w, "FLOWSUP_SESSION_ID", w->session_id, e) != 0 || add_socket(w, e) != 0)
		return -1;
	w->environment[w->environment_count] = NULL; /* room for it was kept; others read to the end */
	qsort(w->environment, w->environment_count, sizeof(*w->environment), compare_entries);
	return 0;
}

void
context_clear(struct worker *w)
{
	size_t i;

	/* Our own entries are allocated one by one; the others lie in the block. */
	for (i = 0; i < w->environment_count; i++)
		if (is_ours(w->environment[i]))
			free(w->environment[i]);
	free(w->environment);
	if (w->values_block != NULL)
		explicit_bzero(w->values_block, w->values_len);
	free(w->values_block);
	w->values_block = NULL;
	free(w->environ_block);
	w->environment = NULL;
	w->environ_block = NULL;
	w->environment_count = 0;
	buf_clear(&w->scratch_text);
	buf_clear(&w->scratch_argv);
}

/* ---- The list of one operation ---- */


static int
grow_list(struct building *b, struct err *e)
{
	size_t cap = b->cap * 2 + 64;
	size_t *at = reallocarray(b->at, cap, sizeof(*at));

	if (at == NULL)
		return err_nomem(e);
	b->at = at;
	b->cap = cap;
	return 0;
}

int
given_add(struct building *b, size_t offset, struct err *e)
{
	if (b->count == b->cap && grow_list(b, e) != 0)
		return -1;
	b->at[b->count++] = offset;
	return 0;
}

int
given_entry(struct building *b, size_t from, struct err *e)
{
	const char *entry = b->text->data + from;
	size_t len, i, shared;

	if (b->text->failed)
		return err_nomem(e);
	len = name_length(entry);
	shared = given_find_shared(b->w, entry, len);
	if (shared != SIZE_MAX) {
		b->at[shared] = from;
		return 0;
	}
	for (i = b->w->environment_count; i < b->count; i++)
		if (compare_names(entry, len, b->text->data + b->at[i],
			name_length(b->text->data + b->at[i])) == 0) {
			b->at[i] = from;
			return 0;
		}
	return given_add(b, from, e);
}

int
given_variable(struct building *b, const char *name, const char *value, struct err *e)
{
	size_t from = b->text->len;

	buf_puts(b->text, name);
	buf_putc(b->text, '=');
	buf_add(b->text, value, strlen(value) + 1);
	if (b->text->failed)
		return err_nomem(e);
	return given_add(b, from, e);
}
