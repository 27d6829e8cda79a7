/* run_directory.h: the one folder in which all processes of a job put their spools. */
#ifndef ENSIO_RUN_DIRECTORY_H
#define ENSIO_RUN_DIRECTORY_H

#include "settings.h"

/* Its absolute path, once it is there. */
extern char ensio_run_directory[ENSIO_PATH_ROOM];

/* Makes or joins the run directory. Returns 0, or minus an errno; ensio_run_directory then names what could not be made. */
int ensio_run_directory_join(void);

#endif
