/* definitions.c: the definitions that records refer to, written at the end, when their number is known. */
#include "writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES 32000 /* of a text: a definition must fit a block of the library */

static OTF2_GlobalDefWriter *writer;
static uint32_t string_count, no_text;

static uint32_t text(const char *string)
{
    ensio_check(OTF2_GlobalDefWriter_WriteString(writer, string_count, string), "write a text");
    return string_count++;
}

uint32_t ensio_text(const char *string)
{
    return text(string);
}

/* A property of any length: pieces of it are called NAME, NAME+1, NAME+2, ... */
static void write_pieces(const char *name, const char *value, void (*write)(uint32_t, uint32_t, OTF2_AttributeValue),
                         uint32_t of)
{
    size_t length = strlen(value);
    char piece[PIECE_BYTES + 1], numbered[512];
    for (size_t number = 0; number == 0 || number * PIECE_BYTES < length; number++) {
        size_t bytes = length - number * PIECE_BYTES < PIECE_BYTES ? length - number * PIECE_BYTES : PIECE_BYTES;
        memcpy(piece, value + number * PIECE_BYTES, bytes);
        piece[bytes] = '\0';
        if (number)
            snprintf(numbered, sizeof numbered, "%.400s+%zu", name, number);
        else
            snprintf(numbered, sizeof numbered, "%.400s", name);
        uint32_t name_text = text(numbered);
        OTF2_AttributeValue told = {.stringRef = text(piece)};
        write(of, name_text, told);
    }
}

static void property_of_node(uint32_t node, uint32_t name, OTF2_AttributeValue value)
{
    ensio_check(OTF2_GlobalDefWriter_WriteSystemTreeNodeProperty(writer, node, name, OTF2_TYPE_STRING, value),
                "write a property");
}

static void property_of_group(uint32_t group, uint32_t name, OTF2_AttributeValue value)
{
    ensio_check(OTF2_GlobalDefWriter_WriteLocationGroupProperty(writer, group, name, OTF2_TYPE_STRING, value),
                "write a property");
}

static void property_of_file(uint32_t file, uint32_t name, OTF2_AttributeValue value)
{
    ensio_check(OTF2_GlobalDefWriter_WriteIoFileProperty(writer, file, name, OTF2_TYPE_STRING, value),
                "write a property");
}

static void write_attributes(void)
{
    static const struct {
        const char *name, *meaning;
        OTF2_Type type;
    } of[ENSIO_ATTRIBUTES] = {
        [ENSIO_OFFSET] = {"Offset", "bytes from the start of the file", OTF2_TYPE_INT64},
        [ENSIO_ERRNO] = {"errno", "errno of a call that failed", OTF2_TYPE_UINT16},
        [ENSIO_DEPTH] = {"ensio.depth", "recorded calls of the same thread that enclose this one", OTF2_TYPE_UINT8},
        [ENSIO_CARRIED] = {"ensio.carried",
                           "read (1), written (2) bytes count around it; opened to read (16), write (32)",
                           OTF2_TYPE_UINT8},
        [ENSIO_REQUESTED] = {"ensio.requested", "bytes asked for", OTF2_TYPE_UINT64},
        [ENSIO_MOVED] = {"ensio.moved", "bytes moved; -1: the call failed", OTF2_TYPE_INT64},
        [ENSIO_FILE] = {"ensio.file", "file that the call was about", OTF2_TYPE_IO_FILE},
        [ENSIO_START] = {"ensio.start", "ns since the origin of the run, if this record comes later", OTF2_TYPE_INT64},
        [ENSIO_DURATION] = {"ensio.duration", "ns, of a request or a call whose Leave is not its end", OTF2_TYPE_INT64},
        [ENSIO_RANK] = {"ensio.rank", "task that made the call", OTF2_TYPE_UINT32},
        [ENSIO_THREAD] = {"ensio.thread", "thread of the task", OTF2_TYPE_UINT16},
        [ENSIO_ENDED] = {"ensio.ended", "0: the end of the region is unknown", OTF2_TYPE_UINT8},
        [ENSIO_FLIGHT] = {"ensio.flight", "ns from the post of a request to its completion", OTF2_TYPE_INT64},
        [ENSIO_REQUEST] = {"ensio.request", "number of a request and of the wait that completed it", OTF2_TYPE_UINT32},
        [ENSIO_SITE] = {"ensio.site", "call site: number of its text in the property ensio.run", OTF2_TYPE_UINT16},
    };
    for (unsigned i = 0; i < ENSIO_ATTRIBUTES; i++) {
        uint32_t name = text(of[i].name), meaning = text(of[i].meaning);
        ensio_check(OTF2_GlobalDefWriter_WriteAttribute(writer, i, name, meaning, of[i].type), "write an attribute");
    }
}

static void write_paradigms(void)
{
    for (unsigned i = 0; i < ensio_plan.paradigm_count; i++) {
        const char *name = ensio_plan.paradigms[i];
        bool parallel = strcmp(name, "MPI-IO") == 0 || strcmp(name, "HDF5") == 0 || strstr(name, "CDF");
        bool system = strcmp(name, "POSIX") == 0;
        uint32_t label = text(name);
        ensio_check(OTF2_GlobalDefWriter_WriteIoParadigm(
                        writer, (OTF2_IoParadigmRef)i, label, label,
                        parallel ? OTF2_IO_PARADIGM_CLASS_PARALLEL : OTF2_IO_PARADIGM_CLASS_SERIAL,
                        system ? OTF2_IO_PARADIGM_FLAG_OS : OTF2_IO_PARADIGM_FLAG_NONE, 0, NULL, NULL, NULL),
                    "write a paradigm");
    }
}

static OTF2_RegionRole role_of(const struct ensio_call *call)
{
    switch (call->op) {
    case ENSIO_READ:
    case ENSIO_WRITE:
    case ENSIO_SYNC:
        return OTF2_REGION_ROLE_FILE_IO;
    case ENSIO_WAIT:
        return call->barrier ? OTF2_REGION_ROLE_BARRIER : OTF2_REGION_ROLE_COLL_OTHER;
    default:
        return OTF2_REGION_ROLE_FILE_IO_METADATA;
    }
}

static void write_region(uint32_t number, const char *name, const char *meaning, OTF2_RegionRole role,
                         OTF2_Paradigm paradigm)
{
    uint32_t label = text(name), said = text(meaning);
    ensio_check(OTF2_GlobalDefWriter_WriteRegion(writer, number, label, label, said, role, paradigm,
                                                 OTF2_REGION_FLAG_NONE, no_text, 0, 0),
                "write a region");
}

static void write_regions(void)
{
    char meaning[1024];
    for (uint32_t i = 0; i < ensio_plan.call_count; i++) {
        const struct ensio_call *call = ensio_plan.calls + i;
        snprintf(meaning, sizeof meaning, "ensio call %s %.900s", call->op_name, call->layer);
        bool mpi = strncmp(call->name, "MPI_", 4) == 0;
        write_region(i, call->name, meaning, role_of(call), mpi ? OTF2_PARADIGM_MPI : OTF2_PARADIGM_NONE);
    }
    for (uint32_t i = 0; i < ensio_plan.name_count; i++) {
        uint32_t number = ensio_plan.call_count + 2 * i;
        write_region(number, ensio_plan.names[i], "ensio phase", OTF2_REGION_ROLE_CODE, OTF2_PARADIGM_USER);
        write_region(number + 1, ensio_plan.names[i], "ensio region", OTF2_REGION_ROLE_CODE, OTF2_PARADIGM_USER);
    }
}

/* OTF2 numbers files from 0; in the columns, 0 is none. */
static void write_files(void)
{
    for (uint32_t i = 1; i < ensio_plan.file_count; i++)
        ensio_check(OTF2_GlobalDefWriter_WriteIoRegularFile(writer, i - 1, text(ensio_plan.files[i]),
                                                            OTF2_UNDEFINED_SYSTEM_TREE_NODE),
                    "write a file");
    for (uint32_t i = 0; i < ensio_plan.property_count; i++) {
        const char **property = ensio_plan.properties + 3 * (size_t)i;
        write_pieces(property[1], property[2], property_of_file, (uint32_t)strtoul(property[0], NULL, 10) - 1);
    }
    for (uint32_t i = 0; i < ensio_handle_count; i++) {
        const struct ensio_handle *handle = ensio_handles + i;
        /* File 0, no file, becomes OTF2's undefined number. */
        ensio_check(OTF2_GlobalDefWriter_WriteIoHandle(writer, i, no_text, handle->file - 1, handle->paradigm,
                                                       handle->pre_created ? OTF2_IO_HANDLE_FLAG_PRE_CREATED
                                                                           : OTF2_IO_HANDLE_FLAG_NONE,
                                                       OTF2_UNDEFINED_COMM, OTF2_UNDEFINED_IO_HANDLE),
                    "write a handle");
        if (handle->pre_created)
            ensio_check(OTF2_GlobalDefWriter_WriteIoPreCreatedHandleState(writer, i, OTF2_IO_ACCESS_MODE_READ_WRITE,
                                                                          OTF2_IO_STATUS_FLAG_NONE),
                        "write a handle");
    }
}

/* The nodes of the system tree: 0 is the root, then each host once, in the order of ranks. */
static uint32_t *write_hosts(void)
{
    uint32_t machine = text("machine"), node = text("node"), nodes = 1;
    uint32_t *node_of_rank = ensio_more(NULL, ensio_plan.tasks * sizeof *node_of_rank);
    ensio_check(OTF2_GlobalDefWriter_WriteSystemTreeNode(writer, 0, machine, machine, OTF2_UNDEFINED_SYSTEM_TREE_NODE),
                "write a node");
    write_pieces("ensio.run", ensio_plan.run, property_of_node, 0);
    const char **known = ensio_more(NULL, ensio_plan.tasks * sizeof(char *));
    for (uint32_t rank = 0; rank < ensio_plan.tasks; rank++) {
        uint32_t found = rank ? node_of_rank[rank - 1] : 0; /* ranks of a host are mostly neighbours */
        if (!found || strcmp(known[found - 1], ensio_plan.hosts[rank]) != 0)
            for (found = 1; found < nodes && strcmp(known[found - 1], ensio_plan.hosts[rank]) != 0;)
                found++;
        if (found == nodes) {
            known[nodes - 1] = ensio_plan.hosts[rank];
            ensio_check(OTF2_GlobalDefWriter_WriteSystemTreeNode(writer, nodes, text(ensio_plan.hosts[rank]), node, 0),
                        "write a node");
            ensio_check(
                OTF2_GlobalDefWriter_WriteSystemTreeNodeDomain(writer, nodes, OTF2_SYSTEM_TREE_DOMAIN_SHARED_MEMORY),
                "write a node");
            nodes++;
        }
        node_of_rank[rank] = found;
    }
    free(known);
    return node_of_rank;
}

static void write_locations(const uint32_t *node_of_rank)
{
    uint32_t per_location = ensio_plan.settings.ranks_per_location, tasks = ensio_plan.tasks;
    char name[64];
    for (uint32_t first = 0; first < tasks; first += per_location) {
        uint32_t last = tasks - first > per_location ? first + per_location - 1 : tasks - 1;
        if (first == last)
            snprintf(name, sizeof name, "Rank %u", first);
        else
            snprintf(name, sizeof name, "Ranks %u to %u", first, last);
        ensio_check(OTF2_GlobalDefWriter_WriteLocationGroup(writer, first / per_location, text(name),
                                                            OTF2_LOCATION_GROUP_TYPE_PROCESS, node_of_rank[first],
                                                            OTF2_UNDEFINED_LOCATION_GROUP),
                    "write a group of locations");
    }
    for (uint32_t i = 0; i < ensio_plan.process_count; i++) {
        uint32_t rank = (uint32_t)strtoul(ensio_plan.processes[2 * (size_t)i], NULL, 10);
        snprintf(name, sizeof name, "ensio.process.%u", i);
        write_pieces(name, ensio_plan.processes[2 * (size_t)i + 1], property_of_group, rank / per_location);
    }
    for (size_t i = 0; i < ensio_written_count; i++) {
        const struct ensio_written *location = ensio_written + i;
        if (per_location == 1)
            snprintf(name, sizeof name, "Thread %u", location->thread);
        else
            snprintf(name, sizeof name, "All threads");
        ensio_check(OTF2_GlobalDefWriter_WriteLocation(writer, location->id, text(name), OTF2_LOCATION_TYPE_CPU_THREAD,
                                                       location->events, location->group),
                    "write a location");
    }
}

void ensio_write_definitions(void)
{
    uint64_t origin = ensio_plan.settings.origin_unix_ns;
    uint64_t first = ensio_first_time < origin ? ensio_first_time : origin;
    writer = OTF2_Archive_GetGlobalDefWriter(ensio_plan.archive);
    if (!writer)
        ensio_fail("the file of definitions cannot be made");
    ensio_check(OTF2_GlobalDefWriter_WriteClockProperties(writer, 1000000000, first,
                                                          ensio_last_time > first ? ensio_last_time - first : 0, first),
                "write the clock");
    no_text = text("");
    write_attributes();
    write_paradigms();
    uint32_t *node_of_rank = write_hosts();
    write_regions();
    write_files();
    write_locations(node_of_rank);
    ensio_define_samples(writer);
    free(node_of_rank);
}
