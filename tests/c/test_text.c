/* Strings that never overflow, globs, and numbers with units. */
#include "check.h"

#include <core/bounded_string.h>
#include <core/globs.h>
#include <process/units.h>

#include <fnmatch.h>
#include <string.h>

static void strings_are_cut_and_say_so(void)
{
    char buffer[8];
    struct ensio_string string = ensio_string_in(buffer, sizeof buffer);
    ensio_add(&string, "abc");
    ensio_add_number(&string, 120);
    CHECK(strcmp(buffer, "abc120") == 0 && !string.full);
    ensio_add(&string, "xyz");
    CHECK(strcmp(buffer, "abc120x") == 0 && string.full);

    char number[32];
    struct ensio_string largest = ensio_string_in(number, sizeof number);
    ensio_add_number(&largest, UINT64_MAX);
    CHECK(strcmp(number, "18446744073709551615") == 0);

    char name[32];
    struct ensio_string safe = ensio_string_in(name, sizeof name);
    ensio_add_name(&safe, "a/b c\n../x:1_2.3-4");
    CHECK(strcmp(name, "a-b-c-..-x-1_2.3-4") == 0);
}

static void words_are_whole(void)
{
    CHECK(ensio_word_in("sh", "bash sh zsh"));
    CHECK(!ensio_word_in("sh", "bash zsh"));
    CHECK(!ensio_word_in("ba", "bash zsh"));
    CHECK(!ensio_word_in("", "bash zsh"));
    CHECK(ensio_word_in("zsh", "bash zsh"));
    CHECK(strcmp(ensio_base_name("/usr/bin/app"), "app") == 0);
    CHECK(strcmp(ensio_base_name("app"), "app") == 0);
}

/* Agrees with the C library's fnmatch for globs without classes and escapes. */
static void globs_match_as_fnmatch_does(void)
{
    static const char *const globs[] = {"*",     "/a/*", "*.so",           "*.so.*", "/a/?",
                                        "a*b*c", "",     "*/lib/python3*", "**",     "?*?"};
    static const char *const paths[] = {"/a/b",    "/a/",   "/a",  "x.so", "/usr/lib/x.so.6",
                                        "abc",     "a-b-c", "acb", "",     "/opt/lib/python3.11/os.py",
                                        "aXbXbXc", "ab"};
    for (size_t i = 0; i < sizeof globs / sizeof *globs; i++)
        for (size_t j = 0; j < sizeof paths / sizeof *paths; j++)
            if (*globs[i])
                CHECK(ensio_listed(paths[j], globs[i]) == (fnmatch(globs[i], paths[j], 0) == 0));
}

static void the_first_glob_that_matches_decides(void)
{
    CHECK(!ensio_listed("/dev/shm/data", "!/dev/shm/*:/dev/*"));
    CHECK(ensio_listed("/dev/null", "!/dev/shm/*:/dev/*"));
    CHECK(ensio_listed("/dev/shm/sem.1", "/dev/shm/sem.*:!/dev/shm/*:/dev/*"));
    CHECK(!ensio_listed("/home/x", "!/dev/shm/*:/dev/*"));
    CHECK(!ensio_listed("/home/x", ""));
    CHECK(ensio_listed("/home/x", "::/home/*:"));
}

/* The compiled list gives the answers of the list, for any paths made of pieces of its globs. */
static void an_exclusion_matches_as_its_list_does(void)
{
    static const char list[] = "/dev/shm/sem.*:!/dev/shm/*:/dev/*:*.so:*.so.*:*/lib/python3*:/:/dev:*.darshan*:?x:"
                               "*?.tmp:**y:*/p*-*:a:*";
    static const char *const pieces[] = {"/", "dev", "shm", "/sem.", ".so",      ".",  "lib/python3",
                                         "a", "x",   "y",   ".tmp",  ".darshan", "p-", ""};
    enum { PIECES = sizeof pieces / sizeof *pieces };
    static char shorter[sizeof list];
    uint32_t excluded = 0, all = 0;
    memcpy(shorter, list, sizeof list - 3); /* without the star that matches everything */
    ensio_exclude(shorter);
    for (uint32_t n = 0; n < PIECES * PIECES * PIECES * PIECES; n++, all++) {
        char path[64] = "";
        for (uint32_t i = 0, rest = n; i < 4; i++, rest /= PIECES)
            strcat(path, pieces[rest % PIECES]);
        const int found = ensio_excluded(path);
        CHECK(found == ensio_listed(path, shorter));
        excluded += (uint32_t)found;
    }
    CHECK(excluded > all / 10 && excluded < all - all / 10);
}

static void numbers_have_three_digits_and_a_unit(void)
{
    static const struct {
        uint64_t ns;
        const char *text;
    } times[] = {
        {0, "0 ns"},
        {999, "999 ns"},
        {1000, "1.00 µs"},
        {1250000, "1.25 ms"},
        {99949999, "99.9 ms"},
        {99951000, "100 ms"},
        {999600000, "1.00 s"},
        {3400000000, "3.40 s"},
        {119900000000, "120 s"},
        {120000000000, "2 min 00 s"},
        {3599000000000, "59 min 59 s"},
        {3720000000000, "1 h 02 min"},
    };
    static const struct {
        double bytes;
        const char *text;
    } amounts[] = {
        {0, "0 B"},         {512, "512 B"}, {1023, "1023 B"}, {1024, "1.00 KiB"}, {1.5 * 1048576, "1.50 MiB"},
        {1e19, "8.67 EiB"},
    };
    static const struct {
        double share;
        const char *text;
    } shares[] = {
        {0, "0.0 %"},      {1e-9, "< 0.1 %"}, {0.00049, "< 0.1 %"},     {0.00123, "0.1 %"},
        {0.256, "25.6 %"}, {0.999, "99.9 %"}, {0.99999999, "> 99.9 %"}, {1, "100.0 %"},
    };
    char text[ENSIO_UNITS_ROOM];
    for (size_t at = 0; at < sizeof shares / sizeof *shares; at++)
        CHECK(strcmp(ensio_text_of_share(text, shares[at].share), shares[at].text) == 0);
    for (size_t at = 0; at < sizeof times / sizeof *times; at++)
        CHECK(strcmp(ensio_text_of_ns(text, times[at].ns), times[at].text) == 0);
    for (size_t at = 0; at < sizeof amounts / sizeof *amounts; at++)
        CHECK(strcmp(ensio_text_of_bytes(text, amounts[at].bytes), amounts[at].text) == 0);
}

int main(void)
{
    strings_are_cut_and_say_so();
    words_are_whole();
    numbers_have_three_digits_and_a_unit();
    globs_match_as_fnmatch_does();
    the_first_glob_that_matches_decides();
    an_exclusion_matches_as_its_list_does();
    puts("6 passed, 0 failed");
    return 0;
}
