/* ordinals.h: the how many-th call of its operation on its file each call is. */
#ifndef ENSIO_SUMMARY_ORDINALS_H
#define ENSIO_SUMMARY_ORDINALS_H

#include <stdint.h>

/* The counter of calls of an operation on a file; NULL where too many files are counted already. The caller holds the
 * lock. */
uint64_t *ensio_ordinal_counter(uint32_t file, uint8_t op);

/* Counts from nothing again, in a forked child. */
void ensio_ordinals_forget(void);

#endif
