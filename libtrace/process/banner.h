/* banner.h: a few lines on standard error about what was recorded, when it ends (ENSIO_BANNER). */
#ifndef ENSIO_PROCESS_BANNER_H
#define ENSIO_PROCESS_BANNER_H

#include <summary/totals.h>

enum { ENSIO_BANNER_NONE, ENSIO_BANNER_SHORT, ENSIO_BANNER_FULL };

/* Notes what standard error is, so that nothing is ever written to what takes its place. */
void ensio_banner_begin(void);

/* What the environment asks for; `unless` where it asks for nothing. */
int ensio_banner_wanted(int unless);

/* At the end of a process: for programs without MPI, if it is asked for. */
void ensio_banner_at_exit(void);

/* Prints it, once. `hosts`: 0 where that is not known; `tasks`: of the job, of which all or only one are in the totals.
 */
void ensio_banner_print(int kind, const struct ensio_totals *totals, uint64_t tasks, uint64_t hosts);

#endif
