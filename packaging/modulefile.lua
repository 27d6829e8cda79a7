local prefix = myFileName():gsub("/share/modulefiles/.*", "")

whatis("ensio records every I/O call of a program, and says why its I/O is slow")
prepend_path("PATH", pathJoin(prefix, "bin"))
prepend_path("MANPATH", pathJoin(prefix, "share/man"))
prepend_path("PKG_CONFIG_PATH", pathJoin(prefix, "lib/pkgconfig"))
prepend_path("CMAKE_PREFIX_PATH", prefix)
setenv("ENSIO_PRELOAD", pathJoin(prefix, "lib/libensio-preload.so"))
