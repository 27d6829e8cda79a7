/* Lives that end, or go on, in unusual ways: more_lives WHAT FILE [LIBRARY]. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char *path, *library;

static void put(const char *name, int calls)
{
    char whole[4096];
    snprintf(whole, sizeof whole, "%s.%s", path, name);
    int fd = open(whole, O_WRONLY | O_CREAT | O_APPEND, 0600);
    for (int i = 0; i < calls; i++)
        if (write(fd, "x", 1) != 1)
            _exit(99);
    close(fd);
}

static void *put_once(void *unused)
{
    put("thread", 1);
    return unused;
}

static void many_threads(void)
{
    for (int i = 0; i < 3000; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, put_once, NULL) != 0)
            _exit(98);
        pthread_join(thread, NULL);
    }
    int mapped = 0;
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        mapped += strstr(line, ".spool") != NULL;
    printf("%d\n", mapped);
}

/* As the books say: two forks, a session, another folder, no descriptors. */
static void become_daemon(void)
{
    int ended[2];
    put("before", 2);
    pipe(ended);
    if (fork() == 0) {
        setsid();
        if (fork() == 0) {
            chdir("/");
            for (int fd = sysconf(_SC_OPEN_MAX) > 4096 ? 4096 : (int)sysconf(_SC_OPEN_MAX); fd >= 0; fd--)
                if (fd != ended[1])
                    close(fd);
            open("/dev/null", O_RDWR);
            dup(0), dup(0);
            put("daemon", 700);
            write(ended[1], "!", 1);
            exit(0);
        }
        _exit(0);
    }
    wait(NULL);
    close(ended[1]);
    char byte;
    printf("%zd\n", read(ended[0], &byte, 1));
    read(ended[0], &byte, 1); /* until the daemon is gone */
}

/* Every descriptor but the standard ones is closed, and what is opened next lies over them, before and after windows
 * change. */
static void close_everything(void)
{
    put("early", 3);
    closefrom(3);
    for (int fd = 3; fd < 300; fd++)
        dup2(2, fd);
    put("late", 5000);
    for (int fd = 3; fd < 300; fd++)
        close(fd);
    put("last", 5000);
}

static void crash(void)
{
    put("crash", 1500);
    *(volatile int *)8 = 1;
}

static void end_by_abort(void)
{
    put("abort", 1500);
    abort();
}

static void end_at_once(void)
{
    put("exit", 1500);
    _exit(21);
}

static void in_a_handler(int number)
{
    put("handler", number);
    _exit(22);
}

static void end_in_a_handler(void)
{
    signal(SIGUSR1, in_a_handler);
    put("before", 1);
    raise(SIGUSR1);
}

static void at_exit(void)
{
    put("exit-handler", 7);
}

static void end_with_handlers(void)
{
    atexit(at_exit);
    put("main", 1);
    exit(23);
}

__attribute__((destructor)) static void destroy(void)
{
    if (path)
        put("destructor", 4);
}

/* A library with its own calls comes and goes. */
static void plugin(void)
{
    for (int i = 0; i < 20; i++) {
        void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
        if (!handle)
            _exit(97);
        ((void (*)(const char *))dlsym(handle, "plugin_put"))(path);
        dlclose(handle);
        put("main", 1);
    }
}

static void change_folder(void)
{
    put("absolute", 1);
    chdir("/");
    for (int i = 0; i < 3; i++)
        put("absolute", 2000);
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } all[] = {{"many_threads", many_threads},
               {"become_daemon", become_daemon},
               {"close_everything", close_everything},
               {"crash", crash},
               {"abort", end_by_abort},
               {"end_at_once", end_at_once},
               {"end_in_a_handler", end_in_a_handler},
               {"end_with_handlers", end_with_handlers},
               {"plugin", plugin},
               {"change_folder", change_folder}};
    path = arguments[2];
    library = count > 3 ? arguments[3] : NULL;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, arguments[1]) == 0)
            all[i].run();
    return 20;
}
