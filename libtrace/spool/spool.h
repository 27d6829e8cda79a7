/* spool.h: the file that holds the recording of this process, and its windows. */
#ifndef ENSIO_SPOOL_SPOOL_H
#define ENSIO_SPOOL_SPOOL_H

#include <ensio/event.h>
#include <stdint.h>

/* The head of this process's spool, mapped; NULL before there is one. */
extern struct ensio_spool *ensio_spool;

/* Its counts of losses. */
extern struct ensio_losses *ensio_losses;

/* Its sums of requests of non-blocking I/O. */
extern struct ensio_flights *ensio_flights;

/* The number of spools that this process and its ancestors by fork have made. Texts in one spool are not in the
 * next. */
extern uint32_t ensio_spool_number;

/* When recording began in this process, before its first call: its spool is made when that call has returned. */
extern struct ensio_clock_reading ensio_spool_begun;

/* Makes a spool for this process in the run directory, with a table of calls. Returns 0, or minus an errno. The caller
 * holds the lock. */
int ensio_spool_make(const char *calls);

/* Opens the spool for reading: the descriptor, or minus an errno. The caller holds the lock and is in
 * ensio_with_private_files. */
int ensio_spool_open(void);

/* The same for changing it. */
int ensio_spool_open_to_change(void);

/* The most bytes that a file of this process may have: exceeding it would raise SIGXFSZ in the program. */
uint64_t ensio_longest_file(void);

/* The name of its file, without the folder. */
const char *ensio_spool_name(void);

/* Removes the spool: 0, or minus an errno. Later calls make another one, if their thread has left this one (thread.h).
 * The caller holds the lock. */
int ensio_spool_remove(void);

/* Abandons the spool that a forked child inherited, which belongs to the parent. It stays mapped, because a signal
 * handler that interrupted the storing of an event may have called fork. */
void ensio_spool_forget(void);

/* Maps another window of the file, or returns NULL without space. `populated`: bytes of it that may be stored to
 * immediately. A window of events may be smaller than requested when a budget is nearly exhausted. No file is opened,
 * unless the file has to grow. The caller holds the lock. */
struct ensio_window *ensio_window_begin(uint16_t kind, uint64_t bytes, uint64_t populated);

/* The same, with the whole window populated. */
struct ensio_window *ensio_window_make(uint16_t kind, uint64_t bytes);

/* Allocates further bytes of a window, so that they may be stored to: 0, or minus an errno. The caller holds the
 * lock. */
int ensio_window_populate(struct ensio_window *window, uint64_t from, uint64_t to);

/* The program is about to drop rights or change its root: does in advance what may be impossible afterwards. The caller
 * holds the lock. */
void ensio_spool_prepare_for_less(void);

/* Adds a text entry: 0, or -1 without space. Takes the lock if more space is needed. */
int ensio_text_store(uint16_t kind, uint32_t id, const char *text, uint32_t length);

/* The same for a short text that others depend on, regardless of the budget. The caller holds the lock. */
int ensio_text_store_essential(uint16_t kind, uint32_t id, const char *text, uint32_t length);

/* Counts a call that is missing among the events, and one that is missing in the summary too. */
void ensio_spool_drop(void);
void ensio_spool_lose(void);

/* Updates the clock in the head. The caller holds the lock. */
void ensio_spool_touch(void);

/* Sets the clock and the state (ENSIO_STATE_...) only. The caller holds the lock. */
void ensio_spool_set_state(uint32_t state);

/* The recording ends, or seems to end: sets the clock, the state (ENSIO_STATE_...) and the length of the file. The
 * caller holds the lock. */
void ensio_spool_end(uint32_t state);

#endif
