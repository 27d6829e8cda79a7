/* programs.h: what a call of a plan does, as a few steps that the simulation goes through for each task. */
#ifndef ENSIO_SIMULATE_PROGRAMS_H
#define ENSIO_SIMULATE_PROGRAMS_H

#include <stdint.h>

enum step_kind {
    STEP_END,        /* go on with the task's next call */
    STEP_ENTER,      /* a recorded call begins that has others inside it, or costs only time */
    STEP_LEAVE,      /* and returns */
    STEP_DELAY,      /* what a call costs that does not reach the file system */
    STEP_COMPUTE,    /* the plan says for how long */
    STEP_BARRIER,    /* all tasks wait for each other */
    STEP_CALL,       /* a call to the file system */
    STEP_PIECES,     /* one for each piece of the operation */
    STEP_AGGREGATE,  /* an aggregator moves its file domain, chunk by chunk */
    STEP_EXCHANGE,   /* messages between pairs of tasks */
    STEP_FLUSH,      /* what a stream holds back is written; of a write, only where it does not go on there */
    STEP_STREAM_DATA /* a stream's data move, as far as they are not in its buffer */
};

enum step_who { EVERYBODY, ROOT, OTHERS };

/* What a barrier costs and does. */
enum barrier { BARRIER_PLAIN, BARRIER_ALLREDUCE, BARRIER_ALLGATHER, BARRIER_DOMAINS };

/* What a call to the file system is about. */
enum step_place {
    PLACE_FILE,     /* the file as a whole */
    PLACE_DATA,     /* the operation's bytes */
    PLACE_METADATA, /* the next small place of an HDF5 file's own */
    PLACE_FIRST     /* the first bytes of an HDF5 file */
};

#define SMALL_CALL_STEPS 4 /* of a small call of task 0 for all, the MPI-IO call around it included */

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
    uint8_t collective; /* all tasks make it together */
};

/* The program of a call; NULL: there is none of that name. */
const struct program *program_named(const char *call);

/* That of the barrier at the end of each step of a plan. */
extern const struct program barrier_program;

#endif
