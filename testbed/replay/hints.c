#include "hints.h"

#include "fail.h"

#include <string.h>

int is_for_hdf5(const struct plan_hint *hint)
{
    return strncmp(hint->key, HDF5_HINTS, strlen(HDF5_HINTS)) == 0;
}

MPI_Info hints_for_mpiio(const struct plan *plan)
{
    MPI_Info info = MPI_INFO_NULL;
    for (long i = 0; i < plan->hint_count; i++) {
        if (is_for_hdf5(&plan->hints[i]))
            continue;
        if (info == MPI_INFO_NULL)
            PMPI_Info_create(&info);
        if (PMPI_Info_set(info, plan->hints[i].key, plan->hints[i].value) != MPI_SUCCESS)
            fail(EXIT_USAGE, "the plan's hint %s = %s is not supported by this MPI", plan->hints[i].key,
                 plan->hints[i].value);
    }
    return info;
}
