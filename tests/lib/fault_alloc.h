/*
 * Allocations that fail on request. For programs linked with
 *	LINK_test_x = -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
 * (and, where wanted, --wrap=reallocarray,--wrap=strdup,--wrap=strndup). Inert until armed. The
 * usual loop:
 *
 *	for (n = 1;; n++) {
 *		fault_alloc_arm(n, false);
 *		result = code_under_test();
 *		if (!fault_alloc_disarm())
 *			break;			it was never reached: all places have failed once
 *		assert(result is a clean ERR_NOMEM);
 *	}
 */
#ifndef FLOWSUP_TEST_FAULT_ALLOC_H
#define FLOWSUP_TEST_FAULT_ALLOC_H

#include <stdbool.h>

/* The n-th allocation from now (from 1) fails, and with persistent every later one. */
void fault_alloc_arm(unsigned long n, bool persistent);
/* Ends it; whether an allocation failed. */
bool fault_alloc_disarm(void);
/* Allocations since the last fault_alloc_arm. */
unsigned long fault_alloc_count(void);

#endif
