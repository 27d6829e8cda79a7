/* unwind.c: walks up the stack by the tables that compilers emit for exceptions (.eh_frame, DWARF call frame
 * information), which libraries built without frame pointers have too. libgcc's unwinder would do the same, but it may
 * allocate memory, take the dynamic linker's lock, abort, and crash on a stack that a program made itself. Only what
 * compilers emit for functions is understood; elsewhere the walk ends. */
#include "unwind.h"

#include "modules.h"

#include <core/rawsys.h>

#include <stddef.h>
#include <string.h>
#include <sys/uio.h>

int ensio_copy_memory(uintptr_t from, void *to, size_t bytes)
{
    const struct iovec here = {to, bytes}, there = {(void *)from, bytes};
    const long got = ENSIO_RAW(SYS_process_vm_readv, ensio_raw_pid(), &here, 1UL, &there, 1UL, 0UL);
    return got == (long)bytes ? 0 : got < 0 ? (int)got : -EFAULT;
}

int ensio_read_word(uintptr_t from, uintptr_t *word)
{
    return ensio_copy_memory(from, word, sizeof *word);
}

struct ensio_frame ensio_caller_of(const void *frame)
{
    const uintptr_t *words = frame;
    return (struct ensio_frame){words[1], (uintptr_t)(words + 2), words[0], (uintptr_t)(words + 1)};
}

#ifdef __x86_64__

enum { AT_POINTER = -1 };
enum { FRAME_POINTER = 6, STACK_POINTER = 7, RETURN_ADDRESS = 16 };

#define MOST_STATES 8

/* How to find the caller's registers: the frame begins at a register plus an offset, and registers are saved at offsets
 * from there. */
struct rules {
    uint64_t base;    /* register */
    int64_t offset;   /* from it */
    int is_indirect;  /* the frame begins at the address that is stored there */
    int is_saved;     /* the frame pointer; AT_POINTER: where it points to */
    int64_t saved_at; /* from the start of the frame */
    int is_last;      /* there is no caller */
    int is_understood;
};

struct cursor {
    const uint8_t *at, *end;
};

static uint64_t take(struct cursor *from, size_t bytes)
{
    uint64_t value = 0;
    if ((size_t)(from->end - from->at) < bytes) {
        from->at = from->end;
        return 0;
    }
    memcpy(&value, from->at, bytes);
    from->at += bytes;
    return value;
}

static uint64_t take_number(struct cursor *from, int is_signed)
{
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte = 0x80;
    while (byte & 0x80 && from->at < from->end && shift < 64) {
        byte = *from->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    }
    if (is_signed && shift < 64 && byte & 0x40)
        value |= ~UINT64_C(0) << shift;
    return value;
}

/* The rules that compilers emit for a realigned stack: the start of the frame is stored at an offset from a register.
 */
static void take_expression(struct cursor *from, struct rules *rules)
{
    const uint64_t length = take_number(from, 0);
    const uint8_t *end = from->at + length;
    if (length > (uint64_t)(from->end - from->at)) {
        from->at = from->end;
        rules->is_understood = 0;
        return;
    }
    struct cursor words = {from->at, end};
    const uint8_t first = (uint8_t)take(&words, 1);
    rules->base = first - 0x70U; /* DW_OP_breg0 */
    rules->offset = (int64_t)take_number(&words, 1);
    rules->is_indirect = 1;
    rules->is_understood = words.end - words.at == 1 && *words.at == 0x06; /* DW_OP_deref */
    from->at = end;
}

/* Whether the expression is the frame pointer, if it has to be. */
static int skip_expression(struct cursor *from, int is_pointer)
{
    const uint64_t length = take_number(from, 0);
    if (length > (uint64_t)(from->end - from->at))
        return 0;
    const uint8_t *const words = from->at;
    from->at += length;
    return !is_pointer || (length == 2 && words[0] == 0x70 + FRAME_POINTER && words[1] == 0);
}

struct common {
    uint64_t code_unit;
    int64_t data_unit;
    int has_augmentation, is_signal;
    struct cursor program;
};

static void saved(struct rules *rules, uint64_t which, int64_t at)
{
    if (which == FRAME_POINTER) {
        rules->is_saved = 1;
        rules->saved_at = at;
    } else if (which == RETURN_ADDRESS && at != -(int64_t)sizeof(uintptr_t)) {
        rules->is_understood = 0;
    }
}

static void unsaved(struct rules *rules, const struct rules *initial, uint64_t which)
{
    if (which == FRAME_POINTER) {
        rules->is_saved = initial->is_saved;
        rules->saved_at = initial->saved_at;
    }
}

/* Runs instructions up to the address `until`, from the function's start on. */
static void run(struct cursor program, const struct common *common, uint64_t until, struct rules *rules)
{
    const struct rules initial = *rules;
    struct rules states[MOST_STATES];
    uint32_t kept = 0;
    uint64_t at = 0;
    while (program.at < program.end && rules->is_understood) {
        const uint8_t code = (uint8_t)take(&program, 1), low = code & 0x3f;
        switch (code & 0xc0) {
        case 0x40:
            at += low * common->code_unit;
            goto moved;
        case 0x80:
            saved(rules, low, (int64_t)take_number(&program, 0) * common->data_unit);
            continue;
        case 0xc0:
            unsaved(rules, &initial, low);
            continue;
        default:
            break;
        }
        uint64_t which;
        switch (code) {
        case 0x00:
            continue; /* nop */
        case 0x02:
            at += take(&program, 1) * common->code_unit;
            goto moved;
        case 0x03:
            at += take(&program, 2) * common->code_unit;
            goto moved;
        case 0x04:
            at += take(&program, 4) * common->code_unit;
            goto moved;
        case 0x05: /* offset_extended */
            which = take_number(&program, 0);
            saved(rules, which, (int64_t)take_number(&program, 0) * common->data_unit);
            continue;
        case 0x06:
            unsaved(rules, &initial, take_number(&program, 0));
            continue; /* restore_extended */
        case 0x07:    /* undefined */
            which = take_number(&program, 0);
            rules->is_last |= which == RETURN_ADDRESS;
            rules->is_understood &= which != FRAME_POINTER;
            continue;
        case 0x08:
            unsaved(rules, &initial, take_number(&program, 0));
            continue; /* same_value */
        case 0x0a:    /* remember_state */
            rules->is_understood = kept < MOST_STATES;
            if (kept < MOST_STATES)
                states[kept++] = *rules;
            continue;
        case 0x0b: /* restore_state */
            rules->is_understood = kept > 0;
            if (kept)
                *rules = states[--kept];
            continue;
        case 0x0c: /* def_cfa */
            rules->base = take_number(&program, 0);
            rules->offset = (int64_t)take_number(&program, 0);
            rules->is_indirect = 0;
            continue;
        case 0x0d:
            rules->base = take_number(&program, 0);
            continue; /* def_cfa_register */
        case 0x0e:
            rules->offset = (int64_t)take_number(&program, 0);
            continue; /* def_cfa_offset */
        case 0x0f:
            take_expression(&program, rules);
            continue;
        case 0x10: /* expression, of which one is understood: the frame pointer is stored where it points to */
            which = take_number(&program, 0);
            rules->is_understood &= which != RETURN_ADDRESS && skip_expression(&program, which == FRAME_POINTER);
            if (which == FRAME_POINTER)
                rules->is_saved = AT_POINTER;
            continue;
        case 0x2e:
            (void)take_number(&program, 0);
            continue; /* GNU_args_size */
        default:
            rules->is_understood = 0;
            continue;
        }
    moved:
        if (at > until)
            return;
    }
}

/* A function's entry in the sorted table of .eh_frame_hdr, which holds distances of 32 bits from its start. */
static const uint8_t *entry_of(const struct ensio_module *module, uintptr_t address, uintptr_t *function)
{
    const uint8_t *head = module->frames;
    uint32_t count;
    if (!head || head[0] != 1 || head[1] != 0x1b || head[2] != 0x03 || head[3] != 0x3b)
        return NULL;
    memcpy(&count, head + 8, sizeof count);
    const uint8_t *table = head + 12;
    const int64_t wanted = (int64_t)(address - (uintptr_t)head);
    uint32_t low = 0, high = count;
    int32_t pair[2];
    while (low < high) { /* the last entry that begins at or before the address */
        const uint32_t middle = low + (high - low) / 2;
        memcpy(pair, table + 8UL * middle, sizeof pair);
        if (pair[0] <= wanted)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return NULL;
    memcpy(pair, table + 8UL * (low - 1), sizeof pair);
    *function = (uintptr_t)head + (uintptr_t)(intptr_t)pair[0];
    return head + pair[1];
}

static struct cursor record(const uint8_t *at)
{
    uint32_t bytes;
    memcpy(&bytes, at, sizeof bytes);
    return bytes == UINT32_MAX ? (struct cursor){at, at} : (struct cursor){at + 4, at + 4 + bytes};
}

static int parse_common(const uint8_t *at, struct common *common)
{
    struct cursor from = record(at);
    (void)take(&from, 4);
    const uint8_t version = (uint8_t)take(&from, 1);
    const char *letters = (const char *)from.at;
    const size_t length = strnlen(letters, (size_t)(from.end - from.at));
    if ((version != 1 && version != 3) || length == (size_t)(from.end - from.at))
        return -1;
    from.at += length + 1;
    common->code_unit = take_number(&from, 0);
    common->data_unit = (int64_t)take_number(&from, 1);
    const uint64_t returns = version == 1 ? take(&from, 1) : take_number(&from, 0);
    common->has_augmentation = letters[0] == 'z';
    common->is_signal = 0;
    if (returns != RETURN_ADDRESS || (letters[0] && !common->has_augmentation))
        return -1;
    if (common->has_augmentation) {
        const uint64_t bytes = take_number(&from, 0);
        struct cursor data = {from.at, from.at + bytes};
        if (bytes > (uint64_t)(from.end - from.at))
            return -1;
        for (const char *letter = letters + 1; *letter; letter++) {
            if (*letter == 'S') {
                common->is_signal = 1;
            } else if (*letter == 'R') {
                if (take(&data, 1) != 0x1b) /* relative, 32 bits */
                    return -1;
            } else if (*letter == 'L') {
                (void)take(&data, 1);
            } else if (*letter == 'P') {
                const uint8_t how = (uint8_t)take(&data, 1) & 0x0f;
                (void)take(&data, how == 0x0b || how == 0x03 ? 4 : 8);
            } else {
                return -1;
            }
        }
        from.at += bytes;
    }
    common->program = from;
    return 0;
}

static int rules_at(uintptr_t address, struct rules *rules)
{
    struct ensio_module module;
    struct common common;
    uintptr_t function;
    uint32_t back;
    if (ensio_module_at(address, &module) != 0)
        return -1;
    const uint8_t *entry = entry_of(&module, address, &function);
    if (!entry)
        return -1;
    struct cursor from = record(entry);
    const uint8_t *const place = from.at;
    if (from.end - from.at < 12)
        return -1;
    memcpy(&back, place, sizeof back);
    from.at += 8;
    const uint64_t bytes = take(&from, 4);
    if (!back || parse_common(place - back, &common) != 0 || common.is_signal || address - function >= bytes)
        return -1;
    if (common.has_augmentation) {
        const uint64_t skipped = take_number(&from, 0);
        from.at = skipped > (uint64_t)(from.end - from.at) ? from.end : from.at + skipped;
    }
    *rules = (struct rules){.base = UINT64_MAX, .is_understood = 1};
    run(common.program, &common, UINT64_MAX, rules);
    run(from, &common, address - function, rules);
    return rules->is_understood && !rules->is_last ? 0 : -1;
}

int ensio_unwind(struct ensio_frame *frame)
{
    struct rules rules;
    if (rules_at(frame->address - 1, &rules) != 0)
        return -1;
    const uintptr_t base = rules.base == STACK_POINTER   ? frame->stack
                           : rules.base == FRAME_POINTER ? frame->pointer
                                                         : 0;
    uintptr_t start = base + (uintptr_t)rules.offset;
    if (!base || (rules.is_indirect && ensio_read_word(start, &start) != 0) || start <= frame->stack)
        return -1;
    uintptr_t pointer = frame->pointer, address;
    const uintptr_t kept_at = rules.is_saved == AT_POINTER ? frame->pointer : start + (uintptr_t)rules.saved_at;
    if ((rules.is_saved && ensio_read_word(kept_at, &pointer) != 0) ||
        ensio_read_word(start - sizeof address, &address) != 0)
        return -1;
    *frame = (struct ensio_frame){address, start, pointer, start - sizeof address};
    return address ? 0 : -1;
}

#else

/* Elsewhere by frame pointers, which ABIs such as that of 64-bit Arm prescribe. */
int ensio_unwind(struct ensio_frame *frame)
{
    uintptr_t pointer, address;
    if (frame->pointer <= frame->slot || ensio_read_word(frame->pointer, &pointer) != 0 ||
        ensio_read_word(frame->pointer + sizeof address, &address) != 0 || !address)
        return -1;
    *frame = (struct ensio_frame){address, frame->pointer, pointer, frame->pointer + sizeof address};
    return 0;
}

#endif
