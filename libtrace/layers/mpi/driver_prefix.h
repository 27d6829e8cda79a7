/* driver_prefix.h: names of file system drivers in paths. */
#ifndef ENSIO_LAYERS_MPI_DRIVER_PREFIX_H
#define ENSIO_LAYERS_MPI_DRIVER_PREFIX_H

#include <string.h>

/* ROMIO accepts the name of a file system driver before the path. */
static inline const char *ensio_without_driver(const char *path)
{
    static const char *const drivers[] = {"ufs:",  "nfs:",  "xfs:",   "lustre:",     "gpfs:",   "panfs:",   "pvfs2:",
                                          "pvfs:", "daos:", "bgl:",   "bglockless:", "testfs:", "gridftp:", "zoidfs:",
                                          "im:",   "pfs:",  "piofs:", "hfs:",        "sfs:",    "dvs:",     "quobyte:"};
    for (unsigned i = 0; i < sizeof drivers / sizeof *drivers; i++)
        if (strncmp(path, drivers[i], strlen(drivers[i])) == 0)
            return path + strlen(drivers[i]);
    return path;
}

#endif
