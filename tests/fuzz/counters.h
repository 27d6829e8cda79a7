/* counters.h: the counters by which libFuzzer measures the coverage of an input. */
#ifndef ENSIO_FUZZ_COUNTERS_H
#define ENSIO_FUZZ_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

uint8_t *counters(void);
size_t counter_bytes(void);

#endif
