/* Writes a dataset of a thousand integers into writes.h5. */
#include <hdf5.h>

int main(void)
{
    static int values[1000];
    hsize_t length = 1000;
    hid_t file = H5Fcreate("writes.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(1, &length, NULL);
    hid_t data = H5Dcreate2(file, "data", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    int failed = H5Dwrite(data, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0;
    H5Dclose(data);
    H5Sclose(space);
    return failed || H5Fclose(file) < 0;
}
