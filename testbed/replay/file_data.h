/* file_data.h: the data of calls that read and write files: what goes out is the content of the file there
 * (data_pattern.h), and so must be what comes in. */
#ifndef ENSIO_REPLAY_FILE_DATA_H
#define ENSIO_REPLAY_FILE_DATA_H

#include "calls.h"

extern const struct call_data data_read;
extern const struct call_data data_written;

#endif
