/* excluded.h: files that hold no user data. The recorder leaves out their calls, unless ENSIO_EXCLUDE says otherwise,
 * and so do readers of other tools' texts, which parse this file. */
#ifndef ENSIO_EXCLUDED_H
#define ENSIO_EXCLUDED_H

/* Globs, separated by colons; the first that matches decides, '!' is an exception. Open MPI, MPICH and PMIx keep
 * session files and inspect the machine when they start. */
#define ENSIO_EXCLUDED \
    "/dev/shm/vader_segment.*:/dev/shm/mpich*:/dev/shm/ucx_shm_*:/dev/shm/sem.*:!/dev/shm/*:" \
    "/dev/*:/proc/*:/sys/*:*.so:*.so.*:*/lib/python3*:*.pyc:*/pyvenv.cfg:*/ompi.*/*:*/pmix-*:*/prte.*/*:" \
    "/memfd?*:/:/dev:/proc:/sys:/usr/share/misc/pci.ids*:/usr/share/openmpi/*:*/ucx.conf:/run/user/*/ucx*:" \
    "/etc/libnl*/*:/etc/gnutls/config:*.darshan:*.darshan_partial*"

#endif
