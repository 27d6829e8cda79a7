/* budget.h: how much room events may take on disk (ENSIO_MAX_BYTES). */
#ifndef ENSIO_BUDGET_H
#define ENSIO_BUDGET_H

#include <stdint.h>

/* Reads "64MiB" or "64MiB,1GiB": a limit for each process, and one for all processes of a run on this node. What makes no
 * sense is told in one sentence and ignored. */
void ensio_budget_read(const char *text);

/* Takes bytes from the budget, as many as are left; `must`: takes them even if they are not. Returns how many, a multiple of
 * ENSIO_WINDOW_UNIT_BYTES; 0: none is left. The caller holds the lock. */
uint64_t ensio_budget_take(uint64_t bytes, int must);
void ensio_budget_give_back(uint64_t bytes);

/* A forked child has a spool of its own, and the node's budget in common with its parent. */
void ensio_budget_forget(void);

#endif
