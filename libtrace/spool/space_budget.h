/* space_budget.h: limits for the space of events on disk. */
#ifndef ENSIO_SPOOL_SPACE_BUDGET_H
#define ENSIO_SPOOL_SPACE_BUDGET_H

#include <stdint.h>

/* Reads ENSIO_MAX_BYTES, "64MiB" or "64MiB,1GiB": a limit for each process, and one for all processes of a run on this
 * node. Another text is reported in one sentence and ignored. */
void ensio_budget_read(void);

/* Begins to count. The caller has a new spool, holds the lock and is in ensio_with_private_files. `room`: an upper
 * limit of the available bytes. */
void ensio_budget_begin(uint64_t room);

/* Joins the budget of the run on this node, which later may be impossible. Without ENSIO_MAX_BYTES, a process otherwise
 * joins it when it has taken 512 KiB. The caller holds the lock. */
void ensio_budget_join(void);

/* Leaves it. The last process removes the counter. */
void ensio_budget_end(void);

/* Takes up to `bytes` bytes for a window; `must`: takes all of them whatever is left. Returns the number taken, a
 * multiple of ENSIO_WINDOW_UNIT_BYTES; 0 if none are left, with the reason ENSIO_DROPPED_... in `reason`. The caller
 * holds the lock. */
uint64_t ensio_budget_take(uint64_t bytes, int must, uint32_t *reason);
void ensio_budget_give_back(uint64_t bytes);

/* The free bytes above what is left to others in any case. The caller holds the lock. */
uint64_t ensio_budget_above_floor(void);

/* The bytes left for events. The caller holds the lock. */
uint64_t ensio_budget_left(void);

#endif
