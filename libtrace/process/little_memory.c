#include "little_memory.h"

#include <core/settings.h>

#include <errno.h>
#include <string.h>

static const char variable[] = "LD_PRELOAD=", library[] = "libensio-preload.so", separators[] = " :";

static int is_preloaded(const char *entry)
{
    return strncmp(entry, variable, strlen(variable)) == 0 && strstr(entry, library);
}

/* The loader maps the library before any of its code runs, and the program may not even start. */
size_t ensio_lean_bytes(char *const environment[])
{
    size_t count = 0, bytes = 0;
    for (; environment && environment[count]; count++)
        if (is_preloaded(environment[count]))
            bytes += strlen(environment[count]) + 1;
    return bytes && ensio_memory_is_short() ? (count + 1) * sizeof *environment + bytes : 0;
}

/* Copies LD_PRELOAD without the library: the end of the copy, or `to` if no other library is left. */
static char *copy_others(char *to, const char *entry)
{
    char *end = to;
    for (const char *at = entry + strlen(variable); *at; at += strspn(at, separators)) {
        const size_t length = strcspn(at, separators);
        if (length && !memmem(at, length, library, strlen(library))) {
            end = end == to ? stpcpy(end, variable) : stpcpy(end, ":");
            end = mempcpy(end, at, length);
        }
        at += length;
    }
    return end;
}

char *const *ensio_lean_environment(char *const environment[], void *room)
{
    char **const lean = room;
    const int error = errno;
    size_t count = 0, kept = 0;
    while (environment[count])
        count++;
    char *text = (char *)(lean + count + 1);
    for (size_t i = 0; i < count; i++) {
        char *const end = is_preloaded(environment[i]) ? copy_others(text, environment[i]) : NULL;
        if (end != text)
            lean[kept++] = end ? text : environment[i];
        if (end > text) {
            *end = '\0';
            text = end + 1;
        }
    }
    lean[kept] = NULL;
    ensio_say_memory_is_short("the program that starts now");
    errno = error;
    return lean;
}
