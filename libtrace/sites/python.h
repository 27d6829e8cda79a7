/* python.h: the lines of a Python program that lead to recorded calls. */
#ifndef ENSIO_SITES_PYTHON_H
#define ENSIO_SITES_PYTHON_H

#include <core/bounded_string.h>

#include <stdint.h>

/* Whether this process is a CPython interpreter whose frames are understood. */
int ensio_python_is_here(void);

/* Adds a line for each caller, as sites.c describes callers: the innermost `callers` frames of the program, without
 * those of the standard library and of installed packages. 0, or -1: this thread runs no Python code. For a single
 * caller, `site` becomes the place where what the caller makes of it can be kept; if that is there, nothing is added.
 *
 * Works without the interpreter's lock, which is released around most I/O: the frames of a thread that is inside of a
 * call do not change, and what they refer to stays. Nothing is allocated, no reference is taken, and memory is read by
 * a system call that refuses addresses without memory. The caller holds the lock, which protects the buffers. */
int ensio_python_callers(uint32_t callers, struct ensio_string *to, void ***site);

#endif
