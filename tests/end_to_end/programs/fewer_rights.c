/* Programs that give up what the recorder had when it began: fewer_rights WHAT CALLS. Prints how many of CALLS pwrite
 * were done; 4. WHAT: seteuid (there and back before each), setuid, chroot, file_size, descriptors, closed (the run
 * directory, for all but root), moved (the run directory). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOBODY 65534

static int set_limit(int which, rlim_t value)
{
    struct rlimit limit = {value, value};
    return setrlimit(which, &limit);
}

static int become_nobody(void)
{
    return setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY);
}

static int give_up(const char *what)
{
    const char *folder = getenv("ENSIO_DIR");
    char moved[4096];
    if (strcmp(what, "seteuid") == 0)
        return 0;
    if (strcmp(what, "setuid") == 0)
        return become_nobody();
    if (strcmp(what, "chroot") == 0)
        return mkdir("jail", 0755) || chroot("jail") || chdir("/");
    if (strcmp(what, "file_size") == 0)
        return set_limit(RLIMIT_FSIZE, 100000);
    if (strcmp(what, "descriptors") == 0)
        return set_limit(RLIMIT_NOFILE, 3);
    if (strcmp(what, "closed") == 0)
        return chmod(folder, 0) || become_nobody();
    snprintf(moved, sizeof moved, "%s-moved", folder);
    return rename(folder, moved);
}

int main(int argc, char **argv)
{
    int file = open("data", O_RDWR | O_CREAT | O_TRUNC, 0644), done = 0;
    signal(SIGXFSZ, SIG_IGN);
    if (argc < 3 || give_up(argv[1]))
        return 1;
    for (int i = 0; i < atoi(argv[2]); i++) {
        if (strcmp(argv[1], "seteuid") == 0 && (seteuid(NOBODY) || seteuid(0)))
            return 1;
        done += pwrite(file, "0123456789", 10, i % 100) == 10;
    }
    printf("%d calls\n", done);
    return 4;
}
