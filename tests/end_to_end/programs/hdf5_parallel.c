/* All ranks write their rows of one dataset together, and read them back. hdf5_parallel FILE ROWS COLUMNS */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments)
{
    int rank, tasks, wrong = 0;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &tasks);
    const hsize_t rows = strtoull(arguments[2], NULL, 10), columns = strtoull(arguments[3], NULL, 10);
    const hsize_t sizes[] = {rows * (hsize_t)tasks, columns}, start[] = {rows * (hsize_t)rank, 0},
                  part[] = {rows, columns};
    double *data = malloc(rows * columns * sizeof *data), *again = calloc(rows * columns, sizeof *again);
    for (hsize_t i = 0; i < rows * columns; i++)
        data[i] = (double)i + rank * 1e6;
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), transfer = H5Pcreate(H5P_DATASET_XFER);
    H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
    H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
    hid_t file = H5Fcreate(arguments[1], H5F_ACC_TRUNC, H5P_DEFAULT, access);
    hid_t space = H5Screate_simple(2, sizes, NULL), memory = H5Screate_simple(2, part, NULL);
    hid_t set = H5Dcreate2(file, "rows", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, part, NULL);
    int failed = H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, space, transfer, data) < 0;
    failed += H5Dread(set, H5T_NATIVE_DOUBLE, memory, space, transfer, again) < 0;
    for (hsize_t i = 0; i < rows * columns; i++)
        wrong += again[i] != data[i];
    printf("%d %lld %d %d\n", rank, (long long)H5Dget_offset(set), failed, wrong);
    H5Dclose(set);
    H5Sclose(space);
    H5Sclose(memory);
    H5Pclose(transfer);
    H5Pclose(access);
    H5Fclose(file);
    free(data);
    free(again);
    MPI_Finalize();
    return failed || wrong;
}
