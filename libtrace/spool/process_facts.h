/* process_facts.h: facts that are stored once for each process: user, C library, selected environment variables, mounts
 * of the node. */
#ifndef ENSIO_SPOOL_PROCESS_FACTS_H
#define ENSIO_SPOOL_PROCESS_FACTS_H

#include <stdint.h>

/* Stores them as properties of the process's spool. The caller holds the lock. */
void ensio_process_facts_store(void);

/* Whether this process reports the facts of its node: the launcher says that it is the first process there, or says
 * nothing. */
int ensio_reports_node(void);

/* Stores the losses as a property as well, because a job file has no other place for them. The caller holds the
 * lock. */
void ensio_losses_store(void);

/* Sets the rank of the process, and the sum of what the head says of the process. The caller holds the lock. */
void ensio_spool_set_rank(int rank, uint32_t tasks);

#endif
