#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fault_alloc.h"

/* Names that the linker makes; a test that does not use --wrap never pulls this file in. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_reallocarray(void *old, size_t count, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t most);

static atomic_ulong counted, fail_at;
static atomic_bool persists, has_failed;

void
fault_alloc_arm(unsigned long n, bool persistent)
{
	atomic_store(&counted, 0);
	atomic_store(&has_failed, false);
	atomic_store(&persists, persistent);
	atomic_store(&fail_at, n);
}

bool
fault_alloc_disarm(void)
{
	atomic_store(&fail_at, 0);
	return atomic_load(&has_failed);
}

unsigned long
fault_alloc_count(void)
{
	return atomic_load(&counted);
}

static bool
is_to_fail(void)
{
	unsigned long at = atomic_load(&fail_at), now = atomic_fetch_add(&counted, 1) + 1;

	if (at == 0 || now < at || (now > at && !atomic_load(&persists)))
		return false;
	atomic_store(&has_failed, true);
	errno = ENOMEM;
	return true;
}

void *
__wrap_malloc(size_t size)
{
	return is_to_fail() ? NULL : __real_malloc(size);
}

void *
__wrap_calloc(size_t count, size_t size)
{
	return is_to_fail() ? NULL : __real_calloc(count, size);
}

void *
__wrap_realloc(void *old, size_t size)
{
	return is_to_fail() ? NULL : __real_realloc(old, size);
}

void *
__wrap_reallocarray(void *old, size_t count, size_t size)
{
	if (size != 0 && count > SIZE_MAX / size) {
		errno = ENOMEM;
		return NULL;
	}
	return __wrap_realloc(old, count * size);
}

char *
__wrap_strndup(const char *text, size_t most)
{
	size_t len = strnlen(text, most);
	char *copy = __wrap_malloc(len + 1);

	if (copy != NULL) {
		memcpy(copy, text, len);
		copy[len] = '\0';
	}
	return copy;
}

char *
__wrap_strdup(const char *text)
{
	return __wrap_strndup(text, strlen(text));
}
