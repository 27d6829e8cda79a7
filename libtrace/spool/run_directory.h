/* run_directory.h: the one folder in which all processes of a job put their spools. */
#ifndef ENSIO_SPOOL_RUN_DIRECTORY_H
#define ENSIO_SPOOL_RUN_DIRECTORY_H

#include <core/settings.h>

/* Its absolute path, once it is there. */
extern char ensio_run_directory[ENSIO_PATH_ROOM];

/* Where the spools lie: the run directory, or a folder of its name in ENSIO_SPOOL. */
extern char ensio_spool_directory[ENSIO_PATH_ROOM];

/* Makes or joins both. Returns 0, or minus an errno; ensio_spool_directory then names what could not be made. */
int ensio_run_directory_join(void);

/* Lays a link to a spool into the run directory, if that is not where it lies: 0, or minus an errno. */
int ensio_run_directory_point_to(const char *spool);

/* Takes the link to a spool that is gone away. */
void ensio_run_directory_unpoint(const char *spool);

#endif
