#include "sample.h"

#include "account.h"
#include "sources.h"

#include <core/private_files.h>
#include <core/rawsys.h>
#include <core/settings.h>
#include <spool/process_facts.h>
#include <spool/spool.h>
#include <time/clock.h>
#include <time/tick_rate.h>

#include <string.h>

#define SECOND_NS 1000000000ULL
#define LEAST_APART_NS SECOND_NS
#define LEAST_BEFORE_END_NS (10 * 1000 * 1000ULL)

/* Samples of a long run are further apart, so that their number grows with the logarithm of its length. */
#define SHARE_OF_RUN 128

/* A sample reads as many files as fit into this time by what they took the last time, in turn, and at least one. One
 * that alone takes longer is read less often. */
#define MOST_NS 16000
#define PAUSE_TIMES 50000
#define LONGEST_PAUSE_NS (60 * SECOND_NS)

#define FIRST_WINDOW_BYTES 4096
#define LARGEST_WINDOW_BYTES 32768

/* The first one describes the process, the others the node. */
static uint32_t (*const sources[])(struct ensio_surroundings *row) = {
    ensio_read_process, ensio_read_memory,       ensio_read_pressure,     ensio_read_cgroup_pressure, ensio_read_cgroup,
    ensio_read_nfs,     ensio_read_lustre_dirty, ensio_read_lustre_ahead, ensio_read_lustre_rpcs,
};
#define SOURCES (sizeof sources / sizeof *sources)

static struct {
    uint32_t spool; /* number of the spool that this describes */
    int stopped;
    struct ensio_window *window;
    uint32_t used, capacity;
    uint64_t first, last, due; /* ticks */
    struct {
        uint64_t read_at, due; /* ticks */
        uint32_t cost_ns;
        int is_missing; /* the file could not be read the first time */
    } of[SOURCES];
} state;

static uint64_t ticks_of(uint64_t ns)
{
    const uint64_t rate = ensio_tick_rate();
    return (uint64_t)(((unsigned __int128)ns << ENSIO_RATE_BITS) / (rate ? rate : 1));
}

static uint64_t processor_ns(void)
{
    struct timespec now = {0};
    ENSIO_RAW(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static void read_source(size_t number, struct ensio_surroundings *row)
{
    const uint64_t before = processor_ns();
    const uint32_t read = sources[number](row);
    const uint64_t took = processor_ns() - before;
    row->read |= read;
    if (read & ENSIO_READ_PROCESS) {
        if (state.used && !(state.used & (state.used - 1))) /* ever less often: there may be many mappings */
            ensio_account_look(NULL);
        ensio_account_sample(row);
    }
    row->cost_ns += (uint32_t)took;
    state.of[number].is_missing |= !read && !state.of[number].read_at;
    state.of[number].read_at = row->ticks;
    state.of[number].cost_ns = (uint32_t)took;
    const uint64_t pause = took * PAUSE_TIMES;
    state.of[number].due = row->ticks + ticks_of(pause < LONGEST_PAUSE_NS ? pause : LONGEST_PAUSE_NS);
}

/* The source that was read the longest time ago and is due; SOURCES: none. */
static size_t next_source(uint64_t now, int is_every, uint32_t done)
{
    const size_t count = ensio_reports_node() ? SOURCES : 1;
    size_t found = SOURCES;
    for (size_t i = 0; i < count; i++)
        if (!(done >> i & 1) && !state.of[i].is_missing && (is_every || now >= state.of[i].due) &&
            (found == SOURCES || state.of[i].read_at < state.of[found].read_at))
            found = i;
    return found;
}

struct sampling {
    struct ensio_surroundings *row;
    int is_every;
};

static int64_t read_sources(void *given)
{
    const struct sampling *sampling = given;
    struct ensio_surroundings *row = sampling->row;
    uint32_t done = 0;
    for (size_t next; (next = next_source(row->ticks, sampling->is_every, done)) < SOURCES; done |= 1U << next)
        if (sampling->is_every || !row->read || row->cost_ns + state.of[next].cost_ns <= MOST_NS)
            read_source(next, row);
    return 0;
}

static int make_room(void)
{
    const uint64_t wanted = state.window ? 2 * state.window->bytes : FIRST_WINDOW_BYTES;
    struct ensio_window *window =
        ensio_window_make(ENSIO_WINDOW_SURROUNDINGS, wanted < LARGEST_WINDOW_BYTES ? wanted : LARGEST_WINDOW_BYTES);
    if (!window)
        return -1;
    if (state.window)
        ensio_raw_unmap(state.window, state.window->bytes);
    state.window = window;
    state.used = 0;
    state.capacity = (uint32_t)((window->bytes - ENSIO_WINDOW_HEADER_BYTES) / sizeof(struct ensio_surroundings));
    return 0;
}

/* Without /proc, and without space, there are no further samples. */
static void take(uint64_t now, int is_every)
{
    static struct ensio_surroundings row; /* static: the stack of a signal handler may be small */
    struct sampling sampling = {&row, is_every};
    row = (struct ensio_surroundings){.ticks = now};
    ensio_with_private_files(read_sources, &sampling);
    const uint64_t run = ticks_of(LEAST_APART_NS), apart = (now - state.first) / SHARE_OF_RUN;
    state.last = now;
    state.due = now + (apart > run ? apart : run);
    if (!row.read || (state.used == state.capacity && make_room() != 0)) {
        state.stopped = 1;
        return;
    }
    struct ensio_surroundings *to =
        (struct ensio_surroundings *)(void *)((char *)state.window + ENSIO_WINDOW_HEADER_BYTES) + state.used++;
    const uint32_t read = row.read;
    row.read = 0;
    *to = row;
    __atomic_store_n(&to->read, read, __ATOMIC_RELEASE);
}

/* A forked child has a separate spool; the parent's window stays mapped. */
static void begin(uint64_t now)
{
    if (state.spool == ensio_spool_number)
        return;
    memset(&state, 0, sizeof state);
    state.spool = ensio_spool_number;
    state.first = now;
    state.stopped = !ensio_settings.surroundings;
}

void ensio_surroundings_sample(uint64_t now)
{
    begin(now);
    if (!state.stopped && now >= state.due)
        take(now, !state.window);
}

void ensio_surroundings_end(void)
{
    const uint64_t now = ensio_ticks();
    if (state.spool == ensio_spool_number && !state.stopped && state.window &&
        now - state.last >= ticks_of(LEAST_BEFORE_END_NS))
        take(now, 1);
}
