/* Locks of all kinds on the folder's file `data`, words of streams, and folders and links that the C library reads.
 * Says what the program saw, and at last the ns that it waited for a lock that its child held. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SAY(call) \
    do { \
        errno = 0; \
        const int result = (call); \
        printf("%s %d %d\n", #call, result, errno); \
    } while (0)

static int is_file(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

int main(int count, char **words)
{
    int ready[2];
    struct dirent **entries;
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET}, query = all, wrong = {.l_type = 77};
    if (count != 2 || chdir(words[1]) || pipe(ready))
        return 1;
    int fd = open("data", O_RDWR | O_CREAT, 0600), other = open("data", O_RDWR);
    SAY(fcntl(fd, F_SETLK, &all));
    SAY(fcntl(fd, F_GETLK, &query));
    SAY(fcntl(fd, F_SETLKW, &wrong));
    SAY(fcntl(fd, F_SETLK, NULL));
    all.l_type = F_UNLCK;
    SAY(fcntl(fd, F_SETLKW, &all));
    all.l_type = F_WRLCK;
    SAY(fcntl(fd, F_OFD_SETLK, &all));
    SAY(fcntl(other, F_OFD_SETLK, &all));
    all.l_type = F_UNLCK;
    SAY(fcntl(fd, F_OFD_SETLKW, &all));
    SAY(flock(fd, LOCK_EX));
    SAY(flock(other, LOCK_SH | LOCK_NB));
    SAY(flock(fd, LOCK_UN));
    SAY(flock(999, LOCK_EX));
    SAY(lockf(fd, F_TLOCK, 10));
    SAY(lockf(fd, F_ULOCK, 10));
    SAY(fcntl(fd, F_SETFD, FD_CLOEXEC));
    SAY(fcntl(fd, F_GETFD));
    FILE *stream = fopen("words", "w+");
    SAY(putw(-1, stream));
    SAY(putw(123456, stream));
    rewind(stream);
    SAY(getw(stream));
    SAY(getw(stream));
    SAY(getw(stream));
    SAY(scandir(".", &entries, is_file, alphasort));
    SAY(scandirat(AT_FDCWD, "missing", &entries, NULL, NULL));
    char path[PATH_MAX] = "missing", made[] = "made.XXXXXX", short_of[] = "made.XXXX";
    SAY(realpath(path, path) != NULL);
    SAY(realpath("data", path) == path);
    SAY(canonicalize_file_name(NULL) != NULL);
    SAY(mkdtemp(made) == made);
    SAY(mkdtemp(short_of) != NULL);
    SAY(fcloseall());
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        flock(other = open("data", O_RDWR), LOCK_EX);
        if (write(ready[1], "", 1) != 1)
            _exit(1);
        usleep(50000);
        _exit(0);
    }
    char byte;
    if (read(ready[0], &byte, 1) != 1)
        return 1;
    const long start = now();
    const int locked = flock(fd, LOCK_EX);
    const long waited = now() - start;
    wait(NULL);
    fprintf(stderr, "%ld\n", waited);
    return locked ? 1 : 6;
}
