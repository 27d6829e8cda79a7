/* space_budget.h: how much room events may take on disk. */
#ifndef ENSIO_SPOOL_SPACE_BUDGET_H
#define ENSIO_SPOOL_SPACE_BUDGET_H

#include <stdint.h>

/* Reads ENSIO_MAX_BYTES, "64MiB" or "64MiB,1GiB": a limit for each process, and one for all processes of a run on this
 * node. A text that is neither is reported in one sentence and ignored. */
void ensio_budget_read(void);

/* Joins the budget of the run on this node: the caller has a new spool, holds the lock, and is where a file may be
 * opened (private_files.h). `room`: bytes that can be had at most, as far as the caller has found out. */
void ensio_budget_begin(uint64_t room);

/* Leaves it: the last process removes its counter. */
void ensio_budget_end(void);

/* Takes bytes for a window, as many as are left; `must`: takes them even if they are not. Returns how many, a multiple
 * of ENSIO_WINDOW_UNIT_BYTES; 0: none are left, for the reason ENSIO_DROPPED_... in `reason`. The caller holds the
 * lock. */
uint64_t ensio_budget_take(uint64_t bytes, int must, uint32_t *reason);
void ensio_budget_give_back(uint64_t bytes);

/* What is left of the budget for events. The caller holds the lock. */
uint64_t ensio_budget_left(void);

#endif
