/* write_main.c: receives the input for an archive. */
#include "writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ROWS (1U << 22) /* of a block, at most */
#define CHUNK_EVENTS (256U << 10)
#define CHUNK_DEFINITIONS (4U << 20)

struct ensio_plan ensio_plan;
static struct ensio_plan *const plan = &ensio_plan;

/* The texts of a message, `each` of them for every item. */
static const char **receive_list(const struct ensio_message *message, unsigned each)
{
    char *texts = ensio_receive_texts(message), *end = texts + message->bytes;
    const char **list = ensio_more(NULL, (size_t)message->count * each * sizeof(char *));
    for (size_t i = 0; i < (size_t)message->count * each; i++) {
        if (texts >= end)
            ensio_fail("the input has fewer texts than it announces");
        list[i] = texts;
        texts += strlen(texts) + 1;
    }
    return list;
}

static uint8_t paradigm_of(const char *name)
{
    unsigned i = 0;
    while (i < plan->paradigm_count && strcmp(plan->paradigms[i], name) != 0)
        i++;
    if (i == plan->paradigm_count) {
        if (i == sizeof plan->paradigms / sizeof *plan->paradigms)
            ensio_fail("there are more layers than OTF2 can distinguish");
        plan->paradigms[plan->paradigm_count++] = name;
    }
    return (uint8_t)i;
}

static enum ensio_op op_of(const char *name)
{
    static const char *const names[] = {"read", "write", "open", "close", "seek", "sync", "meta", "wait"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    ensio_fail("a call has the unknown kind %s", name);
}

static void receive_calls(const struct ensio_message *message)
{
    const char **texts = receive_list(message, 5);
    plan->call_count = message->count;
    plan->calls = ensio_more(NULL, message->count * sizeof *plan->calls);
    for (uint32_t i = 0; i < message->count; i++) {
        const char **of = texts + 5 * (size_t)i;
        plan->calls[i] = (struct ensio_call){
            .name = of[0],
            .layer = of[1],
            .op_name = of[2],
            .paradigm_name = of[3],
            .op = op_of(of[2]),
            .paradigm = of[3][0] ? paradigm_of(of[3]) : 0,
            .non_blocking = strchr(of[4], ENSIO_OTF2_NON_BLOCKING) != NULL,
            .collective = strchr(of[4], ENSIO_OTF2_COLLECTIVE) != NULL,
            .deletes = strchr(of[4], ENSIO_OTF2_DELETES) != NULL,
            .barrier = strchr(of[4], ENSIO_OTF2_BARRIER) != NULL,
        };
    }
    free(texts);
}

/* A column of a block: the next `count` numbers of this width. */
static void *column(char **at, size_t count, size_t bytes)
{
    void *here = *at;
    *at += (count * bytes + 7) / 8 * 8;
    return here;
}

static size_t column_bytes(size_t count, const size_t *sizes, size_t columns)
{
    size_t bytes = 0;
    for (size_t i = 0; i < columns; i++)
        bytes += (count * sizes[i] + 7) / 8 * 8;
    return bytes;
}

static char *receive_block(const struct ensio_message *message, const size_t *sizes, size_t columns, const char *what)
{
    static char *block;
    static size_t room;
    if (message->count > MOST_ROWS || message->bytes != column_bytes(message->count, sizes, columns))
        ensio_fail("a block of %s does not have the announced length", what);
    if (message->bytes > room)
        block = ensio_more(block, room = message->bytes);
    ensio_receive(block, message->bytes);
    return block;
}

static void receive_regions(const struct ensio_message *message)
{
    static const size_t sizes[] = {4, 2, 1, 4, 8, 8, 1};
    size_t count = message->count;
    char *at = receive_block(message, sizes, sizeof sizes / sizeof *sizes, "regions");
    const uint32_t *rank = column(&at, count, 4);
    const uint16_t *thread = column(&at, count, 2);
    const uint8_t *kind = column(&at, count, 1);
    const uint32_t *name = column(&at, count, 4);
    const int64_t *start = column(&at, count, 8), *duration = column(&at, count, 8);
    const uint8_t *ended = column(&at, count, 1);
    plan->regions = ensio_more(plan->regions, (plan->region_count + count) * sizeof *plan->regions);
    for (size_t i = 0; i < count; i++) {
        if (name[i] >= plan->name_count || kind[i] > 1)
            ensio_fail("a region has no name");
        plan->regions[plan->region_count++] = (struct ensio_item){
            .rank = rank[i],
            .thread = thread[i],
            .region = plan->call_count + 2 * name[i] + kind[i],
            .start = start[i],
            .duration = duration[i],
            .flight = -1,
            .ended = ended[i],
        };
    }
}

static void receive_events(const struct ensio_message *message)
{
    static const size_t sizes[] = {4, 2, 2, 1, 1, 4, 8, 8, 8, 2, 8, 8, 2, 8, 4};
    size_t count = message->count;
    char *at = receive_block(message, sizes, sizeof sizes / sizeof *sizes, "calls");
    const uint32_t *rank = column(&at, count, 4);
    const uint16_t *thread = column(&at, count, 2), *call = column(&at, count, 2);
    const uint8_t *depth = column(&at, count, 1), *carried = column(&at, count, 1);
    const uint32_t *file = column(&at, count, 4);
    const int64_t *offset = column(&at, count, 8);
    const uint64_t *requested = column(&at, count, 8);
    const int64_t *moved = column(&at, count, 8);
    const uint16_t *error = column(&at, count, 2);
    const int64_t *start = column(&at, count, 8), *duration = column(&at, count, 8);
    const uint16_t *site = column(&at, count, 2);
    const int64_t *flight = column(&at, count, 8);
    const uint32_t *request = column(&at, count, 4);
    for (size_t i = 0; i < count; i++) {
        if (rank[i] >= plan->tasks || call[i] >= plan->call_count || file[i] >= plan->file_count)
            ensio_fail("a call has an undefined rank, function or file");
        struct ensio_item item = {
            .start = start[i],
            .duration = duration[i],
            .offset = offset[i],
            .moved = moved[i],
            .flight = flight[i],
            .request = request[i],
            .requested = requested[i],
            .region = call[i],
            .file = file[i],
            .rank = rank[i],
            .thread = thread[i],
            .error = error[i],
            .site = site[i],
            .depth = depth[i],
            .carried = carried[i],
            .ended = 1,
        };
        ensio_add(&item);
    }
}

static OTF2_FlushType before_flush(void *user, OTF2_FileType type, OTF2_LocationRef location, void *caller, bool final)
{
    (void)user, (void)type, (void)location, (void)caller, (void) final;
    return OTF2_FLUSH;
}

static void open_archive(const char *folder, const char *name)
{
    static const OTF2_FlushCallbacks flush = {before_flush, NULL};
    plan->archive = OTF2_Archive_Open(folder, name, OTF2_FILEMODE_WRITE, CHUNK_EVENTS, CHUNK_DEFINITIONS,
                                      OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
    if (!plan->archive)
        ensio_fail("the archive %s cannot be made", folder);
    ensio_check(OTF2_Archive_SetFlushCallbacks(plan->archive, &flush, NULL), "be prepared");
    ensio_check(OTF2_Archive_SetSerialCollectiveCallbacks(plan->archive), "be prepared");
    ensio_check(OTF2_Archive_SetCreator(plan->archive, "ensio " ENSIO_VERSION), "be prepared");
    ensio_check(OTF2_Archive_SetDescription(plan->archive, "I/O calls of a run"), "be prepared");
    ensio_check(OTF2_Archive_OpenEvtFiles(plan->archive), "make its files");
    ensio_check(OTF2_Archive_OpenDefFiles(plan->archive), "make its files");
}

/* This property identifies an archive of ours when it is read. */
static void tell_origin(void)
{
    char origin[32];
    snprintf(origin, sizeof origin, "%llu", (unsigned long long)plan->settings.origin_unix_ns);
    ensio_check(OTF2_Archive_SetProperty(plan->archive, "ENSIO::ORIGIN_UNIX_NS", origin, true), "be prepared");
}

static void receive_one(const struct ensio_message *message)
{
    switch (message->kind) {
    case ENSIO_OTF2_SETTINGS:
        if (message->bytes != sizeof plan->settings)
            ensio_fail("the settings have the wrong length");
        ensio_receive(&plan->settings, sizeof plan->settings);
        if (plan->settings.ranks_per_location == 0)
            ensio_fail("a location must have at least one rank");
        tell_origin();
        break;
    case ENSIO_OTF2_RUN:
        plan->run = ensio_receive_texts(message);
        break;
    case ENSIO_OTF2_CALLS:
        receive_calls(message);
        break;
    case ENSIO_OTF2_FILES:
        plan->files = receive_list(message, 1);
        plan->file_count = message->count;
        break;
    case ENSIO_OTF2_PROPERTIES:
        plan->properties = receive_list(message, 3);
        plan->property_count = message->count;
        break;
    case ENSIO_OTF2_HOSTS:
        plan->hosts = receive_list(message, 1);
        plan->tasks = message->count;
        break;
    case ENSIO_OTF2_PROCESSES:
        plan->processes = receive_list(message, 2);
        plan->process_count = message->count;
        break;
    case ENSIO_OTF2_NAMES:
        plan->names = receive_list(message, 1);
        plan->name_count = message->count;
        break;
    case ENSIO_OTF2_REGIONS:
        receive_regions(message);
        break;
    case ENSIO_OTF2_EVENTS:
        receive_events(message);
        break;
    case ENSIO_OTF2_COUNTERS:
        ensio_take_counters(receive_list(message, 4), message->count);
        break;
    case ENSIO_OTF2_SAMPLES:
        ensio_receive_samples(message);
        break;
    default:
        ensio_fail("a message has the unknown kind %u", message->kind);
    }
}

void ensio_write_archive(const char *folder, const char *name)
{
    struct ensio_message message;
    open_archive(folder, name);
    ensio_records_begin();
    ensio_pipeline_begin();
    for (;;) {
        if (!ensio_receive_head(&message))
            ensio_fail("the input has no end");
        if (message.kind == ENSIO_OTF2_END)
            break;
        receive_one(&message);
    }
    if (!plan->settings.ranks_per_location || !plan->run)
        ensio_fail("the input has no beginning");
    ensio_finish_locations();
    ensio_pipeline_finish();
    ensio_write_samples();
    ensio_check(OTF2_Archive_CloseEvtFiles(plan->archive), "write its events");
    ensio_check(OTF2_Archive_CloseDefFiles(plan->archive), "write its definitions");
    ensio_write_definitions();
    ensio_check(OTF2_Archive_Close(plan->archive), "write its definitions");
    printf("late %llu\nlocations %zu\nhandles %u\n", (unsigned long long)ensio_late_calls(), ensio_written_count,
           ensio_handle_count);
}
