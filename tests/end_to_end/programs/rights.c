/* Writes to the file that it is given, as it is started ("keep"), or half of it after it has given up root's rights
 * ("drop"), and prints whose rights it has. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOBODY 65534

int main(int count, char **arguments)
{
    if (count != 4)
        return 2;
    int calls = atoi(arguments[3]), fd = open(arguments[2], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    for (int i = 0; i < calls; i++) {
        if (i == calls / 2 && strcmp(arguments[1], "drop") == 0 && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
            return 1;
        if (write(fd, "0123456789", 10) != 10)
            return 1;
    }
    printf("%d %d\n", (int)getuid(), (int)geteuid());
    return close(fd) == 0 ? 3 : 1;
}
