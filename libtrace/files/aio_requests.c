#include "aio_requests.h"

#include <core/memory.h>
#include <core/rawsys.h>
#include <spool/spool.h>

#include <signal.h>
#include <stddef.h>

/* A request lies in one of the places that follow its hash. A search inspects all of them, so a place that becomes free
 * hides no other request. */
#define PLACES 4096
#define NEIGHBOURS 32

struct table {
    struct ensio_request requests[PLACES + NEIGHBOURS];
};
static void *table;      /* NULL until the first request */
static uint32_t pending; /* number of requests */
uint32_t ensio_request_syncs;

#define LOAD(member) __atomic_load_n(&(member), __ATOMIC_ACQUIRE)

static struct ensio_request *first_place(struct table *of, const void *block)
{
    uint64_t mixed = (uint64_t)(uintptr_t)block * 0x9e3779b97f4a7c15U;
    return &of->requests[mixed >> 52];
}

static void drop(void)
{
    if (ensio_spool)
        ensio_spool_lose();
}

static struct ensio_request *claim(const void *block)
{
    struct table *const found = ensio_table(&table, sizeof *found);
    struct ensio_request *place = found ? first_place(found, block) : NULL;
    for (int i = 0; found && i < NEIGHBOURS; i++, place++) {
        const void *nobody = NULL;
        if (__atomic_compare_exchange_n(&place->block, &nobody, block, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return place;
    }
    return NULL;
}

void ensio_request_begin(const void *block, const struct ensio_request *request)
{
    struct ensio_request *place = ensio_request_find(block), taken;
    if (place && ensio_request_take(place, &taken))
        drop(); /* the program reuses the block without having asked for the result */
    place = claim(block);
    if (!place) {
        drop();
        return;
    }
    place->flying = request->flying;
    place->offset = request->offset;
    place->requested = request->requested;
    place->depth = request->depth;
    place->file = request->file;
    place->call = request->call;
    place->descriptor = request->descriptor;
    if (request->descriptor >= 0)
        __atomic_fetch_add(&ensio_request_syncs, 1, __ATOMIC_RELEASE);
    __atomic_fetch_add(&pending, 1, __ATOMIC_RELAXED);
}

struct ensio_request *ensio_request_find(const void *block)
{
    struct table *const found = __atomic_load_n(&pending, __ATOMIC_RELAXED) ? LOAD(table) : NULL;
    if (!found)
        return NULL;
    struct ensio_request *place = first_place(found, block);
    for (int i = 0; i < NEIGHBOURS; i++, place++)
        if (LOAD(place->block) == block)
            return place;
    return NULL;
}

void ensio_request_posted(const void *block, uint32_t number, uint64_t ticks)
{
    struct ensio_request *place = ensio_request_find(block);
    if (place && place->flying.request == number)
        ensio_flight_posted(&place->flying, ticks);
}

int ensio_request_completed(struct ensio_request *request, uint64_t now)
{
    uint64_t never = 0;
    return __atomic_compare_exchange_n(&request->flying.completed, &never, now, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

int ensio_request_take(struct ensio_request *request, struct ensio_request *taken)
{
    const void *block = LOAD(request->block);
    *taken = *request;
    if (!block || !__atomic_compare_exchange_n(&request->block, &block, NULL, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return 0;
    __atomic_fetch_sub(&pending, 1, __ATOMIC_RELAXED);
    if (taken->descriptor >= 0)
        __atomic_fetch_sub(&ensio_request_syncs, 1, __ATOMIC_RELAXED);
    return 1;
}

/* The C library's I/O threads block every signal. A thread of the program that also blocks all signals, and
 * synchronises a file that a pending request synchronises too, is not expected. */
static int blocks_all_signals(void)
{
    sigset_t blocked;
    if (ENSIO_RAW(SYS_rt_sigprocmask, SIG_SETMASK, NULL, &blocked, _NSIG / 8) != 0)
        return 0;
    for (int signal = 1; signal < 32; signal++)
        if (signal != SIGKILL && signal != SIGSTOP && !sigismember(&blocked, signal))
            return 0;
    return 1;
}

int ensio_request_carried_out(int fd)
{
    const int error = errno;
    const struct table *const all = LOAD(table);
    int found = 0;
    for (uint32_t i = 0; all && i < PLACES + NEIGHBOURS && !found; i++)
        found = LOAD(all->requests[i].block) && all->requests[i].descriptor == fd && !all->requests[i].flying.completed;
    found = found && blocks_all_signals();
    errno = error;
    return found;
}

static void take_all(void (*each)(void))
{
    struct ensio_request taken;
    struct table *const all = LOAD(table);
    for (uint32_t i = 0; all && i < PLACES + NEIGHBOURS && LOAD(pending); i++)
        if (LOAD(all->requests[i].block) && ensio_request_take(&all->requests[i], &taken) && each)
            each();
}

void ensio_requests_forget(void)
{
    take_all(NULL);
    ensio_flights_forget();
}

void ensio_requests_end(void)
{
    take_all(drop);
}
