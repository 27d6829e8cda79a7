/* thread.h: the windows of threads. */
#ifndef ENSIO_THREAD_H
#define ENSIO_THREAD_H

#include "recorder.h"

/* The first window of a process's first thread, and of all others, for most threads have little to say. Each one after it is
 * four times as large, up to a size at which the kernel backs windows with large pages and their first touch costs next to
 * nothing. */
#define ENSIO_FIRST_WINDOW_BYTES 65536
#define ENSIO_OTHER_FIRST_WINDOW_BYTES 4096
#define ENSIO_WINDOW_GROWTH 4
#define ENSIO_LARGEST_WINDOW_BYTES (4 << 20)

/* Leaves out the calls that this thread makes from here on, until it is said to go on. MPI looks at the machine and makes
 * files of its own when it begins and when it ends: none of that is the program's I/O. With nothing to leave out
 * (ENSIO_EXCLUDE=) these are recorded too. */
void ensio_hide(void);
void ensio_go_on(void);

/* Once in a process, before the first window: sees to it that threads give their windows back when they end. */
void ensio_threads_begin(void);

#endif
