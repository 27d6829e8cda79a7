/* which_library.h: the library that a file is compiled for: NetCDF or, with ENSIO_OF_PNETCDF, PnetCDF. */
#ifndef ENSIO_LAYERS_NETCDF_WHICH_LIBRARY_H
#define ENSIO_LAYERS_NETCDF_WHICH_LIBRARY_H

#include "netcdf.h"

#if ENSIO_OF_PNETCDF
#define CALLS <calls/pnetcdf.def>
#define FORTRAN_CALLS <calls/pnetcdf_fortran.def>
#define C_NAME(name) ncmpi_##name
#define FORTRAN_NAME(name) nfmpi_##name##_
#define C_PREFIX "ncmpi_"
#define PROBE "ncmpi_put_vara"
#define NAMED "pnetcdf"
#define KIND ENSIO_PNETCDF_LIBRARY
#define LINKED ensio_pnetcdf_linked
#define LINKED_FORTRAN ensio_pnetcdf_linked_fortran
#define FUNCTION_OF ensio_function_of_pnetcdf
#define FUNCTION_OF_FORTRAN ensio_function_of_pnetcdf_fortran
#define IDENTITY .number = ENSIO_LINKED_PNETCDF, .layer = ENSIO_PNETCDF
typedef int64_t ensio_fortran_index;
#else
#define CALLS <calls/netcdf.def>
#define FORTRAN_CALLS <calls/netcdf_fortran.def>
#define C_NAME(name) nc_##name
#define FORTRAN_NAME(name) nf_##name##_
#define C_PREFIX "nc_"
#define PROBE "nc_put_vara"
#define NAMED "netcdf"
#define KIND ENSIO_NETCDF_LIBRARY
#define LINKED ensio_netcdf_linked
#define LINKED_FORTRAN ensio_netcdf_linked_fortran
#define FUNCTION_OF ensio_function_of_netcdf
#define FUNCTION_OF_FORTRAN ensio_function_of_netcdf_fortran
#define IDENTITY .number = ENSIO_LINKED_NETCDF, .layer = ENSIO_NETCDF, .id_shift = 16
typedef int32_t ensio_fortran_index;
#endif

/* The library that a relinked program is linked with, by its two interfaces. */
extern const struct ensio_netcdf LINKED, LINKED_FORTRAN;

#endif
