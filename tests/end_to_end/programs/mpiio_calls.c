/* Every call of MPI-IO, by two tasks on one file. Each task says on its own log what it did: name, offset, bytes asked
 * for, bytes moved (minus one: failed). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INTS 100

static FILE *say;
static int data[4 * INTS], rank;

static void did(const char *name, long long offset, long long asked, long long moved)
{
    fprintf(say, "MPI_File_%s %lld %lld %lld\n", name, offset, asked, moved);
}

/* A call that completes requests of I/O: it has no offset, and moves nothing itself. */
static void waited(const char *name)
{
    fprintf(say, "MPI_%s -1 0 0\n", name);
}

static void check(int code, const char *what)
{
    if (code == MPI_SUCCESS)
        return;
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(code, text, &length);
    fprintf(stderr, "%s: %s\n", what, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}
#define DO(call) check(call, #call)

static void counted(MPI_Status *status, int bytes)
{
    int got;
    MPI_Get_count(status, MPI_BYTE, &got);
    if (got != bytes) {
        fprintf(stderr, "the status says %d bytes, not %d\n", got, bytes);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
}

/* Calls with the task's position, at an offset, and with the shared position, in the plain view. */
#define ALL(READ, read) \
    do { \
        MPI_Status status, statuses[3]; \
        MPI_Request requests[3]; \
        MPI_Offset mine = 4000 * rank; \
        int place, flag, ended, places[3]; \
        DO(MPI_File_seek(file, mine, MPI_SEEK_SET)); \
        did("seek", mine, 0, 0); \
        DO(MPI_File_##read(file, data, INTS, MPI_INT, &status)); \
        counted(&status, 400); \
        did(#read, mine, 400, 400); \
        DO(MPI_File_##read##_all(file, data, INTS, MPI_INT, MPI_STATUS_IGNORE)); \
        did(#read "_all", mine + 400, 400, 400); \
        DO(MPI_File_##read##_at(file, mine + 100, data, 30, MPI_BYTE, MPI_STATUS_IGNORE)); \
        did(#read "_at", mine + 100, 30, 30); \
        DO(MPI_File_##read##_at_all(file, mine + 200, data, 0, MPI_BYTE, MPI_STATUS_IGNORE)); \
        did(#read "_at_all", mine + 200, 0, 0); \
        DO(MPI_File_seek_shared(file, 0, MPI_SEEK_SET)); \
        did("seek_shared", -1, 0, 0); \
        DO(MPI_File_##read##_shared(file, data, 10, MPI_INT, MPI_STATUS_IGNORE)); \
        did(#read "_shared", -1, 40, 40); \
        DO(MPI_Barrier(MPI_COMM_WORLD)); \
        DO(MPI_File_##read##_ordered(file, data, 10, MPI_INT, &status)); \
        did(#read "_ordered", -1, 40, 40); \
        DO(MPI_File_i##read(file, data, 10, MPI_INT, &requests[0])); \
        DO(MPI_Barrier(MPI_COMM_WORLD)); \
        DO(MPI_Wait(&requests[0], &status)); \
        counted(&status, 40); \
        did("i" #read, mine + 800, 40, 40); \
        waited("Wait"); \
        DO(MPI_File_i##read##_at(file, mine, data, 100, MPI_BYTE, &requests[0])); \
        DO(MPI_File_i##read##_at(file, mine + 100, data + 25, 100, MPI_BYTE, &requests[1])); \
        DO(MPI_Irecv(data + 300, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &requests[2])); \
        DO(MPI_Send(data + 301, 1, MPI_INT, rank, 1, MPI_COMM_WORLD)); \
        DO(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE)); \
        did("i" #read "_at", mine, 100, 100); \
        did("i" #read "_at", mine + 100, 100, 100); \
        waited("Waitall"); \
        DO(MPI_File_i##read##_shared(file, data, 5, MPI_INT, &requests[1])); \
        requests[0] = requests[2] = MPI_REQUEST_NULL; \
        do \
            DO(MPI_Testany(3, requests, &place, &flag, MPI_STATUS_IGNORE)); \
        while (!flag); \
        did("i" #read "_shared", -1, 20, 20); \
        waited("Testany"); \
        DO(MPI_File_i##read##_all(file, data, 10, MPI_INT, &requests[0])); \
        DO(MPI_Waitany(1, requests, &place, MPI_STATUS_IGNORE)); \
        did("i" #read "_all", mine + 840, 40, 40); \
        waited("Waitany"); \
        DO(MPI_File_i##read##_at_all(file, mine, data, 10, MPI_INT, &requests[1])); \
        DO(MPI_Waitsome(2, requests, &ended, places, statuses)); \
        counted(&statuses[0], 40); \
        did("i" #read "_at_all", mine, 40, 40); \
        waited("Waitsome"); \
        DO(MPI_File_i##read##_at(file, mine, data, 8, MPI_BYTE, &requests[0])); \
        do \
            DO(MPI_Test(&requests[0], &flag, &status)); \
        while (!flag); \
        did("i" #read "_at", mine, 8, 8); \
        waited("Test"); \
        DO(MPI_File_i##read##_at(file, mine, data, 8, MPI_BYTE, &requests[1])); \
        do \
            DO(MPI_Testall(3, requests, &flag, MPI_STATUSES_IGNORE)); \
        while (!flag); \
        did("i" #read "_at", mine, 8, 8); \
        waited("Testall"); \
        DO(MPI_File_i##read##_at(file, mine, data, 8, MPI_BYTE, &requests[2])); \
        do \
            DO(MPI_Testsome(3, requests, &ended, places, statuses)); \
        while (ended == 0); \
        did("i" #read "_at", mine, 8, 8); \
        waited("Testsome"); \
        DO(MPI_File_##read##_all_begin(file, data, 10, MPI_INT)); \
        DO(MPI_File_##read##_all_end(file, data, &status)); \
        did(#read "_all_begin", mine + 880, 40, 40); \
        did(#read "_all_end", -1, 0, 0); \
        DO(MPI_File_##read##_at_all_begin(file, mine, data, 10, MPI_INT)); \
        DO(MPI_File_##read##_at_all_end(file, data, MPI_STATUS_IGNORE)); \
        did(#read "_at_all_begin", mine, 40, 40); \
        did(#read "_at_all_end", -1, 0, 0); \
        DO(MPI_File_##read##_ordered_begin(file, data, 10, MPI_INT)); \
        DO(MPI_File_##read##_ordered_end(file, data, MPI_STATUS_IGNORE)); \
        did(#read "_ordered_begin", -1, 40, 40); \
        did(#read "_ordered_end", -1, 0, 0); \
    } while (0)

int main(int count, char **arguments)
{
    char log[4096], path[4096];
    MPI_File file;
    MPI_Info info;
    MPI_Offset size;
    MPI_Datatype block, strided;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(log, sizeof log, "%s/log.%d", arguments[1], rank);
    snprintf(path, sizeof path, "%s/data", arguments[1]);
    say = fopen(log, "w");

    if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file) == MPI_SUCCESS)
        return 3;
    did("open", -1, 0, -1);
    MPI_Info_create(&info);
    MPI_Info_set(info, "cb_nodes", "1");
    DO(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file));
    did("open", -1, 0, 0);
    DO(MPI_File_set_size(file, 10000));
    did("set_size", 10000, 0, 0);
    DO(MPI_File_preallocate(file, 20000));
    did("preallocate", 0, 20000, 0);
    DO(MPI_File_get_size(file, &size));
    did("get_size", -1, 0, 0);
    DO(MPI_File_set_info(file, info));
    did("set_info", -1, 0, 0);
    ALL(WRITE, write);
    DO(MPI_File_sync(file));
    did("sync", -1, 0, 0);
    ALL(READ, read);

    /* Of every 32 bytes, 16 are a task's. */
    MPI_Type_contiguous(4, MPI_INT, &block);
    MPI_Type_create_resized(block, 0, 32, &strided);
    MPI_Type_commit(&strided);
    DO(MPI_File_set_view(file, 64 + 16 * rank, MPI_INT, strided, "native", MPI_INFO_NULL));
    did("set_view", 64 + 16 * rank, 32, 0);
    DO(MPI_File_write_at_all(file, 4, data, 8, MPI_INT, MPI_STATUS_IGNORE));
    did("write_at_all", 64 + 16 * rank + 32, 32, 32);
    DO(MPI_File_write_all(file, data, 2, MPI_INT, MPI_STATUS_IGNORE));
    did("write_all", 64 + 16 * rank, 8, 8);
    DO(MPI_File_write(file, data, 4, MPI_INT, MPI_STATUS_IGNORE));
    did("write", 64 + 16 * rank + 8, 16, 16);
    DO(MPI_File_seek(file, 9, MPI_SEEK_SET));
    did("seek", 64 + 16 * rank + 64 + 4, 0, 0);
    /* Twice as wide, without holes. */
    DO(MPI_File_set_view(file, 1000, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    did("set_view", 1000, 4, 0);
    DO(MPI_File_read_at(file, 100 * rank, data, 7, MPI_INT, MPI_STATUS_IGNORE));
    did("read_at", 1000 + 400 * rank, 28, 28);

    /* At the end of the file. */
    DO(MPI_File_read_at(file, 4740, data, 100, MPI_INT, MPI_STATUS_IGNORE));
    did("read_at", 19960, 400, 40);
    DO(MPI_File_close(&file));
    did("close", -1, 0, 0);

    DO(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    did("open", -1, 0, 0);
    if (MPI_File_write_at(file, 0, data, 8, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS)
        return 4;
    did("write_at", 0, 8, -1);
    DO(MPI_File_close(&file));
    did("close", -1, 0, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        DO(MPI_File_delete(path, MPI_INFO_NULL));
        did("delete", -1, 0, 0);
        if (MPI_File_delete(path, MPI_INFO_NULL) == MPI_SUCCESS)
            return 5;
        did("delete", -1, 0, -1);
    }
    MPI_Info_free(&info);
    MPI_Type_free(&strided);
    MPI_Type_free(&block);
    fclose(say);
    MPI_Finalize();
    return 0;
}
