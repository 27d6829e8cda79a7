/* ensio-pfs-state: makes the state that processes under the model share, and says what is counted in it.
 *
 *   ensio-pfs-state make FOLDER SETTINGS SEED     a state in FOLDER, of a model with the settings in that file
 *   ensio-pfs-state status FOLDER                 lines "key value", times in seconds
 *
 * People use it by way of `ensio pfs`. */
#include "state.h"

#include <settings.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *where, const char *what)
{
    fprintf(stderr, "ensio-pfs-state: %s: %s\n", where, what);
    return 2;
}

/* Reads a file; NULL on failure. */
static char *text_of(const char *path)
{
    FILE *file = fopen(path, "r");
    size_t room = 65536;
    char *text = file ? calloc(1, room) : NULL;
    if (text && fread(text, 1, room - 1, file) == room - 1) {
        errno = EFBIG;
        free(text);
        text = NULL;
    }
    if (file)
        fclose(file);
    return text;
}

static int make(const char *folder, const char *settings_path, const char *seed)
{
    char why[512], *end;
    struct pfs_settings settings;
    const uint64_t number = strtoull(seed, &end, 10);
    if (end == seed || *end)
        return fail(seed, "is not a seed: give a whole number");
    char *text = text_of(settings_path);
    if (!text)
        return fail(settings_path, strerror(errno));
    if (pfs_settings_read(&settings, text, why, sizeof why) != 0) {
        free(text);
        return fail(settings_path, why);
    }
    const int error = shim_state_make(folder, text, number);
    free(text);
    return error ? fail(folder, strerror(-error)) : 0;
}

/* The quantile of the delays; nan without calls. */
static double late_s(const struct shim_state *state, double share)
{
    uint64_t all = 0, below = 0;
    for (uint32_t bin = 0; bin < ENSIO_BIN_COUNT; bin++)
        all += state->late[bin];
    for (uint32_t bin = 0; bin < ENSIO_BIN_COUNT && all; bin++)
        if ((double)(below += state->late[bin]) >= share * (double)all)
            return 0.5e-9 * ((double)ensio_bin_low(bin) + (double)ensio_bin_low(bin + 1));
    return 0.0 / 0.0;
}

static int status(const char *folder)
{
    int error;
    const struct shim_state *state = shim_state_map(folder, &error);
    if (!state)
        return fail(folder, error == EPROTO ? "is the state of another version of ensio" : strerror(error));
    const struct shim_counts *counts = &state->counts;
    printf("calls %" PRIu64 "\nmodel_s %.9f\n", counts->calls, 1e-9 * (double)counts->model_ns);
    printf("bytes_read %" PRIu64 "\nbytes_written %" PRIu64 "\n", counts->bytes_read, counts->bytes_written);
    printf("longer_calls %" PRIu64 "\nlonger_s %.9f\n", counts->longer, 1e-9 * (double)counts->longer_ns);
    printf("late_median_s %.9f\nlate_p90_s %.9f\nlate_p99_s %.9f\n", late_s(state, 0.5), late_s(state, 0.9),
           late_s(state, 0.99));
    printf("asynchronous_calls %" PRIu64 "\n", counts->asynchronous);
    printf("nested_calls %" PRIu64 "\nwithout_slot_calls %" PRIu64 "\nlet_go_calls %" PRIu64 "\n", counts->nested,
           counts->without_slot, counts->let_go);
    printf("restarts %" PRIu64 "\ngone_callers %" PRIu64 "\n", counts->restarts, counts->gone);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "make") == 0)
        return make(argv[2], argv[3], argv[4]);
    if (argc == 3 && strcmp(argv[1], "status") == 0)
        return status(argv[2]);
    return fail("usage", "make FOLDER SETTINGS SEED, or status FOLDER");
}
