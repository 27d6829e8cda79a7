/* linked.c: the query functions of the NetCDF or PnetCDF (which_library.h) that a relinked program is linked with. */
#include "which_library.h"

#define QUERY(name, parameters) extern int C_NAME(name) parameters;
#define MEMBER(name, parameters) .name = C_NAME(name),
ENSIO_NETCDF_QUERIES(QUERY)

#if ENSIO_OF_PNETCDF
#define TYPE_QUERY NULL
#else
extern int nc_inq_type(int file, int type, char *name, size_t *bytes);
#define TYPE_QUERY nc_inq_type
#endif

const struct ensio_netcdf LINKED = {IDENTITY, ENSIO_NETCDF_QUERIES(MEMBER).inq_type = TYPE_QUERY};

extern const void *const FUNCTION_OF; /* peer_recorder.c */
const void *const FUNCTION_OF = (const void *)C_NAME(inq_path);
