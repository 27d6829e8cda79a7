/* units.h: numbers with units, as the commands print them (ensembles/model/units.py). */
#ifndef ENSIO_PROCESS_UNITS_H
#define ENSIO_PROCESS_UNITS_H

#include <stddef.h>
#include <stdint.h>

#define ENSIO_UNITS_ROOM 32

/* Three digits with a unit from ns to h, such as "359 ms". Returns the text. */
const char *ensio_text_of_ns(char text[ENSIO_UNITS_ROOM], uint64_t ns);

/* A percentage with one digit after the point, such as "0.5 %". Returns the text. */
const char *ensio_text_of_share(char text[ENSIO_UNITS_ROOM], double share);

/* Three digits with a binary unit, such as "1.50 MiB". Returns the text. */
const char *ensio_text_of_bytes(char text[ENSIO_UNITS_ROOM], double bytes);

#endif
