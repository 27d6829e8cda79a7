/* Calls that the kernel refuses before it looks at their path, which is none: wrong_pointers. Says how many failed as
 * they should. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define FAILS(call, code) (errno = 0, (call) == -1 && errno == (code))

int main(void)
{
    char *const wrong = (char *)1;
    struct stat status;
    int right = FAILS(open(wrong, O_RDONLY), EFAULT) + FAILS(stat(wrong, &status), EFAULT) +
                FAILS(access(wrong, 99), EINVAL) + FAILS(unlinkat(AT_FDCWD, wrong, 1 << 14), EINVAL) +
                FAILS(fstatat(AT_FDCWD, wrong, &status, 1 << 30), EINVAL) + FAILS(truncate(wrong, -1), EINVAL) +
                FAILS(renameat2(AT_FDCWD, wrong, AT_FDCWD, wrong, 1U << 20), EINVAL) +
                FAILS(open(wrong, O_TMPFILE | O_RDONLY, 0600), EINVAL);
    printf("%d\n", right);
    return 0;
}
