/* Another tracer of MPI-IO, as Darshan is one: it stands for MPI_X and calls PMPI_X. At MPI_Finalize all tasks together
 * write what it counted, by MPI-IO, to the file OTHER_TRACER_LOG.
 *
 * Compiled with -shared it is preloaded; with -c it goes into a program, under the names of MPI or with -DWRAPPED under
 * those of --wrap. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef WRAPPED
#define NAME(call) __wrap_MPI_##call
#else
#define NAME(call) MPI_##call
#endif

#define LINE 40

enum {
    Init,
    Init_thread,
    File_open,
    File_close,
    File_set_view,
    File_write,
    File_write_at,
    File_write_all,
    File_read_at_all,
    File_iwrite_at,
    CALLS
};
static const char *const names[CALLS] = {
    "Init",       "Init_thread",   "File_open",      "File_close",       "File_set_view",
    "File_write", "File_write_at", "File_write_all", "File_read_at_all", "File_iwrite_at"};
static long counts[CALLS];

#define CALL(call, parameters, arguments) \
    int NAME(call) parameters \
    { \
        counts[call]++; \
        return PMPI_##call arguments; \
    }

CALL(Init, (int *count, char ***words), (count, words))
CALL(Init_thread, (int *count, char ***words, int asked, int *given), (count, words, asked, given))
CALL(File_open, (MPI_Comm all, const char *path, int how, MPI_Info info, MPI_File *file), (all, path, how, info, file))
CALL(File_close, (MPI_File * file), (file))
CALL(File_set_view,
     (MPI_File file, MPI_Offset at, MPI_Datatype etype, MPI_Datatype type, const char *representation, MPI_Info info),
     (file, at, etype, type, representation, info))
CALL(File_write, (MPI_File file, const void *from, int count, MPI_Datatype type, MPI_Status *status),
     (file, from, count, type, status))
CALL(File_write_at, (MPI_File file, MPI_Offset at, const void *from, int count, MPI_Datatype type, MPI_Status *status),
     (file, at, from, count, type, status))
CALL(File_write_all, (MPI_File file, const void *from, int count, MPI_Datatype type, MPI_Status *status),
     (file, from, count, type, status))
CALL(File_read_at_all, (MPI_File file, MPI_Offset at, void *to, int count, MPI_Datatype type, MPI_Status *status),
     (file, at, to, count, type, status))
CALL(File_iwrite_at,
     (MPI_File file, MPI_Offset at, const void *from, int count, MPI_Datatype type, MPI_Request *request),
     (file, at, from, count, type, request))

int NAME(Finalize)(void)
{
    char text[CALLS * LINE];
    long all[CALLS];
    int rank;
    MPI_File log;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Allreduce(counts, all, CALLS, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    memset(text, ' ', sizeof text);
    for (int i = 0; i < CALLS; i++)
        text[i * LINE + snprintf(text + i * LINE, LINE, "MPI_%s %ld", names[i], all[i])] = '\n';
    if (PMPI_File_open(MPI_COMM_WORLD, getenv("OTHER_TRACER_LOG"), MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
                       &log))
        abort();
    PMPI_File_write_at_all(log, 0, text, rank ? 0 : (int)sizeof text, MPI_CHAR, MPI_STATUS_IGNORE);
    PMPI_File_close(&log);
    return PMPI_Finalize();
}
