/* nodes.h: which calls of a node are served at a time: all of them, or some first. */
#ifndef ENSIO_PFSMODEL_NODES_H
#define ENSIO_PFSMODEL_NODES_H

#include "state.h"

/* The task's call requests service: call_serve() is called immediately or later. */
void nodes_ask(struct pfs *model, int32_t task);

/* The task's call has been served or cancelled. */
void nodes_leave(struct pfs *model, int32_t task);

/* The node has waited long enough for calls that come together. */
void nodes_gathered(struct pfs *model, int32_t node);

#endif
