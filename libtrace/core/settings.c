#include "settings.h"

#include "bounded_string.h"
#include "globs.h"
#include "private_files.h"
#include "rawsys.h"
#include "site_settings.h"

#include <ensio/excluded.h>
#include <ensio/site.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>

#define LEAST_MEMORY_BYTES (16 << 20) /* the recorder takes 6 MiB of them */

struct ensio_settings ensio_settings;

/* Variables with rank and number of ranks, by launcher. Variables that a batch script inherits from its job come last,
 * because inside a job those of mpiexec are the right ones. */
static const char *const rank_names[][2] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},
    {"PMIX_RANK", NULL},
    {"ALPS_APP_PE", NULL},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
};

/* A decimal number from the environment, or -1. */
static int64_t number_from(const char *name)
{
    const char *text = name ? getenv(name) : NULL;
    if (!text || !*text || strlen(text) > 9)
        return -1;
    int64_t number = 0;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return -1;
        number = number * 10 + (*text - '0');
    }
    return number;
}

static void find_rank(void)
{
    ensio_settings.rank = -1;
    for (size_t i = 0; i < sizeof rank_names / sizeof *rank_names; i++) {
        if (strcmp(rank_names[i][0], "SLURM_PROCID") == 0 && number_from("SLURM_STEP_ID") < 0)
            continue; /* a batch script is not a task of a step */
        int64_t rank = number_from(rank_names[i][0]), tasks = number_from(rank_names[i][1]);
        if (rank < 0)
            continue;
        if (tasks < 0 && number_from("SLURM_STEP_ID") >= 0)
            tasks = number_from("SLURM_STEP_NUM_TASKS");
        ensio_settings.rank = (int32_t)rank;
        ensio_settings.tasks = tasks > rank ? (uint32_t)tasks : 0;
        return;
    }
}

/* Reads a small file of /proc; the result ends with at least one NUL. */
static long read_small(const char *path, char *to, size_t room)
{
    int fd = ensio_raw_open(path, O_RDONLY, 0);
    if (fd < 0)
        return fd;
    long got = ENSIO_RAW(SYS_read, fd, to, room - 1);
    ensio_raw_close(fd);
    to[got > 0 ? got : 0] = '\0';
    return got;
}

static struct ensio_string proc_path(char *buffer, uint32_t room, uint32_t pid, const char *leaf)
{
    struct ensio_string path = ensio_string_in(buffer, room);
    ensio_add(&path, "/proc/");
    ensio_add_number(&path, pid);
    ensio_add(&path, leaf);
    return path;
}

/* A field of /proc/PID/stat, counted from 1; 0 if it is unknown. */
static uint64_t process_field(uint32_t pid, int wanted)
{
    char path[64], line[1024];
    proc_path(path, sizeof path, pid, "/stat");
    if (read_small(path, line, sizeof line) <= 0)
        return 0;
    const char *at = strrchr(line, ')'); /* the command's name may contain any character */
    for (int field = 2; at && field < wanted; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : 0;
}

uint64_t ensio_process_start(uint32_t pid)
{
    return process_field(pid, 22);
}

static uint32_t process_parent(uint32_t pid)
{
    return (uint32_t)process_field(pid, 4);
}

/* MPICH's process manager gives its tasks no job name, but every proxy has the address of its mpiexec among its
 * arguments. A program that a task started has the proxy among its farther ancestors. */
static int hydra_address(uint32_t parent, struct ensio_string *key)
{
    char path[64], arguments[1024];
    for (int generation = 0; parent > 1 && generation < 16; generation++) {
        proc_path(path, sizeof path, parent, "/cmdline");
        long length = read_small(path, arguments, sizeof arguments);
        for (long at = 0; at < length; at += (long)strlen(arguments + at) + 1) {
            if (strcmp(arguments + at, "--control-port") == 0) {
                ensio_add(key, arguments + at + strlen(arguments + at) + 1);
                return 1;
            }
        }
        parent = process_parent(parent);
    }
    return 0;
}

/* Reading from /proc when this process started would take many times as long. */
static void add_now(struct ensio_string *key)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    ensio_add_number(key, (uint64_t)now.tv_sec);
    ensio_add(key, ".");
    ensio_add_number(key, (uint64_t)now.tv_nsec);
}

/* Finds an identifier that all processes of this launch share: the launcher's name of the job, else its address, else
 * the parent's pid and start time. A program that no launcher started is a job by itself, unless `ensio run` started
 * it. */
static void find_job(void)
{
    struct ensio_string job = ensio_string_in(ensio_settings.job, sizeof ensio_settings.job);
    struct ensio_string key = ensio_string_in(ensio_settings.key, sizeof ensio_settings.key);
    static const char *const batch[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "COBALT_JOBID"};
    for (size_t i = 0; i < sizeof batch / sizeof *batch && !job.length; i++)
        if (getenv(batch[i]))
            ensio_add_name(&job, getenv(batch[i]));

    uint32_t pid = ensio_raw_pid(), parent = (uint32_t)syscall(SYS_getppid);
    const char *space = getenv("PMIX_NAMESPACE"), *launcher = getenv("OMPI_MCA_orte_hnp_uri");
    const char *step = getenv("SLURM_STEP_ID"), *application = getenv("ALPS_APP_ID");
    const char *launch = getenv("ENSIO_LAUNCH"); /* ensio run: one for all that a command starts */
    ensio_add_name(&key, ensio_settings.job);
    ensio_add(&key, "-");
    if (ensio_settings.rank < 0) {
        if (launch) {
            ensio_add_name(&key, launch);
        } else {
            ensio_add_number(&key, pid);
            ensio_add(&key, "-");
            add_now(&key);
        }
        parent = pid;
    } else if (space) {
        ensio_add_name(&key, space);
        if (launcher) /* with the port of this mpiexec: namespaces are reused */
            ensio_add_name(&key, launcher);
    } else if (step && job.length) {
        ensio_add_name(&key, step);
        ensio_add(&job, ".");
        ensio_add_name(&job, step);
    } else if (application) {
        ensio_add_name(&key, application);
    } else if (!hydra_address(parent, &key)) {
        ensio_add_number(&key, parent);
        ensio_add(&key, "-");
        ensio_add_number(&key, ensio_process_start(parent));
    }
    if (!job.length)
        ensio_add_number(&job, parent);
}

/* Copies the text of a setting, because the program may change its environment and reuse the memory; NULL: it has none.
 * Returns 0 if there is no memory for even one page. */
static int keep(const char **to, const char *name, int may_be_empty)
{
    const char *const text = ensio_setting(name);
    *to = NULL;
    if (!text || (!*text && !may_be_empty))
        return 1;
    const size_t bytes = strlen(text) + 1;
    void *const copy = ensio_raw_memory(bytes);
    *to = copy ? memcpy(copy, text, bytes) : NULL;
    return copy != NULL;
}

static int is_on(const char *name)
{
    const char *const value = ensio_setting(name);
    return value && *value && strcmp(value, "0") != 0;
}

/* Whether a process is recorded: its spool is among its mappings. Reads /proc/PID/maps in pieces; a line is seldom cut,
 * and the searched suffix stands at its end. */
static int is_recorded(uint32_t pid)
{
    static const char ends[][18] = {".spool\n", ".spool (deleted)\n"};
    char path[64], piece[4096 + 32];
    proc_path(path, sizeof path, pid, "/maps");
    int fd = ensio_raw_open(path, O_RDONLY, 0), found = 0;
    if (fd < 0)
        return 0;
    size_t kept_bytes = 0;
    for (long got; !found && (got = ENSIO_RAW(SYS_read, fd, piece + kept_bytes, sizeof piece - 1 - kept_bytes)) > 0;) {
        size_t length = kept_bytes + (size_t)got;
        piece[length] = '\0';
        found = strstr(piece, ends[0]) || strstr(piece, ends[1]);
        kept_bytes = length < sizeof ends[0] ? length : sizeof ends[0];
        memmove(piece, piece + length - kept_bytes, kept_bytes);
    }
    ensio_raw_close(fd);
    return found;
}

int ensio_has_recorded_ancestor(void)
{
    uint32_t pid = (uint32_t)syscall(SYS_getppid);
    for (int generation = 0; pid > 1 && generation < 1000; generation++) {
        if (is_recorded(pid))
            return 1;
        pid = process_parent(pid);
    }
    return 0;
}

/* ENSIO_CHILDREN: "all", "none", or comma-separated globs of program names. It applies to programs that a recorded
 * program started, directly or indirectly: one of their ancestors has a spool. */
static int is_unwanted_child(const char *wanted)
{
    char globs[1024];
    if (!wanted || !*wanted || strcmp(wanted, "all") == 0)
        return 0;
    struct ensio_string list = ensio_string_in(globs, sizeof globs);
    ensio_add(&list, strcmp(wanted, "none") == 0 ? "" : wanted);
    for (char *comma = globs; (comma = strchr(comma, ',')) != NULL;)
        *comma = ':';
    if (ensio_listed(ensio_base_name(ensio_settings.program), globs))
        return 0;
    return ensio_has_recorded_ancestor();
}

static int is_launcher(void)
{
    char word[256];
    struct ensio_string first = ensio_string_in(word, sizeof word);
    ensio_add_bytes(&first, ensio_settings.command, (uint32_t)strcspn(ensio_settings.command, "\x1f"));
    return ensio_word_in(ensio_base_name(ensio_settings.program), ENSIO_LAUNCHERS) ||
           (first.length && ensio_word_in(ensio_base_name(word), ENSIO_LAUNCHERS));
}

static void read_command(void)
{
    char *const command = ensio_settings.command;
    const long length = read_small("/proc/self/cmdline", command, sizeof ensio_settings.command);
    for (long i = 0; i + 1 < length; i++)
        if (command[i] == '\0')
            command[i] = '\x1f';
}

static const char *const modes[] = {"trace", "profile", "tail"};

const char *ensio_mode_name(void)
{
    return modes[ensio_settings.mode];
}

static void choose_mode(const char *name)
{
    for (int mode = ENSIO_TRACE; mode <= ENSIO_TAIL; mode++) {
        if (strcmp(name, modes[mode]) == 0) {
            ensio_settings.mode = mode;
            return;
        }
    }
    ensio_say("ENSIO_MODE is \"", name, "\", which is not trace, profile or tail; the mode is trace.\n");
}

void ensio_say(const char *before, const char *what, const char *after)
{
    char line[512];
    struct ensio_string message = ensio_string_in(line, sizeof line);
    ensio_add(&message, "ensio: ");
    ensio_add(&message, before);
    ensio_add_bytes(&message, what, (uint32_t)strnlen(what, 64));
    ensio_add(&message, after);
    if (ensio_settings.rank <= 0)
        ensio_tell(message.text, message.length);
}

static int is_below(int kind)
{
    struct rlimit limit;
    return ENSIO_RAW(SYS_prlimit64, 0, kind, NULL, &limit) == 0 && limit.rlim_cur < LEAST_MEMORY_BYTES;
}

int ensio_lacks_memory(const char *program)
{
    if (!is_below(RLIMIT_AS) && !is_below(RLIMIT_DATA))
        return 0;
    if (!is_on("ENSIO_DISABLE"))
        ensio_say("no I/O is recorded of ", ensio_base_name(program),
                  ", whose limit of memory is below 16 MiB (ulimit -v, -d): raise it.\n");
    return 1;
}

static void choose_job_file(const char *name)
{
    if (name && strcmp(name, "0") == 0)
        ensio_settings.job_file = ENSIO_JOB_FILE_NONE;
    else if (name && strcmp(name, "keep") == 0)
        ensio_settings.job_file = ENSIO_JOB_FILE_AND_SPOOLS;
}

/* Whether anything is to be recorded, as far as the settings say. */
static int is_wanted(void)
{
    if (getauxval(AT_SECURE) || is_on("ENSIO_DISABLE"))
        return 0;
    const long length = ensio_raw_readlink("/proc/self/exe", ensio_settings.program, sizeof ensio_settings.program - 1);
    ensio_settings.program[length > 0 ? length : 0] = '\0';
    read_command();
    if (is_launcher())
        return 0;
    find_rank();
    return ensio_site_settings_read() == 0 && !is_on("ENSIO_DISABLE") && ensio_is_recorded_here() &&
           !is_unwanted_child(ensio_setting("ENSIO_CHILDREN"));
}

void ensio_settings_read(void)
{
    ensio_settings.off = !is_wanted();
    if (ensio_settings.off)
        return;
    const char *const mode = ensio_setting("ENSIO_MODE"), *const used = ensio_setting("ENSIO_USED_DIR");
    const char *const pcontrol = ensio_setting("ENSIO_PCONTROL"), *const layers = ensio_setting("ENSIO_LAYERS");
    const char *const surroundings = ensio_setting("ENSIO_SURROUNDINGS"), *const words =
                                                                              ensio_setting("ENSIO_ARGUMENTS");
    ensio_settings.pcontrol = pcontrol && strcmp(pcontrol, "ipm") == 0;
    ensio_settings.refuses_used_folder = used && strcmp(used, "refuse") == 0;
    ensio_settings.layers = layers && *layers ? layers : NULL;
    ensio_settings.callers = ensio_setting("ENSIO_CALLPATH");
    choose_job_file(ensio_setting("ENSIO_JOBFILE"));
    ensio_settings.point_to_point = is_on("ENSIO_POINT_TO_POINT");
    ensio_settings.python_lines = is_on("ENSIO_PYTHON_LINES");
    ensio_settings.surroundings = !surroundings || strcmp(surroundings, "0") != 0;
    if (words && strcmp(words, "0") == 0)
        ensio_settings.command[strcspn(ensio_settings.command, "\x1f")] = '\0';
    if (!keep(&ensio_settings.folder, "ENSIO_DIR", 0) || !keep(&ensio_settings.spool_folder, "ENSIO_SPOOL", 0) ||
        !keep(&ensio_settings.exclude, "ENSIO_EXCLUDE", 1)) {
        ensio_settings.off = 1;
        return;
    }
    if (!ensio_settings.exclude)
        ensio_settings.exclude = ENSIO_EXCLUDED;
    ensio_exclude(ensio_settings.exclude);
    if (gethostname(ensio_settings.host, sizeof ensio_settings.host - 1) != 0)
        strcpy(ensio_settings.host, "unknown-host");
    ensio_settings.off = ensio_lacks_memory(ensio_settings.program);
    if (ensio_settings.off)
        return;
    find_job();
    if (mode && *mode)
        choose_mode(mode);
}
