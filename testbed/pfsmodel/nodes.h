/* nodes.h: which calls of a node are served at a time: all, or some go first. */
#ifndef ENSIO_PFSMODEL_NODES_H
#define ENSIO_PFSMODEL_NODES_H

#include "state.h"

/* The task's call wants to be served: call_serve() comes at once or later. */
void nodes_ask(struct pfs *model, int32_t task);

/* The task's call has been served, or is given up. */
void nodes_leave(struct pfs *model, int32_t task);

/* The node has waited long enough for calls that come together. */
void nodes_gathered(struct pfs *model, int32_t node);

#endif
