/* The open files behind descriptors: agreement with the kernel for any sequence of opening, duplicating and closing. */
#include "recorder_world.h"

#include <core/globs.h>
#include <core/lock.h>
#include <files/descriptors.h>
#include <files/folders.h>
#include <files/names.h>
#include <files/paths.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST 200 /* the test's descriptors are FIRST to END - 1 */
#define END 220
#define STEPS 20000

static void begin(void)
{
    world_begin_with_spool(ENSIO_TRACE);
}

static const char *path_of(int number)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/%d", world_folder(), number);
    return path;
}

/* The caller holds the lock. */
static uint32_t opened(int fd, const char *path, int flags)
{
    const struct ensio_named named = ensio_name_look_up(AT_FDCWD, path, (uint32_t)strlen(path));
    return ensio_descriptor_opened(fd, &named, flags, 0);
}

/* As the wrapper of open does, but on a given number. */
static void open_on(int fd, const char *path, int flags)
{
    const int made = open(path, flags | O_CREAT, 0600);
    CHECK(made >= 0 && dup2(made, fd) == fd && close(made) == 0);
    struct ensio_held held = ensio_lock();
    ensio_descriptors_forget((unsigned)fd, (unsigned)fd);
    CHECK(opened(fd, path, flags) > ENSIO_LEFT_OUT);
    ensio_unlock(held);
}

static void duplicate(int old, int copy)
{
    CHECK(dup2(old, copy) == copy);
    struct ensio_held held = ensio_lock();
    ensio_descriptor_duplicated(old, copy);
    ensio_unlock(held);
}

static void close_all(int first, int last)
{
    for (int fd = first; fd <= last; fd++)
        close(fd);
    struct ensio_held held = ensio_lock();
    ensio_descriptors_forget((unsigned)first, (unsigned)last);
    ensio_unlock(held);
}

static struct ensio_open_file *open_file_of(int fd)
{
    const uint32_t number = ensio_descriptor(fd);
    return number > ENSIO_LEFT_OUT ? &ensio_open_files[number] : NULL;
}

/* What is read or written without an offset moves the position of the open file, which duplicates share. */
static void move(int fd)
{
    char bytes[64] = {0};
    const int64_t before = lseek(fd, 0, SEEK_CUR);
    CHECK(write(fd, bytes, sizeof bytes) == sizeof bytes);
    const int64_t after = lseek(fd, 0, SEEK_CUR);
    CHECK(ensio_position(fd, open_file_of(fd), sizeof bytes) == after - (int64_t)sizeof bytes);
    CHECK(after >= before);
}

static void random_steps(void)
{
    int is_open[END] = {0}, files[END] = {0};
    begin();
    srand(9);
    for (int step = 0; step < STEPS; step++) {
        const int fd = FIRST + rand() % (END - FIRST), other = FIRST + rand() % (END - FIRST);
        switch (rand() % 5) {
        case 0:
            files[fd] = rand() % 8;
            open_on(fd, path_of(files[fd]), O_RDWR | (files[fd] == 7 ? O_APPEND : 0));
            is_open[fd] = 1;
            break;
        case 1:
            if (is_open[other]) {
                duplicate(other, fd);
                is_open[fd] = 1;
                files[fd] = files[other];
            }
            break;
        case 2:
            if (rand() % 3 == 0) {
                const int last = fd > other ? fd : other, first = fd > other ? other : fd;
                close_all(first, last);
                memset(&is_open[first], 0, sizeof(int) * (size_t)(last - first + 1));
            }
            break;
        default:
            if (is_open[fd])
                move(fd);
        }
        for (int number = FIRST; number < END; number++) {
            CHECK((fcntl(number, F_GETFD) >= 0) == is_open[number]);
            CHECK((ensio_descriptors[number] != ENSIO_UNKNOWN) == is_open[number]);
            if (is_open[number])
                CHECK(strcmp(ensio_file_path(open_file_of(number)->file), path_of(files[number])) == 0);
        }
    }
    close_all(FIRST, END - 1);
    for (uint32_t i = ENSIO_LEFT_OUT + 1; i <= ENSIO_LEFT_OUT + ENSIO_DESCRIPTORS;
         i++) /* all are free again: a list through them */
        CHECK(ensio_open_files[i].references <= ENSIO_DESCRIPTORS + 1);
}

/* As many descriptors as the table has, each with a separate open file; then all once more. */
static void full_table(void)
{
    static uint8_t used[ENSIO_LEFT_OUT + ENSIO_DESCRIPTORS + 1];
    begin();
    const int fd = open(path_of(1), O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0);
    struct ensio_held held = ensio_lock();
    for (int round = 0; round < 2; round++) {
        memset(used, 0, sizeof used);
        for (int i = 0; i <= ENSIO_DESCRIPTORS; i++) { /* the test's own descriptor comes last */
            const int number = i < ENSIO_DESCRIPTORS ? i : fd;
            if (i == fd)
                continue;
            const uint32_t made = opened(fd, "/data", O_RDWR);
            CHECK(made > ENSIO_LEFT_OUT && made <= ENSIO_LEFT_OUT + ENSIO_DESCRIPTORS && !used[made]);
            used[made] = 1;
            ensio_descriptor_duplicated(fd, number);
            CHECK(ensio_descriptors[number] == made);
            if (number != fd)
                ensio_descriptors_forget((unsigned)fd, (unsigned)fd);
        }
        ensio_descriptors_forget(0, UINT32_MAX);
    }
    CHECK(opened(ENSIO_DESCRIPTORS, "/data", O_RDWR) == ENSIO_LEFT_OUT);
    CHECK(opened(-1, "/data", O_RDWR) == ENSIO_LEFT_OUT);
    ensio_descriptor_duplicated(0, ENSIO_DESCRIPTORS); /* nothing happens */
    ensio_unlock(held);
    const int none = open(path_of(-1), O_RDONLY);
    CHECK(none == -1 && ensio_descriptor(none) == ENSIO_LEFT_OUT);
    CHECK(ensio_descriptor(ENSIO_DESCRIPTORS) == ENSIO_LEFT_OUT);
}

/* A descriptor that no wrapper saw being opened is looked up once; what is not a file is left out. */
static void unseen(void)
{
    int pipe_ends[2], sockets[2];
    begin();
    const int fd = open(path_of(1), O_RDWR | O_CREAT | O_APPEND, 0600);
    CHECK(fd >= 0 && pipe(pipe_ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    errno = 88;
    struct ensio_open_file *open_file = open_file_of(fd);
    CHECK(open_file && errno == 88 && strcmp(ensio_file_path(open_file->file), path_of(1)) == 0);
    CHECK(open_file->flags == (ENSIO_ASK | ENSIO_APPENDS) && open_file->references == 1);
    CHECK(ensio_descriptor(pipe_ends[0]) == ENSIO_LEFT_OUT && ensio_descriptor(sockets[1]) == ENSIO_LEFT_OUT);
    CHECK(ensio_descriptor(999) == ENSIO_LEFT_OUT && ensio_descriptors[999] == ENSIO_UNKNOWN); /* not open */
    const int null = open("/dev/null", O_RDWR);
    CHECK(open_file_of(null)->flags & ENSIO_NO_POSITION && ensio_position(null, open_file_of(null), 5) == -1);
    static char list[400];
    snprintf(list, sizeof list, "/nowhere/*:%s/*", world_folder());
    ensio_exclude(list);
    const int excluded = open(path_of(2), O_RDWR | O_CREAT, 0600);
    CHECK(ensio_descriptor(excluded) == ENSIO_LEFT_OUT_FILE);
}

/* After a fork the other process may move positions too: the kernel is asked for them. */
static void shared(void)
{
    char bytes[10] = {0};
    int status;
    begin();
    open_on(FIRST, path_of(1), O_RDWR);
    move(FIRST);
    CHECK(open_file_of(FIRST)->flags == 0 && open_file_of(FIRST)->position == 64);
    struct ensio_held held = ensio_lock();
    ensio_descriptors_shared();
    ensio_unlock(held);
    const pid_t child = fork();
    if (child == 0)
        _exit(write(FIRST, bytes, 10) != 10);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(write(FIRST, bytes, 10) == 10 && ensio_position(FIRST, open_file_of(FIRST), 10) == 74);
    ensio_descriptor_moved(FIRST, 1);
    CHECK(open_file_of(FIRST)->flags == (ENSIO_ASK | ENSIO_APPENDS));
    ensio_descriptor_moved(FIRST, -1);
    CHECK(open_file_of(FIRST)->flags == (ENSIO_ASK | ENSIO_APPENDS));
    ensio_descriptor_moved(FIRST, 0);
    CHECK(open_file_of(FIRST)->flags == ENSIO_ASK);
}

static void check_path(int folder, const char *path, const char *wanted)
{
    struct ensio_held held = ensio_lock();
    const char *found = ensio_absolute_path(folder, path, (uint32_t)strlen(path), NULL);
    if (strcmp(found, wanted) != 0)
        fprintf(stderr, "%s is %s, not %s\n", path, found, wanted);
    CHECK(strcmp(found, wanted) == 0);
    ensio_unlock(held);
}

static void absolute_paths(void)
{
    static char wanted[400], long_path[9000];
    begin();
    check_path(AT_FDCWD, "/a/b", "/a/b");
    check_path(AT_FDCWD, "//a/.//b/./", "/a/b");
    check_path(AT_FDCWD, "/", "/");
    check_path(AT_FDCWD, "/.", "/");
    check_path(AT_FDCWD, "/a/../b", "/a/../b"); /* a link may lie there: left as it is */
    check_path(AT_FDCWD, "/..a/.b", "/..a/.b");
    CHECK(chdir("/usr") == 0);
    check_path(AT_FDCWD, "x", "/usr/x");
    check_path(AT_FDCWD, "./x/", "/usr/x");
    check_path(AT_FDCWD, "", "/usr");
    CHECK(chdir("/") == 0);
    check_path(AT_FDCWD, "x", "/x");
    const int folder = open(world_folder(), O_RDONLY | O_DIRECTORY);
    snprintf(wanted, sizeof wanted, "%s/x", world_folder());
    check_path(folder, "x", wanted);
    check_path(folder, "/x", "/x");
    check_path(999, "x", "/(unknown folder)/x");
    memset(long_path, 'l', sizeof long_path - 1);
    struct ensio_held held = ensio_lock();
    CHECK(strlen(ensio_absolute_path(AT_FDCWD, long_path, sizeof long_path - 1, NULL)) < 2 * ENSIO_PATH_ROOM);
    ensio_unlock(held);
}

int main(void)
{
    CASE(random_steps);
    CASE(full_table);
    CASE(unseen);
    CASE(shared);
    CASE(absolute_paths);
    return 0;
}
