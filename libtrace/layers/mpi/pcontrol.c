#include "pcontrol.h"

#include <core/recorder.h>
#include <core/settings.h>
#include <layers/program_memory.h>
#include <layers/wrapping.h>

#include <ensio/ensio.h>
#include <stdarg.h>

#define NAME_BYTES 256
#define PAGE_BYTES 4096

_Thread_local int ensio_in_fortran_pcontrol;

extern void ensio_mark(int what, const char *name);

/* Copies a name: its length, without blanks at the end (Fortran pads with them); 0 if it is none. */
static uint32_t copy_name(char *to, const char *name, uint64_t most)
{
    uint32_t length = 0;
    if (most > NAME_BYTES - 1)
        most = NAME_BYTES - 1;
    for (; length < most; length++) {
        const char *at = name + length;
        if ((length == 0 || (uintptr_t)at % PAGE_BYTES == 0) && !ensio_readable(at))
            return 0;
        if (!*at)
            break;
        if ((unsigned char)*at < ' ' || *at == '\x7f')
            return 0;
        to[length] = *at;
    }
    while (length > 0 && to[length - 1] == ' ')
        length--;
    to[length] = '\0';
    return length;
}

void ensio_pcontrol(int level, const char *name, uint64_t most)
{
    char text[NAME_BYTES];
    if (level < -1 || level > 1 || !ensio_ready(&ensio_thread) || !ensio_settings.pcontrol ||
        !copy_name(text, name, most))
        return;
    if (level >= 0)
        ensio_mark(ENSIO_MARK_REGION_BEGIN, text);
    if (level <= 0)
        ensio_mark(ENSIO_MARK_REGION_END, text);
}

/* Another tool may define other arguments: as many as fit into registers are passed on. */
ENSIO_WRAPPER(int, MPI_Pcontrol, (int level, ...))
{
    __auto_type real = ENSIO_REAL(MPI_Pcontrol);
    va_list list;
    va_start(list, level);
    void *const name = va_arg(list, void *), *const second = va_arg(list, void *), *const third = va_arg(list, void *);
    va_end(list);
    if (!ensio_in_fortran_pcontrol)
        ensio_pcontrol(level, name, UINT64_MAX);
    return real(level, name, second, third);
}
