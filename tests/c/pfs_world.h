/* pfs_world.h: a model for a test, from a text of settings, and calls that wait for completion. */
#ifndef ENSIO_TESTS_PFS_WORLD_H
#define ENSIO_TESTS_PFS_WORLD_H

#include "check.h"

#include <math.h>
#include <pfsmodel.h>
#include <settings.h>
#include <string.h>

/* Links, memory and clients that take no time, one target of 100 MB/s, no noise: only the queue under test remains. */
#define PLAIN \
    "targets 1\ntarget_MB_per_s 100\nrequest_ms 0\ncommit_ms 0\nlink_MB_per_s 1e9\nlink_latency_us 0\n" \
    "stream_MB_per_s 1e9\nabsorb_MB_per_s 1e9\nclient_call_us 0\ncache_MiB 0\nreadahead_KiB 0\nrequest_noise 0\n" \
    "call_noise 0\nmds_noise 0\n"

#define MILLISECOND INT64_C(1000000)
#define MB 1000000

static inline struct pfs_settings world_settings(const char *text)
{
    struct pfs_settings settings;
    char why[256] = "";
    if (pfs_settings_read(&settings, text, why, sizeof why))
        fprintf(stderr, "%s\n", why);
    CHECK(why[0] == '\0');
    return settings;
}

static inline struct pfs *world(const char *text, int tasks, int nodes, uint64_t seed)
{
    struct pfs_settings settings = world_settings(text);
    struct pfs_limits limits = {.tasks = tasks, .nodes = nodes, .files = 64};
    size_t bytes = (pfs_bytes(&settings, &limits) + 63) / 64 * 64;
    struct pfs *model = aligned_alloc(64, bytes);
    CHECK(model);
    memset(model, 0, bytes);
    pfs_create(model, &settings, &limits, seed);
    return model;
}

static inline void begin(struct pfs *model, int64_t now_ns, int task, int operation, int file, int64_t offset,
                         int64_t bytes)
{
    struct pfs_call call = {.task = task, .file = file, .offset = offset, .bytes = bytes};
    call.operation = (uint16_t)operation;
    pfs_begin(model, now_ns, &call);
}

/* Advances the model until the task's call is complete. Returns the time of completion. */
static inline int64_t finish(struct pfs *model, int task)
{
    int64_t done_ns;
    while (!pfs_take_of(model, task, &done_ns)) {
        CHECK(pfs_next_ns(model) != INT64_MAX);
        pfs_advance(model, pfs_next_ns(model));
    }
    return done_ns;
}

/* Makes one call. Returns its duration. */
static inline int64_t call_ns(struct pfs *model, int64_t now_ns, int task, int operation, int file, int64_t offset,
                              int64_t bytes)
{
    begin(model, now_ns, task, operation, file, offset, bytes);
    return finish(model, task) - now_ns;
}

static inline int near(double value, double expected, double tolerance)
{
    int is = fabs(value - expected) <= tolerance;
    if (!is)
        fprintf(stderr, "%.9g, where %.9g was expected (give or take %.2g)\n", value, expected, tolerance);
    return is;
}

#endif
