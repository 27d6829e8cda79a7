/* fail.h: the end of a replay that cannot go on. */
#ifndef ENSIO_REPLAY_FAIL_H
#define ENSIO_REPLAY_FAIL_H

#define EXIT_USAGE 2 /* beside EXIT_FAILURE: the plan or the way of starting is wrong */

/* Prints one sentence to standard error and ends all tasks with `status`. */
void fail(int status, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));

#endif
