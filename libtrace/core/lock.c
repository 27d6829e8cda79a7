#include "lock.h"

#include "rawsys.h"
#include "recorder.h"

#include <linux/futex.h>
#include <string.h>

enum { FREE, HELD, WAITED_FOR };

/* The nesting depth: another library's fork handler may open files while ours holds the lock. */
static _Thread_local int holding;

/* Waiting threads sleep. A thread that spins at a real-time priority could keep the holder from running. */
static void acquire(uint32_t *lock)
{
    uint32_t found = FREE;
    if (__atomic_compare_exchange_n(lock, &found, HELD, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    while (__atomic_exchange_n(lock, WAITED_FOR, __ATOMIC_ACQUIRE) != FREE)
        syscall(SYS_futex, lock, FUTEX_WAIT_PRIVATE, WAITED_FOR, NULL, NULL, 0);
}

static void release(uint32_t *lock)
{
    if (__atomic_exchange_n(lock, FREE, __ATOMIC_RELEASE) == WAITED_FOR)
        syscall(SYS_futex, lock, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

struct ensio_held ensio_lock(void)
{
    struct ensio_held held = {.error = errno};
    sigset_t all;
    memset(&all, 0xff, sizeof all);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &held.signals, _NSIG / 8);
    if (holding == 0)
        acquire(&ensio_process->lock);
    holding++;
    return held;
}

void ensio_unlock(struct ensio_held held)
{
    if (--holding == 0)
        release(&ensio_process->lock);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &held.signals, NULL, _NSIG / 8);
    errno = held.error;
}

int ensio_locked(void)
{
    return holding > 0;
}
