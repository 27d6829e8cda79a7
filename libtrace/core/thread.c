#include "thread.h"

#include "life.h"
#include "lock.h"
#include "raw.h"
#include "settings.h"
#include "spool.h"

#include <pthread.h>
#include <sys/mman.h>

#define RETRY_TICKS (1ULL << 21)         /* about a millisecond */
#define MOST_THREADS 65536               /* numbers that a window's head can hold */
#define CLOCK_RENEWAL_TICKS (1ULL << 32) /* 1 to 5 s */

_Thread_local struct ensio_thread ensio_thread = {.generation = UINT32_MAX};

int ensio_prepare(struct ensio_thread *thread)
{
    thread->excluded_calls += thread->hidden > 0;
    if (thread->hidden || ensio_settings.off || ensio_locked()) /* locked: a library has come back from our own beginning */
        return 0;
    ensio_process_map();
    struct ensio_held held = ensio_lock();
    int recorded = (ensio_process->generation || ensio_begin()) && !ensio_settings.off;
    if (recorded && thread->generation != ensio_process->generation) /* no signal handler was quicker */
        *thread = (struct ensio_thread){.generation = ensio_process->generation, .number = UINT32_MAX};
    ensio_unlock(held);
    return recorded;
}

/* A thread that is not ready takes the slow path above, so that the common one has nothing more to look at. */
void ensio_hide(void)
{
    if (!ensio_thread.hidden && (!ensio_ready(&ensio_thread) || !*ensio_settings.exclude))
        return;
    ensio_thread.hidden++;
    ensio_thread.generation = UINT32_MAX;
}

void ensio_go_on(void)
{
    if (ensio_thread.hidden && --ensio_thread.hidden == 0)
        ensio_thread.generation = ensio_process->generation;
}

static pthread_key_t at_end_of_thread;

/* Numbers are given once, as long as there are any; then those of threads that have ended are given again. (One that ends more
 * than once, for a signal handler still ran in it, may then share its number.) */
static uint16_t free_numbers[MOST_THREADS];
static uint32_t free_count;

static uint32_t take_number(void)
{
    if (ensio_spool->threads < MOST_THREADS)
        return ensio_spool->threads++;
    return free_count > 0 ? free_numbers[--free_count] : MOST_THREADS - 1;
}

static void unmap_windows(struct ensio_thread *thread)
{
    if (thread->retired)
        munmap(thread->retired, thread->retired->bytes);
    if (thread->window)
        munmap(thread->window, thread->window->bytes);
    thread->retired = NULL;
}

/* Calls that the thread still makes, in destructors that come later, get another window. */
static void end_of_thread(void *state)
{
    struct ensio_thread *thread = state;
    struct ensio_held held = ensio_lock();
    unmap_windows(thread);
    thread->window = NULL;
    thread->next = thread->capacity = 0;
    if (thread->number != UINT32_MAX && free_count < MOST_THREADS)
        free_numbers[free_count++] = (uint16_t)thread->number;
    if (ensio_spool)
        ensio_spool->excluded_calls += thread->excluded_calls;
    thread->excluded_calls = 0;
    ensio_unlock(held);
}

void ensio_threads_begin(void)
{
    pthread_key_create(&at_end_of_thread, end_of_thread);
}

/* Puts a new window under a thread. Its old one is unmapped, unless this happens in a signal handler that interrupted the
 * storing of an event. */
static int change_window(struct ensio_thread *thread)
{
    if (ensio_recording() != 0)
        return -1;
    uint64_t bytes = thread->window           ? ENSIO_WINDOW_GROWTH * thread->window->bytes
                     : !ensio_spool->threads ? ENSIO_FIRST_WINDOW_BYTES
                                             : ENSIO_OTHER_FIRST_WINDOW_BYTES;
    struct ensio_window *window = ensio_window_make(
        ENSIO_WINDOW_EVENTS, bytes < ENSIO_LARGEST_WINDOW_BYTES ? bytes : ENSIO_LARGEST_WINDOW_BYTES);
    if (!window)
        return -1;
    if (thread->number == UINT32_MAX)
        thread->number = take_number();
    window->thread = (uint16_t)thread->number;
    window->tid = (uint32_t)syscall(SYS_gettid);
    if (thread->storing > 1)
        thread->retired = thread->window;
    else
        unmap_windows(thread);
    if (!thread->window)
        pthread_setspecific(at_end_of_thread, thread);
    thread->window = window;
    thread->slots = (struct ensio_event *)(void *)((char *)window + ENSIO_WINDOW_HEADER_BYTES);
    thread->next = 0;
    thread->clock_due = 0; /* a full window is an occasion too */
    thread->capacity = (uint32_t)((window->bytes - ENSIO_WINDOW_HEADER_BYTES) / sizeof(struct ensio_event));
    return 0;
}

/* A process that is killed leaves the readings of its clock that it has made until then: the longer ago the first and the
 * nearer the last, the truer its times. */
void ensio_renew_clock(struct ensio_thread *thread, uint64_t now)
{
    struct ensio_held held = ensio_lock();
    thread->clock_due = now + CLOCK_RENEWAL_TICKS;
    if (ensio_spool) {
        ensio_spool->excluded_calls += thread->excluded_calls;
        thread->excluded_calls = 0;
        ensio_spool_touch();
    }
    ensio_unlock(held);
}

/* Where there is no space, the event is counted and dropped, and only now and then is space asked for again. */
struct ensio_event *ensio_next_window(struct ensio_thread *thread)
{
    if (ensio_ticks() < thread->retry_due && ensio_spool) {
        thread->next = thread->capacity;
        __atomic_fetch_add(&ensio_spool->dropped_events, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    struct ensio_held held = ensio_lock();
    struct ensio_event *event = NULL;
    /* A signal handler may have changed the window since the claim. */
    if (thread->next < thread->capacity || change_window(thread) == 0) {
        event = thread->slots + thread->next++;
    } else {
        thread->next = thread->capacity;
        thread->retry_due = ensio_ticks() + RETRY_TICKS;
        if (ensio_spool)
            __atomic_fetch_add(&ensio_spool->dropped_events, 1, __ATOMIC_RELAXED);
    }
    ensio_unlock(held);
    return event;
}
