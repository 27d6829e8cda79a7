# How programs ask for the recorder when they are linked: the list of libraries for ensio-cc and for CMake's package, and a
# file for pkg-config. All of these find the rest from where they lie, so that the install prefix may be moved.
include(CMakePackageConfigHelpers)

set(packages ${CMAKE_BINARY_DIR}/lib/cmake/ensio)
list(TRANSFORM archives REPLACE "(.+)" "lib\\1.a" OUTPUT_VARIABLE list)
list(JOIN list "\n" lines)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/share/ensio/libraries CONTENT "${lines}\n")

list(TRANSFORM list PREPEND "\${libdir}/")
list(JOIN list " " libraries)
configure_file(tools/ensio.pc.in ${CMAKE_BINARY_DIR}/lib/pkgconfig/ensio.pc @ONLY)
configure_file(tools/ensio-config.cmake ${packages}/ensio-config.cmake COPYONLY)
write_basic_package_version_file(${packages}/ensio-config-version.cmake COMPATIBILITY SameMajorVersion)
file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} include/ensio/*)
foreach(header IN LISTS headers)
  configure_file(${header} ${CMAKE_BINARY_DIR}/${header} COPYONLY)
endforeach()

install(FILES ${CMAKE_BINARY_DIR}/share/ensio/libraries DESTINATION share/ensio)
# For Environment Modules, and for Lmod.
install(FILES ${PROJECT_SOURCE_DIR}/packaging/modulefile.tcl DESTINATION share/modulefiles/ensio RENAME ${ENSIO_VERSION})
install(FILES ${PROJECT_SOURCE_DIR}/packaging/modulefile.lua DESTINATION share/modulefiles/ensio RENAME ${ENSIO_VERSION}.lua)
install(FILES ${CMAKE_BINARY_DIR}/lib/pkgconfig/ensio.pc DESTINATION lib/pkgconfig)
install(FILES ${packages}/ensio-config.cmake ${packages}/ensio-config-version.cmake DESTINATION lib/cmake/ensio)
