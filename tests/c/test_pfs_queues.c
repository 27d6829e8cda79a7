/* The model's queues agree with queueing theory. */
#include "pfs_world.h"

#define NO_FILE (-1)

/* splitmix64: random numbers of the test. */
static uint64_t random_state = 12345;

static double uniform(void)
{
    uint64_t x = random_state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return ((double)((x ^ (x >> 31)) >> 11) + 0.5) * 0x1p-53;
}

static void equal_calls_share_the_target_equally(void)
{
    struct pfs *model = world(PLAIN, 10, 1, 1);
    for (int task = 0; task < 10; task++)
        begin(model, 0, task, PFS_READ, NO_FILE, 0, MB);
    for (int task = 0; task < 10; task++)
        CHECK(finish(model, task) == 100 * MILLISECOND);
    free(model);
}

/* Of two calls of lengths a < b that begin together, the first is done at 2 a, the second at a + b. One that begins at
 * d when the other (length a) has a - d left: both share from d on. */
static void calls_of_two_lengths(void)
{
    struct pfs *model = world(PLAIN, 2, 1, 1);
    begin(model, 0, 0, PFS_READ, NO_FILE, 0, 3 * MB);
    begin(model, 0, 1, PFS_READ, NO_FILE, 0, MB);
    CHECK(finish(model, 1) == 20 * MILLISECOND);
    CHECK(finish(model, 0) == 40 * MILLISECOND);
    int64_t start = 1000 * MILLISECOND;
    begin(model, start, 0, PFS_READ, NO_FILE, 0, MB);
    begin(model, start + 4 * MILLISECOND, 1, PFS_READ, NO_FILE, 0, 2 * MB);
    CHECK(finish(model, 0) == start + 16 * MILLISECOND); /* 4 alone, 6 more at half the speed */
    CHECK(finish(model, 1) == start + 30 * MILLISECOND); /* 30 ms of work, none lost */
    free(model);
}

/* A call on all stripes takes as long as its slowest target, its link or its own stream. */
static void the_slowest_part_sets_the_time(void)
{
    struct pfs *model = world(PLAIN "targets 4\nstripe_MiB 1\n", 4, 4, 1);
    const int64_t mib = 1 << 20;
    const double stripe_ms = (double)mib / 1e5;
    CHECK(near((double)call_ns(model, 0, 0, PFS_READ, NO_FILE, 0, 4 * mib) / 1e6, stripe_ms, 1e-4));
    /* Five stripes, of which the first and the last are half of one on the same target. */
    int64_t took_ns = call_ns(model, 1000 * MILLISECOND, 0, PFS_READ, NO_FILE, mib / 2, 4 * mib);
    CHECK(near((double)took_ns / 1e6, stripe_ms, 1e-4));
    took_ns = call_ns(model, 2000 * MILLISECOND, 0, PFS_READ, NO_FILE, 0, 5 * mib);
    CHECK(near((double)took_ns / 1e6, 2 * stripe_ms, 1e-4));
    free(model);
    model = world(PLAIN "targets 4\nlink_MB_per_s 50\n", 4, 4, 1);
    CHECK(near((double)call_ns(model, 0, 0, PFS_READ, NO_FILE, 0, 4 * mib) / 1e6, 8 * stripe_ms, 1e-4));
    free(model);
    model = world(PLAIN "targets 4\nstream_MB_per_s 10\nlink_latency_us 500\n", 4, 4, 1);
    CHECK(near((double)call_ns(model, 0, 0, PFS_READ, NO_FILE, 0, 4 * mib) / 1e6, 40 * stripe_ms + 0.5, 1e-4));
    free(model);
}

/* Poisson arrivals of exponential lengths x at a queue that all share: a call of length x takes x / (1 - load) on
 * average, which is the M/G/1-PS law. */
static void random_calls_keep_the_law_of_processor_sharing(void)
{
    enum { TASKS = 512, CALLS = 300000, CLASSES = 3 };
    const double load = 0.6, mean_ns = 1e6;
    struct pfs *model = world(PLAIN, TASKS, 1, 1);
    static int64_t began_ns[TASKS];
    static double length_ns[TASKS];
    int idle[TASKS], idle_count = TASKS;
    double sum_taken[CLASSES] = {0}, sum_length[CLASSES] = {0};
    double arrival_ns = 0;
    for (int task = 0; task < TASKS; task++)
        idle[task] = task;
    for (long calls = 0; calls < CALLS; calls++) {
        arrival_ns += -log(uniform()) * mean_ns / load;
        pfs_advance(model, (int64_t)arrival_ns);
        int64_t done_ns;
        for (int32_t task; (task = pfs_take(model, &done_ns)) >= 0;) {
            int class = length_ns[task] < 0.5 * mean_ns ? 0 : length_ns[task] < 1.5 * mean_ns ? 1 : 2;
            sum_taken[class] += (double)(done_ns - began_ns[task]);
            sum_length[class] += length_ns[task];
            idle[idle_count++] = task;
        }
        CHECK(idle_count > 0);
        int task = idle[--idle_count];
        int64_t bytes = 1 + (int64_t)(-log(uniform()) * mean_ns / 10); /* 100 MB/s: 10 ns a byte */
        length_ns[task] = 10.0 * (double)bytes;
        began_ns[task] = (int64_t)arrival_ns;
        begin(model, began_ns[task], task, PFS_READ, NO_FILE, 0, bytes < 1 << 20 ? bytes : 1 << 20);
        if (bytes > 1 << 20)
            length_ns[task] = 10.0 * (1 << 20);
    }
    for (int class = 0; class < CLASSES; class ++)
        CHECK(near(sum_taken[class] / sum_length[class], 1 / (1 - load), 0.06 / (1 - load)));
    free(model);
}

/* One thread, service of fixed length s: the mean wait is load * s / (2 (1 - load)), the M/D/1 law. */
static void the_metadata_server_keeps_the_law_of_its_queue(void)
{
    enum { TASKS = 512, CALLS = 200000 };
    const double load = 0.7, service_ns = 1e6;
    struct pfs *model = world(PLAIN "mds_threads 1\nmds_op_ms 1\n", TASKS, 1, 1);
    static int64_t began_ns[TASKS];
    int idle[TASKS], idle_count = TASKS;
    double waited_ns = 0, arrival_ns = 0;
    long done = 0;
    for (int task = 0; task < TASKS; task++)
        idle[task] = task;
    for (long calls = 0; calls < CALLS; calls++) {
        arrival_ns += -log(uniform()) * service_ns / load;
        pfs_advance(model, (int64_t)arrival_ns);
        int64_t done_ns;
        for (int32_t task; (task = pfs_take(model, &done_ns)) >= 0; done++) {
            waited_ns += (double)(done_ns - began_ns[task]) - service_ns;
            idle[idle_count++] = task;
        }
        CHECK(idle_count > 0);
        int task = idle[--idle_count];
        began_ns[task] = (int64_t)arrival_ns;
        begin(model, began_ns[task], task, PFS_META, NO_FILE, 0, 0);
    }
    double law = load * service_ns / (2 * (1 - load));
    CHECK(near(waited_ns / (double)done, law, 0.05 * law));
    free(model);
}

static void metadata_requests_wait_for_a_thread(void)
{
    struct pfs *model = world(PLAIN "mds_threads 4\nmds_op_ms 1\nmds_create_ms 3\n", 10, 1, 1);
    for (int task = 0; task < 10; task++)
        begin(model, 0, task, PFS_META, NO_FILE, 0, 0);
    for (int task = 0; task < 10; task++)
        CHECK(finish(model, task) == (1 + task / 4) * MILLISECOND);
    int64_t start = 100 * MILLISECOND;
    CHECK(call_ns(model, start, 0, PFS_CREATE, pfs_file(model, 1), 0, 0) == 3 * MILLISECOND);
    free(model);
}

static void seeks_and_empty_calls_are_free(void)
{
    struct pfs *model = world("", 1, 1, 1);
    CHECK(call_ns(model, 5, 0, PFS_SEEK, pfs_file(model, 1), 99, 0) == 0);
    CHECK(call_ns(model, 6, 0, PFS_WRITE, pfs_file(model, 1), 0, 0) == 0);
    CHECK(pfs_next_ns(model) == INT64_MAX);
    free(model);
}

int main(void)
{
    equal_calls_share_the_target_equally();
    calls_of_two_lengths();
    the_slowest_part_sets_the_time();
    random_calls_keep_the_law_of_processor_sharing();
    the_metadata_server_keeps_the_law_of_its_queue();
    metadata_requests_wait_for_a_thread();
    seeks_and_empty_calls_are_free();
    puts("7 passed, 0 failed");
    return 0;
}
