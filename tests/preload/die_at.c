/*
 * A worker that dies by SIGKILL at one named point of what it does with a control. The file named by
 * DIE_AT holds "POINT N": at the N-th time. It is removed first, so that one worker dies by it. With
 * "POINT N stop" it is stopped there instead, and may be continued.
 *
 *	read-after				the rows were read
 *	claim-before, claim-after		the claim is not yet written; is committed
 *	publish-before, publish-after		a base with the message or its mark is not yet installed; is
 *	stamp-before, stamp-after		the result is not yet written; is committed
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

enum { POINT_TEXT = 64 };

static bool
is_worker(void)
{
	static int known; /* 1: no, 2: yes */
	char name[32] = "";
	FILE *f;

	if (known == 0) {
		f = fopen("/proc/self/comm", "re");
		if (f != NULL && fgets(name, sizeof(name), f) != NULL)
			name[strcspn(name, "\n")] = '\0';
		if (f != NULL)
			fclose(f);
		known = strncmp(name, "flowsup-worker", 14) == 0 ? 2 : 1;
	}
	return known == 2;
}

static void
reached(const char *point)
{
	static char counted[POINT_TEXT];
	static unsigned count;
	const char *file = getenv("DIE_AT");
	char wanted[POINT_TEXT] = "", how[POINT_TEXT] = "";
	unsigned nth = 0;
	FILE *f;

	if (file == NULL || !is_worker() || (f = fopen(file, "re")) == NULL)
		return;
	if (fscanf(f, "%63s %u %63s", wanted, &nth, how) < 2)
		wanted[0] = '\0';
	fclose(f);
	if (strcmp(wanted, point) != 0)
		return;
	if (strcmp(counted, point) != 0)
		count = 0;
	snprintf(counted, sizeof(counted), "%s", point);
	if (++count >= nth && unlink(file) == 0)
		/* To this thread: sent to the process, another one might take it while this one goes on. */
		tgkill(getpid(), gettid(), strcmp(how, "stop") == 0 ? SIGSTOP : SIGKILL);
}

static const struct {
	const char *sql, *before, *after;
} statements[] = {
    {"SELECT id, verb, payload", NULL, "read-after"},
    {"UPDATE session_controls SET claimed_at", "claim-before", "claim-after"},
    {"UPDATE session_controls SET applied_at", "stamp-before", "stamp-after"},
};

int
sqlite3_step(sqlite3_stmt *q)
{
	const char *sql = sqlite3_sql(q);
	const char *before = NULL, *after = NULL;
	int (*real)(sqlite3_stmt *);
	size_t i;
	int rc;

	for (i = 0; sql != NULL && i < sizeof(statements) / sizeof(statements[0]); i++)
		if (strncmp(sql, statements[i].sql, strlen(statements[i].sql)) == 0) {
			before = statements[i].before;
			after = statements[i].after;
		}
	if (before != NULL)
		reached(before);
	*(void **)&real = dlsym(RTLD_NEXT, "sqlite3_step");
	rc = real(q);
	if (after != NULL && rc == SQLITE_DONE)
		reached(after);
	return rc;
}

int
renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
	bool base = strcmp(to, "checkpoint.json") == 0 || strcmp(from, "checkpoint.json") == 0;
	int (*real)(int, const char *, int, const char *, unsigned);
	int rc;

	if (base)
		reached("publish-before");
	*(void **)&real = dlsym(RTLD_NEXT, "renameat2");
	rc = real(from_dir, from, to_dir, to, flags);
	if (base && rc == 0)
		reached("publish-after");
	return rc;
}
