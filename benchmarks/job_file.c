/* What the job file costs at the end of a job: every rank makes CALLS calls on its own file in FOLDER, and notes how
 * long MPI_Finalize took it, by the clock and by its processor time, in ns, in FOLDER/RANK.
 *
 *     ensio-bench-job FOLDER CALLS
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int main(int count, char **arguments)
{
    int rank;
    char path[4096], block[64] = {0};
    MPI_Init(&count, &arguments);
    if (count != 3) {
        fprintf(stderr, "usage: %s FOLDER CALLS\n", arguments[0]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(path, sizeof path, "%s/data.%d", arguments[1], rank);
    const int fd = open(path, O_CREAT | O_RDWR, 0600);
    const long calls = atol(arguments[2]);
    for (long i = 3; i < calls; i++) /* besides open, close, unlink */
        if (pwrite(fd, block, sizeof block, i % 64 * 64) != (ssize_t)sizeof block)
            MPI_Abort(MPI_COMM_WORLD, 1);
    close(fd);
    unlink(path);
    MPI_Barrier(MPI_COMM_WORLD);
    const int64_t wall = now_ns(CLOCK_MONOTONIC), used = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    MPI_Finalize();
    const int64_t took = now_ns(CLOCK_MONOTONIC) - wall, cost = now_ns(CLOCK_PROCESS_CPUTIME_ID) - used;
    snprintf(path, sizeof path, "%s/%d", arguments[1], rank);
    FILE *file = fopen(path, "w");
    if (!file)
        return 1;
    fprintf(file, "%lld %lld\n", (long long)took, (long long)cost);
    return fclose(file) != 0;
}
