/* totals.h: what the calls of a process, or of a job, add up to. */
#ifndef ENSIO_SUMMARY_TOTALS_H
#define ENSIO_SUMMARY_TOTALS_H

#include <core/recorder.h>
#include <core/settings.h>

/* Sums; all members are uint64_t, so that they can be added up as an array. */
struct ensio_sums {
    uint64_t tasks;
    uint64_t threads; /* that made calls, at least one a task */
    /* from the beginning of each task's recording, times its threads: what io_ns is a part of */
    uint64_t thread_ns;
    uint64_t io_ns;         /* of all threads, nested calls not counted twice; waiting for other tasks is no I/O */
    uint64_t bytes_read;    /* by calls that are in no other */
    uint64_t bytes_written; /* likewise */
    uint64_t dropped;
    struct {
        uint64_t count, bytes, time_ns, errors;
    } calls[ENSIO_CALLS];
};
#define ENSIO_SUMS (sizeof(struct ensio_sums) / sizeof(uint64_t))

/* Largest values, likewise. */
struct ensio_most {
    uint64_t wall_ns, span_ns;     /* from the beginning of a task's recording; from the first call to the last */
    uint64_t call_ns[ENSIO_CALLS]; /* the longest call of each function */
};
#define ENSIO_MOST_VALUES (sizeof(struct ensio_most) / sizeof(uint64_t))

/* One call. */
struct ensio_slowest {
    uint64_t duration_ns; /* 0: there was no call */
    uint64_t start_unix_ns;
    uint32_t rank;
    uint16_t call;
    char file[ENSIO_PATH_ROOM];
};

struct ensio_totals {
    struct ensio_sums sum;
    struct ensio_most most;
    struct ensio_slowest slowest;
    uint64_t begin_unix_ns;               /* of the recording */
    uint64_t first_unix_ns, last_unix_ns; /* entry into the first call, last return from a call; 0: no call */
};

/* Adds up the calls that this process has completed: 0, or -1 where its spool cannot be read. The caller holds
 * the lock, and has drained the windows (threads/windows.h). */
int ensio_totals(struct ensio_totals *totals);

#endif
