#include "recorder.h"

#include "rawsys.h"

#include <sys/mman.h>

static struct ensio_process nobody;
struct ensio_process *ensio_process = &nobody;

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
    madvise(page, sizeof *page, MADV_WIPEONFORK);
    if (!__atomic_compare_exchange_n(&ensio_process, &none, page, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ensio_raw_unmap(page, sizeof *page);
}

int ensio_owns_memory(void)
{
    int error = errno;
    uint32_t pid = ensio_raw_pid();
    errno = error;
    return pid == __atomic_load_n(&ensio_process->generation, __ATOMIC_RELAXED);
}
