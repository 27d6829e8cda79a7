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

/* Once in a process, before the first window: sees to it that threads give their windows back when they end. */
void ensio_threads_begin(void);

#endif
