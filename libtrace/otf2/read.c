/* read.c: goes through an archive, location by location, so that it takes no more memory than its definitions. */
#include "reading.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define EVENTS_AT_A_TIME 65536

static time_t told_at;
static const char *anchor_path; /* ends with .otf2: the library wants it to */

static void tell_progress(void)
{
    time_t now = time(NULL);
    if (now == told_at)
        return;
    told_at = now;
    ensio_send(ENSIO_OTF2_ALIVE, 0, NULL, 0);
    ensio_flush();
}

static OTF2_Reader *open_reader(const char *anchor)
{
    OTF2_Reader *reader = OTF2_Reader_Open(anchor);
    if (!reader)
        ensio_fail("it cannot be opened as an OTF2 archive");
    OTF2_Reader_SetSerialCollectiveCallbacks(reader);
    return reader;
}

static void select_locations(OTF2_Reader *reader, bool only_sharing)
{
    for (size_t i = 0; i < ensio_archive.place_count; i++)
        if (!only_sharing || ensio_archive.places[i].shares_handles) {
            OTF2_ErrorCode code = OTF2_Reader_SelectLocation(reader, ensio_archive.places[i].id);
            if (code != OTF2_SUCCESS)
                ensio_fail("its location %llu cannot be read: %s", (unsigned long long)ensio_archive.places[i].id,
                           OTF2_Error_GetDescription(code));
        }
}

/* The location's own definitions say which global ones the numbers in its events mean. Archives may do without, but not in
 * some locations only, and what is there must be read: without it, calls would be taken for others. */
static bool read_mappings(OTF2_Reader *reader, uint64_t location)
{
    uint64_t count;
    char path[PATH_MAX];
    OTF2_DefReader *definitions = OTF2_Reader_GetDefReader(reader, location);
    if (!definitions) {
        snprintf(path, sizeof path, "%.*s/%llu.def", (int)(strlen(anchor_path) - strlen(".otf2")), anchor_path,
                 (unsigned long long)location);
        if (access(path, F_OK) == 0)
            ensio_fail("the definitions of its location %llu cannot be read", (unsigned long long)location);
        return false;
    }
    OTF2_ErrorCode code = OTF2_Reader_ReadAllLocalDefinitions(reader, definitions, &count);
    if (code != OTF2_SUCCESS)
        ensio_fail("the definitions of its location %llu are damaged: %s", (unsigned long long)location, OTF2_Error_GetDescription(code));
    OTF2_Reader_CloseDefReader(reader, definitions);
    return true;
}

static void read_location(OTF2_Reader *reader, const OTF2_EvtReaderCallbacks *callbacks, const struct ensio_place *place, uint32_t *index)
{
    uint64_t location = place->id, all = 0;
    OTF2_EvtReader *events = OTF2_Reader_GetEvtReader(reader, location);
    if (!events)
        ensio_fail("the events of its location %llu cannot be read", (unsigned long long)location);
    OTF2_Reader_RegisterEvtCallbacks(reader, events, callbacks, index);
    for (uint64_t count = EVENTS_AT_A_TIME; count == EVENTS_AT_A_TIME;) {
        OTF2_ErrorCode code = OTF2_Reader_ReadLocalEvents(reader, events, EVENTS_AT_A_TIME, &count);
        if (code != OTF2_SUCCESS)
            ensio_fail("the events of its location %llu are damaged: %s", (unsigned long long)location, OTF2_Error_GetDescription(code));
        all += count;
        tell_progress();
    }
    if (place->events != OTF2_UNDEFINED_UINT64 && place->events > all)
        ensio_archive.missing += place->events - all;
    OTF2_Reader_CloseEvtReader(reader, events);
}

/* Goes through the events of all locations, or of those that may share handles with others. */
static void read_locations(OTF2_Reader *reader, OTF2_EvtReaderCallbacks *callbacks, bool only_sharing)
{
    select_locations(reader, only_sharing);
    bool has_mappings = OTF2_Reader_OpenDefFiles(reader) == OTF2_SUCCESS;
    OTF2_ErrorCode code = OTF2_Reader_OpenEvtFiles(reader);
    if (code != OTF2_SUCCESS)
        ensio_fail("its events cannot be opened: %s", OTF2_Error_GetDescription(code));
    size_t mapped = 0, looked_at = 0;
    for (size_t i = 0; i < ensio_archive.place_count; i++) {
        uint32_t index = (uint32_t)i;
        if (only_sharing && !ensio_archive.places[i].shares_handles)
            continue;
        if (has_mappings && read_mappings(reader, ensio_archive.places[i].id))
            mapped++;
        looked_at++;
        if (mapped && looked_at != mapped)
            ensio_fail("its location %llu has lost its definitions", (unsigned long long)ensio_archive.places[i].id);
        if (!only_sharing)
            ensio_begin_location(index);
        read_location(reader, callbacks, ensio_archive.places + i, &index);
        if (!only_sharing)
            ensio_end_location();
    }
    OTF2_EvtReaderCallbacks_Delete(callbacks);
    OTF2_Reader_CloseEvtFiles(reader);
    if (has_mappings)
        OTF2_Reader_CloseDefFiles(reader);
    OTF2_Reader_Close(reader);
}

static void find_shared_handles(const char *anchor)
{
    bool any = false;
    for (size_t i = 0; i < ensio_archive.place_count; i++)
        any |= ensio_archive.places[i].shares_handles;
    if (!any || ensio_archive.ours)
        return;
    read_locations(open_reader(anchor), ensio_sharing_callbacks(), true);
    ensio_archive.missing = 0; /* counted again */
    ensio_sharing_known();
}

/* Our archives say in a property when their run began: times are told from there on. */
static void find_origin(OTF2_Reader *reader)
{
    char *value = NULL;
    ensio_archive.ours = OTF2_Reader_GetProperty(reader, "ENSIO::ORIGIN_UNIX_NS", &value) == OTF2_SUCCESS && value;
    if (ensio_archive.ours != ensio_archive.has_run)
        ensio_fail("its anchor file and its definitions are not of one archive");
    if (ensio_archive.ours)
        ensio_archive.offset = strtoull(value, NULL, 10);
    free(value);
}

static void tell_counts(void)
{
    const struct {
        const char *name;
        uint64_t number;
    } counts[] = {
        {"unknown definitions", ensio_archive.unknown_definitions},
        {"unknown records", ensio_archive.unknown_records},
        {"never complete", ensio_archive.never_complete},
        {"never left", ensio_archive.never_left},
        {"without begin", ensio_archive.without_begin},
        {"missing", ensio_archive.missing},
    };
    char texts[512];
    size_t bytes = 0, each = sizeof counts / sizeof *counts;
    for (size_t i = 0; i < each; i++) {
        bytes += (size_t)snprintf(texts + bytes, sizeof texts - bytes, "%s", counts[i].name) + 1;
        bytes += (size_t)snprintf(texts + bytes, sizeof texts - bytes, "%llu", (unsigned long long)counts[i].number) + 1;
    }
    ensio_send(ENSIO_OTF2_READ, (uint32_t)(2 * each), texts, bytes);
}

void ensio_read_archive(const char *anchor, const char *most_bytes)
{
    size_t length = strlen(anchor), ending = strlen(".otf2");
    if (length < ending || strcmp(anchor + length - ending, ".otf2") != 0)
        ensio_fail("the name of an archive ends with .otf2, as the files beside it go by it");
    struct rlimit memory = {strtoull(most_bytes, NULL, 10), RLIM_INFINITY};
    if (memory.rlim_cur) {
        memory.rlim_max = memory.rlim_cur;
        setrlimit(RLIMIT_AS, &memory);
    }
    anchor_path = anchor;
    OTF2_Reader *reader = open_reader(anchor);
    ensio_read_definitions(reader);
    find_origin(reader);
    find_shared_handles(anchor);
    read_locations(reader, ensio_event_callbacks(), false);
    ensio_match_across_locations();
    ensio_flush_rows();
    tell_counts();
    ensio_flush();
}
