/* Children of a test: started, waited for, and nothing left of them. */
#ifndef FLOWSUP_TEST_CHILDREN_H
#define FLOWSUP_TEST_CHILDREN_H

#include "flowsup/proc.h"

/* Starts, or fails the test. */
struct proc_child child_start(const struct proc_spawn *spawn);

/* Waits for its end, reaps it and closes its pidfd. */
struct proc_end child_finish(struct proc_child *child);

/* Fails the test where a child is left, even as a zombie. */
void children_none(void);

/* For a program that starts itself: until a signal, ten minutes at most. */
void child_pause(void);

#endif
