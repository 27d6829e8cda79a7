/* Writes and reads a file by PnetCDF in all ways of its C interface, on any number of tasks; task 0 says on standard
 * output what it did: call, requested, moved, errno. pnetcdf_calls FILE. */
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 6
#define COLUMNS 10

static int rank;

static void say(const char *call, long requested, long moved, int error)
{
    if (rank == 0)
        printf("%s %ld %ld %d -1\n", call, requested, moved, error);
}

/* A call that must succeed. */
#define DO(name, bytes, call) \
    do { \
        const int status = (call); \
        if (status != NC_NOERR) { \
            fprintf(stderr, "%s: %s\n", #call, ncmpi_strerror(status)); \
            MPI_Abort(MPI_COMM_WORLD, 1); \
        } \
        say(#name, (bytes), (bytes), 0); \
    } while (0)

int main(int count, char **arguments)
{
    int tasks, file, dimensions[2], variable, other, requests[6], statuses[6], number = 42;
    static double doubles[ROWS * COLUMNS], back[ROWS * COLUMNS];
    static int ints[ROWS * COLUMNS];
    char text[] = "degrees";
    MPI_Datatype row;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &tasks);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        doubles[i] = ints[i] = rank * 1000 + i;

    const MPI_Offset mine[2] = {rank * ROWS, 0}, rows[2] = {ROWS, COLUMNS}, some[2] = {2, 3}, stride[2] = {2, 3},
                     map[2] = {1, 2};
    MPI_Offset one[2] = {rank * ROWS, 0}, two[2] = {rank * ROWS + 1, 0}, line[2] = {1, COLUMNS}, part[2] = {1, 4};
    MPI_Offset *firsts[2] = {one, two}, *counts[2] = {line, part};
    const MPI_Offset all = ROWS * COLUMNS;

    DO(ncmpi_create, 0, ncmpi_create(MPI_COMM_WORLD, arguments[1], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
    DO(ncmpi_def_dim, 0, ncmpi_def_dim(file, "row", ROWS * tasks, &dimensions[0]));
    DO(ncmpi_def_dim, 0, ncmpi_def_dim(file, "column", COLUMNS, &dimensions[1]));
    DO(ncmpi_def_var, 0, ncmpi_def_var(file, "field", NC_DOUBLE, 2, dimensions, &variable));
    DO(ncmpi_def_var, 0, ncmpi_def_var(file, "line", NC_SHORT, 1, dimensions + 1, &other));
    DO(ncmpi_put_att, 0, ncmpi_put_att_text(file, variable, "units", strlen(text), text));
    DO(ncmpi_put_att, 0, ncmpi_put_att_int(file, variable, "number", NC_INT, 1, &number));
    DO(ncmpi_put_att, 0, ncmpi_put_att(file, NC_GLOBAL, "any", NC_INT, 1, &number));
    DO(ncmpi_enddef, 0, ncmpi__enddef(file, 0, 4, 0, 4));

    DO(ncmpi_put_vara_all, 8 * all, ncmpi_put_vara_double_all(file, variable, mine, rows, doubles));
    DO(ncmpi_put_vara_all, 8 * all, ncmpi_put_vara_all(file, variable, mine, rows, doubles, all, MPI_DOUBLE));
    DO(ncmpi_put_vars_all, 8 * 6, ncmpi_put_vars_int_all(file, variable, mine, some, stride, ints));
    DO(ncmpi_put_varm_all, 8 * 6, ncmpi_put_varm_double_all(file, variable, mine, some, stride, map, doubles));
    DO(ncmpi_put_var1_all, 8, ncmpi_put_var1_double_all(file, variable, mine, doubles));
    DO(ncmpi_put_varn_all, 8 * (COLUMNS + 4), ncmpi_put_varn_double_all(file, variable, 2, firsts, counts, doubles));
    DO(ncmpi_put_varn_all, 8 * 2, ncmpi_put_varn_double_all(file, variable, 2, firsts, NULL, doubles));
    DO(ncmpi_put_var_all, 2 * COLUMNS, ncmpi_put_var_int_all(file, other, ints));
    MPI_Type_contiguous(COLUMNS, MPI_DOUBLE, &row);
    MPI_Type_commit(&row);
    DO(ncmpi_put_vard, 8 * COLUMNS, ncmpi_put_vard_all(file, variable, row, doubles, COLUMNS, MPI_DOUBLE));
    DO(ncmpi_get_vard, 8 * COLUMNS, ncmpi_get_vard_all(file, variable, row, back, COLUMNS, MPI_DOUBLE));
    int variables[2] = {variable, variable};
    double *pieces[2] = {doubles, doubles};
    DO(ncmpi_mput, 8 * (COLUMNS + 4), ncmpi_mput_vara_double_all(file, 2, variables, firsts, counts, pieces));

    DO(ncmpi_iput_vara, 8 * all, ncmpi_iput_vara_double(file, variable, mine, rows, doubles, &requests[0]));
    DO(ncmpi_iput_var, 8, ncmpi_iput_var1_int(file, variable, mine, ints, &requests[1]));
    DO(ncmpi_iput_vars, 8 * 6, ncmpi_iput_vars_double(file, variable, mine, some, stride, doubles, &requests[2]));
    DO(ncmpi_iput_varn, 8 * (COLUMNS + 4),
       ncmpi_iput_varn_double(file, variable, 2, firsts, counts, doubles, &requests[3]));
    DO(ncmpi_iput_vara, 8 * all, ncmpi_iput_vara(file, variable, mine, rows, doubles, all, MPI_DOUBLE, &requests[4]));
    DO(ncmpi_wait_all, 0, ncmpi_wait_all(file, 5, requests, statuses));
    if (ncmpi_buffer_attach(file, 16 * all) != NC_NOERR)
        return 1;
    DO(ncmpi_bput_vara, 8 * all, ncmpi_bput_vara_double(file, variable, mine, rows, doubles, &requests[0]));
    if (ncmpi_iput_varn_double(file, variable, 2, firsts, NULL, doubles, &requests[1]) != NC_NOERR)
        return 1;
    say("ncmpi_iput_varn", 8 * 2, 0, 0); /* it is cancelled */
    DO(ncmpi_cancel, 0, ncmpi_cancel(file, 1, &requests[1], statuses));
    DO(ncmpi_wait_all, 0, ncmpi_wait_all(file, 1, requests, statuses));
    if (ncmpi_buffer_detach(file) != NC_NOERR)
        return 1;
    DO(ncmpi_sync, 0, ncmpi_sync(file));
    DO(ncmpi_sync_numrecs, 0, ncmpi_sync_numrecs(file));
    DO(ncmpi_flush, 0, ncmpi_flush(file));
    DO(ncmpi_get_vara_all, 8 * all, ncmpi_get_vara_double_all(file, variable, mine, rows, back));
    if (memcmp(back, doubles, sizeof back) != 0)
        fprintf(stderr, "wrong data\n");
    DO(ncmpi_iget_vara, 8 * all, ncmpi_iget_vara_double(file, variable, mine, rows, back, &requests[0]));
    DO(ncmpi_wait_all, 0, ncmpi_wait_all(file, 1, requests, statuses));

    DO(ncmpi_begin_indep_data, 0, ncmpi_begin_indep_data(file));
    DO(ncmpi_put_vara, 8 * all, ncmpi_put_vara_double(file, variable, mine, rows, doubles));
    DO(ncmpi_put_varn, 8 * (COLUMNS + 4), ncmpi_put_varn_double(file, variable, 2, firsts, counts, doubles));
    DO(ncmpi_get_var1, 8, ncmpi_get_var1_double(file, variable, mine, back));
    DO(ncmpi_get_var, 2 * COLUMNS, ncmpi_get_var_int(file, other, ints));
    DO(ncmpi_iget_var, 8, ncmpi_iget_var1_double(file, variable, mine, back, &requests[0]));
    DO(ncmpi_wait, 0, ncmpi_wait(file, 1, requests, statuses));
    DO(ncmpi_end_indep_data, 0, ncmpi_end_indep_data(file));
    DO(ncmpi_get_att, 0, ncmpi_get_att_text(file, variable, "units", text));
    DO(ncmpi_get_att, 0, ncmpi_get_att_int(file, variable, "number", &number));
    DO(ncmpi_redef, 0, ncmpi_redef(file));
    DO(ncmpi_enddef, 0, ncmpi_enddef(file));
    DO(ncmpi_close, 0, ncmpi_close(file));
    if (ncmpi_put_var_double_all(file, variable, doubles) != NC_EBADID)
        fprintf(stderr, "a closed file can be written\n");
    say("ncmpi_put_var_all", 0, -1, 9);
    MPI_Type_free(&row);
    MPI_Finalize();
    return 0;
}
