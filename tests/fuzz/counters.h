/* counters.h: the counters by which libFuzzer knows what code an input went through. */
#ifndef ENSIO_FUZZ_COUNTERS_H
#define ENSIO_FUZZ_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

uint8_t *counters(void);
size_t counter_bytes(void);

#endif
