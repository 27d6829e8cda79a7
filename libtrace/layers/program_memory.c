#include "program_memory.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE_BYTES 4096U /* also fine if pages are larger */
#define NO_SUCH_CHANGE (-1)

/* The kernel copies a signal set before it rejects the unknown operation. No system call filter forbids this call,
 * because libc makes it all the time. */
int ensio_readable(const void *at)
{
    const uintptr_t word = (uintptr_t)at & ~(uintptr_t)7;
    const int before = errno;
    if ((uintptr_t)at < PAGE_BYTES) /* for address 0 there would be no set to copy */
        return 0;
    const int refused = syscall(SYS_rt_sigprocmask, NO_SUCH_CHANGE, word, NULL, _NSIG / 8) == -1 && errno == EFAULT;
    errno = before;
    return !refused;
}

int64_t ensio_path_length(const char *path, uint32_t most, int trusted)
{
    uint32_t length = 0;
    if (trusted)
        return (int64_t)strnlen(path, most);
    while (length < most) {
        const uint32_t page = PAGE_BYTES - (uint32_t)((uintptr_t)(path + length) % PAGE_BYTES);
        const uint32_t room = page < most - length ? page : most - length;
        if (!ensio_readable(path + length))
            return -1;
        const uint32_t found = (uint32_t)strnlen(path + length, room);
        length += found;
        if (found < room)
            break;
    }
    return length;
}
