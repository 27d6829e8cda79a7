/* Signal handlers that store calls interrupt a store anywhere: no event is missing, and none is overwritten. */
#include "recorder_world.h"
#include "window_events.h"

#include <core/lock.h>
#include <summary/drain.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>

struct seen {
    uint64_t events, sum_of_offsets; /* in windows that keep events */
    uint64_t not_summarised;         /* events that readers add to the summary */
};

static void add(const struct ensio_event *event, void *state)
{
    struct seen *seen = state;
    seen->events++;
    seen->sum_of_offsets += (uint64_t)event->offset;
}

static void look(const struct ensio_window *window, uint64_t position, void *state)
{
    struct seen *seen = state;
    const struct ensio_event *events =
        (const struct ensio_event *)(const void *)((const char *)window + ENSIO_WINDOW_HEADER_BYTES);
    const int is_kept = window->kind == ENSIO_WINDOW_EVENTS || window->kind == ENSIO_WINDOW_CODED;
    (void)position;
    if (!is_kept && window->kind != ENSIO_WINDOW_SCRATCH)
        return;
    for (uint64_t i = window->summarised; i < ensio_window_slots(window); i++)
        seen->not_summarised += events[i].call != 0;
    if (is_kept)
        events_of_window(window, add, seen);
}

/* A reader finds all stores of offsets 1 to `stored`, and `handled` more: in the summary or not in it yet, and in mode
 * trace among the events. */
static void check_all(uint64_t stored, uint64_t handled, uint64_t handled_offsets)
{
    struct seen seen = {0, 0, 0};
    uint64_t bytes;
    const uint8_t *file = world_spool_file(&bytes);
    world_each_window(file, bytes, look, &seen);
    munmap((void *)(uintptr_t)file, bytes);
    CHECK(ensio_spool->dropped_events == 0 && ensio_spool->lost_calls == 0);
    CHECK(world_sums().count + seen.not_summarised == stored + handled);
    if (ensio_settings.mode == ENSIO_TRACE) {
        CHECK(seen.events == stored + handled);
        CHECK(seen.sum_of_offsets == stored * (stored + 1) / 2 + handled_offsets);
    }
}

#define LEAST_HANDLED 1000U
#define FIRST_HANDLED_OFFSET 10000000U
static volatile uint32_t handled;
static uint64_t handled_offsets;

static void store_in_handler(void)
{
    const uint64_t n = FIRST_HANDLED_OFFSET + handled;
    ensio_store(&ensio_thread, WORLD_READ, 0, (int64_t)n, 1, 1, n, 1);
    handled_offsets += n;
    handled++;
}

static void on_alarm(int signal)
{
    (void)signal;
    store_in_handler();
}

static void at_any_time(int mode)
{
    struct sigaction action = {.sa_handler = on_alarm};
    const struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    uint64_t stored = 0;
    world_begin_with_spool(mode);
    world_store(WORLD_WRITE, ++stored, 1);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    while (handled < LEAST_HANDLED)
        world_store(WORLD_WRITE, ++stored, 1);
    setitimer(ITIMER_REAL, &never, NULL);
    check_all(stored, handled, handled_offsets);
    world_drain();
    check_all(stored, handled, handled_offsets);
}

static void at_any_time_in_trace(void)
{
    at_any_time(ENSIO_TRACE);
}

static void at_any_time_in_profile(void)
{
    at_any_time(ENSIO_PROFILE);
}

#if defined(__x86_64__)

#define TRAP_FLAG 0x100
static volatile uint32_t steps, interrupted_step;

/* Comes after each instruction of a store. After one of them, fills the window and begins the next. */
static void on_step(int signal, siginfo_t *info, void *context)
{
    ucontext_t *at = context;
    (void)signal;
    (void)info;
    if (++steps != interrupted_step)
        return;
    const struct ensio_window *window = ensio_thread.window;
    const uint32_t capacity = ensio_thread.capacity;
    while (ensio_thread.window == window && ensio_thread.capacity == capacity && handled % 3000 != 2999)
        store_in_handler();
    store_in_handler();
    at->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

/* The red zone of the caller lies below its stack pointer. */
#define STEP(operation) \
    __asm__ volatile("leaq -128(%%rsp), %%rsp; pushfq; " operation "; popfq; leaq 128(%%rsp), %%rsp" \
                     : \
                     : \
                     : "memory", "cc")

/* One event before the end of a part, a store is interrupted after its first, second ... last instruction. Once the
 * store has completed, draining adds its event to the summary, although it lies in a window that was replaced. */
static void after_each_instruction(int mode, int drains)
{
    struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    uint64_t stored = 0;
    world_begin_with_spool(mode);
    sigaction(SIGTRAP, &action, NULL);
    world_store(WORLD_WRITE, ++stored, 1);
    for (interrupted_step = 1;; interrupted_step++) {
        ensio_thread.cursor->events_bytes = 0; /* small windows, so that each interruption meets the end of one */
        while (ensio_thread.next + 1 < ensio_thread.capacity || ensio_thread.next >= ensio_thread.capacity)
            world_store(WORLD_WRITE, ++stored, 1);
        const uint64_t n = ++stored;
        steps = 0;
        STEP("orq $0x100, (%%rsp)");
        ensio_store(&ensio_thread, WORLD_WRITE, 0, (int64_t)n, n, (int64_t)n, 1, 1);
        STEP("andq $~0x100, (%%rsp)");
        if (steps < interrupted_step)
            break;
        if (drains) {
            world_drain();
            CHECK(world_sums().count == stored + handled);
        }
    }
    CHECK(interrupted_step > 20);
    check_all(stored, handled, handled_offsets);
}

static void after_each_instruction_in_trace(void)
{
    after_each_instruction(ENSIO_TRACE, 0);
}

static void after_each_instruction_in_profile(void)
{
    after_each_instruction(ENSIO_PROFILE, 0);
}

static void drained_after_each_interruption_in_trace(void)
{
    after_each_instruction(ENSIO_TRACE, 1);
}

static void drained_after_each_interruption_in_profile(void)
{
    after_each_instruction(ENSIO_PROFILE, 1);
}

#endif

int main(void)
{
    CASE(at_any_time_in_trace);
    CASE(at_any_time_in_profile);
#if defined(__x86_64__)
    CASE(after_each_instruction_in_trace);
    CASE(after_each_instruction_in_profile);
    CASE(drained_after_each_interruption_in_trace);
    CASE(drained_after_each_interruption_in_profile);
#endif
    return 0;
}
