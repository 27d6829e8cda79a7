#include "account.h"

#include "sources.h"

#include <core/bounded_string.h>
#include <core/globs.h>
#include <core/private_files.h>
#include <core/rawsys.h>
#include <core/recorder.h>
#include <core/settings.h>
#include <spool/encode.h>
#include <spool/spool.h>
#include <summary/drain.h>

#include <dirent.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Below this, what a process moved without calls is not worth looking at the list of its mappings. */
#define LEAST_BYTES (256U << 10)
#define GO_NOTE 4 /* the build id of a Go program, in a note of the name "Go" */

static struct ensio_account before_the_spool;
struct ensio_account *ensio_account = &before_the_spool;
static struct ensio_own_bytes own_at_begin;
static int counts_from_zero;
static uint64_t facts_of_program; /* those that forked children share */

/* Libraries that most programs have, and those that inspect the machine or talk to a network. */
static const char left_out[] =
    "linux-*:ld-*:ld64*:libc.so*:libm.so*:libdl.so*:libpthread.so*:librt.so*:libgcc_s.so*:libmvec.so*:libgomp.so*:"
    "libquadmath.so*:libutil.so*:libresolv.so*:libhwloc.so*:libnuma.so*:libudev.so*:libsystemd.so*:libevent*:"
    "libopen-*:libpmi*:libucm.so*:libucp.so*:libucs.so*:libuct.so*:libfabric.so*:libcap.so*:lib?san.so*:libubsan.so*";

static int has_go_note(const struct dl_phdr_info *info)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const char *at = (const char *)(info->dlpi_addr + part->p_vaddr), *end = at + part->p_memsz;
        while (part->p_type == PT_NOTE && at + sizeof(ElfW(Nhdr)) + 4 <= end) {
            const ElfW(Nhdr) *note = (const void *)at;
            if (note->n_type == GO_NOTE && memcmp(note + 1, "Go\0", 4) == 0)
                return 1;
            at += sizeof *note + (note->n_namesz + 3U) / 4 * 4 + (note->n_descsz + 3U) / 4 * 4;
        }
    }
    return 0;
}

static int add_library(struct dl_phdr_info *info, size_t size, void *state)
{
    struct ensio_string *all = state;
    const char *name = ensio_base_name(info->dlpi_name ? info->dlpi_name : "");
    const uint32_t bytes = (uint32_t)strnlen(name, 256);
    if (!*name && has_go_note(info))
        facts_of_program |= ENSIO_ACCOUNT_GO;
    if (!*name || bytes == 256 || ensio_listed(name, left_out) || bytes + 2 > all->room - all->length)
        return 0;
    if (all->text[all->length - 1] != '=')
        ensio_add(all, ":");
    ensio_add(all, name);
    return 0;
}

/* Libraries are listed once, at the beginning: later, another thread may hold the dynamic linker's lock and wait for
 * the recorder's. */
static char libraries[2048];
static uint32_t libraries_bytes;

static void look_at_program(void)
{
    struct ensio_string all = ensio_string_in(libraries, sizeof libraries);
#ifndef ENSIO_PRELOAD
    facts_of_program |= ENSIO_ACCOUNT_LINKED;
#endif
    ensio_add(&all, "libraries=");
    dl_iterate_phdr(add_library, &all);
    ensio_add_bytes(&all, "", 1);
    libraries_bytes = all.length;
}

/* Bytes on pipes and terminals do not count as I/O on files. What a launcher connects carries little. */
static uint64_t pipes(void)
{
    uint64_t facts = 0;
    for (int fd = 0; fd < 3 && ensio_settings.rank < 0 && !(facts & ENSIO_ACCOUNT_PIPED_OUT); fd++) {
        struct stat kind = {0};
        const long failed = ENSIO_RAW(SYS_fstat, fd, &kind);
        if (!failed && (S_ISFIFO(kind.st_mode) || S_ISSOCK(kind.st_mode) || (fd && S_ISCHR(kind.st_mode))))
            facts |= fd ? ENSIO_ACCOUNT_PIPED_OUT : ENSIO_ACCOUNT_PIPED_IN;
    }
    return facts;
}

static uint64_t known_facts(void)
{
    return facts_of_program | __atomic_load_n(&ensio_process->facts, __ATOMIC_RELAXED);
}

/* Bytes that were cancelled are not taken off: they may have been made dirty before, by others. */
static struct ensio_kernel_bytes bytes_of(const struct ensio_surroundings *row)
{
    return (struct ensio_kernel_bytes){row->read_by_calls, row->written_by_calls, row->read_bytes, row->write_bytes};
}

/* What a thread, or the process (0), has moved. The counters of one thread, which waits meanwhile, are exact whatever
 * others do. Those of the process are not: other threads move bytes between any two readings. */
struct moved {
    uint32_t thread;
    uint8_t is_seen, is_of_mpi; /* of other threads, below */
    uint64_t read, written;
};
static _Thread_local struct moved caller;
static uint32_t other_count;

static int read_moved(struct moved *moved)
{
    char text[64];
    struct ensio_string path = ensio_string_in(text, sizeof text);
    struct ensio_surroundings row;
    ensio_add(&path, moved->thread ? "/proc/self/task/" : "/proc/self");
    if (moved->thread)
        ensio_add_number(&path, moved->thread);
    ensio_add(&path, "/io");
    if (!ensio_read_io(text, &row))
        return 0;
    moved->read = row.read_by_calls;
    moved->written = row.written_by_calls;
    return 1;
}

static void add_difference(struct moved *sum, const struct moved *from, const struct moved *to)
{
    sum->read += to->read - from->read;
    sum->written += to->written - from->written;
}

#ifdef ENSIO_PRELOAD
/* The calls of MPI's threads are seen. */
static void leave_out_mpi(void)
{
}
static void look_at_others(void)
{
}
static void add_of_others(struct moved *sum)
{
}
#else
/* No recorder that is linked in sees what threads do that MPI begins. Their bytes are left out as long as they live.
 * What those moved that have ended is what the process moved, less what all others did. The order of the readings makes
 * it too small, not too large, if the others move bytes between them. It is not known if a thread has ended that had
 * made recorded calls. */
#define MOST_OTHERS 256
static struct moved others[MOST_OTHERS], all_before;

static int read_all(struct moved *all)
{
    const struct ensio_own_bytes own = ensio_own_bytes;
    *all = (struct moved){0};
    if (other_count == MOST_OTHERS || !read_moved(all))
        return 0;
    all->read -= own.read;
    all->written -= own.written;
    return 1;
}

/* A thread that makes recorded calls was not MPI's. Returns whether it is known what the thread has moved. */
static int look_at(struct moved *other)
{
    const struct moved last = *other, none = {0};
    const int is_read = read_moved(other), is_seen = ensio_cursor_of(other->thread) != NULL;
    struct moved more = {0};
    if (other->is_of_mpi && !other->is_seen) {
        add_difference(&more, &last, is_seen ? &none : other);
        ensio_leave_out_read((int64_t)more.read);
        ensio_leave_out_write(1, (int64_t)more.written);
    }
    other->is_seen |= is_seen;
    return is_read || !other->is_seen;
}

static int add_other(int folder, const struct dirent64 *entry, void *is_of_mpi)
{
    struct moved other = {.thread = (uint32_t)atoi(entry->d_name), .is_of_mpi = is_of_mpi != NULL};
    uint32_t at = 0;
    while (at < other_count && others[at].thread != other.thread)
        at++;
    if (at == other_count && other.thread && other.thread != caller.thread &&
        other.thread != (uint32_t)syscall(SYS_gettid) && (is_of_mpi || look_at(&other)))
        others[other_count++] = other;
    return other_count == MOST_OTHERS;
}

static void leave_out_mpi(void)
{
    for (uint32_t i = 0; i < other_count; i++)
        if (others[i].is_of_mpi)
            look_at(&others[i]);
}

static void look_at_others(void)
{
    uint32_t kept = 0;
    leave_out_mpi();
    for (uint32_t i = 0; i < other_count; i++)
        if (others[i].is_of_mpi)
            others[kept++] = others[i];
    other_count = kept;
    ensio_private_each_entry("/proc/self/task", add_other, NULL);
    if (!read_all(&all_before))
        other_count = MOST_OTHERS;
}

static void add_of_others(struct moved *sum)
{
    struct moved all, rest = {0};
    int is_known = read_all(&all);
    add_difference(&rest, &all_before, &all);
    ensio_private_each_entry("/proc/self/task", add_other, &rest);
    for (uint32_t i = 0; i < other_count; i++) {
        const struct moved last = others[i];
        is_known &= look_at(&others[i]);
        add_difference(&rest, &others[i], &last);
    }
    if (is_known && (int64_t)rest.read > (int64_t)sum->read)
        sum->read = rest.read;
    if (is_known && (int64_t)rest.written > (int64_t)sum->written)
        sum->written = rest.written;
}
#endif

/* Where this thread reads its counters itself, they contain the reading from then on. */
static int64_t look_before(void *unused)
{
    look_at_others();
    const uint64_t own = ensio_own_bytes.read;
    const uint32_t thread = caller.thread;
    if (!read_moved(&caller))
        caller.thread = 0;
    if ((uint32_t)syscall(SYS_gettid) == thread)
        caller.read += ensio_own_bytes.read - own;
    return 0;
}

static int64_t look_after(void *unused)
{
    struct moved sum = {0}, now = caller;
    if (!caller.thread || !read_moved(&now))
        return 0;
    add_difference(&sum, &caller, &now);
    add_of_others(&sum);
    ensio_leave_out_read((int64_t)sum.read);
    ensio_leave_out_write(1, (int64_t)sum.written);
    return 0;
}

void ensio_account_suspend(void)
{
    caller = (struct moved){.thread = (uint32_t)syscall(SYS_gettid)};
    ensio_with_private_files(look_before, NULL);
}

void ensio_account_resume(void)
{
    ensio_with_private_files(look_after, NULL);
}

static int64_t read_counters(void *row)
{
    leave_out_mpi();
    return ensio_read_process(row);
}

static struct ensio_surroundings counters(void)
{
    struct ensio_surroundings row = {0};
    row.read = (uint32_t)ensio_with_private_files(read_counters, &row);
    return row;
}

void ensio_account_prepare(int forked)
{
    counts_from_zero = forked;
    other_count = 0;
    if (!forked)
        look_at_program();
    own_at_begin = ensio_own_bytes;
}

/* What making the spool took of the counters of a forked child is among the recorder's own bytes. */
void ensio_account_begin(void)
{
#ifndef ENSIO_PRELOAD
    ensio_text_store(ENSIO_TEXT_PROPERTIES, 0, libraries, libraries_bytes);
#endif
    ensio_saw(pipes());
    ensio_account->facts = known_facts();
    if (!counts_from_zero) {
        const struct ensio_surroundings row = counters();
        ensio_account->begin = bytes_of(&row);
        own_at_begin = ensio_own_bytes;
    }
    counts_from_zero = 0;
}

static void set(const struct ensio_surroundings *row, uint64_t facts)
{
    ensio_account->end = bytes_of(row);
    ensio_account->own_read = ensio_own_bytes.read - own_at_begin.read;
    ensio_account->own_written = ensio_own_bytes.written - own_at_begin.written;
    const uint64_t sum = ensio_sum_words(ensio_account, offsetof(struct ensio_account, excluded)) ^
                         ensio_sum_words(&ensio_account->own_read, 2 * sizeof(uint64_t));
    facts |= ENSIO_ACCOUNT_TAKEN | ENSIO_ACCOUNT_ON_FILES | known_facts() | sum << 32;
    __atomic_store_n(&ensio_account->facts, facts, __ATOMIC_RELEASE);
}

void ensio_account_sample(const struct ensio_surroundings *row)
{
    struct rusage children;
    const int has_waited = ENSIO_RAW(SYS_getrusage, RUSAGE_CHILDREN, &children) == 0 && children.ru_minflt;
    set(row, has_waited ? ENSIO_ACCOUNT_CHILDREN : 0);
}

static int add_mechanism(char *line, void *unused)
{
    (void)unused;
    if (strstr(line, " /[aio]"))
        ensio_saw(ENSIO_ACCOUNT_AIO);
    if (strstr(line, " anon_inode:[io_uring]"))
        ensio_saw(ENSIO_ACCOUNT_URING);
    return 0;
}

int64_t ensio_account_look(void *unused)
{
    (void)unused;
    ensio_private_each_line("/proc/self/maps", add_mechanism, NULL);
    return 0;
}

/* The second number of the file. */
static int64_t processor_wait_ns(void *unused)
{
    (void)unused;
    const char *text = ensio_source_text("/proc/self/schedstat");
    return text ? (int64_t)ensio_number_after(&text, " ") : 0;
}

static void store_processor_wait(void)
{
    char text[64];
    const int64_t wait_ns = ensio_with_private_files(processor_wait_ns, NULL);
    struct ensio_string property = ensio_string_in(text, sizeof text);
    ensio_add(&property, "processor_wait_ns=");
    ensio_add_number(&property, (uint64_t)wait_ns);
    ensio_add_bytes(&property, "", 1);
    if (wait_ns > 0)
        ensio_text_store(ENSIO_TEXT_PROPERTIES, 0, text, property.length);
}

void ensio_account_take(void)
{
    const struct ensio_surroundings row = counters();
    const struct ensio_kernel_bytes *begin = &ensio_account->begin;
    store_processor_wait();
    if (!row.read)
        return;
    ensio_account_sample(&row);
    if (ensio_account->end.read_bytes + ensio_account->end.write_bytes >
        begin->read_bytes + begin->write_bytes + ensio_spool->allocated_bytes + LEAST_BYTES)
        ensio_with_private_files(ensio_account_look, NULL);
    ensio_account->facts |= known_facts();
}

void ensio_account_store(void)
{
    char text[512];
    const uint64_t *numbers = (const uint64_t *)(const void *)ensio_account;
    const size_t count = offsetof(struct ensio_account, excluded_on_files) / sizeof *numbers;
    struct ensio_string all = ensio_string_in(text, sizeof text);
    ensio_add(&all, "account=");
    for (size_t i = 0; i < count; i++) {
        ensio_add(&all, i ? " " : "");
        ensio_add_number(&all, numbers[i]);
    }
    ensio_add_bytes(&all, "", 1);
    ensio_add(&all, "excluded_on_files=");
    ensio_add_number(&all, ensio_account->excluded_on_files);
    ensio_add_bytes(&all, "", 1);
    ensio_text_store(ENSIO_TEXT_PROPERTIES, 0, text, all.length);
}
