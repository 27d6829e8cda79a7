#include "process.h"

#include <core/rawsys.h>
#include <core/bounded_string.h>

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

static struct shim_state *state; /* NULL: no call is delayed */
static int32_t rank = -1;
/* pid of the process that the memory belongs to, which a child of vfork is not; in a page that fork wipes */
static uint32_t *whose;

static _Thread_local struct shim_caller caller;

static const struct shim_ticket nothing = {.slot = -1};

/* Of the launchers; the first variable that is set counts. */
static const char *const rank_variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK",   "PMI_RANK",
                                             "MV2_COMM_WORLD_RANK",  "ALPS_APP_PE", "SLURM_PROCID",
                                             "PALS_RANKID"};

/* The MPI rank of the process; -1: unknown. */
static int32_t rank_of_process(void)
{
    for (size_t i = 0; i < sizeof rank_variables / sizeof *rank_variables; i++) {
        const char *value = getenv(rank_variables[i]);
        char *end;
        const long number = value ? strtol(value, &end, 10) : -1;
        if (value && end != value && *end == '\0' && number >= 0 && number <= INT32_MAX)
            return (int32_t)number;
    }
    return -1;
}

static void say(const char *why, const char *folder)
{
    char line[8192];
    struct ensio_string message = ensio_string_in(line, sizeof line);
    ensio_add(&message, "ensio-pfs: no call is delayed, because ");
    ensio_add(&message, why);
    ensio_add(&message, folder);
    ensio_add(&message, "; start the program with ensio pfs run.\n");
    syscall(SYS_write, 2, message.text, message.length);
}

static void after_fork_in_child(void)
{
    if (whose)
        *whose = ensio_raw_pid();
}

__attribute__((constructor)) static void at_start(void)
{
    const int before = errno;
    int error = 0;
    const char *folder = getenv("ENSIO_PFS"), *list = getenv("ENSIO_PFS_ROOT");
    if (!folder || !*folder)
        return;
    if (!shim_scope_read(list)) {
        say("ENSIO_PFS_ROOT contains no absolute path of a folder", "");
    } else {
        struct shim_state *mapped = shim_state_map(folder, &error);
        uint32_t *page = mapped ? ensio_raw_memory(4096) : NULL;
        if (page)
            madvise(page, 4096, MADV_WIPEONFORK);
        rank = rank_of_process();
        if (page)
            *page = ensio_raw_pid();
        whose = page;
        pthread_atfork(NULL, NULL, after_fork_in_child);
        if (!mapped)
            say(error == EPROTO ? "another version of ensio made " : "there is no model in ENSIO_PFS=", folder);
        __atomic_store_n(&state, page ? mapped : NULL, __ATOMIC_RELEASE);
    }
    errno = before;
}

int shim_is_on(void)
{
    if (!__atomic_load_n(&state, __ATOMIC_ACQUIRE))
        return 0;
    const int error = errno;
    const uint32_t pid = ensio_raw_pid();
    if (*whose == 0) /* a child of a fork that no handler saw */
        *whose = pid;
    const int own = pid == *whose;
    if (own && caller.pid != (int32_t)pid) {
        caller.pid = (int32_t)pid;
        caller.tid = (int32_t)syscall(SYS_gettid);
        caller.rank = rank;
        caller.slot = 0;
    }
    errno = error;
    return own;
}

void shim_end(struct shim_ticket ticket)
{
    if (ticket.slot >= 0)
        shim_wait(state, ticket);
}

int64_t shim_position(int fd)
{
    const int error = errno;
    const int64_t position = ensio_raw_position(fd);
    errno = error;
    return position;
}

int64_t shim_left(int fd, int from_its_position)
{
    const int error = errno;
    struct stat found;
    const int known = ENSIO_RAW(SYS_fstat, fd, &found) == 0 && S_ISREG(found.st_mode);
    const int64_t position = !known ? -1 : from_its_position ? ensio_raw_position(fd) : 0;
    errno = error;
    return position < 0 ? -1 : found.st_size > position ? found.st_size - position : 0;
}

struct shim_ticket shim_begin_of(uint64_t key, uint16_t operation)
{
    const struct shim_call call = {.operation = operation, .key = key};
    return shim_begin(state, &caller, &call);
}

struct shim_ticket shim_begin_known(const struct shim_file *file, uint16_t operation, int64_t bytes, int64_t offset,
                                    int through)
{
    if (operation == PFS_READ && bytes > file->size - offset)
        bytes = file->size - offset;
    if (bytes <= 0)
        return nothing;
    const struct shim_call call = {
        .operation = operation,
        .through = (uint16_t)(through != 0),
        .key = file->key,
        .offset = offset,
        .bytes = bytes,
    };
    return shim_begin(state, &caller, &call);
}

struct shim_ticket shim_begin_transfer(int fd, uint16_t operation, int64_t bytes, int64_t offset, int sync_flags)
{
    struct shim_file file;
    if (!shim_is_on() || !shim_descriptor_in_scope(fd, &file) || !S_ISREG(file.mode))
        return nothing;
    const int error = errno;
    const int flags = (int)ENSIO_RAW(SYS_fcntl, fd, F_GETFL, 0);
    errno = error;
    if (operation == PFS_WRITE && flags & O_APPEND)
        offset = file.size;
    else if (offset == SHIM_OWN_POSITION)
        offset = shim_position(fd);
    return offset < 0
               ? nothing
               : shim_begin_known(&file, operation, bytes, offset,
                                  (flags & (O_SYNC | O_DSYNC | O_DIRECT)) || (sync_flags & (RWF_SYNC | RWF_DSYNC)));
}

struct shim_ticket shim_begin_on_file(int fd, uint16_t operation)
{
    struct shim_file file;
    if (!shim_is_on() || !shim_descriptor_in_scope(fd, &file))
        return nothing;
    if (S_ISDIR(file.mode))
        return operation == PFS_CLOSE ? nothing : shim_begin_of(0, PFS_META);
    return shim_begin_of(file.key, operation);
}

struct shim_ticket shim_begin_on_path(int folder, const char *path, uint16_t operation)
{
    uint64_t key;
    if (!shim_is_on() || !shim_path_in_scope(folder, path, &key))
        return nothing;
    return shim_begin_of(0, operation);
}

void shim_count_asynchronous(int fd)
{
    struct shim_file file;
    if (shim_is_on() && shim_descriptor_in_scope(fd, &file))
        __atomic_fetch_add(&state->counts.asynchronous, 1, __ATOMIC_RELAXED);
}

struct shim_ticket shim_begin_open(int folder, const char *path, int flags)
{
    uint64_t key;
    struct stat found;
    if (!shim_is_on() || !shim_path_in_scope(folder, path, &key))
        return nothing;
    const int error = errno;
    const long known = flags & O_CREAT ? ENSIO_RAW(SYS_newfstatat, folder, path, &found, 0) : 0;
    errno = error;
    if (flags & O_DIRECTORY)
        return shim_begin_of(0, PFS_META);
    return shim_begin_of(key, known == -ENOENT ? PFS_CREATE : PFS_OPEN);
}
