/* read_main.c: reads an archive location by location, so that memory is limited to its definitions. A long archive of
 * ours is read by several processes, each with the locations of some groups. */
#include "reader.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define EVENTS_AT_A_TIME 65536

static time_t told_at;
static const char *anchor_path; /* ends with .otf2, as the library requires */

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

/* Whether a location is read: in the first pass, those that share handles; by one of several readers, its own. */
static bool is_wanted(const struct ensio_place *place, uint32_t reader)
{
    return reader == ENSIO_UNDEFINED_INDEX ? place->shares_handles : place->reader == reader;
}

static void select_locations(OTF2_Reader *reader, uint32_t number)
{
    for (size_t i = 0; i < ensio_archive.place_count; i++)
        if (is_wanted(ensio_archive.places + i, number)) {
            OTF2_ErrorCode code = OTF2_Reader_SelectLocation(reader, ensio_archive.places[i].id);
            if (code != OTF2_SUCCESS)
                ensio_fail("its location %llu cannot be read: %s", (unsigned long long)ensio_archive.places[i].id,
                           OTF2_Error_GetDescription(code));
        }
}

/* The path of a file of a location. */
static const char *path_of(uint64_t location, const char *ending)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%.*s/%llu.%s", (int)(strlen(anchor_path) - strlen(".otf2")), anchor_path,
             (unsigned long long)location, ending);
    return path;
}

/* A location's local definitions map the numbers in its events to global ones. An archive may lack them, but not for
 * some locations only, and existing ones must be readable: otherwise calls would be mistaken for others. */
static bool read_mappings(OTF2_Reader *reader, uint64_t location)
{
    uint64_t count;
    OTF2_DefReader *definitions = OTF2_Reader_GetDefReader(reader, location);
    if (!definitions) {
        if (access(path_of(location, "def"), F_OK) == 0)
            ensio_fail("the definitions of its location %llu cannot be read", (unsigned long long)location);
        return false;
    }
    OTF2_ErrorCode code = OTF2_Reader_ReadAllLocalDefinitions(reader, definitions, &count);
    if (code != OTF2_SUCCESS)
        ensio_fail("the definitions of its location %llu are damaged: %s", (unsigned long long)location,
                   OTF2_Error_GetDescription(code));
    OTF2_Reader_CloseDefReader(reader, definitions);
    return true;
}

/* At the end of a truncated file, libotf2 continues with what is left in its memory, without end. No location has more
 * records than bytes, and one of ours has the promised number. */
static uint64_t most_records(const struct ensio_place *place)
{
    struct stat file;
    if (ensio_archive.ours && place->events != OTF2_UNDEFINED_UINT64)
        return place->events;
    return stat(path_of(place->id, "evt"), &file) == 0 ? (uint64_t)file.st_size : UINT64_MAX;
}

static void read_location(OTF2_Reader *reader, const OTF2_EvtReaderCallbacks *callbacks,
                          const struct ensio_place *place, uint32_t *index)
{
    uint64_t location = place->id, all = 0, most = most_records(place);
    OTF2_EvtReader *events = OTF2_Reader_GetEvtReader(reader, location);
    if (!events)
        ensio_fail("the events of its location %llu cannot be read", (unsigned long long)location);
    OTF2_Reader_RegisterEvtCallbacks(reader, events, callbacks, index);
    if (ensio_archive.ours) { /* which have neither, and the library would look for them at each record */
        OTF2_EvtReader_ApplyClockOffsets(events, false);
        OTF2_EvtReader_ApplyMappingTables(events, false);
    }
    for (uint64_t count = EVENTS_AT_A_TIME; count == EVENTS_AT_A_TIME;) {
        OTF2_ErrorCode code = OTF2_Reader_ReadLocalEvents(reader, events, EVENTS_AT_A_TIME, &count);
        if (code != OTF2_SUCCESS)
            ensio_fail("the events of its location %llu are damaged: %s", (unsigned long long)location,
                       OTF2_Error_GetDescription(code));
        all += count;
        if (all > most)
            ensio_fail("the events of its location %llu are damaged: they have no end", (unsigned long long)location);
        tell_progress();
    }
    if (place->events != OTF2_UNDEFINED_UINT64 && place->events > all)
        ensio_archive.counts.missing += place->events - all;
    OTF2_Reader_CloseEvtReader(reader, events);
}

void ensio_check_mappings(const struct ensio_counts *counts)
{
    if (counts->mapped && counts->mapped != counts->read)
        ensio_fail("its location %llu has lost its definitions", (unsigned long long)counts->unmapped);
}

/* Reads the events of one reader's locations, or of those that may share handles with others. */
static void read_locations(OTF2_EvtReaderCallbacks *callbacks, uint32_t number)
{
    bool only_sharing = number == ENSIO_UNDEFINED_INDEX;
    struct ensio_counts *counts = &ensio_archive.counts;
    OTF2_Reader *reader = open_reader(anchor_path);
    select_locations(reader, number);
    bool has_mappings = OTF2_Reader_OpenDefFiles(reader) == OTF2_SUCCESS;
    OTF2_ErrorCode code = OTF2_Reader_OpenEvtFiles(reader);
    if (code != OTF2_SUCCESS)
        ensio_fail("its events cannot be opened: %s", OTF2_Error_GetDescription(code));
    for (size_t i = 0; i < ensio_archive.place_count; i++) {
        uint32_t index = (uint32_t)i;
        const struct ensio_place *place = ensio_archive.places + i;
        if (!is_wanted(place, number))
            continue;
        if (has_mappings && read_mappings(reader, place->id))
            counts->mapped++;
        else
            counts->unmapped = place->id;
        counts->read++;
        ensio_check_mappings(counts);
        if (!only_sharing)
            ensio_begin_location(index);
        read_location(reader, callbacks, place, &index);
        if (!only_sharing)
            ensio_end_location();
    }
    OTF2_EvtReaderCallbacks_Delete(callbacks);
    OTF2_Reader_CloseEvtFiles(reader);
    if (has_mappings)
        OTF2_Reader_CloseDefFiles(reader);
    OTF2_Reader_Close(reader);
}

static void find_shared_handles(void)
{
    bool any = false;
    for (size_t i = 0; i < ensio_archive.place_count; i++)
        any |= ensio_archive.places[i].shares_handles;
    if (!any || ensio_archive.ours)
        return;
    read_locations(ensio_sharing_callbacks(), ENSIO_UNDEFINED_INDEX);
    ensio_archive.counts = (struct ensio_counts){0}; /* counted again */
    ensio_sharing_known();
}

/* Our archives state in a property when their run began; times are relative to that. */
static void find_origin(OTF2_Reader *reader)
{
    char *value = NULL;
    ensio_archive.ours = OTF2_Reader_GetProperty(reader, "ENSIO::ORIGIN_UNIX_NS", &value) == OTF2_SUCCESS && value;
    if (ensio_archive.ours != ensio_archive.has_run)
        ensio_fail("its anchor file and its definitions do not belong to the same archive");
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
        {"unknown records", ensio_archive.counts.unknown_records},
        {"never complete", ensio_archive.counts.never_complete},
        {"never left", ensio_archive.counts.never_left},
        {"without begin", ensio_archive.counts.without_begin},
        {"missing", ensio_archive.counts.missing},
        {"without bytes", ensio_archive.counts.without_bytes},
    };
    char texts[512];
    size_t bytes = 0, each = sizeof counts / sizeof *counts;
    for (size_t i = 0; i < each; i++) {
        bytes += (size_t)snprintf(texts + bytes, sizeof texts - bytes, "%s", counts[i].name) + 1;
        bytes +=
            (size_t)snprintf(texts + bytes, sizeof texts - bytes, "%llu", (unsigned long long)counts[i].number) + 1;
    }
    ensio_send(ENSIO_OTF2_READ, (uint32_t)(2 * each), texts, bytes);
}

/* Reads the locations of one reader completely. */
void ensio_read_share(uint32_t reader)
{
    read_locations(ensio_event_callbacks(), reader);
    ensio_match_across_locations();
    ensio_flush_rows();
}

void ensio_read_archive(const char *anchor, const char *most_bytes, const char *readers)
{
    size_t length = strlen(anchor), ending = strlen(".otf2");
    if (length < ending || strcmp(anchor + length - ending, ".otf2") != 0)
        ensio_fail("the name of an archive must end with .otf2");
    struct rlimit memory = {strtoull(most_bytes, NULL, 10), RLIM_INFINITY};
    if (memory.rlim_cur) {
        memory.rlim_max = memory.rlim_cur;
        setrlimit(RLIMIT_AS, &memory);
    }
    anchor_path = anchor;
    OTF2_Reader *reader = open_reader(anchor);
    ensio_read_definitions(reader);
    find_origin(reader);
    OTF2_Reader_Close(reader);
    find_shared_handles();
    /* The calls of other tools' archives are numbered as they appear, which several processes would do in a different
     * order each time. */
    uint32_t count = ensio_deal_locations(ensio_archive.ours ? (uint32_t)strtoul(readers, NULL, 10) : 1);
    if (count > 1)
        ensio_read_side_by_side(count);
    else
        ensio_read_share(0);
    tell_counts();
    ensio_flush();
}
