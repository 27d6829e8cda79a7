/* pcontrol.h: MPI_Pcontrol as IPM defines it (ENSIO_PCONTROL=ipm): level 1 opens the region that the second argument
 * names, -1 closes it, and 0 marks an event of that name. */
#ifndef ENSIO_LAYERS_MPI_PCONTROL_H
#define ENSIO_LAYERS_MPI_PCONTROL_H

#include <stdint.h>

/* Marks a region. `name` may be anything, because other tools define other arguments: what is not a readable, printable
 * text is ignored. It ends at a NUL, or after `most` bytes. */
void ensio_pcontrol(int level, const char *name, uint64_t most);

/* In the Fortran binding: MPICH's calls the C function. */
extern _Thread_local int ensio_in_fortran_pcontrol;

#endif
