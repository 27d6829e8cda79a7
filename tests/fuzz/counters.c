/* counters.c: where the compiler keeps how often each piece of code was gone through. Compiled without that counting,
 * as the compiler would take these declarations for its own. */
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
