#include "modules.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

#define LONGEST_BUILD_ID 64

#if !__GLIBC_PREREQ(2, 35)
struct search {
    uintptr_t address;
    struct ensio_module *module;
};

static int holds(struct dl_phdr_info *object, size_t size, void *state)
{
    (void)size;
    const struct search *search = state;
    uintptr_t low = UINTPTR_MAX, high = 0;
    const uint8_t *frames = NULL;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        const uintptr_t at = object->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_GNU_EH_FRAME)
            frames = (const uint8_t *)at;
        if (part->p_type != PT_LOAD)
            continue;
        low = at < low ? at : low;
        high = at + part->p_memsz > high ? at + part->p_memsz : high;
    }
    if (search->address < low || search->address >= high)
        return 0;
    *search->module =
        (struct ensio_module){(const char *)low, (const char *)high, object->dlpi_addr, object->dlpi_name, frames};
    return 1;
}
#endif

int ensio_module_at(uintptr_t address, struct ensio_module *module)
{
#if __GLIBC_PREREQ(2, 35)
    struct dl_find_object found; /* takes no lock */
    if (_dl_find_object((void *)address, &found) != 0)
        return -1;
    const struct link_map *map = found.dlfo_link_map;
    *module = (struct ensio_module){found.dlfo_map_start, found.dlfo_map_end, map ? map->l_addr : 0,
                                    map && map->l_name ? map->l_name : "", found.dlfo_eh_frame};
    return 0;
#else
    /* cppcheck-suppress ctuuninitvar ; holds() fills it */
    struct search search = {address, module};
    return dl_iterate_phdr(holds, &search) == 1 ? 0 : -1;
#endif
}

static uintptr_t wrappers_start, wrappers_end;

void ensio_wrappers_serve(const char *start, const char *end)
{
    wrappers_start = (uintptr_t)start;
    wrappers_end = (uintptr_t)end;
}

int ensio_module_serves(const struct ensio_module *module, uintptr_t address)
{
    /* A name stands for all that begin with it. */
    static const char *const serving[] = {
        "ld-linux", "ld-musl",  "libc.so",     "libc-2",      "libpthread", "librt.",    "libdl.",    "libstdc++",
        "libc++",   "libgcc_s", "libgfortran", "libquadmath", "libflang",   "libifcore", "libnvf",    "libmpi",
        "libmpich", "libpmpi",  "libfmpich",   "libopen-",    "libompi",    "mca_",      "libmca_",   "libromio",
        "libpmix",  "libuc",    "libhdf5",     "libnetcdf",   "libpnetcdf", "libensio",  "linux-vdso"};
    const char *name = ensio_base_name(module->name);
    for (size_t i = 0; i < sizeof serving / sizeof *serving; i++)
        if (strncmp(name, serving[i], strlen(serving[i])) == 0)
            return 1;
    return address >= wrappers_start && address < wrappers_end;
}

static void add_id(const uint8_t *id, uint32_t length, struct ensio_string *to)
{
    static const char digits[] = "0123456789abcdef";
    for (uint32_t i = 0; i < length; i++) {
        const char two[2] = {digits[id[i] >> 4], digits[id[i] & 15]};
        ensio_add_bytes(to, two, 2);
    }
}

static int add_from_notes(const char *at, uint64_t bytes, struct ensio_string *to)
{
    while (bytes >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, at, sizeof note);
        const uint64_t name = (note.n_namesz + 3U) & ~3U, length = sizeof note + name + ((note.n_descsz + 3U) & ~3U);
        if (length > bytes)
            return 0;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(at + sizeof note, "GNU", 4) == 0 &&
            note.n_descsz > 0 && note.n_descsz <= LONGEST_BUILD_ID) {
            add_id((const uint8_t *)at + sizeof note + name, note.n_descsz, to);
            return 1;
        }
        at += length;
        bytes -= length;
    }
    return 0;
}

/* The program headers lie in the first page of an object, behind its ELF header; the kernel tells those of the
 * program. */
void ensio_module_build_id(const struct ensio_module *module, struct ensio_string *to)
{
    const ElfW(Ehdr) *head = (const void *)module->start;
    const ElfW(Phdr) *parts = NULL;
    uint32_t count = 0;
    if (!*module->name) {
        parts = (const void *)getauxval(AT_PHDR);
        count = (uint32_t)getauxval(AT_PHNUM);
    } else if (memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 && head->e_phentsize == sizeof *parts &&
               head->e_phoff + (uint64_t)head->e_phnum * sizeof *parts <= 4096) {
        parts = (const void *)(module->start + head->e_phoff);
        count = head->e_phnum;
    }
    for (uint32_t i = 0; parts && i < count; i++)
        if (parts[i].p_type == PT_NOTE &&
            add_from_notes((const char *)(module->base + parts[i].p_vaddr), parts[i].p_memsz, to))
            return;
    ensio_add(to, "-");
}
