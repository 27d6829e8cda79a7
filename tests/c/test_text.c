/* Strings that never overflow, and globs. */
#include "check.h"

#include <core/bounded_string.h>

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

int main(void)
{
    strings_are_cut_and_say_so();
    words_are_whole();
    globs_match_as_fnmatch_does();
    the_first_glob_that_matches_decides();
    puts("4 passed, 0 failed");
    return 0;
}
