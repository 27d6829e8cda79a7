/* windows.h: where the events of threads go. */
#ifndef ENSIO_THREADS_WINDOWS_H
#define ENSIO_THREADS_WINDOWS_H

#include <core/recorder.h>

/* All that follows is called with the lock held. */

/* Adds the thread's events to the summary. `interrupted`: this is a signal handler, which has interrupted the storing
 * of one. Returns whether there is nothing left to add. */
int ensio_window_drain(struct ensio_thread *thread, int interrupted);

/* Adds the events of all threads to the summary; `interrupted`: as above, for this thread. */
void ensio_windows_drain(int interrupted);

/* Lets go of the windows of a thread that ends. */
void ensio_windows_give_back(struct ensio_thread *thread);

/* The windows are another process's. */
void ensio_windows_forget(void);

#endif
