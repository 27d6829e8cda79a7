#%Module1.0
set prefix [file dirname [file dirname [file dirname [file dirname $ModulesCurrentModulefile]]]]

module-whatis "ensio records every I/O call of a program, and says why its I/O is slow"
prepend-path PATH $prefix/bin
prepend-path MANPATH $prefix/share/man
prepend-path PKG_CONFIG_PATH $prefix/lib/pkgconfig
prepend-path CMAKE_PREFIX_PATH $prefix
setenv ENSIO_PRELOAD $prefix/lib/libensio-preload.so
