/* ordinals.h: the ordinal of a call: its index among the calls of its operation on its file. */
#ifndef ENSIO_SUMMARY_ORDINALS_H
#define ENSIO_SUMMARY_ORDINALS_H

#include <stdint.h>

/* The counter of calls of an operation on a file, or NULL beyond the limit of files. The caller holds the lock. */
uint64_t *ensio_ordinal_counter(uint32_t file, uint8_t op);

/* Restarts counting, in a forked child. */
void ensio_ordinals_forget(void);

#endif
