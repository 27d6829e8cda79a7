/* bounded_string.h: strings in buffers of fixed size, without the allocations that libc's functions may make. */
#ifndef ENSIO_CORE_BOUNDED_STRING_H
#define ENSIO_CORE_BOUNDED_STRING_H

#include <stdint.h>

/* A string that is built piece by piece. What does not fit is dropped, and `full` is set. */
struct ensio_string {
    char *text;
    uint32_t room, length;
    int full;
};

struct ensio_string ensio_string_in(char *buffer, uint32_t room);
void ensio_add(struct ensio_string *string, const char *piece);
void ensio_add_bytes(struct ensio_string *string, const char *piece, uint32_t length);
void ensio_add_number(struct ensio_string *string, uint64_t number);

/* Adds the description of an errno or, where the C library is older than glibc 2.32, its number. */
void ensio_add_error(struct ensio_string *string, int error);

/* Adds a piece of a file name: every character but letters, digits, '.', '_' and '-' becomes '-'. */
void ensio_add_name(struct ensio_string *string, const char *piece);

/* A 64-bit hash (FNV-1a). */
uint64_t ensio_hash(const char *text);

/* The same for bytes, several times as fast; `seed` is part of what is hashed. */
uint64_t ensio_hash_bytes(uint64_t seed, const char *bytes, uint32_t length);

/* What follows the last '/'. */
const char *ensio_base_name(const char *path);

/* Whether the word is in a space-separated list. */
int ensio_word_in(const char *word, const char *list);

#endif
