/* spool.h: the file in which this process records, and the windows on it. */
#ifndef ENSIO_SPOOL_H
#define ENSIO_SPOOL_H

#include <ensio/event.h>
#include <stdint.h>

/* The head of this process's spool, mapped; NULL before there is one. */
extern struct ensio_spool *ensio_spool;

/* How many spools this process, and those it was forked from, have made: what is in one of them is not in the next. */
extern uint32_t ensio_spool_number;

/* Makes a spool for this process in the run directory. Returns 0, or minus an errno. The caller holds the lock. */
int ensio_spool_make(void);

/* Opens the spool, at a descriptor above the standard ones: the descriptor, or minus an errno. The caller holds the lock. */
int ensio_spool_open(int flags);

/* The name of its file, without the folder. */
const char *ensio_spool_name(void);

/* Removes the spool: 0, or minus an errno. Calls that follow make another, if their thread has left this one (thread.h). The
 * caller holds the lock. */
int ensio_spool_remove(void);

/* Lets go of the spool that a forked child inherited: it is the parent's. It stays mapped, for fork may have been called in
 * a signal handler that interrupted the storing of an event. */
void ensio_spool_forget(void);

/* Reserves and maps another window, or returns NULL where no space is left. A window for events may come out smaller than asked
 * for, where a budget is nearly spent. The caller holds the lock. */
struct ensio_window *ensio_window_make(uint16_t kind, uint64_t bytes);

/* Opens a file of the recorder's, at a descriptor above the standard ones; a descriptor, or minus an errno. */
int ensio_open_aside(const char *path, int flags);

/* Reserves space in a file: 0, or minus an errno. */
long ensio_reserve(int fd, uint64_t offset, uint64_t bytes);

/* Adds a text entry; returns 0, or -1 where no space is left. The caller holds the lock. */
int ensio_text_store(uint16_t kind, uint32_t id, const char *text, uint32_t length);

/* Counts a call that is recorded nowhere. */
void ensio_spool_lose(void);

/* Brings the head up to date: the clock, and at the end the state. The caller holds the lock. */
void ensio_spool_touch(void);
void ensio_spool_end(void);

#endif
