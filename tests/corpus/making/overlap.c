/* Each task posts a write of 256 KiB, computes for 3 ms and waits for the write; eight times, then reads back likewise.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 1 << 18, STEPS = 8 };

static void compute(void)
{
    int flag;
    for (double end = MPI_Wtime() + 0.003; MPI_Wtime() < end;) /* the probe lets MPI make progress */
        MPI_Iprobe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

int main(int count, char **arguments)
{
    int rank;
    MPI_File file;
    MPI_Request request;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *data = malloc(BYTES);
    memset(data, 1, BYTES);
    MPI_File_open(MPI_COMM_WORLD, arguments[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    for (int step = 0; step < 2 * STEPS; step++) {
        MPI_Offset offset = (MPI_Offset)(rank * STEPS + step % STEPS) * BYTES;
        if (step < STEPS)
            MPI_File_iwrite_at(file, offset, data, BYTES, MPI_BYTE, &request);
        else
            MPI_File_iread_at(file, offset, data, BYTES, MPI_BYTE, &request);
        compute();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_File_close(&file);
    MPI_Finalize();
    free(data);
    return 0;
}
