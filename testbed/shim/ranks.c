#include "ranks.h"

#include <stddef.h>
#include <stdlib.h>

/* The first one that is set counts. */
static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK",    "PMI_RANK",   "MV2_COMM_WORLD_RANK",
                                        "ALPS_APP_PE",          "SLURM_PROCID", "PALS_RANKID"};

int32_t shim_rank(const char *(*value_of)(const char *name, void *context), void *context)
{
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = value_of(variables[i], context);
        char *end;
        const long number = value ? strtol(value, &end, 10) : -1;
        if (value && end != value && *end == '\0' && number >= 0 && number <= INT32_MAX)
            return (int32_t)number;
    }
    return -1;
}
