/* mmap_wrappers.c: the wrappers of the calls on mapped files, generated from their table; compiled once for --wrap and
 * once for preload.
 *
 * Allocators and loaders call these functions before anything else runs, and inside malloc. Calls on anonymous memory
 * go directly to the real function, and no wrapper allocates. */
#include <calls/calls.h>
#include <files/mappings.h>
#include <layers/recording.h>
#include <layers/wrapping.h>

#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/types.h>

enum {
#define CALL(number, call, op) CALL_##call = (number),
#include <calls/mmap.def>
};
#undef CALL

/* A mapping at a fixed address replaces the pages of a file that were there. */
static inline void replaced(const void *at, size_t bytes, int flags)
{
    struct ensio_mapping gone;
    if (ENSIO_UNLIKELY((flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) == MAP_FIXED) && at != MAP_FAILED &&
        ensio_mapping_find(at, bytes, &gone))
        ensio_mapping_cut(at, bytes);
}

#define MAP(call, symbol, type) \
    ENSIO_REAL_DECLARE(void *, symbol, (void *at, size_t bytes, int protection, int flags, int fd, type offset)) \
    static inline void *passed_##symbol(void *at, size_t bytes, int protection, int flags, int fd, type offset) \
    { \
        void *result = ENSIO_REAL(symbol)(at, bytes, protection, flags, fd, offset); \
        replaced(result, bytes, flags); \
        return result; \
    } \
    static void *recorded_##symbol(void *at, size_t bytes, int protection, int flags, int fd, type offset) \
    { \
        RECORD_OR_PASS(open_file, fd, passed_##symbol(at, bytes, protection, flags, fd, offset)); \
        (void)open_file; \
        void *result; \
        TIMED(thread, result, ENSIO_REAL(symbol)(at, bytes, protection, flags, fd, offset)); \
        const int64_t failed = result == MAP_FAILED ? -(int64_t)errno : 0; \
        if (!failed) \
            ensio_mapping_add(result, bytes, offset, file); \
        ensio_store(thread, CALL_##call, file, offset, bytes, failed, start, duration); \
        return result; \
    } \
    ENSIO_WRAPPER(void *, symbol, (void *at, size_t bytes, int protection, int flags, int fd, type offset)) \
    { \
        return ENSIO_LIKELY(flags & MAP_ANONYMOUS) ? passed_##symbol(at, bytes, protection, flags, fd, offset) \
                                                   : recorded_##symbol(at, bytes, protection, flags, fd, offset); \
    }

#define UNMAP(call, symbol) \
    ENSIO_WRAPPER(int, symbol, (void *at, size_t bytes)) \
    { \
        struct ensio_thread *thread = &ensio_thread; \
        struct ensio_mapping gone; \
        if (ENSIO_LIKELY(!ensio_mapping_find(at, bytes, &gone))) \
            return ENSIO_REAL(symbol)(at, bytes); \
        ensio_mapping_cut(at, bytes); \
        if (!ensio_ready(thread)) \
            return ENSIO_REAL(symbol)(at, bytes); \
        int result; \
        TIMED(thread, result, ENSIO_REAL(symbol)(at, bytes)); \
        ensio_store(thread, CALL_##call, gone.file, gone.offset, bytes, result < 0 ? -(int64_t)errno : 0, start, \
                    duration); \
        return result; \
    }

/* The old range is forgotten before the call, and restored if the call fails. */
#define REMAP(call, symbol) \
    ENSIO_WRAPPER(void *, symbol, (void *at, size_t bytes, size_t wanted, int flags, ...)) \
    { \
        va_list variable; \
        va_start(variable, flags); \
        void *to = va_arg(variable, void *); \
        va_end(variable); \
        struct ensio_thread *thread = &ensio_thread; \
        struct ensio_mapping old; \
        if (ENSIO_LIKELY(!ensio_mapping_find(at, bytes ? bytes : 1, &old)) || old.first != (uintptr_t)at) { \
            void *other = ENSIO_REAL(symbol)(at, bytes, wanted, flags, to); \
            replaced(other, wanted, flags &MREMAP_FIXED ? MAP_FIXED : 0); \
            return other; \
        } \
        const int recorded = ensio_ready(thread), stays = !bytes || flags & MREMAP_DONTUNMAP; \
        if (!stays) \
            ensio_mapping_cut(at, bytes); \
        void *result; \
        TIMED(thread, result, ENSIO_REAL(symbol)(at, bytes, wanted, flags, to)); \
        const int64_t failed = result == MAP_FAILED ? -(int64_t)errno : 0; \
        if (!failed) \
            ensio_mapping_add(result, wanted, old.offset, old.file); \
        else if (!stays) \
            ensio_mapping_add(at, bytes, old.offset, old.file); \
        if (recorded) \
            ensio_store(thread, CALL_##call, old.file, old.offset, wanted, failed, start, duration); \
        return result; \
    }

#define SYNC_MAP(call, symbol) \
    ENSIO_WRAPPER(int, symbol, (void *at, size_t bytes, int flags)) \
    { \
        struct ensio_thread *thread = &ensio_thread; \
        struct ensio_mapping mapped; \
        if (!ensio_mapping_find(at, bytes, &mapped) || ENSIO_UNLIKELY(!ensio_ready(thread))) \
            return ENSIO_REAL(symbol)(at, bytes, flags); \
        int result; \
        TIMED(thread, result, ENSIO_REAL(symbol)(at, bytes, flags)); \
        ensio_store(thread, CALL_##call, mapped.file, mapped.offset, bytes, result < 0 ? -(int64_t)errno : 0, start, \
                    duration); \
        return result; \
    }

#include <calls/mmap.def>

void ensio_mmap_resolve(void)
{
#ifdef ENSIO_PRELOAD
#undef SYMBOL
#define SYMBOL(symbol) (void)ENSIO_REAL(symbol);
#include <calls/mmap.def>
#endif
}
