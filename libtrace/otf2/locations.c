/* locations.c: the calls of a location arrive sorted by end or by start, but records must be sorted by time. Calls are
 * therefore held, sorted by start, until no later one can start earlier: up to the latest call of depth 0. */
#include "writer.h"

#include <stdlib.h>
#include <string.h>

#define MOST_HELD (1U << 20) /* calls of all locations together: 72 MiB */
/* held calls of a location before the first attempt to write some: they fit in the cache */
#define FIRST_TRY 4096
#define MOST_SHIFTS (64ULL << 20) /* calls moved by insertion; beyond that, sorting is faster */

static struct ensio_location **current; /* locations of the ranks whose calls arrive */
static size_t current_count, current_room;
static struct ensio_location *latest;
static size_t held;
static struct ensio_item *spare; /* memory of a closed location */
static size_t spare_room;
static uint32_t current_group;
static bool has_group;
static uint32_t next_region; /* in the plan */

struct ensio_written *ensio_written;
size_t ensio_written_count;
static size_t written_room;

static bool before(const struct ensio_item *a, const struct ensio_item *b)
{
    return a->start < b->start || (a->start == b->start && a->depth < b->depth);
}

static int compare(const void *a, const void *b)
{
    return before(a, b) ? -1 : before(b, a);
}

/* If regions begin together, the longer one comes first, so that they nest. */
static int compare_regions(const void *a, const void *b)
{
    const struct ensio_item *one = a, *other = b;
    if (one->start != other->start)
        return one->start < other->start ? -1 : 1;
    return one->duration > other->duration ? -1 : one->duration < other->duration;
}

static void write_first(struct ensio_location *location, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct ensio_item *item = location->items + i;
        while (location->next_region < location->region_count &&
               location->regions[location->next_region].start <= item->start)
            ensio_pipeline_item(location, location->regions + location->next_region++);
        ensio_pipeline_item(location, item);
    }
    held -= count;
    location->count -= count;
    if (location->count)
        memmove(location->items, location->items + count, location->count * sizeof *location->items);
    location->shifted = 0;
}

static void in_order(struct ensio_location *location)
{
    if (location->unsorted)
        qsort(location->items, location->count, sizeof *location->items, compare);
    location->unsorted = false;
}

/* Writes the calls that no earlier record can precede. */
static void write_sure(struct ensio_location *location)
{
    size_t sure = 0;
    in_order(location);
    if (location->has_outer) {
        struct ensio_item outer = {.start = location->outer_start};
        size_t high = location->count;
        while (sure < high) {
            size_t middle = sure + (high - sure) / 2;
            if (before(&outer, location->items + middle))
                high = middle;
            else
                sure = middle + 1;
        }
    }
    if (sure >= location->count / 2)
        write_first(location, sure);
    location->try_at =
        location->count + FIRST_TRY > 2 * location->count ? location->count + FIRST_TRY : 2 * location->count;
}

/* Writes all calls; late ones get an attribute with their time. */
static void write_all(struct ensio_location *location)
{
    in_order(location);
    write_first(location, location->count);
    location->try_at = FIRST_TRY;
}

static void finish_location(struct ensio_location *location)
{
    in_order(location);
    write_first(location, location->count);
    while (location->next_region < location->region_count)
        ensio_pipeline_item(location, location->regions + location->next_region++);
    if (location->room > spare_room) {
        free(spare);
        spare = location->items;
        spare_room = location->room;
    } else
        free(location->items);
    free(location->regions);
    ensio_pipeline_close(location);
}

/* Called by the writing thread when a location is complete. */
void ensio_close_location(struct ensio_location *location)
{
    ensio_open_location(location);
    ensio_write_ends(location);
    if (ensio_written_count == written_room) {
        written_room = written_room ? 2 * written_room : 256;
        ensio_written = ensio_more(ensio_written, written_room * sizeof *ensio_written);
    }
    struct ensio_written *written = ensio_written + ensio_written_count++;
    *written = (struct ensio_written){.id = location->id, .group = location->group, .thread = location->thread};
    ensio_check(OTF2_EvtWriter_GetNumberOfEvents(location->writer, &written->events), "count events");
    ensio_check(OTF2_Archive_CloseEvtWriter(ensio_plan.archive, location->writer), "write the events of a location");
    /* No definition belongs to a single location, but readers expect the file. */
    OTF2_DefWriter *definitions = OTF2_Archive_GetDefWriter(ensio_plan.archive, location->id);
    if (!definitions)
        ensio_fail("the file of a location cannot be made");
    ensio_check(OTF2_Archive_CloseDefWriter(ensio_plan.archive, definitions), "write the definitions of a location");
    free(location->stack);
    free(location->ends);
    free(location);
}

static void close_group(void)
{
    for (size_t i = 0; i < current_count; i++)
        finish_location(current[i]);
    current_count = 0;
    latest = NULL;
    ensio_pipeline_next_ranks();
}

static struct ensio_location *location_of(uint32_t group, uint16_t thread)
{
    if (latest && latest->thread == thread)
        return latest;
    for (size_t i = 0; i < current_count; i++)
        if (current[i]->thread == thread)
            return latest = current[i];
    if (current_count == current_room) {
        current_room = current_room ? 2 * current_room : 16;
        current = ensio_more(current, current_room * sizeof(struct ensio_location *));
    }
    latest = ensio_more(NULL, sizeof *latest);
    *latest = (struct ensio_location){
        .id = (uint64_t)group << 16 | thread, .group = group, .thread = thread, .try_at = FIRST_TRY};
    if (spare) {
        latest->items = spare;
        latest->room = spare_room;
        spare = NULL;
        spare_room = 0;
    }
    return current[current_count++] = latest;
}

static struct ensio_location *location_of_item(const struct ensio_item *item)
{
    uint32_t per_location = ensio_plan.settings.ranks_per_location;
    return location_of(item->rank / per_location, per_location == 1 ? item->thread : 0);
}

/* Starts the phases and regions of these ranks. Earlier ranks without calls get theirs written first. */
static void start_group(uint32_t group)
{
    uint32_t per_location = ensio_plan.settings.ranks_per_location;
    while (next_region < ensio_plan.region_count && ensio_plan.regions[next_region].rank / per_location <= group) {
        const struct ensio_item *region = ensio_plan.regions + next_region;
        if (has_group && region->rank / per_location != current_group)
            close_group();
        current_group = region->rank / per_location;
        has_group = true;
        struct ensio_location *location = location_of_item(region);
        if (location->region_count == location->region_room) {
            location->region_room = location->region_room ? 2 * location->region_room : 16;
            location->regions = ensio_more(location->regions, location->region_room * sizeof *location->regions);
        }
        location->regions[location->region_count++] = *region;
        next_region++;
    }
    for (size_t i = 0; i < current_count; i++)
        if (current[i]->region_count) /* several ranks may share a location */
            qsort(current[i]->regions, current[i]->region_count, sizeof *current[i]->regions, compare_regions);
    if (has_group && group != current_group)
        close_group();
    current_group = group;
    has_group = true;
}

static void insert(struct ensio_location *location, const struct ensio_item *item)
{
    struct ensio_item *items = location->items;
    size_t low = 0, high = location->count, step = 1;
    if (!location->unsorted && high && before(item, items + high - 1)) {
        while (step < high && before(item, items + high - 1 - step)) {
            high -= step;
            step *= 2;
        }
        if (step < high)
            low = high - 1 - step;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (before(item, items + middle))
                high = middle;
            else
                low = middle + 1;
        }
        location->shifted += location->count - low;
        location->unsorted = location->shifted > MOST_SHIFTS;
        memmove(items + low + 1, items + low, (location->count - low) * sizeof *items);
    } else
        low = location->count;
    items[low] = *item;
    location->count++;
}

void ensio_add(const struct ensio_item *item)
{
    uint32_t per_location = ensio_plan.settings.ranks_per_location;
    uint32_t group = item->rank / per_location;
    if (!has_group || group != current_group) {
        if (has_group && group < current_group)
            ensio_fail("calls do not come by rank");
        start_group(group);
    }
    struct ensio_location *location = location_of(group, per_location == 1 ? item->thread : 0);
    if (location->count == location->room) {
        location->room = location->room ? 2 * location->room : 1024;
        location->items = ensio_more(location->items, location->room * sizeof *location->items);
    }
    insert(location, item);
    /* If ranks share a location, nothing can be written before all of them have arrived. */
    if (item->depth == 0 && per_location == 1 && (!location->has_outer || item->start > location->outer_start)) {
        location->outer_start = item->start;
        location->has_outer = true;
    }
    held++;
    if (location->count >= location->try_at)
        write_sure(location);
    if (held < MOST_HELD)
        return;
    struct ensio_location *fullest = location;
    for (size_t i = 0; i < current_count; i++)
        if (current[i]->count > fullest->count)
            fullest = current[i];
    write_all(fullest);
}

void ensio_finish_locations(void)
{
    start_group(UINT32_MAX);
    close_group();
}
