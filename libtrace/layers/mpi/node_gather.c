#include "node_gather.h"

#include <core/lock.h>
#include <core/private_files.h>
#include <core/rawsys.h>

#include <stddef.h>
#include <sys/resource.h>

#define MOST_NODE_BYTES (1 << 30) /* at a time; counts of MPI are int */
#define NOWHERE INT64_MAX

ENSIO_PMPI_DECLARE(Comm_rank, (uintptr_t communicator, int *rank))
ENSIO_PMPI_DECLARE(Comm_size, (uintptr_t communicator, int *size))
ENSIO_PMPI_DECLARE(Comm_split, (uintptr_t communicator, int colour, int key, uintptr_t *made))
ENSIO_PMPI_DECLARE(Comm_split_type, (uintptr_t communicator, int type, int key, uintptr_t info, uintptr_t *made))
ENSIO_PMPI_DECLARE(Comm_free, (uintptr_t * communicator))
ENSIO_PMPI_DECLARE(Allreduce,
                   (const void *from, void *to, int count, uintptr_t type, uintptr_t operation, uintptr_t communicator))
ENSIO_PMPI_DECLARE(Exscan,
                   (const void *from, void *to, int count, uintptr_t type, uintptr_t operation, uintptr_t communicator))
ENSIO_PMPI_DECLARE(Gather, (const void *from, int count, uintptr_t type, void *to, int to_count, uintptr_t to_type,
                            int root, uintptr_t communicator))
ENSIO_PMPI_DECLARE(Gatherv, (const void *from, int count, uintptr_t type, void *to, const int *to_counts,
                             const int *places, uintptr_t to_type, int root, uintptr_t communicator))
ENSIO_PMPI_DECLARE(Scatter, (const void *from, int count, uintptr_t type, void *to, int to_count, uintptr_t to_type,
                             int root, uintptr_t communicator))

/* A number, a position and a count for each rank of the node. */
static uint64_t numbers_bytes(const struct ensio_node_gather *all)
{
    return (uint64_t)all->node_tasks * (sizeof(int64_t) + 2 * sizeof(int));
}

static void note(struct ensio_node_gather *all, int error)
{
    if (!all->error)
        all->error = error;
}

int64_t ensio_node_gather_max(struct ensio_node_gather *all, int64_t number)
{
    int64_t most = number;
    if (ENSIO_PMPI(Allreduce)(&number, &most, 1, all->mpi->int64, all->mpi->max, all->mpi->world) != 0)
        return INT64_MAX;
    return most;
}

int ensio_node_gather_begin(struct ensio_node_gather *all, const struct ensio_mpi *mpi)
{
    *all = (struct ensio_node_gather){.mpi = mpi};
    ENSIO_PMPI(Comm_rank)(mpi->world, &all->rank);
    ENSIO_PMPI(Comm_size)(mpi->world, &all->tasks);
    int failed =
        ENSIO_PMPI(Comm_split_type)(mpi->world, mpi->comm_type_shared, all->rank, mpi->null_info, &all->node) != 0;
    if (ensio_node_gather_max(all, failed) != 0)
        return 0;
    ENSIO_PMPI(Comm_rank)(all->node, &all->node_rank);
    ENSIO_PMPI(Comm_size)(all->node, &all->node_tasks);
    failed = ENSIO_PMPI(Comm_split)(mpi->world, all->node_rank == 0 ? 0 : ENSIO_MPI_UNDEFINED, all->rank,
                                    &all->leaders) != 0;
    if (all->node_rank == 0 && !failed)
        failed = !(all->numbers = ensio_raw_memory(numbers_bytes(all)));
    return ensio_node_gather_max(all, failed) == 0;
}

void ensio_node_gather_leaders(const struct ensio_node_gather *all, int *rank, int *size)
{
    ENSIO_PMPI(Comm_rank)(all->leaders, rank);
    ENSIO_PMPI(Comm_size)(all->leaders, size);
}

void ensio_node_gather_end(struct ensio_node_gather *all)
{
    if (all->numbers)
        ensio_raw_unmap(all->numbers, numbers_bytes(all));
    if (all->node_rank == 0 && all->leaders)
        ENSIO_PMPI(Comm_free)(&all->leaders);
    if (all->node)
        ENSIO_PMPI(Comm_free)(&all->node);
}

/* Turns the lengths of the ranks' bytes into their positions in the file, and returns their sum. Collective over all
 * leaders. */
static uint64_t place(struct ensio_node_gather *all, int *counts, int *places)
{
    int64_t sum = 0, before = 0, total = 0;
    for (int i = 0; i < all->node_tasks; i++)
        sum += all->numbers[i];
    if (ENSIO_PMPI(Exscan)(&sum, &before, 1, all->mpi->int64, all->mpi->sum, all->leaders) != 0 ||
        ENSIO_PMPI(Allreduce)(&sum, &total, 1, all->mpi->int64, all->mpi->sum, all->leaders) != 0)
        note(all, EIO);
    if (all->rank == 0)
        before = 0; /* Exscan leaves the first one undefined */
    int64_t at = 0;
    const int fits = sum <= MOST_NODE_BYTES;
    if (!fits)
        note(all, EFBIG);
    for (int i = 0; i < all->node_tasks; i++) {
        counts[i] = fits ? (int)all->numbers[i] : 0;
        places[i] = fits ? (int)at : 0;
        at += all->numbers[i];
        all->numbers[i] = fits ? (int64_t)all->end + before + at - counts[i] : NOWHERE;
    }
    all->end += (uint64_t)total;
    return fits ? (uint64_t)sum : 0;
}

uint64_t ensio_node_gather_append(struct ensio_node_gather *all, const void *bytes, uint32_t length)
{
    const struct ensio_mpi *mpi = all->mpi;
    const int leader = all->node_rank == 0;
    int64_t own = length, position = NOWHERE;
    int *const counts = leader ? (int *)(void *)(all->numbers + all->node_tasks) : NULL;
    int *const places = leader ? counts + all->node_tasks : NULL;
    uint8_t *gathered = NULL;
    uint64_t sum = 0;
    ENSIO_PMPI(Gather)(&own, 1, mpi->int64, all->numbers, 1, mpi->int64, 0, all->node);
    if (leader) {
        sum = place(all, counts, places);
        gathered = sum ? ensio_raw_memory(sum) : NULL;
        if (sum && !gathered) {
            note(all, ENOMEM);
            for (int i = 0; i < all->node_tasks; i++)
                all->numbers[i] = NOWHERE;
        }
    }
    ENSIO_PMPI(Scatter)(all->numbers, 1, mpi->int64, &position, 1, mpi->int64, 0, all->node);
    if (position == NOWHERE) /* in all ranks of the node */
        return 0;
    ENSIO_PMPI(Gatherv)(bytes, (int)length, mpi->byte, gathered, counts, places, mpi->byte, 0, all->node);
    if (gathered) {
        const int error = ensio_node_gather_write(all, gathered, sum, (uint64_t)all->numbers[0], 0);
        if (error)
            note(all, error);
        ensio_raw_unmap(gathered, sum);
    }
    return (uint64_t)position;
}

static int write_at(int fd, const void *bytes, uint64_t length, uint64_t position)
{
    struct rlimit limit;
    if (ENSIO_RAW(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit) == 0 && position + length > limit.rlim_cur)
        return EFBIG; /* exceeding it would raise SIGXFSZ in the program */
    for (uint64_t done = 0; done < length;) {
        const long wrote = ensio_raw_write_at(fd, (const uint8_t *)bytes + done, length - done, position + done);
        if (wrote == -EINTR)
            continue;
        if (wrote <= 0)
            return wrote ? (int)-wrote : ENOSPC;
        done += (uint64_t)wrote;
    }
    return 0;
}

struct writing {
    const char *path;
    const void *bytes;
    uint64_t length, position;
    int last;
};

/* Another user may have replaced the file. */
static int is_ours(int fd)
{
    struct stat found;
    return ENSIO_RAW(SYS_newfstatat, fd, "", &found, AT_EMPTY_PATH) == 0 && S_ISREG(found.st_mode) &&
           found.st_nlink == 1 && found.st_uid == (uid_t)syscall(SYS_geteuid);
}

/* Missing space or a failing disk shows when data reach the disk, so the file is synced before anything relies on
 * it. */
static int64_t write_part(void *given)
{
    const struct writing *part = given;
    int fd = ensio_private_open(part->path, O_WRONLY | O_NOFOLLOW, 0);
    if (fd < 0)
        return fd;
    int error = is_ours(fd) ? write_at(fd, part->bytes, part->length, part->position) : EPERM;
    if (!error && part->last) {
        const long synced = ENSIO_RAW(SYS_fsync, fd);
        error = synced < 0 && synced != -EINVAL ? (int)-synced : 0;
    }
    ensio_raw_close(fd);
    return -error;
}

int ensio_node_gather_write(const struct ensio_node_gather *all, const void *bytes, uint64_t length, uint64_t position,
                            int last)
{
    struct writing part = {all->path, bytes, length, position, last};
    struct ensio_held held = ensio_lock();
    const int64_t done = ensio_with_private_files(write_part, &part);
    ensio_unlock(held);
    return (int)-done;
}

static int64_t make_file(void *path)
{
    int fd = ensio_private_open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (fd >= 0)
        ensio_raw_close(fd);
    return fd < 0 ? fd : 0;
}

int ensio_node_gather_make(const char *path)
{
    struct ensio_held held = ensio_lock();
    const int64_t done = ensio_with_private_files(make_file, (void *)(uintptr_t)path);
    ensio_unlock(held);
    return (int)-done;
}
