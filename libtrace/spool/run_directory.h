/* run_directory.h: the folder that holds the spools of all processes of a job. */
#ifndef ENSIO_SPOOL_RUN_DIRECTORY_H
#define ENSIO_SPOOL_RUN_DIRECTORY_H

#include <core/settings.h>

/* Its absolute path, once it exists. */
extern char ensio_run_directory[ENSIO_PATH_ROOM];

/* The folder of the spools: the run directory, or a folder of the same name in ENSIO_SPOOL. */
extern char ensio_spool_directory[ENSIO_PATH_ROOM];

/* Makes or joins both folders. Returns 0, or minus an errno; ensio_spool_directory then names the folder that
 * failed. */
int ensio_run_directory_join(void);

/* Makes a link to a spool in the run directory, if the spool lies elsewhere: 0, or minus an errno. */
int ensio_run_directory_point_to(const char *spool);

/* Removes the link to a spool that no longer exists. */
void ensio_run_directory_unpoint(const char *spool);

#endif
