/* programs.h: calls of a plan as short sequences of steps, which the simulation executes for each task. */
#ifndef ENSIO_SIMULATE_PROGRAMS_H
#define ENSIO_SIMULATE_PROGRAMS_H

#include <stdint.h>

enum step_kind {
    STEP_END,        /* go on with the task's next call */
    STEP_ENTER,      /* a recorded call begins that encloses others, or takes only time */
    STEP_LEAVE,      /* and returns */
    STEP_DELAY,      /* the time of a call that does not reach the file system */
    STEP_COMPUTE,    /* for the time given by the plan */
    STEP_BARRIER,    /* all tasks wait for each other */
    STEP_CALL,       /* a call to the file system */
    STEP_PIECES,     /* one for each piece of the operation */
    STEP_AGGREGATE,  /* an aggregator moves its file domain, chunk by chunk */
    STEP_EXCHANGE,   /* messages between pairs of tasks */
    STEP_FLUSH,      /* writes back the buffer of a stream; for a write, only if it is not contiguous */
    STEP_STREAM_DATA /* moves a stream's data, as far as they are not in its buffer */
};

enum step_who { EVERYBODY, ROOT, OTHERS };

/* Cost and effect of a barrier. */
enum barrier { BARRIER_PLAIN, BARRIER_ALLREDUCE, BARRIER_ALLGATHER, BARRIER_DOMAINS };

/* The range of a file system call. */
enum step_place {
    PLACE_FILE,     /* the file as a whole */
    PLACE_DATA,     /* the operation's bytes */
    PLACE_METADATA, /* the next small range of an HDF5 file's metadata */
    PLACE_FIRST     /* the first bytes of an HDF5 file */
};

#define SMALL_CALL_STEPS 4 /* of a small call by task 0 for all, including its MPI-IO call */

struct step {
    uint8_t kind;
    uint8_t who;
    uint8_t recorded;  /* enum recorded_call */
    uint8_t operation; /* enum pfs_operation; of a barrier: enum barrier */
    uint8_t place;
};

struct program {
    const char *call; /* layer.call, as a plan names it */
    const struct step *steps;
    uint8_t collective; /* a collective call */
};

/* The program of a call; NULL: there is no such call. */
const struct program *program_named(const char *call);

/* The program of the barrier at the end of each step of a plan. */
extern const struct program barrier_program;

#endif
