/* thread.h: the windows of threads. */
#ifndef ENSIO_THREAD_H
#define ENSIO_THREAD_H

#include "recorder.h"

/* A thread's first window is small, for most threads have little to say; each one after it is twice as large. */
#define ENSIO_FIRST_WINDOW_BYTES ENSIO_WINDOW_UNIT_BYTES
#define ENSIO_LARGEST_WINDOW_BYTES (16 * ENSIO_WINDOW_UNIT_BYTES)

#endif
