/* windows.h: the windows that the events of threads are stored to. */
#ifndef ENSIO_THREADS_WINDOWS_H
#define ENSIO_THREADS_WINDOWS_H

#include <core/recorder.h>

/* Set while the lock is held: what is in windows stays where it is, because a job file says what it has of it. */
extern int ensio_windows_stay;

/* The caller of the following functions holds the lock. */

/* Adds the thread's events to the summary. `interrupted`: called from a signal handler that interrupted a store.
 * Returns whether all events are added. */
int ensio_window_drain(struct ensio_thread *thread, int interrupted);

/* Adds the events of all threads to the summary; `interrupted` as above, for this thread. */
void ensio_windows_drain(int interrupted);

/* Releases the windows of a thread that ends. */
void ensio_windows_give_back(struct ensio_thread *thread);

/* Forgets the windows of a parent process. */
void ensio_windows_forget(void);

#endif
