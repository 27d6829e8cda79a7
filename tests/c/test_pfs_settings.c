/* Settings are parsed from text; an error is reported in one sentence that names the line. */
#include "pfs_world.h"

static void refused(const char *text, const char *line, const char *word)
{
    struct pfs_settings settings;
    char why[256] = "";
    CHECK(pfs_settings_read(&settings, text, why, sizeof why) == -1);
    CHECK(strstr(why, line) && strstr(why, word));
    CHECK(!strchr(why, '\n'));
    char short_why[20];
    CHECK(pfs_settings_read(&settings, text, short_why, sizeof short_why) == -1);
    CHECK(strlen(short_why) < sizeof short_why);
}

static void what_the_text_does_not_say_is_healthy(void)
{
    struct pfs_settings settings =
        world_settings("targets 7\n\n  # a comment\n\tlink_MB_per_s\t2.5 \r\nfault.slow-target 2");
    CHECK(settings.targets == 7 && settings.link_MB_per_s == 2.5 && settings.fault.slow_target == 2);
    CHECK(settings.mds_threads == 16 && settings.stripe_MiB == 1);
    struct pfs_settings healthy = world_settings("");
    CHECK(healthy.fault.slow_target == 0 && healthy.targets == 48);
    const struct {
        double value, usual, smallest, largest;
    } parameters[] = {
#define ROW(key, usual, smallest, largest) {healthy.key, usual, smallest, largest},
        PFS_PARAMETERS(ROW)
#undef ROW
    };
    for (size_t i = 0; i < sizeof parameters / sizeof parameters[0]; i++) {
        CHECK(parameters[i].value == parameters[i].usual);
        CHECK(parameters[i].smallest <= parameters[i].usual && parameters[i].usual <= parameters[i].largest);
    }
    const double faults[] = {
#define ROW(field, id) healthy.fault.field,
        PFS_FAULTS(ROW)
#undef ROW
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        CHECK(faults[i] == 0);
    world_settings("fault.straggler-task 100\ntargets 65536\ncache_MiB 0");
}

static void wrong_text_is_refused_with_its_line(void)
{
    char long_line[400];
    memset(long_line, 'x', sizeof long_line - 1);
    long_line[sizeof long_line - 1] = '\0';
    refused("nonsense 1", "line 1", "nonsense");
    refused("targets 4\n\n# c\nfault.nonsense 1\n", "line 4", "fault.nonsense");
    refused("targets\n", "line 1", "targets");
    refused("targets four\n", "line 1", "four");
    refused("targets 4 5\n", "line 1", "4 5");
    refused("targets 0\n", "line 1", "between");
    refused("targets nan\n", "line 1", "targets");
    refused("link_MB_per_s inf\n", "line 1", "link_MB_per_s");
    refused("targets 1\nfault.slow-target -1\n", "line 2", "fault.slow-target");
    refused("fault.slow-target 101\n", "line 1", "between");
    refused(long_line, "line 1", "longer");
}

int main(void)
{
    what_the_text_does_not_say_is_healthy();
    wrong_text_is_refused_with_its_line();
    puts("2 passed, 0 failed");
    return 0;
}
