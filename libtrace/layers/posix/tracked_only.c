/* tracked_only.c: the wrappers of calls that are tracked but not recorded, generated from their table; compiled once
 * for --wrap and once for preload. */
#include "posix.h"

#include <calls/calls.h>
#include <core/bounded_string.h>
#include <core/rawsys.h>
#include <core/recorder.h>
#include <core/settings.h>
#include <files/descriptors.h>
#include <files/folders.h>
#include <layers/wrapping.h>
#include <process/lifecycle.h>
#include <sites/sites.h>

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <limits.h>
#include <sched.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <unistd.h>

static void made(int fd)
{
    if ((unsigned)fd >= ensio_descriptor_end || ENSIO_LIKELY(ensio_descriptors[fd] == ENSIO_UNKNOWN))
        return;
    const int error = errno;
    if (ensio_ready(&ensio_thread))
        ensio_forget(fd, fd);
    errno = error;
}

#define UNLOAD(symbol) \
    ENSIO_MAY_BE_MISSING(int, symbol, (void *)) \
    ENSIO_WRAPPER(int, symbol, (void *library)) \
    { \
        const int result = ENSIO_REAL(symbol)(library); \
        if (ensio_ready(&ensio_thread)) \
            ensio_sites_check(); \
        return result; \
    }

/* Functions of liburing and libaio, which call the kernel without the C library. They return minus an errno. */
#define RING(fact, symbol, parameters, arguments) \
    ENSIO_MAY_BE_MISSING(int, symbol, parameters) \
    ENSIO_WRAPPER(int, symbol, parameters) \
    { \
        const int result = ENSIO_REAL(symbol) ? ENSIO_REAL(symbol) arguments : -ENOSYS; \
        if (result >= 0 && ensio_ready(&ensio_thread)) \
            ensio_saw(ENSIO_ACCOUNT_##fact); \
        return result; \
    }

#define NOTED(note, symbol, type, parameters, arguments) \
    ENSIO_WRAPPER(type, symbol, parameters) \
    { \
        if (ENSIO_LIKELY(ensio_ready(&ensio_thread))) { \
            const int error = errno; \
            note; \
            errno = error; \
        } \
        return ENSIO_REAL(symbol) arguments; \
    }
#define FORGET(symbol, type, parameters, arguments, first, last) \
    ENSIO_MAY_BE_MISSING(type, symbol, parameters) \
    NOTED(ensio_forget((first), (last)), symbol, type, parameters, arguments)
#define MOVES(...) NOTED(ensio_descriptor_moved(fd, -1), __VA_ARGS__)

#define MOVES_FORMATTED(symbol, parameters, last, real, arguments) \
    ENSIO_WRAPPER(int, symbol, parameters) \
    { \
        va_list values; \
        va_start(values, last); \
        if (ENSIO_LIKELY(ensio_ready(&ensio_thread))) \
            ensio_descriptor_moved(fd, -1); \
        const int result = ENSIO_REAL(real) arguments; \
        va_end(values); \
        return result; \
    }

/* A descriptor that was closed unseen may return with another meaning. In the usual case it is unknown, and the check
 * costs one load. */
#define MAKES(symbol, parameters, arguments, first, second) \
    ENSIO_WRAPPER(int, symbol, parameters) \
    { \
        const int result = ENSIO_REAL(symbol) arguments; \
        if (result >= 0) { \
            made(first); \
            made(second); \
        } \
        return result; \
    }

/* Leaves the name of a program to `ensio run`, which looks there for the reason if nothing is recorded. Shells and
 * launchers do so, too. A symbolic link takes no descriptor, and a child of vfork may make it. */
static void leave_name(const char *program)
{
    char name[ENSIO_PATH_ROOM], link[ENSIO_PATH_ROOM];
    const char *const folder = getenv("ENSIO_STARTED");
    struct ensio_string path = ensio_string_in(name, sizeof name), place = ensio_string_in(link, sizeof link);
    if (!folder || !program)
        return;
    if (*program != '/' && strchr(program, '/') && ENSIO_RAW(SYS_getcwd, name, sizeof name) > 0) {
        path.length = (uint32_t)strlen(name);
        ensio_add(&path, "/");
    }
    ensio_add(&path, program);
    ensio_add(&place, folder);
    ensio_add(&place, "/");
    ensio_add_number(&place, ensio_hash(name));
    if (!path.full && !place.full)
        (void)ENSIO_RAW(SYS_symlinkat, name, AT_FDCWD, link);
}

/* The preload library in the environment of a program that starts, or NULL. */
static char *find_us(char *entry)
{
    return strncmp(entry, "LD_PRELOAD=", 11) == 0 ? strstr(entry, "libensio-preload.so") : NULL;
}

/* A program with little memory starts without the recorder, which costs memory as soon as it is loaded. The room for
 * its environment, or 0: the recorder comes along. */
static size_t room_without_us(const char *program, char *const environment[])
{
    size_t count = 0, length = 0;
    for (; environment && environment[count]; count++)
        if (find_us(environment[count]))
            length = strlen(environment[count]) + 1;
    if (!length || (program && strchr(program, '/') && ENSIO_RAW(SYS_faccessat, AT_FDCWD, program, X_OK) != 0) ||
        !ensio_lacks_memory(program ? program : "a program"))
        return 0;
    return (count + 1) * sizeof *environment + length;
}

static char *const *leave_us(char *const environment[], char **kept, size_t room)
{
    size_t count = 0;
    for (char *const *entry = environment; *entry; entry++) {
        char *us = find_us(kept[count++] = *entry);
        if (!us)
            continue;
        char *const text = (char *)kept + room - strlen(*entry) - 1, *const end = us + strcspn(us, ": ");
        while (!strchr("=: ", us[-1]))
            us--;
        memcpy(text, *entry, (size_t)(us - *entry));
        strcpy(text + (us - *entry), end);
        kept[count - 1] = text;
    }
    kept[count] = NULL;
    return kept;
}

#define STARTS(program) \
    leave_name(program); \
    const size_t room = room_without_us(program, environment); \
    if (room) \
    environment = leave_us(environment, __builtin_alloca(room), room)

/* Noted before the call, because the child runs during it, and exec does not return. */
#define SPAWN_AFTER(before, symbol, type, parameters, arguments) \
    ENSIO_WRAPPER(type, symbol, parameters) \
    { \
        if (ENSIO_LIKELY(ensio_ready(&ensio_thread))) \
            ensio_spawned(); \
        before; \
        return ENSIO_REAL(symbol) arguments; \
    }
#define SPAWN(...) SPAWN_AFTER((void)0, __VA_ARGS__)
#define SPAWN_WITH(...) SPAWN_AFTER(STARTS(path), __VA_ARGS__)

#define PROGRAM(first) _Generic((first), const char * : (first), default : NULL)
#define HAND_OVER \
    int handed_over = 0; \
    if (ENSIO_LIKELY(ensio_ready(&ensio_thread))) { \
        ensio_spawned(); \
        handed_over = ensio_hand_over(); \
    }
#define EXEC_BODY(real, first, arguments) \
    STARTS(PROGRAM(first)); \
    HAND_OVER \
    const int result = ENSIO_REAL(real)(first, arguments, environment); \
    if (handed_over) \
        ensio_take_back(); \
    return result;

#define EXEC(symbol, first, name) \
    ENSIO_WRAPPER(int, symbol, (first, char *const arguments[], char *const environment[])) \
    { \
        EXEC_BODY(symbol, name, arguments) \
    }

/* As the C library does it, with the environment of this process. */
#define EXEC_HERE(symbol, name, real) \
    ENSIO_WRAPPER(int, symbol, (const char *name, char *const arguments[])) \
    { \
        char *const *environment = environ; \
        EXEC_BODY(real, name, arguments) \
    }

/* The same with a vector on the stack. */
#define EXEC_LIST(symbol, name, real, with_environment) \
    ENSIO_WRAPPER(int, symbol, (const char *name, const char *word, ...)) \
    { \
        va_list more; \
        size_t count = 0; \
        va_start(more, word); \
        for (const char *next = word; next; next = va_arg(more, const char *)) \
            count++; \
        va_end(more); \
        char **words = __builtin_alloca((count + 1) * sizeof *words); \
        va_start(more, word); \
        words[0] = (char *)(uintptr_t)word; \
        for (size_t i = 1; i <= count; i++) \
            words[i] = va_arg(more, char *); \
        char *const *environment = (with_environment) ? va_arg(more, char **) : environ; \
        va_end(more); \
        EXEC_BODY(real, name, words) \
    }

/* The parent ends within the call, without passing a wrapper. In the child, the standard streams are replaced. */
#define DAEMON(symbol) \
    ENSIO_WRAPPER(int, symbol, (int stays_here, int keeps_streams)) \
    { \
        HAND_OVER \
        ensio_folder_change_begin(); \
        const int result = ENSIO_REAL(symbol)(stays_here, keeps_streams); \
        const int error = errno; \
        ensio_folder_change_end(); \
        if (handed_over) \
            ensio_take_back(); \
        if (!keeps_streams && ensio_ready(&ensio_thread)) \
            ensio_forget(0, 2); \
        errno = error; \
        return result; \
    }

/* The name of the working folder depends on the root, and on the right to read the folders above it. */
#define FOLDER_AFTER(before, symbol, type, parameters, arguments) \
    ENSIO_WRAPPER(type, symbol, parameters) \
    { \
        before; \
        ensio_folder_change_begin(); \
        type const result = ENSIO_REAL(symbol) arguments; \
        ensio_folder_change_end(); \
        return result; \
    }
#define FOLDER(...) FOLDER_AFTER((void)0, __VA_ARGS__)
#define RIGHTS(...) FOLDER_AFTER(if (ENSIO_LIKELY(ensio_ready(&ensio_thread))) ensio_rights_end(), __VA_ARGS__)

#define OWN_FOLDER(symbol, parameters, arguments) \
    ENSIO_WRAPPER(int, symbol, parameters) \
    { \
        if (ENSIO_LIKELY(ensio_ready(&ensio_thread))) \
            ensio_rights_end(); \
        ensio_folder_never_known(); \
        return ENSIO_REAL(symbol) arguments; \
    }

/* vfork returns twice from the same frame, so its wrapper must have none: it notes the call and jumps to the real
 * function, which returns to the caller. */
#define VFORK(symbol) \
    ENSIO_REAL_DECLARE(int, symbol, (void)) \
    __attribute__((used)) static void *before_##symbol(void) __asm__("ensio_before_" #symbol); \
    static void *before_##symbol(void) \
    { \
        __atomic_store_n(&ensio_memory_may_be_shared, 1, __ATOMIC_RELAXED); \
        return (void *)ENSIO_REAL(symbol); \
    } \
    __attribute__((visibility("default"), naked)) int ensio_##symbol(void) __asm__(ENSIO_LINK_NAME(symbol)); \
    int ensio_##symbol(void) \
    { \
        __asm__("subq $8, %rsp\n\t.cfi_adjust_cfa_offset 8\n\tcall ensio_before_" #symbol \
                "\n\taddq $8, %rsp\n\t.cfi_adjust_cfa_offset -8\n\tjmp *%rax"); \
    }

/* A child may have the memory, and not the folder or the descriptors, or the other way round. */
#define CLONE(symbol) \
    ENSIO_WRAPPER(int, symbol, (int (*run)(void *), void *stack, int flags, void *given, ...)) \
    { \
        va_list more; \
        va_start(more, given); \
        pid_t *const parent = va_arg(more, pid_t *); \
        void *const local = va_arg(more, void *); \
        pid_t *const child = va_arg(more, pid_t *); \
        va_end(more); \
        if (flags & CLONE_VM && !(flags & CLONE_THREAD)) \
            __atomic_store_n(&ensio_memory_may_be_shared, 1, __ATOMIC_RELAXED); \
        if (flags & (CLONE_FS | CLONE_FILES | CLONE_VM)) \
            ensio_folder_never_known(); \
        return ENSIO_REAL(symbol)(run, stack, flags, given, parent, local, child); \
    }

#define END(symbol, parameters, arguments) \
    ENSIO_WRAPPER(void, symbol, parameters) \
    { \
        ensio_end(); \
        ENSIO_REAL(symbol) arguments; \
    }

#include <calls/tracked_only.def>

void ensio_tracked_only_resolve(void)
{
#ifdef ENSIO_PRELOAD
#undef SYMBOL
#define SYMBOL(symbol) (void)ENSIO_REAL(symbol);
#define RING(fact, symbol, parameters, arguments) /* found when it is called: most programs do not have it */
#include <calls/tracked_only.def>
#endif
}
