/* Samples of the kernel's counters. NFS and Lustre do not run where the tests run, so their files come from a made
 * tree, in the form that the kernel's and Lustre's sources give them. */
#include "recorder_world.h"

#include <core/lock.h>
#include <spool/mounts.h>
#include <surroundings/sample.h>
#include <surroundings/sources.h>
#include <time/clock.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[512];

/* Makes a file of the tree, with the folders above it. */
static void make(const char *path, const char *text)
{
    char whole[1024];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *slash = whole + strlen(root) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        CHECK(mkdir(whole, 0700) == 0 || errno == EEXIST);
    }
    FILE *file = fopen(whole, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void begin_tree(void)
{
    world_begin_with_spool(ENSIO_TRACE);
    snprintf(root, sizeof root, "%s/tree", world_folder());
    CHECK(mkdir(root, 0700) == 0);
    ensio_sources_root = root;
    memset(&ensio_mounted, 0, sizeof ensio_mounted);
}

static struct ensio_surroundings read_by(uint32_t (*source)(struct ensio_surroundings *row), uint32_t expected)
{
    struct ensio_surroundings row = {0};
    const struct ensio_held held = ensio_lock();
    const uint32_t read = source(&row);
    ensio_unlock(held);
    CHECK(read == expected);
    return row;
}

static void nothing_is_read_without_files(void)
{
    uint32_t (*const all[])(struct ensio_surroundings *) = {
        ensio_read_process,      ensio_read_memory,          ensio_read_pressure,
        ensio_read_cgroup,       ensio_read_cgroup_pressure, ensio_read_nfs,
        ensio_read_lustre_dirty, ensio_read_lustre_ahead,    ensio_read_lustre_rpcs};
    begin_tree();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        read_by(all[i], 0);
    ensio_mounted.lustre = 1;
    strcpy(ensio_mounted.cgroup, "/sys/fs/cgroup");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        read_by(all[i], 0);
}

static void counters_of_the_process_come_from_its_io_file(void)
{
    begin_tree();
    make("/proc/self/io", "rchar: 11\nwchar: 12\nsyscr: 13\nsyscw: 14\nread_bytes: 15\nwrite_bytes: 16\n"
                          "cancelled_write_bytes: 17\n");
    const struct ensio_surroundings row = read_by(ensio_read_process, ENSIO_READ_PROCESS);
    CHECK(row.read_by_calls == 11 && row.written_by_calls == 12 && row.read_calls == 13 && row.write_calls == 14);
    CHECK(row.read_bytes == 15 && row.write_bytes == 16 && row.cancelled_write_bytes == 17);
}

static void levels_of_memory_are_bytes(void)
{
    begin_tree();
    make("/proc/meminfo", "MemTotal: 9 kB\nMemFree: 8 kB\nMemAvailable:   7 kB\nBuffers: 1 kB\nCached:      6 kB\n"
                          "SwapCached: 3 kB\nDirty:    5 kB\nWriteback:  4 kB\nWritebackTmp: 2 kB\n");
    const struct ensio_surroundings row = read_by(ensio_read_memory, ENSIO_READ_MEMORY);
    CHECK(row.available_bytes == 7168 && row.cached_bytes == 6144 && row.dirty_bytes == 5120);
    CHECK(row.writeback_bytes == 4096);
}

static void pressure_is_the_total_of_each_line(void)
{
    begin_tree();
    make("/proc/pressure/io", "some avg10=0.01 avg60=0.02 avg300=0.03 total=71\n"
                              "full avg10=0.00 avg60=0.00 avg300=0.00 total=72\n");
    const struct ensio_surroundings row = read_by(ensio_read_pressure, ENSIO_READ_PRESSURE);
    CHECK(row.some_us == 71 && row.full_us == 72);
}

static void a_cgroup_is_found_below_its_mount(void)
{
    begin_tree();
    strcpy(ensio_mounted.cgroup, "/sys/fs/cgroup");
    make("/proc/self/cgroup", "4:memory:/other\n0::/job/step\n");
    make("/sys/fs/cgroup/io.stat", "8:0 rbytes=900 wbytes=900 rios=900 wios=900 dbytes=0 dios=0\n");
    make("/sys/fs/cgroup/job/step/cgroup.type", "domain\n");
    make("/sys/fs/cgroup/job/step/io.stat", "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0\n"
                                            "253:16 rbytes=10 wbytes=20 rios=30 wios=40 dbytes=5 dios=6\n");
    const struct ensio_surroundings row = read_by(ensio_read_cgroup, ENSIO_READ_CGROUP);
    CHECK(row.cgroup_read_bytes == 11 && row.cgroup_write_bytes == 22);
    CHECK(row.cgroup_reads == 33 && row.cgroup_writes == 44);
    read_by(ensio_read_cgroup_pressure, 0); /* and not that of the mount */
}

static void in_a_container_the_mount_is_the_cgroup(void)
{
    begin_tree();
    strcpy(ensio_mounted.cgroup, "/sys/fs/cgroup");
    make("/proc/self/cgroup", "0::/../outside\n");
    make("/sys/fs/cgroup/cgroup.type", "domain\n");
    make("/sys/fs/cgroup/io.pressure",
         "some avg10=0 avg60=0 avg300=0 total=5\nfull avg10=0 avg60=0 avg300=0 total=3\n");
    const struct ensio_surroundings row = read_by(ensio_read_cgroup_pressure, ENSIO_READ_CGROUP_PRESSURE);
    CHECK(row.cgroup_some_us == 5 && row.cgroup_full_us == 3);
}

/* Its counters are those of the node. */
static void the_root_cgroup_is_not_read(void)
{
    begin_tree();
    strcpy(ensio_mounted.cgroup, "/sys/fs/cgroup");
    make("/proc/self/cgroup", "0::/\n");
    make("/sys/fs/cgroup/io.pressure",
         "some avg10=0 avg60=0 avg300=0 total=5\nfull avg10=0 avg60=0 avg300=0 total=3\n");
    read_by(ensio_read_cgroup_pressure, 0);
}

static void nfs_mounts_are_added_up(void)
{
    begin_tree();
    ensio_mounted.nfs = 1;
    make("/proc/self/mountstats", "device rootfs mounted on / with fstype rootfs\n"
                                  "device server:/a mounted on /a with fstype nfs4 statvers=1.1\n"
                                  "\topts:\trw,vers=4.2,rsize=1048576,wsize=1048576,proto=tcp\n"
                                  "\tage:\t7\n"
                                  "\tbytes:\t1 2 3 4 5000 6000 7 8\n"
                                  "\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n"
                                  "\txprt:\ttcp 0 0 2 0 0 50 50 0 50 0 2 0 0\n"
                                  "\tper-op statistics\n"
                                  "\t        NULL: 1 1 0 44 24 0 0 0 0\n"
                                  "\t        READ: 10 12 0 1600 5000 1 90 100 0\n"
                                  "\t       WRITE: 20 20 0 7000 2000 2 150 200 0\n"
                                  "\t      COMMIT: 3 4 1 300 200 0 5 6 0\n"
                                  "\n"
                                  "device server:/b mounted on /b with fstype nfs statvers=1.1\n"
                                  "\tbytes:\t0 0 0 0 50 60 0 0\n"
                                  "\tper-op statistics\n"
                                  "\t        READ: 1 1 0 160 50 0 9 10\n"
                                  "\n"
                                  "device other mounted on /c with fstype ext4\n");
    const struct ensio_surroundings row = read_by(ensio_read_nfs, ENSIO_READ_NFS);
    CHECK(row.nfs_read_bytes == 5050 && row.nfs_write_bytes == 6060);
    CHECK(row.nfs_reads == 11 && row.nfs_writes == 20 && row.nfs_commits == 3);
    CHECK(row.nfs_read_ms == 110 && row.nfs_write_ms == 200 && row.nfs_retransmissions == 3);
}

#define RPC_STATS \
    "snapshot_time:            1789952232.703630742 secs.nsecs\n" \
    "read RPCs in flight:  0\nwrite RPCs in flight: 0\npending write pages:  0\npending read pages:   0\n\n" \
    "\t\t\tread\t\t\twrite\n" \
    "pages per rpc         rpcs   % cum % |       rpcs   % cum %\n" \
    "1:\t\t         2  50  50   |          3  60  60\n" \
    "256:\t\t         1  25  75   |          2  40 100\n\n" \
    "\t\t\tread\t\t\twrite\n" \
    "rpcs in flight        rpcs   % cum % |       rpcs   % cum %\n" \
    "1:\t\t       777 100 100   |        888 100 100\n"

static void check_lustre(void)
{
    struct ensio_surroundings row = read_by(ensio_read_lustre_dirty, ENSIO_READ_LUSTRE_DIRTY);
    CHECK(row.lustre_dirty_bytes == 4096 + 8192);
    row = read_by(ensio_read_lustre_ahead, ENSIO_READ_LUSTRE_AHEAD);
    CHECK(row.lustre_ahead_hits == 12 && row.lustre_ahead_misses == 4);
    row = read_by(ensio_read_lustre_rpcs, ENSIO_READ_LUSTRE_RPCS);
    CHECK(row.lustre_read_rpcs == 6 && row.lustre_read_pages == 2 * 258);
    CHECK(row.lustre_write_rpcs == 10 && row.lustre_write_pages == 2 * 515);
}

static void lustre_since_2_12(void)
{
    begin_tree();
    ensio_mounted.lustre = 1;
    make("/sys/fs/lustre/version", "2.15.3\n");
    make("/sys/fs/lustre/osc/lustre-OST0000-osc-ffff1/cur_dirty_bytes", "4096\n");
    make("/sys/fs/lustre/osc/lustre-OST0001-osc-ffff1/cur_dirty_bytes", "8192\n");
    make("/sys/kernel/debug/lustre/osc/lustre-OST0000-osc-ffff1/rpc_stats", RPC_STATS);
    make("/sys/kernel/debug/lustre/osc/lustre-OST0001-osc-ffff1/rpc_stats", RPC_STATS);
    make("/sys/kernel/debug/lustre/llite/lustre-ffff1/read_ahead_stats",
         "snapshot_time             1789952232.698225730 secs.nsecs\n"
         "hits                      12 samples [pages] 1 1 12 12\n"
         "misses                    4 samples [pages] 1 1 4 4\n"
         "miss_inside_window        1 samples [pages]\n");
    check_lustre();
}

static void lustre_before_2_12(void)
{
    begin_tree();
    ensio_mounted.lustre = 1;
    make("/proc/fs/lustre/osc/num_refs", "3\n");
    make("/proc/fs/lustre/osc/lustre-OST0000-osc-ffff1/cur_dirty_bytes", "4096\n");
    make("/proc/fs/lustre/osc/lustre-OST0001-osc-ffff1/cur_dirty_bytes", "8192\n");
    make("/proc/fs/lustre/osc/lustre-OST0000-osc-ffff1/rpc_stats", RPC_STATS);
    make("/proc/fs/lustre/osc/lustre-OST0001-osc-ffff1/rpc_stats", RPC_STATS);
    make("/proc/fs/lustre/llite/lustre-ffff1/read_ahead_stats",
         "snapshot_time             1523008010.817348638 secs.nsecs\n"
         "hits                      12 samples [pages]\n"
         "misses                    4 samples [pages]\n"
         "miss inside window        1 samples [pages]\n");
    check_lustre();
}

struct rows {
    uint32_t count, windows;
    struct ensio_surroundings last;
    uint32_t seen; /* ENSIO_READ_... of rows after the first */
};

static void count_rows(const struct ensio_window *window, uint64_t position, void *state)
{
    (void)position;
    struct rows *rows = state;
    if (window->kind != ENSIO_WINDOW_SURROUNDINGS)
        return;
    const struct ensio_surroundings *row =
        (const struct ensio_surroundings *)(const void *)((const char *)window + ENSIO_WINDOW_HEADER_BYTES);
    const uint64_t room = (window->bytes - ENSIO_WINDOW_HEADER_BYTES) / sizeof *row;
    rows->windows++;
    for (uint64_t i = 0; i < room && row[i].read; i++) {
        CHECK(row[i].ticks >= rows->last.ticks);
        rows->last = row[i];
        rows->seen |= rows->count ? row[i].read : 0;
        rows->count++;
    }
}

static struct rows rows_now(void)
{
    struct rows rows = {0};
    uint64_t bytes;
    const uint8_t *file = world_spool_file(&bytes);
    world_each_window(file, bytes, count_rows, &rows);
    return rows;
}

static void sample(uint64_t now)
{
    const struct ensio_held held = ensio_lock();
    errno = ERANGE;
    ensio_surroundings_sample(now);
    ensio_unlock(held);
}

static void end(void)
{
    const struct ensio_held held = ensio_lock();
    ensio_surroundings_end();
    ensio_unlock(held);
}

/* The counters are the kernel's own. */
static void samples_are_a_second_apart(void)
{
    world_begin_with_spool(ENSIO_TRACE);
    ensio_settings.surroundings = 1;
    const uint64_t now = ensio_ticks(), second = 10000000000; /* ticks, of any clock at least a second */
    sample(now);
    sample(now + 1000);
    struct rows rows = rows_now();
    CHECK(rows.count == 1 && (rows.last.read & ENSIO_READ_PROCESS) && (rows.last.read & ENSIO_READ_MEMORY));
    CHECK(rows.last.read_calls > 0 && rows.last.available_bytes > 0 && rows.last.cost_ns > 0);
    sample(now + second);
    rows = rows_now();
    CHECK(rows.count == 2 && rows.last.ticks == now + second);
    for (uint64_t at = 3; at < 1000; at++)
        sample(now + at * second);
    rows = rows_now();
    CHECK(rows.count > 300 && rows.count < 500); /* further apart the longer the run */
    CHECK(rows.windows > 2);
    CHECK(rows.seen == (ENSIO_READ_PROCESS | ENSIO_READ_MEMORY | ENSIO_READ_PRESSURE) ||
          rows.seen == (ENSIO_READ_PROCESS | ENSIO_READ_MEMORY)); /* each in turn; not every kernel has pressure */
}

static void the_end_is_sampled_if_it_is_not_at_once(void)
{
    world_begin_with_spool(ENSIO_TRACE);
    ensio_settings.surroundings = 1;
    const uint64_t before = ensio_clock_ns(CLOCK_MONOTONIC);
    sample(ensio_ticks());
    end();
    const uint32_t at_once = rows_now().count;
    CHECK(at_once == 1 || ensio_clock_ns(CLOCK_MONOTONIC) - before >= 10000000);
    usleep(20000);
    end();
    const struct rows rows = rows_now();
    CHECK(rows.count == at_once + 1 && (rows.last.read & ENSIO_READ_PROCESS) && (rows.last.read & ENSIO_READ_MEMORY));
}

static void a_process_that_records_nothing_has_no_samples(void)
{
    world_begin_with_spool(ENSIO_TRACE);
    ensio_settings.surroundings = 1;
    end();
    CHECK(rows_now().count == 0 && rows_now().windows == 0);
}

static void samples_can_be_switched_off(void)
{
    world_begin_with_spool(ENSIO_TRACE);
    sample(ensio_ticks());
    usleep(20000);
    end();
    CHECK(rows_now().windows == 0);
}

static void without_files_there_are_no_samples(void)
{
    begin_tree();
    ensio_settings.surroundings = 1;
    sample(ensio_ticks());
    CHECK(rows_now().windows == 0);
}

/* A task that another one of its node reports for. */
static void other_tasks_of_a_node_read_their_own_counters(void)
{
    setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1", 1);
    world_begin_with_spool(ENSIO_TRACE);
    ensio_settings.surroundings = 1;
    sample(ensio_ticks());
    CHECK(rows_now().last.read == ENSIO_READ_PROCESS);
}

static void no_descriptor_stays_open(void)
{
    world_begin_with_spool(ENSIO_TRACE);
    ensio_settings.surroundings = 1;
    const int before = open("/dev/null", O_RDONLY);
    close(before);
    sample(ensio_ticks());
    const int after = open("/dev/null", O_RDONLY);
    CHECK(before == after);
    /* Neither does a full table of descriptors matter. */
    struct rlimit limit = {64, 64};
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    while (open("/dev/null", O_RDONLY) >= 0)
        ;
    sample(ensio_ticks() + 10000000000);
    CHECK(open("/dev/null", O_RDONLY) == -1 && errno == EMFILE);
}

int main(void)
{
    CASE(nothing_is_read_without_files);
    CASE(counters_of_the_process_come_from_its_io_file);
    CASE(levels_of_memory_are_bytes);
    CASE(pressure_is_the_total_of_each_line);
    CASE(a_cgroup_is_found_below_its_mount);
    CASE(in_a_container_the_mount_is_the_cgroup);
    CASE(the_root_cgroup_is_not_read);
    CASE(nfs_mounts_are_added_up);
    CASE(lustre_since_2_12);
    CASE(lustre_before_2_12);
    CASE(samples_are_a_second_apart);
    CASE(the_end_is_sampled_if_it_is_not_at_once);
    CASE(a_process_that_records_nothing_has_no_samples);
    CASE(samples_can_be_switched_off);
    CASE(without_files_there_are_no_samples);
    CASE(other_tasks_of_a_node_read_their_own_counters);
    CASE(no_descriptor_stays_open);
    return 0;
}
