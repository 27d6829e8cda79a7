#include "exchange.h"

#include "fail.h"

#include <inttypes.h>
#include <stdlib.h>

/* One end of a message whose other end has not arrived yet. */
struct message {
    int32_t task; /* the task that has arrived */
    int32_t next; /* of the same pair, -1: none */
};

/* Messages from one task to another for which one end has arrived. */
struct pair {
    uint64_t key; /* 0: free */
    int32_t first;
    int32_t last;
    uint8_t are_sends;
};

struct exchange {
    struct pair *pairs;
    uint64_t room; /* a power of two */
    uint64_t used;
    struct message *messages;
    int32_t message_count;
    int32_t message_room;
    int32_t free_message; /* -1: none */
    int32_t *missing;     /* of each task: messages whose other end is missing */
    int64_t *bytes;       /* of each task: the larger of the bytes sent and received */
    int32_t *handled;     /* of each task: messages that it sends and receives */
};

static void make_exchange(struct simulation *simulation)
{
    struct exchange *made = zeroed(1, sizeof *made, "messages");
    made->room = 1024;
    made->pairs = zeroed(made->room, sizeof *made->pairs, "messages");
    made->free_message = -1;
    made->missing = zeroed((size_t)simulation->plan.tasks, sizeof *made->missing, "messages");
    made->bytes = zeroed((size_t)simulation->plan.tasks, sizeof *made->bytes, "messages");
    made->handled = zeroed((size_t)simulation->plan.tasks, sizeof *made->handled, "messages");
    simulation->exchange = made;
}

static struct pair *slot_of(struct exchange *exchange, uint64_t key)
{
    uint64_t at = key * 0x9e3779b97f4a7c15U >> 20;
    while (exchange->pairs[at & (exchange->room - 1)].key && exchange->pairs[at & (exchange->room - 1)].key != key)
        at++;
    return &exchange->pairs[at & (exchange->room - 1)];
}

static struct pair *pair_of(struct exchange *exchange, int32_t from, int32_t to)
{
    if (2 * exchange->used > exchange->room) {
        struct pair *old = exchange->pairs;
        const uint64_t room = exchange->room;
        exchange->room *= 2;
        exchange->pairs = zeroed(exchange->room, sizeof *old, "messages");
        for (uint64_t i = 0; i < room; i++)
            if (old[i].key)
                *slot_of(exchange, old[i].key) = old[i];
        free(old);
    }
    const uint64_t key = ((uint64_t)(uint32_t)from << 32 | (uint32_t)to) + 1;
    struct pair *pair = slot_of(exchange, key);
    if (!pair->key) {
        *pair = (struct pair){.key = key, .first = -1, .last = -1};
        exchange->used++;
    }
    return pair;
}

static int32_t new_message(struct exchange *exchange, int32_t task)
{
    int32_t number = exchange->free_message;
    if (number >= 0) {
        exchange->free_message = exchange->messages[number].next;
    } else {
        if (exchange->message_count == exchange->message_room) {
            exchange->message_room = exchange->message_room ? 2 * exchange->message_room : 1024;
            exchange->messages =
                realloc(exchange->messages, (size_t)exchange->message_room * sizeof *exchange->messages);
            if (!exchange->messages)
                fail(EXIT_FAILURE, "there is no memory for %d messages: simulate fewer tasks", exchange->message_room);
        }
        number = exchange->message_count++;
    }
    exchange->messages[number] = (struct message){task, -1};
    return number;
}

/* All messages of a task have both ends: it continues when it has handled them one after the other (the overhead of
 * LogP), and their bytes have been transferred. */
static void finish(struct simulation *simulation, int32_t number, int64_t now_ns)
{
    const struct costs *costs = &simulation->costs;
    const double data_ns = 1e9 * (double)simulation->exchange->bytes[number] / costs->message_bytes_per_s;
    const double handled_ns = (double)simulation->exchange->handled[number] * costs->overhead_ns;
    const double lasts_ns = ((double)costs->message_ns + handled_ns + data_ns) * costs->exchange_scale;
    pfs_wait(simulation->model, number, now_ns + 1 + (int64_t)lasts_ns);
}

/* Whether the other end had arrived: the task that waited for it, else -1. */
static int32_t post(struct exchange *exchange, int32_t number, int32_t peer, uint8_t sends)
{
    struct pair *pair = sends ? pair_of(exchange, number, peer) : pair_of(exchange, peer, number);
    if (pair->first >= 0 && pair->are_sends != sends) {
        const int32_t met = pair->first;
        pair->first = exchange->messages[met].next;
        exchange->messages[met].next = exchange->free_message;
        exchange->free_message = met;
        return exchange->messages[met].task;
    }
    const int32_t message = new_message(exchange, number);
    if (pair->first < 0)
        pair->first = message;
    else
        exchange->messages[pair->last].next = message;
    pair->last = message;
    pair->are_sends = sends;
    return -1;
}

void exchange(struct simulation *simulation, int32_t number, int64_t now_ns)
{
    if (!simulation->exchange)
        make_exchange(simulation);
    struct exchange *exchange = simulation->exchange;
    struct task *task = &simulation->tasks[number];
    const struct plan_operation first = task->operation;
    int64_t out = 0, in = 0;
    int32_t missing = 0, handled = 0;
    task->next_operation--;
    while (task->next_operation < task->end_operation) {
        const struct plan_operation operation = plan_operation(&simulation->plan, task->next_operation);
        if (operation.call != first.call || operation.step != first.step)
            break;
        task->next_operation++;
        const int64_t peer = operation.offset;
        if (peer < 0 || peer >= simulation->plan.tasks)
            fail(EXIT_USAGE, "task %" PRId32 " exchanges with task %" PRId64 ", which does not exist", number, peer);
        const uint8_t sends = operation.bytes >= 0;
        if (peer != number) { /* a message of a task to itself is a copy in memory */
            *(sends ? &out : &in) += sends ? operation.bytes : -operation.bytes;
            handled++;
        }
        const int32_t met = post(exchange, number, (int32_t)peer, sends);
        if (met < 0)
            missing++;
        else if (met == number)
            missing--;
        else if (--exchange->missing[met] == 0)
            finish(simulation, met, now_ns);
    }
    exchange->bytes[number] = out > in ? out : in;
    exchange->handled[number] = handled;
    exchange->missing[number] = missing;
    if (!missing)
        finish(simulation, number, now_ns);
}
