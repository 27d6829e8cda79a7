/* spool.h: the file in which this process records, and the windows on it. */
#ifndef ENSIO_SPOOL_SPOOL_H
#define ENSIO_SPOOL_SPOOL_H

#include <ensio/event.h>
#include <stdint.h>

/* The head of this process's spool, mapped; NULL before there is one. */
extern struct ensio_spool *ensio_spool;

/* What it says about losses. */
extern struct ensio_losses *ensio_losses;

/* How many spools this process, and those it was forked from, have made: what is in one of them is not in the next. */
extern uint32_t ensio_spool_number;

/* Makes a spool for this process in the run directory. Returns 0, or minus an errno. The caller holds the lock. */
int ensio_spool_make(void);

/* Opens the spool to read it, where a file may be opened (private_files.h): the descriptor, or minus an errno. The
 * caller holds the lock. */
int ensio_spool_open(void);

/* The name of its file, without the folder. */
const char *ensio_spool_name(void);

/* Removes the spool: 0, or minus an errno. Calls that follow make another, if their thread has left this one
 * (thread.h). The caller holds the lock. */
int ensio_spool_remove(void);

/* Lets go of the spool that a forked child inherited: it is the parent's. It stays mapped, for fork may have been
 * called in a signal handler that interrupted the storing of an event. */
void ensio_spool_forget(void);

/* Maps another window of the file, or returns NULL where no space is left; `populated`: bytes of it that may be stored
 * to at once. A window for events may come out smaller than asked for, where a budget is nearly spent. No file is
 * opened for it, unless the file has to grow. The caller holds the lock. */
struct ensio_window *ensio_window_begin(uint16_t kind, uint64_t bytes, uint64_t populated);

/* The same, and all of it may be stored to. */
struct ensio_window *ensio_window_make(uint16_t kind, uint64_t bytes);

/* Makes further bytes of a window fit to be stored to: 0, or minus an errno. The caller holds the lock. */
int ensio_window_populate(struct ensio_window *window, uint64_t from, uint64_t to);

/* The program is about to give up rights or to change its root: what may then not be done any more is done now. The
 * caller holds the lock. */
void ensio_spool_prepare_for_less(void);

/* The words of the program's command, with \x1f between them. */
const char *ensio_spool_command(void);

/* Adds a text entry; returns 0, or -1 where no space is left. The caller holds the lock. */
int ensio_text_store(uint16_t kind, uint32_t id, const char *text, uint32_t length);

/* The same for a short text without which others mean nothing: whatever the budget is. */
int ensio_text_store_essential(uint16_t kind, uint32_t id, const char *text, uint32_t length);

/* Counts a call that is not among the events, and one that is not in the summary either. */
void ensio_spool_drop(void);
void ensio_spool_lose(void);

/* Stores the losses as a property too: a job file has no room for them elsewhere. The caller holds the lock. */
void ensio_losses_store(void);

/* Brings the clock in the head up to date. The caller holds the lock. */
void ensio_spool_touch(void);

/* The recording ends here, or seems to: the clock, the state (ENSIO_STATE_...), and the length of the file. The caller
 * holds the lock. */
void ensio_spool_end(uint32_t state);

#endif
