/* records.c: the records of a call: Enter and Leave of its region, which every trace viewer shows, and between them
 * what OTF2 defines for it: begin and end of an operation, a handle created or destroyed, a seek, a file removed.
 *
 * Regions of a location must nest. A call that does not (several ranks share the location, it arrives late, or its
 * completion alone is known) has its Leave right after its Enter, and its duration as attribute. The operation of a
 * non-blocking request is complete at the end of its flight, after the Leave of the call that posted it. */
#include "writer.h"

#include <ensio/event.h>

static OTF2_AttributeList *attributes;
static uint64_t next_id, late_calls;
uint64_t ensio_first_time = UINT64_MAX, ensio_last_time;

void ensio_check(OTF2_ErrorCode code, const char *what)
{
    if (code != OTF2_SUCCESS)
        ensio_fail("OTF2 cannot %s: %s", what, OTF2_Error_GetDescription(code));
}

void ensio_records_begin(void)
{
    attributes = OTF2_AttributeList_New();
    if (!attributes)
        ensio_fail("there is not enough memory");
}

uint64_t ensio_late_calls(void)
{
    return late_calls;
}

static void written(OTF2_ErrorCode code)
{
    if (__builtin_expect(code != OTF2_SUCCESS, 0))
        ensio_check(code, "write an event");
}

static bool moves_data(const struct ensio_call *call)
{
    return call->op == ENSIO_READ || call->op == ENSIO_WRITE || call->op == ENSIO_SYNC;
}

static const struct ensio_call *call_of(uint32_t region)
{
    return region < ensio_plan.call_count ? ensio_plan.calls + region : NULL;
}

/* Whether the calls of a layer access files, so that OTF2 has records for them. */
static bool has_paradigm(const struct ensio_call *call)
{
    return call->paradigm_name[0] != '\0';
}

/* The access that a call asked for; if that is unknown, both. */
static OTF2_IoAccessMode access_mode(uint8_t flags)
{
    const int access = flags & (ENSIO_OPENED_TO_READ | ENSIO_OPENED_TO_WRITE);
    return access == ENSIO_OPENED_TO_READ    ? OTF2_IO_ACCESS_MODE_READ_ONLY
           : access == ENSIO_OPENED_TO_WRITE ? OTF2_IO_ACCESS_MODE_WRITE_ONLY
                                             : OTF2_IO_ACCESS_MODE_READ_WRITE;
}

/* Writes the records at the end of a call, besides Leave. */
static void write_result(struct ensio_location *location, const struct ensio_end *end, uint64_t time)
{
    const struct ensio_call *call = call_of(end->region);
    OTF2_EvtWriter *writer = location->writer;
    if (end->handle != ENSIO_NO_HANDLE) {
        if (end->error)
            OTF2_AttributeList_AddUint16(attributes, ENSIO_ERRNO, end->error);
        written(
            OTF2_EvtWriter_IoOperationComplete(writer, attributes, time, end->handle, (uint64_t)end->moved, end->id));
        return;
    }
    if (!call || !has_paradigm(call) || end->moved < 0 || !end->file)
        return;
    if (call->op == ENSIO_OPEN) {
        uint32_t handle = ensio_handle_opened(end->rank, end->file, call->paradigm);
        written(OTF2_EvtWriter_IoCreateHandle(writer, NULL, time, handle, access_mode(end->carried),
                                              OTF2_IO_CREATION_FLAG_NONE, OTF2_IO_STATUS_FLAG_NONE));
    } else if (call->op == ENSIO_CLOSE) {
        uint32_t handle = ensio_handle_closed(end->rank, end->file, call->paradigm);
        written(OTF2_EvtWriter_IoDestroyHandle(writer, NULL, time, handle));
    } else if (call->op == ENSIO_SEEK && end->offset >= 0) {
        uint32_t handle = ensio_handle_used(end->rank, end->file, call->paradigm);
        written(OTF2_EvtWriter_IoSeek(writer, NULL, time, handle, end->offset, OTF2_IO_SEEK_FROM_START,
                                      (uint64_t)end->offset));
    } else if (call->deletes)
        written(OTF2_EvtWriter_IoDeleteFile(writer, NULL, time, call->paradigm, end->file - 1));
}

static uint64_t at_last(struct ensio_location *location, uint64_t time)
{
    if (time > location->last_time)
        location->last_time = time;
    if (location->last_time > ensio_last_time)
        ensio_last_time = location->last_time;
    return location->last_time;
}

static void write_end_of_stack(struct ensio_location *location)
{
    const struct ensio_end *end = location->stack + --location->stack_count;
    uint64_t time = at_last(location, end->time);
    write_result(location, end, time);
    written(OTF2_EvtWriter_Leave(location->writer, NULL, time, end->region));
    if (call_of(end->region))
        location->calls_on_stack--;
}

static void write_end_of_heap(struct ensio_location *location)
{
    struct ensio_end *ends = location->ends;
    write_result(location, ends, at_last(location, ends->time));
    struct ensio_end last = ends[--location->end_count];
    size_t at = 0, below;
    while ((below = 2 * at + 1) < location->end_count) {
        if (below + 1 < location->end_count && ends[below + 1].time < ends[below].time)
            below++;
        if (last.time <= ends[below].time)
            break;
        ends[at] = ends[below];
        at = below;
    }
    ends[at] = last;
}

static void keep_end(struct ensio_location *location, const struct ensio_end *end)
{
    if (location->end_count == location->end_room) {
        location->end_room = location->end_room ? 2 * location->end_room : 16;
        location->ends = ensio_more(location->ends, location->end_room * sizeof *location->ends);
    }
    size_t at = location->end_count++;
    for (; at && end->time < location->ends[(at - 1) / 2].time; at = (at - 1) / 2)
        location->ends[at] = location->ends[(at - 1) / 2];
    location->ends[at] = *end;
}

static void push(struct ensio_location *location, const struct ensio_end *end)
{
    if (location->stack_count == location->stack_room) {
        location->stack_room = location->stack_room ? 2 * location->stack_room : 16;
        location->stack = ensio_more(location->stack, location->stack_room * sizeof *location->stack);
    }
    location->stack[location->stack_count++] = *end;
}

/* Writes everything that ends before an item begins. A call that begins and ends with the end of its enclosing call is
 * still inside it. */
static void write_ends_before(struct ensio_location *location, uint64_t start, uint64_t end, unsigned depth)
{
    for (;;) {
        const struct ensio_end *top = location->stack_count ? location->stack + location->stack_count - 1 : NULL;
        const struct ensio_end *next = location->end_count ? location->ends : NULL;
        if (top && (!next || top->time <= next->time)) {
            if (top->time > start || (top->time == start && end == start && depth > top->depth && call_of(top->region)))
                return;
            write_end_of_stack(location);
        } else if (next && next->time <= start)
            write_end_of_heap(location);
        else
            return;
    }
}

void ensio_write_ends(struct ensio_location *location)
{
    write_ends_before(location, UINT64_MAX, 0, 0);
}

/* Values without a record become attributes of Enter. */
static void add_attributes(const struct ensio_item *item, const struct ensio_call *call, bool operation)
{
    if (item->flight >= 0)
        OTF2_AttributeList_AddInt64(attributes, ENSIO_FLIGHT, item->flight);
    if (item->site)
        OTF2_AttributeList_AddUint16(attributes, ENSIO_SITE, item->site);
    if (item->request)
        OTF2_AttributeList_AddUint32(attributes, ENSIO_REQUEST, item->request);
    if (item->carried)
        OTF2_AttributeList_AddUint8(attributes, ENSIO_CARRIED, item->carried);
    if (ensio_plan.settings.ranks_per_location != 1) {
        OTF2_AttributeList_AddUint32(attributes, ENSIO_RANK, item->rank);
        OTF2_AttributeList_AddUint16(attributes, ENSIO_THREAD, item->thread);
    }
    if (!call) {
        if (!item->ended)
            OTF2_AttributeList_AddUint8(attributes, ENSIO_ENDED, 0);
        return;
    }
    if (operation)
        return;
    OTF2_AttributeValue value = {.ioFileRef = item->file - 1};
    if (item->file)
        OTF2_AttributeList_AddAttribute(attributes, ENSIO_FILE, OTF2_TYPE_IO_FILE, value);
    if (item->offset != -1)
        OTF2_AttributeList_AddInt64(attributes, ENSIO_OFFSET, item->offset);
    if (item->requested)
        OTF2_AttributeList_AddUint64(attributes, ENSIO_REQUESTED, item->requested);
    if (item->moved)
        OTF2_AttributeList_AddInt64(attributes, ENSIO_MOVED, item->moved);
    if (item->error)
        OTF2_AttributeList_AddUint16(attributes, ENSIO_ERRNO, item->error);
}

/* A request has a flight, unless its completion is unknown. */
static bool is_non_blocking(const struct ensio_item *item, const struct ensio_call *call)
{
    return call->non_blocking || item->flight >= 0;
}

static void write_begin(struct ensio_location *location, const struct ensio_item *item, const struct ensio_call *call,
                        struct ensio_end *end)
{
    OTF2_IoOperationMode mode = call->op == ENSIO_READ    ? OTF2_IO_OPERATION_MODE_READ
                                : call->op == ENSIO_WRITE ? OTF2_IO_OPERATION_MODE_WRITE
                                                          : OTF2_IO_OPERATION_MODE_FLUSH;
    OTF2_IoOperationFlag flags =
        (is_non_blocking(item, call) ? OTF2_IO_OPERATION_FLAG_NON_BLOCKING : OTF2_IO_OPERATION_FLAG_NONE) |
        (call->collective ? OTF2_IO_OPERATION_FLAG_COLLECTIVE : OTF2_IO_OPERATION_FLAG_NONE);
    end->handle = ensio_handle_used(item->rank, item->file, call->paradigm);
    end->id = next_id++;
    if (item->offset != -1)
        OTF2_AttributeList_AddInt64(attributes, ENSIO_OFFSET, item->offset);
    written(OTF2_EvtWriter_IoOperationBegin(location->writer, attributes, location->last_time, end->handle, mode, flags,
                                            item->requested, end->id));
    if (flags & OTF2_IO_OPERATION_FLAG_NON_BLOCKING)
        written(OTF2_EvtWriter_IoOperationIssued(location->writer, NULL, location->last_time, end->handle, end->id));
}

/* A time on the archive's clock, which counts ns since 1970. Times out of its range are clamped. */
static uint64_t time_of(int64_t since_origin, int64_t more)
{
    __int128 time = (__int128)ensio_plan.settings.origin_unix_ns + since_origin + more;
    return time < 0 ? 0 : time > INT64_MAX ? INT64_MAX : (uint64_t)time;
}

void ensio_open_location(struct ensio_location *location)
{
    if (location->writer)
        return;
    location->writer = OTF2_Archive_GetEvtWriter(ensio_plan.archive, location->id);
    if (!location->writer)
        ensio_fail("the file of a location cannot be made");
}

void ensio_write_item(struct ensio_location *location, const struct ensio_item *item)
{
    ensio_open_location(location);
    const struct ensio_call *call = call_of(item->region);
    bool operation = call && has_paradigm(call) && moves_data(call);
    struct ensio_end end = {
        .time = time_of(item->start, item->duration),
        .moved = item->moved,
        .offset = item->offset,
        .region = item->region,
        .file = item->file,
        .rank = item->rank,
        .handle = ENSIO_NO_HANDLE,
        .error = item->error,
        .depth = item->depth,
        .carried = item->carried,
    };
    uint64_t start = time_of(item->start, 0);
    write_ends_before(location, start, end.time, item->depth);
    uint64_t time = at_last(location, start);
    bool flies = operation && item->flight >= 0;
    bool late = time - ensio_plan.settings.origin_unix_ns != (uint64_t)item->start;
    const struct ensio_end *top = location->stack_count ? location->stack + location->stack_count - 1 : NULL;
    bool lasts = !late && ensio_plan.settings.ranks_per_location == 1 && !(call && call->non_blocking && !flies) &&
                 end.time >= time && (!top || end.time <= top->time) && item->duration == (int64_t)(end.time - start);
    if (time < ensio_first_time)
        ensio_first_time = time;
    if (late)
        OTF2_AttributeList_AddInt64(attributes, ENSIO_START, item->start);
    if (!lasts || flies)
        OTF2_AttributeList_AddInt64(attributes, ENSIO_DURATION, item->duration);
    if (call && item->depth != location->calls_on_stack)
        OTF2_AttributeList_AddUint8(attributes, ENSIO_DEPTH, item->depth);
    late_calls += late;
    add_attributes(item, call, operation);
    written(OTF2_EvtWriter_Enter(location->writer, attributes, time, item->region));
    if (operation)
        write_begin(location, item, call, &end);
    if (flies) {
        struct ensio_end completion = end;
        completion.time = time_of(item->start, item->flight);
        keep_end(location, &completion);
        end.handle = ENSIO_NO_HANDLE;
    }
    if (lasts) {
        push(location, &end);
        location->calls_on_stack += call != NULL;
        return;
    }
    if (operation && !flies)
        keep_end(location, &end);
    else if (!operation)
        write_result(location, &end, time);
    written(OTF2_EvtWriter_Leave(location->writer, NULL, time, item->region));
}
