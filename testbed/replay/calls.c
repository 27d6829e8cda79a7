#include "calls.h"

#include <string.h>

static const struct layer *const layers[] = {&posix_layer,  &stdio_layer,   &mpiio_layer, &hdf5_layer,
                                             &netcdf_layer, &pnetcdf_layer, &mpi_layer,   &task_layer};

/* Whether a name begins with a layer and a dot. */
static int begins_with(const char *name, const struct layer *layer)
{
    size_t length = strlen(layer->name);
    return strncmp(name, layer->name, length) == 0 && name[length] == '.';
}

void call_named(const char *name, const struct layer **layer, const struct call **call)
{
    *layer = NULL;
    *call = NULL;
    for (size_t i = 0; i < sizeof layers / sizeof *layers && !*layer; i++)
        if (begins_with(name, layers[i]))
            *layer = layers[i];
    if (!*layer || !(*layer)->calls)
        return;
    for (const struct call *each = (*layer)->calls; each->name; each++)
        if (strcmp(each->name, name + strlen((*layer)->name) + 1) == 0)
            *call = each;
}

int is_of_layer(const struct plan *plan, const struct plan_operation *operation, const struct layer *layer)
{
    return operation->call != PLAN_FURTHER_BOX && begins_with(plan->calls[operation->call], layer);
}
