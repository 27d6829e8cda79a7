/* output.h: what a simulation writes: a folder that ensembles/workloads/simulation/output.py makes a run of.
 *
 *   text      "key value" lines, and the names of the calls
 *   events    mode trace: struct output_event, in the order in which calls complete
 *   cells, bins, longest, ranks    mode profile: what all calls add up to (profile.h)
 *   striping  struct output_striping of each file
 *   phases    int64_t: when each step of the plan began, then the end
 *   progress  int64_t: how many rows of the plan were begun, from the start of the simulation on
 */
#ifndef ENSIO_SIMULATE_OUTPUT_H
#define ENSIO_SIMULATE_OUTPUT_H

#include <stdint.h>
#include <stdio.h>

/* One completed call: the columns of ensembles.model.events that vary. */
struct output_event {
    int64_t offset;
    uint64_t requested;
    int64_t moved;
    int64_t start; /* ns since the simulation began */
    int64_t duration;
    uint32_t rank;
    uint32_t file; /* number in the plan + 1; 0: none */
    uint16_t call; /* enum recorded_call */
    uint8_t depth;
    uint8_t carried;
    uint32_t padding;
};

/* The layout of a file; count 0: no call reached it. */
struct output_striping {
    int64_t stripe_bytes;
    int32_t count;
    int32_t first_target;
    int32_t targets; /* of the model */
    int32_t padding;
};

struct output {
    const char *folder;
    FILE *events;
    struct profile *profile; /* NULL in mode trace */
    uint64_t event_count;
    uint64_t bytes_moved;
};

/* Begins to write into an existing folder. */
void output_begin(struct output *output, const char *folder, struct profile *profile);

/* Writes a completed call; `inner_ns` of it were spent in recorded calls inside. */
void output_event(struct output *output, const struct output_event *event, int64_t inner_ns);

/* Writes `count` entries into a file of the folder. */
void output_array(const struct output *output, const char *name, const void *entries, size_t bytes, size_t count);

/* Maps a file of the folder that holds one number, which others read while it changes. */
int64_t *output_number(const struct output *output, const char *name);

/* Opens a file of the folder. Ends the program if it cannot. */
FILE *output_open(const struct output *output, const char *name);

/* Closes it; ends the program if not everything could be written. */
void output_close(const struct output *output, const char *name, FILE *file);

#endif
