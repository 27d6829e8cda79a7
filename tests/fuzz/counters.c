/* counters.c: the compiler's coverage counters. Compiled without coverage, because the compiler would take these
 * declarations for its own. */
#include "counters.h"

extern uint8_t __start___sancov_cntrs[], __stop___sancov_cntrs[];

size_t counter_bytes(void)
{
    return (size_t)((uintptr_t)__stop___sancov_cntrs - (uintptr_t)__start___sancov_cntrs);
}

uint8_t *counters(void)
{
    return __start___sancov_cntrs;
}
