/* A thread writes 4 MiB during MPI_Init_thread; afterwards a MiB is written by a raw call. Says on standard output how
 * many bytes the thread wrote in MPI_Init_thread: writes_beside_mpi FILE. */
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MIB (1 << 20)
#define MOST (4 * MIB)
static char block[MIB];
static atomic_int begun, initialises, stops;
static atomic_long meanwhile;

static void *work(void *path)
{
    const int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    while (!stops) {
        const int counts = initialises;
        if (counts ? meanwhile < MOST : !begun) {
            if (pwrite(fd, block, MIB, 0) != MIB)
                return path;
            meanwhile += counts && initialises ? MIB : 0;
        }
        begun = 1;
        usleep(100);
    }
    return NULL;
}

int main(int count, char **words)
{
    pthread_t thread;
    void *failed;
    int provided;
    pthread_create(&thread, NULL, work, words[1]);
    while (!begun)
        usleep(100);
    initialises = 1;
    MPI_Init_thread(&count, &words, MPI_THREAD_MULTIPLE, &provided);
    initialises = 0;
    stops = 1;
    pthread_join(thread, &failed);
    syscall(SYS_pwrite64, open(words[1], O_WRONLY), block, MIB, 0L);
    MPI_Finalize();
    printf("%ld\n", (long)meanwhile);
    return failed != NULL;
}
