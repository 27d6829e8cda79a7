/* bounded_string.h: strings in buffers of fixed size, and globs, without the allocations that libc's functions may
 * make. */
#ifndef ENSIO_CORE_BOUNDED_STRING_H
#define ENSIO_CORE_BOUNDED_STRING_H

#include <stdint.h>

/* A string that is built piece by piece. What does not fit is left out, and `full` says so. */
struct ensio_string {
    char *text;
    uint32_t room, length;
    int full;
};

struct ensio_string ensio_string_in(char *buffer, uint32_t room);
void ensio_add(struct ensio_string *string, const char *piece);
void ensio_add_bytes(struct ensio_string *string, const char *piece, uint32_t length);
void ensio_add_number(struct ensio_string *string, uint64_t number);

/* Adds a piece of a file name: all but letters, digits, '.', '_' and '-' becomes '-'. */
void ensio_add_name(struct ensio_string *string, const char *piece);

/* A 64-bit hash (FNV-1a). */
uint64_t ensio_hash(const char *text);

/* What follows the last '/'. */
const char *ensio_base_name(const char *path);

/* Whether the word is one of the words of a list, separated by spaces. */
int ensio_word_in(const char *word, const char *list);

/* The first glob of a colon-separated list that a path matches decides: 1 where it is a plain glob, 0 where it begins
 * with
 * '!', and 0 where none matches. '*' stands for any characters, '/' included, '?' for one. */
int ensio_listed(const char *path, const char *globs);

#endif
