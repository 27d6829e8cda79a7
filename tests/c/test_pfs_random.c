/* A hundred thousand random calls under random settings: invariants of every run. */
#include "pfs_world.h"

#include <state.h> /* bytes that reached each target */

#define TASKS 24
#define NODES 6

static const char *const texts[] = {
    "",
    "targets 5\nstripe_MiB 0.25\nstripe_count 3\ncache_MiB 1\nfault.node-serialisation 1\nfault.misaligned-requests 1\n"
    "fault.too-many-writers 1\nwriters_free 2\nwriters_doubling 4\nfault.single-large-call 10\n",
    "targets 3\ncache_MiB 8\nfault.background-load 1\nbackground_period_s 0.01\nfault.strided-readahead "
    "1\npage_cache_MiB 1\n"
    "fault.cache-cliff 1\nfault.close-cost 1\nfault.sync-per-write 2\nfault.slow-target 1\n",
    "targets 1\nmds_threads 2\nfault.metadata-storm 1\nfault.straggler-task 1\nfault.straggler-node "
    "3\nfault.small-requests 1\n"
    "fault.node-serialisation 0.5\n",
    "targets 200\nstripe_MiB 0.0009765625\nlink_MB_per_s 1\nfault.serialised-metadata 1\ncache_MiB 0\n",
};
#define TEXTS ((int)(sizeof texts / sizeof texts[0]))

struct numbers {
    uint64_t state;
};

static uint64_t draw(struct numbers *numbers, uint64_t below)
{
    uint64_t x = numbers->state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (x ^ (x >> 31)) % below;
}

/* A task's next call follows from the task and the number of its calls, so that it does not depend on the order of
 * completion. */
static struct pfs_call next_call(uint64_t seed, int task, long number, const int *files)
{
    static const uint16_t operations[] = {PFS_READ, PFS_READ,   PFS_READ,  PFS_WRITE, PFS_WRITE, PFS_WRITE,
                                          PFS_OPEN, PFS_CREATE, PFS_CLOSE, PFS_SYNC,  PFS_META,  PFS_SEEK};
    struct numbers numbers = {seed ^ ((uint64_t)task << 32) ^ (uint64_t)number};
    struct pfs_call call = {.task = task};
    call.operation = operations[draw(&numbers, sizeof operations / sizeof operations[0])];
    call.file = draw(&numbers, 20) ? files[draw(&numbers, 7)] : -1;
    call.offset = (int64_t)(draw(&numbers, 3) ? (uint64_t)number * 70000 : draw(&numbers, UINT64_C(1) << 40));
    call.bytes = (int64_t)draw(&numbers, UINT64_C(1) << draw(&numbers, 22));
    call.through = !draw(&numbers, 5);
    return call;
}

struct run {
    uint64_t digest;   /* of all completions */
    double moved;      /* bytes that the calls moved */
    double on_targets; /* bytes that reached targets */
    long leaves;
};

/* How a driver advances time: from event to event, or in steps. */
enum manner { BY_EVENTS, BY_SMALL_STEPS, BY_BOTH };

/* Nothing of a task begins between two of its completions. Each driver therefore sees the same calls at the same times,
 * if calls begin at independent times: here 0 to 3 ms after the last completion, on a grid that all drivers share. */
static struct run go(const char *text, uint64_t seed, long calls, enum manner manner, int leaving)
{
    struct pfs *model = world(text, TASKS, NODES, seed);
    struct run run = {0};
    struct numbers numbers = {seed};
    const int64_t grid_ns = MILLISECOND;
    int files[7];
    long made[TASKS] = {0};
    int64_t begins_ns[TASKS], began_ns[TASKS], last_ns[TASKS] = {0};
    int busy[TASKS] = {0};
    for (int i = 0; i < 7; i++)
        files[i] = pfs_file(model, (uint64_t)i * 77);
    for (int task = 0; task < TASKS; task++)
        begins_ns[task] = 0;
    int64_t now_ns = 0;
    for (long done = 0; done < calls;) {
        /* At a point of the grid, due calls begin. */
        for (int task = 0; task < TASKS; task++) {
            if (leaving && busy[task] && !draw(&numbers, 4000)) {
                pfs_leave(model, task);
                run.leaves++;
                busy[task] = 0;
                begins_ns[task] = now_ns;
                done++;
            }
            if (busy[task] || begins_ns[task] > now_ns)
                continue;
            struct pfs_call call = next_call(seed, task, made[task]++, files);
            pfs_begin(model, now_ns, &call);
            began_ns[task] = now_ns;
            busy[task] = 1;
            if (call.operation == PFS_WRITE)
                run.moved += (double)call.bytes;
        }
        now_ns += grid_ns;
        if (manner == BY_SMALL_STEPS || (manner == BY_BOTH && draw(&numbers, 2)))
            for (int64_t step = grid_ns / 7; step < grid_ns; step += grid_ns / 7)
                pfs_advance(model, now_ns - grid_ns + step);
        else if (manner == BY_EVENTS)
            for (int64_t next_ns; (next_ns = pfs_next_ns(model)) <= now_ns;)
                pfs_advance(model, next_ns);
        pfs_advance(model, now_ns);
        int64_t done_ns, before_ns = 0;
        for (int32_t task; (task = pfs_take(model, &done_ns)) >= 0; done++) {
            CHECK(task < TASKS && busy[task]);
            CHECK(done_ns >= began_ns[task] && done_ns <= now_ns && done_ns > last_ns[task] - 1);
            CHECK(done_ns >= before_ns); /* in the order of completion */
            before_ns = last_ns[task] = done_ns;
            busy[task] = 0;
            begins_ns[task] = now_ns + (int64_t)(made[task] % 4) * grid_ns;
            uint64_t one = ((uint64_t)done_ns ^ ((uint64_t)task << 48)) * 0x9e3779b97f4a7c15u + (uint64_t)made[task];
            run.digest += (one ^ (one >> 29)) * 0xbf58476d1ce4e5b9u; /* a sum: ties may come in any order */
        }
    }
    /* No more calls begin: all pending ones complete. */
    for (long steps = 0; pfs_next_ns(model) != INT64_MAX; steps++) {
        CHECK(steps < 10000000);
        pfs_advance(model, pfs_next_ns(model));
    }
    int64_t done_ns;
    for (int task = 0; task < TASKS; task++)
        CHECK(pfs_take_of(model, task, &done_ns) == busy[task]);
    for (int32_t target = 0; target < model->targets; target++)
        run.on_targets += *target_bytes_at(model, target);
    for (int task = 0; task < TASKS; task++)
        CHECK(task_at(model, task)->dirty_bytes == 0);
    for (int node = 0; node < NODES; node++)
        CHECK(node_at(model, node)->active == 0 && node_at(model, node)->waiting == 0);
    CHECK(model->metadata_busy == 0);
    free(model);
    return run;
}

static void every_call_ends_and_nothing_is_left_behind(void)
{
    for (int i = 0; i < TEXTS; i++) {
        struct run run = go(texts[i], 11 + (uint64_t)i, 20000, BY_BOTH, 0);
        CHECK(run.on_targets >= run.moved); /* read data reached it too */
    }
}

static void the_same_calls_end_at_the_same_times_however_time_is_gone_through(void)
{
    for (int i = 0; i < TEXTS; i++) {
        struct run run = go(texts[i], 5, 4000, BY_EVENTS, 0);
        CHECK(go(texts[i], 5, 4000, BY_EVENTS, 0).digest == run.digest);
        CHECK(go(texts[i], 5, 4000, BY_SMALL_STEPS, 0).digest == run.digest);
        CHECK(go(texts[i], 5, 4000, BY_BOTH, 0).digest == run.digest);
        CHECK(go(texts[i], 6, 4000, BY_EVENTS, 0).digest != run.digest);
    }
}

static void tasks_may_leave_in_the_middle_of_a_call(void)
{
    long leaves = 0;
    for (int i = 0; i < TEXTS; i++)
        leaves += go(texts[i], 99, 20000, BY_EVENTS, 1).leaves;
    CHECK(leaves > 50);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A call's own noise is log-normal with mean 1 and the given sigma; another seed gives other numbers, not the same ones
 * to other tasks. */
static void noise_has_its_distribution_and_differs_from_seed_to_seed(void)
{
    enum { CALLS = 10000 };
    const char *text = PLAIN "stream_MB_per_s 1\ncall_noise 0.5\n";
    static double times_s[2][CALLS];
    for (int seed = 0; seed < 2; seed++) {
        struct pfs *model = world(text, CALLS, 1, (uint64_t)seed);
        double sum = 0, sum_of_squares = 0;
        for (int task = 0; task < CALLS; task++) {
            double time_s = (double)call_ns(model, task * 100000 * MILLISECOND, task, PFS_READ, -1, 0, MB) / 1e9;
            times_s[seed][task] = time_s;
            sum += time_s;
            sum_of_squares += log(time_s) * log(time_s);
        }
        CHECK(near(sum / CALLS, 1, 4 * 0.533 / sqrt(CALLS)));
        /* Of the logarithm: mean -sigma^2 / 2, so the expected square is sigma^2 + sigma^4 / 4. */
        CHECK(near(sum_of_squares / CALLS, 0.25 + 0.0625 / 4, 0.02));
        qsort(times_s[seed], CALLS, sizeof times_s[seed][0], by_value);
        free(model);
    }
    int equal = 0;
    for (int i = 0; i < CALLS; i++)
        equal += times_s[0][i] == times_s[1][i];
    CHECK(equal < CALLS / 100);
}

/* A task that leaves releases its share immediately: of 40 ms of work, two calls had done 20 together when one left. */
static void who_leaves_gives_its_share_back(void)
{
    struct pfs *model = world(PLAIN, 2, 1, 1);
    begin(model, 0, 0, PFS_READ, -1, 0, 2 * MB);
    begin(model, 0, 1, PFS_READ, -1, 0, 2 * MB);
    pfs_advance(model, 20 * MILLISECOND);
    pfs_leave(model, 0);
    CHECK(finish(model, 1) == 30 * MILLISECOND);
    CHECK(pfs_next_ns(model) == INT64_MAX);
    begin(model, 100 * MILLISECOND, 0, PFS_READ, -1, 0, 2 * MB);
    CHECK(finish(model, 0) == 120 * MILLISECOND);
    free(model);
}

/* Tasks leave all the time during a long call: more parts than planned for. Calls complete nevertheless. */
static void work_beyond_all_limits_is_done_at_once(void)
{
    struct pfs *model = world("targets 64\ncache_MiB 0\n", 4, 1, 1);
    int file = pfs_file(model, 1);
    begin(model, 0, 0, PFS_READ, file, 0, INT64_C(1) << 30);
    for (int i = 0; model->chunks_left > 0; i++) {
        CHECK(i < 100000);
        begin(model, i, 1 + i % 3, PFS_WRITE, file, 0, INT64_C(1) << 32);
        pfs_leave(model, 1 + i % 3);
    }
    CHECK(call_ns(model, 5000, 1, PFS_META, file, 0, 0) == 0);
    CHECK(finish(model, 0) > 0);
    CHECK(call_ns(model, 1000000 * MILLISECOND, 1, PFS_META, file, 0, 0) > 0);
    free(model);
}

/* The state contains no address: a copy elsewhere continues like the original. */
static void the_state_can_be_moved(void)
{
    struct pfs_settings settings = world_settings(texts[1]);
    struct pfs_limits limits = {.tasks = 8, .nodes = 2, .files = 64};
    size_t bytes = pfs_bytes(&settings, &limits);
    struct pfs *model = world(texts[1], 8, 2, 3);
    char *memory = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    CHECK(memory);
    int file = pfs_file(model, 1);
    for (int task = 0; task < 8; task++)
        begin(model, 0, task, PFS_WRITE, file, task * 5 * MB, 5 * MB);
    pfs_advance(model, pfs_next_ns(model));
    struct pfs *copy = (struct pfs *)(memory + 64);
    memcpy(copy, model, bytes);
    CHECK(pfs_file(copy, 1) == file);
    for (int task = 0; task < 8; task++)
        CHECK(finish(copy, task) == finish(model, task));
    free(model);
    free(memory);
}

static void there_are_as_many_files_as_was_said(void)
{
    struct pfs *model = world("", 1, 1, 1);
    for (int i = 0; i < 64; i++)
        CHECK(pfs_file(model, (uint64_t)i << 32) == i);
    CHECK(pfs_file(model, 12345) == -1);
    for (int i = 0; i < 64; i++)
        CHECK(pfs_file(model, (uint64_t)i << 32) == i);
    free(model);
}

int main(void)
{
    every_call_ends_and_nothing_is_left_behind();
    the_same_calls_end_at_the_same_times_however_time_is_gone_through();
    tasks_may_leave_in_the_middle_of_a_call();
    noise_has_its_distribution_and_differs_from_seed_to_seed();
    who_leaves_gives_its_share_back();
    work_beyond_all_limits_is_done_at_once();
    the_state_can_be_moved();
    there_are_as_many_files_as_was_said();
    puts("8 passed, 0 failed");
    return 0;
}
