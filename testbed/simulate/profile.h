/* profile.h: the summary of all calls, for mode profile: cells as in ensembles.summaries.cells, and a row for each task
 * and function as in ensembles.summaries.ranktable. Memory depends on the number of tasks, files and functions, not on
 * that of calls. */
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
