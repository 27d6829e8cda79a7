#include "thread.h"

#include "windows.h"

#include <core/lock.h>
#include <core/memory.h>
#include <core/rawsys.h>
#include <core/settings.h>
#include <core/recorder.h>
#include <spool/spool.h>
#include <surroundings/account.h>
#include <surroundings/sample.h>

#include <pthread.h>

#define MOST_THREADS 65536 /* limit of the thread number in a window's head */

uint64_t ensio_io_pending;
_Thread_local struct ensio_thread ensio_thread = {.generation = UINT32_MAX};

int ensio_prepare(struct ensio_thread *thread)
{
    thread->excluded_calls += thread->suppressed > 0;
    /* If the lock is held, a library function was called from the recorder's initialisation. */
    if (thread->suppressed || ensio_settings.off || ensio_locked())
        return 0;
    ensio_process_map();
    struct ensio_held held = ensio_lock();
    int recorded = (ensio_process->generation || ensio_begin()) && !ensio_settings.off;
    if (recorded && thread->generation != ensio_process->generation) /* no signal handler has prepared it meanwhile */
        *thread = (struct ensio_thread){.generation = ensio_process->generation, .number = UINT32_MAX};
    ensio_unlock(held);
    return recorded;
}

/* A suppressed thread is not ready, so that it takes the slow path above and the fast path needs no further check. */
void ensio_suppress_begin(void)
{
    if (!ensio_thread.suppressed && (!ensio_ready(&ensio_thread) || !*ensio_settings.exclude))
        return;
    if (!ensio_thread.suppressed++) {
        struct ensio_held held = ensio_lock();
        ensio_account_suspend();
        ensio_unlock(held);
    }
    ensio_thread.generation = UINT32_MAX;
}

void ensio_suppress_end(void)
{
    if (ensio_thread.suppressed && --ensio_thread.suppressed == 0) {
        struct ensio_held held = ensio_lock();
        ensio_account_resume();
        ensio_unlock(held);
        ensio_thread.generation = ensio_process->generation;
    }
}

void ensio_thread_settle(struct ensio_thread *thread)
{
    if (ensio_spool)
        ensio_spool->excluded_calls += thread->excluded_calls;
    thread->excluded_calls = 0;
}

static pthread_key_t at_end_of_thread;

/* Number 0 is the main thread's, also while it has made no call: others may work beside it. Each number is used once
 * while there are any; afterwards numbers of ended threads are reused. (A thread may end more than once if a signal
 * handler still ran in it; its number may then be shared.) */
static void *free_numbers;
static uint32_t free_count;

static int is_main(void)
{
    return (uint32_t)syscall(SYS_gettid) == ensio_spool->pid;
}

static uint32_t take_number(void)
{
    if (!ensio_spool->threads)
        ensio_spool->threads = 1;
    if (is_main())
        return 0;
    if (ensio_spool->threads < MOST_THREADS)
        return ensio_spool->threads++;
    return free_count > 0 ? ((uint16_t *)free_numbers)[--free_count] : MOST_THREADS - 1;
}

void ensio_thread_number(struct ensio_thread *thread)
{
    if (thread->number == UINT32_MAX)
        thread->number = take_number();
    pthread_setspecific(at_end_of_thread, thread);
}

uint16_t ensio_number_of_thread(struct ensio_thread *thread)
{
    if (ENSIO_UNLIKELY(thread->number == UINT32_MAX)) {
        struct ensio_held held = ensio_lock();
        if (ensio_spool)
            ensio_thread_number(thread);
        ensio_unlock(held);
    }
    return (uint16_t)thread->number;
}

/* Calls in destructors that run later get another window. */
static void end_of_thread(void *state)
{
    struct ensio_thread *thread = state;
    struct ensio_held held = ensio_lock();
    ensio_windows_give_back(thread);
    uint16_t *const numbers = ensio_table(&free_numbers, MOST_THREADS * sizeof *numbers);
    if (numbers && thread->number != UINT32_MAX && free_count < MOST_THREADS)
        numbers[free_count++] = (uint16_t)thread->number;
    ensio_thread_settle(thread);
    ensio_unlock(held);
}

int ensio_thread_alone(void)
{
    const uint32_t me = ensio_thread.window != NULL || is_main();
    return ensio_spool->threads < MOST_THREADS && ensio_spool->threads - free_count <= me;
}

void ensio_thread_leave(void)
{
    ensio_windows_give_back(&ensio_thread);
    ensio_windows_forget();
    ensio_thread.number = UINT32_MAX;
    free_count = 0;
}

void ensio_threads_begin(void)
{
    pthread_key_create(&at_end_of_thread, end_of_thread);
}

/* A killed process leaves the clock readings made so far. Its times are most accurate if the first and the last reading
 * are far apart. */
void ensio_renew_clock(struct ensio_thread *thread, uint64_t now)
{
    struct ensio_held held = ensio_lock();
    thread->clock_due = now + ENSIO_CLOCK_RENEWAL_TICKS;
    if (ensio_spool) {
        ensio_thread_settle(thread);
        ensio_window_drain(thread, thread->storing > 0);
        ensio_spool_touch();
        ensio_surroundings_sample(now);
    }
    ensio_unlock(held);
}
