# Finds the options by which MPICC compiles and links with a parallel HDF5 of the same MPI.
#
# The compiler drivers of HDF5 are not used: they select an MPI, and static libraries, whose calls a preloaded recorder
# does not see. In distributions, pkg-config knows which HDF5 belongs to which MPI. If modules or a compiler driver provide
# the only HDF5, no option or -lhdf5 suffices.

set(parallel_hdf5_check ${CMAKE_CURRENT_LIST_DIR}/parallel_hdf5_check.c)

# Sets `result` to the options, or to nothing if there is no such HDF5.
function(find_parallel_hdf5 result)
  set(ENSIO_PARALLEL_HDF5 "" CACHE STRING "options for a parallel HDF5 of the MPI of ensio-replay (empty: search for one; NO: none)")
  if(ENSIO_PARALLEL_HDF5 STREQUAL "NO")
    set(${result} "" PARENT_SCOPE)
    return()
  endif()
  if(ENSIO_PARALLEL_HDF5)
    separate_arguments(candidates UNIX_COMMAND "${ENSIO_PARALLEL_HDF5}")
    list(JOIN candidates " " candidates)
  else()
    set(candidates "-lhdf5")
    find_package(PkgConfig QUIET)
    if(PKG_CONFIG_FOUND)
      execute_process(COMMAND ${MPICC} -E -dM -include mpi.h -x c /dev/null OUTPUT_VARIABLE macros ERROR_QUIET)
      if(macros MATCHES "define OPEN_MPI ")
        set(packages hdf5 hdf5-openmpi)
      else()
        set(packages hdf5 hdf5-mpich)
      endif()
      foreach(package IN LISTS packages)
        execute_process(COMMAND ${PKG_CONFIG_EXECUTABLE} --cflags --libs ${package}
          OUTPUT_VARIABLE options ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status)
        if(status EQUAL 0)
          string(REPLACE "\n" " " options "${options}")
          list(PREPEND candidates "${options}")
        endif()
      endforeach()
    endif()
  endif()
  foreach(candidate IN LISTS candidates)
    separate_arguments(options UNIX_COMMAND "${candidate}")
    execute_process(
      COMMAND ${MPICC} ${parallel_hdf5_check} -o ${CMAKE_CURRENT_BINARY_DIR}/parallel_hdf5_check ${options}
      RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
    if(status EQUAL 0)
      set(${result} "${options}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  if(ENSIO_PARALLEL_HDF5)
    message(FATAL_ERROR "ENSIO_PARALLEL_HDF5: ${MPICC} compiles and links no program for parallel HDF5 with ${ENSIO_PARALLEL_HDF5}")
  endif()
  set(${result} "" PARENT_SCOPE)
endfunction()
