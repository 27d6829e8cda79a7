/* variable_calls.h: what parallel NetCDF and PnetCDF do alike, for calls_netcdf.c and calls_pnetcdf.c. They define
 * before: LAYER, the name of the layer; LAYER_TABLE, its table; LIBRARY(function), its name; and LENGTH, the type of
 * lengths. */
#ifndef ENSIO_REPLAY_VARIABLE_CALLS_H
#define ENSIO_REPLAY_VARIABLE_CALLS_H

#include "fail.h"
#include "file_data.h"
#include "hints.h"
#include "variable_blocks.h"

#include <mpi.h>
#include <stdlib.h>

/* 0 if the library returned success, else -1 and the reason. */
static int done(struct call_target *target, int code)
{
    if (code == NC_NOERR)
        return 0;
    snprintf(target->problem, sizeof target->problem, "failed: %s", LIBRARY(strerror)(code));
    return -1;
}

/* The result of a call that creates or opens a file, which frees its hints. */
static int opened(struct call_target *target, int code, int file, MPI_Info info)
{
    target->file->LAYER->file = code == NC_NOERR ? file : -1;
    target->file->LAYER->is_collective = 0; /* of every file that NetCDF opens */
    if (info != MPI_INFO_NULL)
        PMPI_Info_free(&info);
    return done(target, code);
}

static int close_file(struct call_target *target)
{
    int file = target->file->LAYER->file;
    target->file->LAYER->file = -1;
    return done(target, LIBRARY(close)(file));
}

/* Defines the variable of a new file, which is in define mode. */
static int define_variable(struct call_target *target)
{
    struct variable_file *file = target->file->LAYER;
    int dimensions[VARIABLE_DIMENSIONS];
    if (variable_lengths(target, file->lengths))
        return -1;
    const int first = variable_first(file->lengths);
    for (int i = first; i < VARIABLE_DIMENSIONS; i++) {
        const LENGTH length = (LENGTH)file->lengths[i];
        target->made++;
        if (done(target, LIBRARY(def_dim)(file->file, variable_dimensions[i], length, &dimensions[i])))
            return -1;
    }
    return done(target, LIBRARY(def_var)(file->file, VARIABLE, NC_UBYTE, VARIABLE_DIMENSIONS - first,
                                         &dimensions[first], &file->variable));
}

/* Finds the variable; the library has it in memory. */
static int find_variable(struct call_target *target)
{
    struct variable_file *file = target->file->LAYER;
    int dimensions[VARIABLE_DIMENSIONS], count = 0;
    if (done(target, LIBRARY(inq_varid)(file->file, VARIABLE, &file->variable)) ||
        done(target, LIBRARY(inq_varndims)(file->file, file->variable, &count)))
        return -1;
    const int first = VARIABLE_DIMENSIONS - count;
    if (variable_has_dimensions(target, count) ||
        done(target, LIBRARY(inq_vardimid)(file->file, file->variable, &dimensions[first])))
        return -1;
    file->lengths[VARIABLE_BOXES] = 1;
    for (int i = first; i < VARIABLE_DIMENSIONS; i++) {
        LENGTH length;
        if (done(target, LIBRARY(inq_dimlen)(file->file, dimensions[i], &length)))
            return -1;
        file->lengths[i] = (int64_t)length;
    }
    return 0;
}

/* The part of the variable that an operation moves, as the library takes it. */
struct part {
    LENGTH start[VARIABLE_DIMENSIONS];
    LENGTH length[VARIABLE_DIMENSIONS];
};

/* Returns the first dimension that the variable has, or -1 with a problem. */
static int part_of(struct call_target *target, struct part *part)
{
    struct variable_block block;
    if (variable_block_of(target, target->file->LAYER->lengths, &block))
        return -1;
    for (int i = 0; i < VARIABLE_DIMENSIONS; i++) {
        part->start[i] = (LENGTH)block.start[i];
        part->length[i] = (LENGTH)block.count[i];
    }
    return variable_first(target->file->LAYER->lengths);
}

/* The result of a call that moves the bytes of an operation. */
static int moved(struct call_target *target, int code)
{
    if (done(target, code))
        return -1;
    target->moved = plan_bytes(target->operation);
    return 0;
}

static int is_open(const struct open_file *file)
{
    return file->LAYER && file->LAYER->file >= 0;
}

static void look_ahead(const struct plan *plan, struct open_file *files)
{
    for (long i = 0; i < plan->operation_count; i++) {
        const struct plan_operation *operation = &plan->operations[i];
        if (operation->file < 0 || files[operation->file].LAYER || !is_of_layer(plan, operation, &LAYER_TABLE))
            continue;
        struct variable_file *file = calloc(1, sizeof *file);
        if (!file)
            fail(EXIT_FAILURE, "no memory for the file %s", files[operation->file].path);
        file->file = -1;
        files[operation->file].LAYER = file;
    }
}

#define NAMED .on = NAMED_FILE
#define OPEN .on = OPEN_FILE
#define BOXES .on = OPEN_FILE, .in_boxes = 1
#define READ .data = &data_read, BOXES
#define WRITE .data = &data_written, BOXES

#endif
