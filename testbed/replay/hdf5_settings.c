/* Keys and values of the hints are those of HDF5's functions, as far as they affect the calls that reach the file
 * system. */
#ifdef ENSIO_PARALLEL_HDF5
#define _GNU_SOURCE
#include "hdf5_settings.h"

#include "fail.h"
#include "hints.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static const char *const numbers[] = {"alignment",         "alignment_threshold", "metadata_block_size",
                                      "sieve_buffer_size", "collective_metadata", "defer_metadata",
                                      "chunk_bytes"};

/* The value of a key (without "hdf5."), or NULL if the plan lacks it. */
static const char *value_of(const struct plan *plan, const char *key)
{
    for (long i = 0; i < plan->hint_count; i++)
        if (is_for_hdf5(&plan->hints[i]) && strcmp(plan->hints[i].key + strlen(HDF5_HINTS), key) == 0)
            return plan->hints[i].value;
    return NULL;
}

static unsigned long long number_of(const struct plan *plan, const char *key, unsigned long long otherwise)
{
    const char *value = value_of(plan, key);
    if (!value)
        return otherwise;
    char *end;
    unsigned long long number = strtoull(value, &end, 10);
    if (end == value || *end || strchr(value, '-'))
        fail(EXIT_USAGE, "the plan's hint %s%s is %s, it must be a whole number of at least 0", HDF5_HINTS, key, value);
    return number;
}

static int is_number(const char *key)
{
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(key, numbers[i]) == 0)
            return 1;
    return 0;
}

void hdf5_check_hints(const struct plan *plan)
{
    for (long i = 0; i < plan->hint_count; i++) {
        const struct plan_hint *hint = &plan->hints[i];
        if (!is_for_hdf5(hint))
            continue;
        const char *key = hint->key + strlen(HDF5_HINTS);
        if (is_number(key))
            number_of(plan, key, 0);
        else if (strcmp(key, "libver") != 0)
            fail(EXIT_USAGE, "the plan has the hint %s, which this ensio-replay does not know", hint->key);
        else if (strcmp(hint->value, "latest") != 0 && strcmp(hint->value, "earliest") != 0)
            fail(EXIT_USAGE, "the plan's hint %s is %s: it may be earliest or latest", hint->key, hint->value);
    }
}

/* Metadata stays in memory until it is flushed, or the file is closed. */
static void defer_metadata(hid_t properties)
{
    H5AC_cache_config_t config = {.version = H5AC__CURR_CACHE_CONFIG_VERSION};
    H5Pget_mdc_config(properties, &config);
    config.evictions_enabled = 0;
    config.incr_mode = H5C_incr__off;
    config.flash_incr_mode = H5C_flash_incr__off;
    config.decr_mode = H5C_decr__off;
    H5Pset_mdc_config(properties, &config);
}

hid_t hdf5_file_properties(const struct plan *plan)
{
    hid_t properties = H5Pcreate(H5P_FILE_ACCESS);
    MPI_Info info = hints_for_mpiio(plan);
    H5Pset_fapl_mpio(properties, MPI_COMM_WORLD, info);
    if (info != MPI_INFO_NULL)
        PMPI_Info_free(&info);
    if (value_of(plan, "alignment"))
        H5Pset_alignment(properties, number_of(plan, "alignment_threshold", 0), number_of(plan, "alignment", 1));
    if (value_of(plan, "metadata_block_size"))
        H5Pset_meta_block_size(properties, number_of(plan, "metadata_block_size", 0));
    if (value_of(plan, "sieve_buffer_size"))
        H5Pset_sieve_buf_size(properties, (size_t)number_of(plan, "sieve_buffer_size", 0));
    if (number_of(plan, "collective_metadata", 0)) {
        H5Pset_all_coll_metadata_ops(properties, 1);
        H5Pset_coll_metadata_write(properties, 1);
    }
    if (number_of(plan, "defer_metadata", 0))
        defer_metadata(properties);
    const char *version = value_of(plan, "libver");
    if (version && strcmp(version, "latest") == 0)
        H5Pset_libver_bounds(properties, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    return properties;
}

hid_t hdf5_dataset_properties(const struct plan *plan)
{
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk = number_of(plan, "chunk_bytes", 0);
    H5Pset_fill_time(properties, H5D_FILL_TIME_NEVER); /* the plan's writes fill it */
    if (chunk > 0)
        H5Pset_chunk(properties, 1, &chunk);
    return properties;
}
#else
typedef int no_parallel_hdf5; /* ISO C forbids an empty translation unit */
#endif
