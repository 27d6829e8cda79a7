/* account.h: the kernel counts all bytes that a process reads, writes and makes dirty. With these counts, and those of
 * calls on excluded files, readers see how many bytes the recorded calls miss (struct ensio_account). */
#ifndef ENSIO_SURROUNDINGS_ACCOUNT_H
#define ENSIO_SURROUNDINGS_ACCOUNT_H

#include <ensio/event.h>

/* The caller of these functions holds the lock. */

/* Before the process makes a spool. A forked child counts from 0. */
void ensio_account_prepare(int forked);

/* The spool was made: the account begins. Of a relinked program, stores the property `libraries`: the shared libraries
 * that may do I/O. */
void ensio_account_begin(void);

/* What the kernel counts of the calling thread between the two is left out: its calls are not recorded meanwhile. The
 * same holds for threads that begin meanwhile, where their calls are not seen. */
void ensio_account_suspend(void);
void ensio_account_resume(void);

/* Takes the counters of a process from a sample. */
void ensio_account_sample(const struct ensio_surroundings *row);

/* Notes what does I/O without calls, which may be gone at the end. To be called in ensio_with_private_files. */
int64_t ensio_account_look(void *unused);

/* The recording ends, or is collected: reads the counters, looks for I/O that makes no calls, and stores how long the
 * main thread waited for a processor as the property `processor_wait_ns`. */
void ensio_account_take(void);

/* Stores the account as the property `account`, for a job file. */
void ensio_account_store(void);

#endif
