/* thread.h: the beginning and the end of recording in a thread. */
#ifndef ENSIO_THREADS_THREAD_H
#define ENSIO_THREADS_THREAD_H

#include <core/recorder.h>

/* Leaves out the calls that this thread makes from here on, until it is said to go on. MPI looks at the machine and
 * makes files of its own when it begins and when it ends: none of that is the program's I/O. With nothing to leave out
 * (ENSIO_EXCLUDE=) these are recorded too. */
void ensio_suppress_begin(void);
void ensio_suppress_end(void);

/* Whether no other thread has a window of the spool. The caller holds the lock. */
int ensio_thread_alone(void);

/* Gives this thread's windows back: the spool is gone. The caller holds the lock. */
void ensio_thread_leave(void);

/* Once in a process, before the first window: sees to it that threads give their windows back when they end. */
void ensio_threads_begin(void);

/* The rest is called with the lock held. */

/* Gives the thread a number in the process, if it has none, and sees to it that its end is noted. */
void ensio_thread_number(struct ensio_thread *thread);

#endif
