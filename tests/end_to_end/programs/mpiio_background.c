/* Two tasks move data of one file in the background, and MPI gets on with it in calls that are not recorded:
 * mpiio_background FOLDER END WAY ... A WAY names a call of MPI-IO. END: wait and test complete a request that was seen
 * complete before, by MPI_Request_get_status; later does after some progress; blocked at once. Task 0 says how many
 * bytes all tasks have read and written. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK (1 << 16)
#define PIECES 3000
#define STEPS 3

static MPI_File file;
static char *data;
static int rank, tasks;
static const char *way, *end;
static long long moved[2];

static int way_is(const char *name)
{
    return strcmp(way, name) == 0;
}

static MPI_Offset place(int step)
{
    return (MPI_Offset)(step * tasks + rank) * BLOCK;
}

static void progress(void)
{
    int flag;
    MPI_Iprobe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

static void complete(MPI_Request request)
{
    int done = 0;
    for (int i = 0; strcmp(end, "later") == 0 && i < 100; i++)
        progress();
    while (!done && (strcmp(end, "wait") == 0 || strcmp(end, "test") == 0)) {
        progress();
        MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE);
    }
    if (strcmp(end, "test") == 0)
        for (done = 0; !done;)
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    else
        MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* A view of every second piece of 8 bytes of a task's part. */
static void scattered(int step)
{
    MPI_Datatype pieces;
    MPI_Type_vector(PIECES, 8, 16, MPI_BYTE, &pieces);
    MPI_Type_commit(&pieces);
    MPI_File_set_view(file, place(step), MPI_BYTE, pieces, "native", MPI_INFO_NULL);
    MPI_Type_free(&pieces);
}

#define NONE MPI_STATUS_IGNORE
#define SPLIT(name, ...) \
    do { \
        MPI_File_##name##_begin(__VA_ARGS__); \
        for (int i = 0; i < 100; i++) \
            progress(); \
        MPI_File_##name##_end(file, data, NONE); \
    } while (0)

static void step(int number)
{
    const int writes = strstr(way, "write") != NULL;
    const MPI_Offset at = place(number);
    int bytes = BLOCK;
    MPI_Request request = MPI_REQUEST_NULL;
    if (strstr(way, "scattered")) {
        bytes = 8 * PIECES;
        scattered(number);
        if (writes)
            MPI_File_iwrite_at(file, 0, data, bytes, MPI_BYTE, &request);
        else
            MPI_File_iread_at(file, 0, data, bytes, MPI_BYTE, &request);
    } else {
        MPI_File_seek(file, at, MPI_SEEK_SET);
    }
    if (way_is("iwrite"))
        MPI_File_iwrite(file, data, bytes, MPI_BYTE, &request);
    if (way_is("iread"))
        MPI_File_iread(file, data, bytes, MPI_BYTE, &request);
    if (way_is("iwrite_at"))
        MPI_File_iwrite_at(file, at, data, bytes, MPI_BYTE, &request);
    if (way_is("iread_at"))
        MPI_File_iread_at(file, at, data, bytes, MPI_BYTE, &request);
    if (way_is("iwrite_all"))
        MPI_File_iwrite_all(file, data, bytes, MPI_BYTE, &request);
    if (way_is("iread_all"))
        MPI_File_iread_all(file, data, bytes, MPI_BYTE, &request);
    if (way_is("iwrite_at_all"))
        MPI_File_iwrite_at_all(file, at, data, bytes, MPI_BYTE, &request);
    if (way_is("iread_at_all"))
        MPI_File_iread_at_all(file, at, data, bytes, MPI_BYTE, &request);
    if (way_is("iwrite_shared"))
        MPI_File_iwrite_shared(file, data, bytes, MPI_BYTE, &request);
    if (way_is("iread_shared"))
        MPI_File_iread_shared(file, data, bytes, MPI_BYTE, &request);
    if (way_is("write_all_begin"))
        SPLIT(write_all, file, data, bytes, MPI_BYTE);
    if (way_is("read_all_begin"))
        SPLIT(read_all, file, data, bytes, MPI_BYTE);
    if (way_is("write_at_all_begin"))
        SPLIT(write_at_all, file, at, data, bytes, MPI_BYTE);
    if (way_is("read_at_all_begin"))
        SPLIT(read_at_all, file, at, data, bytes, MPI_BYTE);
    if (way_is("write_ordered_begin"))
        SPLIT(write_ordered, file, data, bytes, MPI_BYTE);
    if (way_is("write_at_all"))
        MPI_File_write_at_all(file, at, data, bytes, MPI_BYTE, NONE);
    if (way_is("read_at_all"))
        MPI_File_read_at_all(file, at, data, bytes, MPI_BYTE, NONE);
    if (request != MPI_REQUEST_NULL)
        complete(request);
    moved[writes] += bytes;
}

int main(int count, char **arguments)
{
    char path[4096];
    long long all[2];
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &tasks);
    end = arguments[2];
    data = calloc(1, BLOCK);
    snprintf(path, sizeof path, "%s/data", arguments[1]);
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    for (int i = 0; i < STEPS; i++) /* what is there to read */
        MPI_File_write_at(file, place(i), data, BLOCK, MPI_BYTE, NONE);
    moved[1] += STEPS * BLOCK;
    for (int i = 3; i < count; i++) {
        way = arguments[i];
        MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL); /* all positions are 0 */
        MPI_File_sync(file);
        MPI_Barrier(MPI_COMM_WORLD);
        for (int number = 0; number < STEPS; number++)
            step(number);
    }
    MPI_File_close(&file);
    MPI_Reduce(moved, all, 2, MPI_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%lld %lld\n", all[0], all[1]);
    free(data);
    MPI_Finalize();
    return 0;
}
