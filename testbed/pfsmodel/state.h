/* state.h: the state of the model: one block with a head and arrays, whose positions the head holds as distances from
 * its beginning, so that processes can share it at different addresses. Only the model's files include this. */
#ifndef ENSIO_PFSMODEL_STATE_H
#define ENSIO_PFSMODEL_STATE_H

#include "pfsmodel.h"
#include "settings.h"

#define NOBODY (-1)
#define PFS_STREAMS 4 /* files that a task's read-ahead follows at a time */
#define PFS_QUANTILES 4096

/* The effect of a completed part. */
enum part_kind {
    PART_CALL,     /* belongs to the task's call */
    PART_DRAIN,    /* belongs to a background write of the cache */
    PART_DELAY,    /* the earliest completion of the call */
    PART_METADATA, /* a thread of the metadata server has served the request */
    PART_LEFT,     /* the same, but the caller of the request has left */
    PART_GATHER,   /* the node inspects the calls that have come; the owner is a node */
    PART_NOBODY    /* cancelled, but still in its queue */
};

/* A piece of work in a queue. */
struct part {
    double finish; /* the queue's virtual time of completion; for timers the time itself */
    float weight;
    uint32_t kind : 3;
    uint32_t owner : 29;
};

#define CHUNK_PARTS 15

/* Consecutive parts of a run: parts in the order of completion. 0 is not a chunk. */
struct chunk {
    int32_t next;   /* of the same run, or of the free chunks; 0: the last */
    int32_t older;  /* of the first chunk of a run: that of the queue's next run */
    int32_t length; /* of the first chunk of a run: parts of the run */
    uint16_t begin;
    uint16_t end;
    struct part parts[CHUNK_PARTS];
};

/* A resource that its work shares in proportion to weights. */
struct queue {
    double virtual_ns; /* work per unit of weight since the queue was last empty */
    double weight;     /* sum over its parts */
    double rate;       /* ns of work done in one ns */
    int64_t updated_ns;
    int32_t runs;    /* the first chunk of the run that began last; 0: the queue is empty */
    int32_t changed; /* its time in the heap is outdated: the next such queue plus two; 0: it is valid */
};

struct queue_heap_entry {
    int64_t time_ns;
    int32_t queue;
};

enum task_state {
    TASK_IDLE,
    TASK_WAITING, /* for its node's turn */
    TASK_RUNNING,
    TASK_FLUSHING, /* its written bytes must leave the cache first */
    TASK_QUEUED,   /* at the metadata server */
    TASK_DONE
};

/* State of a task's use of one file. */
struct stream {
    int32_t file;  /* -1: unused */
    uint32_t used; /* index of the task's call that used it last */
    int64_t begin;
    int64_t end;
    int64_t stride;
    int64_t ahead; /* the data from `end` up to here are in memory */
    int64_t window;
    int32_t matches; /* consecutive reads with the same stride */
    int32_t opened;  /* number of opens by this task */
    int64_t written; /* end of its last write */
};

/* Bytes in the cache that are not yet being written back. */
struct extent {
    int32_t file;
    int64_t offset;
    int64_t bytes;
};

struct task {
    struct pfs_call call;
    int64_t began_ns;
    int64_t done_ns;
    int64_t earliest_ns;
    int64_t rest_offset; /* what the cache did not absorb */
    int64_t rest_bytes;
    int64_t dirty_bytes;
    int64_t draining_bytes;
    struct extent pending;
    double first_extra_ns; /* work for partial stripes at the beginning and the end of the call's bytes */
    double last_extra_ns;
    float stretch; /* factor of the durations of its calls */
    int32_t node;
    uint32_t number; /* index of the call */
    uint32_t drains;
    int32_t parts;
    int32_t drain_parts;
    int32_t state;
    int32_t served; /* counts among its node's active calls */
    int32_t next;   /* next in the queue that it waits in, or in the list of complete calls */
    int32_t previous;
    int32_t reads; /* its read is in the list of the node's reads */
    int32_t next_read;
    int32_t joins; /* the task plus one whose read it has joined; 0: none */
    int32_t first_joined;
    int32_t next_joined;
    struct stream streams[PFS_STREAMS];
};

struct node {
    double written_pages_bytes; /* pages that hold written data; reads replace them */
    int32_t first_waiting;
    int32_t last_waiting;
    int32_t waiting;
    int32_t active;
    int32_t burst_calls;
    int32_t rest_comes; /* those that are served after the first ones */
    int32_t gathering;
    uint32_t bursts;
    int32_t first_read; /* reads that other tasks can join */
};

struct file {
    uint64_t key;
    int32_t first_target;
    int32_t node;   /* the first node */
    int32_t shared; /* used by more than one node */
    int32_t opened; /* number of tasks that have it open */
};

struct pfs {
    struct pfs_settings settings;
    struct pfs_limits limits;
    uint64_t seed;
    int64_t now_ns;

    /* distances of the arrays from here */
    size_t tasks_at;
    size_t nodes_at;
    size_t files_at;
    size_t places_at;
    size_t queues_at;
    size_t queue_heap_at;
    size_t queue_heap_places_at;
    size_t chunks_at;
    size_t target_bytes_at;

    int32_t straggler_node;
    int32_t slow_target;
    int32_t targets;
    int32_t stripes; /* of a file */
    int64_t stripe_bytes;
    int32_t queue_count;
    int32_t queue_heap_count;
    int32_t first_changed; /* list of queues whose times in the heap are outdated, plus one; 0: empty */
    int32_t chunk_end;     /* of the chunks that have been used */
    int32_t chunks_left;   /* to use */
    int32_t free_chunk;
    int32_t file_count;

    int32_t first_done;
    int32_t last_done;

    int32_t metadata_busy;
    int32_t metadata_threads;
    int32_t first_metadata;
    int32_t last_metadata;

    double quantile[PFS_QUANTILES + 1]; /* of the normal distribution */
};

#define PFS_ARRAY(type, name, at) \
    static inline type *name(const struct pfs *model, int64_t i) \
    { \
        return (type *)(void *)((char *)(uintptr_t)model + model->at) + i; \
    }
PFS_ARRAY(struct task, task_at, tasks_at)
PFS_ARRAY(struct node, node_at, nodes_at)
PFS_ARRAY(struct file, file_at, files_at)
PFS_ARRAY(int32_t, place_at, places_at)
PFS_ARRAY(struct queue, queue_at, queues_at)
PFS_ARRAY(struct queue_heap_entry, queue_heap_at, queue_heap_at)
PFS_ARRAY(int32_t, queue_heap_place_at, queue_heap_places_at)
PFS_ARRAY(struct chunk, chunk_at, chunks_at)
PFS_ARRAY(double, target_bytes_at, target_bytes_at)

/* Times and lengths are whole numbers. Unreasonable values (36 years, an exbibyte) are clamped, because sums of them
 * would overflow. */
#define PFS_MOST (INT64_C(1) << 60)

static inline int64_t whole(double number)
{
    if (!(number > 0))
        return 0;
    return number < (double)PFS_MOST ? (int64_t)number : PFS_MOST;
}

/* The queues: each node's link, each node's memory, each target; the timers. */
static inline int32_t link_queue(int32_t node)
{
    return node;
}

static inline int32_t memory_queue(const struct pfs *model, int32_t node)
{
    return model->limits.nodes + node;
}

static inline int32_t target_queue(const struct pfs *model, int32_t target)
{
    return 2 * model->limits.nodes + target;
}

static inline int32_t timer_queue(const struct pfs *model)
{
    return model->queue_count - 1;
}

#endif
