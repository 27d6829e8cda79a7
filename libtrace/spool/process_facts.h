/* process_facts.h: what is noted once about the process beside its calls: user, C library, chosen environment variables, the
 * mounts of its node. */
#ifndef ENSIO_SPOOL_PROCESS_FACTS_H
#define ENSIO_SPOOL_PROCESS_FACTS_H

#include <stdint.h>

/* One mount, as /proc/self/mountinfo tells of it: with blanks, tabs, line ends and backslashes as \040 and the like. */
struct ensio_mount {
    const char *id, *device, *point, *type, *source;
};

/* Calls `each` for every mount until it returns other than 0. What it is given lasts until it returns. The caller holds the lock,
 * and is where a file may be opened (private_files.h). */
void ensio_each_mount(int (*each)(const struct ensio_mount *mount, void *state), void *state);

/* Stores them as properties of the process's spool. The caller holds the lock. */
void ensio_process_facts_store(void);

/* Whether this process tells of its node: the launcher says that it is the first one there, or says nothing. */
int ensio_reports_node(void);

#endif
