/* Every duration has one bin, bins are contiguous, and none is wider than 3.2 %. */
#include "check.h"

#include <ensio/bins.h>

int main(void)
{
    for (uint64_t ns = 0; ns < 64; ns++) {
        CHECK(ensio_bin(ns) == ns);
        CHECK(ensio_bin_low((uint32_t)ns) == ns);
    }
    for (uint32_t bin = 0; bin + 1 < ENSIO_BIN_COUNT; bin++) {
        uint64_t low = ensio_bin_low(bin), next = ensio_bin_low(bin + 1);
        CHECK(low < next);
        CHECK(ensio_bin(low) == bin);
        CHECK(ensio_bin(next - 1) == bin);
        CHECK(ensio_bin(low + (next - low) / 2) == bin);
        CHECK(low < 32 || (double)(next - low) / (double)low <= 1.0 / 32);
    }
    CHECK(ensio_bin(UINT64_MAX) == ENSIO_BIN_COUNT - 1);
    puts("1 passed, 0 failed");
    return 0;
}
