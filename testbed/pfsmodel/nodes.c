#include "nodes.h"

#include "calls.h"
#include "noise.h"
#include "sharing.h"

/* Without the fault, calls are served as they come. With it, calls that come together to an idle node form a burst:
 * first one or two of them get the whole node, then the rest share it; or all share it from the start. The choice is
 * drawn for each burst. Later calls wait for the next burst. */

static void enqueue(struct pfs *model, struct node *node, int32_t id)
{
    task_at(model, id)->next = NOBODY;
    if (node->waiting++)
        task_at(model, node->last_waiting)->next = id;
    else
        node->first_waiting = id;
    node->last_waiting = id;
}

static int32_t dequeue(struct pfs *model, struct node *node)
{
    int32_t id = node->first_waiting;
    node->first_waiting = task_at(model, id)->next;
    node->waiting--;
    return id;
}

static void give_up(struct pfs *model, struct node *node, int32_t id)
{
    for (int32_t left = node->waiting; left > 0; left--) {
        int32_t other = dequeue(model, node);
        if (other != id)
            enqueue(model, node, other);
    }
}

static void serve(struct pfs *model, int32_t id, float weight)
{
    struct task *task = task_at(model, id);
    task->served = 1;
    task->state = TASK_RUNNING;
    node_at(model, task->node)->active++;
    call_serve(model, id, weight);
}

/* `count` of the waiting calls get the node exclusively. */
static void serve_some(struct pfs *model, struct node *node, int32_t count)
{
    float weight = (float)node->burst_calls / (float)count;
    if (weight < 1)
        weight = 1;
    while (count-- > 0 && node->waiting > 0)
        serve(model, dequeue(model, node), weight);
}

static int32_t how_many_first(const struct pfs *model, int32_t id, const struct node *node)
{
    const struct pfs_settings *settings = &model->settings;
    double one = settings->one_at_a_time_share, two = settings->two_at_a_time_share;
    double drawn = noise_uniform(model, NOISE_BURST, (uint64_t)id, node->bursts, 0);
    double strength = settings->fault.node_serialisation;
    if (strength > 1 && one + two > 0)
        strength = strength * (one + two) > 1 ? 1 / (one + two) : strength;
    if (drawn < strength * one)
        return 1;
    return drawn < strength * (one + two) ? 2 : node->waiting;
}

/* Serves some of the waiting calls, or all. */
static void serve_next(struct pfs *model, struct node *node, int32_t id)
{
    int32_t first = how_many_first(model, id, node);
    node->rest_comes = first < node->waiting;
    /* The order is drawn too, so that no task is first because of its number. */
    int32_t turns = (int32_t)(noise_uniform(model, NOISE_TURN, (uint64_t)id, node->bursts, 0) * node->waiting);
    node->bursts++;
    while (turns-- > 0)
        enqueue(model, node, dequeue(model, node));
    serve_some(model, node, first);
}

void nodes_gathered(struct pfs *model, int32_t id)
{
    struct node *node = node_at(model, id);
    node->gathering = 0;
    if (node->waiting == 0)
        return;
    node->burst_calls = node->waiting;
    serve_next(model, node, id);
}

static void gather(struct pfs *model, int32_t id)
{
    struct node *node = node_at(model, id);
    int64_t time_ns = model->now_ns + whole(model->settings.gather_us * 1e3);
    node->gathering = sharing_at(model, time_ns, PART_GATHER, id);
    if (!node->gathering)
        nodes_gathered(model, id);
}

void nodes_ask(struct pfs *model, int32_t id)
{
    struct task *task = task_at(model, id);
    struct node *node = node_at(model, task->node);
    if (model->settings.fault.node_serialisation <= 0) {
        serve(model, id, 1);
        return;
    }
    task->state = TASK_WAITING;
    enqueue(model, node, id);
    if (node->active == 0 && !node->gathering)
        gather(model, task->node);
}

void nodes_leave(struct pfs *model, int32_t id)
{
    struct task *task = task_at(model, id);
    struct node *node = node_at(model, task->node);
    if (task->state == TASK_WAITING)
        give_up(model, node, id);
    if (!task->served)
        return;
    task->served = 0;
    if (--node->active > 0 || node->waiting == 0 || node->gathering)
        return;
    if (node->rest_comes)
        serve_next(model, node, task->node);
    else
        gather(model, task->node);
}
