/* main.c: ensio-otf2, the only program that links libotf2. It is separate because the library ends the process, or
 * crashes, if an archive is damaged. */
#include "reader.h"
#include "writer.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static OTF2_ErrorCode on_error(void *user, const char *file, uint64_t line, const char *function, OTF2_ErrorCode code,
                               const char *format, va_list arguments)
{
    (void)user, (void)file, (void)line, (void)function, (void)format, (void)arguments;
    return code; /* the caller of the library checks it */
}

int main(int count, char **arguments)
{
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    OTF2_Error_RegisterCallback(on_error, NULL);
    if (count == 4 && strcmp(arguments[1], "write") == 0) {
        ensio_write_archive(arguments[2], arguments[3]);
        return 0;
    }
    if ((count == 4 || count == 5) && strcmp(arguments[1], "read") == 0) {
        ensio_read_archive(arguments[2], arguments[3], count == 5 ? arguments[4] : "1");
        return 0;
    }
    fputs("usage: ensio-otf2 write FOLDER NAME <stream\n"
          "       ensio-otf2 read ANCHOR.otf2 MOST_BYTES [PROCESSES] >stream\n"
          "ensio export --to otf2 and ensembles.open use it; ensio help other-tools says what streams "
          "hold\n",
          stderr);
    return 2;
}
