# Finds the options by which MPICC compiles and links with libraries over the same MPI: parallel HDF5, parallel NetCDF, PnetCDF.
#
# The compiler drivers of these libraries are not used: they select an MPI, and static libraries, whose calls a preloaded
# recorder does not see. In distributions, pkg-config knows which library belongs to which MPI. If modules or a compiler
# driver provide the only one, no option or -l suffices.

set(mpi_library_checks ${CMAKE_CURRENT_LIST_DIR})

# Sets `result` to the options that pkg-config gives for the packages, each followed by `more`.
function(package_options result more)
  set(found)
  find_package(PkgConfig QUIET)
  foreach(package IN LISTS ARGN)
    if(PKG_CONFIG_FOUND)
      execute_process(COMMAND ${PKG_CONFIG_EXECUTABLE} --cflags --libs ${package}
        OUTPUT_VARIABLE options ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status)
      if(status EQUAL 0)
        string(REPLACE "\n" " " options "${options}")
        list(APPEND found "${more} ${options}")
      endif()
    endif()
  endforeach()
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

# Whether the program needs one MPI. A library over another MPI links, and fails when it runs.
function(has_one_mpi result program)
  execute_process(COMMAND ldd ${program} OUTPUT_VARIABLE libraries ERROR_QUIET)
  string(REGEX MATCHALL "lib(mpi|mpich)\\.so[.0-9]*" mpi "${libraries}")
  list(REMOVE_DUPLICATES mpi)
  list(LENGTH mpi count)
  if(count LESS_EQUAL 1)
    set(${result} YES PARENT_SCOPE)
  else()
    set(${result} NO PARENT_SCOPE)
  endif()
endfunction()

# Sets `result` to the first options in ARGN, or to those in the cache variable ENSIO_<NAME>, by which the program
# <check>.c compiles and links; to nothing if there are none.
function(find_mpi_library result name check text)
  set(ENSIO_${name} "" CACHE STRING "options for a ${text} of the MPI of ensio-replay (empty: search for one; NO: none)")
  set(${result} "" PARENT_SCOPE)
  if(ENSIO_${name} STREQUAL "NO")
    return()
  endif()
  set(candidates ${ARGN})
  if(ENSIO_${name})
    set(candidates "${ENSIO_${name}}")
  endif()
  set(program ${CMAKE_CURRENT_BINARY_DIR}/${check}_check)
  foreach(candidate IN LISTS candidates)
    separate_arguments(options UNIX_COMMAND "${candidate}")
    execute_process(
      COMMAND ${MPICC} ${mpi_library_checks}/${check}.c -o ${program} ${options}
      RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
    if(status EQUAL 0)
      has_one_mpi(same_mpi ${program})
      if(same_mpi)
        set(${result} "${options}" PARENT_SCOPE)
        return()
      endif()
    endif()
  endforeach()
  if(ENSIO_${name})
    message(FATAL_ERROR "ENSIO_${name}: ${MPICC} compiles and links no program for ${text} with ${ENSIO_${name}}")
  endif()
endfunction()

# Sets `result` to the options for all of these libraries that there are, with a definition for each.
function(find_mpi_libraries result)
  execute_process(COMMAND ${MPICC} -E -dM -include mpi.h -x c /dev/null OUTPUT_VARIABLE macros ERROR_QUIET)
  if(macros MATCHES "define OPEN_MPI ")
    set(mpi openmpi)
  else()
    set(mpi mpich)
  endif()
  set(all)

  package_options(packages "" hdf5-${mpi} hdf5)
  find_mpi_library(options PARALLEL_HDF5 hdf5 "parallel HDF5" ${packages} "-lhdf5")
  if(options)
    list(APPEND all -DENSIO_PARALLEL_HDF5 ${options})
  else()
    message(STATUS "ensio-replay is built without its layer hdf5: ${MPICC} finds no parallel HDF5 (Debian: libhdf5-${mpi}-dev)")
  endif()

  # Debian keeps the headers of its parallel NetCDF where its pkg-config file does not say.
  file(GLOB headers /usr/lib/*/netcdf/mpi/include)
  list(TRANSFORM headers PREPEND "-I")
  list(JOIN headers " " headers)
  package_options(packages "${headers}" netcdf-mpi)
  package_options(others "" netcdf)
  find_mpi_library(options PARALLEL_NETCDF netcdf "parallel NetCDF" ${packages} ${others} "-lnetcdf")
  if(options)
    list(APPEND all -DENSIO_PARALLEL_NETCDF ${options})
  else()
    message(STATUS "ensio-replay is built without its layer netcdf: ${MPICC} finds no parallel NetCDF (Debian: libnetcdf-mpi-dev)")
  endif()

  package_options(packages "" pnetcdf)
  find_mpi_library(options PNETCDF pnetcdf "PnetCDF" ${packages} "-lpnetcdf")
  if(options)
    list(APPEND all -DENSIO_PNETCDF ${options})
  else()
    message(STATUS "ensio-replay is built without its layer pnetcdf: ${MPICC} finds no PnetCDF (Debian: libpnetcdf-dev)")
  endif()
  set(${result} "${all}" PARENT_SCOPE)
endfunction()
