/* thread.h: the windows of threads. */
#ifndef ENSIO_THREAD_H
#define ENSIO_THREAD_H

#include "recorder.h"

/* A thread's first window is small, for most threads have little to say. Each one after it is four times as large, up to a
 * size at which the kernel backs windows with large pages and their first touch costs next to nothing. */
#define ENSIO_FIRST_WINDOW_BYTES ENSIO_WINDOW_UNIT_BYTES
#define ENSIO_WINDOW_GROWTH 4
#define ENSIO_LARGEST_WINDOW_BYTES (4 << 20)

#endif
