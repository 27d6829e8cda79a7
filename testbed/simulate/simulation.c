#include "simulation.h"

#include "calls.h"
#include "exchange.h"
#include "fail.h"
#include "hdf5_files.h"
#include "barrier.h"
#include "streams.h"
#include "twophase.h"

#include <inttypes.h>
#include <string.h>

static void compute(struct simulation *simulation, int32_t number, int64_t now_ns)
{
    const int64_t lasts_ns = simulation->tasks[number].operation.bytes;
    if (lasts_ns < 0 || lasts_ns > INT64_MAX / 2 - now_ns)
        fail(EXIT_USAGE, "task %" PRId32 " computes for %" PRId64 " ns", number, lasts_ns);
    pfs_wait(simulation->model, number, now_ns + lasts_ns);
}

static void begin_operation(struct simulation *simulation, struct task *task, const struct plan_operation *operation)
{
    const struct plan *plan = &simulation->plan;
    task->row = task->next_operation;
    task->boxes = plan_boxes(plan, task->row, task->end_operation);
    task->box = 0;
    task->bytes = operation->bytes;
    for (int64_t box = 1; box < task->boxes; box++)
        task->bytes += plan_box(plan, task->row, box).bytes;
    task->next_operation += task->boxes;
    *simulation->rows_begun += task->boxes;
    task->operation = *operation;
    task->step = simulation->programs[operation->call]->steps;
    if (task->boxes > 1 && strncmp(plan->calls[operation->call], "mpiio.", 6) != 0)
        fail(EXIT_USAGE, "the plan has a %s of several boxes, which calls of MPI-IO can have",
             plan->calls[operation->call]);
}

/* Starts the task's next call, or the barrier at the end of its step of the plan. 0: the task is finished. */
static int next_call(struct simulation *simulation, struct task *task, int64_t now_ns)
{
    const struct plan *plan = &simulation->plan;
    if (task->at_barrier) {
        task->at_barrier = 0;
        task->plan_step++;
    }
    if (task->plan_step == plan->step_count)
        return 0;
    if (task->plan_step == simulation->steps_reached) {
        simulation->phase_start_ns[simulation->steps_reached++] = now_ns;
        plan_forget_pages(plan);
    }
    if (task->next_operation < task->end_operation) {
        const struct plan_operation operation = plan_operation(plan, task->next_operation);
        if (operation.step < task->plan_step)
            fail(EXIT_USAGE, "%s is not a plan: its steps go backwards: make it again with ensio simulate", plan->path);
        if (operation.step == task->plan_step) {
            begin_operation(simulation, task, &operation);
            return 1;
        }
    }
    task->at_barrier = 1;
    task->operation = (struct plan_operation){.file = -1};
    task->step = barrier_program.steps;
    return 1;
}

/* Whether a small write of HDF5 metadata is deferred until the file is closed. */
static int is_deferred(struct simulation *simulation, const struct task *task)
{
    const struct step *step = task->step;
    if (step->place != PLACE_METADATA || step->recorded != RECORDED_MPI_File_write_at)
        return 0;
    const struct plan_operation operation = task->operation;
    return hdf5_defers(simulation, &operation);
}

static int is_for_others(const struct step *step, int32_t number)
{
    return (step->who == ROOT && number) || (step->who == OTHERS && !number);
}

void run_task(struct simulation *simulation, int32_t number, int64_t now_ns)
{
    struct task *task = &simulation->tasks[number];
    for (;;) {
        const struct step *step = task->step;
        if (is_for_others(step, number)) {
            task->step++;
            continue;
        }
        switch ((enum step_kind)step->kind) {
        case STEP_END:
            if (next_call(simulation, task, now_ns))
                continue;
            simulation->tasks_over++;
            simulation->end_ns = now_ns;
            pfs_leave(simulation->model, number);
            return;
        case STEP_ENTER:
            if (is_deferred(simulation, task)) {
                task->step += SMALL_CALL_STEPS;
                continue;
            }
            enter_call(simulation, task, now_ns);
            task->step++;
            continue;
        case STEP_LEAVE:
            leave_call(simulation, number, now_ns);
            task->step++;
            continue;
        case STEP_DELAY:
            task->step++;
            pfs_wait(simulation->model, number, now_ns + simulation->costs.call_ns);
            return;
        case STEP_COMPUTE:
            task->step++;
            compute(simulation, number, now_ns);
            return;
        case STEP_BARRIER:
            barrier_arrive(simulation, number, now_ns);
            return;
        case STEP_CALL:
            begin_step_call(simulation, number, now_ns);
            return;
        case STEP_PIECES:
            if (begin_piece(simulation, number, now_ns))
                return;
            continue;
        case STEP_AGGREGATE:
            if (aggregate(simulation, number, now_ns))
                return;
            task->step++;
            continue;
        case STEP_EXCHANGE:
            task->step++;
            exchange(simulation, number, now_ns);
            return;
        case STEP_FLUSH:
            task->step++;
            if (flush_stream(simulation, number, now_ns))
                return;
            continue;
        case STEP_STREAM_DATA:
            task->step++;
            move_stream_data(simulation, number, now_ns);
            return;
        }
    }
}

static void finish_model_calls(struct simulation *simulation, int64_t now_ns)
{
    int64_t done_ns;
    int32_t number;
    while ((number = pfs_take(simulation->model, &done_ns)) >= 0) {
        if (simulation->tasks[number].in_model)
            leave_call(simulation, number, done_ns);
        simulation->tasks[number].in_model = 0;
        run_task(simulation, number, done_ns > now_ns ? done_ns : now_ns);
    }
}

static const struct step at_the_end[] = {{STEP_END, EVERYBODY, 0, 0, 0}};

static void begin_tasks(struct simulation *simulation)
{
    int64_t next = 0;
    for (int32_t i = 0; i < simulation->plan.tasks; i++) {
        struct task *task = &simulation->tasks[i];
        task->next_operation = next;
        next += plan_count(&simulation->plan, i, simulation->plan.operation_count - next);
        task->end_operation = next;
        task->step = at_the_end;
        task->stream.file = -1;
        pfs_place(simulation->model, i, i / simulation->plan.tasks_per_node);
    }
}

void simulate(struct simulation *simulation)
{
    begin_tasks(simulation);
    for (;;) {
        const int64_t model_ns = pfs_next_ns(simulation->model), everybody_ns = simulation->everybody_ns;
        const int64_t now_ns = model_ns < everybody_ns ? model_ns : everybody_ns;
        if (now_ns == INT64_MAX || simulation->tasks_over == simulation->plan.tasks)
            break; /* later events in the model, such as writing back caches, affect no task */
        pfs_advance(simulation->model, now_ns);
        finish_model_calls(simulation, now_ns);
        if (everybody_ns > now_ns)
            continue;
        simulation->everybody_ns = INT64_MAX;
        for (int32_t i = 0; i < simulation->plan.tasks; i++)
            run_task(simulation, i, now_ns);
        /* some are complete immediately, and the model does not announce them */
        finish_model_calls(simulation, now_ns);
    }
    if (simulation->tasks_over < simulation->plan.tasks)
        fail(EXIT_USAGE,
             "%" PRId32 " of %" PRId32 " tasks wait without end, in step %" PRId32
             " of the plan: a collective call, or one end of a message, is missing",
             simulation->plan.tasks - simulation->tasks_over, simulation->plan.tasks, simulation->steps_reached - 1);
}
