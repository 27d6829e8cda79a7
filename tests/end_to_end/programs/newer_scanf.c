/* The names under which newer C libraries have scanf's family, for a test on older ones. */
#include <stdarg.h>
#include <stdio.h>

int __isoc23_vfscanf(FILE *stream, const char *format, va_list values)
{
    return vfscanf(stream, format, values);
}

int __isoc23_vscanf(const char *format, va_list values)
{
    return vfscanf(stdin, format, values);
}

int __isoc23_fscanf(FILE *stream, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int result = vfscanf(stream, format, values);
    va_end(values);
    return result;
}

int __isoc23_scanf(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int result = vfscanf(stdin, format, values);
    va_end(values);
    return result;
}
