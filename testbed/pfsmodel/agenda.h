/* agenda.h: which queue is done with something next: a heap of the queues that have work. */
#ifndef ENSIO_PFSMODEL_AGENDA_H
#define ENSIO_PFSMODEL_AGENDA_H

#include "state.h"

void agenda_set(struct pfs *model, int32_t queue, int64_t time_ns);
void agenda_remove(struct pfs *model, int32_t queue);

#endif
