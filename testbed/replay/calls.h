/* calls.h: the calls that a plan can name. */
#ifndef ENSIO_REPLAY_CALLS_H
#define ENSIO_REPLAY_CALLS_H

#include <stdint.h>

/* One call to make, and what came of it. */
struct call_target {
    const char *path;
    int *descriptor; /* of the file; open sets it, close makes it -1 */
    int64_t offset;
    int64_t bytes;
    unsigned char *data;
    int64_t moved; /* bytes, added up over all calls that it took */
    int64_t made;  /* calls that it took: more than one where the system moved less than it was asked to */
};

/* What a call does with its data. */
enum call_direction { CALL_NO_DATA, CALL_READS, CALL_WRITES };

struct call {
    const char *name;
    enum call_direction direction;
    int (*make)(struct call_target *); /* 0, or -1 with errno */
};

/* Returns the call of that name, NULL if there is none. */
const struct call *call_named(const char *name);

#endif
