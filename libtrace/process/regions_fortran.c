/* regions_fortran.c: the C side of ensio.f90. It is in libensio-regions.a for programs without the recorder, and in
 * libensio.a. It is weak because some programs link both. */
#include <ensio/ensio.h>

__attribute__((weak, visibility("default"))) void ensio_mark_from_fortran(int what, const char *name);

void ensio_mark_from_fortran(int what, const char *name)
{
    ensio_mark_if_recorded(what, name);
}
