/* Each task writes every n-th kilobyte of a file, by independent calls ("holes") or collective ones ("together"). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1024, COUNT = 512, STEPS = 4 };

int main(int argc, char **argv)
{
    int rank, tasks;
    MPI_File file;
    MPI_Datatype every_nth;
    char path[4096];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &tasks);
    char *bytes = calloc(COUNT, BLOCK);
    const int together = argc > 2 && strcmp(argv[2], "together") == 0;
    snprintf(path, sizeof path, "%s/shared", argv[1]);
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file);
    MPI_Type_vector(COUNT, BLOCK, BLOCK * tasks, MPI_BYTE, &every_nth);
    MPI_Type_commit(&every_nth);
    for (int step = 0; step < STEPS; step++) {
        const MPI_Offset base = (MPI_Offset)step * BLOCK * COUNT * tasks + (MPI_Offset)rank * BLOCK;
        MPI_File_set_view(file, base, MPI_BYTE, every_nth, "native", MPI_INFO_NULL);
        if (together)
            MPI_File_write_all(file, bytes, COUNT * BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
        else
            MPI_File_write(file, bytes, COUNT * BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    MPI_Type_free(&every_nth);
    MPI_File_close(&file);
    free(bytes);
    MPI_Finalize();
    return 0;
}
