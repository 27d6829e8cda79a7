#define _GNU_SOURCE
#include "calls.h"

#include <errno.h>
#include <time.h>

#define NS_PER_S 1000000000

static int make_compute(struct call_target *target, long count)
{
    struct timespec left = {target->operation->bytes / NS_PER_S, target->operation->bytes % NS_PER_S};
    (void)count;
    while (nanosleep(&left, &left))
        if (errno != EINTR)
            return -1;
    return 0;
}

static const struct call calls[] = {
    {.name = "compute", .make = make_compute, .is_idle = 1},
    {.name = NULL},
};

const struct layer task_layer = {.name = "task", .calls = calls};
