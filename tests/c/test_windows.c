/* The windows of a thread: their sizes and parts, full windows, lack of space, and several threads. */
#include "recorder_world.h"
#include "window_events.h"

#include <core/lock.h>
#include <summary/drain.h>
#include <threads/thread.h>
#include <threads/windows.h>

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define KIB 1024U
#define PART 1024U /* events after which a window is drained */
#define SLOTS_OF(bytes) (((bytes)-ENSIO_WINDOW_HEADER_BYTES) / sizeof(struct ensio_event))

/* What a reader finds in the windows. */
struct seen {
    uint64_t windows[ENSIO_WINDOW_CODED + 1], bytes[ENSIO_WINDOW_CODED + 1];
    uint64_t events, summarised, sum_of_offsets, last_start[64];
    uint64_t sizes[64]; /* of windows of events, in their order */
    int in_order;
};

static uint16_t thread_of_window;

static void look_at_event(const struct ensio_event *event, void *state)
{
    struct seen *seen = state;
    seen->events++;
    seen->sum_of_offsets += (uint64_t)event->offset;
    seen->in_order &= thread_of_window >= 64 || event->start > seen->last_start[thread_of_window];
    if (thread_of_window < 64)
        seen->last_start[thread_of_window] = event->start;
}

static void look(const struct ensio_window *window, uint64_t position, void *state)
{
    struct seen *seen = state;
    CHECK(window->kind <= ENSIO_WINDOW_CODED && position % ENSIO_WINDOW_UNIT_BYTES == 0);
    const int has_events = window->kind == ENSIO_WINDOW_EVENTS || window->kind == ENSIO_WINDOW_CODED;
    const uint64_t before = seen->windows[ENSIO_WINDOW_EVENTS] + seen->windows[ENSIO_WINDOW_CODED];
    if (has_events && before < 64)
        seen->sizes[before] = window->bytes;
    seen->windows[window->kind]++;
    seen->bytes[window->kind] += window->bytes;
    thread_of_window = window->thread;
    if (has_events)
        seen->summarised += events_of_window(window, look_at_event, seen);
}

static struct seen look_at_spool(void)
{
    struct seen seen = {.in_order = 1};
    uint64_t bytes;
    const uint8_t *file = world_spool_file(&bytes);
    world_each_window(file, bytes, look, &seen);
    munmap((void *)(uintptr_t)file, bytes);
    return seen;
}

/* At each boundary of parts, every event so far is in the file, in order, and the parts before are in the summary.
 * Parts are coded, and take a tenth of the space. */
static void coded(void)
{
    uint64_t stored = 0;
    world_begin_with_spool(ENSIO_TRACE);
    for (int part = 0; part < 60; part++) {
        world_store(WORLD_WRITE, ++stored, 1);
        struct seen seen = look_at_spool();
        CHECK(seen.events == stored && seen.summarised >= stored - 1);
        world_store(WORLD_WRITE, stored + 1, PART - 1);
        stored += PART - 1;
    }
    world_drain();
    struct seen seen = look_at_spool();
    CHECK(seen.events == stored && seen.in_order && seen.sum_of_offsets == stored * (stored + 1) / 2);
    CHECK(seen.summarised == stored && world_sums().count == stored && ensio_spool->dropped_events == 0);
    CHECK(seen.windows[ENSIO_WINDOW_EVENTS] == 0 && seen.windows[ENSIO_WINDOW_CODED] <= 3);
}

/* What a job file says of windows has to stay right: their slots are not used again. */
static void staying(void)
{
    world_begin_with_spool(ENSIO_TRACE);
    world_store(WORLD_WRITE, 1, PART + 10);
    CHECK(ensio_thread.window->coded == PART && ensio_thread.next == 10);
    ensio_windows_stay = 1;
    world_store(WORLD_WRITE, PART + 11, 3 * PART);
    struct seen seen = look_at_spool();
    CHECK(seen.events == 4 * PART + 10 && seen.in_order && seen.windows[ENSIO_WINDOW_CODED] == 1);
    CHECK(seen.windows[ENSIO_WINDOW_EVENTS] >= 1);
}

#if defined(__x86_64__)

static void find_coded(const struct ensio_window *window, uint64_t position, void *state)
{
    (void)position;
    if (window->kind == ENSIO_WINDOW_CODED)
        *(const struct ensio_window **)state = window;
}

/* Has a traced process stop after each store to eight bytes. */
static void watch(pid_t process, const void *eight)
{
    const uintptr_t place = (uintptr_t)eight, on_writes = 1 | 9U << 16;
    CHECK(ptrace(PTRACE_POKEUSER, process, offsetof(struct user, u_debugreg[0]), place) == 0);
    CHECK(ptrace(PTRACE_POKEUSER, process, offsetof(struct user, u_debugreg[7]), on_writes) == 0);
}

/* A process codes a part, and is stopped where its window changes, and from there after each instruction. What a kill
 * would leave then are all events. */
static void killed_while_coding(void)
{
    const uint64_t before = 2 * PART;
    uint64_t stops = 0, bytes;
    int status;
    struct ensio_window **own_window =
        mmap(NULL, sizeof *own_window, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        world_begin_with_spool(ENSIO_TRACE);
        world_store(WORLD_WRITE, 1, before);
        world_drain();
        *own_window = ensio_thread.window;
        raise(SIGSTOP);
        world_store(WORLD_WRITE, before + 1, 1);
        _exit(ensio_thread.window->coded == 2 * PART ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
    const uint8_t *file = world_spool_of(child, &bytes);
    const struct ensio_window *window = NULL;
    world_each_window(file, bytes, find_coded, &window);
    watch(child, &(*own_window)->summarised);
    for (;; stops++) {
        const int is_coding = window->summarised == ENSIO_CODED_SLOTS || stops > 1;
        CHECK(ptrace(is_coding ? PTRACE_SINGLESTEP : PTRACE_CONT, child, NULL, NULL) == 0);
        CHECK(waitpid(child, &status, 0) == child);
        if (!WIFSTOPPED(status))
            break;
        struct seen seen = {.in_order = 1};
        look(window, 0, &seen);
        CHECK(seen.in_order && (seen.events == before || seen.events == before + 1));
        CHECK(seen.sum_of_offsets == seen.events * (seen.events + 1) / 2);
    }
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0 && stops > PART);
}

#else

static void killed_while_coding(void)
{
}

#endif

/* The same where a part could not be coded. The window after a full one is four times as large, up to 2 MiB. */
static void boundaries(void)
{
    const uint64_t sizes[] = {64 * KIB, 256 * KIB, 1024 * KIB, 2048 * KIB, 2048 * KIB};
    uint64_t stored = 0;
    world_begin_with_spool(ENSIO_TRACE);
    for (int w = 0; w < 5; w++) {
        const uint64_t begin = stored, slots = w ? SLOTS_OF(sizes[w]) : PART;
        for (uint64_t part = 0; part < slots; part += PART) {
            const uint64_t end = begin + (part + PART < slots ? part + PART : slots);
            world_store(WORLD_WRITE, stored + 1, 1); /* the first of the part */
            stored++;
            ensio_thread.cursor->uncoded = 1;
            struct seen seen = look_at_spool();
            CHECK(seen.windows[ENSIO_WINDOW_EVENTS] == (uint64_t)w && seen.sizes[w] == sizes[w]);
            /* the first event of a window renews the clock, and is drained then */
            CHECK(seen.events == stored && seen.summarised == stored - (part > 0));
            world_store(WORLD_WRITE, stored + 1, end - stored); /* the rest of it */
            stored = end;
            CHECK(ensio_thread.next == ensio_thread.capacity);
        }
        CHECK(ensio_thread.capacity == slots);
        struct seen seen = look_at_spool();
        CHECK(seen.windows[ENSIO_WINDOW_EVENTS] == (uint64_t)w); /* full, but no new one yet */
        CHECK(seen.events == stored && seen.in_order && seen.sum_of_offsets == stored * (stored + 1) / 2);
    }
    world_drain();
    CHECK(look_at_spool().summarised == stored && world_sums().count == stored);
    CHECK(world_sums().moved == stored * (stored + 1) / 2 && ensio_spool->dropped_events == 0);
}

/* Without events to keep, windows stay in the cache and their slots are used again. */
static void profile(void)
{
    world_begin_with_spool(ENSIO_PROFILE);
    world_store(WORLD_WRITE, 1, 300000);
    world_drain();
    struct seen seen = look_at_spool();
    CHECK(seen.windows[ENSIO_WINDOW_EVENTS] == 0);
    CHECK(seen.bytes[ENSIO_WINDOW_SCRATCH] <= 64 * KIB + 64 * KIB + 16 * KIB);
    CHECK(world_sums().count == 300000 && ensio_spool->dropped_events == 0);
    CHECK(ensio_spool->threads == 1);
}

/* Without memory for another window, calls reach the summary and are counted as dropped. With memory again, events are
 * stored again. */
static void without_memory(void)
{
    world_begin_with_spool(ENSIO_TRACE);
    const uint64_t slots = 3 * PART;
    world_store(WORLD_WRITE, 1, slots);
    world_limit_memory(1);
    world_store(WORLD_WRITE, slots + 1, 10000);
    world_limit_memory(0);
    world_drain();
    CHECK(look_at_spool().events == slots);
    CHECK(world_sums().count == slots + 10000);
    CHECK(ensio_spool->dropped_events == 10000 && ensio_spool->lost_calls == 0);
    CHECK(ensio_losses->dropped_for[ENSIO_DROPPED_MEMORY] == 10000);
    uint64_t stored = slots + 10000;
    while (look_at_spool().windows[ENSIO_WINDOW_CODED] == 1) { /* asked for again after about a millisecond */
        world_store(WORLD_WRITE, stored + 1, PART);
        stored += PART;
    }
    world_drain();
    struct seen seen = look_at_spool();
    CHECK(seen.events + ensio_spool->dropped_events == stored && world_sums().count == stored);
}

/* Not even the first window: each call is counted as lost. */
static void without_any_memory(void)
{
    world_begin_with_spool(ENSIO_TRACE);
    world_limit_memory(1);
    world_store(WORLD_WRITE, 1, 1000);
    world_limit_memory(0);
    CHECK(ensio_spool->lost_calls == 1000 && ensio_spool->dropped_events == 1000);
    CHECK(ensio_thread.next == ensio_thread.capacity); /* failed claims do not add up */
}

/* At the limit of the file's size no signal is raised, the summary is complete, and the reason is noted. */
static void limited_file(void)
{
    struct rlimit limit;
    world_begin(ENSIO_TRACE);
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = 1000 * KIB + 17; /* not a multiple of a page */
    setrlimit(RLIMIT_FSIZE, &limit);
    world_store(WORLD_WRITE, 1, 100000);
    world_drain();
    uint64_t bytes;
    const uint8_t *file = world_spool_file(&bytes);
    munmap((void *)(uintptr_t)file, bytes);
    CHECK(bytes <= limit.rlim_cur);
    struct seen seen = look_at_spool();
    CHECK(seen.events >= SLOTS_OF(64 * KIB) && seen.events + ensio_spool->dropped_events == 100000);
    CHECK(ensio_spool->lost_calls == 0 && world_sums().count == 100000);
    CHECK(ensio_losses->dropped_for[ENSIO_DROPPED_FILE_SIZE] == ensio_spool->dropped_events);
}

#define THREADS 4
#define CALLS 20000U

static void *store_many(void *given)
{
    (void)given;
    world_store(WORLD_WRITE, 1, CALLS);
    return NULL;
}

static void *store_one(void *given)
{
    (void)given;
    world_store(WORLD_READ, 1, 1);
    return NULL;
}

static void run_threads(int count, void *(*what)(void *))
{
    pthread_t threads[THREADS];
    for (int i = 0; i < count; i++)
        CHECK(pthread_create(&threads[i], NULL, what, NULL) == 0);
    for (int i = 0; i < count; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

/* Threads do not share a window, and what each stores is complete when it has ended. */
static void threads(void)
{
    world_begin_with_spool(ENSIO_TRACE);
    run_threads(THREADS, store_many);
    struct seen seen = look_at_spool();
    CHECK(ensio_spool->threads == 1 + THREADS); /* the main one, too */
    CHECK(seen.events == THREADS * CALLS && seen.in_order && seen.summarised == THREADS * CALLS);
    for (int i = 0; i < THREADS; i++)
        CHECK(seen.last_start[1 + i] == 10ULL * CALLS);
    CHECK(world_sums().count == THREADS * CALLS && world_sums().moved == THREADS * (uint64_t)CALLS * (CALLS + 1) / 2);
    CHECK(ensio_cursor_count() == 0 && ensio_thread_alone());
}

/* One thread after another leaves no scratch window behind. */
static void short_threads(void)
{
    world_begin_with_spool(ENSIO_PROFILE);
    run_threads(THREADS, store_one);
    const uint64_t windows = look_at_spool().windows[ENSIO_WINDOW_SCRATCH];
    CHECK(windows >= 1 && windows <= THREADS);
    for (int i = 0; i < 300; i++)
        run_threads(1, store_one);
    CHECK(look_at_spool().windows[ENSIO_WINDOW_SCRATCH] <= windows);
    CHECK(world_sums().count == THREADS + 300 && ensio_spool->threads == 1 + THREADS + 300);
}

static uint32_t number_of_thread;

static void *note_number(void *given)
{
    store_one(given);
    number_of_thread = ensio_thread.number;
    return NULL;
}

/* Numbers of threads are used once while there are any, then those of threads that ended. */
static void numbers(void)
{
    world_begin_with_spool(ENSIO_PROFILE);
    world_store(WORLD_READ, 1, 1);
    run_threads(1, note_number);
    CHECK(number_of_thread == 1);
    ensio_spool->threads = 65535;
    run_threads(1, note_number);
    CHECK(number_of_thread == 65535 && ensio_spool->threads == 65536);
    for (int i = 0; i < 3; i++) {
        run_threads(1, note_number);
        CHECK(number_of_thread == 65535 && ensio_spool->threads == 65536);
    }
    CHECK(ensio_thread.number == 0);
}

int main(void)
{
    CASE(coded);
    CASE(staying);
    CASE(killed_while_coding);
    CASE(boundaries);
    CASE(profile);
    CASE(without_memory);
    CASE(without_any_memory);
    CASE(limited_file);
    CASE(threads);
    CASE(short_threads);
    CASE(numbers);
    return 0;
}
