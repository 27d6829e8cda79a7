#include "lock.h"

#include "raw.h"

#include <stdint.h>
#include <string.h>

static uint32_t lock;
static _Thread_local int holding;

struct ensio_held ensio_lock(void)
{
    struct ensio_held held = {.error = errno};
    sigset_t all;
    memset(&all, 0xff, sizeof all);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &held.signals, _NSIG / 8);
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
        syscall(SYS_sched_yield);
    holding = 1;
    return held;
}

void ensio_unlock(struct ensio_held held)
{
    holding = 0;
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &held.signals, NULL, _NSIG / 8);
    errno = held.error;
}

int ensio_locked(void)
{
    return holding;
}
