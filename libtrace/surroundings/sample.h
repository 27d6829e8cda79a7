/* sample.h: samples of the kernel's counters around the program's I/O: dirty pages, I/O pressure, network mounts.
 *
 * There is no thread for it. The recorder takes a sample on paths that are slow anyway: when a thread renews its clock
 * reading, at a phase, and at the end. */
#ifndef ENSIO_SURROUNDINGS_SAMPLE_H
#define ENSIO_SURROUNDINGS_SAMPLE_H

#include <stdint.h>

/* Takes a sample if one is due at tick `now`. The caller holds the lock, and the process has a spool. */
void ensio_surroundings_sample(uint64_t now);

/* Takes the last sample, of all counters, unless the one before is so recent that nothing can have changed. The same
 * conditions. */
void ensio_surroundings_end(void);

#endif
