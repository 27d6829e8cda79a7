/* Decode blocks of a job file, and HDF5's shuffle. job_file_codec.py documents the functions. The input is
 * untrusted: a file may be damaged or forged. */
#include "_compiled.h"

#include <stdint.h>
#include <string.h>

#include <ensio/jobfile.h>

#include "readers/common/shuffle.h"
#include "summaries/processors.h"

enum { START, DURATION, FILE_NUMBER, REQUESTED, MOVED, OFFSET, COLUMNS };

struct column {
    const uint8_t *at, *end;
};

/* Return 0 and set *failed if the column has no complete number left. */
static inline uint64_t take(struct column *column, int *failed)
{
    const uint8_t *at = column->at;
    uint64_t number = 0;
    for (unsigned shift = 0; shift < 70 && at < column->end; shift += 7) {
        const uint8_t byte = *at++;
        number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            column->at = at;
            return number;
        }
    }
    *failed = 1;
    return 0;
}

static inline uint64_t unfolded(uint64_t number)
{
    return number >> 1 ^ (0 - (number & 1));
}

struct place {
    uint64_t next, distance;
};

struct block {
    uint32_t events, templates;
    const uint8_t *template_bytes, *template_of;
    struct column columns[COLUMNS];
};

/* Test whether the parts of the block fill it exactly. */
static int find_parts(struct block *block, const uint8_t *bytes, Py_ssize_t length)
{
    struct ensio_block head;
    if (length < (Py_ssize_t)sizeof head)
        return 0;
    memcpy(&head, bytes, sizeof head);
    const uint32_t lengths[COLUMNS] = {head.start_bytes,     head.duration_bytes, head.file_bytes,
                                       head.requested_bytes, head.moved_bytes,    head.offset_bytes};
    if (head.magic != ENSIO_BLOCK_MAGIC || head.events > ENSIO_BLOCK_EVENTS || head.templates > ENSIO_BLOCK_TEMPLATES)
        return 0;
    uint64_t at = sizeof head;
    block->events = head.events;
    block->templates = head.templates;
    block->template_bytes = bytes + at;
    at += head.templates * sizeof(struct ensio_template);
    if (at + head.events > (uint64_t)length)
        return 0;
    block->template_of = bytes + at;
    at += head.events;
    for (int i = 0; i < COLUMNS; i++) {
        if (lengths[i] > (uint64_t)length - at)
            return 0;
        block->columns[i] = (struct column){bytes + at, bytes + at + lengths[i]};
        at += lengths[i];
    }
    return at == (uint64_t)length;
}

/* Decode all events, and return whether this consumed the columns exactly. */
static int decode(struct block *block, uint8_t *out)
{
    static const struct ensio_template none;
    struct ensio_template templates[ENSIO_BLOCK_TEMPLATES];
    uint64_t requested[ENSIO_CALL_SLOTS] = {0};
    struct place places[ENSIO_FILE_SLOTS];
    memset(places, 0, sizeof places);
    memcpy(templates, block->template_bytes, block->templates * sizeof *templates);
    struct column *const columns = block->columns;
    uint64_t end = 0, file = 0;
    int failed = 0;
    for (uint32_t i = 0; i < block->events && !failed; i++) {
        const uint8_t number = block->template_of[i];
        failed |= number >= block->templates;
        const struct ensio_template template = failed ? none : templates[number];
        struct ensio_event event = {.call = template.call, .depth = template.depth, .flags = template.flags};
        event.start = end + unfolded(take(&columns[START], &failed));
        event.duration = take(&columns[DURATION], &failed);
        end = event.start + event.duration;
        if (template.shape & ENSIO_GIVEN_FILE)
            file += unfolded(take(&columns[FILE_NUMBER], &failed));
        /* Before version 3, a file had 32 bits and there were no sites. */
        failed |= file > UINT32_MAX || (file > UINT16_MAX && template.site);
        event.file = (uint16_t)file;
        event.site = template.site ? template.site : (uint16_t)(file >> 16);
        uint64_t *const usual = &requested[event.call % ENSIO_CALL_SLOTS];
        if (template.shape & ENSIO_GIVEN_REQUESTED)
            *usual += unfolded(take(&columns[REQUESTED], &failed));
        event.requested = *usual;
        event.moved = (int64_t)event.requested;
        if (template.shape & ENSIO_GIVEN_MOVED)
            event.moved = (int64_t)(event.requested + unfolded(take(&columns[MOVED], &failed)));
        event.offset = -1;
        const uint32_t from = template.shape & ENSIO_OFFSET_PLACES;
        if (from != ENSIO_OFFSET_NONE) {
            struct place *const place = &places[event.file % ENSIO_FILE_SLOTS];
            if (from == ENSIO_OFFSET_GIVEN)
                place->distance = unfolded(take(&columns[OFFSET], &failed));
            const uint64_t offset = place->next + (from == ENSIO_OFFSET_FOLLOWS ? 0 : place->distance);
            event.offset = (int64_t)offset;
            place->next = offset + (event.moved > 0 ? (uint64_t)event.moved : 0);
        }
        memcpy(out + i * sizeof event, &event, sizeof event);
    }
    for (int i = 0; i < COLUMNS; i++)
        failed |= columns[i].at != columns[i].end;
    return !failed;
}

static PyObject *decode_block(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *result = NULL;
    Py_buffer from, out;
    struct block block;
    if (!PyArg_ParseTuple(args, "y*w*", &from, &out))
        return NULL;
    int sound = find_parts(&block, from.buf, from.len);
    if (sound && out.len / (Py_ssize_t)sizeof(struct ensio_event) < (Py_ssize_t)block.events) {
        PyErr_SetString(PyExc_IndexError, "the block has more events than there is room for");
        goto release;
    }
    Py_BEGIN_ALLOW_THREADS
    if (sound)
        sound = decode(&block, out.buf);
    Py_END_ALLOW_THREADS
    if (sound)
        result = PyLong_FromUnsignedLong(block.events);
    else
        PyErr_SetString(PyExc_ValueError, "the block's parts do not fit together");
release:
    PyBuffer_Release(&out);
    PyBuffer_Release(&from);
    return result;
}

static PyObject *unshuffle(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *result = NULL;
    Py_buffer from, out;
    Py_ssize_t first;
    int width;
    if (!PyArg_ParseTuple(args, "y*niw*", &from, &first, &width, &out))
        return NULL;
    if (width != 1 && width != 2 && width != 4 && width != 8) {
        PyErr_SetString(PyExc_ValueError, "items have 1, 2, 4 or 8 bytes");
        goto release;
    }
    const Py_ssize_t items = from.len / width, count = out.len / width;
    if (items * width != from.len || count * width != out.len || first < 0 || count > items - first) {
        PyErr_SetString(PyExc_ValueError, "there are fewer items");
        goto release;
    }
    Py_BEGIN_ALLOW_THREADS
    put_together(from.buf, (size_t)items, (size_t)first, (size_t)count, width, out.buf);
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
release:
    PyBuffer_Release(&out);
    PyBuffer_Release(&from);
    return result;
}

FOR_EACH_PROCESSOR
static void shuffle_all(const uint8_t *plain, size_t items, size_t count, int width, uint8_t *out)
{
    take_apart(plain, items, count, width, out);
}

/* Shuffle items, and pad them with zeros. Items that are all alike are left alone, and False is returned. */
static PyObject *shuffle(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *result = NULL;
    Py_buffer from, out;
    int width, alike = 0;
    if (!PyArg_ParseTuple(args, "y*iw*", &from, &width, &out))
        return NULL;
    if (width != 1 && width != 2 && width != 4 && width != 8) {
        PyErr_SetString(PyExc_ValueError, "items have 1, 2, 4 or 8 bytes");
        goto release;
    }
    const Py_ssize_t items = out.len / width, count = from.len / width;
    if (items * width != out.len || count * width != from.len || count > items || count == 0) {
        PyErr_SetString(PyExc_ValueError, "there are more items than room for them");
        goto release;
    }
    Py_BEGIN_ALLOW_THREADS
    const uint8_t *const bytes = from.buf;
    alike = count == items && memcmp(bytes, bytes + width, (size_t)(from.len - width)) == 0;
    if (!alike) {
        uint8_t *const to = out.buf;
        shuffle_all(bytes, (size_t)items, (size_t)count, width, to);
        for (int k = 0; k < width; k++)
            memset(to + k * items + count, 0, (size_t)(items - count));
    }
    Py_END_ALLOW_THREADS
    result = PyBool_FromLong(!alike);
release:
    PyBuffer_Release(&out);
    PyBuffer_Release(&from);
    return result;
}

PyMethodDef block_functions[] = {{"decode_block", decode_block, METH_VARARGS, NULL},
                                 {"unshuffle", unshuffle, METH_VARARGS, NULL},
                                 {"shuffle", shuffle, METH_VARARGS, NULL},
                                 {NULL, NULL, 0, NULL}};
