/* python.c: walks the frames of CPython. Their layout is private to each version of CPython and does not change within
 * one: the offsets below are those of the headers of 3.11, 3.12 and 3.13. A frame counts only if the object that it
 * names as its code has CPython's type of code objects, so that a build with another layout gives no line, never a
 * wrong one. The public functions that return frames create objects and need the interpreter's lock. */
#include "python.h"

#include "unwind.h"

#include <stddef.h>
#include <string.h>

#define MOST_FRAMES 512
#define LONGEST_NAME 1024

/* Of the interpreter, if there is one. They are public, and neither allocates nor needs the interpreter's lock. */
extern void *PyGILState_GetThisThreadState(void) __attribute__((weak));
extern int PyCode_Addr2Line(void *code, int byte) __attribute__((weak));
extern char PyCode_Type[] __attribute__((weak));
extern const unsigned long Py_Version __attribute__((weak));

/* Members of a frame and of a code object that all versions have at one place. */
enum { FRAME_BYTES = 80, INSTRUCTION = 56, CODE_BYTES = 136, TYPE = 8, FILE_NAME = 112, QUALIFIED_NAME = 128 };

/* Members of a text. */
enum { TEXT_BYTES = 72, TEXT_LENGTH = 16, TEXT_STATE = 32 };

struct layout {
    unsigned long version;
    uint16_t thread_frame; /* in the state of the thread */
    int16_t indirect;      /* the frame is at this offset from there; -1: it is there */
    uint16_t code, previous;
    uint16_t instructions;               /* in a code object */
    uint16_t ascii_bytes, compact_bytes; /* of a text, before its characters */
};

static const struct layout layouts[] = {
    {0x030b, 56, 8, 32, 48, 184, 48, 72},
    {0x030c, 56, 0, 0, 8, 192, 40, 56},
    {0x030d, 72, -1, 0, 8, 200, 40, 56},
};

static const struct layout *layout_here(void)
{
    if (!PyGILState_GetThisThreadState || !PyCode_Addr2Line || !PyCode_Type || !&Py_Version)
        return NULL;
    for (uint32_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (layouts[i].version == Py_Version >> 16)
            return &layouts[i];
    return NULL;
}

int ensio_python_is_here(void)
{
    return layout_here() != NULL;
}

static uintptr_t word_at(const char *bytes, uint32_t offset)
{
    uintptr_t word;
    memcpy(&word, bytes + offset, sizeof word);
    return word;
}

static void add_character(struct ensio_string *to, uint32_t character)
{
    if (character < ' ' || character == 0x7f)
        character = '?'; /* tabs and ends of lines separate the parts of a site */
    char bytes[4];
    uint32_t count = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    for (uint32_t i = count; i-- > 1; character >>= 6)
        bytes[i] = (char)(0x80 | (character & 0x3f));
    bytes[0] = (char)(count == 1 ? character : (0xf0U << (4 - count)) | character);
    ensio_add_bytes(to, bytes, count);
}

/* Reads a text of the interpreter: 0, or -1. */
static int read_text(const struct layout *layout, uintptr_t text, struct ensio_string *to)
{
    static char raw[4 * LONGEST_NAME];
    char head[TEXT_BYTES];
    if (!text || ensio_copy_memory(text, head, layout->ascii_bytes) != 0)
        return -1;
    const uint32_t state = (uint32_t)word_at(head, TEXT_STATE);
    const uint32_t width = state >> 2 & 7, is_compact = state >> 5 & 1, is_ascii = state >> 6 & 1;
    uintptr_t length = word_at(head, TEXT_LENGTH);
    if (!is_compact || (width != 1 && width != 2 && width != 4))
        return -1;
    length = length < LONGEST_NAME ? length : LONGEST_NAME;
    if (ensio_copy_memory(text + (is_ascii ? layout->ascii_bytes : layout->compact_bytes), raw, length * width) != 0)
        return -1;
    for (uint32_t i = 0; i < length; i++) {
        uint32_t character = 0;
        memcpy(&character, raw + (size_t)i * width, width);
        add_character(to, character);
    }
    return to->full ? -1 : 0;
}

enum kind { PROGRAM, LIBRARY, INTERNAL };

/* Whether a file belongs to the program, or to the standard library or an installed package; INTERNAL: there is no
 * file. Text that was executed counts as the program's if there is no file of it. */
static enum kind kind_of(const char *name)
{
    if (*name == '<')
        return strcmp(name, "<string>") == 0 || strcmp(name, "<stdin>") == 0 ? LIBRARY : INTERNAL;
    return strstr(name, "/lib/python3") || strstr(name, "/lib64/python3") || strstr(name, "/site-packages/") ||
                   strstr(name, "/dist-packages/")
               ? LIBRARY
               : PROGRAM;
}

struct frame {
    uintptr_t code, at; /* the code object, and the instruction */
    char bytes[CODE_BYTES];
};

/* Adds a line for a frame, or nothing if it has no room. */
static void add_caller(const struct layout *layout, const struct frame *frame, struct ensio_string *to)
{
    static char name[4 * LONGEST_NAME];
    struct ensio_string file = ensio_string_in(name, sizeof name - 1);
    if (read_text(layout, word_at(frame->bytes, FILE_NAME), &file) != 0)
        return;
    name[file.length] = '\0';
    const int found = PyCode_Addr2Line((void *)frame->code, (int)(frame->at - frame->code - layout->instructions));
    const uint64_t line = found > 0 ? (uint64_t)found : 0;
    const uint32_t before = to->length;
    if (before)
        ensio_add(to, "\n");
    ensio_add_number(to, line); /* the line is the address in the module */
    ensio_add(to, " - ");
    ensio_add(to, name);
    ensio_add(to, "\tline\t");
    const int failed = read_text(layout, word_at(frame->bytes, QUALIFIED_NAME), to);
    ensio_add(to, "\t");
    ensio_add(to, name);
    ensio_add(to, "\t");
    ensio_add_number(to, line);
    if (failed || to->full)
        to->length = before;
}

/* What was found out about an instruction of a code object. Objects are freed and others made in their place: the hash
 * is that of all pointers to what the code consists of. */
struct instruction {
    uintptr_t code, at;
    uint64_t hash;
    enum kind kind;
    void *site;
};

#define KNOWN_BITS 9
static struct instruction known[1 << KNOWN_BITS];

/* Finds out about the instruction of a frame; NULL: its code is not a code object. */
static struct instruction *look_at(const struct layout *layout, const struct frame *frame)
{
    char beginning[CODE_BYTES - TYPE];
    memcpy(beginning, frame->bytes + TYPE, sizeof beginning); /* without the count of references */
    const uint64_t hash = ensio_hash_bytes(0, beginning, sizeof beginning);
    struct instruction *const here = &known[(hash ^ frame->at) * 0x9e3779b97f4a7c15U >> (64 - KNOWN_BITS)];
    if (here->code == frame->code && here->at == frame->at && here->hash == hash)
        return here;
    static char name[4 * LONGEST_NAME];
    struct ensio_string file = ensio_string_in(name, sizeof name - 1);
    if (word_at(frame->bytes, TYPE) != (uintptr_t)PyCode_Type ||
        read_text(layout, word_at(frame->bytes, FILE_NAME), &file) != 0)
        return NULL;
    name[file.length] = '\0';
    *here = (struct instruction){frame->code, frame->at, hash, kind_of(name), NULL};
    return here;
}

/* The frame that the thread is in; 0: none. */
static uintptr_t innermost(const struct layout *layout)
{
    const uintptr_t thread = (uintptr_t)PyGILState_GetThisThreadState();
    uintptr_t frame = 0;
    if (!thread || ensio_copy_memory(thread + layout->thread_frame, &frame, sizeof frame) != 0)
        return 0;
    if (layout->indirect >= 0 && ensio_copy_memory(frame + (uintptr_t)layout->indirect, &frame, sizeof frame) != 0)
        return 0;
    return frame;
}

int ensio_python_callers(uint32_t callers, struct ensio_string *to, void ***site)
{
    const struct layout *const layout = layout_here();
    uintptr_t at = layout ? innermost(layout) : 0;
    struct frame frame, outermost = {0};
    uint32_t found = 0;
    *site = NULL;
    for (uint32_t i = 0; at && found < callers && i < MOST_FRAMES; i++) {
        char bytes[FRAME_BYTES];
        if (ensio_copy_memory(at, bytes, sizeof bytes) != 0)
            break;
        at = word_at(bytes, layout->previous);
        frame.code = word_at(bytes, layout->code);
        frame.at = word_at(bytes, INSTRUCTION);
        if (ensio_copy_memory(frame.code, frame.bytes, sizeof frame.bytes) != 0)
            continue;
        struct instruction *const here = look_at(layout, &frame);
        if (here && here->kind == PROGRAM) {
            found++;
            *site = callers == 1 ? &here->site : NULL;
            if (!*site || !**site)
                add_caller(layout, &frame, to);
        } else if (here && here->kind == LIBRARY && !found) {
            outermost = frame;
        }
    }
    if (!found && outermost.code)
        add_caller(layout, &outermost, to);
    return found || outermost.code ? 0 : -1;
}
