/* fail.h: ends a replay that cannot continue. */
#ifndef ENSIO_REPLAY_FAIL_H
#define ENSIO_REPLAY_FAIL_H

#define EXIT_USAGE 2 /* besides EXIT_FAILURE: the plan or the usage is wrong */

/* Prints one sentence to standard error and ends all tasks with `status`. */
void fail(int status, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));

#endif
