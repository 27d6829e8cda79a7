#include "queue_heap.h"

/* Of equal times the queue with the lower number comes first, so that a run can be repeated. Which of two entries is
 * first cannot be foreseen, so nothing is to branch on it here. */
static inline int before(const struct agenda_entry *a, const struct agenda_entry *b)
{
    return (a->time_ns < b->time_ns) | ((a->time_ns == b->time_ns) & (a->queue < b->queue));
}

static inline int32_t parent_of(int32_t place)
{
    return place / AGENDA_CHILDREN + AGENDA_FIRST - 1;
}

static inline int32_t first_child_of(int32_t place)
{
    return AGENDA_CHILDREN * (place - AGENDA_FIRST + 1);
}

static inline void put(struct pfs *model, int32_t place, struct agenda_entry entry)
{
    *agenda_at(model, place) = entry;
    *agenda_place_at(model, entry.queue) = place;
}

static int32_t first_of_children(const struct pfs *model, int32_t child, int32_t end)
{
    const struct agenda_entry *entries = agenda_at(model, 0);
    if (child + AGENDA_CHILDREN <= end) {
        int32_t a = child + before(&entries[child + 1], &entries[child]);
        int32_t b = child + 2 + before(&entries[child + 3], &entries[child + 2]);
        return before(&entries[b], &entries[a]) ? b : a;
    }
    int32_t first = child;
    while (++child < end)
        if (before(&entries[child], &entries[first]))
            first = child;
    return first;
}

static void settle(struct pfs *model, int32_t place, struct agenda_entry entry)
{
    const int32_t end = AGENDA_FIRST + model->agenda_count;
    while (place > AGENDA_FIRST && before(&entry, agenda_at(model, parent_of(place)))) {
        put(model, place, *agenda_at(model, parent_of(place)));
        place = parent_of(place);
    }
    for (;;) {
        int32_t child = first_child_of(place);
        if (child >= end)
            break;
        child = first_of_children(model, child, end);
        if (!before(agenda_at(model, child), &entry))
            break;
        put(model, place, *agenda_at(model, child));
        place = child;
    }
    put(model, place, entry);
}

void agenda_set(struct pfs *model, int32_t queue, int64_t time_ns)
{
    int32_t place = *agenda_place_at(model, queue);
    if (!place)
        place = AGENDA_FIRST + model->agenda_count++;
    else if (agenda_at(model, place)->time_ns == time_ns)
        return;
    settle(model, place, (struct agenda_entry){.time_ns = time_ns, .queue = queue});
}

void agenda_remove(struct pfs *model, int32_t queue)
{
    int32_t place = *agenda_place_at(model, queue);
    if (!place)
        return;
    *agenda_place_at(model, queue) = 0;
    struct agenda_entry last = *agenda_at(model, AGENDA_FIRST + --model->agenda_count);
    if (last.queue != queue)
        settle(model, place, last);
}
