/* A shared library that uses HDF5, for programs that have their own, other HDF5. */
#include <hdf5.h>

hid_t create(const char *path)
{
    return H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
}

int fill(hid_t file, const char *name, int count)
{
    static int numbers[100000];
    const hsize_t size = (hsize_t)count;
    hid_t space = H5Screate_simple(1, &size, NULL);
    hid_t set = H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const int status = H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers);
    H5Sclose(space);
    return H5Dclose(set) < 0 ? -1 : status;
}

int finish(hid_t file)
{
    return H5Fclose(file);
}
