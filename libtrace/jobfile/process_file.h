/* process_file.h: a process without a job codes its spool at its end, into a job file of one process. */
#ifndef ENSIO_JOBFILE_PROCESS_FILE_H
#define ENSIO_JOBFILE_PROCESS_FILE_H

#include <stdint.h>

/* Writes the file, and removes the spool if the file holds all of it: 1, or 0 if the spool stays. Then the file holds
 * the first events of its windows, or there is no file. The caller holds the lock, and ends the spool or lets its
 * thread leave it. `since_ns`: when the end began, less what the recorder took at the start. */
int ensio_process_file_write(uint64_t since_ns);

/* The longest time that coding may take at the end of a process that ran for `ran_ns`. */
uint64_t ensio_coding_ns(uint64_t ran_ns);

/* 1: the process is an MPI rank that has not come to MPI_Finalize. If it ends now, a launcher may kill the other ranks
 * for it, so it ends as quickly as it can, and leaves its spool as it is. */
extern int ensio_is_unfinalized_rank;

#endif
