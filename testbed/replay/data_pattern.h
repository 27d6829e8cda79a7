/* data_pattern.h: the contents of a replay's files.
 *
 * Every byte follows from the replay's seed, the file and the offset, so that any task can check what any task wrote,
 * and data of an earlier replay are recognised as wrong. */
#ifndef ENSIO_REPLAY_DATA_PATTERN_H
#define ENSIO_REPLAY_DATA_PATTERN_H

#include <stdint.h>

/* Fills `data` with the contents of a file: `bytes` bytes from `offset`. */
void data_pattern_fill(uint64_t seed, int64_t file, int64_t offset, int64_t bytes, unsigned char *data);

/* The number of bytes at the start of `data` that match data_pattern_fill. */
int64_t data_pattern_matches(uint64_t seed, int64_t file, int64_t offset, int64_t bytes, const unsigned char *data);

#endif
