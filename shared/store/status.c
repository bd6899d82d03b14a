#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "flowsup/status.h"

static const struct {
	const char *word;
	bool terminal;
	int exit;
} statuses[STATUS_COUNT] = {
#define X(name, word, terminal, exit) [name] = {word, terminal, exit},
    STATUS_TABLE(X)
#undef X
};

static const struct {
	const char *code, *text;
	bool resumable;
	int exit;
} reasons[] = {
#define X(code, text, resumable, exit) {code, text, resumable, exit},
    REASON_TABLE(X)
#undef X
};

enum { REASONS = sizeof(reasons) / sizeof(reasons[0]) };

#define TO(status) (1u << (status))
#define TO_ENDS                                                                                    \
	(TO(STATUS_FAILED) | TO(STATUS_TIMED_OUT) | TO(STATUS_CANCELLED) | TO(STATUS_CRASHED))

/*
 * The diagram of the header as data. queued, running and paused may "become" what they are: their
 * reason changes. starting may fall back to queued when its worker could not be forked.
 */
static const unsigned moves[STATUS_COUNT] = {
    [STATUS_QUEUED] = TO(STATUS_QUEUED) | TO(STATUS_STARTING) | TO(STATUS_CANCELLED) |
        TO(STATUS_CRASHED),
    [STATUS_STARTING] = TO(STATUS_QUEUED) | TO(STATUS_RUNNING) | TO_ENDS,
    [STATUS_RUNNING] = TO(STATUS_RUNNING) | TO(STATUS_PAUSED) | TO(STATUS_COMPLETED) | TO_ENDS,
    [STATUS_PAUSED] = TO(STATUS_PAUSED) | TO(STATUS_RUNNING) | TO(STATUS_COMPLETED) | TO_ENDS,
};

const char *
status_word(enum run_status s)
{
	assert(s < STATUS_COUNT);
	return statuses[s].word;
}

bool
status_is_terminal(enum run_status s)
{
	assert(s < STATUS_COUNT);
	return statuses[s].terminal;
}

enum run_status
status_from_word(const char *word)
{
	unsigned i;

	for (i = 0; i < STATUS_COUNT; i++)
		if (strcmp(statuses[i].word, word) == 0)
			break;
	return (enum run_status)i;
}

bool
status_may_become(enum run_status from, enum run_status to)
{
	assert(from < STATUS_COUNT && to < STATUS_COUNT);
	return (moves[from] & TO(to)) != 0;
}

static size_t
find_reason(const char *code)
{
	size_t i;

	for (i = 0; code != NULL && i < REASONS; i++)
		if (strcmp(reasons[i].code, code) == 0)
			return i;
	return REASONS;
}

const char *
reason_text(const char *code)
{
	size_t i = find_reason(code);

	return i < REASONS ? reasons[i].text : NULL;
}

bool
reason_is_resumable(const char *code)
{
	size_t i;

	for (i = 0; code != NULL && i < REASONS; i++)
		if (reasons[i].resumable && strcmp(reasons[i].code, code) == 0)
			return true;
	return false;
}

bool
reason_belongs_to(const char *code, enum run_status s)
{
	const char *word = status_word(s);
	size_t len = strlen(word);

	return find_reason(code) < REASONS && strncmp(code + 4, word, len) == 0 &&
	    code[4 + len] == '.';
}

int
status_exit(enum run_status s, const char *reason_code)
{
	size_t i = find_reason(reason_code);

	assert(s < STATUS_COUNT);
	if (i < REASONS && reasons[i].exit != 0)
		return reasons[i].exit;
	return statuses[s].exit;
}

const char *
reason_of_failed_start(const struct err *why)
{
	bool storage = why->code == ERR_NOSPACE || why->code == ERR_UNCERTAIN || why->sys == ENOSPC ||
	    why->sys == EDQUOT || why->sys == EIO || why->sys == EROFS;

	return storage ? "run.failed.storage" : "run.failed.start";
}
