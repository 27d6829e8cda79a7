#include "other_tracers.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>

/* A loaded object: its addresses, and whether it is the program. */
struct object {
    uintptr_t start, end;
    int program;
};

struct search {
    uintptr_t address;
    struct object found;
};

static struct object tracers[2];
static int tell_is_passed_on; /* a tracer wraps ftell too and passes on the program's calls */

static int contains(const struct object *object, uintptr_t address)
{
    return address >= object->start && address < object->end;
}

static int look_into(struct dl_phdr_info *info, size_t size, void *state)
{
    struct search *search = state;
    struct object object = {.start = UINTPTR_MAX, .program = !*info->dlpi_name};
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type != PT_LOAD)
            continue;
        object.start = start < object.start ? start : object.start;
        object.end = start + info->dlpi_phdr[i].p_memsz > object.end ? start + info->dlpi_phdr[i].p_memsz : object.end;
    }
    if (!contains(&object, search->address))
        return 0;
    search->found = object;
    return 1;
}

static struct object object_with(const void *address)
{
    struct search search = {.address = (uintptr_t)address};
    dl_iterate_phdr(look_into, &search);
    return search.found;
}

/* An object that defines fopen, other than the C library and the program, is a tracer. */
static struct object tracer_at(const void *fopen_found)
{
    const struct object own = object_with((const void *)(uintptr_t)ensio_other_tracers_find);
    const struct object c_library = object_with(dlsym(RTLD_DEFAULT, "__libc_start_main"));
    const struct object object = object_with(fopen_found);
    const int none = !fopen_found || object.program || object.start == own.start || object.start == c_library.start;
    if (none)
        return (struct object){0};
    return object;
}

void ensio_other_tracers_find(void)
{
    tracers[0] = tracer_at(dlsym(RTLD_DEFAULT, "fopen"));
    tracers[1] = tracer_at(dlsym(RTLD_NEXT, "fopen"));
    const struct object teller = tracer_at(dlsym(RTLD_DEFAULT, "ftell"));
    tell_is_passed_on = teller.end != 0;
}

int ensio_tracer_tells(const void *caller)
{
    const uintptr_t address = (uintptr_t)caller;
    if (contains(&tracers[0], address))
        return !tell_is_passed_on;
    return contains(&tracers[1], address);
}
