/* ensio-simulate: the calls of a plan on a model of a parallel file system, in virtual time.
 *
 *   ensio-simulate [--mode trace|profile] PLAN SETTINGS SEED OUTPUT
 *   ensio-simulate --settings        the settings that there are: key, default, least, largest; faults
 *
 * PLAN is a plan of version 2 (plan.h), SETTINGS a text of "key value" lines (pfsmodel/settings.h), OUTPUT a folder
 * that is there (output.h). The same plan, settings and seed give the same output to the last byte.
 */
#define _GNU_SOURCE
#include "fail.h"
#include "output.h"
#include "plan.h"
#include "profile.h"
#include "simulation.h"

#include <errno.h>
#include <inttypes.h>
#include <pfsmodel/settings.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CALL_NS 1000 /* a call that stays on the client: a system call and a copy of a few bytes */

static void print_settings(void)
{
#define PRINT(key, usual, smallest, largest) \
    printf("%s %.17g %.17g %.17g\n", #key, (double)(usual), (double)(smallest), (double)(largest));
    PFS_PARAMETERS(PRINT)
#undef PRINT
#define PRINT(field, id) printf("fault.%s 0 0 %.17g\n", id, PFS_STRENGTH_MOST);
    PFS_FAULTS(PRINT)
#undef PRINT
}

static char *text_of(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t room = 0;
    if (!file || (getdelim(&text, &room, '\0', file) < 0 && ferror(file)))
        fail(EXIT_USAGE, "%s cannot be read: %s", path, strerror(errno));
    fclose(file);
    return text ? text : zeroed(1, 1, "settings");
}

static void read_settings(const char *path, struct pfs_settings *settings)
{
    char why[512];
    char *text = text_of(path);
    if (pfs_settings_read(settings, text, why, sizeof why) < 0)
        fail(EXIT_USAGE, "%s: %s", path, why);
    free(text);
}

static uint64_t seed_of(const char *text)
{
    char *end;
    errno = 0;
    const unsigned long long seed = strtoull(text, &end, 10);
    if (errno || *end || end == text || *text == '-')
        fail(EXIT_USAGE, "the seed %s is not a whole number from 0 to 2^64 - 1", text);
    return seed;
}

static struct costs costs_of(const struct pfs_settings *settings)
{
    return (struct costs){
        .call_ns = CALL_NS,
        .message_ns = (int64_t)(1000 * settings->mpi_latency_us),
        .overhead_ns = 1000 * settings->mpi_message_us,
        .message_bytes_per_s = 1e6 * settings->mpi_MB_per_s,
        .exchange_scale = settings->mpi_collective_scale *
                          (1 + settings->fault.collective_coordination * (settings->collective_factor - 1)),
    };
}

static struct pfs *make_model(const struct plan *plan, const struct pfs_settings *settings, uint64_t seed)
{
    const struct pfs_limits limits = {plan->tasks, plan->nodes, plan->file_count > 0 ? plan->file_count : 1};
    const size_t bytes = pfs_bytes(settings, &limits);
    struct pfs *model = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (model == MAP_FAILED)
        fail(EXIT_FAILURE, "there is no memory for a model of %zu bytes: simulate fewer tasks", bytes);
    want_large_pages(model, bytes);
    pfs_create(model, settings, &limits, seed);
    return model;
}

static void prepare(struct simulation *simulation)
{
    const struct plan *plan = &simulation->plan;
    simulation->programs = zeroed((size_t)plan->call_count, sizeof *simulation->programs, "calls");
    for (int32_t i = 0; i < plan->call_count; i++) {
        simulation->programs[i] = program_named(plan->calls[i]);
        if (!simulation->programs[i])
            fail(EXIT_USAGE,
                 "the plan names the call %s, which this ensio-simulate does not know: ensio replay makes it",
                 plan->calls[i]);
    }
    simulation->tasks = zeroed((size_t)plan->tasks, sizeof *simulation->tasks, "tasks");
    simulation->files = zeroed((size_t)plan->file_count, sizeof *simulation->files, "files");
    for (int32_t i = 0; i < plan->file_count; i++)
        simulation->files[i].model = FILE_UNKNOWN;
    simulation->phase_start_ns = zeroed((size_t)plan->step_count + 1, sizeof(int64_t), "steps");
    while ((INT64_C(1) << simulation->barrier_rounds) < plan->tasks)
        simulation->barrier_rounds++;
}

/* The layout of each file that a call reached; the others have the count 0. */
static void write_striping(const struct simulation *simulation)
{
    const int32_t count = simulation->plan.file_count;
    struct output_striping *layouts = zeroed((size_t)count, sizeof *layouts, "files");
    for (int32_t i = 0; i < count; i++)
        if (simulation->files[i].model != FILE_UNKNOWN) {
            const struct pfs_striping found = pfs_striping(simulation->model, simulation->files[i].model);
            layouts[i] =
                (struct output_striping){found.stripe_bytes, found.count, found.first_target, found.targets, 0};
        }
    output_array(simulation->output, "striping", layouts, sizeof *layouts, (size_t)count);
    free(layouts);
}

static void write_text(const struct simulation *simulation, const char *mode, uint64_t seed)
{
    const struct plan *plan = &simulation->plan;
    FILE *file = output_open(simulation->output, "text");
    fprintf(file, "ensio-simulation 1\nmode %s\nseed %" PRIu64 "\ntasks %" PRId32 "\ntasks_per_node %" PRId32 "\n",
            mode, seed, plan->tasks, plan->tasks_per_node);
    fprintf(file, "end_ns %" PRId64 "\nevents %" PRIu64 "\nmodel_calls %" PRId64 "\n", simulation->end_ns,
            simulation->output->event_count, simulation->model_calls);
    const struct pfs_places slow = pfs_places(simulation->model);
    fprintf(file, "slow_target %" PRId32 "\nstraggler_node %" PRId32 "\nstraggler_task %" PRId32 "\n", slow.slow_target,
            slow.straggler_node, slow.straggler_task);
    fprintf(file, "calls %d\n", RECORDED_COUNT);
    for (int i = 0; i < RECORDED_COUNT; i++)
        fprintf(file, "%s %s %s\n", recorded_kinds[i].name, recorded_kinds[i].layer, recorded_kinds[i].op_name);
    fprintf(file, "steps %" PRId32 "\n", plan->step_count);
    for (int32_t i = 0; i < plan->step_count; i++)
        fprintf(file, "%s %ld\n", plan->steps[i].phase, plan->steps[i].repetition);
    fprintf(file, "files %" PRId32 "\n", plan->file_count);
    for (int32_t i = 0; i < plan->file_count; i++)
        fprintf(file, "%s\n", plan->files[i]);
    output_close(simulation->output, "text", file);
}

int main(int argc, char **argv)
{
    const char *mode = "trace";
    if (argc == 2 && strcmp(argv[1], "--settings") == 0) {
        print_settings();
        return EXIT_SUCCESS;
    }
    if (argc == 7 && strcmp(argv[1], "--mode") == 0) {
        mode = argv[2];
        argc -= 2;
        argv += 2;
    }
    const int is_profile = strcmp(mode, "profile") == 0;
    if (argc != 5 || (!is_profile && strcmp(mode, "trace") != 0))
        fail(EXIT_USAGE, "it takes [--mode trace|profile] PLAN SETTINGS SEED OUTPUT: start it through ensio simulate");
    static struct simulation simulation;
    struct output output;
    struct pfs_settings settings;
    plan_read(argv[1], &simulation.plan);
    read_settings(argv[2], &settings);
    const uint64_t seed = seed_of(argv[3]);
    simulation.costs = costs_of(&settings);
    prepare(&simulation);
    simulation.model = make_model(&simulation.plan, &settings, seed);
    struct profile *profile = is_profile ? profile_begin(simulation.plan.tasks) : NULL;
    output_begin(&output, argv[4], profile);
    simulation.output = &output;
    simulation.rows_begun = output_number(&output, "progress");
    simulate(&simulation);
    simulation.phase_start_ns[simulation.plan.step_count] = simulation.end_ns;
    output_array(&output, "phases", simulation.phase_start_ns, sizeof(int64_t), (size_t)simulation.plan.step_count + 1);
    if (profile)
        profile_write(profile, &output);
    else
        output_close(&output, "events", output.events);
    write_striping(&simulation);
    write_text(&simulation, mode, seed);
    return EXIT_SUCCESS;
}
