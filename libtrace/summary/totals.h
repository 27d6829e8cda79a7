/* totals.h: sums and extremes of the calls of a process or a job. */
#ifndef ENSIO_SUMMARY_TOTALS_H
#define ENSIO_SUMMARY_TOTALS_H

#include <calls/calls.h>
#include <core/recorder.h>
#include <core/settings.h>

/* Sums. All members are uint64_t, so that MPI can reduce them as an array. */
struct ensio_sums {
    uint64_t tasks;
    uint64_t threads;       /* threads that made calls, at least one for each task */
    uint64_t io_tasks;      /* tasks with I/O calls */
    uint64_t io_ns;         /* mean of a task's threads, without nested calls and without waiting for other tasks */
    uint64_t bytes_read;    /* by calls that are not nested */
    uint64_t bytes_written; /* likewise */
    uint64_t dropped;
    uint64_t flight_ns; /* of requests that were not posted inside other calls */
    uint64_t hidden_ns; /* the part of it without calls that post requests or wait for them */
    struct {
        uint64_t count, bytes, time_ns, errors;
    } calls[ENSIO_CALL_INDICES]; /* by index (calls.h); ranks with another version of the recorder have as many */
};
#define ENSIO_SUMS (sizeof(struct ensio_sums) / sizeof(uint64_t))

/* Maxima, also reduced as an array. */
struct ensio_most {
    uint64_t wall_ns;                     /* since the beginning of a task's recording */
    uint64_t read_ns, write_ns;           /* of all threads of a task in reads, and in writes and syncs, once */
    uint64_t io_ns;                       /* of a task, as in the sums */
    uint64_t call_ns[ENSIO_CALL_INDICES]; /* the longest call of each function */
};
#define ENSIO_MOST_VALUES (sizeof(struct ensio_most) / sizeof(uint64_t))

/* One call. */
struct ensio_slowest {
    uint64_t duration_ns; /* 0: there is no call */
    uint64_t start_unix_ns;
    uint32_t rank;
    uint16_t call;
    char file[ENSIO_PATH_ROOM];
};

struct ensio_totals {
    struct ensio_sums sum;
    struct ensio_most most;
    struct ensio_slowest slowest;
    uint64_t begin_unix_ns; /* beginning of the recording */
};

/* Computes the totals of the calls that this process has completed: 0, or -1 without a spool. The caller holds the lock
 * and has drained the windows (threads/windows.h). */
int ensio_totals(struct ensio_totals *totals);

#endif
