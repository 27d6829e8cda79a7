/* pnetcdf_linked.c: the query functions of the PnetCDF library that a relinked program is linked with. */
#include "netcdf.h"

#define QUERY(name, parameters) extern int ncmpi_##name parameters;
ENSIO_NETCDF_QUERIES(QUERY)

#define MEMBER(name, parameters) .name = ncmpi_##name,
extern const struct ensio_netcdf ensio_pnetcdf_linked;
const struct ensio_netcdf ensio_pnetcdf_linked = {ENSIO_NETCDF_QUERIES(MEMBER).number = ENSIO_LINKED_PNETCDF};
