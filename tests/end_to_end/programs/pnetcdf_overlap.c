/* Posts two requests of PnetCDF a step, works, and completes them. Each task prints its seconds in posts, waits and
 * work.
 * pnetcdf_overlap FILE WAY: wait (by their numbers), all (without numbers), each (writes, then reads, by kind),
 * cancel (nothing is written), close (without a wait) */
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STEPS 4
#define COUNT 4096

static double posting, waiting, working;

#define TIMED(sum, call) \
    do { \
        const double began = MPI_Wtime(); \
        const int status = (call); \
        sum += MPI_Wtime() - began; \
        if (status != NC_NOERR) { \
            fprintf(stderr, "%s: %s\n", #call, ncmpi_strerror(status)); \
            MPI_Abort(MPI_COMM_WORLD, 1); \
        } \
    } while (0)

int main(int count, char **arguments)
{
    static double out[COUNT], in[COUNT];
    int rank, tasks, file, dimension, variable, requests[2], statuses[2];
    if (count != 3)
        return 2;
    const char *way = arguments[2];
    const int unnamed = strcmp(way, "all") == 0, by_kind = strcmp(way, "each") == 0;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &tasks);
    double other = 0;
    TIMED(other, ncmpi_create(MPI_COMM_WORLD, arguments[1], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
    TIMED(other, ncmpi_def_dim(file, "x", 2 * COUNT * tasks, &dimension));
    TIMED(other, ncmpi_def_var(file, "field", NC_DOUBLE, 1, &dimension, &variable));
    TIMED(other, ncmpi_enddef(file));
    const MPI_Offset many = COUNT, first = 2 * rank * many, second = first + many;
    for (int step = 0; step < STEPS; step++) {
        TIMED(posting, ncmpi_iput_vara_double(file, variable, &first, &many, out, unnamed ? NULL : &requests[0]));
        TIMED(posting, ncmpi_iget_vara_double(file, variable, &second, &many, in, unnamed ? NULL : &requests[1]));
        const double began = MPI_Wtime();
        usleep(20000);
        working += MPI_Wtime() - began;
        if (unnamed) {
            TIMED(waiting, ncmpi_wait_all(file, NC_REQ_ALL, NULL, NULL));
        } else if (by_kind) {
            TIMED(waiting, ncmpi_wait_all(file, NC_PUT_REQ_ALL, NULL, NULL));
            TIMED(waiting, ncmpi_wait_all(file, NC_GET_REQ_ALL, NULL, NULL));
        } else if (strcmp(way, "wait") == 0) {
            TIMED(waiting, ncmpi_wait_all(file, 2, requests, statuses));
        } else if (strcmp(way, "cancel") == 0) {
            TIMED(waiting, ncmpi_cancel(file, 2, requests, statuses));
        }
    }
    ncmpi_close(file); /* says that there are requests left, if there was no wait */
    printf("seconds %.9f %.9f %.9f\n", posting, waiting, working);
    MPI_Finalize();
    return 0;
}
