/* The program of docs/user/tutorial.md: each task writes eight blocks to one shared file, five times, with an fsync and
 * a barrier after each time; then it reads its blocks back. */
#include <fcntl.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCKS = 8, STEPS = 5 };
static const ssize_t block = 1 << 20;

int main(int argc, char **argv)
{
    int rank, step, i;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *data = malloc(block);
    memset(data, rank, block);
    int file = open("state.dat", O_RDWR | O_CREAT, 0600);
    for (step = 0; step < STEPS; step++) {
        for (i = 0; i < BLOCKS; i++)
            if (pwrite(file, data, block, (off_t)(rank * BLOCKS + i) * block) != block)
                MPI_Abort(MPI_COMM_WORLD, 1);
        fsync(file);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (i = 0; i < BLOCKS; i++)
        if (pread(file, data, block, (off_t)(rank * BLOCKS + i) * block) != block)
            MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    close(file);
    free(data);
    MPI_Finalize();
    return 0;
}
