/* The time that calls spent in recorded calls inside them. */
#include "recorder_world.h"

#include <summary/exclusive_time.h>

#include <stdlib.h>

#define RATE (1ULL << ENSIO_RATE_BITS) /* a tick is a nanosecond */

/* A random tree of calls in order of completion: each call's time inside is the sum of its direct children. */
static struct ensio_event events[400];
static uint64_t inside[400];
static uint32_t count;
static uint64_t now;

static uint64_t make_calls(uint32_t depth)
{
    struct ensio_event call = {.start = now, .call = WORLD_READ, .depth = (uint8_t)depth};
    uint64_t children = 0;
    now += (uint64_t)rand() % 3; /* often no time passes before the first call inside */
    for (int i = rand() % 4; i > 0 && depth < 14 && count < 380; i--) {
        children += make_calls(depth + 1);
        now += 1 + (uint64_t)rand() % 5;
    }
    call.duration = now - call.start;
    events[count] = call;
    inside[count++] = children;
    return call.duration;
}

static void exclusive_time(void)
{
    static struct ensio_nested_time nested;
    srand(11);
    for (int round = 0; round < 300; round++) {
        count = 0;
        nested = (struct ensio_nested_time){0};
        while (count < 300) {
            make_calls(0);
            now += 10;
        }
        for (uint32_t i = 0; i < count; i++) {
            CHECK(ensio_nested_time_take(&nested, &events[i], events, RATE) == inside[i]);
            if (events[i].depth)
                ensio_nested_time_add(&nested, &events[i], events[i].duration);
        }
        CHECK(nested.depths == 0);
    }
}

/* Calls inside one that is not recorded do not count for a later one; depths beyond the last level share it. */
static void unrecorded_parent(void)
{
    struct ensio_nested_time nested = {0};
    struct ensio_event slots[3] = {world_event(WORLD_READ, 10, 5, 1), world_event(WORLD_READ, 30, 5, 1),
                                   world_event(WORLD_READ, 20, 25, 1)};
    slots[0].depth = slots[1].depth = 1;
    ensio_nested_time_add(&nested, &slots[0], 5);
    ensio_nested_time_add(&nested, &slots[1], 5);
    CHECK(ensio_nested_time_take(&nested, &slots[2], slots, RATE) == 5 && nested.depths == 0);
    slots[0].depth = 200;
    slots[1].depth = ENSIO_LEVELS - 1;
    ensio_nested_time_add(&nested, &slots[0], 5);
    ensio_nested_time_add(&nested, &slots[1], 7);
    slots[2].start = 5;
    CHECK(ensio_nested_time_take(&nested, &slots[2], slots, RATE) == 12 && nested.depths == 0);
}

/* Requests that overlap each other inside one call take no more than its time, and only what lies in it. */
static void overlapping_calls(void)
{
    struct ensio_nested_time nested = {0};
    struct ensio_event slots[4] = {world_event(WORLD_READ, 12, 80, 1), world_event(WORLD_READ, 11, 88, 1),
                                   world_event(WORLD_READ, 60, 90, 1), world_event(WORLD_READ, 10, 90, 1)};
    for (int i = 0; i < 3; i++) {
        slots[i].depth = 1;
        ensio_nested_time_add(&nested, &slots[i], slots[i].duration);
    }
    CHECK(ensio_nested_time_take(&nested, &slots[3], slots, RATE) == 89 && nested.depths == 0);
}

/* A request of non-blocking I/O is stored late, so that its start lies before those of calls inside the next one. */
static void request_stored_late(void)
{
    struct ensio_nested_time nested = {0};
    struct ensio_event slots[4] = {world_event(WORLD_READ, 102, 5, 1), world_event(WORLD_READ, 3, 5, 1),
                                   world_event(WORLD_READ, 110, 7, 1), world_event(WORLD_READ, 100, 50, 1)};
    for (int i = 0; i < 3; i++) {
        slots[i].depth = 1;
        ensio_nested_time_add(&nested, &slots[i], slots[i].duration);
    }
    CHECK(ensio_nested_time_take(&nested, &slots[3], slots, RATE) == 12 && nested.depths == 0);
}

int main(void)
{
    CASE(overlapping_calls);
    CASE(request_stored_late);
    CASE(exclusive_time);
    CASE(unrecorded_parent);
    return 0;
}
