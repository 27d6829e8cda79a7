/* banner.h: a summary on standard error when the recording ends (ENSIO_BANNER). */
#ifndef ENSIO_PROCESS_BANNER_H
#define ENSIO_PROCESS_BANNER_H

#include <summary/totals.h>

enum { ENSIO_BANNER_NONE, ENSIO_BANNER_SHORT, ENSIO_BANNER_FULL };

/* Remembers the identity of standard error, so that the banner never goes to a file that replaces it. */
void ensio_banner_begin(void);

/* The kind of banner that the environment requests; `unless`: the default. */
int ensio_banner_wanted(int unless);

/* At the end of a process without MPI: prints the banner if it is requested. The caller has drained the windows. */
void ensio_banner_at_exit(void);

/* Prints the banner once. `hosts`: 0 if unknown; `tasks`: number of tasks of the job, of which the totals hold all or
 * one; `until`: the call at which the totals were taken; `why_one`: why they hold one. */
void ensio_banner_print(int kind, const struct ensio_totals *totals, uint64_t tasks, uint64_t hosts, const char *until,
                        const char *why_one);

#endif
