#include "little_memory.h"

#include "rawsys.h"
#include "settings.h"

#include <string.h>
#include <sys/resource.h>

#define LEAST_BYTES (16 << 20) /* the recorder takes 6 MiB of them */

static const char variable[] = "LD_PRELOAD=", library[] = "libensio-preload.so";

static int is_below(int kind)
{
    struct rlimit limit;
    return ENSIO_RAW(SYS_prlimit64, 0, kind, NULL, &limit) == 0 && limit.rlim_cur < LEAST_BYTES;
}

int ensio_memory_is_short(void)
{
    return is_below(RLIMIT_AS) || is_below(RLIMIT_DATA);
}

void ensio_say_memory_is_short(const char *program)
{
    static int is_said; /* a shell may try the program in each folder of PATH */
    const int error = errno;
    if (!is_said++)
        ensio_say("no I/O is recorded of ", program,
                  ", whose limit of memory is below 16 MiB (ulimit -v, -d): raise it.\n");
    errno = error;
}

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

char *const *ensio_lean_environment(char *const environment[], void *room)
{
    char **const lean = room;
    size_t count = 0;
    while (environment[count])
        count++;
    lean[count] = NULL;
    char *text = (char *)(lean + count + 1);
    for (size_t i = 0; i < count; i++) {
        lean[i] = environment[i];
        if (is_preloaded(lean[i])) {
            const size_t bytes = strlen(lean[i]) + 1;
            lean[i] = memcpy(text, lean[i], bytes);
            text += bytes;
            char *path = strstr(lean[i], library), *const end = path + strcspn(path, " :");
            while (path[-1] != '=' && path[-1] != ' ' && path[-1] != ':')
                path--;
            memmove(path, end, strlen(end) + 1); /* an empty name is none */
        }
    }
    ensio_say_memory_is_short("the program that starts now");
    return lean;
}
