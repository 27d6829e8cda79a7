/* Makes every call of the POSIX table that moves no bytes itself, and those that move them between files, in the folder
 * that it is given, and prints what each returned. Folders are read apart from the rest: how often the C library asks
 * the kernel for their entries is its own affair. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#define SAY(call) \
    do { \
        errno = 0; \
        long long result = (long long)(call); \
        printf("%-70s %lld %d\n", #call, result, errno); \
    } while (0)

int main(int count, char **arguments)
{
    struct stat found;
    struct statx more;
    char buffer[4096] = "", name[] = "made.XXXXXX", other[] = "made.XXXXXX.txt";
    size_t room = sizeof buffer - (size_t)count;
    if (count != 2 || chdir(arguments[1]) != 0)
        return 2;
    int folder = open(".", O_RDONLY | O_DIRECTORY);
    int fd = open("a.data", O_RDWR | O_CREAT | O_TRUNC, 0640);
    SAY(pwrite(fd, buffer, 4000, 0));
    SAY(stat("a.data", &found));
    SAY(lstat("a.data", &found));
    SAY(fstat(fd, &found));
    SAY(fstatat(folder, "a.data", &found, 0));
    SAY(fstatat(fd, "", &found, AT_EMPTY_PATH));
    SAY(statx(folder, "a.data", 0, STATX_SIZE, &more));
    SAY(stat("missing", &found));
    SAY(stat((char *)8, &found));
    SAY(access("a.data", R_OK));
    SAY(faccessat(folder, "a.data", W_OK, 0));
    SAY(link("a.data", "b.data"));
    SAY(linkat(folder, "a.data", folder, "c.data", 0));
    SAY(symlink("a.data", "d.link"));
    SAY(symlinkat("a.data", folder, "e.link"));
    SAY(readlink("d.link", buffer, room));
    SAY(readlinkat(folder, "e.link", buffer, room));
    SAY(rename("b.data", "f.data"));
    SAY(renameat(folder, "c.data", folder, "g.data"));
    SAY(renameat2(folder, "g.data", folder, "h.data", RENAME_NOREPLACE));
    SAY(mkdir("one", 0700));
    SAY(mkdirat(folder, "two", 0700));
    SAY(mkdir("one", 0700));
    SAY(rmdir("one"));
    SAY(unlinkat(folder, "two", AT_REMOVEDIR));
    SAY(unlink("f.data"));
    SAY(remove("h.data"));
    SAY(chmod("a.data", 0600));
    SAY(fchmod(fd, 0644));
    SAY(fchmodat(folder, "a.data", 0600, 0));
    SAY(truncate("a.data", 3000));
    SAY(fallocate(fd, 0, 0, 5000));
    SAY(posix_fallocate(fd, 0, 6000));
    SAY(sync_file_range(fd, 0, 4096, SYNC_FILE_RANGE_WRITE));
    SAY(posix_fadvise(fd, 0, 4096, POSIX_FADV_DONTNEED));
    SAY(posix_fadvise(fd, 0, 4096, 12345));
    SAY(readahead(fd, 0, 4096));
    SAY((sync(), 0));
    SAY(syncfs(fd));
    SAY(syncfs(-1));
    SAY(chown("a.data", -1, -1));
    SAY(fchown(fd, -1, -1));
    SAY(lchown("d.link", -1, -1));
    SAY(fchownat(folder, "a.data", -1, -1, 0));
    SAY(utime("a.data", NULL));
    SAY(utimes("a.data", NULL));
    SAY(lutimes("d.link", NULL));
    SAY(futimes(fd, NULL));
    SAY(futimesat(folder, "a.data", NULL));
    SAY(utimensat(folder, "a.data", NULL, 0));
    SAY(utimensat(fd, NULL, NULL, 0));
    SAY(futimens(fd, NULL));
    struct statfs system;
    struct statvfs volume;
    SAY(statfs("a.data", &system));
    SAY(fstatfs(fd, &system));
    SAY(statvfs("missing", &volume));
    SAY(fstatvfs(fd, &volume));
    SAY(setxattr("a.data", "user.one", "value", 5, 0));
    SAY(lsetxattr("a.data", "user.two", "value", 5, 0));
    SAY(fsetxattr(fd, "user.one", "value", 5, XATTR_CREATE));
    SAY(getxattr("a.data", "user.one", buffer, room));
    SAY(lgetxattr("a.data", "user.none", buffer, room));
    SAY(fgetxattr(fd, "user.two", NULL, 0));
    SAY(listxattr("a.data", buffer, room) > 0);
    SAY(llistxattr("missing", buffer, room));
    SAY(flistxattr(fd, buffer, 1));
    SAY(removexattr("a.data", "user.one"));
    SAY(lremovexattr("a.data", "user.two"));
    SAY(fremovexattr(fd, "user.one"));
    SAY(mkfifo("pipe", 0600));
    SAY(mkfifoat(folder, "pipe", 0600));
    SAY(mknod("node", S_IFIFO | 0600, 0));
    SAY(mknodat(folder, "node", S_IFIFO | 0600, 0));
    int to = open("i.data", O_RDWR | O_CREAT | O_TRUNC, 0600);
    off_t at = 100;
    SAY(sendfile(to, fd, &at, 50));
    SAY(sendfile(to, fd, NULL, 60));
    SAY(write(to, buffer, 10));
    off64_t from_at = 200, to_at = 1000;
    SAY(copy_file_range(fd, &from_at, to, &to_at, 70, 0));
    SAY(copy_file_range(fd, NULL, to, NULL, 80, 0));
    SAY(write(to, buffer, 10));
    SAY(read(fd, buffer, 5));
    int copy = fcntl(fd, F_DUPFD, 50);
    int guarded = fcntl(fd, F_DUPFD_CLOEXEC, 60);
    SAY(fcntl(fd, F_GETFL) & O_ACCMODE);
    SAY(read(copy, buffer, 5));
    SAY(read(guarded, buffer, 5));
    SAY(close(copy));
    SAY(close(guarded));
    int made = mkstemp(name), also = mkostemps(other, 4, O_CLOEXEC);
    SAY(made >= 0 && also >= 0);
    SAY(write(made, buffer, 3));
    SAY(close(made));
    SAY(close(also));
    SAY(close(to));
    SAY(close(fd));
    SAY(close(folder));
    DIR *listed = opendir(".");
    int entries = 0;
    for (errno = 0; readdir(listed) != NULL;)
        entries++;
    SAY(entries + 0 * errno);
    SAY(closedir(listed));
    SAY(closedir(NULL));
    SAY(opendir("missing") != NULL);
    return 9;
}
