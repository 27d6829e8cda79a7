/* netcdf_linked.c: the query functions of the NetCDF library that a relinked program is linked with. */
#include "netcdf.h"

#define QUERY(name, parameters) extern int nc_##name parameters;
ENSIO_NETCDF_QUERIES(QUERY)
extern int nc_inq_type(int file, int type, char *name, size_t *bytes);

#define MEMBER(name, parameters) .name = nc_##name,
extern const struct ensio_netcdf ensio_netcdf_linked;
const struct ensio_netcdf ensio_netcdf_linked = {
    .number = ENSIO_LINKED_NETCDF, .id_shift = 16, ENSIO_NETCDF_QUERIES(MEMBER).inq_type = nc_inq_type};
