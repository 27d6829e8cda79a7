#include "reference_clock.h"

#include <jobfile/process_summary.h>

/* The same as in ensembles/readers/native/clock.py and clock_alignment.py, which explain it. */
#define PRECISE_NS 1000000000U
#define READING_NS 500
#define FASTEST_DRIFT 1e-3
#define MOST_TICKS (1ULL << 63)

ENSIO_PMPI_DECLARE(Allreduce,
                   (const void *from, void *to, int count, uintptr_t type, uintptr_t operation, uintptr_t communicator))
ENSIO_PMPI_DECLARE(Bcast, (void *bytes, int count, uintptr_t type, int root, uintptr_t communicator))

/* When a node's last rank entered each barrier, and when its first rank left it: ns since 1970 by its clock. */
struct meeting {
    int64_t entered[ENSIO_MEETINGS];
    int64_t left[ENSIO_MEETINGS];
};

/* At a given moment, a clock is ahead by between `low` and `high` ns. */
struct offset {
    double low, high, at;
};

/* A process that has run long enough has its own rate. Others use the rate of the rank of their node whose readings are
 * farthest apart. */
static double find_rate(struct ensio_node_gather *all, const struct ensio_spool *head)
{
    const struct ensio_mpi *mpi = all->mpi;
    uint64_t span_ns = 0, longest_ns = 0;
    const double own = ensio_collect_rate(head, &span_ns);
    ENSIO_PMPI(Allreduce)(&span_ns, &longest_ns, 1, mpi->uint64, mpi->max, all->node);
    double offered = span_ns == longest_ns ? own : 0, best = own;
    ENSIO_PMPI(Allreduce)(&offered, &best, 1, mpi->float64, mpi->max, all->node);
    if (head->clock == ENSIO_CLOCK_MONOTONIC)
        return 1;
    const double rate = span_ns >= PRECISE_NS ? own : best;
    return rate > 0 ? rate : 1;
}

static int is_sound(const struct ensio_meeting *readings, uint64_t first_ticks)
{
    for (int i = 0; i < ENSIO_MEETINGS; i++)
        if (!readings[i].left || readings[i].entered < first_ticks || readings[i].left < readings[i].entered ||
            readings[i].left >= MOST_TICKS)
            return 0;
    return 1;
}

/* The barrier as seen by all ranks of a node; the result is invalid if none of them took part. */
static struct meeting of_node(struct ensio_node_gather *all, const struct ensio_clock_line *line,
                              const struct ensio_meeting *readings)
{
    const struct ensio_mpi *mpi = all->mpi;
    const int sound = is_sound(readings, line->first_ticks);
    struct meeting own, node;
    for (int i = 0; i < ENSIO_MEETINGS; i++) {
        own.entered[i] = sound ? ensio_line_ns(line, readings[i].entered) : INT64_MIN;
        own.left[i] = sound ? ensio_line_ns(line, readings[i].left) : INT64_MAX;
    }
    node = own;
    ENSIO_PMPI(Allreduce)(own.entered, node.entered, ENSIO_MEETINGS, mpi->int64, mpi->max, all->node);
    ENSIO_PMPI(Allreduce)(own.left, node.left, ENSIO_MEETINGS, mpi->int64, mpi->min, all->node);
    return node;
}

static int is_known(const struct meeting *meeting)
{
    return meeting->left[0] != INT64_MAX;
}

static struct offset offset_of(const struct meeting *node, const struct meeting *reference)
{
    int64_t low = INT64_MIN, high = INT64_MAX;
    double sum = 0;
    for (int i = 0; i < ENSIO_MEETINGS; i++) {
        const int64_t least = node->entered[i] - reference->left[i], most = node->left[i] - reference->entered[i];
        low = least > low ? least : low;
        high = most < high ? most : high;
        sum += (double)(node->left[i] - node->left[0]);
    }
    low -= READING_NS;
    high += READING_NS;
    return (struct offset){
        .low = (double)(low < high ? low : high),
        .high = (double)(low < high ? high : low),
        .at = (double)node->left[0] + sum / ENSIO_MEETINGS,
    };
}

/* Corrects a line by the offsets of its clock at the first and the last barrier. */
static void correct(struct ensio_clock_line *line, const struct offset *first, const struct offset *last)
{
    const double begun = (first->low + first->high) / 2, ended = (last->low + last->high) / 2;
    const double elapsed = last->at - first->at, change = ended > begun ? ended - begun : begun - ended;
    const int apart = first->low > last->high || last->low > first->high;
    const double low = first->low < last->low ? first->low : last->low;
    const double high = first->high > last->high ? first->high : last->high;
    double offset = (low + high) / 2, drift = 0;
    if (apart && elapsed > 0 && change < FASTEST_DRIFT * elapsed) {
        offset = begun;
        drift = (ended - begun) / elapsed;
    }
    line->first_unix_ns -= ensio_nearest(offset + drift * ((double)line->first_unix_ns - first->at));
    line->ns_per_tick *= 1 - drift;
}

struct ensio_clock_line ensio_reference_clock(struct ensio_node_gather *all, const struct ensio_spool *head)
{
    const struct ensio_mpi *mpi = all->mpi;
    struct ensio_clock_line line = {
        .first_ticks = head->first.ticks,
        .first_unix_ns = (int64_t)head->first.realtime_ns,
        .ns_per_tick = find_rate(all, head),
    };
    struct meeting nodes[2] = {of_node(all, &line, head->begin), of_node(all, &line, head->end)};
    struct meeting references[2] = {nodes[0], nodes[1]};
    struct offset offsets[2];
    int count = 0, leader = all->rank; /* of this node: the lowest rank */
    ENSIO_PMPI(Bcast)(references, sizeof references, mpi->byte, 0, mpi->world);
    ENSIO_PMPI(Bcast)(&leader, sizeof leader, mpi->byte, 0, all->node);
    for (int i = 0; i < 2; i++)
        if (is_known(&nodes[i]) && is_known(&references[i]))
            offsets[count++] = offset_of(&nodes[i], &references[i]);
    if (leader != 0 && count > 0)
        correct(&line, &offsets[0], &offsets[count - 1]);
    return line;
}
