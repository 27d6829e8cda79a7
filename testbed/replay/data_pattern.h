/* data_pattern.h: what stands in the files of a replay.
 *
 * Every byte follows from the replay's seed, the file and the offset, so that any task can check what any task wrote,
 * and what an earlier replay left behind is never taken for the data of this one.
 */
#ifndef ENSIO_REPLAY_DATA_PATTERN_H
#define ENSIO_REPLAY_DATA_PATTERN_H

#include <stdint.h>

/* Writes the content of `bytes` bytes of a file, from `offset` on, to `data`. */
void data_pattern_fill(uint64_t seed, int64_t file, int64_t offset, int64_t bytes, unsigned char *data);

/* Returns how many bytes of `data`, from its start, are as data_pattern_fill makes them. */
int64_t data_pattern_matches(uint64_t seed, int64_t file, int64_t offset, int64_t bytes, const unsigned char *data);

#endif
