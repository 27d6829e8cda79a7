/* private_files.h: opening files of the recorder's where the program cannot meet their descriptors.
 *
 * A descriptor of ours in the program's table is a danger to the program: a thread of it may put a file of its own on
 * that number (dup2, close and open), and what was meant for our file goes into its file; or it finds its table full.
 * Hence nothing of the recorder stays open, windows are made without a descriptor (spool.c), and what needs one is done
 * here. */
#ifndef ENSIO_CORE_PRIVATE_FILES_H
#define ENSIO_CORE_PRIVATE_FILES_H

#include <stdint.h>

/* Calls `what(state)` and returns its result. If the process has other threads, the call is made in a short-lived
 * thread with a copy of the descriptor table, while this one waits. When that thread ends, the kernel closes the
 * copies, for which network file systems may write back what is cached: so it is for the beginning and the end of a
 * recording, never for each window. -EMFILE from `what` leads to a second call with the copy, in which room can be
 * made. The caller has blocked all signals (it holds the lock), and leaves no descriptor open. Minus an errno where no
 * thread can be had. */
int64_t ensio_with_private_files(int64_t (*what)(void *state), void *state);

/* Opens a file there: a descriptor, or minus an errno. If the table is a copy and full, one of its entries makes room.
 */
int ensio_private_open(const char *path, int flags, unsigned mode);

/* Calls `each` for every line of a small file, which it may change in place, until it returns other than 0. Lines
 * longer than any that a kernel writes are skipped. The caller holds the lock, and is where a file may be opened. */
void ensio_private_each_line(const char *path, int (*each)(char *line, void *state), void *state);

#endif
