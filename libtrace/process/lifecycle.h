/* lifecycle.h: the beginning and the end of recording in a process. */
#ifndef ENSIO_PROCESS_LIFECYCLE_H
#define ENSIO_PROCESS_LIFECYCLE_H

/* Marks the recording as complete, or removes the spool if the job file holds all of it. Later calls are still
 * recorded. */
void ensio_end(void);

/* Another process now shares this process's open files. */
void ensio_spawned(void);

/* The next call replaces this process by another program or a child, so the recording ends here unless the call fails.
 * Returns whether ensio_take_back must be called then. */
int ensio_hand_over(void);
void ensio_take_back(void);

/* The program is about to drop rights or to change its root or user. Makes the spool now, because it may be impossible
 * later. */
void ensio_rights_end(void);

/* Sets the rank that MPI reports. */
void ensio_set_rank(int rank, int tasks);

#endif
