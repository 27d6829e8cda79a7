/* recorder_world.h: the recorder's own objects in a test, without its life cycle.
 *
 * A program begins recording at its first call (process/lifecycle.c). A test of one unit begins by world_begin instead,
 * and says itself when a spool is made. The state of the recorder is static, so each case runs in its own process. */
#ifndef ENSIO_RECORDER_WORLD_H
#define ENSIO_RECORDER_WORLD_H

#include "check.h"

#include <core/recorder.h>
#include <core/settings.h>
#include <spool/spool.h>

#include <stdint.h>
#include <sys/types.h>

/* Runs a case in a child, which must exit with 0. Reports the name of the case if it does not. */
#define CASE(function) world_case(#function, function)
void world_case(const char *name, void (*what)(void));

/* Begins recording in this process: a new folder, the clock, no spool yet. The folder is removed after the case. */
void world_begin(int mode);

/* The same, with a spool. Takes and releases the lock. */
void world_begin_with_spool(int mode);

/* Gives this process no further memory, or again what it had. Ends the case where that is not possible (qemu-user). */
void world_limit_memory(int on);

/* The folder of the spools. */
const char *world_folder(void);

/* Maps the spool of this process from its file, as a reader does, and gives its length. */
const uint8_t *world_spool_file(uint64_t *bytes);

/* The same for the spool of another process. */
const uint8_t *world_spool_of(pid_t process, uint64_t *bytes);

/* Calls `each` for every window after the first one, as readers find them. Returns their number. */
uint32_t world_each_window(const uint8_t *file, uint64_t bytes,
                           void (*each)(const struct ensio_window *window, uint64_t position, void *state),
                           void *state);

/* Sums over all cells of the present spool. */
struct world_sums {
    uint64_t cells, count, errors, moved, time_ns, inner_ns, nested_count, carried_moved, in_bins, without_bin;
};
struct world_sums world_sums(void);

/* A call that moved all that it requested. */
struct ensio_event world_event(uint16_t call, uint64_t start, uint64_t duration, uint64_t requested);

/* Numbers of calls in the tables. */
#define WORLD_READ 5
#define WORLD_WRITE 6

/* Stores calls number `first` to `first + count - 1` of this thread: call n starts at tick 10 n, takes 1 tick, and
 * requests and moves n bytes at offset n. */
void world_store(uint16_t call, uint64_t first, uint64_t count);

/* Adds the events of all threads to the summary. Takes and releases the lock. */
void world_drain(void);

#endif
