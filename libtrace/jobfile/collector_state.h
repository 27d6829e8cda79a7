/* collector_state.h: the state of the collector: the spool as it was when it was collected. */
#ifndef ENSIO_JOBFILE_COLLECTOR_STATE_H
#define ENSIO_JOBFILE_COLLECTOR_STATE_H

#include "collector.h"
#include <spool/encode.h>

#include <core/memory.h>
#include <core/settings.h>
#include <summary/drain.h>

struct ensio_work {
    struct ensio_encoder encoder;
    struct ensio_event events[ENSIO_BLOCK_EVENTS];
    uint8_t piece[ENSIO_PIECE_BYTES + ENSIO_MOST_BLOCK_BYTES];
};

struct ensio_collector {
    struct ensio_work *work;
    struct ensio_spool head;
    struct ensio_array texts, record;
    struct ensio_array windows, data; /* of struct ensio_job_window, ensio_job_data */
    struct ensio_array summary;       /* windows of the summary, of the same type */
    struct ensio_array calls;         /* of struct ensio_job_call */
    struct ensio_array kept;          /* contents of the windows without events, concatenated */
    struct ensio_array contents;      /* a checksum for each window; 0 for windows of events */
    uint64_t text_bytes;              /* length of `texts`, which are freed earlier */
    uint32_t in_job_file;             /* number of the spool that is in a job file */
    int spool_fd;
    int failed;
};
extern struct ensio_collector ensio_collector;

static inline struct ensio_job_window *ensio_collector_window(uint64_t number)
{
    return (struct ensio_job_window *)(void *)ensio_collector.windows.bytes + number;
}

static inline int ensio_collector_holds_events(const struct ensio_job_window *window)
{
    return window->window.kind == ENSIO_WINDOW_EVENTS || window->window.kind == ENSIO_WINDOW_CODED;
}

/* Whether a window belongs to the summary, which is merged with those of all processes. */
static inline int ensio_collector_is_summary(uint16_t kind)
{
    return kind == ENSIO_WINDOW_CELLS || kind == ENSIO_WINDOW_BINS;
}

/* Whether the summary holds more than follows from the events that are taken. */
static inline int ensio_collector_has_summary(void)
{
    return ensio_settings.mode != ENSIO_TRACE || ensio_collector.head.dropped_events != 0 || ensio_has_summed_only;
}

static inline uint64_t ensio_collector_windows(void)
{
    return ensio_collector.windows.used / sizeof(struct ensio_job_window);
}

/* Opens the spool, calls `what` to read it, and closes it: the result of `what`, or minus an errno. The caller holds
 * the lock. */
int64_t ensio_collector_read_by(int64_t (*what)(void *state), void *state);

/* Reads `bytes` bytes of the spool, or as many as there are. */
int64_t ensio_collector_read(void *to, uint64_t bytes, uint64_t position);

#endif
