/* Pending requests of asynchronous I/O: their table is made by the first one, if there is memory. */
#include "recorder_world.h"

#include <core/memory.h>
#include <files/aio_requests.h>

#include <pthread.h>

enum { THREADS = 8, ROUNDS = 200, BYTES = 1 << 16 };

static void *place;
static pthread_barrier_t together;

static void *get_table(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&together);
    return ensio_table(&place, BYTES);
}

static void threads_get_one_table(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        CHECK(pthread_barrier_init(&together, NULL, THREADS) == 0);
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_create(&threads[i], NULL, get_table, NULL) == 0);
        for (int i = 0; i < THREADS; i++) {
            void *table;
            CHECK(pthread_join(threads[i], &table) == 0);
            CHECK(table && table == place);
        }
        CHECK(((const char *)place)[0] == 0 && ((const char *)place)[BYTES - 1] == 0);
        ensio_raw_unmap(place, BYTES);
        place = NULL;
        pthread_barrier_destroy(&together);
    }
}

static void requests_without_memory_are_not_found_and_change_nothing(void)
{
    static const char block = 0;
    const struct ensio_request request = {.descriptor = -1, .offset = 7};
    struct ensio_request taken;
    world_limit_memory(1);
    errno = EDOM;
    ensio_request_begin(&block, &request);
    const int error = errno;
    world_limit_memory(0);
    CHECK(error == EDOM);
    CHECK(!ensio_request_find(&block));
    ensio_requests_forget(); /* there is no table yet */
    CHECK(!ensio_request_carried_out(0));
    ensio_request_begin(&block, &request);
    struct ensio_request *found = ensio_request_find(&block);
    CHECK(found && found->offset == 7);
    CHECK(ensio_request_take(found, &taken) && taken.offset == 7);
    CHECK(!ensio_request_find(&block));
}

int main(void)
{
    threads_get_one_table();
    requests_without_memory_are_not_found_and_change_nothing();
    return 0;
}
