/* pnetcdf_linked_fortran.c: the query functions of PnetCDF's Fortran interface, as C functions. */
#include "netcdf.h"

#include <string.h>

extern int nfmpi_inq_path_(const int *file, int *length, char *path, size_t room);
extern int nfmpi_inq_varndims_(const int *file, const int *variable, int *dimensions);
extern int nfmpi_inq_vardimid_(const int *file, const int *variable, int *ids);
extern int nfmpi_inq_dimlen_(const int *file, const int *id, int64_t *length);
extern int nfmpi_inq_vartype_(const int *file, const int *variable, int *type);

/* Fortran pads the path with blanks. */
static int inq_path(int file, size_t *length, char *path)
{
    char padded[4096];
    int all = 0;
    const int result = nfmpi_inq_path_(&file, &all, padded, sizeof padded);
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
    return nfmpi_inq_varndims_(&file, &variable, dimensions);
}

static int inq_vardimid(int file, int variable, int *ids)
{
    return nfmpi_inq_vardimid_(&file, &variable, ids);
}

static int inq_dimlen(int file, int id, uint64_t *length)
{
    int64_t own = 0;
    const int result = nfmpi_inq_dimlen_(&file, &id, &own);
    *length = own > 0 ? (uint64_t)own : 0;
    return result;
}

static int inq_vartype(int file, int variable, int *type)
{
    return nfmpi_inq_vartype_(&file, &variable, type);
}

#define MEMBER(name, parameters) .name = name,
extern const struct ensio_netcdf ensio_pnetcdf_linked_fortran;
const struct ensio_netcdf ensio_pnetcdf_linked_fortran = {.number = ENSIO_LINKED_PNETCDF, ENSIO_NETCDF_QUERIES(MEMBER)};
