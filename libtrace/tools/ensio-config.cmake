# find_package(ensio): ensio::trace links the recorder into an executable; ensio::regions is for programs that name
# phases and regions, and need not be recorded. ensio_FORTRAN_SOURCE is the source of the Fortran module `ensio`, to be compiled with the program.
cmake_path(SET _ensio_prefix NORMALIZE "${CMAKE_CURRENT_LIST_DIR}/../../..")
string(REGEX REPLACE "/$" "" _ensio_prefix "${_ensio_prefix}")
set(ensio_FORTRAN_SOURCE "${_ensio_prefix}/include/ensio/ensio.f90")

if(NOT TARGET ensio::regions)
  add_library(ensio::regions INTERFACE IMPORTED)
  set_target_properties(ensio::regions PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${_ensio_prefix}/include"
                                                  INTERFACE_LINK_LIBRARIES "${_ensio_prefix}/lib/libensio-regions.a")
endif()

if(NOT TARGET ensio::cc)
  add_executable(ensio::cc IMPORTED)
  set_target_properties(ensio::cc PROPERTIES IMPORTED_LOCATION "${_ensio_prefix}/bin/ensio-cc")
endif()

# Says, whenever the program has been linked, in which shared libraries it does I/O that is not recorded.
function(ensio_check_libraries target)
  add_custom_command(TARGET ${target} POST_BUILD COMMAND ensio::cc --check "$<TARGET_FILE:${target}>" VERBATIM)
endfunction()

if(NOT TARGET ensio::trace)
  # A shared library that is linked with this target goes without: a process has one recorder, that of its executable.
  set(_ensio_executable "$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>")
  set(_ensio_libraries "$<${_ensio_executable}:-Wl,--whole-archive,${_ensio_prefix}/lib/libensio.a,--no-whole-archive>")
  file(STRINGS "${_ensio_prefix}/share/ensio/libraries" _ensio_archives)
  foreach(_ensio_archive IN LISTS _ensio_archives)
    list(APPEND _ensio_libraries "$<${_ensio_executable}:${_ensio_prefix}/lib/${_ensio_archive}>")
  endforeach()
  add_library(ensio::trace INTERFACE IMPORTED)
  set_target_properties(
    ensio::trace
    PROPERTIES INTERFACE_LINK_OPTIONS "$<${_ensio_executable}:@${_ensio_prefix}/share/ensio/wrap.rsp>"
               INTERFACE_LINK_LIBRARIES "ensio::regions;${_ensio_libraries};-pthread")
endif()
