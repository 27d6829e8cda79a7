/* writer.h: converts calls to an OTF2 archive. write_main.c receives the input, locations.c sorts the calls of each
 * location, pipeline.c passes them to the writing thread, records.c makes records of them, samples.c writes the
 * samples of the kernel's counters, io_handles.c keeps the handles, definitions.c writes all definitions at the end. */
#ifndef ENSIO_OTF2_WRITER_H
#define ENSIO_OTF2_WRITER_H

#include "stream.h"

#include <otf2/otf2.h>
#include <stdbool.h>

/* Attributes: values that no record has. An attribute is omitted if it carries no information. */
enum {
    ENSIO_OFFSET,    /* of reads and writes: bytes from the start of the file */
    ENSIO_ERRNO,     /* of calls that failed */
    ENSIO_DEPTH,     /* if it differs from the number of enclosing calls in this location */
    ENSIO_CARRIED,   /* as the column */
    ENSIO_REQUESTED, /* of calls that are not operations on files */
    ENSIO_MOVED,     /* of these */
    ENSIO_FILE,      /* of these */
    ENSIO_START,     /* if the record could not be written at that time: ns since the origin */
    ENSIO_DURATION,  /* of non-blocking requests, and if Leave is not the end of the call: ns */
    ENSIO_RANK,      /* if the location does not determine it */
    ENSIO_THREAD,    /* if the location does not determine it */
    ENSIO_ENDED,     /* 0: the end of the region is unknown */
    ENSIO_FLIGHT,    /* of non-blocking requests: ns from the post to the completion */
    ENSIO_REQUEST,   /* number of a non-blocking request, and of the wait that completed it */
    ENSIO_SITE,      /* call site: number in the texts of the run */
    ENSIO_ATTRIBUTES
};

enum ensio_op { ENSIO_READ, ENSIO_WRITE, ENSIO_OPEN, ENSIO_CLOSE, ENSIO_SEEK, ENSIO_SYNC, ENSIO_META, ENSIO_WAIT };

struct ensio_call {
    const char *name, *layer, *op_name, *paradigm_name;
    enum ensio_op op;
    uint8_t paradigm; /* number of the I/O paradigm */
    bool non_blocking, collective, deletes, barrier;
};

/* A call, or an occurrence of a phase or region (`region` at or above the number of calls). */
struct ensio_item {
    int64_t start, duration, offset, moved, flight;
    uint64_t requested;
    uint32_t region, file, rank, request;
    uint16_t thread, error, site;
    uint8_t depth, carried, ended;
};

/* Everything that precedes the calls in the input. */
struct ensio_plan {
    OTF2_Archive *archive;
    struct ensio_otf2_settings settings;
    struct ensio_call *calls;
    const char **files, **properties, **hosts, **processes, **names, *run;
    uint32_t call_count, file_count, property_count, tasks, process_count, name_count;
    const char *paradigms[255];
    unsigned paradigm_count;
    struct ensio_item *regions;
    uint32_t region_count;
};
extern struct ensio_plan ensio_plan;

/* Handles: one for each file, paradigm and rank; more if a file is open more than once. */
#define ENSIO_NO_HANDLE UINT32_MAX
struct ensio_handle {
    uint32_t file;
    uint32_t below; /* the handle below it on the stack */
    uint8_t paradigm;
    bool pre_created;
};
extern struct ensio_handle *ensio_handles;
extern uint32_t ensio_handle_count;
uint32_t ensio_handle_opened(uint32_t rank, uint32_t file, uint8_t paradigm);
uint32_t ensio_handle_closed(uint32_t rank, uint32_t file, uint8_t paradigm);
uint32_t ensio_handle_used(uint32_t rank, uint32_t file, uint8_t paradigm);
void ensio_handles_of_next_ranks(void);

/* A location while its calls arrive. The members for writing records belong to the writing thread. */
struct ensio_end {
    uint64_t time, id;
    int64_t moved, offset;
    uint32_t region, file, rank, handle;
    uint16_t error;
    uint8_t depth, carried;
};

struct ensio_location {
    uint64_t id;
    uint32_t group;
    uint16_t thread;
    struct ensio_item *items; /* by start */
    size_t count, room, shifted, try_at;
    int64_t outer_start; /* of the latest call of depth 0 */
    bool has_outer, unsorted;
    struct ensio_item *regions;
    size_t region_count, region_room, next_region;

    OTF2_EvtWriter *writer;
    struct ensio_end *stack; /* enclosing regions, outermost first */
    size_t stack_count, stack_room;
    struct ensio_end *ends; /* operations that continue after their call, a heap by time */
    size_t end_count, end_room;
    uint32_t calls_on_stack;
    uint64_t last_time;
};

/* What the definitions need of it afterwards. */
struct ensio_written {
    uint64_t id, events;
    uint32_t group;
    uint16_t thread;
};
extern struct ensio_written *ensio_written;
extern size_t ensio_written_count;
extern uint64_t ensio_first_time, ensio_last_time; /* of all records */

void ensio_add(const struct ensio_item *item);
void ensio_finish_locations(void);

/* Input of the writing thread, processed in this order. */
void ensio_pipeline_begin(void);
void ensio_pipeline_item(struct ensio_location *location, const struct ensio_item *item);
void ensio_pipeline_close(struct ensio_location *location);
void ensio_pipeline_next_ranks(void);
void ensio_pipeline_finish(void);

/* Records. */
void ensio_records_begin(void);
void ensio_open_location(struct ensio_location *location);
void ensio_close_location(struct ensio_location *location);
void ensio_write_item(struct ensio_location *location, const struct ensio_item *item);
void ensio_write_ends(struct ensio_location *location);
uint64_t ensio_late_calls(void);
void ensio_write_definitions(void);
uint32_t ensio_text(const char *string); /* the number of a text, among the definitions */

/* Samples of the kernel's counters. */
void ensio_take_counters(const char **texts, uint32_t count);
void ensio_receive_samples(const struct ensio_message *message);
void ensio_write_samples(void);
void ensio_define_samples(OTF2_GlobalDefWriter *writer);

void ensio_write_archive(const char *folder, const char *name);
void ensio_check(OTF2_ErrorCode code, const char *what);

#endif
