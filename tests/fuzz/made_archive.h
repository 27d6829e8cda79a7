/* made_archive.h: makes an OTF2 archive from an input of libFuzzer. */
#ifndef ENSIO_FUZZ_MADE_ARCHIVE_H
#define ENSIO_FUZZ_MADE_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes FOLDER/traces.otf2 and its other files. False: libotf2 refused. */
bool make_archive(const uint8_t *data, size_t size, const char *folder);

#endif
