/* unseen_io.h: in a relinked program, I/O inside shared libraries is not recorded. The kernel counts all bytes that a
 * process reads and writes; with these, readers see how many bytes the record misses, and in which libraries. */
#ifndef ENSIO_SPOOL_UNSEEN_IO_H
#define ENSIO_SPOOL_UNSEEN_IO_H

/* Keeps the kernel's counts at the beginning of the recording; a forked child counts separately, from 0. The caller
 * holds the lock, as of the next two. */
void ensio_unseen_io_begin(int forked);

/* Stores the property `libraries`: the shared libraries of the program that may do I/O. */
void ensio_unseen_io_libraries(void);

/* Stores the property `chars`: the bytes that the process has read and written since the beginning. */
void ensio_unseen_io_store(void);

#endif
