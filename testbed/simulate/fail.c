#include "fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

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
    return memory;
}
