/* preload.c: the library that LD_PRELOAD names. It needs none, and the recorder is its auxiliary filter: the loader
 * puts the recorder in front of the libraries that the program names, but maps it after them, and does without it where
 * it does not fit: with too little memory, or with another C library. */
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

extern void ensio_preloaded_mark(void) __attribute__((weak));
extern const char *gnu_get_libc_version(void) __attribute__((weak));

static void say(const char *text)
{
    (void)!write(2, text, strlen(text));
}

static int has_limit(__rlimit_resource_t resource)
{
    struct rlimit limit;
    return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

/* Only glibc passes arguments. */
__attribute__((constructor)) static void at_start(int count, char **arguments, char **environment)
{
    static const char disable[] = "ENSIO_DISABLE=";
    if (ensio_preloaded_mark || !gnu_get_libc_version)
        return;
    for (; *environment; environment++) {
        const char *value = *environment + sizeof disable - 1;
        if (strncmp(*environment, disable, sizeof disable - 1) == 0 && *value && strcmp(value, "0") != 0)
            return;
    }
    say("ensio: no I/O is recorded of ");
    const char *const program = count ? arguments[0] : "a program", *const slash = strrchr(program, '/');
    say(slash ? slash + 1 : program);
    const int is_limited = has_limit(RLIMIT_AS) || has_limit(RLIMIT_DATA);
    say(is_limited ? ", whose limit of memory (ulimit -v, -d) leaves less than 16 MiB: raise it.\n"
                   : ", as libensio-recorder.so beside the preload library is missing or does not fit: install ensio "
                     "again.\n");
}
