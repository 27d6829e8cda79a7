/* calls.h: calls of a task begin and return, and are recorded as a recorder would see them. */
#ifndef ENSIO_SIMULATE_CALLS_H
#define ENSIO_SIMULATE_CALLS_H

#include "simulation.h"

/* Begins the recorded call of the task's step, which encloses others. */
void enter_call(struct simulation *simulation, struct task *task, int64_t now_ns);

/* The innermost call of the task returns. */
void leave_call(struct simulation *simulation, int32_t number, int64_t now_ns);

/* Begins the file system call of the task's step. */
void begin_step_call(struct simulation *simulation, int32_t number, int64_t now_ns);

/* Begins a call for the next piece of the task's operation. 0: there is none; the task continues with its next step. */
int begin_piece(struct simulation *simulation, int32_t number, int64_t now_ns);

/* Begins a file system call; the task continues when it is complete. `recorded` may be NOT_RECORDED. */
void begin_model_call(struct simulation *simulation, int32_t number, int64_t now_ns, int recorded, int operation,
                      int64_t file, int64_t offset, int64_t bytes);

#endif
