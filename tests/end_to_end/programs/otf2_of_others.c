/* otf2_of_others.c: an OTF2 archive as Score-P makes them: local numbers with mapping tables, ranks by a group of
 * MPI's, blocking operations that all have one number, positions only in seeks, duplicates, operations that end in
 * another thread, a clock of microseconds. For each call it says on standard output what an I/O analyst would: rank,
 * thread, name, file, offset, bytes asked for and moved, depth, carried, begin and end in ticks since the archive's
 * time 0.
 *
 * usage: otf2_of_others FOLDER */
#include <otf2/otf2.h>
#include <stdio.h>
#include <stdlib.h>

#define ZERO 5000ULL /* ticks */
#define NONE OTF2_UNDEFINED_UINT64
#define CHECK(call) \
    do { \
        if ((call) != OTF2_SUCCESS) { \
            fprintf(stderr, "%s\n", #call); \
            exit(3); \
        } \
    } while (0)

enum {
    MAIN,
    OPEN,
    LSEEK,
    READ,
    PREAD,
    DUP,
    WRITE,
    READV,
    FOPEN,
    FPRINTF,
    FSYNC,
    UNLINK,
    AIO_WRITE,
    AIO_RETURN,
    WRITE_ALL,
    IWRITE_AT,
    MPI_WAIT,
    BARRIER,
    SOLVE,
    CLOSE,
    PWRITE,
    ACCESS,
    REGIONS
};
static const struct {
    const char *name;
    OTF2_RegionRole role;
    OTF2_Paradigm paradigm;
} regions[REGIONS] = {
    [MAIN] = {"main", OTF2_REGION_ROLE_FUNCTION, OTF2_PARADIGM_COMPILER},
    [OPEN] = {"open", OTF2_REGION_ROLE_FILE_IO_METADATA, OTF2_PARADIGM_NONE},
    [LSEEK] = {"lseek", OTF2_REGION_ROLE_FILE_IO_METADATA, OTF2_PARADIGM_NONE},
    [READ] = {"read", OTF2_REGION_ROLE_FILE_IO, OTF2_PARADIGM_NONE},
    [PREAD] = {"pread", OTF2_REGION_ROLE_FILE_IO, OTF2_PARADIGM_NONE},
    [DUP] = {"dup", OTF2_REGION_ROLE_FILE_IO_METADATA, OTF2_PARADIGM_NONE},
    [WRITE] = {"write", OTF2_REGION_ROLE_FILE_IO, OTF2_PARADIGM_NONE},
    [READV] = {"readv", OTF2_REGION_ROLE_FILE_IO, OTF2_PARADIGM_NONE},
    [FOPEN] = {"fopen", OTF2_REGION_ROLE_FILE_IO_METADATA, OTF2_PARADIGM_NONE},
    [FPRINTF] = {"fprintf", OTF2_REGION_ROLE_FILE_IO, OTF2_PARADIGM_NONE},
    [FSYNC] = {"fsync", OTF2_REGION_ROLE_FILE_IO, OTF2_PARADIGM_NONE},
    [UNLINK] = {"unlink", OTF2_REGION_ROLE_FILE_IO_METADATA, OTF2_PARADIGM_NONE},
    [AIO_WRITE] = {"aio_write", OTF2_REGION_ROLE_FILE_IO, OTF2_PARADIGM_NONE},
    [AIO_RETURN] = {"aio_return", OTF2_REGION_ROLE_WRAPPER, OTF2_PARADIGM_NONE},
    [WRITE_ALL] = {"MPI_File_write_all", OTF2_REGION_ROLE_FILE_IO, OTF2_PARADIGM_MPI},
    [IWRITE_AT] = {"MPI_File_iwrite_at", OTF2_REGION_ROLE_FILE_IO, OTF2_PARADIGM_MPI},
    [MPI_WAIT] = {"MPI_Wait", OTF2_REGION_ROLE_POINT2POINT, OTF2_PARADIGM_MPI},
    [BARRIER] = {"MPI_Barrier", OTF2_REGION_ROLE_BARRIER, OTF2_PARADIGM_MPI},
    [SOLVE] = {"solve", OTF2_REGION_ROLE_CODE, OTF2_PARADIGM_USER},
    [CLOSE] = {"close", OTF2_REGION_ROLE_FILE_IO_METADATA, OTF2_PARADIGM_NONE},
    [PWRITE] = {"pwrite", OTF2_REGION_ROLE_FILE_IO, OTF2_PARADIGM_NONE},
    [ACCESS] = {"access", OTF2_REGION_ROLE_FILE_IO_METADATA, OTF2_PARADIGM_NONE},
};

enum { A, A_DUPLICATE, B, C, SHARED, MPI_FILE, HANDLES };
static const char *const files[] = {"/data/a", "/data/a", "/data/b", "/data/c", "/data/shared", "/data/mpi"};
static const int file_of[HANDLES] = {0, 0, 1, 2, 3, 4};
static const int paradigm_of[HANDLES] = {0, 0, 1, 1, 0, 2};

static OTF2_Archive *archive;
static OTF2_EvtWriter *writer;
static OTF2_AttributeList *attributes;
static uint64_t now;
static int rank, thread;

static uint64_t tick(void)
{
    return ZERO + (now += 7);
}

static void enter(int region)
{
    CHECK(OTF2_EvtWriter_Enter(writer, NULL, tick(), region));
}

static void leave(int region)
{
    CHECK(OTF2_EvtWriter_Leave(writer, NULL, tick(), region));
}

static void say(int region, const char *file, long long offset, long long asked, long long moved, int depth,
                int carried, uint64_t begin, uint64_t end)
{
    printf("%d %d %s %s %lld %lld %lld %d %d %llu %llu\n", rank, thread, regions[region].name, file, offset, asked,
           moved, depth, carried, (unsigned long long)begin, (unsigned long long)end);
}

static void begin(int handle, OTF2_IoOperationMode mode, OTF2_IoOperationFlag flags, uint64_t bytes, uint64_t id,
                  long long told)
{
    if (told >= 0)
        CHECK(OTF2_AttributeList_AddUint64(attributes, 2, (uint64_t)told));
    CHECK(OTF2_EvtWriter_IoOperationBegin(writer, attributes, tick(), handle, mode, flags, bytes, id));
}

static void complete(int handle, uint64_t bytes, uint64_t id)
{
    CHECK(OTF2_EvtWriter_IoOperationComplete(writer, NULL, tick(), handle, bytes, id));
}

/* A blocking operation at `offset`; `told`: an attribute says so (pread). */
static void operation(int region, int handle, OTF2_IoOperationMode mode, uint64_t asked, uint64_t moved,
                      long long offset, int told)
{
    enter(region);
    begin(handle, mode, 0, asked, 1, told ? offset : -1);
    uint64_t from = now;
    complete(handle, moved, 1);
    say(region, files[handle], offset, asked == NONE ? 0 : (long long)asked, (long long)moved, 0, 0, from, now);
    leave(region);
}

static void create(int region, int handle, OTF2_IoStatusFlag status)
{
    enter(region);
    uint64_t from = now;
    CHECK(OTF2_EvtWriter_IoCreateHandle(writer, NULL, tick(), handle, OTF2_IO_ACCESS_MODE_READ_WRITE,
                                        OTF2_IO_CREATION_FLAG_CREATE, status));
    leave(region);
    say(region, files[handle], -1, 0, 0, 0, 16 | 32, from, now); /* to read and to write */
}

static void destroy(int handle)
{
    enter(CLOSE);
    uint64_t from = now;
    CHECK(OTF2_EvtWriter_IoDestroyHandle(writer, NULL, tick(), handle));
    leave(CLOSE);
    say(CLOSE, files[handle], -1, 0, 0, 0, 0, from, now);
}

static void seek(int handle, uint64_t result)
{
    enter(LSEEK);
    uint64_t from = now;
    CHECK(OTF2_EvtWriter_IoSeek(writer, NULL, tick(), handle, 0, OTF2_IO_SEEK_FROM_CURRENT, result));
    leave(LSEEK);
    say(LSEEK, files[handle], result == NONE ? -1 : (long long)result, 0, 0, 0, 0, from, now);
}

static void positions(void)
{
    uint64_t from;
    create(OPEN, A, 0);
    seek(A, 100);
    operation(READ, A, OTF2_IO_OPERATION_MODE_READ, 50, 50, 100, 0);
    operation(READ, A, OTF2_IO_OPERATION_MODE_READ, 30, 20, 150, 0);
    operation(PREAD, A, OTF2_IO_OPERATION_MODE_READ, 9, 9, 7, 1);
    seek(A, NONE);
    operation(READ, A, OTF2_IO_OPERATION_MODE_READ, 5, 5, 170, 0);
    enter(DUP);
    from = now;
    CHECK(OTF2_EvtWriter_IoDuplicateHandle(writer, NULL, tick(), A, A_DUPLICATE, 0));
    leave(DUP);
    say(DUP, files[A], -1, 0, 0, 0, 0, from, now);
    operation(WRITE, A_DUPLICATE, OTF2_IO_OPERATION_MODE_WRITE, 10, 10, 175, 0);
    operation(WRITE, A, OTF2_IO_OPERATION_MODE_WRITE, 10, 10, 185, 0);
    enter(READV);
    begin(A, OTF2_IO_OPERATION_MODE_READ, 0, 4, 11, -1);
    uint64_t first = now;
    begin(A, OTF2_IO_OPERATION_MODE_READ, 0, 6, 12, -1);
    uint64_t second = now;
    complete(A, 4, 11);
    say(READV, files[A], 195, 4, 4, 0, 0, first, now);
    complete(A, 6, 12);
    say(READV, files[A], 199, 6, 6, 0, 0, second, now);
    leave(READV);
    operation(READ, A, OTF2_IO_OPERATION_MODE_READ, 3, NONE, 205, 0);
    create(FOPEN, B, OTF2_IO_STATUS_FLAG_APPEND);
    operation(FPRINTF, B, OTF2_IO_OPERATION_MODE_WRITE, NONE, 10, -1, 0);
    create(FOPEN, C, 0);
    operation(FPRINTF, C, OTF2_IO_OPERATION_MODE_WRITE, NONE, 12, 0, 0);
    operation(FPRINTF, C, OTF2_IO_OPERATION_MODE_WRITE, NONE, 12, 12, 0);
    operation(FSYNC, A, OTF2_IO_OPERATION_MODE_FLUSH, NONE, 0, -1, 0);
    destroy(A);
    enter(UNLINK);
    from = now;
    CHECK(OTF2_EvtWriter_IoDeleteFile(writer, NULL, tick(), 0, file_of[A]));
    leave(UNLINK);
    say(UNLINK, files[A], -1, 0, 0, 0, 0, from, now);
    enter(ACCESS);
    from = now;
    leave(ACCESS);
    say(ACCESS, "-", -1, 0, 0, 0, 0, from, now);
}

static void layers(void)
{
    uint64_t from, inside, started;
    enter(SOLVE);
    enter(WRITE_ALL);
    begin(MPI_FILE, OTF2_IO_OPERATION_MODE_WRITE, OTF2_IO_OPERATION_FLAG_COLLECTIVE, 64, 3, -1);
    from = now;
    enter(PWRITE);
    begin(SHARED, OTF2_IO_OPERATION_MODE_WRITE, 0, 64, 1, 640);
    inside = now;
    complete(SHARED, 64, 1);
    say(PWRITE, files[SHARED], 640, 64, 64, 1, 2, inside, now);
    leave(PWRITE);
    complete(MPI_FILE, 64, 3);
    say(WRITE_ALL, files[MPI_FILE], -1, 64, 64, 0, 0, from, now);
    leave(WRITE_ALL);
    leave(SOLVE);
    enter(IWRITE_AT);
    begin(MPI_FILE, OTF2_IO_OPERATION_MODE_WRITE, OTF2_IO_OPERATION_FLAG_NON_BLOCKING, 32, 77, 4096);
    started = now;
    CHECK(OTF2_EvtWriter_IoOperationIssued(writer, NULL, tick(), MPI_FILE, 77));
    leave(IWRITE_AT);
    operation(WRITE, C, OTF2_IO_OPERATION_MODE_WRITE, 1, 1, 24, 0);
    enter(MPI_WAIT);
    from = now;
    complete(MPI_FILE, 32, 77);
    say(IWRITE_AT, files[MPI_FILE], 4096, 32, 32, 0, 0, started, now);
    leave(MPI_WAIT);
    say(MPI_WAIT, "-", -1, 0, 0, 0, 0, from, now);
    enter(BARRIER);
    from = now;
    leave(BARRIER);
    say(BARRIER, "-", -1, 0, 0, 0, 0, from, now);
}

static OTF2_FlushType flush(void *user, OTF2_FileType type, OTF2_LocationRef location, void *caller, bool final)
{
    return OTF2_FLUSH;
}

/* Local numbers become global ones: each rank has its own handles, and regions are numbered backwards. */
static void map(uint64_t location)
{
    OTF2_DefWriter *definitions = OTF2_Archive_GetDefWriter(archive, location);
    uint64_t handles[HANDLES], numbers[REGIONS];
    for (int i = 0; i < HANDLES; i++)
        handles[i] = (uint64_t)(rank * HANDLES + i);
    for (int i = 0; i < REGIONS; i++)
        numbers[i] = (uint64_t)(REGIONS - 1 - i);
    OTF2_IdMap *of_handles = OTF2_IdMap_CreateFromUint64Array(HANDLES, handles, false);
    OTF2_IdMap *of_regions = OTF2_IdMap_CreateFromUint64Array(REGIONS, numbers, false);
    CHECK(OTF2_DefWriter_WriteMappingTable(definitions, OTF2_MAPPING_IO_HANDLE, of_handles));
    CHECK(OTF2_DefWriter_WriteMappingTable(definitions, OTF2_MAPPING_REGION, of_regions));
    OTF2_IdMap_Free(of_handles);
    OTF2_IdMap_Free(of_regions);
    CHECK(OTF2_Archive_CloseDefWriter(archive, definitions));
}

static OTF2_GlobalDefWriter *global;
static uint32_t texts;

static uint32_t text(const char *string)
{
    CHECK(OTF2_GlobalDefWriter_WriteString(global, texts, string));
    return texts++;
}

static void definitions(const uint64_t *locations, const uint64_t *events)
{
    static const char *const paradigms[] = {"POSIX", "ISOC", "MPI-IO"};
    char name[32];
    global = OTF2_Archive_GetGlobalDefWriter(archive);
    CHECK(OTF2_GlobalDefWriter_WriteClockProperties(global, 1000000, ZERO, 1000000, 1700000000000000000ULL));
    CHECK(OTF2_GlobalDefWriter_WriteAttribute(global, 0, text("ProcessId"), text("Process identifier"),
                                              OTF2_TYPE_UINT64));
    CHECK(
        OTF2_GlobalDefWriter_WriteAttribute(global, 1, text("ThreadId"), text("Thread identifier"), OTF2_TYPE_UINT64));
    CHECK(OTF2_GlobalDefWriter_WriteAttribute(global, 2, text("Offset"),
                                              text("Absolute read/write offset within a file."), OTF2_TYPE_UINT64));
    CHECK(OTF2_GlobalDefWriter_WriteSystemTreeNode(global, 0, text("machine"), text("machine"),
                                                   OTF2_UNDEFINED_SYSTEM_TREE_NODE));
    CHECK(OTF2_GlobalDefWriter_WriteSystemTreeNode(global, 1, text("node-b"), text("node"), 0));
    CHECK(OTF2_GlobalDefWriter_WriteSystemTreeNode(global, 2, text("node-a"), text("node"), 0));
    /* Rank 1 is defined first: only the group says who is who. */
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "MPI Rank %d", 1 - i);
        CHECK(OTF2_GlobalDefWriter_WriteLocationGroup(global, i, text(name), OTF2_LOCATION_GROUP_TYPE_PROCESS, 1 + i,
                                                      OTF2_UNDEFINED_LOCATION_GROUP));
    }
    CHECK(OTF2_GlobalDefWriter_WriteLocation(global, locations[2], text("Master thread"), OTF2_LOCATION_TYPE_CPU_THREAD,
                                             events[2], 0));
    CHECK(OTF2_GlobalDefWriter_WriteLocation(global, locations[0], text("Master thread"), OTF2_LOCATION_TYPE_CPU_THREAD,
                                             events[0], 1));
    CHECK(OTF2_GlobalDefWriter_WriteLocation(global, locations[1], text("Pthread 1"), OTF2_LOCATION_TYPE_CPU_THREAD,
                                             events[1], 1));
    uint64_t masters[] = {locations[0], locations[2]};
    CHECK(OTF2_GlobalDefWriter_WriteGroup(global, 0, text(""), OTF2_GROUP_TYPE_COMM_LOCATIONS, OTF2_PARADIGM_MPI, 0, 2,
                                          masters));
    for (int i = 0; i < REGIONS; i++) {
        uint32_t of = text(regions[REGIONS - 1 - i].name);
        CHECK(OTF2_GlobalDefWriter_WriteRegion(global, i, of, of, text(""), regions[REGIONS - 1 - i].role,
                                               regions[REGIONS - 1 - i].paradigm, 0, text(""), 0, 0));
    }
    for (int i = 0; i < 3; i++) {
        uint32_t of = text(paradigms[i]);
        CHECK(OTF2_GlobalDefWriter_WriteIoParadigm(global, i, of, of, i == 2, i == 0, 0, NULL, NULL, NULL));
    }
    for (int i = 1; i < HANDLES; i++)
        CHECK(OTF2_GlobalDefWriter_WriteIoRegularFile(global, file_of[i], text(files[i]), 0));
    for (int i = 0; i < 2 * HANDLES; i++)
        CHECK(OTF2_GlobalDefWriter_WriteIoHandle(global, i, text(""), file_of[i % HANDLES], paradigm_of[i % HANDLES], 0,
                                                 OTF2_UNDEFINED_COMM, OTF2_UNDEFINED_IO_HANDLE));
}

int main(int count, char **arguments)
{
    static const OTF2_FlushCallbacks callbacks = {flush, NULL};
    uint64_t locations[] = {0, 1ULL << 32, 1}, events[3], started = 0;
    if (count != 2)
        return 2;
    archive = OTF2_Archive_Open(arguments[1], "traces", OTF2_FILEMODE_WRITE, 1 << 20, 4 << 20, OTF2_SUBSTRATE_POSIX,
                                OTF2_COMPRESSION_NONE);
    CHECK(OTF2_Archive_SetFlushCallbacks(archive, &callbacks, NULL));
    CHECK(OTF2_Archive_SetSerialCollectiveCallbacks(archive));
    CHECK(OTF2_Archive_OpenEvtFiles(archive));
    CHECK(OTF2_Archive_OpenDefFiles(archive));
    attributes = OTF2_AttributeList_New();
    for (int i = 0; i < 3; i++) {
        rank = i / 2;
        thread = i % 2;
        now = i == 1 ? 10000 : 0; /* the second thread of rank 0 comes later */
        writer = OTF2_Archive_GetEvtWriter(archive, locations[i]);
        enter(MAIN);
        if (i == 1) {
            operation(READ, SHARED, OTF2_IO_OPERATION_MODE_READ, 8, 8, -1, 0);
            enter(AIO_RETURN);
            complete(SHARED, 16, 99);
            thread = 0; /* it was begun there */
            say(AIO_WRITE, files[SHARED], 300, 16, 16, 0, 0, started, now);
            thread = 1;
            leave(AIO_RETURN);
        } else {
            positions();
            layers();
        }
        if (i == 0) {
            create(OPEN, SHARED, 0);
            operation(READ, SHARED, OTF2_IO_OPERATION_MODE_READ, 8, 8, -1, 0);
            enter(AIO_WRITE);
            begin(SHARED, OTF2_IO_OPERATION_MODE_WRITE, OTF2_IO_OPERATION_FLAG_NON_BLOCKING, 16, 99, 300);
            started = now;
            CHECK(OTF2_EvtWriter_IoOperationIssued(writer, NULL, tick(), SHARED, 99));
            leave(AIO_WRITE);
        }
        if (i == 2) { /* killed in a read */
            enter(READ);
            begin(A, OTF2_IO_OPERATION_MODE_READ, 0, 1, 1, -1);
        } else
            leave(MAIN);
        CHECK(OTF2_EvtWriter_GetNumberOfEvents(writer, events + i));
        CHECK(OTF2_Archive_CloseEvtWriter(archive, writer));
        map(locations[i]);
    }
    CHECK(OTF2_Archive_CloseEvtFiles(archive));
    CHECK(OTF2_Archive_CloseDefFiles(archive));
    definitions(locations, events);
    CHECK(OTF2_Archive_Close(archive));
    OTF2_AttributeList_Delete(attributes);
    return 0;
}
