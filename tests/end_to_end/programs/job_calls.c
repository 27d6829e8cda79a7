/* Ranks that make a known number of calls, then end MPI.
 *
 *     job_calls FOLDER PATTERN CALLS [WORD...]
 *
 * Patterns: `shared` (strided writes and reads of one file), `matrices` (seek and write, then seek, read, seek, write,
 * of a file a rank), `mixed` (threads, streams, many files, failing calls). Words: `fill` (rank 0 fills the disk that
 * the run directory is on before MPI ends), `after` (odd ranks go on writing after MPI_Finalize), `late` (ranks write
 * in their last destructor), `wait` (every rank leaves its pid in FOLDER/pid.RANK when its calls are done, and waits
 * for FOLDER/go before it ends MPI). */
#include <ensio/ensio.h>
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SIZE 64
static int rank, tasks, calls, late_fd = -1;
static char **words, *folder;
static char block[1 << 16];

static int said(const char *word)
{
    for (char **at = words; *at; at++)
        if (strcmp(*at, word) == 0)
            return 1;
    return 0;
}

static const char *in_folder(const char *name, int number)
{
    static _Thread_local char path[4096];
    snprintf(path, sizeof path, number < 0 ? "%s/%s" : "%s/%s.%d", folder, name, number);
    return path;
}

static void shared(void)
{
    const int fd = open(in_folder("shared", -1), O_CREAT | O_RDWR, 0600);
    for (int i = 0; i < calls; i++)
        if (pwrite(fd, block, SIZE, ((off_t)i * tasks + rank) * SIZE) != SIZE)
            abort();
    for (int i = 0; i < calls; i++)
        if (pread(fd, block, SIZE, ((off_t)i * tasks + rank) * SIZE) != SIZE)
            abort();
    close(fd);
}

static void matrices(void)
{
    const int fd = open(in_folder("matrices", rank), O_CREAT | O_RDWR, 0600);
    for (int i = 0; i < calls; i++) {
        lseek(fd, (off_t)i * 1000, SEEK_SET);
        if (write(fd, block, 1000) != 1000)
            abort();
    }
    for (int i = 0; i < calls; i++) {
        lseek(fd, (off_t)i * 1000, SEEK_SET);
        if (read(fd, block, 1000) != 1000)
            abort();
        lseek(fd, (off_t)i * 1000, SEEK_SET);
        if (write(fd, block, 1000) != 1000)
            abort();
    }
    close(fd);
}

static void *mix(void *state)
{
    const int thread = *(int *)state;
    unsigned seed = (unsigned)(rank * 100 + thread);
    for (int i = 0; i < calls; i++) {
        char name[32];
        snprintf(name, sizeof name, "mixed-%d-%d", thread, rand_r(&seed) % 50);
        FILE *file = fopen(in_folder(name, rank), "a+");
        fprintf(file, "%d\n", i);
        fseek(file, rand_r(&seed) % 1000, SEEK_SET);
        fread(&seed, 1, 1, file);
        fclose(file);
        open(in_folder("no/such/file", i), O_RDONLY);
        int fd = open(in_folder(name, rank), O_RDWR);
        pwrite(fd, block, (size_t)rand_r(&seed) % 5000, rand_r(&seed));
        read(fd, block, 10);
        close(fd);
    }
    return NULL;
}

static void mixed(void)
{
    pthread_t threads[3];
    int numbers[4] = {0, 1, 2, 3};
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, mix, &numbers[i]);
    mix(&numbers[3]);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

/* By its own system calls, which no recorder sees. */
static void fill(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/filler", getenv("ENSIO_DIR"));
    const long fd = syscall(SYS_openat, AT_FDCWD, path, O_CREAT | O_WRONLY, 0600);
    for (size_t size = sizeof block; size > 0; size /= 2)
        while (syscall(SYS_write, fd, block, size) > 0)
            ;
}

static void wait_for_word(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s.tmp", in_folder("pid", rank));
    const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_CREAT | O_WRONLY, 0600);
    const int length = snprintf(block, sizeof block, "%d", getpid());
    syscall(SYS_write, fd, block, length);
    syscall(SYS_rename, path, in_folder("pid", rank));
    while (syscall(SYS_access, in_folder("go", -1), F_OK) != 0)
        usleep(1000);
}

__attribute__((destructor(101))) static void late(void)
{
    if (late_fd >= 0 && write(late_fd, block, 5) != 5)
        abort();
}

int main(int count, char **arguments)
{
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &tasks);
    folder = arguments[1];
    calls = atoi(arguments[3]);
    words = arguments + 4;
    ensio_phase("all calls");
    ensio_region_begin("inside");
    if (said("late"))
        late_fd = open(in_folder("late", rank), O_CREAT | O_WRONLY, 0600);
    if (arguments[2][0] == 's')
        shared();
    else if (strcmp(arguments[2], "matrices") == 0)
        matrices();
    else
        mixed();
    ensio_region_end("inside");
    if (said("wait"))
        wait_for_word();
    MPI_Barrier(MPI_COMM_WORLD);
    if (said("fill") && rank == 0)
        fill();
    MPI_Finalize();
    if (said("after") && rank % 2) {
        const int fd = open(in_folder("after", rank), O_CREAT | O_WRONLY, 0600);
        if (write(fd, block, 7) != 7)
            abort();
    }
    puts("done");
    return 0;
}
