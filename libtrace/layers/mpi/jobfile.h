/* jobfile.h: writes one file for the job, collectively at the end of MPI. */
#ifndef ENSIO_LAYERS_MPI_JOBFILE_H
#define ENSIO_LAYERS_MPI_JOBFILE_H

/* Writes the job file, if all ranks are recorded and want it. Every rank of MPI_COMM_WORLD calls this at the end, after
 * all other data have gone into the spools. Without a job file, the spools remain. */
void ensio_job_file_write(void);

#endif
