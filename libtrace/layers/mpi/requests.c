#include "requests.h"

#include "query.h"

#include <core/lock.h>
#include <core/memory.h>
#include <threads/thread.h>
#include <time/clock.h>

#include <string.h>

#define BUCKETS 1024

struct ensio_io_request {
    struct ensio_io io;
    uintptr_t handle;
    struct ensio_io_request *next;         /* of the bucket */
    struct ensio_io_request *next_claimed; /* by the same call */
    int place;                             /* index in the claiming call's array; -1: not claimed */
};

/* The recorder's lock guards all of this. */
static struct ensio_io_request *buckets[BUCKETS];
static void *unused;

static struct ensio_io_request **bucket_of(uintptr_t handle)
{
    return &buckets[(handle ^ handle >> 6 ^ handle >> 16) % BUCKETS];
}

static uint64_t one_of(const struct ensio_io *io)
{
    return io->carries == ENSIO_CARRIED_WRITE ? UINT64_C(1) << 32 : 1;
}

void ensio_io_starting(const struct ensio_io *io)
{
    __atomic_fetch_add(&ensio_io_pending, one_of(io), __ATOMIC_RELAXED);
}

void ensio_io_over(const struct ensio_io *io)
{
    __atomic_fetch_sub(&ensio_io_pending, one_of(io), __ATOMIC_RELAXED);
}

void ensio_io_posted(struct ensio_thread *thread, struct ensio_io *io, uint64_t duration)
{
    io->depth = (uint8_t)thread->depth | (uint32_t)ensio_carried(thread->depth) << 8;
    io->flying = ensio_flight_begin(io->start, io->carries);
    ensio_io_blocks(io->depth, duration);
    ensio_flight_posted(&io->flying, duration);
}

void ensio_io_store(struct ensio_thread *thread, const struct ensio_io *io, int64_t moved, uint32_t flags)
{
    ensio_flight_store(thread, &io->flying, io->call, io->file, io->offset, io->requested, moved, io->depth);
    ensio_flight_end(thread, &io->flying, io->call, io->depth, flags);
}

void ensio_io_started(struct ensio_thread *thread, struct ensio_io *io, int result, uintptr_t handle, uint64_t duration)
{
    if (result != 0) {
        ensio_io_over(io);
        ensio_io_blocks(thread->depth, duration);
        ensio_store(thread, io->call, io->file, io->offset, io->requested, -ensio_mpi_errno(result), io->start,
                    duration);
        return;
    }
    ensio_io_posted(thread, io, duration);
    struct ensio_io_request *request = NULL;
    if (handle != ensio_mpi()->null_request) {
        struct ensio_held held = ensio_lock();
        request = ensio_unused_take(&unused, sizeof *request);
        if (request) {
            *request = (struct ensio_io_request){.io = *io, .handle = handle, .next = *bucket_of(handle), .place = -1};
            *bucket_of(handle) = request;
        }
        ensio_unlock(held);
    }
    if (!request) {
        ensio_io_over(io);
        io->flying.completed = io->start + duration;
        ensio_io_store(thread, io, (int64_t)io->requested, 0);
    }
}

static uintptr_t handle_at(const struct ensio_io_wait *wait, int place)
{
    return wait->fortran ? ensio_mpi_request_f2c(((const int *)wait->requests)[place])
                         : ensio_mpi_request_in(ensio_mpi(), wait->requests, place);
}

/* Requests that MPI completes immediately may all have the same handle. */
static struct ensio_io_request *unclaimed(uintptr_t handle)
{
    struct ensio_io_request *request = *bucket_of(handle);
    while (request && (request->handle != handle || request->place >= 0))
        request = request->next;
    return request;
}

void ensio_io_claim(struct ensio_io_wait *wait, int number, enum ensio_io_which which, void *requests, void **statuses,
                    int fortran)
{
    const struct ensio_mpi *mpi = ensio_mpi();
    wait->requests = requests;
    wait->count = number;
    wait->fortran = fortran;
    wait->mapped = NULL;
    for (int place = number - 1; place >= 0; place--) {
        const uintptr_t handle = handle_at(wait, place); /* may call MPI, and must not hold the lock */
        if (handle == mpi->null_request)
            continue;
        struct ensio_held held = ensio_lock();
        struct ensio_io_request *request = unclaimed(handle);
        if (request) {
            request->place = place;
            request->next_claimed = wait->claimed;
            wait->claimed = request;
        }
        ensio_unlock(held);
    }
    if (!wait->claimed)
        return;
    wait->statuses = *statuses;
    if (!(fortran ? ensio_mpi_fortran_ignored(*statuses) : *statuses == mpi->status_ignore))
        return;
    const uint64_t bytes = (which == ENSIO_IO_ONE ? 1 : (uint64_t)number) * mpi->status_bytes;
    void *room = memset(wait->own, 0, sizeof wait->own);
    if (bytes > sizeof wait->own) {
        room = ensio_raw_memory(bytes);
        wait->statuses = NULL;
        if (!room)
            return;
        wait->mapped = room;
        wait->mapped_bytes = bytes;
    }
    *statuses = wait->statuses = room;
}

static const char *status_of(const struct ensio_io_wait *wait, const struct ensio_io_request *request,
                             enum ensio_io_which which, const int *places, int number)
{
    const uint64_t bytes = ensio_mpi()->status_bytes;
    if (which == ENSIO_IO_ONE)
        return wait->statuses;
    if (which == ENSIO_IO_ALL)
        return wait->statuses + (uint64_t)request->place * bytes;
    for (int i = 0; i < number; i++)
        if (places[i] == request->place + wait->fortran)
            return wait->statuses + (uint64_t)i * bytes;
    return NULL;
}

static void drop(struct ensio_io_request *request)
{
    struct ensio_io_request **link = bucket_of(request->handle);
    while (*link != request)
        link = &(*link)->next;
    *link = request->next;
    ensio_io_over(&request->io);
    ensio_unused_put(&unused, request);
}

int ensio_io_complete(struct ensio_thread *thread, struct ensio_io_wait *wait, enum ensio_io_which which,
                      const int *places, int number, int result, uint64_t start, uint64_t duration)
{
    const struct ensio_mpi *mpi = ensio_mpi();
    int completed = 0, counted = 0;
    struct ensio_io_request *next;
    for (struct ensio_io_request *request = wait->claimed; request; request = next) {
        next = request->next_claimed;
        const int is_over = handle_at(wait, request->place) == mpi->null_request;
        struct ensio_io io = request->io;
        int64_t moved = 0;
        if (is_over) {
            if (!counted++)
                ensio_io_blocks(thread->depth, duration);
            io.flying.completed = start + duration;
            if (wait->call) {
                io.flying.wait_start = start;
                io.flying.wait = duration;
                io.flying.wait_call = wait->call;
                io.flying.wait_thread = ensio_number_of_thread(thread);
            }
            const char *status = wait->statuses ? status_of(wait, request, which, places, number) : NULL;
            moved = status ? ensio_mpi_moved(result, status, which != ENSIO_IO_ONE) : (int64_t)io.requested;
        }
        struct ensio_held held = ensio_lock();
        if (is_over)
            drop(request);
        else
            request->place = -1;
        ensio_unlock(held);
        if (is_over)
            ensio_io_store(thread, &io, moved, wait->call ? 0 : ENSIO_FLIGHT_NOT_ASKED);
        completed += is_over;
    }
    if (wait->mapped)
        ensio_raw_unmap(wait->mapped, wait->mapped_bytes);
    return completed;
}

void ensio_io_give_up(struct ensio_thread *thread)
{
    for (int i = 0; ensio_io_pending && i < BUCKETS; i++)
        while (buckets[i]) {
            struct ensio_io io = buckets[i]->io;
            struct ensio_held held = ensio_lock();
            drop(buckets[i]);
            ensio_unlock(held);
            io.flying.completed = ensio_ticks();
            ensio_io_store(thread, &io, (int64_t)io.requested, ENSIO_FLIGHT_NOT_ASKED);
        }
}
