/* pcontrol_fortran.c: the same for Fortran, which passes the length of the name behind it. The name may end earlier,
 * with a NUL as IPM's users write it. */
#include "pcontrol.h"

#include <layers/wrapping.h>

#define LONGEST_NAME 65536

ENSIO_WRAPPER(void, mpi_pcontrol_, (const int *level, const char *name, uint64_t length))
{
    __auto_type real = ENSIO_REAL(mpi_pcontrol_);
    ensio_pcontrol(*level, name, length <= LONGEST_NAME ? length : UINT64_MAX);
    ensio_in_fortran_pcontrol = 1;
    real(level, name, length);
    ensio_in_fortran_pcontrol = 0;
}
