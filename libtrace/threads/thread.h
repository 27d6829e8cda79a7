/* thread.h: the beginning and the end of recording in a thread. */
#ifndef ENSIO_THREADS_THREAD_H
#define ENSIO_THREADS_THREAD_H

#include <core/recorder.h>

/* Suspends recording in this thread until ensio_suppress_end. At its beginning and end, MPI inspects the machine and
 * makes internal files, which are not the program's I/O. If nothing is excluded (ENSIO_EXCLUDE=), these calls are
 * recorded too. */
void ensio_suppress_begin(void);
void ensio_suppress_end(void);

/* Whether no other thread has a window of the spool. The caller holds the lock. */
int ensio_thread_alone(void);

/* Releases this thread's windows, because the spool is removed. The caller holds the lock. */
void ensio_thread_leave(void);

/* Once in a process, before the first window: arranges that threads release their windows when they end. */
void ensio_threads_begin(void);

/* The number of a thread in the process, which it gets with its first window or here. Takes the lock in the latter
 * case. */
uint16_t ensio_number_of_thread(struct ensio_thread *thread);

/* The caller of the following functions holds the lock. */

/* Adds what the thread has counted to the head of the spool. */
void ensio_thread_settle(struct ensio_thread *thread);

/* Assigns the thread a number in the process, if it has none, and arranges that its end is noted. */
void ensio_thread_number(struct ensio_thread *thread);

#endif
