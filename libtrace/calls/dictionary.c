/* dictionary.c: what is there to be recorded, and what of it is wanted. */
#include "calls.h"

#include <core/raw.h>
#include <core/recorder.h>
#include <core/settings.h>
#include <core/text.h>

#include <stdlib.h>
#include <string.h>

#define QUOTED_AS_IS(name) #name
#define QUOTED(name) QUOTED_AS_IS(name)

#define CALL(number, call, op) #number " " #call " " QUOTED(LAYER) " " #op "\n"
const char ensio_calls[] =
#include "tables.def"
    ;
#undef CALL

#define CALL(number, call, op) _Static_assert((number) < ENSIO_CALLS, "there is no room for the call's number");
#include "tables.def"

uint8_t ensio_unwanted_calls[ENSIO_CALLS];

/* Whether a word of `length` characters is in a list that is separated by commas. */
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

/* The name of the layer in a line of the dictionary. */
static const char *layer_of(const char *line, size_t *length)
{
    const char *name = strchr(strchr(line, ' ') + 1, ' ') + 1;
    *length = strcspn(name, " ");
    return name;
}

static int there_is(const char *layer, size_t length)
{
    for (const char *line = ensio_calls; *line; line = strchr(line, '\n') + 1) {
        size_t own;
        const char *name = layer_of(line, &own);
        if (own == length && memcmp(name, layer, length) == 0)
            return 1;
    }
    return 0;
}

static void say_unknown(const char *layer, size_t length)
{
    char line[512];
    struct ensio_string message = ensio_string_in(line, sizeof line - 1);
    ensio_add(&message, "ensio: ENSIO_LAYERS names \"");
    ensio_add_bytes(&message, layer, length < 64 ? (uint32_t)length : 64);
    ensio_add(&message, "\", which is no layer that can be recorded; it is ignored (there are posix and stdio).\n");
    if (ensio_settings.rank <= 0)
        syscall(SYS_write, 2, message.text, message.length);
}

void ensio_calls_choose(const char *layers)
{
    for (const char *line = ensio_calls; *line; line = strchr(line, '\n') + 1) {
        size_t length;
        const char *layer = layer_of(line, &length);
        ensio_unwanted_calls[strtoul(line, NULL, 10)] = !listed(layer, length, layers);
    }
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
    ensio_stdio_resolve();
}
