/* Two ranks that do some I/O of each kind. archives/scorep.tar.xz is what Score-P recorded of it:
 *
 *     scorep --mpp=mpi --thread=pthread --io=runtime:posix --nocompiler mpicc recorded_by_scorep.c -o program
 *     SCOREP_ENABLE_TRACING=true SCOREP_ENABLE_PROFILING=false mpirun -n 2 ./program FOLDER
 *
 * usage: program FOLDER */
#define _GNU_SOURCE
#include <aio.h>
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

static char data[1 << 16];
static const char *folder;
static int rank, common;

static const char *path_of(const char *name, int number)
{
    static _Thread_local char path[600];
    if (number < 0)
        snprintf(path, sizeof path, "%s/%s", folder, name);
    else
        snprintf(path, sizeof path, "%s/%s.%d", folder, name, number);
    return path;
}

static void use_descriptors(void)
{
    const char *path = path_of("own", rank);
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    for (int i = 1; i <= 4; i++)
        write(file, data, 1000 * i);
    pwrite(file, data, 512, 8192);
    lseek(file, 100, SEEK_SET);
    read(file, data, 300);
    read(file, data, 1 << 16);
    read(file, data, 10); /* at the end */
    struct iovec parts[2] = {{data, 10}, {data + 100, 20}};
    lseek(file, 0, SEEK_SET);
    readv(file, parts, 2);
    preadv(file, parts, 2, 500);
    int copy = dup(file);
    read(copy, data, 40);
    read(file, data, 41);
    close(copy);
    int full = open("/dev/full", O_WRONLY);
    write(full, data, 77); /* fails */
    close(full);
    fsync(file);
    close(file);
    file = open(path, O_WRONLY | O_APPEND);
    write(file, data, 5);
    close(file);
    open("/nonexistent/file", O_RDONLY);
    unlink(path);
}

/* A file that both ranks open: each has its own position, though the archive has one handle. */
static void use_one_file(void)
{
    int file = open(path_of("both", -1), O_RDWR | O_CREAT, 0644);
    lseek(file, 5000 * rank, SEEK_SET);
    write(file, data, 300 + rank);
    write(file, data, 400 + rank);
    close(file);
}

static void use_streams(void)
{
    int number;
    FILE *file = fopen(path_of("stream", rank), "w+");
    fwrite(data, 8, 100, file);
    fprintf(file, "12 34 %d\n", rank);
    fflush(file);
    fseek(file, 800, SEEK_SET);
    fscanf(file, "%d", &number);
    fread(data, 1, 3, file);
    rewind(file);
    fread(data, 4, 25, file);
    fclose(file);
}

static void use_mpi_io(void)
{
    MPI_File file;
    MPI_Status status;
    MPI_Request request;
    int number = rank;
    MPI_File_open(MPI_COMM_WORLD, path_of("shared", -1), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_write_at_all(file, rank * 4096, data, 4096, MPI_BYTE, &status);
    MPI_File_write_at(file, 16384 + rank * 1000, data, 250, MPI_INT, &status);
    MPI_File_seek(file, rank * 4096, MPI_SEEK_SET);
    MPI_File_read(file, data, 2048, MPI_BYTE, &status);
    MPI_File_iread_at(file, 0, data, 64, MPI_BYTE, &request);
    MPI_Wait(&request, &status);
    MPI_File_write_at_all_begin(file, 20000 + rank * 100, data, 100, MPI_BYTE);
    MPI_File_write_at_all_end(file, data, &status);
    MPI_File_sync(file);
    MPI_File_close(&file);
    MPI_Irecv(&number, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, &request);
    MPI_Send(&rank, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void *be_thread(void *nothing)
{
    int file = open(path_of("thread", rank), O_RDWR | O_CREAT | O_TRUNC, 0644);
    for (int i = 0; i < 3; i++)
        write(file, data, 100 + i);
    lseek(file, 50, SEEK_SET);
    read(file, data, 60);
    close(file);
    write(common, data, 7);
    return nothing;
}

static void use_threads(void)
{
    pthread_t thread;
    common = open(path_of("common", rank), O_WRONLY | O_CREAT, 0644);
    write(common, data, 6);
    pthread_create(&thread, NULL, be_thread, NULL);
    pthread_join(thread, NULL);
    close(common);
}

static void use_aio(void)
{
    struct aiocb request = {.aio_buf = data, .aio_nbytes = 900, .aio_offset = 100};
    const struct aiocb *list[] = {&request};
    request.aio_fildes = open(path_of("aio", rank), O_WRONLY | O_CREAT, 0644);
    aio_write(&request);
    aio_suspend(list, 1, NULL);
    aio_return(&request);
    close(request.aio_fildes);
}

int main(int count, char **arguments)
{
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    folder = arguments[1];
    use_descriptors();
    use_one_file();
    use_streams();
    use_mpi_io();
    use_threads();
    use_aio();
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
