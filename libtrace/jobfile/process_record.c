#include "collector_state.h"

#include <spool/spool.h>

#include <string.h>

static struct ensio_collection *const state = &ensio_collection;

static void append(const void *bytes, uint64_t length)
{
    if (length)
        memcpy(state->record.bytes + state->record.used, bytes, length);
    state->record.used += length;
}

/* The texts behind those that they lean on, so that copies are found from one in the other. */
static int code_texts(const uint8_t *shared, uint32_t shared_bytes, uint8_t *to, uint32_t room)
{
    const uint32_t own = (uint32_t)state->texts.used;
    struct ensio_array both = {0};
    if (!own)
        return 0;
    uint8_t *all = ensio_array_room(&both, (uint64_t)shared_bytes + own);
    if (!all)
        return -1;
    memcpy(all, shared, shared_bytes);
    memcpy(all + shared_bytes, state->texts.bytes, own);
    const uint32_t coded = ensio_encode_text(&state->work->encoder, all, shared_bytes, own, to, room);
    ensio_array_free(&both);
    return coded ? (int)coded : -1;
}

const uint8_t *ensio_collect_record(const uint8_t *shared, uint32_t shared_bytes, uint32_t *length)
{
    const char *name = ensio_spool_name();
    const uint64_t name_bytes = strlen(name), text_room = state->texts.used + state->texts.used / 4 + 64;
    const uint64_t most = sizeof(struct ensio_job_process) + name_bytes + text_room + state->windows.used + state->data.used +
                          state->calls.used;
    state->record.used = 0;
    if (state->failed || most > UINT32_MAX / 4 || !ensio_array_room(&state->record, most))
        return NULL;
    struct ensio_job_process process = {
        .magic = ENSIO_JOB_PROCESS_MAGIC,
        .name_bytes = (uint32_t)name_bytes,
        .text_bytes = (uint32_t)state->texts.used,
        .windows = (uint32_t)ensio_collection_windows(),
        .data = (uint32_t)(state->data.used / sizeof(struct ensio_job_data)),
        .calls = (uint32_t)(state->calls.used / sizeof(struct ensio_job_call)),
        .summarised = (uint32_t)ensio_collection_has_summary(),
        .spool = state->head,
    };
    state->record.used = sizeof process;
    append(name, name_bytes);
    const int coded = code_texts(shared, shared_bytes, state->record.bytes + state->record.used, (uint32_t)text_room);
    if (coded < 0)
        return NULL;
    state->record.used += (uint64_t)coded;
    append(state->windows.bytes, state->windows.used);
    append(state->data.bytes, state->data.used);
    append(state->calls.bytes, state->calls.used);
    process.coded_bytes = (uint32_t)coded;
    process.bytes = *length = (uint32_t)state->record.used;
    memcpy(state->record.bytes, &process, sizeof process);
    const uint64_t before = offsetof(struct ensio_job_process, name_bytes);
    process.checksum = ensio_checksum(state->record.bytes + before, state->record.used - before);
    memcpy(state->record.bytes, &process, sizeof process);
    return state->record.bytes;
}
