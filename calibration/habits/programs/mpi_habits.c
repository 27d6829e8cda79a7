/* Tasks of MPI with a habit, or without it: mpi_habits ACTION FOLDER [OPTION=VALUE ...]. */
#define _GNU_SOURCE
#include "options.h"
#include <mpi.h>
#include <unistd.h>

static int rank, tasks;

static const char *file_named(const char *within, const char *name, long number)
{
    snprintf(path, sizeof path, "%s/%s%ld", within, name, number);
    return path;
}

static int opened(const char *name, int flags)
{
    const int file = open(name, flags, 0600);
    must(file >= 0, name);
    return file;
}

/* In each step every task writes to its file, and syncs it after every few writes, or at the end of the step. One of
 * them may write more, or to another folder. */
static void steps(void)
{
    const long size = number_of("size", 65536), every = number_of("every", 0), sync = number_of("sync", 1);
    const long count = number_of("count", 8) * (rank == number_of("heavy", -1) ? number_of("times", 4) : 1);
    const char *place = rank == number_of("slow", -1) ? text_of("elsewhere", folder) : folder;
    char *bytes = buffer_of(size);
    const int file = opened(file_named(place, "task", rank), O_RDWR | O_CREAT | flags_of(text_of("flags", "")));
    for (long step = 0; step < number_of("steps", 8); step++) {
        for (long i = 0; i < count; i++) {
            must(pwrite(file, bytes, size, (step * count + i) * size) == size, "pwrite");
            if (every && (i + 1) % every == 0)
                must(!fsync(file), "fsync");
        }
        if (sync && !every)
            must(!fsync(file), "fsync");
        usleep(number_of("compute_us", 0));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    close(file);
}

/* All tasks open one file again and again, or once. */
static void open_one(void)
{
    const long count = number_of("count", 1000), again = number_of("again", 0), size = number_of("size", 4096);
    const long every = number_of("every", 1);
    char *bytes = buffer_of(size);
    int file = -1;
    if (!rank)
        close(opened(file_named(folder, "shared", 0), O_RDWR | O_CREAT));
    MPI_Barrier(MPI_COMM_WORLD);
    for (long i = 0; i < count; i++) {
        if (again || file < 0)
            file = opened(file_named(folder, "shared", 0), O_RDWR);
        if (i % every == 0)
            must(pwrite(file, bytes, size, (rank * count + i) / every * size) == size, "pwrite");
        if (again)
            close(file);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Every task opens and reads all files of a folder, or each its part and sends the content to the others. */
static void folder_of_files(void)
{
    const long files = number_of("files", 500), size = number_of("size", 512), all = number_of("all", 0);
    char *bytes = buffer_of(size * files);
    if (!rank)
        for (long i = 0; i < files; i++) {
            const int file = opened(file_named(folder, "part", i), O_WRONLY | O_CREAT);
            must(write(file, bytes, size) == size, "write");
            close(file);
        }
    MPI_Barrier(MPI_COMM_WORLD);
    for (long i = 0; i < files; i++) {
        if (!all && rank)
            continue;
        const int file = opened(file_named(folder, "part", i), O_RDONLY);
        must(pread(file, bytes + i * size, size, 0) == size, "pread");
        close(file);
    }
    if (!all)
        MPI_Bcast(bytes, files * size, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Every task reads the whole file in each step, or its part and sends it to the others. */
static void read_shared(void)
{
    const long size = number_of("size", 1 << 20), pieces = number_of("pieces", 32) / tasks * tasks;
    const long all = number_of("all", 0), part = pieces / tasks;
    char *bytes = buffer_of(pieces * size), *mine = bytes + rank * part * size;
    if (!rank) {
        const int file = opened(file_named(folder, "input", 0), O_WRONLY | O_CREAT);
        for (long i = 0; i < pieces; i++)
            must(pwrite(file, bytes, size, i * size) == size, "pwrite");
        close(file);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const int file = opened(file_named(folder, "input", 0), O_RDONLY | (number_of("direct", 0) ? O_DIRECT : 0));
    for (long step = 0; step < number_of("steps", 4); step++) {
        for (long i = 0; i < (all ? pieces : part); i++) {
            const long at = all ? i : rank * part + i;
            must(pread(file, bytes + at * size, size, at * size) == size, "pread");
        }
        if (!all && number_of("share", 1))
            MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, bytes, part * size, MPI_BYTE, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    must(mine != NULL, "buffer");
    close(file);
}

/* In each step task 0 writes many small records one by one, or at once, while the others wait. */
static void header(void)
{
    const long records = number_of("records", 5000), size = number_of("size", 64), at_once = number_of("together", 0);
    const long bulk = number_of("bulk", 4 << 20);
    char *bytes = buffer_of(records * size > bulk ? records * size : bulk);
    const int file = opened(file_named(folder, "task", rank), O_WRONLY | O_CREAT);
    const int head = rank ? -1 : opened(file_named(folder, "head", 0), O_WRONLY | O_CREAT);
    for (long step = 0; step < number_of("steps", 4); step++) {
        must(pwrite(file, bytes, bulk, 0) == bulk, "pwrite");
        MPI_Barrier(MPI_COMM_WORLD);
        if (!rank && at_once)
            must(pwrite(head, bytes, records * size, 0) == records * size, "pwrite");
        for (long i = 0; !rank && !at_once && i < records; i++)
            must(pwrite(head, bytes + i * size, size, i * size) == size, "pwrite");
        MPI_Barrier(MPI_COMM_WORLD);
    }
    close(file);
}

/* Each task writes every n-th block of a shared file through MPI-IO: independent calls for a block each ("simple"), one
 * with holes, a collective one ("full"), or a contiguous part each, at once ("parts") or block by block ("pieces"). */
static void blocks(void)
{
    const long block = number_of("block", 1024), count = number_of("count", 512);
    const char *how = text_of("how", "full");
    char *bytes = buffer_of(count * block);
    MPI_File file;
    MPI_Datatype every_nth;
    MPI_File_open(MPI_COMM_WORLD, file_named(folder, "shared", 0), MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL,
                  &file);
    MPI_Type_vector(count, block, block * tasks, MPI_BYTE, &every_nth);
    MPI_Type_commit(&every_nth);
    for (long step = 0; step < number_of("steps", 4); step++) {
        const MPI_Offset base = (MPI_Offset)step * block * count * tasks;
        if (!strcmp(how, "simple") || !strcmp(how, "pieces")) {
            const int pieces = !strcmp(how, "pieces");
            for (long i = 0; i < count; i++) {
                const MPI_Offset at = pieces ? rank * count + i : i * tasks + rank;
                MPI_File_write_at(file, base + at * block, bytes + i * block, block, MPI_BYTE, MPI_STATUS_IGNORE);
            }
        } else if (!strcmp(how, "parts")) {
            const MPI_Offset part = base + rank * count * block;
            MPI_File_set_view(file, part, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
            MPI_File_write(file, bytes, count * block, MPI_BYTE, MPI_STATUS_IGNORE);
        } else {
            MPI_File_set_view(file, base + rank * block, MPI_BYTE, every_nth, "native", MPI_INFO_NULL);
            if (!strcmp(how, "full"))
                MPI_File_write_all(file, bytes, count * block, MPI_BYTE, MPI_STATUS_IGNORE);
            else
                MPI_File_write(file, bytes, count * block, MPI_BYTE, MPI_STATUS_IGNORE);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Type_free(&every_nth);
    MPI_File_close(&file);
}

/* The same bytes by many small collective calls, or by few large ones. */
static void collective(void)
{
    const long size = number_of("size", 4096), count = number_of("count", 1000);
    char *bytes = buffer_of(size);
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, file_named(folder, "shared", 0), MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL,
                  &file);
    for (long i = 0; i < count; i++)
        MPI_File_write_at_all(file, (i * tasks + rank) * size, bytes, size, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

int main(int argc, char **argv)
{
    static const struct action actions[] = {{"steps", steps},          {"open", open_one}, {"folder", folder_of_files},
                                            {"read", read_shared},     {"header", header}, {"blocks", blocks},
                                            {"collective", collective}};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &tasks);
    const struct action *action = action_of(actions, sizeof actions / sizeof *actions, argc, argv);
    if (!action)
        return 2;
    MPI_Barrier(MPI_COMM_WORLD);
    action->make();
    MPI_Finalize();
    return 0;
}
