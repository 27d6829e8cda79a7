/* jobfile.h: one file a job, which all ranks write together at the end of MPI. */
#ifndef ENSIO_LAYERS_MPI_JOBFILE_H
#define ENSIO_LAYERS_MPI_JOBFILE_H

/* Writes the job file, if all ranks are recorded and want it. Every rank of MPI_COMM_WORLD calls this, at the end,
 * after everything else that goes into spools then. Without a job file the spools are the record. */
void ensio_job_file_write(void);

#endif
