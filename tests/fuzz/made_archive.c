/* made_archive.c: an OTF2 archive with the definitions and records that the input requests: any kind, in any order,
 * with defined or undefined references. Every byte sequence is such a list: a byte for the kind, then its numbers. */
#include "made_archive.h"
#include "input.h"

#include <otf2/otf2.h>

#define LOCATIONS 2

static OTF2_FlushType on_flush(void *user, OTF2_FileType type, OTF2_LocationRef location, void *data, bool final)
{
    (void)user, (void)type, (void)location, (void)data, (void) final;
    return OTF2_FLUSH;
}

static const OTF2_FlushCallbacks flushes = {.otf2_pre_flush = on_flush};

struct making {
    struct input input;
    OTF2_GlobalDefWriter *definitions;
    OTF2_EvtWriter *writers[LOCATIONS];
    uint64_t times[LOCATIONS];
    OTF2_AttributeList *attributes;
};

static uint32_t number(struct making *making)
{
    return (uint32_t)take_number(&making->input);
}

static void define_text(struct making *making)
{
    static const char *const words[] = {
        "",
        "Offset",
        "errno",
        "ensio.depth",
        "ensio.carried",
        "ensio.file",
        "ensio.requested",
        "ensio.moved",
        "ensio.start",
        "ensio.duration",
        "ensio.rank",
        "ensio.thread",
        "ensio.ended",
        "ensio.run",
        "POSIX",
        "ISOC",
        "MPI-IO",
        "HDF5",
        "ensio call write posix",
        "ensio call",
        "machine",
        "node",
        "/data/a",
        "ensio.process.0",
        "ensio.run+1",
        "{}",
        "read",
    };
    const uint32_t self = number(making);
    const uint8_t which = take_byte(&making->input);
    char own[256];
    if (which < sizeof words / sizeof *words) {
        OTF2_GlobalDefWriter_WriteString(making->definitions, self, words[which]);
        return;
    }
    for (size_t i = 0; i < sizeof own; i++)
        own[i] = i < which % sizeof own ? (char)take_byte(&making->input) : '\0';
    own[sizeof own - 1] = '\0';
    OTF2_GlobalDefWriter_WriteString(making->definitions, self, own);
}

static OTF2_AttributeValue value_of(struct making *making)
{
    return (OTF2_AttributeValue){.uint64 = take_number(&making->input)};
}

/* Types of one number; for a text, as in definitions of properties, its number. */
static OTF2_Type type_of(struct making *making)
{
    static const OTF2_Type types[] = {OTF2_TYPE_STRING, OTF2_TYPE_UINT8,   OTF2_TYPE_UINT16, OTF2_TYPE_UINT32,
                                      OTF2_TYPE_UINT64, OTF2_TYPE_INT8,    OTF2_TYPE_INT16,  OTF2_TYPE_INT32,
                                      OTF2_TYPE_INT64,  OTF2_TYPE_IO_FILE, OTF2_TYPE_DOUBLE};
    return types[take_byte(&making->input) % (sizeof types / sizeof *types)];
}

static void define_group(struct making *making)
{
    uint64_t members[16];
    uint32_t self = number(making), name = number(making), count = take_byte(&making->input) % 16;
    uint8_t kind = take_byte(&making->input);
    for (uint32_t i = 0; i < count; i++)
        members[i] = take_number(&making->input);
    OTF2_GlobalDefWriter_WriteGroup(making->definitions, self, name, kind % 2 ? OTF2_GROUP_TYPE_COMM_LOCATIONS : kind,
                                    kind % 4 ? OTF2_PARADIGM_MPI : kind / 4, OTF2_GROUP_FLAG_NONE, count, members);
}

static void define(struct making *making, uint8_t kind)
{
    OTF2_GlobalDefWriter *to = making->definitions;
    const uint32_t self = kind % 14 ? number(making) : 0;
    const uint32_t a = kind % 14 ? number(making) : 0, b = kind % 14 > 3 ? number(making) : 0;
    struct input *input = &making->input;
    switch (kind % 14) {
    case 0:
        define_text(making);
        break;
    case 1:
        OTF2_GlobalDefWriter_WriteAttribute(to, self, a, a, type_of(making));
        break;
    case 2:
        OTF2_GlobalDefWriter_WriteIoRegularFile(to, self, a, OTF2_UNDEFINED_SYSTEM_TREE_NODE);
        break;
    case 3:
        OTF2_GlobalDefWriter_WriteIoDirectory(to, self, a, OTF2_UNDEFINED_SYSTEM_TREE_NODE);
        break;
    case 4:
        OTF2_GlobalDefWriter_WriteSystemTreeNode(to, self, a, b, number(making));
        break;
    case 5:
        OTF2_GlobalDefWriter_WriteSystemTreeNodeProperty(to, self, a, type_of(making), value_of(making));
        break;
    case 6:
        OTF2_GlobalDefWriter_WriteLocationGroup(to, self, a, (OTF2_LocationGroupType)take_byte(input), b,
                                                OTF2_UNDEFINED_LOCATION_GROUP);
        break;
    case 7:
        OTF2_GlobalDefWriter_WriteLocationGroupProperty(to, self, a, type_of(making), value_of(making));
        break;
    case 8:
        OTF2_GlobalDefWriter_WriteLocation(to, self, a, (OTF2_LocationType)take_byte(input), take_number(input), b);
        break;
    case 9:
        OTF2_GlobalDefWriter_WriteRegion(to, self, a, a, b, (OTF2_RegionRole)take_byte(input),
                                         (OTF2_Paradigm)take_byte(input), OTF2_REGION_FLAG_NONE, OTF2_UNDEFINED_STRING,
                                         0, 0);
        break;
    case 10:
        define_group(making);
        break;
    case 11:
        OTF2_GlobalDefWriter_WriteIoParadigm(to, (OTF2_IoParadigmRef)self, a, b, OTF2_IO_PARADIGM_CLASS_SERIAL,
                                             OTF2_IO_PARADIGM_FLAG_NONE, 0, NULL, NULL, NULL);
        break;
    case 12:
        OTF2_GlobalDefWriter_WriteIoFileProperty(to, self, a, type_of(making), value_of(making));
        break;
    case 13:
        OTF2_GlobalDefWriter_WriteIoHandle(to, self, a, b, (OTF2_IoParadigmRef)take_byte(input),
                                           OTF2_IO_HANDLE_FLAG_NONE, OTF2_UNDEFINED_COMM, number(making));
        break;
    }
}

static void record(struct making *making, uint8_t kind)
{
    struct input *input = &making->input;
    const uint8_t where = take_byte(input);
    const uint64_t time = making->times[where % LOCATIONS] += take_number(input);
    OTF2_EvtWriter *to = making->writers[where % LOCATIONS];
    OTF2_AttributeList *list = making->attributes;
    for (unsigned count = where / 4 % 4; count; count--) {
        uint32_t attribute = number(making);
        OTF2_Type type = type_of(making);
        OTF2_AttributeList_AddAttribute(list, attribute, type, value_of(making));
    }
    const uint32_t self = number(making);
    switch (kind % 15) {
    case 0:
    case 1:
        OTF2_EvtWriter_Enter(to, list, time, self);
        break;
    case 2:
    case 3:
        OTF2_EvtWriter_Leave(to, list, time, self);
        break;
    case 4:
        OTF2_EvtWriter_IoOperationBegin(to, list, time, self, (OTF2_IoOperationMode)(take_byte(input) % 5),
                                        (OTF2_IoOperationFlag)(take_byte(input) % 4), take_number(input),
                                        take_number(input));
        break;
    case 5:
        OTF2_EvtWriter_IoOperationComplete(to, list, time, self, take_number(input), take_number(input));
        break;
    case 6:
        OTF2_EvtWriter_IoOperationCancelled(to, list, time, self, take_number(input));
        break;
    case 7:
        OTF2_EvtWriter_IoOperationIssued(to, list, time, self, take_number(input));
        break;
    case 8:
        OTF2_EvtWriter_IoCreateHandle(to, list, time, self, OTF2_IO_ACCESS_MODE_READ_WRITE, OTF2_IO_CREATION_FLAG_NONE,
                                      (OTF2_IoStatusFlag)take_byte(input));
        break;
    case 9:
        OTF2_EvtWriter_IoDestroyHandle(to, list, time, self);
        break;
    case 10:
        OTF2_EvtWriter_IoDuplicateHandle(to, list, time, self, number(making), OTF2_IO_STATUS_FLAG_NONE);
        break;
    case 11:
        OTF2_EvtWriter_IoSeek(to, list, time, self, (int64_t)take_number(input), OTF2_IO_SEEK_FROM_START,
                              take_number(input));
        break;
    case 12:
        OTF2_EvtWriter_IoDeleteFile(to, list, time, (OTF2_IoParadigmRef)take_byte(input), self);
        break;
    case 13:
        OTF2_EvtWriter_IoChangeStatusFlags(to, list, time, self, (OTF2_IoStatusFlag)take_byte(input));
        break;
    case 14:
        OTF2_EvtWriter_ParameterInt(to, list, time, self, 1);
        break;
    }
}

/* Definitions of nearly every archive; a bit for each that this one lacks. */
static void define_usual(struct making *making, uint8_t missing)
{
    static const char *const names[] = {"Offset",  "errno",          "POSIX",       "read",
                                        "/data/a", "ensio.duration", "ensio.start", "node"};
    OTF2_GlobalDefWriter *to = making->definitions;
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++)
        OTF2_GlobalDefWriter_WriteString(to, i, names[i]);
    if (missing & 1)
        return;
    OTF2_GlobalDefWriter_WriteSystemTreeNode(to, 0, 7, 7, OTF2_UNDEFINED_SYSTEM_TREE_NODE);
    for (uint32_t i = 0; i < LOCATIONS; i++) {
        OTF2_GlobalDefWriter_WriteLocationGroup(to, i, 7, OTF2_LOCATION_GROUP_TYPE_PROCESS, 0,
                                                OTF2_UNDEFINED_LOCATION_GROUP);
        OTF2_GlobalDefWriter_WriteLocation(to, i, 7, OTF2_LOCATION_TYPE_CPU_THREAD, OTF2_UNDEFINED_UINT64,
                                           missing & 2 ? 0 : i);
    }
    OTF2_GlobalDefWriter_WriteAttribute(to, 0, 0, 0, OTF2_TYPE_UINT64);
    OTF2_GlobalDefWriter_WriteAttribute(to, 1, 1, 1, OTF2_TYPE_UINT16);
    OTF2_GlobalDefWriter_WriteAttribute(to, 2, 5, 5, OTF2_TYPE_INT64);
    OTF2_GlobalDefWriter_WriteAttribute(to, 3, 6, 6, OTF2_TYPE_INT64);
    OTF2_GlobalDefWriter_WriteRegion(to, 0, 3, 3, 3, OTF2_REGION_ROLE_FILE_IO, OTF2_PARADIGM_NONE,
                                     OTF2_REGION_FLAG_NONE, 3, 0, 0);
    OTF2_GlobalDefWriter_WriteRegion(to, 1, 3, 3, 3, OTF2_REGION_ROLE_CODE, OTF2_PARADIGM_USER, OTF2_REGION_FLAG_NONE,
                                     3, 0, 0);
    OTF2_GlobalDefWriter_WriteIoParadigm(to, 0, 2, 2, OTF2_IO_PARADIGM_CLASS_SERIAL, OTF2_IO_PARADIGM_FLAG_NONE, 0,
                                         NULL, NULL, NULL);
    OTF2_GlobalDefWriter_WriteIoRegularFile(to, 0, 4, 0);
    for (uint32_t i = 0; i < 3; i++)
        OTF2_GlobalDefWriter_WriteIoHandle(to, i, 4, 0, 0, OTF2_IO_HANDLE_FLAG_NONE, OTF2_UNDEFINED_COMM,
                                           OTF2_UNDEFINED_IO_HANDLE);
}

bool make_archive(const uint8_t *data, size_t size, const char *folder)
{
    struct making making = {.input = {data, data + size}, .attributes = OTF2_AttributeList_New()};
    struct input *input = &making.input;
    OTF2_Archive *archive = OTF2_Archive_Open(folder, "traces", OTF2_FILEMODE_WRITE, OTF2_CHUNK_SIZE_MIN,
                                              OTF2_CHUNK_SIZE_MIN, OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
    if (!archive || OTF2_Archive_SetFlushCallbacks(archive, &flushes, NULL) != OTF2_SUCCESS ||
        OTF2_Archive_SetSerialCollectiveCallbacks(archive) != OTF2_SUCCESS ||
        OTF2_Archive_OpenEvtFiles(archive) != OTF2_SUCCESS || OTF2_Archive_OpenDefFiles(archive) != OTF2_SUCCESS)
        return false;
    const uint8_t usual = take_byte(input);
    if (usual & 4)
        OTF2_Archive_SetProperty(archive, "ENSIO::ORIGIN_UNIX_NS", "1000", true);
    for (OTF2_LocationRef i = 0; i < LOCATIONS; i++) {
        making.writers[i] = OTF2_Archive_GetEvtWriter(archive, i);
        OTF2_DefWriter *local = OTF2_Archive_GetDefWriter(archive, i);
        if (!making.writers[i] || !local || OTF2_Archive_CloseDefWriter(archive, local) != OTF2_SUCCESS)
            return false;
    }
    making.definitions = OTF2_Archive_GetGlobalDefWriter(archive);
    if (!making.definitions)
        return false;
    OTF2_GlobalDefWriter_WriteClockProperties(making.definitions, usual & 8 ? take_number(input) : 1000000000,
                                              usual & 16 ? take_number(input) : 0, take_number(input),
                                              OTF2_UNDEFINED_TIMESTAMP);
    define_usual(&making, usual);
    while (input->at < input->end) {
        uint8_t kind = take_byte(input);
        if (kind & 1)
            define(&making, kind >> 1);
        else
            record(&making, kind >> 1);
    }
    for (OTF2_LocationRef i = 0; i < LOCATIONS; i++)
        if (OTF2_Archive_CloseEvtWriter(archive, making.writers[i]) != OTF2_SUCCESS)
            return false;
    OTF2_Archive_CloseDefFiles(archive);
    OTF2_Archive_CloseEvtFiles(archive);
    return OTF2_Archive_Close(archive) == OTF2_SUCCESS;
}
