/* read_events.c: makes rows from the records of one location. A call is everything between Enter and Leave of a region
 * of I/O (or of waiting in MPI). It becomes one row for each operation that begins in it; without operations, one row
 * for what else it contains: a handle created or destroyed, a seek, a file removed. Records outside of such regions
 * become rows by themselves. */
#include "reader.h"

#include <ensio/event.h>
#include <errno.h>

#define ROWS 16384

struct frame {
    uint64_t time;
    int64_t position; /* target of a seek */
    uint32_t region, file;
    uint8_t meaning, kind, paradigm, depth, access; /* access: flags ENSIO_OPENED_TO_... */
    bool has_operation;
    uint32_t request; /* lowest number of the requests that complete in it; 0: none */
    uint64_t number;  /* in the location, from 1 */
    struct ensio_attributes told;
};

static struct ensio_otf2_row rows[ROWS];
static uint32_t row_count;
static struct frame *frames;
static size_t frame_count, frame_room;
static unsigned calls_around;
static uint32_t here;
static uint64_t frame_number; /* of the latest in this location */
/* Locations of a process number their requests in turn. */
static uint32_t next_request, request_step;

static struct ensio_otf2_sample samples[ROWS];
static uint32_t sample_count;

static void flush_samples(void)
{
    if (sample_count)
        ensio_send(ENSIO_OTF2_SAMPLE_ROWS, sample_count, samples, sample_count * sizeof *samples);
    sample_count = 0;
}

void ensio_flush_rows(void)
{
    flush_samples();
    if (row_count)
        ensio_send(ENSIO_OTF2_ROWS, row_count, rows, row_count * sizeof *rows);
    row_count = 0;
}

void ensio_put_row(const struct ensio_otf2_row *row)
{
    rows[row_count++] = *row;
    if (row_count == ROWS)
        ensio_flush_rows();
}

static int64_t to_ns(uint64_t time)
{
    int64_t ticks = (int64_t)(time - ensio_archive.offset);
    if (ensio_archive.resolution == 1000000000)
        return ticks;
    __int128 ns = (__int128)ticks * 1000000000 / (__int128)ensio_archive.resolution;
    return ns > INT64_MAX ? INT64_MAX : ns < INT64_MIN ? INT64_MIN : (int64_t)ns;
}

/* Overflow gives -1, which is not a valid duration: the reader then drops the row. */
int64_t ensio_ns_between(uint64_t begin, uint64_t end)
{
    int64_t ns;
    return __builtin_sub_overflow(to_ns(end), to_ns(begin), &ns) ? -1 : ns;
}

static int64_t number_in(OTF2_Type type, OTF2_AttributeValue value)
{
    switch (type) {
    case OTF2_TYPE_UINT8:
        return value.uint8;
    case OTF2_TYPE_UINT16:
        return value.uint16;
    case OTF2_TYPE_UINT32:
        return value.uint32;
    case OTF2_TYPE_UINT64:
        return (int64_t)value.uint64;
    case OTF2_TYPE_INT8:
        return value.int8;
    case OTF2_TYPE_INT16:
        return value.int16;
    case OTF2_TYPE_INT32:
        return value.int32;
    case OTF2_TYPE_INT64:
        return value.int64;
    case OTF2_TYPE_IO_FILE:
        return value.ioFileRef;
    default:
        return -1;
    }
}

static void take_attributes(OTF2_AttributeList *list, struct ensio_attributes *told)
{
    told->has = 0;
    for (uint32_t i = OTF2_AttributeList_GetNumberOfElements(list); i--;) {
        OTF2_AttributeRef attribute;
        OTF2_Type type;
        OTF2_AttributeValue value;
        if (OTF2_AttributeList_PopAttribute(list, &attribute, &type, &value) != OTF2_SUCCESS)
            return;
        int which = ensio_attribute_kind_of(attribute);
        if (which >= 0) {
            told->has |= 1U << which;
            told->value[which] = number_in(type, value);
        }
    }
}

static bool has(const struct ensio_attributes *told, enum ensio_attribute_kind which)
{
    return told->has >> which & 1;
}

static int64_t value_of(const struct ensio_attributes *told, enum ensio_attribute_kind which, int64_t otherwise)
{
    return has(told, which) ? told->value[which] : otherwise;
}

/* Fills a row with the attributes of its Enter. */
static void fill(struct ensio_otf2_row *row, const struct ensio_attributes *told, uint64_t time, uint8_t depth)
{
    row->location = here;
    row->start = value_of(told, ENSIO_ATTRIBUTE_START, to_ns(time));
    row->duration = value_of(told, ENSIO_ATTRIBUTE_DURATION, 0);
    row->flight = value_of(told, ENSIO_ATTRIBUTE_FLIGHT, -1);
    row->request = (uint32_t)value_of(told, ENSIO_ATTRIBUTE_REQUEST, 0);
    row->site = (uint32_t)value_of(told, ENSIO_ATTRIBUTE_SITE, 0);
    row->rank = (uint32_t)value_of(told, ENSIO_ATTRIBUTE_RANK, ENSIO_UNDEFINED_INDEX);
    row->thread = (uint16_t)value_of(told, ENSIO_ATTRIBUTE_THREAD, ENSIO_UNDEFINED_THREAD);
    row->depth = (uint8_t)value_of(told, ENSIO_ATTRIBUTE_DEPTH, depth);
    row->carried = (uint8_t)value_of(told, ENSIO_ATTRIBUTE_CARRIED,
                                     ensio_archive.ours ? 0 : ensio_carried_by_operations(row->depth));
}

static OTF2_CallbackCode on_enter(OTF2_LocationRef location, OTF2_TimeStamp time, uint64_t at, void *user,
                                  OTF2_AttributeList *list, OTF2_RegionRef region)
{
    (void)location, (void)at, (void)user;
    enum ensio_meaning meaning = ensio_meaning_of(region);
    if (meaning == ENSIO_NOTHING)
        return OTF2_CALLBACK_SUCCESS;
    if (frame_count == frame_room) {
        frame_room = frame_room ? 2 * frame_room : 64;
        frames = ensio_more(frames, frame_room * sizeof *frames);
    }
    struct frame *frame = frames + frame_count++;
    frame->time = time;
    frame->position = -1;
    frame->region = region;
    frame->file = ENSIO_UNDEFINED_INDEX;
    frame->meaning = (uint8_t)meaning;
    frame->kind = meaning == ENSIO_A_REGION ? ENSIO_OTF2_ROW_REGION : ENSIO_OTF2_ROW_CALL;
    frame->paradigm = OTF2_UNDEFINED_IO_PARADIGM;
    frame->depth = calls_around < UINT8_MAX ? (uint8_t)calls_around : UINT8_MAX;
    frame->access = 0;
    frame->has_operation = false;
    frame->request = 0;
    frame->number = ++frame_number;
    take_attributes(list, &frame->told);
    calls_around += meaning == ENSIO_A_CALL;
    return OTF2_CALLBACK_SUCCESS;
}

static void put_frame(const struct frame *frame, uint64_t time)
{
    const struct ensio_attributes *told = &frame->told;
    struct ensio_otf2_row row;
    if (frame->has_operation)
        return;
    fill(&row, told, frame->time, frame->depth);
    if (!has(told, ENSIO_ATTRIBUTE_DURATION))
        row.duration = ensio_ns_between(frame->time, time);
    if (frame->request)
        row.request = frame->request;
    row.carried |= frame->access;
    row.kind = frame->kind;
    row.paradigm = frame->paradigm;
    row.region = frame->region;
    row.file = (uint32_t)value_of(told, ENSIO_ATTRIBUTE_FILE, ensio_archive.ours ? ENSIO_UNDEFINED_INDEX : frame->file);
    row.offset = value_of(told, ENSIO_ATTRIBUTE_OFFSET, ensio_archive.ours ? -1 : frame->position);
    row.requested = (uint64_t)value_of(told, ENSIO_ATTRIBUTE_REQUESTED, 0);
    row.moved = value_of(told, frame->meaning == ENSIO_A_REGION ? ENSIO_ATTRIBUTE_ENDED : ENSIO_ATTRIBUTE_MOVED,
                         frame->meaning == ENSIO_A_REGION);
    row.error = (uint16_t)value_of(told, ENSIO_ATTRIBUTE_ERRNO, 0);
    ensio_put_row(&row);
}

static void drop_frame(void)
{
    calls_around -= frames[--frame_count].meaning == ENSIO_A_CALL;
}

static OTF2_CallbackCode on_leave(OTF2_LocationRef location, OTF2_TimeStamp time, uint64_t at, void *user,
                                  OTF2_AttributeList *list, OTF2_RegionRef region)
{
    (void)location, (void)at, (void)user, (void)list;
    if (ensio_meaning_of(region) == ENSIO_NOTHING)
        return OTF2_CALLBACK_SUCCESS;
    for (size_t i = frame_count; i--;)
        if (frames[i].region == region) {
            while (frame_count > i + 1) {
                ensio_archive.counts.never_left++;
                drop_frame();
            }
            if (frames[i].has_operation)
                ensio_operations_posted_by(frames[i].number, time);
            put_frame(frames + i, time);
            drop_frame();
            break;
        }
    return OTF2_CALLBACK_SUCCESS;
}

/* The call that encloses a record, or NULL. */
static struct frame *call_around(void)
{
    for (size_t i = frame_count; i--;)
        if (frames[i].meaning == ENSIO_A_CALL)
            return frames + i;
    return NULL;
}

static uint8_t depth_here(void)
{
    unsigned depth = ensio_operations_under_way();
    return depth < UINT8_MAX ? (uint8_t)depth : UINT8_MAX;
}

/* Notes what a call did; without an enclosing call, it is a call by itself. */
static void mark(uint64_t time, uint8_t kind, uint8_t access, uint8_t paradigm, uint32_t file, int64_t position,
                 OTF2_AttributeList *list)
{
    struct frame *frame = call_around();
    if (frame) {
        frame->kind = kind;
        frame->access = access;
        frame->paradigm = paradigm;
        frame->file = file;
        frame->position = position;
        return;
    }
    struct frame alone = {.time = time, .position = position, .region = ENSIO_UNDEFINED_INDEX, .file = file};
    alone.kind = kind;
    alone.access = access;
    alone.paradigm = paradigm;
    alone.depth = depth_here();
    alone.meaning = ENSIO_A_CALL;
    take_attributes(list, &alone.told);
    put_frame(&alone, time);
}

static OTF2_CallbackCode on_begin(OTF2_LocationRef location, OTF2_TimeStamp time, uint64_t at, void *user,
                                  OTF2_AttributeList *list, OTF2_IoHandleRef handle, OTF2_IoOperationMode mode,
                                  OTF2_IoOperationFlag flags, uint64_t bytes, uint64_t id)
{
    static const struct ensio_attributes nothing;
    (void)location, (void)at, (void)user;
    struct frame *frame = call_around();
    struct ensio_file_of of = ensio_file_of_handle(handle);
    struct ensio_attributes told;
    struct ensio_operation operation = {.time = time, .id = id, .handle = handle};
    if (!of.known || mode > OTF2_IO_OPERATION_MODE_FLUSH) {
        ensio_archive.counts.unknown_records++;
        return OTF2_CALLBACK_SUCCESS;
    }
    take_attributes(list, &told);
    fill(&operation.row, frame ? &frame->told : &nothing, time, frame ? frame->depth : depth_here());
    operation.non_blocking = flags & OTF2_IO_OPERATION_FLAG_NON_BLOCKING;
    operation.has_duration = frame && has(&frame->told, ENSIO_ATTRIBUTE_DURATION);
    operation.has_offset = has(&told, ENSIO_ATTRIBUTE_OFFSET);
    operation.says_bytes = bytes != OTF2_UNDEFINED_UINT64;
    operation.carries_all = operation.non_blocking && !of.has_positions;
    operation.row.kind = mode == OTF2_IO_OPERATION_MODE_READ    ? ENSIO_OTF2_ROW_READ
                         : mode == OTF2_IO_OPERATION_MODE_WRITE ? ENSIO_OTF2_ROW_WRITE
                                                                : ENSIO_OTF2_ROW_FLUSH;
    operation.row.paradigm = of.paradigm;
    operation.row.region = frame ? frame->region : ENSIO_UNDEFINED_INDEX;
    operation.row.file = of.file;
    operation.row.offset = value_of(&told, ENSIO_ATTRIBUTE_OFFSET, -1);
    operation.row.requested = bytes == OTF2_UNDEFINED_UINT64 && !ensio_archive.ours ? 0 : bytes;
    if (operation.non_blocking && !operation.has_duration) {
        operation.call = frame ? frame->number : 0;
        operation.number = next_request;
        next_request += request_step;
    }
    if (frame)
        frame->has_operation = true;
    ensio_operation_begins(&operation);
    return OTF2_CALLBACK_SUCCESS;
}

static OTF2_CallbackCode on_issued(OTF2_LocationRef location, OTF2_TimeStamp time, uint64_t at, void *user,
                                   OTF2_AttributeList *list, OTF2_IoHandleRef handle, uint64_t id)
{
    (void)location, (void)at, (void)user, (void)list;
    ensio_operation_issued(handle, id, time);
    return OTF2_CALLBACK_SUCCESS;
}

/* The call around the end of a non-blocking request waits for it, or tests it. */
static void end_operation(uint32_t handle, uint64_t id, uint64_t time, uint64_t bytes,
                          const struct ensio_attributes *told)
{
    uint32_t request = ensio_operation_ends(handle, id, time, bytes, told);
    struct frame *frame = call_around();
    if (frame && request && (!frame->request || request < frame->request))
        frame->request = request;
}

static OTF2_CallbackCode on_complete(OTF2_LocationRef location, OTF2_TimeStamp time, uint64_t at, void *user,
                                     OTF2_AttributeList *list, OTF2_IoHandleRef handle, uint64_t bytes, uint64_t id)
{
    struct ensio_attributes told;
    (void)location, (void)at, (void)user;
    take_attributes(list, &told);
    end_operation(handle, id, time, bytes, &told);
    return OTF2_CALLBACK_SUCCESS;
}

static OTF2_CallbackCode on_cancelled(OTF2_LocationRef location, OTF2_TimeStamp time, uint64_t at, void *user,
                                      OTF2_AttributeList *list, OTF2_IoHandleRef handle, uint64_t id)
{
    struct ensio_attributes told = {.has = 1U << ENSIO_ATTRIBUTE_ERRNO};
    (void)location, (void)at, (void)user, (void)list;
    told.value[ENSIO_ATTRIBUTE_ERRNO] = ECANCELED;
    end_operation(handle, id, time, OTF2_UNDEFINED_UINT64, &told);
    return OTF2_CALLBACK_SUCCESS;
}

static OTF2_CallbackCode on_create(OTF2_LocationRef location, OTF2_TimeStamp time, uint64_t at, void *user,
                                   OTF2_AttributeList *list, OTF2_IoHandleRef handle, OTF2_IoAccessMode mode,
                                   OTF2_IoCreationFlag creation, OTF2_IoStatusFlag status)
{
    (void)location, (void)at, (void)user, (void)creation;
    struct ensio_file_of of = ensio_file_of_handle(handle);
    ensio_position_set(handle, status & OTF2_IO_STATUS_FLAG_APPEND ? -1 : 0);
    /* In an archive of ours, the attribute knows whether the access is known. */
    uint8_t access = ensio_archive.ours                       ? 0
                     : mode == OTF2_IO_ACCESS_MODE_READ_ONLY  ? ENSIO_OPENED_TO_READ
                     : mode == OTF2_IO_ACCESS_MODE_WRITE_ONLY ? ENSIO_OPENED_TO_WRITE
                                                              : ENSIO_OPENED_TO_READ | ENSIO_OPENED_TO_WRITE;
    mark(time, ENSIO_OTF2_ROW_OPEN, access, of.paradigm, of.file, -1, list);
    return OTF2_CALLBACK_SUCCESS;
}

static OTF2_CallbackCode on_destroy(OTF2_LocationRef location, OTF2_TimeStamp time, uint64_t at, void *user,
                                    OTF2_AttributeList *list, OTF2_IoHandleRef handle)
{
    (void)location, (void)at, (void)user;
    struct ensio_file_of of = ensio_file_of_handle(handle);
    mark(time, ENSIO_OTF2_ROW_CLOSE, 0, of.paradigm, of.file, -1, list);
    return OTF2_CALLBACK_SUCCESS;
}

static OTF2_CallbackCode on_duplicate(OTF2_LocationRef location, OTF2_TimeStamp time, uint64_t at, void *user,
                                      OTF2_AttributeList *list, OTF2_IoHandleRef old, OTF2_IoHandleRef new,
                                      OTF2_IoStatusFlag status)
{
    (void)location, (void)at, (void)user, (void)status;
    struct ensio_file_of of = ensio_file_of_handle(new);
    ensio_position_shared(old, new);
    mark(time, ENSIO_OTF2_ROW_DUPLICATE, 0, of.paradigm, of.file, -1, list);
    return OTF2_CALLBACK_SUCCESS;
}

static OTF2_CallbackCode on_seek(OTF2_LocationRef location, OTF2_TimeStamp time, uint64_t at, void *user,
                                 OTF2_AttributeList *list, OTF2_IoHandleRef handle, int64_t request,
                                 OTF2_IoSeekOption whence, uint64_t result)
{
    (void)location, (void)at, (void)user, (void)request, (void)whence;
    struct ensio_file_of of = ensio_file_of_handle(handle);
    int64_t position = result <= INT64_MAX ? (int64_t)result : -1;
    if (position >= 0)
        ensio_position_set(handle, position);
    mark(time, ENSIO_OTF2_ROW_SEEK, 0, of.paradigm, of.file, position, list);
    return OTF2_CALLBACK_SUCCESS;
}

static OTF2_CallbackCode on_delete(OTF2_LocationRef location, OTF2_TimeStamp time, uint64_t at, void *user,
                                   OTF2_AttributeList *list, OTF2_IoParadigmRef paradigm, OTF2_IoFileRef file)
{
    (void)location, (void)at, (void)user;
    mark(time, ENSIO_OTF2_ROW_DELETE, 0, paradigm, file, -1, list);
    return OTF2_CALLBACK_SUCCESS;
}

/* Samples of the kernel's counters in our archives; metrics of other tools have other meanings. */
static OTF2_CallbackCode on_metric(OTF2_LocationRef location, OTF2_TimeStamp time, uint64_t at, void *user,
                                   OTF2_AttributeList *list, OTF2_MetricRef metric, uint8_t count,
                                   const OTF2_Type *types, const OTF2_MetricValue *values)
{
    (void)location, (void)at, (void)user, (void)list;
    if (!ensio_archive.ours || count != 1 || types[0] != OTF2_TYPE_INT64)
        return OTF2_CALLBACK_SUCCESS;
    if (sample_count == ROWS)
        flush_samples();
    samples[sample_count++] = (struct ensio_otf2_sample){to_ns(time), values[0].signed_int, metric, 0};
    return OTF2_CALLBACK_SUCCESS;
}

static OTF2_CallbackCode on_unknown(OTF2_LocationRef location, OTF2_TimeStamp time, uint64_t at, void *user,
                                    OTF2_AttributeList *list)
{
    (void)location, (void)time, (void)at, (void)user, (void)list;
    ensio_archive.counts.unknown_records++;
    return OTF2_CALLBACK_SUCCESS;
}

OTF2_EvtReaderCallbacks *ensio_event_callbacks(void)
{
    OTF2_EvtReaderCallbacks *callbacks = OTF2_EvtReaderCallbacks_New();
    if (!callbacks)
        ensio_fail("there is not enough memory");
    OTF2_EvtReaderCallbacks_SetEnterCallback(callbacks, on_enter);
    OTF2_EvtReaderCallbacks_SetLeaveCallback(callbacks, on_leave);
    OTF2_EvtReaderCallbacks_SetIoOperationBeginCallback(callbacks, on_begin);
    OTF2_EvtReaderCallbacks_SetIoOperationIssuedCallback(callbacks, on_issued);
    OTF2_EvtReaderCallbacks_SetIoOperationCompleteCallback(callbacks, on_complete);
    OTF2_EvtReaderCallbacks_SetIoOperationCancelledCallback(callbacks, on_cancelled);
    OTF2_EvtReaderCallbacks_SetIoCreateHandleCallback(callbacks, on_create);
    OTF2_EvtReaderCallbacks_SetIoDestroyHandleCallback(callbacks, on_destroy);
    OTF2_EvtReaderCallbacks_SetIoDuplicateHandleCallback(callbacks, on_duplicate);
    OTF2_EvtReaderCallbacks_SetIoSeekCallback(callbacks, on_seek);
    OTF2_EvtReaderCallbacks_SetIoDeleteFileCallback(callbacks, on_delete);
    OTF2_EvtReaderCallbacks_SetMetricCallback(callbacks, on_metric);
    OTF2_EvtReaderCallbacks_SetUnknownCallback(callbacks, on_unknown);
    return callbacks;
}

void ensio_begin_location(uint32_t index)
{
    here = index;
    ensio_operations_in_group(ensio_archive.places[index].group);
    ensio_positions_in_group(ensio_archive.places[index].group);
    frame_count = 0;
    calls_around = 0;
    frame_number = 0;
    next_request = request_step = 1;
    if (!ensio_archive.places[index].shares_handles)
        return;
    for (size_t i = 0; i < ensio_archive.place_count; i++)
        if (i != index && ensio_archive.places[i].group == ensio_archive.places[index].group) {
            next_request += i < index;
            request_step++;
        }
}

void ensio_end_location(void)
{
    for (size_t i = 0; i < frame_count; i++)
        ensio_archive.counts.never_left += frames[i].meaning == ENSIO_A_CALL;
    frame_count = 0;
    ensio_operations_of_next_location();
}
