/* resolve.c: finds the functions behind the wrappers of the preload library. */
#include "wrapping.h"

#include <dlfcn.h>
#include <link.h>

struct search {
    const char *symbol;
    const void *own;
    void *found;
};

/* Libraries that were loaded locally, as by Python's extension modules, are not in the global order that RTLD_NEXT
 * follows. */
static int look_into(struct dl_phdr_info *object, size_t size, void *state)
{
    struct search *search = state;
    (void)size;
    void *handle = *object->dlpi_name ? dlopen(object->dlpi_name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    if (!handle)
        return 0;
    void *found = dlsym(handle, search->symbol);
    dlclose(handle);
    Dl_info where;
    if (!found || !dladdr(found, &where) || where.dli_fbase == search->own)
        return 0;
    search->found = found;
    return 1;
}

static void *resolve(void *first, const char *symbol)
{
    void *found = dlsym(first, symbol);
    Dl_info own;
    if (found || !dladdr((void *)(size_t)ensio_resolve, &own))
        return found;
    struct search search = {.symbol = symbol, .own = own.dli_fbase};
    dl_iterate_phdr(look_into, &search);
    return search.found;
}

void *ensio_resolve(const char *symbol)
{
    return resolve(RTLD_NEXT, symbol);
}

void *ensio_resolve_object(const char *symbol)
{
    return resolve(RTLD_DEFAULT, symbol);
}
