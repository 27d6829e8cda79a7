#define _GNU_SOURCE
#include "as_recorded.h"

#include "data_pattern.h"
#include "fail.h"
#include "file_data.h"
#include "unrecorded.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S INT64_C(1000000000)
/* The bytes at an offset come again after so many: a prime, so that data at a wrong offset are other data, and few, so
 * that they stay in the cache as the buffers of programs do. */
#define PERIOD 65521
/* A sleep may take so much longer than asked for: the rest is waited for on the processor. A call that takes so long
 * may have waited for one. */
#define LATE_NS 100000

struct making {
    const struct plan *plan;
    unsigned char *written, *read;
    int64_t returned_ns; /* when the last call returned */
    int64_t outside_ns;  /* outside of calls, since the last waiting */
    int64_t waited_ns;   /* for a processor so far, as the kernel counts */
    int counter;         /* the file of that; -1: there is none */
    int waits;           /* the file for calls that waited for a processor: pairs of their number and the time, ns */
    int64_t number;      /* of the call */
};

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* The time that the task waited for a processor since it was asked last. */
static int64_t waited_ns(struct making *making)
{
    char text[64] = "";
    const int64_t before = making->waited_ns;
    if (syscall(SYS_pread64, making->counter, text, sizeof text - 1, 0) > 0 && strchr(text, ' '))
        making->waited_ns = strtoll(strchr(text, ' '), NULL, 10);
    return making->waited_ns - before;
}

static unsigned char *allocate(int64_t bytes)
{
    unsigned char *memory = aligned_alloc(4096, ((size_t)bytes + 4095) / 4096 * 4096 + 4096);
    if (!memory)
        fail(EXIT_FAILURE, "no memory for %" PRId64 " bytes", bytes);
    memset(memory, 0, (size_t)bytes);
    return memory;
}

/* Waits until the time outside of calls is that of the recorded program: what the replay itself took is part of it. */
static void think(struct making *making, int64_t recorded_ns)
{
    int64_t now = now_ns();
    const int64_t until = now + recorded_ns - making->outside_ns - (now - making->returned_ns);
    if (until - now > 2 * LATE_NS) {
        const int64_t sleep_ns = until - now - LATE_NS;
        struct timespec left = {sleep_ns / NS_PER_S, sleep_ns % NS_PER_S};
        while (nanosleep(&left, &left) && errno == EINTR)
            ;
    }
    do
        now = now_ns();
    while (now < until);
    making->outside_ns = now - until;
    making->returned_ns = now;
}

static int64_t room_for(const struct plan *plan, const struct call *call, const struct plan_operation *operation)
{
    return call->data ? call->data->room(plan, operation) : 0;
}

/* A descriptor from before the record, or from a process that started this one. */
static void open_unseen(struct open_file *file)
{
    file->descriptor = (int)syscall(SYS_openat, AT_FDCWD, file->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file->descriptor < 0)
        file->descriptor = unrecorded_open(file->path);
}

static void make_one(struct making *making, const struct call *call, const struct layer *layer,
                     struct call_target *target)
{
    const struct plan_operation *operation = target->operation;
    struct open_file *file = target->file;
    if (layer == &posix_layer && call->on == OPEN_FILE && file->descriptor < 0)
        open_unseen(file);
    if (layer == &posix_layer && call->at_position && file->position != operation->offset)
        syscall(SYS_lseek, file->descriptor, operation->offset, SEEK_SET);
    if (call->on == OPEN_FILE && !layer->is_open(file)) {
        if (operation->plane_stride)
            return;
        fail(EXIT_FAILURE, "rank %d: %s is not open at a %s", making->plan->rank, file->path,
             making->plan->calls[operation->call]);
    }
    if (layer == &mpiio_layer && call->at_position)
        mpiio_seek(file, operation->offset);
    const int64_t start = now_ns();
    making->outside_ns += start - making->returned_ns;
    if (start - making->returned_ns > LATE_NS)
        waited_ns(making);
    const int error = call->make(target, 1) ? errno : 0;
    making->returned_ns = now_ns();
    if (making->returned_ns - start > LATE_NS) {
        const int64_t wait[] = {making->number, waited_ns(making)};
        unrecorded_write(making->waits, wait, wait[1] > 0 ? sizeof wait : 0);
    }
    making->number++;
    if (call->at_position)
        file->position = operation->offset + target->moved;
    if ((error || target->problem[0]) && !operation->plane_stride)
        fail(EXIT_FAILURE, "rank %d: %s of %s failed, other than in the recorded run: %s", making->plan->rank,
             making->plan->calls[operation->call], file ? file->path : "no file",
             target->problem[0] ? target->problem : strerror(error));
}

void make_as_recorded(const char *path, const struct plan *plan, const struct layer *const *layers,
                      const struct call *const *calls, struct open_file *files, struct step_result *result)
{
    struct making making = {.plan = plan, .counter = unrecorded_open("/proc/thread-self/schedstat")};
    char name[4096];
    snprintf(name, sizeof name, "%s.waits-%d", path, plan->rank);
    making.waits = (int)syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int64_t most = 1;
    for (const struct plan_operation *at = plan->operations; at < plan->operations + plan->operation_count;
         at = plan_next(at)) {
        const int64_t room = room_for(plan, calls[at->call], at);
        most = room > most ? room : most;
    }
    making.written = allocate(most + PERIOD);
    making.read = allocate(most);
    data_pattern_fill(plan->seed, 0, 0, PERIOD, making.written);
    for (int64_t at = PERIOD; at < most + PERIOD; at++)
        making.written[at] = making.written[at - PERIOD];

    int ready = 1;
    PMPI_Allreduce(MPI_IN_PLACE, &ready, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    const double start = PMPI_Wtime();
    making.returned_ns = now_ns();
    waited_ns(&making);
    for (const struct plan_operation *at = plan->operations; at < plan->operations + plan->operation_count;
         at = plan_next(at)) {
        const struct call *call = calls[at->call];
        if (call->is_idle) {
            think(&making, at->bytes);
            continue;
        }
        struct call_target target = {.plan = plan, .operation = at, .file = at->file < 0 ? NULL : &files[at->file]};
        target.is_single = 1;
        /* The content is that of where the run had the bytes. */
        target.data = call->data == &data_written ? making.written + at->stride % PERIOD : making.read;
        make_one(&making, call, layers[at->call], &target);
        result->calls += target.made;
        result->bytes += target.moved;
    }
    result->calls_s = PMPI_Wtime() - start;
    PMPI_Allreduce(MPI_IN_PLACE, &ready, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    result->barrier_s = PMPI_Wtime() - start;
    unrecorded_close(making.counter);
    unrecorded_close(making.waits);
    free(making.written);
    free(making.read);
}
