/* Makes a call from a function whose frame is 6 MiB long, then, in a thread with a small stack and nothing behind it,
 * from the same function with a short frame. */
#define _GNU_SOURCE
#include <alloca.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { STACK_BYTES = 256 << 10, NOTHING_BYTES = 32 << 20 };

static int fd;

__attribute__((noinline)) static long inner(size_t bytes)
{
    volatile char *const room = alloca(bytes);
    room[0] = 1;
    const long written = write(fd, "x", 1);
    return written + room[0] - 1;
}

__attribute__((noinline)) static long outer(size_t bytes)
{
    const long written = inner(bytes);
    __asm__ volatile("" : : : "memory");
    return written;
}

static void *in_thread(void *unused)
{
    return (void *)(intptr_t)(outer(16) + outer(16));
}

int main(int count, char **arguments)
{
    pthread_attr_t attributes;
    pthread_t thread;
    void *result;
    fd = open(arguments[count - 1], O_CREAT | O_WRONLY, 0600);
    const long first = outer(6 << 20);
    char *const memory = mmap(NULL, STACK_BYTES + NOTHING_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, STACK_BYTES, PROT_READ | PROT_WRITE) != 0)
        return 1;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, memory, STACK_BYTES);
    if (pthread_create(&thread, &attributes, in_thread, NULL) != 0 || pthread_join(thread, &result) != 0)
        return 2;
    return first + (intptr_t)result == 3 ? 0 : 3;
}
