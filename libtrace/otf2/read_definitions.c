/* read_definitions.c: the definitions of an archive. They are sent as they are read; what rows need is kept. */
#include "reader.h"

#include <stdio.h>
#include <string.h>

#define MOST_NUMBER (1U << 25) /* limit of the number of a definition that is kept: archives number them from 0 */

struct ensio_archive ensio_archive;

/* Tables by number. Undefined entries are zero. */
struct table {
    void *entries;
    size_t room, entry_bytes;
};
static struct table texts = {.entry_bytes = sizeof(char *)}, regions = {.entry_bytes = 1},
                    handles = {.entry_bytes = sizeof(struct ensio_file_of)}, groups = {.entry_bytes = 4};
static bool has_positions[256];
static OTF2_AttributeRef attribute_of[ENSIO_ATTRIBUTE_KINDS];
static bool has_attribute[ENSIO_ATTRIBUTE_KINDS];
static size_t place_room;

static void *entry_of(struct table *table, uint64_t number)
{
    if (number >= MOST_NUMBER)
        ensio_fail("it has a definition with the number %llu, which is out of range", (unsigned long long)number);
    if (number >= table->room) {
        size_t room = table->room ? table->room : 64;
        while (room <= number)
            room *= 2;
        table->entries = ensio_more(table->entries, room * table->entry_bytes);
        memset((char *)table->entries + table->room * table->entry_bytes, 0, (room - table->room) * table->entry_bytes);
        table->room = room;
    }
    return (char *)table->entries + number * table->entry_bytes;
}

static const char *text_of(OTF2_StringRef number)
{
    const char *text = number < texts.room ? ((char **)texts.entries)[number] : NULL;
    return text ? text : "";
}

/* Sends a definition: texts and numbers. */
static char *told;
static size_t told_bytes, told_room;
static uint32_t told_count;

static void add_text(const char *text)
{
    size_t bytes = strlen(text) + 1;
    if (told_bytes + bytes > told_room)
        told = ensio_more(told, told_room = 2 * (told_bytes + bytes));
    memcpy(told + told_bytes, text, bytes);
    told_bytes += bytes;
    told_count++;
}

static void add_number(uint64_t number)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
    add_text(digits);
}

static OTF2_CallbackCode tell(void)
{
    ensio_send(ENSIO_OTF2_DEFINITION, told_count, told, told_bytes);
    told_bytes = told_count = 0;
    return OTF2_CALLBACK_SUCCESS;
}

static OTF2_CallbackCode on_clock(void *user, uint64_t resolution, uint64_t offset, uint64_t length, uint64_t realtime)
{
    (void)user, (void)length;
    if (!resolution)
        ensio_fail("its clock has no ticks");
    ensio_archive.resolution = resolution;
    ensio_archive.offset = offset;
    add_text("clock");
    add_number(resolution);
    add_number(offset);
    add_number(realtime);
    return tell();
}

static OTF2_CallbackCode on_text(void *user, OTF2_StringRef self, const char *string)
{
    (void)user;
    char **entry = entry_of(&texts, self);
    size_t bytes = strlen(string) + 1;
    *entry = ensio_more(*entry, bytes);
    memcpy(*entry, string, bytes);
    return OTF2_CALLBACK_SUCCESS;
}

static OTF2_CallbackCode on_attribute(void *user, OTF2_AttributeRef self, OTF2_StringRef name,
                                      OTF2_StringRef description, OTF2_Type type)
{
    static const char *const names[ENSIO_ATTRIBUTE_KINDS] = {
        "Offset",       "errno",       "ensio.depth",  "ensio.carried",  "ensio.requested",
        "ensio.moved",  "ensio.file",  "ensio.start",  "ensio.duration", "ensio.rank",
        "ensio.thread", "ensio.ended", "ensio.flight", "ensio.request",  "ensio.site",
    };
    (void)user, (void)description, (void)type;
    for (int i = 0; i < ENSIO_ATTRIBUTE_KINDS; i++)
        if (strcmp(text_of(name), names[i]) == 0) {
            attribute_of[i] = self;
            has_attribute[i] = true;
        }
    return OTF2_CALLBACK_SUCCESS;
}

int ensio_attribute_kind_of(OTF2_AttributeRef attribute)
{
    if (attribute < ENSIO_ATTRIBUTE_KINDS && has_attribute[attribute] && attribute_of[attribute] == attribute)
        return (int)attribute; /* our archives have them in this order */
    for (int i = 0; i < ENSIO_ATTRIBUTE_KINDS; i++)
        if (has_attribute[i] && attribute_of[i] == attribute)
            return i;
    return -1;
}

static OTF2_CallbackCode on_node(void *user, OTF2_SystemTreeNodeRef self, OTF2_StringRef name,
                                 OTF2_StringRef class_name, OTF2_SystemTreeNodeRef parent)
{
    (void)user;
    add_text("node");
    add_number(self);
    add_text(text_of(name));
    add_text(text_of(class_name));
    add_number(parent);
    return tell();
}

static OTF2_CallbackCode tell_property(const char *word, uint64_t of, OTF2_StringRef name, OTF2_Type type,
                                       OTF2_AttributeValue value)
{
    if (type != OTF2_TYPE_STRING)
        return OTF2_CALLBACK_SUCCESS;
    add_text(word);
    add_number(of);
    add_text(text_of(name));
    add_text(text_of(value.stringRef));
    return tell();
}

static OTF2_CallbackCode on_node_property(void *user, OTF2_SystemTreeNodeRef of, OTF2_StringRef name, OTF2_Type type,
                                          OTF2_AttributeValue value)
{
    (void)user;
    ensio_archive.has_run |= strcmp(text_of(name), "ensio.run") == 0;
    return tell_property("node property", of, name, type, value);
}

static OTF2_CallbackCode on_group_property(void *user, OTF2_LocationGroupRef of, OTF2_StringRef name, OTF2_Type type,
                                           OTF2_AttributeValue value)
{
    (void)user;
    return tell_property("group property", of, name, type, value);
}

static OTF2_CallbackCode on_file_property(void *user, OTF2_IoFileRef of, OTF2_StringRef name, OTF2_Type type,
                                          OTF2_AttributeValue value)
{
    (void)user;
    return tell_property("file property", of, name, type, value);
}

static OTF2_CallbackCode on_group(void *user, OTF2_LocationGroupRef self, OTF2_StringRef name,
                                  OTF2_LocationGroupType type, OTF2_SystemTreeNodeRef node,
                                  OTF2_LocationGroupRef creator)
{
    (void)user, (void)creator;
    add_text("group");
    add_number(self);
    add_text(text_of(name));
    add_number(type);
    add_number(node);
    return tell();
}

static OTF2_CallbackCode on_location(void *user, OTF2_LocationRef self, OTF2_StringRef name, OTF2_LocationType type,
                                     uint64_t events, OTF2_LocationGroupRef group)
{
    (void)user;
    if (ensio_archive.place_count == place_room) {
        place_room = place_room ? 2 * place_room : 64;
        ensio_archive.places = ensio_more(ensio_archive.places, place_room * sizeof *ensio_archive.places);
    }
    if (ensio_archive.place_count >= MOST_NUMBER)
        ensio_fail("it has more locations than an archive can have");
    ensio_archive.places[ensio_archive.place_count++] =
        (struct ensio_place){.id = self, .events = events, .group = group};
    ++*(uint32_t *)entry_of(&groups, group);
    add_text("location");
    add_number(self);
    add_text(text_of(name));
    add_number(type);
    add_number(group);
    return tell();
}

/* MPI calls that wait or access files: Score-P gives MPI_Wait and MPI_File_set_view no role. Calls that only start or
 * prepare a transfer (MPI_Isend, MPI_Send_init) have the role of the transfer, but do not wait. */
static bool is_call_of_mpi(OTF2_RegionRole role, const char *name)
{
    size_t length = strlen(name);
    if (strncmp(name, "MPI_Wait", 8) == 0 || strncmp(name, "MPI_File_", 9) == 0)
        return true;
    if (strncmp(name, "MPI_I", 5) == 0 || (length > 5 && strcmp(name + length - 5, "_init") == 0))
        return false;
    return role == OTF2_REGION_ROLE_BARRIER || role == OTF2_REGION_ROLE_POINT2POINT ||
           (role >= OTF2_REGION_ROLE_COLL_ONE2ALL && role <= OTF2_REGION_ROLE_COLL_OTHER);
}

static OTF2_CallbackCode on_region(void *user, OTF2_RegionRef self, OTF2_StringRef name, OTF2_StringRef canonical,
                                   OTF2_StringRef description, OTF2_RegionRole role, OTF2_Paradigm paradigm,
                                   OTF2_RegionFlag flags, OTF2_StringRef source, uint32_t begin, uint32_t end)
{
    (void)user, (void)canonical, (void)flags, (void)source, (void)begin, (void)end;
    uint8_t meaning = ENSIO_NOTHING;
    if (role == OTF2_REGION_ROLE_FILE_IO || role == OTF2_REGION_ROLE_FILE_IO_METADATA ||
        (paradigm == OTF2_PARADIGM_MPI && is_call_of_mpi(role, text_of(name))) ||
        strncmp(text_of(description), "ensio call ", 11) == 0)
        meaning = ENSIO_A_CALL;
    else if (paradigm == OTF2_PARADIGM_USER)
        meaning = ENSIO_A_REGION;
    *(uint8_t *)entry_of(&regions, self) = meaning;
    if (meaning == ENSIO_NOTHING)
        return OTF2_CALLBACK_SUCCESS;
    add_text("region");
    add_number(self);
    add_text(text_of(name));
    add_text(text_of(description));
    add_number(role);
    add_number(meaning == ENSIO_A_CALL);
    return tell();
}

enum ensio_meaning ensio_meaning_of(OTF2_RegionRef region)
{
    return region < regions.room ? ((uint8_t *)regions.entries)[region] : ENSIO_NOTHING;
}

static OTF2_CallbackCode on_members(void *user, OTF2_GroupRef self, OTF2_StringRef name, OTF2_GroupType type,
                                    OTF2_Paradigm paradigm, OTF2_GroupFlag flags, uint32_t count,
                                    const uint64_t *members)
{
    (void)user, (void)self, (void)name, (void)flags;
    if (type != OTF2_GROUP_TYPE_COMM_LOCATIONS || paradigm != OTF2_PARADIGM_MPI)
        return OTF2_CALLBACK_SUCCESS;
    add_text("ranks");
    for (uint32_t i = 0; i < count; i++)
        add_number(members[i]);
    return tell();
}

static OTF2_CallbackCode on_paradigm(void *user, OTF2_IoParadigmRef self, OTF2_StringRef identification,
                                     OTF2_StringRef name, OTF2_IoParadigmClass class, OTF2_IoParadigmFlag flags,
                                     uint8_t count, const OTF2_IoParadigmProperty *properties, const OTF2_Type *types,
                                     const OTF2_AttributeValue *values)
{
    (void)user, (void)name, (void)class, (void)flags, (void)count, (void)properties, (void)types, (void)values;
    const char *word = text_of(identification);
    has_positions[self] = strcmp(word, "POSIX") == 0 || strcmp(word, "ISOC") == 0;
    add_text("paradigm");
    add_number(self);
    add_text(word);
    return tell();
}

static OTF2_CallbackCode on_file(void *user, OTF2_IoFileRef self, OTF2_StringRef name, OTF2_SystemTreeNodeRef scope)
{
    (void)user, (void)scope;
    add_text("file");
    add_number(self);
    add_text(text_of(name));
    return tell();
}

static OTF2_CallbackCode on_handle(void *user, OTF2_IoHandleRef self, OTF2_StringRef name, OTF2_IoFileRef file,
                                   OTF2_IoParadigmRef paradigm, OTF2_IoHandleFlag flags, OTF2_CommRef comm,
                                   OTF2_IoHandleRef parent)
{
    (void)user, (void)name, (void)flags, (void)comm, (void)parent;
    *(struct ensio_file_of *)entry_of(&handles, self) = (struct ensio_file_of){
        .file = file, .paradigm = paradigm, .known = true, .has_positions = has_positions[paradigm]};
    return OTF2_CALLBACK_SUCCESS;
}

struct ensio_file_of ensio_file_of_handle(OTF2_IoHandleRef handle)
{
    if (handle < handles.room)
        return ((struct ensio_file_of *)handles.entries)[handle];
    return (struct ensio_file_of){0};
}

static OTF2_CallbackCode on_metric_member(void *user, OTF2_MetricMemberRef self, OTF2_StringRef name,
                                          OTF2_StringRef description, OTF2_MetricType kind, OTF2_MetricMode mode,
                                          OTF2_Type type, OTF2_Base base, int64_t exponent, OTF2_StringRef unit)
{
    (void)user, (void)description, (void)kind, (void)mode, (void)type, (void)base, (void)exponent, (void)unit;
    add_text("counter");
    add_number(self);
    add_text(text_of(name));
    return tell();
}

static OTF2_CallbackCode on_unknown(void *user)
{
    (void)user;
    ensio_archive.unknown_definitions++;
    return OTF2_CALLBACK_SUCCESS;
}

void ensio_read_definitions(OTF2_Reader *reader)
{
    OTF2_GlobalDefReader *definitions = OTF2_Reader_GetGlobalDefReader(reader);
    OTF2_GlobalDefReaderCallbacks *callbacks = OTF2_GlobalDefReaderCallbacks_New();
    uint64_t count;
    if (!definitions || !callbacks)
        ensio_fail("its definitions cannot be read");
    OTF2_GlobalDefReaderCallbacks_SetClockPropertiesCallback(callbacks, on_clock);
    OTF2_GlobalDefReaderCallbacks_SetStringCallback(callbacks, on_text);
    OTF2_GlobalDefReaderCallbacks_SetAttributeCallback(callbacks, on_attribute);
    OTF2_GlobalDefReaderCallbacks_SetSystemTreeNodeCallback(callbacks, on_node);
    OTF2_GlobalDefReaderCallbacks_SetSystemTreeNodePropertyCallback(callbacks, on_node_property);
    OTF2_GlobalDefReaderCallbacks_SetLocationGroupCallback(callbacks, on_group);
    OTF2_GlobalDefReaderCallbacks_SetLocationGroupPropertyCallback(callbacks, on_group_property);
    OTF2_GlobalDefReaderCallbacks_SetLocationCallback(callbacks, on_location);
    OTF2_GlobalDefReaderCallbacks_SetRegionCallback(callbacks, on_region);
    OTF2_GlobalDefReaderCallbacks_SetGroupCallback(callbacks, on_members);
    OTF2_GlobalDefReaderCallbacks_SetIoParadigmCallback(callbacks, on_paradigm);
    OTF2_GlobalDefReaderCallbacks_SetIoRegularFileCallback(callbacks, on_file);
    OTF2_GlobalDefReaderCallbacks_SetIoDirectoryCallback(callbacks, on_file);
    OTF2_GlobalDefReaderCallbacks_SetIoFilePropertyCallback(callbacks, on_file_property);
    OTF2_GlobalDefReaderCallbacks_SetIoHandleCallback(callbacks, on_handle);
    OTF2_GlobalDefReaderCallbacks_SetMetricMemberCallback(callbacks, on_metric_member);
    OTF2_GlobalDefReaderCallbacks_SetUnknownCallback(callbacks, on_unknown);
    OTF2_Reader_RegisterGlobalDefCallbacks(reader, definitions, callbacks, NULL);
    OTF2_GlobalDefReaderCallbacks_Delete(callbacks);
    OTF2_ErrorCode code = OTF2_Reader_ReadAllGlobalDefinitions(reader, definitions, &count);
    if (code != OTF2_SUCCESS)
        ensio_fail("its definitions are damaged: %s", OTF2_Error_GetDescription(code));
    OTF2_Reader_CloseGlobalDefReader(reader, definitions);
    if (!ensio_archive.resolution)
        ensio_fail("its definitions lack the resolution of its clock");
    for (size_t i = 0; i < ensio_archive.place_count; i++)
        ensio_archive.places[i].shares_handles = *(uint32_t *)entry_of(&groups, ensio_archive.places[i].group) > 1;
}
