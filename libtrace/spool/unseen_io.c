#include "unseen_io.h"

#include "spool.h"

#include <core/bounded_string.h>
#include <core/private_files.h>
#include <core/rawsys.h>

#include <link.h>
#include <stdlib.h>
#include <string.h>

struct counts {
    uint64_t read, written;
};

static struct counts at_begin;

static int count_line(char *line, void *state)
{
    struct counts *counts = state;
    if (strncmp(line, "rchar: ", 7) == 0)
        counts->read = strtoull(line + 7, NULL, 10);
    else if (strncmp(line, "wchar: ", 7) == 0)
        counts->written = strtoull(line + 7, NULL, 10);
    return 0;
}

static int64_t count(void *state)
{
    ensio_private_each_line("/proc/self/io", count_line, state);
    return 0;
}

static struct counts counted(void)
{
    struct counts counts = {0, 0};
    ensio_with_private_files(count, &counts);
    return counts;
}

/* Libraries that most programs have, and those that inspect the machine or talk to a network. */
static const char left_out[] =
    "linux-*:ld-*:ld64*:libc.so*:libm.so*:libdl.so*:libpthread.so*:librt.so*:libgcc_s.so*:libmvec.so*:libgomp.so*:"
    "libquadmath.so*:libutil.so*:libresolv.so*:libhwloc.so*:libnuma.so*:libudev.so*:libsystemd.so*:libevent*:"
    "libopen-*:libpmi*:libucm.so*:libucp.so*:libucs.so*:libuct.so*:libfabric.so*:libcap.so*:lib?san.so*:libubsan.so*";

static int add_library(struct dl_phdr_info *info, size_t size, void *state)
{
    struct ensio_string *all = state;
    const char *name = ensio_base_name(info->dlpi_name ? info->dlpi_name : "");
    const uint32_t bytes = (uint32_t)strnlen(name, 256);
    if (!*name || bytes == 256 || ensio_listed(name, left_out) || bytes + 2 > all->room - all->length)
        return 0;
    if (all->text[all->length - 1] != '=')
        ensio_add(all, ":");
    ensio_add(all, name);
    return 0;
}

/* Libraries are listed once, at the beginning: later, another thread may hold the dynamic linker's lock and wait for
 * the recorder's. */
static char libraries[2048];
static uint32_t libraries_bytes;

static void list_libraries(void)
{
    struct ensio_string all = ensio_string_in(libraries, sizeof libraries);
    ensio_add(&all, "libraries=");
    dl_iterate_phdr(add_library, &all);
    ensio_add_bytes(&all, "", 1);
    libraries_bytes = all.length;
}

void ensio_unseen_io_begin(int forked)
{
    static const struct counts none;
    at_begin = forked ? none : counted();
    if (!forked)
        list_libraries();
}

void ensio_unseen_io_libraries(void)
{
    ensio_text_store(ENSIO_TEXT_PROPERTIES, 0, libraries, libraries_bytes);
}

void ensio_unseen_io_store(void)
{
    char text[64];
    const struct counts now = counted();
    struct ensio_string all = ensio_string_in(text, sizeof text);
    if (now.read < at_begin.read || now.written < at_begin.written)
        return;
    ensio_add(&all, "chars=");
    ensio_add_number(&all, now.read - at_begin.read);
    ensio_add(&all, " ");
    ensio_add_number(&all, now.written - at_begin.written);
    ensio_add_bytes(&all, "", 1);
    ensio_text_store(ENSIO_TEXT_PROPERTIES, 0, text, all.length);
}
