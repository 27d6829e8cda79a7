/* Reads and writes two datasets in one call, as HDF5 can since 1.14. Written for headers that may be older. hdf5_multi
 * FILE */
#include <hdf5.h>
#include <string.h>

extern herr_t H5Dwrite_multi(size_t, hid_t[], hid_t[], hid_t[], hid_t[], hid_t, const void *[]);
extern herr_t H5Dread_multi(size_t, hid_t[], hid_t[], hid_t[], hid_t[], hid_t, void *[]);

int main(int count, char **arguments)
{
    static int numbers[2][100], others[2][100];
    const hsize_t sizes[] = {100, 40};
    const void *from[] = {numbers[0], numbers[1]};
    void *to[] = {others[0], others[1]};
    hid_t file = H5Fcreate(arguments[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), sets[2], spaces[2];
    hid_t types[] = {H5T_NATIVE_INT, H5T_NATIVE_INT};
    for (int i = 0; i < 2; i++) {
        spaces[i] = H5Screate_simple(1, &sizes[i], NULL);
        sets[i] = H5Dcreate2(file, i ? "b" : "a", H5T_STD_I16LE, spaces[i], H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    }
    for (int i = 0; i < 100; i++)
        numbers[0][i] = numbers[1][i] = i;
    int failed = H5Dwrite_multi(2, sets, types, spaces, spaces, H5P_DEFAULT, from) < 0;
    failed += H5Dread_multi(2, sets, types, spaces, spaces, H5P_DEFAULT, to) < 0;
    failed += memcmp(numbers[0], others[0], sizeof numbers[0]) != 0;
    return failed || H5Fclose(file) < 0;
}
