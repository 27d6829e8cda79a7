/* What the write-back cache absorbs, what it delays, and that it loses no byte. */
#include "pfs_world.h"

#include <state.h> /* bytes that reached each target */

/* A share of 8 MiB for each of two tasks; memory takes 1000 MB/s, the target 100 MB/s. */
#define CACHE PLAIN "cache_MiB 16\ntasks_per_node 2\nabsorb_MB_per_s 1000\n"

#define MIB (INT64_C(1) << 20)

static const double memory_ns = 1.0, target_ns = 10.0; /* a byte */

static double bytes_on_targets(const struct pfs *model)
{
    double sum = 0;
    for (int32_t target = 0; target < model->targets; target++)
        sum += *target_bytes_at(model, target);
    return sum;
}

static void a_write_that_fits_goes_at_memory_speed(void)
{
    struct pfs *model = world(CACHE, 2, 1, 1);
    int file = pfs_file(model, 1);
    CHECK(near((double)call_ns(model, 0, 0, PFS_WRITE, file, 0, 8 * MIB), 8 * MIB * memory_ns, 1));
    free(model);
}

static void two_tasks_of_a_node_share_its_memory(void)
{
    struct pfs *model = world(CACHE, 2, 1, 1);
    int file = pfs_file(model, 1);
    begin(model, 0, 0, PFS_WRITE, file, 0, 8 * MIB);
    begin(model, 0, 1, PFS_WRITE, file, 8 * MIB, 8 * MIB);
    CHECK(near((double)finish(model, 0), 16 * MIB * memory_ns, 1));
    CHECK(near((double)finish(model, 1), 16 * MIB * memory_ns, 1));
    free(model);
}

/* The rest takes precedence over what the cache holds: 12 MiB of rest and 8 MiB behind it are 20 MiB of work for one
 * target, of which the rest gets 20 of 21 shares while both are there. */
static void the_rest_of_a_large_write_waits_for_the_target(void)
{
    struct pfs *model = world(CACHE, 2, 1, 1);
    int file = pfs_file(model, 1);
    int64_t took_ns = call_ns(model, 0, 0, PFS_WRITE, file, 0, 20 * MIB);
    CHECK(near((double)took_ns, 12 * MIB * target_ns * 21 / 20, 12 * MIB * target_ns * 0.001));
    int64_t synced_ns = took_ns + call_ns(model, took_ns, 0, PFS_SYNC, file, 0, 0);
    CHECK(near((double)synced_ns, 20 * MIB * target_ns, 2));
    CHECK(near(bytes_on_targets(model), 20 * MIB, 0));
    free(model);
}

static void a_sync_and_a_close_wait_for_what_their_task_wrote(void)
{
    const int operations[] = {PFS_SYNC, PFS_CLOSE};
    for (int i = 0; i < 2; i++) {
        struct pfs *model = world(CACHE "mds_op_ms 0\n", 2, 1, 1);
        int file = pfs_file(model, 1);
        int64_t took_ns = call_ns(model, 0, 0, PFS_WRITE, file, 0, 8 * MIB);
        int64_t flush_ns = call_ns(model, took_ns, 0, operations[i], file, 0, 0);
        CHECK(near((double)(took_ns + flush_ns), 8 * MIB * target_ns, 2));
        CHECK(call_ns(model, 2 * (took_ns + flush_ns), 0, operations[i], file, 0, 0) == 0);
        free(model);
    }
}

static void a_close_need_not_flush(void)
{
    struct pfs *model = world(CACHE "mds_op_ms 1\nclose_flushes 0\n", 2, 1, 1);
    int file = pfs_file(model, 1);
    int64_t took_ns = call_ns(model, 0, 0, PFS_WRITE, file, 0, 8 * MIB);
    CHECK(call_ns(model, took_ns, 0, PFS_CLOSE, file, 0, 0) == MILLISECOND);
    free(model);
}

static void a_write_through_is_on_the_target_when_it_is_complete(void)
{
    struct pfs *model = world(CACHE "commit_ms 4\n", 2, 1, 1);
    struct pfs_call call = {.task = 0, .file = pfs_file(model, 1), .bytes = MIB, .operation = PFS_WRITE, .through = 1};
    pfs_begin(model, 0, &call);
    CHECK(near((double)finish(model, 0), MIB * target_ns + 4e6, 2));
    free(model);
}

/* Many small writes, then a sync: the cache merges them, and every byte reaches a target once. */
static void small_writes_lose_no_byte(void)
{
    struct pfs *model = world(CACHE "targets 7\nstripe_MiB 0.0625\n", 2, 1, 1);
    int file = pfs_file(model, 1), other = pfs_file(model, 2);
    int64_t now_ns = 0, total = 0;
    for (int i = 0; i < 5000; i++) {
        int64_t bytes = 1 + i * 37 % 30000;
        now_ns += call_ns(model, now_ns, i % 2, PFS_WRITE, i % 3 ? file : other, (int64_t)i * 40000, bytes);
        total += bytes;
    }
    now_ns += call_ns(model, now_ns, 0, PFS_SYNC, file, 0, 0);
    CHECK(call_ns(model, now_ns, 1, PFS_SYNC, file, 0, 0) >= 0);
    CHECK(near(bytes_on_targets(model), (double)total, 0));
    CHECK(pfs_next_ns(model) == INT64_MAX);
    free(model);
}

/* Stripes are distributed over the file's targets: those of a file of 4 stripes get equal shares of the bytes, and no
 * others do. */
static void a_file_lies_on_its_stripes(void)
{
    struct pfs *model = world(PLAIN "targets 7\nstripe_count 4\n", 1, 1, 1);
    int file = pfs_file(model, 1), used = 0;
    call_ns(model, 0, 0, PFS_WRITE, file, 3 * MIB, 40 * MIB);
    for (int32_t target = 0; target < 7; target++) {
        double bytes = *target_bytes_at(model, target);
        CHECK(bytes == 0 || bytes == 10 * MIB);
        used += bytes > 0;
    }
    CHECK(used == 4);
    free(model);
}

static void read_ahead_serves_small_reads_in_a_row_from_memory(void)
{
    struct pfs *model = world(PLAIN "readahead_KiB 64\nreadahead_max_MiB 1\nrequest_ms 1\n", 1, 1, 1);
    int file = pfs_file(model, 1), fetched = 0;
    int64_t now_ns = 0;
    for (int i = 0; i < 2048; i++) { /* 8 MiB */
        int64_t took_ns = call_ns(model, now_ns, 0, PFS_READ, file, i * 4096, 4096);
        CHECK(took_ns <= 1 || took_ns > MILLISECOND);
        fetched += took_ns > 1;
        now_ns += took_ns;
    }
    /* The first read, windows of 64, 128, 256, 512 KiB, then of 1 MiB: 0.94 MiB and eight more. */
    CHECK(fetched == 1 + 4 + 8);
    CHECK(bytes_on_targets(model) < 9.5 * MIB);
    free(model);
}

int main(void)
{
    a_write_that_fits_goes_at_memory_speed();
    two_tasks_of_a_node_share_its_memory();
    the_rest_of_a_large_write_waits_for_the_target();
    a_sync_and_a_close_wait_for_what_their_task_wrote();
    a_close_need_not_flush();
    a_write_through_is_on_the_target_when_it_is_complete();
    small_writes_lose_no_byte();
    a_file_lies_on_its_stripes();
    read_ahead_serves_small_reads_in_a_row_from_memory();
    puts("9 passed, 0 failed");
    return 0;
}
