/* settings.h: the settings of a model: physical parameters, and faults with a strength.
 *
 * PFS_PARAMETERS is the only list of parameters, PFS_FAULTS the only one of faults; fields, keys, defaults and limits
 * come from them. The defaults describe a healthy generic system. */
#ifndef ENSIO_PFSMODEL_SETTINGS_H
#define ENSIO_PFSMODEL_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

/* key, default, minimum, maximum; docs/reference/pfsmodel.md explains them. */
#define PFS_PARAMETERS(X) \
    /* nodes */ \
    X(tasks_per_node, 4, 1, 4096) \
    X(link_MB_per_s, 1000, 1e-3, 1e9) \
    X(link_latency_us, 100, 0, 1e9) \
    X(stream_MB_per_s, 800, 1e-3, 1e9) \
    X(cache_MiB, 256, 0, 1e9) \
    X(absorb_MB_per_s, 2000, 1e-3, 1e9) \
    X(page_cache_MiB, 1024, 0, 1e9) \
    /* targets */ \
    X(targets, 48, 1, 65536) \
    X(stripe_MiB, 1, 0.0009765625, 1e6) \
    X(stripe_count, 0, 0, 65536) \
    X(target_MB_per_s, 400, 1e-3, 1e9) \
    X(request_ms, 0.2, 0, 1e6) \
    X(commit_ms, 2, 0, 1e6) \
    /* metadata server */ \
    X(mds_threads, 16, 1, 65536) \
    X(mds_op_ms, 0.5, 0, 1e6) \
    X(mds_create_ms, 1, 0, 1e6) \
    X(close_flushes, 1, 0, 1) \
    /* read-ahead */ \
    X(readahead_KiB, 64, 0, 1e9) \
    X(readahead_max_MiB, 8, 0, 1e6) \
    X(shared_reads, 0, 0, 1) \
    /* noise: standard deviations of logarithms */ \
    X(request_noise, 0.1, 0, 3) \
    X(call_noise, 0.1, 0, 3) \
    X(mds_noise, 0.2, 0, 3) \
    X(share_noise, 0, 0, 10) \
    /* drivers: messages between tasks, and calls that never reach the file system */ \
    X(mpi_latency_us, 2, 0, 1e9) \
    X(mpi_message_us, 0, 0, 1e9) \
    X(mpi_MB_per_s, 3000, 1e-3, 1e9) \
    X(mpi_collective_scale, 1, 1e-3, 1e9) \
    X(client_call_us, 1, 0, 1e9) \
    /* effects of the faults at strength 1 */ \
    X(one_at_a_time_share, 0.35, 0, 1) \
    X(two_at_a_time_share, 0.35, 0, 1) \
    X(gather_us, 200, 0, 1e9) \
    X(straggler_task, -1, -1, 2147483647) \
    X(straggler_task_factor, 4, 1, 1e6) \
    X(straggler_node, -1, -1, 2147483647) \
    X(straggler_node_factor, 4, 1, 1e6) \
    X(slow_target, -1, -1, 65535) \
    X(slow_target_factor, 6, 1, 1e6) \
    X(lock_conflict_ms, 1.5, 0, 1e6) \
    X(partial_stripe_ms, 5, 0, 1e6) \
    X(serial_metadata_ms, 5, 0, 1e6) \
    X(metadata_storm_ms, 20, 0, 1e6) \
    X(writers_free, 1024, 0, 1e9) \
    X(writers_doubling, 8192, 1, 1e9) \
    X(small_request_ms, 4, 0, 1e6) \
    X(close_commit_ms, 200, 0, 1e6) \
    X(sync_commit_ms, 40, 0, 1e6) \
    X(cache_cliff_factor, 8, 1, 1e6) \
    X(heavy_share, 0.004, 0, 1) \
    X(heavy_factor, 9.4, 1, 1e6) \
    X(heavy_noise, 0.25, 0, 3) \
    X(page_ms, 4.4, 0, 1e6) \
    X(page_noise, 0.2, 0, 3) \
    X(stride_window_MiB, 57, 0, 1e6) \
    X(full_pages_fraction, 0.5, 0, 1) \
    X(collective_factor, 50, 1, 1e9) \
    X(background_share, 0.7, 0, 0.99) \
    X(background_period_s, 2, 1e-3, 1e6) \
    X(background_busy_fraction, 0.3, 0, 1)

/* field, id */
#define PFS_FAULTS(X) \
    X(node_serialisation, "node-serialisation") \
    X(straggler_task, "straggler-task") \
    X(straggler_node, "straggler-node") \
    X(slow_target, "slow-target") \
    X(misaligned_requests, "misaligned-requests") \
    X(serialised_metadata, "serialised-metadata") \
    X(metadata_storm, "metadata-storm") \
    X(too_many_writers, "too-many-writers") \
    X(small_requests, "small-requests") \
    X(close_cost, "close-cost") \
    X(sync_per_write, "sync-per-write") \
    X(cache_cliff, "cache-cliff") \
    X(single_large_call, "single-large-call") \
    X(strided_readahead, "strided-readahead") \
    X(collective_coordination, "collective-coordination") \
    X(background_load, "background-load")

#define PFS_STRENGTH_MOST 100.0

struct pfs_faults {
#define PFS_FIELD(field, id) double field;
    PFS_FAULTS(PFS_FIELD)
#undef PFS_FIELD
};

struct pfs_settings {
#define PFS_FIELD(key, usual, smallest, largest) double key;
    PFS_PARAMETERS(PFS_FIELD)
#undef PFS_FIELD
    struct pfs_faults fault; /* 0: off; 1: as strong as the parameters say */
};

/* Sets the defaults, then parses lines "KEY VALUE" or "fault.ID STRENGTH"; empty lines and those that begin with '#'
 * are skipped. Returns 0, or -1 with one sentence in `why`, which names the line. */
int pfs_settings_read(struct pfs_settings *settings, const char *text, char *why, size_t why_bytes);

/* The duration in ns of a collective step of MPI in which each of `tasks` tasks sends `bytes`: a message for each level
 * of a tree of tasks, plus the bytes. For drivers that simulate MPI. */
int64_t pfs_collective_ns(const struct pfs_settings *settings, int64_t tasks, int64_t bytes);

#endif
