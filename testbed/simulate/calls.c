#include "calls.h"

#include "fail.h"
#include "hdf5_files.h"

#include <inttypes.h>

static int32_t file_in_model(struct simulation *simulation, int64_t number)
{
    if (number < 0)
        return -1;
    struct file *file = &simulation->files[number];
    if (file->model == FILE_UNKNOWN) {
        file->model = pfs_file(simulation->model, (uint64_t)number + 1);
        if (file->model < 0)
            fail(EXIT_FAILURE, "the model has no room for more files than %" PRId64, number);
    }
    return file->model;
}

void leave_call(struct simulation *simulation, int32_t number, int64_t now_ns)
{
    struct task *task = &simulation->tasks[number];
    const struct frame *frame = &task->frames[--task->depth];
    const struct recorded_kind *kind = &recorded_kinds[frame->call];
    const int64_t duration_ns = now_ns - frame->start_ns;
    /* Enclosing calls determine which bytes they count. */
    task->carried = 0;
    for (int i = 0; i < task->depth; i++) {
        const enum recorded_op op = recorded_kinds[task->frames[i].call].op;
        task->carried |= (uint8_t)(op == OP_read ? 1 : op == OP_write ? 2 : 0);
    }
    if (frame->call == NOT_RECORDED)
        return;
    if (task->depth)
        task->frames[task->depth - 1].inner_ns += duration_ns;
    const int has_file = kind->op != OP_wait;
    const struct output_event event = {
        .offset = frame->offset,
        .requested = (uint64_t)frame->bytes,
        .moved = kind->op == OP_read || kind->op == OP_write ? frame->bytes : 0,
        .start = frame->start_ns,
        .duration = duration_ns,
        .rank = (uint32_t)number,
        .file = has_file ? (uint32_t)(task->operation.file + 1) : 0,
        .call = frame->call,
        .depth = task->depth,
        .carried = task->carried,
    };
    output_event(simulation->output, &event, frame->inner_ns);
}

static void enter(struct task *task, int64_t now_ns, int recorded, int64_t offset, int64_t bytes)
{
    if (task->depth == MOST_DEPTH)
        fail(EXIT_FAILURE, "calls are more than %d deep", MOST_DEPTH);
    task->frames[task->depth++] = (struct frame){now_ns, 0, offset, bytes, (uint8_t)recorded};
}

void enter_call(struct simulation *simulation, struct task *task, int64_t now_ns)
{
    const struct step *step = task->step;
    const enum recorded_op op = recorded_kinds[step->recorded].op;
    const struct plan_operation operation = task->operation;
    int64_t offset = -1, bytes = 0;
    if (step->recorded == RECORDED_H5Dcreate)
        hdf5_place_dataset(simulation, &operation);
    if (step->place == PLACE_METADATA || step->place == PLACE_FIRST)
        hdf5_metadata_place(simulation, &operation, step, &offset, &bytes);
    else if (step->recorded == RECORDED_H5Awrite)
        bytes = operation.bytes ? operation.bytes : HDF5_ATTRIBUTE_BYTES;
    else if (step->recorded == RECORDED_fread || step->recorded == RECORDED_fwrite ||
             (op == OP_wait && step->recorded != RECORDED_MPI_Waitall))
        bytes = operation.bytes; /* positions of streams are not recorded */
    else if (op == OP_read || op == OP_write)
        offset = data_offset(simulation, &operation), bytes = task->bytes;
    else if (step->recorded == RECORDED_lseek || step->recorded == RECORDED_MPI_File_seek)
        offset = operation.offset;
    else if (step->recorded == RECORDED_MPI_File_set_size)
        offset = operation.bytes;
    enter(task, now_ns, step->recorded, offset, bytes);
}

void begin_model_call(struct simulation *simulation, int32_t number, int64_t now_ns, int recorded, int operation,
                      int64_t file, int64_t offset, int64_t bytes)
{
    struct task *task = &simulation->tasks[number];
    if (operation == PFS_OPEN && file >= 0 && !simulation->files[file].made) {
        simulation->files[file].made = 1;
        operation = PFS_CREATE;
    }
    const int moves = operation == PFS_READ || operation == PFS_WRITE;
    const struct pfs_call call = {
        .task = number,
        .file = file_in_model(simulation, file),
        .offset = moves ? offset : 0,
        .bytes = moves ? bytes : 0,
        .operation = (uint16_t)operation,
    };
    enter(task, now_ns, recorded, offset, bytes);
    simulation->model_calls++;
    task->in_model = 1;
    pfs_begin(simulation->model, now_ns, &call);
}

void begin_step_call(struct simulation *simulation, int32_t number, int64_t now_ns)
{
    struct task *task = &simulation->tasks[number];
    const struct step *step = task->step++;
    const struct plan_operation operation = task->operation;
    int64_t offset = -1, bytes = 0;
    if (step->place == PLACE_DATA)
        offset = data_offset(simulation, &operation), bytes = operation.bytes;
    else if (step->place != PLACE_FILE)
        hdf5_metadata_place(simulation, &operation, step, &offset, &bytes);
    else if (step->recorded == RECORDED_ftruncate)
        offset = operation.bytes;
    if (step->place == PLACE_METADATA || step->place == PLACE_FIRST)
        hdf5_metadata_done(simulation, &operation, step);
    begin_model_call(simulation, number, now_ns, step->recorded, step->operation, operation.file, offset, bytes);
}

/* One piece after the other, box by box. */
int begin_piece(struct simulation *simulation, int32_t number, int64_t now_ns)
{
    struct task *task = &simulation->tasks[number];
    if (task->box == task->boxes || !task->bytes) {
        task->box = 0;
        task->step++;
        return 0;
    }
    const struct plan_operation box = plan_box(&simulation->plan, task->row, task->box);
    const int64_t pieces = box.pieces * box.planes;
    const int64_t offset =
        data_offset(simulation, &box) + task->at / box.pieces * box.plane_stride + task->at % box.pieces * box.stride;
    if (++task->at == pieces) {
        task->at = 0;
        task->box++;
    }
    begin_model_call(simulation, number, now_ns, task->step->recorded, task->step->operation, box.file, offset,
                     box.bytes / pieces);
    return 1;
}
