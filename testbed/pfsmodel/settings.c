#define _GNU_SOURCE /* newlocale: the decimal point is a point in every locale */
#include "settings.h"

#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct key {
    const char *name;
    size_t offset;
    double usual;
    double smallest;
    double largest;
};

static const struct key keys[] = {
#define PFS_KEY(key, usual, smallest, largest) {#key, offsetof(struct pfs_settings, key), usual, smallest, largest},
    PFS_PARAMETERS(PFS_KEY)
#undef PFS_KEY
#define PFS_KEY(field, id) {"fault." id, offsetof(struct pfs_settings, fault.field), 0, 0, PFS_STRENGTH_MOST},
        PFS_FAULTS(PFS_KEY)
#undef PFS_KEY
};

#define KEY_COUNT (sizeof keys / sizeof keys[0])
#define LINE_BYTES 256

static double *field(struct pfs_settings *settings, const struct key *key)
{
    return (double *)(void *)((char *)settings + key->offset);
}

static const struct key *find_key(const char *name)
{
    for (size_t i = 0; i < KEY_COUNT; i++)
        if (strcmp(keys[i].name, name) == 0)
            return &keys[i];
    return NULL;
}

__attribute__((format(printf, 4, 5))) static int wrong(char *why, size_t why_bytes, int line, const char *format, ...)
{
    va_list arguments;
    int length = snprintf(why, why_bytes, "line %d of the model's settings: ", line);
    va_start(arguments, format);
    if (length >= 0 && (size_t)length < why_bytes)
        vsnprintf(why + length, why_bytes - (size_t)length, format, arguments);
    va_end(arguments);
    return -1;
}

/* Parses a line that consists of one number. */
static int number(const char *text, double *value)
{
    static const char *const blanks = " \t\r";
    locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    char *end;
    *value = plain ? strtod_l(text, &end, plain) : strtod(text, &end);
    if (plain)
        freelocale(plain);
    return end != text && end[strspn(end, blanks)] == '\0';
}

static int read_line(struct pfs_settings *settings, char *text, int line, char *why, size_t why_bytes)
{
    static const char *const blanks = " \t\r";
    char *name = text + strspn(text, blanks);
    if (*name == '\0' || *name == '#')
        return 0;
    char *rest = name + strcspn(name, blanks);
    if (*rest)
        *rest++ = '\0';
    const struct key *key = find_key(name);
    if (!key)
        return wrong(why, why_bytes, line, "%s is not a parameter of the model; ensio help pfsmodel lists them", name);
    double value;
    if (!number(rest, &value))
        return wrong(why, why_bytes, line, "%s needs a number, and has \"%s\"", name, rest);
    if (!(value >= key->smallest && value <= key->largest))
        return wrong(why, why_bytes, line, "%s is %g; it must be between %g and %g", name, value, key->smallest,
                     key->largest);
    *field(settings, key) = value;
    return 0;
}

int pfs_settings_read(struct pfs_settings *settings, const char *text, char *why, size_t why_bytes)
{
    for (size_t i = 0; i < KEY_COUNT; i++)
        *field(settings, &keys[i]) = keys[i].usual;
    for (int line = 1; *text; line++) {
        char copy[LINE_BYTES];
        size_t length = strcspn(text, "\n");
        if (length >= sizeof copy)
            return wrong(why, why_bytes, line, "it is longer than %d characters", LINE_BYTES - 1);
        memcpy(copy, text, length);
        copy[length] = '\0';
        if (read_line(settings, copy, line, why, why_bytes))
            return -1;
        text += length + (text[length] == '\n');
    }
    return 0;
}

int64_t pfs_collective_ns(const struct pfs_settings *settings, int64_t tasks, int64_t bytes)
{
    int rounds = 0;
    while (((int64_t)1 << rounds) < tasks && rounds < 62)
        rounds++;
    double slower = settings->mpi_collective_scale;
    slower *= 1 + settings->fault.collective_coordination * (settings->collective_factor - 1);
    double latency_ns = settings->mpi_latency_us * 1e3 * rounds;
    double transfer_ns = (double)(bytes > 0 ? bytes : 0) * 1e3 / settings->mpi_MB_per_s;
    double ns = (latency_ns + transfer_ns) * slower;
    return ns < 0x1p60 ? (int64_t)ns : INT64_C(1) << 60;
}
