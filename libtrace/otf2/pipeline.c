/* pipeline.c: one thread receives calls and sorts them (locations.c), another one writes their records (records.c),
 * which is most of the work and the only use of libotf2. Work is passed in batches. */
#include "writer.h"

#include <pthread.h>
#include <stdlib.h>

#define BATCHES 8
#define BATCH_ITEMS 2048 /* as many as stay in the cache until they are written */

enum what { ITEMS, CLOSE, NEXT_RANKS, FINISH };

static struct batch {
    enum what what;
    struct ensio_location *location;
    size_t count;
    struct ensio_item items[BATCH_ITEMS];
} * batches;
static size_t filled, done; /* batches since the beginning; the next one to fill has index `filled` */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_t writer;

static void write_batch(const struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        ensio_write_item(batch->location, batch->items + i);
    if (batch->what == CLOSE)
        ensio_close_location(batch->location);
    else if (batch->what == NEXT_RANKS)
        ensio_handles_of_next_ranks();
}

static void *write_batches(void *unused)
{
    for (size_t next = 0;; next++) {
        pthread_mutex_lock(&lock);
        while (filled == next)
            pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
        struct batch *batch = batches + next % BATCHES;
        write_batch(batch);
        bool last = batch->what == FINISH;
        pthread_mutex_lock(&lock);
        done = next + 1;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&lock);
        if (last)
            return unused;
    }
}

/* Passes the current batch to the writer, and waits for room for the next one. */
static void submit(enum what what)
{
    batches[filled % BATCHES].what = what;
    pthread_mutex_lock(&lock);
    filled++;
    pthread_cond_signal(&changed);
    while (filled - done == BATCHES)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    batches[filled % BATCHES].count = 0;
}

static struct batch *batch_of(struct ensio_location *location)
{
    struct batch *batch = batches + filled % BATCHES;
    if (batch->count == BATCH_ITEMS || (batch->count && batch->location != location)) {
        submit(ITEMS);
        batch = batches + filled % BATCHES;
    }
    batch->location = location;
    return batch;
}

void ensio_pipeline_begin(void)
{
    batches = ensio_more(NULL, BATCHES * sizeof *batches);
    batches[0].count = 0;
    if (pthread_create(&writer, NULL, write_batches, NULL) != 0)
        ensio_fail("no thread can be created for writing");
}

void ensio_pipeline_item(struct ensio_location *location, const struct ensio_item *item)
{
    struct batch *batch = batch_of(location);
    batch->items[batch->count++] = *item;
}

void ensio_pipeline_close(struct ensio_location *location)
{
    batch_of(location);
    submit(CLOSE);
}

void ensio_pipeline_next_ranks(void)
{
    submit(NEXT_RANKS);
}

void ensio_pipeline_finish(void)
{
    submit(FINISH);
    pthread_join(writer, NULL);
    free(batches);
}
