#define _GNU_SOURCE
#include "fail.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define LARGE_BYTES ((size_t)4 << 20)
#define PAGE_BYTES ((uintptr_t)4096)

_Noreturn void fail(int status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("ensio-simulate: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(status);
}

void *zeroed(size_t count, size_t bytes, const char *what)
{
    void *memory = calloc(count ? count : 1, bytes);
    if (!memory)
        fail(EXIT_FAILURE, "there is no memory for %s (%zu times %zu bytes): simulate fewer tasks", what, count, bytes);
    want_large_pages(memory, (count ? count : 1) * bytes);
    return memory;
}

void want_large_pages(void *memory, size_t bytes)
{
    if (bytes < LARGE_BYTES)
        return;
    const uintptr_t begin = ((uintptr_t)memory + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
    const uintptr_t end = ((uintptr_t)memory + bytes) & ~(PAGE_BYTES - 1);
    madvise((void *)begin, end - begin, MADV_HUGEPAGE); /* a hint: without large pages the program is only slower */
}
