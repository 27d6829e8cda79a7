/* Every fault has the effect of its settings at strength 1, an effect in proportion to its strength, and none at
 * strength 0. */
#include "pfs_world.h"

#include <stdlib.h>

#define MIB (INT64_C(1) << 20)
#define NODE PLAIN "tasks_per_node 4\ngather_us 0.1\n"

static double ms(int64_t ns)
{
    return (double)ns / 1e6;
}

static int ascending(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

/* Four calls of 1 MB come together: each takes 10 ms alone, all of them 40. They end at these times, in any order. */
static void four_calls(const char *text, const double *ends_ms)
{
    struct pfs *model = world(text, 4, 1, 1);
    double times[4];
    for (int task = 0; task < 4; task++)
        begin(model, 0, task, PFS_WRITE, -1, task * MB, MB);
    for (int task = 0; task < 4; task++)
        times[task] = ms(finish(model, task));
    qsort(times, 4, sizeof *times, ascending);
    for (int i = 0; i < 4; i++)
        CHECK(fabs(times[i] - ends_ms[i]) < 0.001);
    free(model);
}

static void node_serialisation_lets_one_or_two_go_first(void)
{
    const double together[] = {40, 40, 40, 40}, one_by_one[] = {10, 20, 30, 40}, in_pairs[] = {20, 20, 40, 40};
    four_calls(NODE, together);
    four_calls(NODE "fault.node-serialisation 1\none_at_a_time_share 0\ntwo_at_a_time_share 0\n", together);
    four_calls(NODE "fault.node-serialisation 1\none_at_a_time_share 1\ntwo_at_a_time_share 0\n", one_by_one);
    four_calls(NODE "fault.node-serialisation 1\none_at_a_time_share 0\ntwo_at_a_time_share 1\n", in_pairs);
}

/* Nodes share the target; the first caller on a node gets the node's whole share, then the next: the modes R/4, R/2,
 * 3R/4 and R. The first caller is drawn. */
static void who_goes_first_gets_the_share_of_the_node(void)
{
    enum { NODES = 64 };
    struct pfs *model =
        world(NODE "fault.node-serialisation 1\none_at_a_time_share 1\ntwo_at_a_time_share 0\n", 4 * NODES, NODES, 7);
    const double all_ms = 4 * NODES * 10.0;
    int first_of[4] = {0};
    for (int task = 0; task < 4 * NODES; task++)
        begin(model, 0, task, PFS_WRITE, -1, task * MB, MB);
    for (int task = 0; task < 4 * NODES; task++) {
        double took_ms = ms(finish(model, task));
        const double quarters = 4 * took_ms / all_ms;
        CHECK(fabs(quarters - round(quarters)) < 0.001);
        first_of[task % 4] += quarters < 1.5;
    }
    CHECK(first_of[0] + first_of[1] + first_of[2] + first_of[3] == NODES);
    for (int i = 0; i < 4; i++)
        CHECK(first_of[i] >= 5 && first_of[i] <= 29); /* 16 +- 3.5: less than once in a thousand seeds */
    free(model);
}

/* One write of 1 MB (10 ms) of task 1 with this text; earlier calls make it a file of two nodes. */
static double write_ms(const char *text, int shared, int64_t offset, int64_t bytes)
{
    struct pfs *model = world(text, 8, 8, 1);
    for (int task = 0; task < 8; task++)
        pfs_place(model, task, task);
    int file = pfs_file(model, 1);
    int64_t now_ns = 0;
    if (shared) { /* a lock comes with a read or write, not with an open */
        now_ns += call_ns(model, now_ns, 0, PFS_OPEN, file, 0, 0);
        now_ns += call_ns(model, now_ns, 0, PFS_READ, file, 0, 4096);
    }
    now_ns += call_ns(model, now_ns, 1, PFS_OPEN, file, 0, 0);
    double took_ms = ms(call_ns(model, now_ns, 1, PFS_WRITE, file, offset, bytes));
    free(model);
    return took_ms;
}

static void misaligned_requests_cost_at_each_ragged_end(void)
{
    const char *off = PLAIN;
    const char *on = PLAIN "cache_MiB 64\nlock_conflict_ms 2\npartial_stripe_ms 5\nfault.misaligned-requests 1\n";
    const char *twice = PLAIN "lock_conflict_ms 2\npartial_stripe_ms 5\nfault.misaligned-requests 2\n";
    const double mib_ms = (double)MIB / 1e5;
    CHECK(near(write_ms(off, 1, MIB / 2, 2 * MIB), 2 * mib_ms, 1e-3));
    CHECK(near(write_ms(on, 1, MIB / 2, 2 * MIB), 2 * mib_ms + 7 + 5, 1e-3));
    CHECK(near(write_ms(twice, 1, MIB / 2, 2 * MIB), 2 * mib_ms + 14 + 10, 1e-3));
    CHECK(near(write_ms(on, 1, MIB, 3 * MIB / 2), 1.5 * mib_ms + 5, 1e-3)); /* begins on a boundary */
    CHECK(near(write_ms(on, 1, MIB / 4, MIB / 2), 0.5 * mib_ms + 7, 1e-3)); /* within one stripe */
    CHECK(write_ms(on, 1, MIB, 3 * MIB) < 0.001);                           /* aligned: the cache takes it */
    CHECK(write_ms(on, 0, MIB / 2, 2 * MIB) < 0.001);                       /* no other task has the file */
}

/* After its own last write, a task continues without lock conflicts: only the stripe at the end is merged. */
static void a_write_that_goes_on_is_aligned_at_its_beginning(void)
{
    const char *text = PLAIN "lock_conflict_ms 2\npartial_stripe_ms 5\nfault.misaligned-requests 1\n";
    const double mib_ms = (double)MIB / 1e5;
    struct pfs *model = world(text, 2, 2, 1);
    pfs_place(model, 1, 1);
    int file = pfs_file(model, 1);
    call_ns(model, 0, 0, PFS_READ, file, 0, 4096);
    int64_t now_ns = 1000 * MILLISECOND;
    CHECK(near(ms(call_ns(model, now_ns, 1, PFS_WRITE, file, 0, MIB / 2)), mib_ms / 2 + 5, 1e-3));
    now_ns += 1000 * MILLISECOND;
    CHECK(near(ms(call_ns(model, now_ns, 1, PFS_WRITE, file, MIB / 2, MIB)), mib_ms + 5, 1e-3));
    now_ns += 1000 * MILLISECOND;
    CHECK(near(ms(call_ns(model, now_ns, 0, PFS_WRITE, file, 3 * MIB / 2, MIB)), mib_ms + 7 + 5, 1e-3));
    free(model);
}

static void too_many_writers_make_each_write_more_expensive(void)
{
    const char *text = PLAIN "writers_free 2\nwriters_doubling 3\nfault.too-many-writers 1\n";
    struct pfs *model = world(text, 8, 8, 1);
    int file = pfs_file(model, 1);
    int64_t now_ns = 0;
    for (int task = 0; task < 8; task++) {
        now_ns += call_ns(model, now_ns, task, PFS_OPEN, file, 0, 0);
        int64_t took_ns = call_ns(model, now_ns, task, PFS_WRITE, file, 0, MB);
        CHECK(near(ms(took_ns), task < 2 ? 10 : 10 * (1 + (task - 1) / 3.0), 1e-3));
        now_ns += took_ns;
    }
    for (int task = 0; task < 8; task++)
        now_ns += call_ns(model, now_ns, task, PFS_CLOSE, file, 0, 0);
    CHECK(near(ms(call_ns(model, now_ns, 0, PFS_WRITE, file, 0, MB)), 10, 1e-3));
    free(model);
}

static void stragglers_take_a_multiple_of_the_time(void)
{
    const char *task_text =
        PLAIN "tasks_per_node 2\nstraggler_task 3\nstraggler_task_factor 5\nfault.straggler-task 1\n";
    const char *node_text =
        PLAIN "tasks_per_node 2\nstraggler_node 1\nstraggler_node_factor 3\nfault.straggler-node 0.5\n";
    struct pfs *model = world(task_text, 4, 2, 1);
    for (int task = 0; task < 4; task++)
        CHECK(
            near(ms(call_ns(model, task * 1000 * MILLISECOND, task, PFS_READ, -1, 0, MB)), task == 3 ? 50 : 10, 1e-3));
    free(model);
    model = world(node_text, 4, 2, 1);
    for (int task = 0; task < 4; task++)
        CHECK(
            near(ms(call_ns(model, task * 1000 * MILLISECOND, task, PFS_READ, -1, 0, MB)), task >= 2 ? 20 : 10, 1e-3));
    free(model);
}

static void a_slow_target_slows_what_lies_on_it(void)
{
    struct pfs *model = world(PLAIN "targets 4\nslow_target 2\nslow_target_factor 6\nfault.slow-target 1\n", 1, 1, 1);
    for (int stripe = 0; stripe < 4; stripe++) {
        double took_ms = ms(call_ns(model, stripe * 1000 * MILLISECOND, 0, PFS_READ, -1, stripe * MIB, MIB));
        CHECK(near(took_ms, (double)MIB / 1e5 * (stripe == 2 ? 6 : 1), 1e-3));
    }
    free(model);
}

static void drawn_victims_differ_from_seed_to_seed(void)
{
    int seen[16] = {0}, kinds = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct pfs *model = world(PLAIN "tasks_per_node 1\nfault.straggler-task 1\n", 16, 16, seed);
        int victims = 0;
        for (int task = 0; task < 16; task++)
            if (call_ns(model, task * 1000 * MILLISECOND, task, PFS_READ, -1, 0, MB) > 20 * MILLISECOND) {
                kinds += !seen[task];
                seen[task] = 1;
                victims++;
            }
        CHECK(victims == 1);
        free(model);
    }
    CHECK(kinds >= 10);
}

static void metadata_faults(void)
{
    const char *text = PLAIN "mds_threads 8\nmds_op_ms 1\nserial_metadata_ms 4\nfault.serialised-metadata 1\n";
    struct pfs *model = world(text, 8, 1, 1);
    for (int task = 0; task < 8; task++)
        begin(model, 0, task, PFS_OPEN, pfs_file(model, 1), 0, 0);
    for (int task = 0; task < 8; task++)
        CHECK(near(ms(finish(model, task)), 5.0 * (task + 1), 1e-3));
    free(model);
    model = world(PLAIN "mds_threads 8\nmds_op_ms 1\nmetadata_storm_ms 20\nfault.metadata-storm 0.5\n", 8, 1, 1);
    for (int task = 0; task < 8; task++)
        begin(model, 0, task, PFS_OPEN, pfs_file(model, 1), 0, 0);
    for (int task = 0; task < 8; task++)
        CHECK(near(ms(finish(model, task)), 11, 1e-3));
    free(model);
}

static void small_requests_cost_the_same_whatever_their_size(void)
{
    struct pfs *model = world(PLAIN "small_request_ms 4\nfault.small-requests 1\n", 1, 1, 1);
    CHECK(near(ms(call_ns(model, 0, 0, PFS_WRITE, -1, 0, 100)), 4, 1e-3));
    CHECK(near(ms(call_ns(model, 1000 * MILLISECOND, 0, PFS_READ, -1, 0, 100)), 4, 1e-3));
    CHECK(near(ms(call_ns(model, 2000 * MILLISECOND, 0, PFS_READ, -1, 0, MB)), 10, 1e-3));
    free(model);
}

static void closes_and_syncs_commit(void)
{
    struct pfs *model = world(PLAIN "mds_op_ms 1\nclose_commit_ms 50\nfault.close-cost 1\n", 1, 1, 1);
    int file = pfs_file(model, 1);
    CHECK(near(ms(call_ns(model, 0, 0, PFS_CLOSE, file, 0, 0)), 50, 1e-3));
    free(model);
    model = world(PLAIN "commit_ms 2\nsync_commit_ms 40\nfault.sync-per-write 0.5\n", 1, 1, 1);
    CHECK(near(ms(call_ns(model, 0, 0, PFS_SYNC, file, 0, 0)), 22, 1e-3));
    free(model);
}

static void beyond_the_cache_lies_a_cliff(void)
{
    const char *text = PLAIN "tasks_per_node 1\ncache_MiB 4\ncache_cliff_factor 8\nfault.cache-cliff 1\n";
    struct pfs *model = world(text, 1, 1, 1);
    int file = pfs_file(model, 1);
    CHECK(call_ns(model, 0, 0, PFS_WRITE, file, 0, 4 * MIB) < MILLISECOND);
    double took_ms = ms(call_ns(model, 10000 * MILLISECOND, 0, PFS_WRITE, file, 4 * MIB, 5 * MIB));
    /* One MiB does not fit: eight times its work, while what fits has a twentieth of its weight. */
    CHECK(near(took_ms, 8 * (double)MIB / 1e5 * 1.05, 0.01));
    free(model);
    /* A write that finds the cache full does not fit at all: all of its work is beyond the cliff. */
    double times_ms[2];
    for (int with = 0; with < 2; with++) {
        model = world(with ? text : PLAIN "tasks_per_node 1\ncache_MiB 4\n", 1, 1, 1);
        file = pfs_file(model, 1);
        CHECK(call_ns(model, 0, 0, PFS_WRITE, file, 0, 4 * MIB) < MILLISECOND);
        times_ms[with] = ms(call_ns(model, MILLISECOND, 0, PFS_WRITE, file, 4 * MIB, 64 * MIB));
        free(model);
    }
    CHECK(times_ms[1] > 7 * times_ms[0]);
}

/* Some calls are slow as a whole, whatever their size; their share is given by the settings. */
static void single_large_calls_meet_slow_paths(void)
{
    enum { CALLS = 20000 };
    const char *text = PLAIN "targets 100\nstream_MB_per_s 100\nheavy_share 0.05\nheavy_factor 10\nheavy_noise 0\n"
                             "fault.single-large-call 1\n";
    struct pfs *model = world(text, 1, 1, 1);
    int heavy = 0;
    for (int i = 0; i < CALLS; i++) {
        double took_ms = ms(call_ns(model, i * 1000 * MILLISECOND, 0, PFS_READ, -1, 0, MB));
        CHECK(fabs(took_ms - 10) < 0.001 || fabs(took_ms - 100) < 0.001);
        heavy += took_ms > 50;
    }
    CHECK(near(heavy, 0.05 * CALLS, 4 * sqrt(0.05 * 0.95 * CALLS)));
    free(model);
}

/* Others take 3/4 of a target in 40 % of the periods: in the long run, work takes 1 / (0.6 + 0.4 / 4) times as long. */
static void background_load_comes_in_bursts(void)
{
    const char *text = PLAIN "background_share 0.75\nbackground_busy_fraction 0.4\nbackground_period_s 0.1\n"
                             "fault.background-load 1\n";
    struct pfs *model = world(text, 1, 1, 1);
    double took_s = ms(call_ns(model, 0, 0, PFS_READ, -1, 0, INT64_C(40000) * MB)) / 1e3;
    CHECK(near(took_s, 400 / 0.7, 0.02 * 400 / 0.7));
    CHECK(pfs_next_ns(model) == INT64_MAX);
    int quick = 0, slow = 0;
    for (int i = 0; i < 2000; i++) {
        int64_t now_ns = 1000000 * MILLISECOND + i * 100 * MILLISECOND;
        double took_ms = ms(call_ns(model, now_ns, 0, PFS_READ, -1, 0, MB));
        quick += fabs(took_ms - 10) < 0.001;
        slow += fabs(took_ms - 40) < 0.001;
    }
    CHECK(quick + slow == 2000);
    CHECK(near(slow, 800, 4 * sqrt(2000 * 0.4 * 0.6)));
    free(model);
}

/* Calls of one request that come together are served in an order that is drawn: with very unequal shares nearly one
 * after the other, so that the first ends long before the last. Large calls have equal shares, and all the work takes
 * as long. */
static void unequal_shares_average_out_in_large_calls(void)
{
    enum { TASKS = 16 };
    const char *noise = PLAIN "stripe_MiB 1\nshare_noise 3\n";
    for (int large = 0; large < 2; large++) {
        struct pfs *model = world(noise, TASKS, TASKS, 3);
        const int64_t bytes = large ? 1024 * MIB : MIB;
        const double all_ms = TASKS * (double)bytes / 1e5;
        double first_ms = 1e18, last_ms = 0;
        for (int task = 0; task < TASKS; task++) {
            pfs_place(model, task, task);
            begin(model, 0, task, PFS_WRITE, -1, task * bytes, bytes);
        }
        for (int task = 0; task < TASKS; task++) {
            const double took_ms = ms(finish(model, task));
            first_ms = fmin(first_ms, took_ms);
            last_ms = fmax(last_ms, took_ms);
        }
        CHECK(fabs(last_ms / all_ms - 1) < 1e-6);
        CHECK(large ? first_ms > 0.7 * all_ms : first_ms < 0.2 * all_ms);
        free(model);
    }
}

static void collectives_of_a_driver_take_longer(void)
{
    struct pfs_settings plain = world_settings("mpi_latency_us 2\nmpi_MB_per_s 1000\n");
    struct pfs_settings slow = world_settings("mpi_latency_us 2\nmpi_MB_per_s 1000\ncollective_factor 50\n"
                                              "fault.collective-coordination 1\n");
    CHECK(pfs_collective_ns(&plain, 1024, 0) == 20000);
    CHECK(pfs_collective_ns(&plain, 1000, 1000) == 21000);
    CHECK(pfs_collective_ns(&slow, 1024, 0) == 1000000);
    CHECK(pfs_collective_ns(&plain, 1, 0) == 0);
}

int main(void)
{
    node_serialisation_lets_one_or_two_go_first();
    who_goes_first_gets_the_share_of_the_node();
    misaligned_requests_cost_at_each_ragged_end();
    a_write_that_goes_on_is_aligned_at_its_beginning();
    too_many_writers_make_each_write_more_expensive();
    stragglers_take_a_multiple_of_the_time();
    a_slow_target_slows_what_lies_on_it();
    drawn_victims_differ_from_seed_to_seed();
    metadata_faults();
    small_requests_cost_the_same_whatever_their_size();
    closes_and_syncs_commit();
    beyond_the_cache_lies_a_cliff();
    single_large_calls_meet_slow_paths();
    background_load_comes_in_bursts();
    unequal_shares_average_out_in_large_calls();
    collectives_of_a_driver_take_longer();
    puts("16 passed, 0 failed");
    return 0;
}
