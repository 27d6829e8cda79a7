#include "globs.h"

#include <stdint.h>
#include <string.h>

/* Whether a path matches a glob that ends before `end`. Backtracking to the last star is enough, and linear. Behind a
 * star only places with the glob's next character are tried. */
static int matches(const char *path, const char *glob, const char *end)
{
    const char *star = NULL, *resume = NULL;
    while (*path) {
        if (glob < end && *glob == '*') {
            star = ++glob;
            resume = path;
        } else if (glob < end && (*glob == '?' || *glob == *path)) {
            glob++;
            path++;
            continue;
        } else if (star) {
            glob = star;
            path = ++resume;
        } else {
            return 0;
        }
        if (glob == end)
            return 1; /* the star takes the rest */
        if (*glob != '*' && *glob != '?' && !(path = resume = strchr(resume, *glob)))
            return 0;
    }
    while (glob < end && *glob == '*')
        glob++;
    return glob == end;
}

int ensio_listed(const char *path, const char *globs)
{
    while (*globs) {
        const char *end = strchrnul(globs, ':');
        int exception = *globs == '!';
        if (matches(path, globs + exception, end))
            return !exception;
        globs = *end ? end + 1 : end;
    }
    return 0;
}

#define WORD_BYTES 8
#define MOST_GLOBS 64 /* further ones are always looked at */

/* A glob by the literal characters at its beginning, or behind its first star, of which a word holds the first ones. At
 * the end of the glob, the end of the path belongs to them. */
static struct {
    uint64_t word, mask;
    const char *glob;
} starts[MOST_GLOBS];
/* Sets of globs by bits: those whose first or second literal character is this one, and those without such a character,
 * so that few are compared anywhere in a path. */
static uint64_t first[256], second[256], any_first, any_second, anywhere, at_beginning;
static const char *rest = "";

void ensio_exclude(const char *globs)
{
    for (uint32_t count = 0; *globs && count < MOST_GLOBS; count++) {
        const char *literal = globs + (*globs == '!'), *const end = strchrnul(globs, ':');
        const int is_anywhere = *literal == '*' && literal + 1 < end && literal[1] != '*' && literal[1] != '?';
        literal += is_anywhere;
        for (uint32_t i = 0; i < WORD_BYTES && literal + i <= end && literal[i] != '*' && literal[i] != '?'; i++) {
            starts[count].word |= (literal + i < end ? (uint64_t)(uint8_t)literal[i] : 0) << 8 * i;
            starts[count].mask |= 0xffULL << 8 * i;
        }
        starts[count].glob = globs;
        *(starts[count].mask & 0xff ? &first[(uint8_t)starts[count].word] : &any_first) |= 1ULL << count;
        *(starts[count].mask & 0xff00 ? &second[(uint8_t)(starts[count].word >> 8)] : &any_second) |= 1ULL << count;
        *(is_anywhere ? &anywhere : &at_beginning) |= 1ULL << count;
        globs = *end ? end + 1 : end;
    }
    rest = globs;
}

/* Those of some globs whose literal characters a word begins with. */
static inline uint64_t possible_at(uint64_t some, uint64_t word)
{
    uint64_t possible = 0;
    some &= (first[(uint8_t)word] | any_first) & (second[(uint8_t)(word >> 8)] | any_second);
    for (; some; some &= some - 1) {
        const int glob = __builtin_ctzll(some);
        possible |= (uint64_t)(((starts[glob].word ^ word) & starts[glob].mask) == 0) << glob;
    }
    return possible;
}

int ensio_excluded(const char *path)
{
    uint64_t word = 0, possible = 0; /* the word: the next characters of the path */
    for (size_t at = strlen(path); at-- > 0;) {
        word = word << 8 | (uint8_t)path[at];
        if (first[(uint8_t)word] & anywhere)
            possible |= possible_at(anywhere, word);
    }
    for (possible |= possible_at(at_beginning, word); possible; possible &= possible - 1) {
        const char *glob = starts[__builtin_ctzll(possible)].glob;
        const int exception = *glob == '!';
        if (matches(path, glob + exception, strchrnul(glob, ':')))
            return !exception;
    }
    return ensio_listed(path, rest);
}
