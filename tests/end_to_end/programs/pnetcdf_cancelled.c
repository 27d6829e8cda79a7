/* Requests of PnetCDF of which some are cancelled, by their numbers and by their kind, and one is left when the file is
 * closed. Says on standard output the bytes that the library moved for all of them. pnetcdf_cancelled FILE. */
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>

#define N 1000

static int file, variable;
static double data[N];

static int put(MPI_Offset count)
{
    int request;
    const MPI_Offset from = 0;
    return ncmpi_iput_vara_double(file, variable, &from, &count, data, &request) ? -1 : request;
}

static int get(MPI_Offset count)
{
    int request;
    const MPI_Offset from = 0;
    return ncmpi_iget_vara_double(file, variable, &from, &count, data, &request) ? -1 : request;
}

static long long moved(void)
{
    MPI_Offset written, read;
    return ncmpi_inq_put_size(file, &written) || ncmpi_inq_get_size(file, &read) ? -1 : written + read;
}

int main(int count, char **words)
{
    int dimension, requests[3], statuses[3];
    MPI_Init(&count, &words);
    ncmpi_create(MPI_COMM_WORLD, words[1], NC_CLOBBER, MPI_INFO_NULL, &file);
    ncmpi_def_dim(file, "x", N, &dimension);
    ncmpi_def_var(file, "v", NC_DOUBLE, 1, &dimension, &variable);
    ncmpi_enddef(file);
    const long long before = moved();
    requests[0] = put(1000), requests[1] = put(1), requests[2] = get(10);
    ncmpi_cancel(file, 2, requests + 1, statuses);
    ncmpi_wait_all(file, 1, requests, statuses);
    get(2), put(3);
    ncmpi_cancel(file, NC_PUT_REQ_ALL, NULL, NULL);
    ncmpi_wait_all(file, NC_REQ_ALL, NULL, NULL);
    get(4), put(5);
    ncmpi_cancel(file, NC_REQ_ALL, NULL, NULL);
    requests[0] = get(100), requests[1] = 12345; /* no request has this number: the wait is refused */
    ncmpi_wait_all(file, 2, requests, statuses);
    ncmpi_wait_all(file, 1, requests, statuses);
    put(6);
    printf("%lld\n", moved() - before);
    ncmpi_close(file);
    MPI_Finalize();
    return 0;
}
