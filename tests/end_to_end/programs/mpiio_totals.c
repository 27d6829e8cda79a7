/* Two tasks write one file: interleaved blocks collectively, a block each without blocking, and wait in between. A
 * second argument goes before the path, as the name of a ROMIO driver does. Each task writes 4 x 16 KiB and 64 KiB, and
 * reads 16 KiB. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define BLOCK 16384

int main(int count, char **arguments)
{
    int rank, tasks;
    char path[4096], *data = calloc(4, BLOCK);
    MPI_File file;
    MPI_Datatype strided;
    MPI_Request request;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &tasks);
    snprintf(path, sizeof path, "%s%s/data", count > 2 ? arguments[2] : "", arguments[1]);
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_Type_vector(4, BLOCK, tasks * BLOCK, MPI_BYTE, &strided);
    MPI_Type_commit(&strided);
    MPI_File_set_view(file, (MPI_Offset)rank * BLOCK, MPI_BYTE, strided, "native", MPI_INFO_NULL);
    MPI_File_write_all(file, data, 4 * BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    MPI_File_iwrite_at(file, (MPI_Offset)4 * BLOCK * (tasks + rank), data, 4 * BLOCK, MPI_BYTE, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_File_read_at_all(file, (MPI_Offset)rank * BLOCK, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Type_free(&strided);
    free(data);
    MPI_Finalize();
    return 0;
}
