/* simulation.h: the state of a simulation in virtual time. */
#ifndef ENSIO_SIMULATE_SIMULATION_H
#define ENSIO_SIMULATE_SIMULATION_H

#include "output.h"
#include "plan.h"
#include "programs.h"
#include "recorded.h"

#include <pfsmodel/pfsmodel.h>
#include <stdint.h>

#define FILE_UNKNOWN (-2)
#define MOST_DEPTH 3 /* HDF5 calls MPI-IO, which calls the system */

/* Costs of calls that do not reach the file system. */
struct costs {
    int64_t call_ns;            /* a call on the client alone */
    int64_t message_ns;         /* latency of a message */
    double overhead_ns;         /* that a task spends on a message, besides */
    double message_bytes_per_s; /* of a node */
    double exchange_scale;      /* of the exchanges of two-phase collectives: 1 is healthy */
};

/* A recorded call in progress. */
struct frame {
    int64_t start_ns;
    int64_t inner_ns; /* spent in recorded calls inside */
    int64_t offset;
    int64_t bytes;
    uint8_t call; /* enum recorded_call */
};

/* A stream's buffer. A task has one: that of the stream it used last. */
struct stream {
    int64_t start; /* offset of its first byte */
    int64_t bytes;
    int32_t file; /* -1: none */
    uint8_t dirty;
};

struct task {
    int64_t next_operation;
    int64_t end_operation;
    int64_t row;          /* of the current operation in the plan */
    int64_t boxes;        /* of the current operation */
    int64_t box;          /* of the next piece */
    int64_t bytes;        /* of all boxes of the current operation */
    int64_t at;           /* index of the next piece; the next position in a file domain */
    int64_t window_begin; /* of an aggregator's current chunk */
    int64_t window_end;
    struct plan_operation operation; /* current operation: its first box */
    const struct step *step;
    struct frame frames[MOST_DEPTH];
    struct stream stream;
    int32_t plan_step;
    uint8_t depth;
    uint8_t carried;    /* directions whose bytes enclosing calls count */
    uint8_t stage;      /* of an aggregator's current chunk */
    uint8_t in_model;   /* in a call in the model */
    uint8_t at_barrier; /* at the end of its step of the plan */
};

/* State of a file. */
struct file {
    int32_t model; /* its number in the model, or FILE_UNKNOWN: not requested yet */
    uint8_t made;
    int64_t data_start; /* of an HDF5 file's dataset */
    int64_t data_bytes;
    int64_t metadata_bytes; /* written so far */
    int64_t deferred_bytes; /* metadata that are written when the file is closed */
};

/* The byte ranges of a collective call, as the last arriving task found them. */
struct run {
    int64_t begin;
    int64_t end;
};

struct domains {
    int64_t begin;
    int64_t end;
    int64_t domain_bytes; /* of an aggregator */
    int64_t chunk_bytes;
    int32_t aggregators;
    /* Separate runs are unknown: reads cover holes, and writes read them before. */
    uint8_t has_holes;
    struct run *runs;
    int64_t run_count;
    int64_t *begins; /* of the boxes of all tasks, sorted */
    int64_t *ends;   /* the same */
    int64_t box_count;
    int64_t room;      /* of these lists */
    int64_t receivers; /* most tasks that have bytes in the domain of an aggregator */
};

/* All tasks that arrive at a barrier. */
struct barrier_point {
    int32_t came;
    int32_t first_task;
    const struct step *step;
    int32_t file;
    int64_t bytes; /* maximum over the tasks */
};

struct simulation {
    struct plan plan;
    struct costs costs;
    struct pfs *model;
    struct output *output;
    const struct program **programs; /* of each of the plan's calls */
    struct task *tasks;
    struct file *files;
    int64_t everybody_ns; /* when all tasks continue after a barrier; INT64_MAX: they do not */
    struct barrier_point barrier;
    struct domains domains;
    struct exchange *exchange;
    int64_t *phase_start_ns; /* of each of the plan's steps */
    int64_t end_ns;
    int64_t model_calls;
    int64_t *rows_begun; /* of the plan; others read it */
    int32_t tasks_over;
    int32_t barrier_rounds; /* ceil(log2(tasks)) */
    int32_t steps_reached;
};

/* Executes the plan. */
void simulate(struct simulation *simulation);

/* Continues a task with its steps, now. */
void run_task(struct simulation *simulation, int32_t number, int64_t now_ns);

#endif
