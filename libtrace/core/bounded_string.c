#include "bounded_string.h"

#include <string.h>

extern const char *strerrordesc_np(int error) __attribute__((weak));

struct ensio_string ensio_string_in(char *buffer, uint32_t room)
{
    buffer[0] = '\0';
    return (struct ensio_string){.text = buffer, .room = room};
}

void ensio_add_bytes(struct ensio_string *string, const char *piece, uint32_t length)
{
    if (length >= string->room - string->length) {
        length = string->room - string->length - 1;
        string->full = 1;
    }
    memcpy(string->text + string->length, piece, length);
    string->length += length;
    string->text[string->length] = '\0';
}

void ensio_add(struct ensio_string *string, const char *piece)
{
    ensio_add_bytes(string, piece, (uint32_t)strlen(piece));
}

void ensio_add_number(struct ensio_string *string, uint64_t number)
{
    char digits[24];
    char *first = digits + sizeof digits - 1;
    *first = '\0';
    do
        *--first = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    ensio_add(string, first);
}

void ensio_add_error(struct ensio_string *string, int error)
{
    const char *text = strerrordesc_np ? strerrordesc_np(error) : NULL;
    ensio_add(string, text ? text : "error ");
    if (!text)
        ensio_add_number(string, (uint64_t)error);
}

void ensio_add_name(struct ensio_string *string, const char *piece)
{
    for (; *piece; piece++) {
        int plain = (*piece >= 'a' && *piece <= 'z') || (*piece >= 'A' && *piece <= 'Z') ||
                    (*piece >= '0' && *piece <= '9') || strchr("._-", *piece) != NULL;
        ensio_add_bytes(string, plain ? piece : "-", 1);
    }
}

uint64_t ensio_hash(const char *text)
{
    uint64_t hash = 14695981039346656037U;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 1099511628211U;
    return hash ^ hash >> 32;
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15U;
    return hash ^ hash >> 29;
}

/* Eight bytes at a time; the last eight may overlap those before. */
uint64_t ensio_hash_bytes(uint64_t seed, const char *bytes, uint32_t length)
{
    uint64_t word = 0, hash = mix(seed, length);
    if (length < sizeof word) {
        for (uint32_t i = 0; i < length; i++)
            word = word << 8 | (unsigned char)bytes[i];
        return mix(mix(hash, word), 0);
    }
    for (uint32_t at = 0; at + sizeof word < length; at += sizeof word) {
        memcpy(&word, bytes + at, sizeof word);
        hash = mix(hash, word);
    }
    memcpy(&word, bytes + length - sizeof word, sizeof word);
    return mix(mix(hash, word), 0);
}

const char *ensio_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

int ensio_word_in(const char *word, const char *list)
{
    size_t length = strlen(word);
    for (const char *at = list; length && (at = strstr(at, word)) != NULL; at++)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return 1;
    return 0;
}
