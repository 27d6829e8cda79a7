#include "summary_reduce.h"

#include "reference_clock.h"

#include <calls/calls.h>
#include <core/bounded_string.h>
#include <spool/encode.h>
#include <jobfile/process_summary.h>

#include <stddef.h>

#define TAG 0
#define NOTHING 0
#define FAILED (-1)

ENSIO_PMPI_DECLARE(Send, (const void *bytes, int count, uintptr_t type, int to, int tag, uintptr_t communicator))
ENSIO_PMPI_DECLARE(Recv,
                   (void *bytes, int count, uintptr_t type, int from, int tag, uintptr_t communicator, void *status))

/* Call numbers have the same meaning in all ranks only if the call tables are the same. */
static int same_tables(struct ensio_node_gather *all)
{
    const int64_t table = (int64_t)(ensio_hash(ensio_calls) >> 2);
    return ensio_node_gather_max(all, table) == -ensio_node_gather_max(all, -table);
}

static int send(struct ensio_node_gather *all, const void *bytes, int64_t length, int to, uintptr_t communicator)
{
    return ENSIO_PMPI(Send)(bytes, (int)length, all->mpi->byte, to, TAG, communicator) == 0 ? 0 : EIO;
}

static int receive(struct ensio_node_gather *all, void *bytes, int64_t length, int from, uintptr_t communicator)
{
    return ENSIO_PMPI(Recv)(bytes, (int)length, all->mpi->byte, from, TAG, communicator, all->mpi->status_ignore) == 0
               ? 0
               : EIO;
}

static void note(struct ensio_node_gather *all, int error)
{
    if (!all->error)
        all->error = error;
}

/* Sends length, answer, contents: a rank without memory for the contents says so, so that no rank waits. */
static void hand_over(struct ensio_node_gather *all, struct ensio_merged *merged, int to, uintptr_t communicator)
{
    struct ensio_array packed = {0};
    if (merged->processes && !all->error && ensio_merged_pack(merged, &packed) != 0)
        note(all, ENOMEM);
    ensio_merged_free(merged);
    int64_t length = all->error ? FAILED : (int64_t)packed.used, answer = 0;
    note(all, send(all, &length, sizeof length, to, communicator));
    if (length > 0) {
        note(all, receive(all, &answer, sizeof answer, to, communicator));
        if (answer)
            note(all, send(all, packed.bytes, length, to, communicator));
    }
    ensio_array_free(&packed);
}

static void take_over(struct ensio_node_gather *all, struct ensio_merged *merged, int from, uintptr_t communicator)
{
    struct ensio_array packed = {0};
    int64_t length = FAILED;
    note(all, receive(all, &length, sizeof length, from, communicator));
    if (length <= NOTHING)
        return; /* the failing rank has noted the reason */
    void *to = all->error ? NULL : ensio_array_room(&packed, (uint64_t)length);
    const int64_t answer = to != NULL;
    note(all, send(all, &answer, sizeof answer, from, communicator));
    if (to) {
        note(all, receive(all, to, length, from, communicator));
        if (!all->error && ensio_merged_merge(merged, to, (uint64_t)length) != 0)
            note(all, ENOMEM);
    } else {
        note(all, ENOMEM);
    }
    ensio_array_free(&packed);
}

/* A binomial tree: in each step, half of the remaining ranks send to the others, the last to the first. */
static void put_together(struct ensio_node_gather *all, struct ensio_merged *merged, int rank, int size,
                         uintptr_t communicator)
{
    for (int step = 1; step < size; step *= 2) {
        if (rank & step) {
            hand_over(all, merged, rank - step, communicator);
            return;
        }
        if (rank + step < size)
            take_over(all, merged, rank + step, communicator);
    }
}

/* Rank 0 holds the whole summary by now; the others append nothing. */
static void append(struct ensio_node_gather *all, const struct ensio_merged *merged, struct ensio_job *head)
{
    const uint8_t *coded = NULL;
    uint32_t length = 0, coded_length = 0;
    if (all->rank == 0 && !all->error) {
        coded = ensio_collect_code(merged, &length, &coded_length);
        if (!coded)
            note(all, ENOMEM);
    }
    const uint64_t position = ensio_node_gather_append(all, coded, coded ? coded_length : 0);
    if (coded) {
        head->summary = position;
        head->summary_coded = coded_length;
        head->summary_bytes = length;
        head->summary_checksum = ensio_checksum(coded, coded_length);
    }
}

int ensio_summary_reduce(struct ensio_node_gather *all, struct ensio_job *head)
{
    struct ensio_merged merged = {0};
    const int has_own = ensio_collect_has_summary();
    if (ensio_node_gather_max(all, has_own) == 0)
        return 1;
    if (!same_tables(all))
        note(all, EPROTO);
    const struct ensio_clock_line line = ensio_reference_clock(all, ensio_collect_head());
    if (ensio_merged_begin(&merged) != 0)
        note(all, ENOMEM);
    if (has_own && !all->error)
        note(all, -ensio_collect_summary(&merged, &line));
    put_together(all, &merged, all->node_rank, all->node_tasks, all->node);
    if (all->node_rank == 0) {
        int rank = 0, size = 1;
        ensio_node_gather_leaders(all, &rank, &size);
        put_together(all, &merged, rank, size, all->leaders);
    }
    append(all, &merged, head);
    ensio_merged_free(&merged);
    return ensio_node_gather_max(all, all->error) == 0;
}
