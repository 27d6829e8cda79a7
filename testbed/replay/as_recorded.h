/* as_recorded.h: the calls of a plan that was made from a recorded run, one after the other. */
#ifndef ENSIO_REPLAY_AS_RECORDED_H
#define ENSIO_REPLAY_AS_RECORDED_H

#include "calls.h"
#include "summary.h"

/* Makes the calls of this task in their order, each once, with the waiting between them. Barriers are calls of the
 * plan. The content of a file depends on its path and the offset; nothing is checked. How
 * long which calls waited for a processor is written to files beside the plan, `path`. */
void make_as_recorded(const char *path, const struct plan *plan, const struct layer *const *layers,
                      const struct call *const *calls, struct open_file *files, struct step_result *result);

#endif
