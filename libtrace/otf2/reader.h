/* reader.h: converts an OTF2 archive, ours or another tool's, to rows. read_main.c reads the archive, parallel_read.c
 * does so with several processes, read_definitions.c sends the definitions, read_events.c makes rows of records,
 * event_matching.c finds the begin of an operation that ends, file_positions.c finds the offset of an operation. */
#ifndef ENSIO_OTF2_READER_H
#define ENSIO_OTF2_READER_H

#include "stream.h"

#include <otf2/otf2.h>
#include <stdbool.h>

#define ENSIO_UNDEFINED_INDEX UINT32_MAX
#define ENSIO_UNDEFINED_THREAD UINT16_MAX

/* The meaning of a region's records. */
enum ensio_meaning { ENSIO_NOTHING, ENSIO_A_CALL, ENSIO_A_REGION };

struct ensio_file_of {
    uint32_t file;
    uint8_t paradigm;
    bool known, has_positions; /* the file has a position for each task: POSIX and C streams */
};

/* Attributes that are read, whatever their numbers in the archive (writer.h explains them). */
enum ensio_attribute_kind {
    ENSIO_ATTRIBUTE_OFFSET,
    ENSIO_ATTRIBUTE_ERRNO,
    ENSIO_ATTRIBUTE_DEPTH,
    ENSIO_ATTRIBUTE_CARRIED,
    ENSIO_ATTRIBUTE_REQUESTED,
    ENSIO_ATTRIBUTE_MOVED,
    ENSIO_ATTRIBUTE_FILE,
    ENSIO_ATTRIBUTE_START,
    ENSIO_ATTRIBUTE_DURATION,
    ENSIO_ATTRIBUTE_RANK,
    ENSIO_ATTRIBUTE_THREAD,
    ENSIO_ATTRIBUTE_ENDED,
    ENSIO_ATTRIBUTE_FLIGHT,
    ENSIO_ATTRIBUTE_REQUEST,
    ENSIO_ATTRIBUTE_SITE,
    ENSIO_ATTRIBUTE_KINDS
};

struct ensio_attributes {
    uint32_t has; /* a bit for each */
    int64_t value[ENSIO_ATTRIBUTE_KINDS];
};

struct ensio_place {
    uint64_t id, events; /* records, according to the definition */
    uint32_t group;
    uint32_t reader;     /* index of the process that reads it */
    bool shares_handles; /* its group has other locations */
};

/* Counts that are reported at the end; each process has its own. */
struct ensio_counts {
    uint64_t unknown_records, never_complete, never_left, without_begin, missing, without_bytes;
    uint64_t read, mapped; /* locations; those of them with local definitions */
    uint64_t unmapped;     /* one without any */
};

struct ensio_archive {
    bool ours;                   /* written by ensio: attributes are complete */
    bool has_run;                /* its definitions say so */
    uint64_t resolution, offset; /* ticks per second; time 0 in ticks */
    struct ensio_place *places;
    size_t place_count;
    uint64_t unknown_definitions;
    struct ensio_counts counts;
};
extern struct ensio_archive ensio_archive;

/* Definitions. */
void ensio_read_definitions(OTF2_Reader *reader);
enum ensio_meaning ensio_meaning_of(OTF2_RegionRef region);
struct ensio_file_of ensio_file_of_handle(OTF2_IoHandleRef handle);
int ensio_attribute_kind_of(OTF2_AttributeRef attribute); /* -1: not read */

/* Records of one location. */
OTF2_EvtReaderCallbacks *ensio_event_callbacks(void);
void ensio_begin_location(uint32_t index);
void ensio_end_location(void);
void ensio_flush_rows(void);
int64_t ensio_ns_between(uint64_t begin, uint64_t end);

void ensio_put_row(const struct ensio_otf2_row *row);

/* Operations between begin and end. The end of a non-blocking one may be in another location. */
struct ensio_operation {
    uint64_t time, id;
    uint32_t handle;
    bool non_blocking, has_duration, has_offset;
    bool says_bytes; /* bytes requested are known */
    uint64_t call;   /* in which it begins, counted in the location; 0: none */
    uint64_t posted; /* when the program could go on: the end of that call; 0: unknown, or not yet */
    uint32_t number; /* of a non-blocking request in its process, from 1 */
    /* It belongs to MPI, which may carry it out in any call: it counts the bytes of nested calls while it is
     * pending. */
    bool carries_all;
    struct ensio_otf2_row row;
};
void ensio_operation_begins(const struct ensio_operation *operation);
/* A non-blocking operation is issued, or the call in which it begins is left: the program goes on. */
void ensio_operation_issued(uint32_t handle, uint64_t id, uint64_t time);
void ensio_operations_posted_by(uint64_t call, uint64_t time);
/* Returns the number of the non-blocking request that ends; 0: a blocking operation, or one of another location. */
uint32_t ensio_operation_ends(uint32_t handle, uint64_t id, uint64_t time, uint64_t bytes,
                              const struct ensio_attributes *told);
uint8_t ensio_carried_by_operations(uint8_t depth);
uint8_t ensio_operations_under_way(void);
void ensio_operations_in_group(uint32_t group);
void ensio_operations_of_next_location(void);
void ensio_match_across_locations(void);

/* Positions. */
OTF2_EvtReaderCallbacks *ensio_sharing_callbacks(void);
void ensio_sharing_known(void);
void ensio_position_set(uint32_t handle, int64_t position); /* -1: unknown */
void ensio_position_shared(uint32_t of, uint32_t with);
int64_t ensio_position_of(uint32_t handle, int64_t moved);
void ensio_positions_in_group(uint32_t group); /* and in the next of its locations */

/* Reading the archive. */
#define ENSIO_MOST_READERS 64
void ensio_read_archive(const char *anchor, const char *most_bytes, const char *readers);
void ensio_read_share(uint32_t reader);
void ensio_check_mappings(const struct ensio_counts *counts);
uint32_t ensio_deal_locations(uint32_t readers);
void ensio_read_side_by_side(uint32_t readers);

#endif
