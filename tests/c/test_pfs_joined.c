/* Tasks of a node that read the same bytes at the same time share one request. */
#include "pfs_world.h"

#define MIB (INT64_C(1) << 20)
#define SHARED PLAIN "tasks_per_node 2\nshared_reads 1\n"

static const double target_ns = 10.0; /* a byte */

/* Four tasks on two nodes read the same MiB: the target serves as many requests as there are nodes, or as tasks. */
static void a_node_sends_one_request(void)
{
    const struct {
        const char *text;
        int requests;
    } cases[] = {{SHARED, 2}, {PLAIN "tasks_per_node 2\n", 4}};
    for (int i = 0; i < 2; i++) {
        struct pfs *model = world(cases[i].text, 4, 2, 1);
        int file = pfs_file(model, 1);
        for (int task = 0; task < 4; task++)
            begin(model, 0, task, PFS_READ, file, 0, MIB);
        for (int task = 3; task >= 0; task--)
            CHECK(near((double)finish(model, task), cases[i].requests * MIB * target_ns, 2));
        free(model);
    }
}

/* The second task comes when half of the bytes are there, and gets them with the first. Other bytes are a request. */
static void a_later_task_joins_what_is_under_way(void)
{
    struct pfs *model = world(SHARED, 2, 1, 1);
    int file = pfs_file(model, 1);
    int64_t half_ns = MIB * 5;
    begin(model, 0, 0, PFS_READ, file, 0, MIB);
    begin(model, half_ns, 1, PFS_READ, file, 0, MIB);
    CHECK(near((double)finish(model, 1), 2.0 * (double)half_ns, 2));
    int64_t now_ns = finish(model, 0);
    begin(model, now_ns, 0, PFS_READ, file, 0, MIB);
    begin(model, now_ns, 1, PFS_READ, file, 2 * MIB, MIB);
    CHECK(near((double)(finish(model, 0) - now_ns), 2 * MIB * target_ns, 2));
    finish(model, 1);
    free(model);
}

/* Those that have joined a read end when its task leaves; a task that has joined can leave as well. */
static void tasks_leave(void)
{
    for (int leaves = 0; leaves < 3; leaves++) {
        struct pfs *model = world(PLAIN "tasks_per_node 3\nshared_reads 1\n", 3, 1, 1);
        int file = pfs_file(model, 1);
        for (int task = 0; task < 3; task++)
            begin(model, 0, task, PFS_READ, file, 0, MIB);
        pfs_leave(model, leaves);
        for (int task = 0; task < 3; task++)
            if (task != leaves)
                CHECK(finish(model, task) <= MIB * 10 + 2);
        CHECK(near((double)call_ns(model, MIB * 20, leaves, PFS_READ, file, 0, MIB), MIB * target_ns, 2));
        free(model);
    }
}

int main(void)
{
    a_node_sends_one_request();
    a_later_task_joins_what_is_under_way();
    tasks_leave();
    puts("3 passed, 0 failed");
    return 0;
}
