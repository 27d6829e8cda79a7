/* Two kinds of calls at once: three threads write their own files, while the first thread writes through MPI-IO, whose
 * calls have POSIX calls inside. In folder argv[1]. */
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 3, OWN_WRITES = 500, SHARED_WRITES = 400, EACH = 100, BYTES = 512 };

static const char *folder;
static int rank;

static void *write_own(void *number)
{
    char name[4096], buffer[BYTES] = {0};
    snprintf(name, sizeof name, "%s/own.%d.%ld", folder, rank, (long)number);
    const int fd = open(name, O_CREAT | O_RDWR | O_TRUNC, 0644);
    for (int i = 0; i < OWN_WRITES; i++)
        if (pwrite(fd, buffer, BYTES, (off_t)i * BYTES) != BYTES)
            abort();
    close(fd);
    return NULL;
}

int main(int count, char **arguments)
{
    int given;
    char name[4096], buffer[BYTES] = {0};
    pthread_t threads[THREADS];
    MPI_File file;
    MPI_Init_thread(&count, &arguments, MPI_THREAD_FUNNELED, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    folder = arguments[1];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, write_own, (void *)i);
    snprintf(name, sizeof name, "%s/shared", folder);
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    for (int i = 0; i < SHARED_WRITES; i++) {
        const MPI_Offset offset = ((MPI_Offset)i * 2 + rank) * BYTES;
        MPI_File_write_at(file, offset, buffer, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
        if (i % EACH == 0)
            MPI_File_write_at_all(file, offset, buffer, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    MPI_File_close(&file);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    MPI_Finalize();
    return 0;
}
