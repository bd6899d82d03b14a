#define ERR_SOURCE /* err.h: here they are defined */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "flowsup/err.h"

static const struct {
	const char *type;
	int status;
} table[ERR_CODES] = {
#define X(code, type, status) {type, status},
    ERR_TABLE(X)
#undef X
};

static void __attribute__((format(printf, 2, 0)))
set_text(struct err *e, const char *fmt, va_list ap)
{
	/* A message that is too long is cut; vsnprintf cannot fail otherwise for our formats. */
	if (vsnprintf(e->msg, sizeof(e->msg), fmt, ap) < 0)
		e->msg[0] = '\0';
}

/* Appends to the message, cut where there is no room. */
static void
append_text(struct err *e, const char *text)
{
	size_t used = strlen(e->msg), len = strlen(text);
	const size_t room = sizeof(e->msg) - 1 - used;

	if (len > room)
		len = room;
	memcpy(e->msg + used, text, len);
	e->msg[used + len] = '\0';
}

static void
no_hint(struct err *e)
{
	e->hint[0] = '\0';
	e->long_hint = NULL;
	e->advice = false;
}

int
err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
	va_list ap;

	if (e == NULL)
		return -1;
	e->code = code;
	e->sys = 0;
	no_hint(e);
	va_start(ap, fmt);
	set_text(e, fmt, ap);
	va_end(ap);
	return -1;
}

static enum err_code
code_for_errno(enum err_code code, int sys)
{
	if (code != ERR_IO)
		return code;
	if (sys == ENOSPC || sys == EDQUOT)
		return ERR_NOSPACE;
	return sys == ENOMEM ? ERR_NOMEM : code;
}

int
err_sys(struct err *e, enum err_code code, int sys, const char *fmt, ...)
{
	char text[96];
	va_list ap;

	if (e == NULL)
		return -1;
	e->code = code_for_errno(code, sys);
	e->sys = sys;
	no_hint(e);
	va_start(ap, fmt);
	set_text(e, fmt, ap);
	va_end(ap);
	append_text(e, ": ");
	append_text(e, strerror_r(sys, text, sizeof(text)));
	return -1;
}

int
err_nomem(struct err *e)
{
	return err_set(e, ERR_NOMEM, "out of memory");
}

int
err_wrap(struct err *e, const char *fmt, ...)
{
	char old[sizeof(e->msg)];
	va_list ap;

	if (e == NULL)
		return -1;
	memcpy(old, e->msg, sizeof(old));
	va_start(ap, fmt);
	set_text(e, fmt, ap);
	va_end(ap);
	append_text(e, ": ");
	append_text(e, old);
	return -1;
}

int
err_hint(struct err *e, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (e == NULL)
		return -1;
	va_start(ap, fmt);
	n = vsnprintf(e->hint, sizeof(e->hint), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(e->hint))
		e->hint[0] = '\0';
	e->long_hint = NULL;
	e->advice = false;
	return -1;
}

int
err_hint_borrow(struct err *e, const char *command)
{
	if (e == NULL)
		return -1;
	no_hint(e);
	e->long_hint = command;
	return -1;
}

int
err_advice(struct err *e, const char *fmt, ...)
{
	va_list ap;

	if (e == NULL)
		return -1;
	va_start(ap, fmt);
	if (vsnprintf(e->hint, sizeof(e->hint), fmt, ap) < 0)
		e->hint[0] = '\0';
	va_end(ap);
	e->long_hint = NULL;
	e->advice = true;
	return -1;
}

int
err_hint_of(struct err *e, const struct err *from)
{
	if (e == NULL)
		return -1;
	memmove(e->hint, from->hint, sizeof(e->hint));
	e->long_hint = from->long_hint;
	e->advice = from->advice;
	return -1;
}

const char *
err_hint_text(const struct err *e)
{
	return e->long_hint != NULL ? e->long_hint : e->hint;
}

bool
err_has_hint(const struct err *e)
{
	return err_hint_text(e)[0] != '\0';
}

void
err_clear(struct err *e)
{
	if (e == NULL)
		return;
	e->code = ERR_NONE;
	e->sys = 0;
	e->msg[0] = '\0';
	no_hint(e);
}

const char *
err_type(enum err_code code)
{
	return code < ERR_CODES ? table[code].type : table[ERR_INTERNAL].type;
}

int
err_exit_status(enum err_code code)
{
	return code < ERR_CODES ? table[code].status : table[ERR_INTERNAL].status;
}

enum err_code
err_from_type(const char *type)
{
	unsigned i;

	for (i = 0; i < ERR_CODES; i++)
		if (strcmp(table[i].type, type) == 0)
			return (enum err_code)i;
	return ERR_INTERNAL;
}
