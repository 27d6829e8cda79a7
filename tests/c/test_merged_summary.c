/* Merging the summaries of processes: against sums over all calls, in any order, beyond the limits, and malformed. */
#include "recorder_world.h"

#include <jobfile/merged_summary.h>

#include <ensio/bins.h>
#include <math.h>
#include <string.h>

#define PROCESSES 5
#define KINDS 7
#define CALLS 40U /* of a process and kind */
#define BLOCK_BYTES (ENSIO_BLOCK_BINS * sizeof(uint64_t))

static uint64_t random_state = 1;

static uint64_t random_below(uint64_t limit)
{
    random_state = random_state * 6364136223846793005U + 1442695040888963407U;
    return (random_state >> 33) % limit;
}

/* All calls; equal durations and starts are frequent, and all of a process and kind are distinct. */
static struct call {
    uint64_t ns;
    struct ensio_job_longest longest;
} calls[PROCESSES][KINDS][CALLS];
static char paths[3][8] = {"/a", "/b/bb", "/c/cccc"};

static void make_calls(int equal_means)
{
    for (uint32_t p = 0; p < PROCESSES; p++)
        for (uint32_t k = 0; k < KINDS; k++)
            for (uint32_t i = 0; i < CALLS; i++) {
                struct call *call = &calls[p][k][i];
                call->ns = equal_means ? (uint64_t)(1000 + (i % 2 ? 10 : -10) * (int)(i / 2))
                                       : random_below(1ULL << random_below(33));
                call->longest = (struct ensio_job_longest){.start_ns = (int64_t)(1000000 + i / 4 + 100 * (p * 3 % 5)),
                                                           .duration_ns = call->ns,
                                                           .requested = i,
                                                           .rank = p};
                call->longest.thread = (uint16_t)k;
            }
}

static uint16_t path_of(uint32_t p, uint32_t k, uint32_t i)
{
    return (uint16_t)((p + k + i) % 4); /* 3: no file */
}

/* The cell of one process and kind, by two passes over its calls. */
static void make_cell(struct ensio_merged *merged, uint32_t p, uint32_t k, const uint32_t numbers[3])
{
    static uint64_t blocks[ENSIO_OCTAVES][ENSIO_BLOCK_BINS];
    struct ensio_job_cell cell = {.call = (uint16_t)(k + 1), .size_class = (uint8_t)k, .ordinal_class = 1};
    long double sum = 0;
    memset(blocks, 0, sizeof blocks);
    cell.min_ns = cell.min_requested = UINT64_MAX;
    cell.first_start_ns = INT64_MAX;
    cell.last_end_ns = INT64_MIN;
    for (uint32_t i = 0; i < CALLS; i++) {
        struct call call = calls[p][k][i];
        const uint32_t bin = ensio_bin(call.ns), octave = bin / ENSIO_BLOCK_BINS;
        const int64_t start = call.longest.start_ns, end = start + (int64_t)call.ns;
        sum += call.ns;
        cell.count++;
        cell.errors += i % 3 == 0;
        cell.moved += i;
        cell.time_ns += call.ns;
        cell.inner_ns += call.ns / 2;
        cell.nested_count += i % 2;
        cell.carried_moved += i / 2;
        cell.nested_ns += call.ns / 3;
        cell.without_bin += i == 7;
        cell.min_ns = call.ns < cell.min_ns ? call.ns : cell.min_ns;
        cell.max_ns = call.ns > cell.max_ns ? call.ns : cell.max_ns;
        cell.min_requested = i < cell.min_requested ? i : cell.min_requested;
        cell.max_requested = i > cell.max_requested ? i : cell.max_requested;
        cell.first_start_ns = start < cell.first_start_ns ? start : cell.first_start_ns;
        cell.last_end_ns = end > cell.last_end_ns ? end : cell.last_end_ns;
        cell.blocks[octave] = octave + 1;
        blocks[octave][bin % ENSIO_BLOCK_BINS]++;
        call.longest.file = path_of(p, k, i) < 3 ? numbers[path_of(p, k, i)] : 0;
        ensio_merged_longest(&cell, &call.longest);
    }
    const long double mean = sum / CALLS;
    for (uint32_t i = 0; i < CALLS; i++) {
        const long double d = (long double)calls[p][k][i].ns - mean;
        cell.m2 += (double)(d * d);
        cell.m3 += (double)(d * d * d);
        cell.m4 += (double)(d * d * d * d);
    }
    cell.mean_ns = (double)mean;
    CHECK(ensio_merged_add(merged, &cell, &blocks[0][0]) == 0);
}

static void pack_process(uint32_t p, struct ensio_array *to)
{
    struct ensio_merged merged;
    uint32_t numbers[3];
    CHECK(ensio_merged_begin(&merged) == 0);
    for (uint32_t i = 0; i < 3; i++) /* another order in each process */
        numbers[(i + p) % 3] = ensio_merged_path(&merged, paths[(i + p) % 3], (uint32_t)strlen(paths[(i + p) % 3]));
    for (uint32_t k = 0; k < KINDS; k++)
        make_cell(&merged, p, (k + p) % KINDS, numbers);
    merged.processes = 1;
    CHECK(ensio_merged_compact(&merged) == 0 && ensio_merged_pack(&merged, to) == 0);
    ensio_merged_free(&merged);
}

/* A merged summary without the order of its cells, blocks and paths. */
struct canonical {
    struct ensio_job_cell cell;
    uint64_t bins[ENSIO_OCTAVES][ENSIO_BLOCK_BINS];
    char paths[ENSIO_LARGEST][8];
};
static struct canonical first[KINDS], other[KINDS];

static const struct ensio_job_cell *cell_at(const struct ensio_merged *merged, uint64_t number)
{
    return (const struct ensio_job_cell *)(void *)merged->cells.bytes + number;
}

static uint64_t cells_of(const struct ensio_merged *merged)
{
    return merged->cells.used / sizeof(struct ensio_job_cell);
}

static void make_canonical(const struct ensio_merged *merged, struct canonical *to)
{
    const uint32_t *places = (const uint32_t *)(const void *)merged->paths.bytes;
    memset(to, 0, KINDS * sizeof *to);
    CHECK(cells_of(merged) == KINDS && merged->processes == PROCESSES && merged->level == 0);
    for (uint64_t i = 0; i < KINDS; i++) {
        struct canonical *kind = &to[cell_at(merged, i)->call - 1];
        CHECK(kind->cell.call == 0);
        kind->cell = *cell_at(merged, i);
        for (int octave = 0; octave < ENSIO_OCTAVES; octave++) {
            const uint32_t block = kind->cell.blocks[octave];
            if (block)
                memcpy(kind->bins[octave], merged->blocks.bytes + (block - 1) * BLOCK_BYTES, BLOCK_BYTES);
            kind->cell.blocks[octave] = 0;
        }
        for (uint32_t j = 0; j < kind->cell.longest; j++) {
            const uint32_t file = kind->cell.largest[j].file;
            kind->cell.largest[j].file = 0;
            if (!file)
                continue;
            CHECK(file <= merged->paths.used / sizeof *places);
            const struct ensio_text *text =
                (const struct ensio_text *)(const void *)(merged->texts.bytes + places[file - 1]);
            CHECK(text->id == file && text->length < 8);
            memcpy(kind->paths[j], text + 1, text->length);
        }
    }
}

static int is_near(double one, double two, double scale)
{
    return fabs(one - two) <= 1e-9 * (fabs(scale) + 1);
}

/* Only roundings of the moments may differ, relative to the even moment of their kind. */
static void check_equal(int exactly)
{
    for (int k = 0; k < KINDS; k++) {
        struct ensio_job_cell *one = &first[k].cell, two = other[k].cell;
        CHECK(is_near(one->mean_ns, two.mean_ns, one->mean_ns) && is_near(one->m2, two.m2, one->m2));
        CHECK(is_near(one->m3, two.m3, pow(one->m4, 0.75) * 3) && is_near(one->m4, two.m4, one->m4));
        if (!exactly) {
            two.mean_ns = one->mean_ns;
            two.m2 = one->m2;
            two.m3 = one->m3;
            two.m4 = one->m4;
        }
        CHECK(memcmp((const char *)one, (const char *)&two, sizeof two) == 0);
        CHECK(memcmp(first[k].bins, other[k].bins, sizeof first[k].bins) == 0);
        CHECK(memcmp(first[k].paths, other[k].paths, sizeof first[k].paths) == 0);
    }
}

static struct ensio_array packed[PROCESSES];

static void merge_in_order(const uint32_t order[PROCESSES], struct canonical *to)
{
    struct ensio_merged merged;
    CHECK(ensio_merged_begin(&merged) == 0);
    for (uint32_t i = 0; i < PROCESSES; i++)
        CHECK(ensio_merged_merge(&merged, packed[order[i]].bytes, packed[order[i]].used) == 0);
    CHECK(merged.paths.used == 3 * sizeof(uint32_t)); /* equal paths have one number */
    make_canonical(&merged, to);
    ensio_merged_free(&merged);
}

/* Merges two halves, each by itself, as the tree of ranks does. */
static void merge_by_tree(uint32_t cut, struct canonical *to)
{
    struct ensio_merged halves[2];
    struct ensio_array second = {0};
    for (uint32_t half = 0; half < 2; half++)
        CHECK(ensio_merged_begin(&halves[half]) == 0);
    for (uint32_t p = 0; p < PROCESSES; p++)
        CHECK(ensio_merged_merge(&halves[p >= cut], packed[p].bytes, packed[p].used) == 0);
    CHECK(ensio_merged_pack(&halves[1], &second) == 0);
    CHECK(ensio_merged_merge(&halves[0], second.bytes, second.used) == 0);
    make_canonical(&halves[0], to);
    for (uint32_t half = 0; half < 2; half++)
        ensio_merged_free(&halves[half]);
    ensio_array_free(&second);
}

static void permute(uint32_t *order, uint32_t from, int exactly)
{
    if (from == PROCESSES) {
        merge_in_order(order, other);
        check_equal(exactly);
        return;
    }
    for (uint32_t i = from; i < PROCESSES; i++) {
        const uint32_t kept = order[from];
        order[from] = order[i];
        order[i] = kept;
        permute(order, from + 1, exactly);
        order[i] = order[from];
        order[from] = kept;
    }
}

static void any_order(int equal_means)
{
    uint32_t order[PROCESSES] = {0, 1, 2, 3, 4};
    make_calls(equal_means);
    for (uint32_t p = 0; p < PROCESSES; p++)
        pack_process(p, &packed[p]);
    merge_in_order(order, first);
    permute(order, 0, equal_means);
    for (uint32_t cut = 0; cut <= PROCESSES; cut++) {
        merge_by_tree(cut, other);
        check_equal(equal_means);
    }
    for (uint32_t p = 0; p < PROCESSES; p++)
        ensio_array_free(&packed[p]);
}

static int by_duration(const void *one, const void *two)
{
    const struct ensio_job_longest *a = one, *b = two;
    if (a->duration_ns != b->duration_ns)
        return a->duration_ns > b->duration_ns ? -1 : 1;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    return a->rank < b->rank ? -1 : 1;
}

/* What was merged is what sums over all calls give (`first`, of the last any_order). */
static void sums_over_all_calls(void)
{
    static struct ensio_job_longest all[PROCESSES * CALLS];
    for (uint32_t k = 0; k < KINDS; k++) {
        const struct ensio_job_cell *cell = &first[k].cell;
        long double sum = 0, m2 = 0, m3 = 0, m4 = 0;
        uint64_t bins = 0;
        for (uint32_t n = 0; n < PROCESSES * CALLS; n++) {
            all[n] = calls[n / CALLS][k][n % CALLS].longest;
            sum += all[n].duration_ns;
        }
        const long double mean = sum / (PROCESSES * CALLS);
        for (uint32_t n = 0; n < PROCESSES * CALLS; n++) {
            const long double d = (long double)all[n].duration_ns - mean;
            m2 += d * d;
            m3 += d * d * d;
            m4 += d * d * d * d;
        }
        for (int octave = 0; octave < ENSIO_OCTAVES; octave++)
            for (int i = 0; i < ENSIO_BLOCK_BINS; i++)
                bins += first[k].bins[octave][i];
        CHECK(cell->count == PROCESSES * CALLS && bins == cell->count && cell->without_bin == PROCESSES);
        CHECK(cell->first_start_ns == 1000000 && cell->max_requested == CALLS - 1 && cell->min_requested == 0);
        CHECK(cell->time_ns == (uint64_t)sum && cell->moved == PROCESSES * CALLS * (CALLS - 1) / 2);
        CHECK(is_near(cell->mean_ns, (double)mean, (double)mean) && is_near(cell->m2, (double)m2, (double)m2));
        CHECK(is_near(cell->m4, (double)m4, (double)m4));
        CHECK(is_near(cell->m3, (double)m3, 3 * pow((double)m4, 0.75)));
        qsort(all, PROCESSES * CALLS, sizeof *all, by_duration);
        CHECK(cell->longest == ENSIO_LARGEST);
        for (int i = 0; i < ENSIO_LARGEST; i++)
            CHECK(memcmp(&cell->largest[i], &all[i], sizeof *all) == 0);
        CHECK(cell->max_ns == all[0].duration_ns && cell->min_ns == all[PROCESSES * CALLS - 1].duration_ns);
    }
}

/* A cell with one call of one bin. */
static int add_one(struct ensio_merged *merged, uint16_t call, uint8_t size, uint8_t ordinal)
{
    static uint64_t block[ENSIO_BLOCK_BINS] = {0, 1};
    struct ensio_job_cell cell = {.call = call, .size_class = size, .ordinal_class = ordinal, .count = 1};
    cell.blocks[0] = 1;
    return ensio_merged_add(merged, &cell, block);
}

static uint64_t count_of(const struct ensio_merged *merged, uint64_t *bins)
{
    uint64_t count = 0;
    *bins = 0;
    for (uint64_t i = 0; i < cells_of(merged); i++) {
        CHECK(merged->level < 1 || cell_at(merged, i)->ordinal_class == ENSIO_ALL_ORDINALS);
        CHECK(merged->level < 2 || cell_at(merged, i)->size_class == ENSIO_ALL_SIZES);
        count += cell_at(merged, i)->count;
    }
    for (uint64_t i = 0; i < merged->blocks.used / sizeof(uint64_t); i++)
        *bins += ((const uint64_t *)(const void *)merged->blocks.bytes)[i];
    return count;
}

/* The 4097th cell makes all cells coarser; nothing is lost, also when finer summaries are merged later. */
static void saturation(void)
{
    struct ensio_merged merged, fine;
    struct ensio_array coarse = {0}, small = {0};
    uint64_t added = 0, bins;
    CHECK(ensio_merged_begin(&merged) == 0 && ensio_merged_begin(&fine) == 0);
    for (uint16_t call = 1; call <= 300; call++)
        for (uint8_t size = 0; size < 20; size++)
            for (uint8_t ordinal = 0; ordinal < 2; ordinal++) {
                CHECK(add_one(&merged, call, size, ordinal) == 0);
                added++;
                CHECK(merged.level == (added <= 4096 ? 0 : call <= 204 || (call == 205 && size < 16) ? 1 : 2));
            }
    CHECK(count_of(&merged, &bins) == added && bins == added && cells_of(&merged) == 300);
    CHECK(add_one(&fine, 1, 1, 1) == 0 && add_one(&fine, 999, 2, 2) == 0);
    CHECK(ensio_merged_pack(&fine, &small) == 0 && ensio_merged_pack(&merged, &coarse) == 0);
    CHECK(ensio_merged_merge(&merged, small.bytes, small.used) == 0);
    CHECK(ensio_merged_merge(&fine, coarse.bytes, coarse.used) == 0);
    CHECK(count_of(&merged, &bins) == added + 2 && bins == added + 2 && merged.level == 2);
    CHECK(count_of(&fine, &bins) == added + 2 && bins == added + 2 && fine.level == 2);
    CHECK(cells_of(&merged) == 301 && cells_of(&fine) == 301);
    ensio_merged_free(&merged);
    ensio_merged_free(&fine);
    ensio_array_free(&coarse);
    ensio_array_free(&small);
}

/* Without memory, adding fails and says so. */
static void without_memory(void)
{
    struct ensio_merged merged;
    int added = 0;
    CHECK(ensio_merged_begin(&merged) == 0);
    world_limit_memory(1);
    while (added < 100 && add_one(&merged, 1, (uint8_t)added, 0) == 0)
        added++;
    const uint32_t number = ensio_merged_path(&merged, "/a", 2);
    world_limit_memory(0);
    CHECK(added == 0 && number == 0);
    ensio_merged_free(&merged);
}

/* A summary that is cut, or whose numbers lead out of it, is refused. */
static void malformed(void)
{
    struct ensio_array whole = {0};
    make_calls(0);
    pack_process(0, &whole);
    struct ensio_job_summary *head = (struct ensio_job_summary *)(void *)whole.bytes;
    struct ensio_job_cell *cells = (struct ensio_job_cell *)(void *)(head + 1);
    struct ensio_text *text = (struct ensio_text *)(void *)((char *)(cells + head->cells) + head->blocks * BLOCK_BYTES);
#define REFUSED(member, wrong) \
    do { \
        const uint64_t kept = member; \
        struct ensio_merged merged; \
        uint8_t *copy = malloc(whole.used); /* of the exact length, so that the sanitizer sees reads beyond it */ \
        member = wrong; \
        memcpy(copy, whole.bytes, whole.used); \
        CHECK(ensio_merged_begin(&merged) == 0); \
        CHECK(ensio_merged_merge(&merged, copy, whole.used) != 0); \
        ensio_merged_free(&merged); \
        free(copy); \
        member = (__typeof__(member))kept; \
    } while (0)
    for (uint64_t length = 0; length < whole.used; length += 1 + length / 50) {
        struct ensio_merged merged;
        uint8_t *copy = malloc(length + 1);
        memcpy(copy, whole.bytes, length);
        CHECK(ensio_merged_begin(&merged) == 0);
        CHECK(ensio_merged_merge(&merged, copy, length) != 0);
        ensio_merged_free(&merged);
        free(copy);
    }
    REFUSED(head->cells, head->cells + 1);
    REFUSED(head->blocks, UINT32_MAX);
    REFUSED(head->level, 3);
    REFUSED(text->length, 100000);
    REFUSED(text->length, UINT32_MAX);
    REFUSED(cells[1].longest, ENSIO_LARGEST + 1);
    REFUSED(cells[1].largest[0].file, 1000);
    REFUSED(cells[1].blocks[3], head->blocks + 1);
    struct ensio_merged merged;
    CHECK(ensio_merged_begin(&merged) == 0);
    CHECK(ensio_merged_merge(&merged, whole.bytes, whole.used) == 0); /* as it was, it is whole */
    ensio_merged_free(&merged);
    ensio_array_free(&whole);
}

int main(void)
{
    any_order(1);
    sums_over_all_calls();
    any_order(0);
    sums_over_all_calls();
    saturation();
    malformed();
    without_memory();
    return 0;
}
