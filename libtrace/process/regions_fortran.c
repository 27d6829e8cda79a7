/* regions_fortran.c: what ensio.f90 calls. It is in libensio-regions.a, for programs without the recorder, and in
 * libensio.a; weak, because some programs are linked with both. */
#include <ensio/ensio.h>

__attribute__((weak, visibility("default"))) void ensio_mark_from_fortran(int what, const char *name);

void ensio_mark_from_fortran(int what, const char *name)
{
    ensio_mark_if_recorded(what, name);
}
