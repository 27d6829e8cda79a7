#include "units.h"

#include <inttypes.h>
#include <stdio.h>

static void three_digits(char text[ENSIO_UNITS_ROOM], double value, const char *unit)
{
    snprintf(text, ENSIO_UNITS_ROOM, "%.*f %s", value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2, value, unit);
}

const char *ensio_text_of_ns(char text[ENSIO_UNITS_ROOM], uint64_t ns)
{
    static const struct {
        double ns;
        const char *name;
    } units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}};
    const uint64_t second = 1000000000;
    if (ns >= 3600 * second) {
        const uint64_t minutes = (ns + 30 * second) / (60 * second);
        snprintf(text, ENSIO_UNITS_ROOM, "%" PRIu64 " h %02" PRIu64 " min", minutes / 60, minutes % 60);
        return text;
    }
    if (ns >= 120 * second) {
        const uint64_t seconds = (ns + second / 2) / second;
        snprintf(text, ENSIO_UNITS_ROOM, "%" PRIu64 " min %02" PRIu64 " s", seconds / 60, seconds % 60);
        return text;
    }
    for (size_t unit = 0; unit < sizeof units / sizeof *units; unit++)
        if ((double)ns >= 0.9995 * units[unit].ns) {
            three_digits(text, (double)ns / units[unit].ns, units[unit].name);
            return text;
        }
    snprintf(text, ENSIO_UNITS_ROOM, "%" PRIu64 " ns", ns);
    return text;
}

const char *ensio_text_of_share(char text[ENSIO_UNITS_ROOM], double share)
{
    const int is_least = share > 0 && share < 0.0005, is_most = share >= 0.9995 && share < 1;
    snprintf(text, ENSIO_UNITS_ROOM, "%s%.1f %%",
             is_least  ? "< "
             : is_most ? "> "
                       : "",
             is_least  ? 0.1
             : is_most ? 99.9
                       : 100 * share);
    return text;
}

const char *ensio_text_of_bytes(char text[ENSIO_UNITS_ROOM], double bytes)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t power = 0;
    if (bytes < 1024) {
        snprintf(text, ENSIO_UNITS_ROOM, "%.0f B", bytes);
        return text;
    }
    for (; bytes >= 1023.5 && power < sizeof names / sizeof *names - 1; power++)
        bytes /= 1024;
    three_digits(text, bytes, names[power]);
    return text;
}
