#include "agenda.h"

/* Entries count from 1. Of equal times the queue with the lower number comes first, so that a run can be repeated. */
static int before(const struct agenda_entry *a, const struct agenda_entry *b)
{
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->queue < b->queue;
}

static void put(struct pfs *model, int32_t place, struct agenda_entry entry)
{
    *agenda_at(model, place) = entry;
    queue_at(model, entry.queue)->place = place;
}

static void settle(struct pfs *model, int32_t place, struct agenda_entry entry)
{
    while (place > 1 && before(&entry, agenda_at(model, place / 2))) {
        put(model, place, *agenda_at(model, place / 2));
        place /= 2;
    }
    for (;;) {
        int32_t child = 2 * place;
        if (child > model->agenda_count)
            break;
        if (child < model->agenda_count && before(agenda_at(model, child + 1), agenda_at(model, child)))
            child++;
        if (!before(agenda_at(model, child), &entry))
            break;
        put(model, place, *agenda_at(model, child));
        place = child;
    }
    put(model, place, entry);
}

void agenda_set(struct pfs *model, int32_t queue, int64_t time_ns)
{
    int32_t place = queue_at(model, queue)->place;
    if (!place)
        place = ++model->agenda_count;
    settle(model, place, (struct agenda_entry){.time_ns = time_ns, .queue = queue});
}

void agenda_remove(struct pfs *model, int32_t queue)
{
    int32_t place = queue_at(model, queue)->place;
    if (!place)
        return;
    queue_at(model, queue)->place = 0;
    struct agenda_entry last = *agenda_at(model, model->agenda_count--);
    if (last.queue != queue)
        settle(model, place, last);
}
