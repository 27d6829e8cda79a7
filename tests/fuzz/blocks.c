/* blocks.c: arbitrary bytes as a block of a job file. Decoded events survive coding by the recorder unchanged. */
#include "python.h"

#include <spool/encode.h>
#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct ensio_event events[ENSIO_BLOCK_EVENTS + 1];

/* The number of events, or -1 if the block is refused. */
static long decode(const void *block, size_t bytes, struct ensio_event *to)
{
    static PyObject *function;
    if (!function)
        function = fuzz_function(PyInit__compiled, "decode_block");
    struct fuzz_buffer from = fuzz_buffer_of(block, bytes, "B");
    struct fuzz_buffer out = fuzz_buffer_of(NULL, ENSIO_BLOCK_EVENTS * sizeof *to, "B");
    PyObject *result = fuzz_call(function, PyTuple_Pack(2, from.view, out.view));
    long count = result ? PyLong_AsLong(result) : -1;
    if (count > 0)
        memcpy(to, out.memory, (size_t)count * sizeof *to);
    Py_XDECREF(result);
    fuzz_release(&from);
    fuzz_release(&out);
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct ensio_encoder encoder;
    static uint8_t coded[ENSIO_MOST_BLOCK_BYTES];
    static struct ensio_event again[ENSIO_BLOCK_EVENTS + 1];
    long count = decode(data, size, events);
    for (long done = 0; done < count;) {
        uint32_t some = (uint32_t)(count - done);
        uint32_t bytes = ensio_encode_events(&encoder, events + done, &some, coded);
        if (some == 0 || decode(coded, bytes, again) != (long)some ||
            memcmp(events + done, again, some * sizeof *again) != 0) {
            fprintf(stderr, "events %ld to %ld differ after coding and decoding\n", done, done + (long)some);
            abort();
        }
        done += some;
    }
    return 0;
}
