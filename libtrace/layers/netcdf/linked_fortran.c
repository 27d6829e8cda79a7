/* linked_fortran.c: the query functions of the Fortran interface of NetCDF or PnetCDF (which_library.h), as C
 * functions. */
#include "which_library.h"

#include <string.h>

extern int FORTRAN_NAME(inq_path)(const int *file, int *length, char *path, size_t room);
extern int FORTRAN_NAME(inq_varndims)(const int *file, const int *variable, int *dimensions);
extern int FORTRAN_NAME(inq_vardimid)(const int *file, const int *variable, int *ids);
extern int FORTRAN_NAME(inq_dimlen)(const int *file, const int *id, ensio_fortran_index *length);
extern int FORTRAN_NAME(inq_vartype)(const int *file, const int *variable, int *type);

/* Fortran pads the path with blanks. */
static int inq_path(int file, size_t *length, char *path)
{
    char padded[4096];
    int all = 0;
    const int result = FORTRAN_NAME(inq_path)(&file, &all, padded, sizeof padded);
    size_t end = sizeof padded;
    while (end > 0 && (padded[end - 1] == ' ' || padded[end - 1] == '\0'))
        end--;
    if (result == 0 && length)
        *length = end;
    if (result == 0 && path)
        memcpy(path, padded, end);
    return result;
}

static int inq_varndims(int file, int variable, int *dimensions)
{
    return FORTRAN_NAME(inq_varndims)(&file, &variable, dimensions);
}

static int inq_vardimid(int file, int variable, int *ids)
{
    return FORTRAN_NAME(inq_vardimid)(&file, &variable, ids);
}

static int inq_dimlen(int file, int id, uint64_t *length)
{
    ensio_fortran_index own = 0;
    const int result = FORTRAN_NAME(inq_dimlen)(&file, &id, &own);
    *length = own > 0 ? (uint64_t)own : 0;
    return result;
}

static int inq_vartype(int file, int variable, int *type)
{
    return FORTRAN_NAME(inq_vartype)(&file, &variable, type);
}

#define MEMBER(name, parameters) .name = name,
const struct ensio_netcdf LINKED_FORTRAN = {IDENTITY, ENSIO_NETCDF_QUERIES(MEMBER)};

extern const void *const FUNCTION_OF_FORTRAN; /* peer_recorder.c */
const void *const FUNCTION_OF_FORTRAN = (const void *)FORTRAN_NAME(inq_path);
