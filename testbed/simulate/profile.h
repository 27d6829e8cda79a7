/* profile.h: what all calls add up to, for mode profile: cells as ensembles.summaries.cells has them, and a row for
 * each task and function as ensembles.summaries.ranktable. Memory: that of the tasks' rows and ordinals, whatever the
 * number of calls. */
#ifndef ENSIO_SIMULATE_PROFILE_H
#define ENSIO_SIMULATE_PROFILE_H

#include "output.h"

#include <stdint.h>

struct profile;

struct profile *profile_begin(int32_t tasks);

void profile_add(struct profile *profile, const struct output_event *event, int64_t inner_ns);

/* Writes cells, bins, longest and ranks into the output's folder. */
void profile_write(const struct profile *profile, const struct output *output);

#endif
