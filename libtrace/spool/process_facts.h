/* process_facts.h: what is noted once about the process beside its calls: user, C library, chosen environment
 * variables, the mounts of its node. */
#ifndef ENSIO_SPOOL_PROCESS_FACTS_H
#define ENSIO_SPOOL_PROCESS_FACTS_H

/* Stores them as properties of the process's spool. The caller holds the lock. */
void ensio_process_facts_store(void);

/* Whether this process tells of its node: the launcher says that it is the first one there, or says nothing. */
int ensio_reports_node(void);

#endif
