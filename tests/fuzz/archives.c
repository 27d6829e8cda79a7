/* archives.c: the reader of OTF2 archives, on archives with arbitrary records. Libotf2 writes them from the input
 * (made_archive.c), so that they are well formed, and the test covers ensio's code, not the library's.
 *
 * The reader keeps state in static variables and ends its process on errors. A child therefore reads each archive; its
 * coverage returns to libFuzzer through shared memory. */
#include "counters.h"
#include "made_archive.h"

#include "../../libtrace/otf2/reader.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define READ_WITHIN_S 60

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
_Noreturn void fuzz_exit(int status);

static uint8_t *shared_counters;

_Noreturn void fuzz_exit(int status)
{
    memcpy(shared_counters, counters(), counter_bytes());
    _Exit(status);
}

static OTF2_ErrorCode on_error(void *user, const char *file, uint64_t line, const char *function, OTF2_ErrorCode code,
                               const char *format, va_list arguments)
{
    (void)user, (void)file, (void)line, (void)function, (void)format, (void)arguments;
    return code;
}

static int delete (const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void)status, (void)kind, (void)where;
    return remove(path);
}

static _Noreturn void read_in_child(const uint8_t *data, size_t size, const char *folder, int complaint)
{
    char anchor[256];
    dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
    dup2(complaint, STDERR_FILENO);
    signal(SIGALRM, SIG_DFL); /* libFuzzer has its own handler */
    alarm(READ_WITHIN_S);
    OTF2_Error_RegisterCallback(on_error, NULL);
    if (!make_archive(data, size, folder))
        fuzz_exit(0);
    snprintf(anchor, sizeof anchor, "%s/traces.otf2", folder);
    ensio_read_archive(anchor, "0", "1");
    fuzz_exit(0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char folder[128];
    if (!shared_counters)
        shared_counters = mmap(NULL, counter_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    snprintf(folder, sizeof folder, "%s/ensio-fuzz-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(folder))
        abort();
    int complaint = memfd_create("complaint", MFD_CLOEXEC);
    pid_t child = fork();
    if (child == 0)
        read_in_child(data, size, folder, complaint);
    int status;
    if (child < 0 || TEMP_FAILURE_RETRY(waitpid(child, &status, 0)) != child)
        abort();
    nftw(folder, delete, 8, FTW_DEPTH | FTW_PHYS);
    for (size_t i = 0; i < counter_bytes(); i++)
        counters()[i] |= shared_counters[i];
    if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 2)) {
        char text[65536];
        ssize_t bytes = pread(complaint, text, sizeof text, 0);
        fprintf(stderr, "the reader ended with status %#x\n%.*s\n", (unsigned)status, (int)(bytes > 0 ? bytes : 0),
                text);
        abort();
    }
    close(complaint);
    return 0;
}
