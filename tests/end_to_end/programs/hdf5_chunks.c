/* Writes 8 MiB in chunks that stay in HDF5's cache, until the call that the argument names moves them to the file. */
#include <hdf5.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 17, CHUNKS = 8 };

int main(int count, char **arguments)
{
    static double numbers[CHUNKS * CHUNK];
    const hsize_t size[1] = {CHUNKS * CHUNK}, chunk[1] = {CHUNK};
    const char *const by = count > 1 ? arguments[1] : "";
    for (int i = 0; i < CHUNKS * CHUNK; i++)
        numbers[i] = i;
    const hid_t file = H5Fcreate("chunks.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t space = H5Screate_simple(1, size, NULL);
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE), access = H5Pcreate(H5P_DATASET_ACCESS);
    H5Pset_chunk(creation, 1, chunk);
    H5Pset_chunk_cache(access, 521, 64 << 20, 1.0);
    const hid_t set = H5Dcreate2(file, "numbers", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, creation, access);
    if (H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) < 0)
        return 1;
    if (strcmp(by, "H5Fflush") == 0)
        H5Fflush(file, H5F_SCOPE_GLOBAL);
    if (strcmp(by, "H5Idec_ref") == 0)
        H5Idec_ref(set);
    else if (strcmp(by, "H5close") != 0)
        H5Dclose(set);
    if (strcmp(by, "H5close") != 0)
        H5Fclose(file);
    return H5close() < 0;
}
