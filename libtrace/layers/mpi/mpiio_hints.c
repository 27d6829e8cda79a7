/* mpiio_hints.c: the hints of a file: those that the program requested when it opened it, and those in use. */
#include "mpiio.h"
#include "query.h"

#include <core/bounded_string.h>
#include <core/lock.h>
#include <core/rawsys.h>
#include <spool/spool.h>

ENSIO_PMPI_DECLARE(Comm_rank, (uintptr_t comm, int *rank))
ENSIO_PMPI_DECLARE(File_get_info, (uintptr_t file, void *info))
ENSIO_PMPI_DECLARE(Info_free, (void *info))
ENSIO_PMPI_DECLARE(Info_get, (uintptr_t info, const char *key, int room, char *value, int *found))
ENSIO_PMPI_DECLARE(Info_get_nkeys, (uintptr_t info, int *keys))
ENSIO_PMPI_DECLARE(Info_get_nthkey, (uintptr_t info, int number, char *key))

#define FACTS_BYTES 16384
#define LONGEST_KEY 256
#define LONGEST_VALUE 1024

/* File numbers whose hints are stored, up to a limit. */
static uint64_t kept[1024];

static int first_time(uint32_t file)
{
    const uint64_t bit = UINT64_C(1) << file % 64;
    if (file / 64 >= sizeof kept / sizeof *kept)
        return 1;
    return !(__atomic_fetch_or(&kept[file / 64], bit, __ATOMIC_RELAXED) & bit);
}

static void add_hints(struct ensio_string *facts, const char *prefix, uintptr_t info)
{
    char key[LONGEST_KEY + 1], value[LONGEST_VALUE + 1];
    int keys = 0, found = 0;
    if (info == ensio_mpi()->null_info || ENSIO_PMPI(Info_get_nkeys)(info, &keys) != 0)
        return;
    for (int i = 0; i < keys; i++) {
        if (ENSIO_PMPI(Info_get_nthkey)(info, i, key) != 0 ||
            ENSIO_PMPI(Info_get)(info, key, LONGEST_VALUE, value, &found) != 0 || !found)
            continue;
        const struct ensio_string before = *facts;
        ensio_add(facts, prefix);
        ensio_add(facts, key);
        ensio_add(facts, "=");
        ensio_add(facts, value);
        ensio_add_bytes(facts, "", 1); /* the NUL that ends it */
        if (facts->full) {             /* a hint is kept completely or not at all */
            *facts = before;
            return;
        }
    }
}

/* MPI is not called with the recorder's lock held, because a thread that holds MPI's lock may be waiting for it. */
void ensio_mpiio_hints(uint32_t file, uintptr_t comm, uintptr_t asked, uintptr_t handle)
{
    const struct ensio_mpi *mpi = ensio_mpi();
    uintptr_t used = 0;
    int rank = 1;
    if (!file || ENSIO_PMPI(Comm_rank)(comm, &rank) != 0 || rank != 0 || !first_time(file))
        return;
    char *text = ensio_raw_memory(FACTS_BYTES);
    if (!text)
        return;
    struct ensio_string facts = ensio_string_in(text, FACTS_BYTES);
    add_hints(&facts, "asked.", ensio_mpi_handle(mpi, asked));
    if (ENSIO_PMPI(File_get_info)(handle, &used) == 0) {
        add_hints(&facts, "hint.", ensio_mpi_handle(mpi, used));
        if (ensio_mpi_handle(mpi, used) != mpi->null_info)
            ENSIO_PMPI(Info_free)(&used);
    }
    struct ensio_held held = ensio_lock();
    if (facts.length)
        ensio_text_store(ENSIO_TEXT_FILE_FACTS, file, text, facts.length);
    ensio_unlock(held);
    ensio_raw_unmap(text, FACTS_BYTES);
}
