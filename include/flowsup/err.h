/* The error value, and the one table of error codes, type names and exit statuses. */
#ifndef FLOWSUP_ERR_H
#define FLOWSUP_ERR_H

#include <stdbool.h>

/*
 * code, type name shown with --json, exit status (the table of statuses is in flowsup(1)).
 * A new kind of failure is a new line here and nowhere else.
 */
#define ERR_TABLE(X)                                                                               \
	X(ERR_NONE, "None", 0)                                                                     \
	X(ERR_RUN_FAILED, "RunFailedError", 1)                                                     \
	X(ERR_USAGE, "UsageError", 2)                                                              \
	X(ERR_NOTFOUND, "NotFoundError", 2)                                                        \
	X(ERR_AMBIGUOUS, "AmbiguousTargetError", 2)                                                \
	X(ERR_SYNTAX, "SyntaxError", 2)                                                            \
	X(ERR_DOCUMENT, "FlowDocumentError", 2)                                                    \
	X(ERR_LIMIT, "LimitError", 2)                                                              \
	X(ERR_RUNNING, "StillRunningError", 3)                                                     \
	X(ERR_REFUSED, "RefusedError", 4)                                                          \
	X(ERR_CHECKPOINT, "CheckpointRefusedError", 4)                                             \
	X(ERR_BUSY, "BusyError", 5)                                                                \
	X(ERR_TIMEOUT, "TimeoutError", 5)                                                          \
	X(ERR_PROTOCOL, "ProtocolError", 5)                                                        \
	X(ERR_INTERNAL, "InternalError", 70)                                                       \
	X(ERR_CREATE, "CannotCreateError", 73)                                                     \
	X(ERR_IO, "IOError", 74)                                                                   \
	X(ERR_NOSPACE, "NoSpaceError", 74)                                                         \
	X(ERR_UNCERTAIN, "UncertainWriteError", 74)                                                \
	X(ERR_IDENTITY, "IdentityError", 74)                                                       \
	X(ERR_NOMEM, "NoMemoryError", 74)                                                          \
	X(ERR_ENVIRONMENT, "EnvironmentError", 78)                                                 \
	X(ERR_PERMISSION, "PermissionError", 78)                                                   \
	X(ERR_INTERRUPTED, "InterruptedError", 130)

enum err_code {
#define X(code, type, status) code,
	ERR_TABLE(X)
#undef X
	    ERR_CODES
};

/*
 * An error belongs to the caller, who starts from `struct err e = {0}`. It is set once where the
 * failure is seen, wrapped on the way up, and printed once at the edge. `sys` is an errno or 0.
 * `hint`, if not empty, is a command that helps, as it can be pasted into a shell, perhaps with a remark
 * behind ` # `; it is printed behind `hint:`. With `advice` it is a sentence, printed behind `note:`.
 * A command that has no room there is `long_hint`, which somebody else owns who outlives the error.
 */
struct err {
	enum err_code code;
	int sys;
	char msg[768];
	char hint[256];
	const char *long_hint; /* NULL: hint */
	bool advice;
};

/* Each returns -1, so that `return err_set(...)` reads well. A NULL e is allowed. */
int err_set(struct err *e, enum err_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* As err_set, and appends ": " and the text of `sys`. ENOSPC and EDQUOT make code ERR_NOSPACE,
 * ENOMEM makes it ERR_NOMEM, when `code` is ERR_IO. */
int err_sys(struct err *e, enum err_code code, int sys, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
int err_nomem(struct err *e);
/* Puts "<text>: " before the message; code, sys and hint stay. Cut at the end if too long. */
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A command; one that has no room is none, rather than the beginning of another one. */
int err_hint(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A command of any length, borrowed until the error is printed. */
int err_hint_borrow(struct err *e, const char *command);
/* The hint or advice, whichever way it is held; "" when there is none. */
const char *err_hint_text(const struct err *e);
bool err_has_hint(const struct err *e);
/* A sentence; cut at the end if too long. */
int err_advice(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The hint or advice of another error. */
int err_hint_of(struct err *e, const struct err *from);
void err_clear(struct err *e);

/* Whoever looks at one source file at a time must be told what the functions above return, or takes
 * every error path for a success. */
#ifdef __clang_analyzer__
static inline int
err_returns(int result)
{
	(void)result;
	return -1;
}
#ifndef ERR_SOURCE
#define err_set(...) err_returns((err_set)(__VA_ARGS__))
#define err_sys(...) err_returns((err_sys)(__VA_ARGS__))
#define err_nomem(e) err_returns((err_nomem)(e))
#define err_wrap(...) err_returns((err_wrap)(__VA_ARGS__))
#define err_hint(...) err_returns((err_hint)(__VA_ARGS__))
#define err_hint_borrow(e, command) err_returns((err_hint_borrow)(e, command))
#define err_advice(...) err_returns((err_advice)(__VA_ARGS__))
#define err_hint_of(...) err_returns((err_hint_of)(__VA_ARGS__))
#endif
#endif

const char *err_type(enum err_code code);
int err_exit_status(enum err_code code);
/* The inverse of err_type, for errors that cross a process edge; ERR_INTERNAL when unknown. */
enum err_code err_from_type(const char *type);

#endif
