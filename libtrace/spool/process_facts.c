#include "process_facts.h"

#include "encode.h"
#include "mounts.h"
#include "spool.h"

#include <core/bounded_string.h>
#include <core/globs.h>
#include <core/private_files.h>
#include <core/rawsys.h>
#include <core/site_settings.h>

#include <gnu/libc-version.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

/* Variables that affect I/O or describe the job. No others are read, because a site or a user may keep secrets in the
 * environment. Open MPI's transport key and the address of the history (it may contain a database password) are
 * excluded for the same reason. */
static const char told[] =
    "ROMIO_*:OMPI_MCA_io*:OMPI_MCA_fs_*:OMPI_MCA_fcoll*:OMPI_MCA_fbtl*:OMPI_MCA_sharedfp*:OMPI_MCA_coll*:OMPI_MCA_btl:"
    "OMPI_MCA_pml:OMPI_MCA_mtl:OMPI_MCA_osc:OMPI_MCA_mpi_*:OMPI_MCA_hwloc_base_*:OMPI_MCA_rmaps_base_*:"
    "PRTE_MCA_rmaps_*:MPICH_*:MPIR_CVAR_*:"
    "I_MPI_ADJUST*:I_MPI_EXTRA_FILESYSTEM*:I_MPI_FABRICS:HDF5_*:OMP_NUM_THREADS:OMP_PROC_BIND:OMP_PLACES:"
    "SLURM_JOB_ID:SLURM_JOB_NAME:SLURM_JOB_PARTITION:SLURM_JOB_QOS:SLURM_JOB_NUM_NODES:SLURM_JOB_NODELIST:"
    "SLURM_JOB_CPUS_PER_NODE:SLURM_CLUSTER_NAME:SLURM_NTASKS*:SLURM_NNODES:SLURM_CPUS_PER_TASK:SLURM_STEP_NUM_*:"
    "PBS_JOBNAME:PBS_QUEUE:LSB_JOBNAME:LSB_QUEUE:!ENSIO_HISTORY*:ENSIO_*";

/* File systems that hold no user data. */
static const char no_data[] =
    "proc sysfs cgroup cgroup2 devpts devtmpfs mqueue debugfs tracefs securityfs pstore bpf configfs "
    "fusectl hugetlbfs autofs binfmt_misc rpc_pipefs nsfs efivarfs selinuxfs";

static const char *const local_ranks[] = {"OMPI_COMM_WORLD_LOCAL_RANK",
                                          "MV2_COMM_WORLD_LOCAL_RANK",
                                          "MPI_LOCALRANKID",
                                          "PMI_LOCAL_RANK",
                                          "PALS_LOCAL_RANKID",
                                          "SLURM_LOCALID"};

#define LINE_ROOM 16384
#define MOST_VARIABLE_BYTES 2048

static int add_mount(const struct ensio_mount *mount, void *state)
{
    struct ensio_string *all = state;
    const uint32_t before = all->length;
    if (ensio_word_in(mount->type, no_data))
        return 0;
    const char *const words[] = {mount->point, " ", mount->type, " ", mount->source, "\n"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        ensio_add(all, words[i]);
    if (all->full)
        all->length = before;
    return all->full;
}

static void add_user(struct ensio_string *all)
{
    ensio_add(all, "uid=");
    ensio_add_number(all, (uint64_t)syscall(SYS_getuid));
    ensio_add_bytes(all, "", 1);
    ensio_add(all, "user=");
    ensio_add_user(all);
    ensio_add_bytes(all, "", 1);
}

/* A line like "0-3,8-11". */
static int processors_line(char *line, void *state)
{
    unsigned long *count = state;
    for (char *at = line, *end; *at >= '0' && *at <= '9'; at = *end == ',' ? end + 1 : end) {
        const unsigned long first = strtoul(at, &end, 10), last = *end == '-' ? strtoul(end + 1, &end, 10) : first;
        *count += last >= first ? last - first + 1 : 0;
    }
    return 1;
}

/* Those of the node: launchers bind each task to few of them. */
static void add_processors(struct ensio_string *all)
{
    unsigned long count = 0;
    ensio_private_each_line("/sys/devices/system/cpu/online", processors_line, &count);
    if (!count)
        return;
    ensio_add(all, "processors=");
    ensio_add_number(all, count);
    ensio_add_bytes(all, "", 1);
}

static void add_variable(const char *variable, struct ensio_string *all, int is_of_site)
{
    char name[128];
    const char *equals = strchr(variable, '=');
    const size_t length = equals ? (size_t)(equals - variable) : sizeof name;
    if (length >= sizeof name)
        return;
    memcpy(name, variable, length);
    name[length] = '\0';
    const uint32_t bytes = (uint32_t)strnlen(variable, MOST_VARIABLE_BYTES);
    if (!ensio_listed(name, told) || bytes + 8 > all->room - all->length ||
        (is_of_site && ensio_setting(name) != equals + 1))
        return;
    ensio_add(all, "env.");
    ensio_add_bytes(all, variable, bytes);
    ensio_add_bytes(all, "", 1);
}

static void add_site_setting(const char *setting, void *all)
{
    add_variable(setting, all, 1);
}

/* The later one of two with the same name is the one that holds. */
static void add_environment(struct ensio_string *all)
{
    for (char **variable = environ; variable && *variable; variable++)
        add_variable(*variable, all, 0);
    ensio_each_site_setting(add_site_setting, all);
}

int ensio_reports_node(void)
{
    for (size_t i = 0; i < sizeof local_ranks / sizeof *local_ranks; i++) {
        const char *local = getenv(local_ranks[i]);
        if (local && *local)
            return strcmp(local, "0") == 0;
    }
    return 1;
}

void ensio_process_facts_store(void)
{
    static char text[LINE_ROOM];
    static int told_mounts; /* by this process or its parent */
    struct ensio_string all = ensio_string_in(text, sizeof text);
    add_user(&all);
    ensio_add(&all, "libc=glibc ");
    ensio_add(&all, gnu_get_libc_version());
    ensio_add_bytes(&all, "", 1);
    add_environment(&all);
    ensio_text_store(ENSIO_TEXT_PROPERTIES, 0, text, all.length);
    if (told_mounts || !ensio_reports_node())
        return;
    told_mounts = 1;
    all = ensio_string_in(text, sizeof text);
    add_processors(&all);
    ensio_add(&all, "mounts=");
    ensio_each_mount(add_mount, &all);
    ensio_add_bytes(&all, "", 1);
    ensio_text_store(ENSIO_TEXT_PROPERTIES, 0, text, all.length);
}

void ensio_losses_store(void)
{
    char text[512];
    struct ensio_string losses = ensio_string_in(text, sizeof text);
    ensio_add(&losses, "losses=");
    ensio_add_number(&losses, ensio_losses->calls_on_other_paths);
    for (uint32_t reason = 0; reason < ENSIO_DROP_REASONS; reason++) {
        ensio_add(&losses, " ");
        ensio_add_number(&losses, ensio_losses->dropped_for[reason]);
    }
    ensio_add_bytes(&losses, "", 1);
    if (ensio_losses->calls_on_other_paths || ensio_spool->dropped_events)
        ensio_text_store(ENSIO_TEXT_PROPERTIES, 0, text, losses.length);
}

/* A process that is killed meanwhile leaves a head without the sum. */
void ensio_spool_set_rank(int rank, uint32_t tasks)
{
    uint64_t numbers[6] = {0};
    __atomic_store_n(&ensio_spool->identity_sum, 0, __ATOMIC_SEQ_CST);
    ensio_spool->rank = rank;
    ensio_spool->tasks = tasks;
    memcpy(numbers, &ensio_spool->clock, offsetof(struct ensio_spool, threads) - offsetof(struct ensio_spool, clock));
    memcpy(numbers + 3, &ensio_spool->first, sizeof ensio_spool->first);
    __atomic_store_n(&ensio_spool->identity_sum, ensio_sum_words(numbers, sizeof numbers), __ATOMIC_RELEASE);
}
