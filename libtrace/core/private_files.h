/* private_files.h: opens the recorder's files where the program cannot meet their descriptors.
 *
 * A descriptor of the recorder in the program's table is a danger to the program. Another thread may put a file on that
 * number (dup2, or close and open), and data for our file would go into the program's file; or the table may be full.
 * Therefore the recorder keeps no descriptor open, makes windows without one (spool.c), and opens files here. */
#ifndef ENSIO_CORE_PRIVATE_FILES_H
#define ENSIO_CORE_PRIVATE_FILES_H

#include <stdint.h>

/* Calls `what(state)` and returns its result. In a process with several threads, a short-lived thread with an empty
 * descriptor table makes the call while this thread waits. Kernels before 5.9 copy the table first, and close the
 * copies before the call; network file systems may then write back cached data. So the program's locks, pipes and ports
 * are released when the program closes them. Use this at the beginning and the end of a recording, never for each
 * window. If `what` returns -EMFILE, it is called again with the empty table. The caller holds the lock, so that all
 * signals are blocked, and leaves no descriptor open. Returns minus an errno if no thread can be created. */
int64_t ensio_with_private_files(int64_t (*what)(void *state), void *state);

/* Writes a message to the program's standard error: in that context, when it ends. */
void ensio_tell(const char *text, uint32_t length);

/* The recorder initialises itself before main, from here on or up to here. */
void ensio_private_files_start(int begins);

/* Opens a file in that context: a descriptor, or minus an errno. If the table is a full copy, one of its entries is
 * closed to make room. The number may be 0, 1 or 2. */
int ensio_private_open(const char *path, int flags, unsigned mode);

/* The kernel's name for the open file of this thread's descriptor: its length. A file without a path (a socket, a pipe)
 * has a name that does not begin with a slash, a descriptor that is not open none. */
long ensio_descriptor_name(int fd, char *to, uint32_t room);

/* Calls `each` for every line of a small file until it returns nonzero; `each` may change the line. Lines longer than
 * any that the kernel writes are skipped. The caller holds the lock and is in ensio_with_private_files. */
void ensio_private_each_line(const char *path, int (*each)(char *line, void *state), void *state);

/* Calls `each` for every entry of a folder, with its descriptor, until it returns nonzero: its last result. As above,
 * and `each` may not call this. */
struct dirent64;
int ensio_private_each_entry(const char *folder, int (*each)(int fd, const struct dirent64 *entry, void *state),
                             void *state);

#endif
