/* Uses HDF5 in many ways, and says on descriptor 3 what it did: call, bytes asked for, bytes moved, errno, offset or
 * -1. Run in an empty folder. Returns 7. */
#include <errno.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int failures;

static void said(const char *call, size_t bytes, int failed, long long offset)
{
    dprintf(3, "%s %zu %lld %d %lld\n", call, bytes, failed ? -1 : (long long)bytes, 0, offset);
}

static void check(int holds, const char *what)
{
    if (!holds) {
        failures++;
        fprintf(stderr, "%s\n", what);
    }
}

static hid_t opened(const char *call, hid_t id)
{
    said(call, 0, id < 0, -1);
    return id;
}

static void done(const char *call, herr_t status)
{
    said(call, 0, status < 0, -1);
}

static void read_set(hid_t set, hid_t memory, hid_t space, void *data, size_t bytes, long long offset)
{
    said("H5Dread", bytes, H5Dread(set, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, data) < 0, offset);
}

static void write_set(hid_t set, hid_t memory, hid_t space, const void *data, size_t bytes, long long offset)
{
    said("H5Dwrite", bytes, H5Dwrite(set, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, data) < 0, offset);
}

static int numbers[64 * 32], other[64 * 32];

/* The dataset's elements are short, the program's int: bytes are those in the file. */
static void contiguous(hid_t file)
{
    const hsize_t sizes[] = {64, 32}, start[] = {8, 4}, count[] = {16, 8}, few = 128,
                  points[3][2] = {{1, 1}, {5, 5}, {0, 7}}, three = 3;
    hid_t space = H5Screate_simple(2, sizes, NULL), memory = H5Screate_simple(1, &few, NULL),
          small = H5Screate_simple(1, &three, NULL);
    hid_t set = opened("H5Dcreate",
                       H5Dcreate2(file, "contiguous", H5T_STD_I16LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    int status = H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers);
    const long long begin = (long long)H5Dget_offset(set);
    said("H5Dwrite", 64 * 32 * 2, status < 0, begin);
    check(begin > 0, "contiguous data has no offset");
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
    write_set(set, memory, space, numbers, 128 * 2, begin + 2 * (8 * 32 + 4));
    read_set(set, memory, space, other, 128 * 2, begin + 2 * (8 * 32 + 4));
    check(memcmp(numbers, other, 128 * sizeof *numbers) == 0, "a hyperslab was not read as it was written");
    H5Sselect_elements(space, H5S_SELECT_SET, 3, &points[0][0]);
    read_set(set, small, space, other, 3 * 2, -1);
    read_set(set, H5S_ALL, H5S_ALL, other, 64 * 32 * 2, begin);
    H5Sselect_none(space);
    H5Sselect_none(memory);
    read_set(set, memory, space, other, 0, -1);
    done("H5Dflush", H5Dflush(set));
    done("H5Dclose", H5Dclose(set));
    H5Sclose(space);
    H5Sclose(memory);
    H5Sclose(small);
}

/* A read that fails leaves HDF5's stack of errors to the program, as it was. */
static void failing(hid_t file)
{
    const hsize_t wrong = 5;
    hid_t memory = H5Screate_simple(1, &wrong, NULL);
    hid_t set = opened("H5Dopen", H5Dopen2(file, "contiguous", H5P_DEFAULT));
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    read_set(set, memory, H5S_ALL, other, 5 * 2, -1);
    check(H5Eget_num(H5E_DEFAULT) > 0, "the stack of errors is empty after a read that failed");
    done("H5Dclose", H5Dclose(set));
    H5Dread(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, other);
    check(H5Eget_num(H5E_DEFAULT) > 0, "the stack of errors is empty after a read of nothing");
    opened("H5Dopen", H5Dopen2(file, "no such set", H5P_DEFAULT));
    check(H5Eget_num(H5E_DEFAULT) > 0, "the stack of errors is empty after an open that failed");
    H5Eset_auto2(H5E_DEFAULT, (H5E_auto2_t)H5Eprint2, stderr);
    H5Sclose(memory);
}

static void chunked(hid_t file)
{
    const hsize_t sizes[] = {16}, most[] = {H5S_UNLIMITED}, chunk[] = {8}, more[] = {32}, at[] = {8};
    hsize_t stored = 0;
    uint32_t filters = 0;
    hid_t space = H5Screate_simple(1, sizes, most), creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(creation, 1, chunk);
    hid_t group = opened("H5Gcreate", H5Gcreate2(file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    hid_t set =
        opened("H5Dcreate", H5Dcreate2(group, "chunked", H5T_STD_I64BE, space, H5P_DEFAULT, creation, H5P_DEFAULT));
    write_set(set, H5S_ALL, H5S_ALL, numbers, 16 * 8, -1);
    done("H5Dset_extent", H5Dset_extent(set, more));
    read_set(set, H5S_ALL, H5S_ALL, other, 32 * 8, -1);
    said("H5Dwrite_chunk", 64, H5Dwrite_chunk(set, H5P_DEFAULT, 0, at, 64, numbers) < 0, -1);
    H5Dget_chunk_storage_size(set, at, &stored);
    said("H5Dread_chunk", stored, H5Dread_chunk(set, H5P_DEFAULT, at, &filters, other) < 0, -1);
    check(stored == 64 && memcmp(numbers, other, 64) == 0, "a chunk was not read as it was written");
    done("H5Drefresh", H5Drefresh(set));
    done("H5Oclose", H5Oclose(set));
    done("H5Gclose", H5Gclose(group));
    group = opened("H5Gopen", H5Gopen2(file, "group", H5P_DEFAULT));
    set = opened("H5Oopen", H5Oopen(group, "chunked", H5P_DEFAULT));
    read_set(set, H5S_ALL, H5S_ALL, other, 32 * 8, -1);
    const int left = H5Idec_ref(set);
    check(left == 0, "another reference is left");
    done("H5Idec_ref", left);
    done("H5Gclose", H5Gclose(group));
    H5Pclose(creation);
    H5Sclose(space);
}

static void attributes(hid_t file)
{
    const hsize_t size = 10;
    const char *texts[10] = {"one", "two", "three", "", "", "", "", "", "", ""};
    hid_t space = H5Screate_simple(1, &size, NULL), string = H5Tcopy(H5T_C_S1);
    H5Tset_size(string, H5T_VARIABLE);
    hid_t attribute = opened("H5Acreate", H5Acreate2(file, "units", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT));
    said("H5Awrite", 40, H5Awrite(attribute, H5T_NATIVE_INT, numbers) < 0, -1);
    said("H5Aread", 40, H5Aread(attribute, H5T_NATIVE_INT, other) < 0, -1);
    done("H5Aclose", H5Aclose(attribute));
    attribute = opened("H5Aopen", H5Aopen_by_name(file, "group", "missing", H5P_DEFAULT, H5P_DEFAULT));
    attribute = opened("H5Aopen", H5Aopen(file, "units", H5P_DEFAULT));
    said("H5Aread", 40, H5Aread(attribute, H5T_NATIVE_INT, other) < 0, -1);
    done("H5Aclose", H5Aclose(attribute));
    hid_t set = opened("H5Dcreate_anon", H5Dcreate_anon(file, string, space, H5P_DEFAULT, H5P_DEFAULT));
    const size_t reference = H5Tget_size(string);
    said("H5Dwrite", 10 * reference, H5Dwrite(set, string, H5S_ALL, H5S_ALL, H5P_DEFAULT, texts) < 0, -1);
    done("H5Dclose", H5Dclose(set));
    H5Tclose(string);
    H5Sclose(space);
}

/* What is in a file stays open when the file is closed. */
static void closed_early(const char *name)
{
    hid_t file = opened("H5Fopen", H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT));
    hid_t again = opened("H5Freopen", H5Freopen(file));
    hid_t set = opened("H5Dopen", H5Dopen2(again, "/group/chunked", H5P_DEFAULT));
    done("H5Fclose", H5Fclose(file));
    check(chdir("/") == 0, "no way to the root");
    done("H5Fclose", H5Fclose(again));
    read_set(set, H5S_ALL, H5S_ALL, other, 32 * 8, -1);
    done("H5Dclose", H5Dclose(set));
}

int main(void)
{
    const char *name = "a.h5";
    for (int i = 0; i < 64 * 32; i++)
        numbers[i] = i;
    hid_t file = opened("H5Fcreate", H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    contiguous(file);
    failing(file);
    chunked(file);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    attributes(file);
    errno = 1234;
    done("H5Fflush", H5Fflush(file, H5F_SCOPE_GLOBAL));
    done("H5Fclose", H5Fclose(file));
    closed_early(name);
    H5Fopen("missing/b.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
    return failures ? 1 : 7;
}
