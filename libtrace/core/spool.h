/* spool.h: the file in which this process records, and the windows on it. */
#ifndef ENSIO_SPOOL_H
#define ENSIO_SPOOL_H

#include <ensio/event.h>
#include <stdint.h>

/* The head of this process's spool, mapped; NULL before there is one. */
extern struct ensio_spool *ensio_spool;

/* Makes a spool for this process in the run directory. Returns 0, or minus an errno. The caller holds the lock. */
int ensio_spool_make(void);

/* Lets go of the spool that a forked child inherited: it is the parent's. It stays mapped, for fork may have been called in
 * a signal handler that interrupted the storing of an event. */
void ensio_spool_forget(void);

/* Reserves and maps another window, or returns NULL where no space is left. The caller holds the lock. */
struct ensio_window *ensio_window_make(uint16_t kind, uint64_t bytes);

/* Adds a text entry; returns 0, or -1 where no space is left. The caller holds the lock. */
int ensio_text_store(uint16_t kind, uint32_t id, const char *text, uint32_t length);

/* Brings the head up to date: the clock, and at the end the state. The caller holds the lock. */
void ensio_spool_touch(void);
void ensio_spool_end(void);

#endif
