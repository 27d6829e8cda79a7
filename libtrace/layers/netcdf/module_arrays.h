/* module_arrays.h: arrays that gfortran passes by descriptor, since its version 8. */
#ifndef ENSIO_LAYERS_NETCDF_MODULE_ARRAYS_H
#define ENSIO_LAYERS_NETCDF_MODULE_ARRAYS_H

#include <stddef.h>
#include <stdint.h>

struct ensio_module_array {
    const char *base;
    size_t offset;
    size_t element_bytes;
    int version;
    int8_t rank, type;
    int16_t attribute;
    ptrdiff_t span;
    struct {
        ptrdiff_t stride, lower, upper;
    } dimensions[];
};

/* The number of elements that a generic procedure moves: those of the array, unless `count` gives other lengths of its
 * dimensions. rank -1: a string of `length` characters; an array of strings has a dimension more. */
static inline uint64_t ensio_module_elements(const struct ensio_module_array *values, int rank,
                                             const struct ensio_module_array *count, size_t length)
{
    const ptrdiff_t counts = count ? count->dimensions[0].upper - count->dimensions[0].lower + 1 : 0;
    const int is_text = rank < 0 || (rank > 0 && values->type == 6);
    const int dimensions = is_text ? (rank < 0 ? 1 : rank + 1) : rank;
    uint64_t elements = 1;
    for (int i = 0; i < dimensions || i < counts; i++) {
        int64_t extent = 1;
        const int at = i - is_text;
        if (i < counts) {
            const char *place = count->base + i * count->dimensions[0].stride * count->span;
            extent = count->element_bytes == 8 ? *(const int64_t *)(const void *)place
                                               : *(const int32_t *)(const void *)place;
        } else if (at < 0) {
            extent = (int64_t)length;
        } else {
            extent = values->dimensions[at].upper - values->dimensions[at].lower + 1;
        }
        elements *= extent > 0 ? (uint64_t)extent : 0;
    }
    return elements;
}

/* The numbers in an array of default integers; NULL if they do not follow each other. */
static inline const int *ensio_module_numbers(const struct ensio_module_array *array)
{
    const int follow = array && array->dimensions[0].stride == 1 && array->element_bytes == sizeof(int);
    return follow ? (const int *)(const void *)array->base : NULL;
}

#endif
