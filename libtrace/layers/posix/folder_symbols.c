/* folder_symbols.c: for relinked programs. --wrap does not see a shared library that changes the working folder (the
 * run-time libraries of Fortran and C++ have a call for it), so the program defines these two functions: libraries then
 * call the program's. They are weak, because a program may define these names for itself. */
#include <files/folders.h>

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *dlsym(void *restrict handle, const char *restrict symbol) __attribute__((weak));

/* Another tool's functions, if it was preloaded; else those of the C library, which only make the system call. */
static int (*next_chdir)(const char *path);
static int (*next_fchdir)(int fd);

__attribute__((constructor)) static void find_next(void)
{
    if (!dlsym)
        return;
    *(void **)&next_chdir = dlsym(RTLD_NEXT, "chdir");
    *(void **)&next_fchdir = dlsym(RTLD_NEXT, "fchdir");
}

__attribute__((weak, visibility("default"))) int chdir(const char *path)
{
    ensio_folder_change_begin();
    const int result = next_chdir ? next_chdir(path) : (int)syscall(SYS_chdir, path);
    ensio_folder_change_end();
    return result;
}

__attribute__((weak, visibility("default"))) int fchdir(int fd)
{
    ensio_folder_change_begin();
    const int result = next_fchdir ? next_fchdir(fd) : (int)syscall(SYS_fchdir, fd);
    ensio_folder_change_end();
    return result;
}
