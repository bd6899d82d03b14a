/* config.yaml of the configuration directory: what holds where neither document nor command line says it. */
#ifndef FLOWSUP_CONFIG_H
#define FLOWSUP_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "flowsup/err.h"
#include "flowsup/json.h"

enum {
	CONFIG_KEEP_DAYS = 30,
	CONFIG_KEEP_RUNS = 1000,
	CONFIG_KEEP_FAILED_DAYS = 90,
	CONFIG_DAYS_MOST = 36500,
	CONFIG_RUNS_MOST = 100000000
};
#define CONFIG_INLINE_LIMIT (INT64_C(1) << 20)
#define CONFIG_INLINE_MOST (INT64_C(64) << 20)

struct config {
	char *path;	     /* of the file, or NULL when no home is known */
	struct json *object; /* as it stands in the file; {} when there is none */
	bool found;	     /* the file */
	int64_t keep_days, keep_runs, keep_failed_days;
	const struct json *notify; /* in object, or NULL */
	unsigned secrets;	   /* enum config_secrets */
	unsigned durability;	   /* 0: full, 1: relaxed */
	int64_t inline_limit;
	int64_t watchdog_ns; /* 0: none */
};
enum config_secrets { CONFIG_SECRETS_WITHHOLD, CONFIG_SECRETS_STORE };

/* Reads it; without a file everything has its default. ERR_DOCUMENT names the first problem with its
 * place. c is cleared on error. */
int config_read(char *const *envp, struct config *c, struct err *e);
/* The same, and *d gets all problems; on error c, which the caller clears, holds the file's path. */
struct flow_diagnostics;
int config_read_all(char *const *envp, struct config *c, struct flow_diagnostics *d, struct err *e);
void config_clear(struct config *c);
/* Everything that holds, in the form of the file. NULL when memory runs out. */
struct json *config_json(const struct config *c);

#endif
