#include "requests.h"

#include <calls/calls.h>
#include <core/lock.h>
#include <core/memory.h>
#include <files/flights.h>
#include <threads/thread.h>
#include <time/clock.h>

#include <errno.h>

enum { ALL_REQUESTS = -1, ALL_READS = -2, ALL_WRITES = -3, NULL_REQUEST = -1, UNNAMED = INT_MIN };

#define BUCKETS 8192

struct ensio_netcdf_request {
    struct ensio_flying flying;
    struct ensio_netcdf_request *next;         /* of the bucket */
    struct ensio_netcdf_request *next_claimed; /* by the same call */
    uint64_t bytes;
    uint32_t library, depth, file_number;
    int file, number;
    int place; /* index among the requests of the claiming call */
    int is_claimed;
    uint16_t call;
};

/* The recorder's lock guards all of this. A program may have 100,000 requests under way. */
static struct ensio_netcdf_request *buckets[BUCKETS];
static void *unused;
static uint32_t pending;

static struct ensio_netcdf_request **bucket_of(int file, int number)
{
    return &buckets[((uint32_t)number ^ (uint32_t)number >> 13 ^ 61 * (uint32_t)file) % BUCKETS];
}

/* The program cannot name a request without a number: these spread over the buckets. */
static struct ensio_netcdf_request **bucket_of_request(const struct ensio_netcdf_request *request)
{
    return bucket_of(request->file, request->number == UNNAMED ? (int)request->flying.request : request->number);
}

/* Stores the event of a request that is over. */
static void store(struct ensio_thread *thread, const struct ensio_netcdf_request *request, int64_t moved)
{
    ensio_flight_store(thread, &request->flying, request->call, request->file_number, -1, request->bytes, moved,
                       request->depth);
}

static void posted(const struct ensio_netcdf_call *call, uint64_t bytes, int file, const int *number)
{
    struct ensio_thread *const thread = call->thread;
    const uint8_t direction = ensio_call_ops[call->number] == ENSIO_OP_READ ? ENSIO_CARRIED_READ : ENSIO_CARRIED_WRITE;
    struct ensio_netcdf_request *request = NULL;
    struct ensio_netcdf_request made = {.flying = ensio_flight_begin(call->start, direction),
                                        .bytes = bytes,
                                        .library = call->netcdf->number,
                                        .depth = (uint8_t)thread->depth | (uint32_t)ensio_carried(thread->depth) << 8,
                                        .file_number = call->file.file,
                                        .file = file,
                                        .number = number ? *number : UNNAMED,
                                        .call = call->number};
    made.flying.idle = 1;
    ensio_io_blocks(thread->depth, call->duration);
    ensio_flight_posted(&made.flying, call->duration);
    if (made.number != NULL_REQUEST) {
        struct ensio_held held = ensio_lock();
        request = ensio_unused_take(&unused, sizeof *request);
        if (request) {
            struct ensio_netcdf_request **const bucket = bucket_of_request(&made);
            *request = made;
            request->next = *bucket;
            *bucket = request;
            __atomic_fetch_add(&pending, 1, __ATOMIC_RELAXED);
        }
        ensio_unlock(held);
    }
    if (!request) { /* there was nothing to move */
        made.flying.completed = call->start + call->duration;
        store(thread, &made, (int64_t)bytes);
        ensio_flight_end(thread, &made.flying, made.call, made.depth, 0);
    }
}

int ensio_netcdf_end_post(struct ensio_netcdf_call *call, int result, uint64_t bytes, int file, const int *request)
{
    if (result == 0 && !call->file.left_out)
        posted(call, bytes, file, request);
    else
        (void)ensio_netcdf_end(call, result, bytes);
    errno = call->error;
    return result;
}

static int is_meant(const struct ensio_netcdf_request *request, int count)
{
    return count == ALL_REQUESTS || (count == ALL_READS && request->flying.direction == ENSIO_CARRIED_READ) ||
           (count == ALL_WRITES && request->flying.direction == ENSIO_CARRIED_WRITE);
}

static void claim(struct ensio_netcdf_wait *wait, struct ensio_netcdf_request *request, int place)
{
    request->place = place;
    request->is_claimed = 1;
    request->next_claimed = wait->claimed;
    wait->claimed = request;
}

static struct ensio_netcdf_request *find(uint32_t library, int file, int number)
{
    struct ensio_netcdf_request *request = *bucket_of(file, number);
    while (request &&
           (request->library != library || request->file != file || request->number != number || request->is_claimed))
        request = request->next;
    return request;
}

static void claim_requests(struct ensio_netcdf_wait *wait, const struct ensio_netcdf *netcdf, int file, int count)
{
    const int *const requests = wait->requests;
    if (!__atomic_load_n(&pending, __ATOMIC_RELAXED) || (!requests && count >= 0))
        return;
    struct ensio_held held = ensio_lock();
    for (int place = 0; place < count; place++) {
        struct ensio_netcdf_request *const request = find(netcdf->number, file, requests[place]);
        if (request)
            claim(wait, request, place);
    }
    for (int i = 0; count < 0 && i < BUCKETS; i++)
        for (struct ensio_netcdf_request *request = buckets[i]; request; request = request->next)
            if (request->library == netcdf->number && request->file == file && !request->is_claimed &&
                is_meant(request, count))
                claim(wait, request, 0);
    ensio_unlock(held);
}

struct ensio_netcdf_wait ensio_netcdf_wait_begin(struct ensio_netcdf_call *call, int completes, int file, int count,
                                                 const int *requests)
{
    struct ensio_netcdf_wait wait = {.completes = completes, .all = count < 0, .requests = requests};
    if (call->thread) {
        claim_requests(&wait, call->netcdf, file, count);
        call->start = ensio_ticks();
    }
    return wait;
}

/* Removes a request from its bucket, and returns what it was. */
static struct ensio_netcdf_request take(struct ensio_netcdf_request *request)
{
    const struct ensio_netcdf_request taken = *request;
    struct ensio_netcdf_request **link = bucket_of_request(request);
    while (*link != request)
        link = &(*link)->next;
    *link = request->next;
    ensio_unused_put(&unused, request);
    __atomic_fetch_sub(&pending, 1, __ATOMIC_RELAXED);
    return taken;
}

/* The Fortran interface leaves the numbers of completed requests as they are. */
static void land(const struct ensio_netcdf_call *call, int result, struct ensio_netcdf_wait *wait)
{
    struct ensio_thread *const thread = call->thread;
    if (wait->claimed && wait->completes)
        ensio_io_blocks(thread->depth, call->duration);
    struct ensio_netcdf_request *next;
    for (struct ensio_netcdf_request *request = wait->claimed; request; request = next) {
        next = request->next_claimed;
        const int is_over = result == 0 || wait->all || wait->requests[request->place] == NULL_REQUEST;
        struct ensio_held held = ensio_lock();
        request->is_claimed = 0;
        struct ensio_netcdf_request taken = is_over ? take(request) : *request;
        ensio_unlock(held);
        if (!is_over)
            continue;
        const int64_t failure = ensio_netcdf_failure(result);
        store(thread, &taken, !wait->completes ? 0 : failure ? failure : (int64_t)taken.bytes);
        if (!wait->completes)
            continue;
        taken.flying.completed = call->start + call->duration;
        taken.flying.wait_start = call->start;
        taken.flying.wait = call->duration;
        taken.flying.wait_call = call->number;
        taken.flying.wait_thread = ensio_number_of_thread(thread);
        ensio_flight_end(thread, &taken.flying, taken.call, taken.depth, 0);
    }
}

int ensio_netcdf_end_wait(struct ensio_netcdf_call *call, int result, struct ensio_netcdf_wait *wait)
{
    (void)ensio_netcdf_end(call, result, 0);
    land(call, result, wait);
    errno = call->error;
    return result;
}

void ensio_netcdf_give_up(struct ensio_thread *thread, const struct ensio_netcdf *netcdf, int file)
{
    struct ensio_netcdf_wait rest = {.all = 1};
    claim_requests(&rest, netcdf, file, ALL_REQUESTS);
    struct ensio_netcdf_request *next;
    for (struct ensio_netcdf_request *request = rest.claimed; request; request = next) {
        next = request->next_claimed;
        struct ensio_held held = ensio_lock();
        struct ensio_netcdf_request taken = take(request);
        ensio_unlock(held);
        store(thread, &taken, 0);
    }
}
