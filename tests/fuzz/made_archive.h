/* made_archive.h: an OTF2 archive of an input of libFuzzer's. */
#ifndef ENSIO_FUZZ_MADE_ARCHIVE_H
#define ENSIO_FUZZ_MADE_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes FOLDER/traces.otf2 and what belongs to it. False: libotf2 would not. */
bool make_archive(const uint8_t *data, size_t size, const char *folder);

#endif
