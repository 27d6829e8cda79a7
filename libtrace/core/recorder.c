#include "recorder.h"

#include "rawsys.h"

#include <sys/mman.h>

#ifdef __x86_64__
#define UNSEEN_VFORKS 0
#else
#define UNSEEN_VFORKS 1 /* no wrapper for vfork (layers/posix/tracked_only.c) */
#endif

static struct ensio_process nobody;
uint32_t ensio_memory_may_be_shared = UNSEEN_VFORKS;
struct ensio_process *ensio_process = &nobody;
uint64_t ensio_known_sites[1 << ENSIO_SITE_BITS];

/* Before the page exists there is nothing to wipe. Older kernels refuse MADV_WIPEONFORK; there the fork handlers reset
 * the state. */
void ensio_process_map(void)
{
    struct ensio_process *none = &nobody;
    if (ensio_process != none)
        return;
    struct ensio_process *page = ensio_raw_memory(sizeof *page);
    if (!page)
        return;
    if (madvise(page, sizeof *page, MADV_WIPEONFORK) != 0)
        ensio_memory_may_be_shared = 1;
    if (!__atomic_compare_exchange_n(&ensio_process, &none, page, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ensio_raw_unmap(page, sizeof *page);
}

void ensio_sites_forget(void)
{
    for (uint32_t i = 0; i < 1 << ENSIO_SITE_BITS; i++)
        __atomic_store_n(&ensio_known_sites[i], 0, __ATOMIC_RELAXED);
}

int ensio_owns_memory(void)
{
    int error = errno;
    uint32_t pid = ensio_raw_pid();
    errno = error;
    return pid == __atomic_load_n(&ensio_process->generation, __ATOMIC_RELAXED);
}
