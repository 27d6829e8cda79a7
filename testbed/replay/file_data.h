/* file_data.h: the data of calls that read and write files: both must equal the contents of the file
 * (data_pattern.h). */
#ifndef ENSIO_REPLAY_FILE_DATA_H
#define ENSIO_REPLAY_FILE_DATA_H

#include "calls.h"

extern const struct call_data data_read;
extern const struct call_data data_written;

#endif
