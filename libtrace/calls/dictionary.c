/* dictionary.c: the dictionary of all calls, and the choice of recorded layers. */
#include "calls.h"

#include <core/bounded_string.h>
#include <core/recorder.h>
#include <core/settings.h>
#include <core/site_settings.h>

#include <stdlib.h>
#include <string.h>

#define QUOTED_AS_IS(name) #name
#define QUOTED(name) QUOTED_AS_IS(name)

#define CALL(number, call, op) #number " " #call " " QUOTED(LAYER) " " #op "\n"
#define NAMESAKE(number, call, name, op) CALL(number, name, op)
const char ensio_calls[] =
#include "tables.def"
    ;
#undef CALL
#undef NAMESAKE

#define BETWEEN(number, first, last) ((number) >= (first) && (number) <= (last))
#define BLOCK_START (256 + 64 * (LAYER_ID))
#define CALL(number, call, op) \
    _Static_assert(FIRST_NUMBERS(number) || (LAYER_ID >= 0 && BETWEEN(number, BLOCK_START, BLOCK_START + 63)), \
                   #call " has a number of another layer: tables.def says which are its own"); \
    _Static_assert((number) < ENSIO_CALLS, "the tables by call number end before that of " #call);
#include "tables.def"
#undef CALL

/* The compiler refuses a number that occurs twice. */
__attribute__((unused)) static void check_numbers(int number)
{
    switch (number) {
#define CALL(number, call, op) case number:
#include "tables.def"
#undef CALL
    default:
        break;
    }
}

#define CALL(number, call, op) number,
const uint16_t ensio_call_numbers[ENSIO_CALL_COUNT] = {
#include "tables.def"
};
#undef CALL

#define CALL(number, call, op) [number] = ENSIO_INDEX_##call,
const uint16_t ensio_call_indices[ENSIO_CALLS] = {
#include "tables.def"
};
#undef CALL

#define OP_read ENSIO_OP_READ
#define OP_write ENSIO_OP_WRITE
#define OP_open ENSIO_OP_OPEN
#define OP_close ENSIO_OP_CLOSE
#define OP_seek ENSIO_OP_SEEK
#define OP_sync ENSIO_OP_SYNC
#define OP_meta ENSIO_OP_META
#define OP_wait ENSIO_OP_WAIT
#define CALL(number, call, op) [number] = OP_##op,
const uint8_t ensio_call_ops[ENSIO_CALLS] = {
#include "tables.def"
};

#undef CALL

enum { MPISYNC = 3, MPIMSG = 7 }; /* their layer ids */
#define CALL(number, call, op) [number] = OP_##op == ENSIO_OP_WAIT && (LAYER_ID == MPISYNC || LAYER_ID == MPIMSG),
const uint8_t ensio_call_waits_for_tasks[ENSIO_CALLS] = {
#include "tables.def"
};
#undef CALL

/* By default all layers are recorded but that of messages, whose calls can be many and are not I/O. */
#define ON_REQUEST "mpimsg"
#define DEFAULT "default"
#define CALL(number, call, op) [number] = LAYER_ID == MPIMSG,
uint8_t ensio_unwanted_calls[ENSIO_CALLS] = {
#include "tables.def"
};

/* Whether a word of `length` characters is in a comma-separated list. */
static int listed(const char *word, size_t length, const char *list)
{
    while (*list) {
        size_t item = strcspn(list, ",");
        if (item == length && memcmp(list, word, length) == 0)
            return 1;
        list += item + (list[item] != '\0');
    }
    return 0;
}

/* The layer in a line of the dictionary. */
static const char *layer_of(const char *line, size_t *length)
{
    const char *name = strchr(strchr(line, ' ') + 1, ' ') + 1;
    *length = strcspn(name, " ");
    return name;
}

static int is(const char *word, size_t length, const char *other)
{
    return length == strlen(other) && memcmp(word, other, length) == 0;
}

/* The entries of program.def are not calls and cannot be excluded. */
static int is_of_program(const char *layer, size_t length)
{
    return is(layer, length, "program");
}

static int there_is(const char *layer, size_t length)
{
    if (is(layer, length, DEFAULT))
        return 1;
    for (const char *line = ensio_calls; *line; line = strchr(line, '\n') + 1) {
        size_t own;
        const char *name = layer_of(line, &own);
        if (own == length && memcmp(name, layer, length) == 0)
            return !is_of_program(layer, length);
    }
    return 0;
}

/* The layers of the tables, as "a, b and c". Calls of a layer are adjacent in the dictionary. */
static void add_layers(struct ensio_string *message)
{
    struct {
        const char *name;
        size_t length;
    } layers[16];
    unsigned count = 0;
    for (const char *line = ensio_calls; *line && count < 16; line = strchr(line, '\n') + 1) {
        size_t length;
        const char *name = layer_of(line, &length);
        const int known =
            count && layers[count - 1].length == length && memcmp(layers[count - 1].name, name, length) == 0;
        if (known || is_of_program(name, length))
            continue;
        layers[count].name = name;
        layers[count++].length = length;
    }
    for (unsigned i = 0; i < count; i++) {
        ensio_add_bytes(message, layers[i].name, (uint32_t)layers[i].length);
        ensio_add(message, i + 2 < count ? ", " : i + 1 < count ? " and " : "");
    }
}

static void say_unknown(const char *layer, size_t length)
{
    char name[65], known[400];
    struct ensio_string word = ensio_string_in(name, sizeof name), rest = ensio_string_in(known, sizeof known);
    ensio_add_bytes(&word, layer, length < 64 ? (uint32_t)length : 64);
    ensio_add(&rest, "\", which is not a layer; it is ignored (the layers are ");
    add_layers(&rest);
    ensio_add(&rest, ").\n");
    ensio_say("ENSIO_LAYERS names \"", name, known);
}

void ensio_calls_choose(const char *layers)
{
    const int with_default = listed(DEFAULT, strlen(DEFAULT), layers);
    for (const char *line = ensio_calls; *line; line = strchr(line, '\n') + 1) {
        size_t length;
        const char *layer = layer_of(line, &length);
        const int wanted = listed(layer, length, layers) || (with_default && !is(layer, length, ON_REQUEST));
        ensio_unwanted_calls[strtoul(line, NULL, 10)] = !wanted;
    }
    /* The calls that wait for messages belong to the messages. */
    if (listed(ON_REQUEST, strlen(ON_REQUEST), layers) && !ensio_setting("ENSIO_POINT_TO_POINT"))
        ensio_settings.point_to_point = 1;
    while (*layers) {
        size_t length = strcspn(layers, ",");
        if (length && !there_is(layers, length))
            say_unknown(layers, length);
        layers += length + (layers[length] != '\0');
    }
}

void ensio_calls_resolve(void)
{
    ensio_posix_resolve();
    ensio_tracked_only_resolve();
    ensio_mmap_resolve();
    ensio_aio_resolve();
    ensio_stdio_resolve();
}

void ensio_call_name(uint16_t call, char *name, size_t room)
{
    *name = '\0';
    for (const char *line = ensio_calls; *line; line = strchr(line, '\n') + 1) {
        const char *begin = strchr(line, ' ') + 1;
        const size_t length = strcspn(begin, " ");
        if (strtoul(line, NULL, 10) == call && length < room) {
            memcpy(name, begin, length);
            name[length] = '\0';
        }
    }
}
